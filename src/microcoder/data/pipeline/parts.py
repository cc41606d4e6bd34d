"""The files between steps: one a shard and step, whole or absent, the same bytes for the same rows."""

from __future__ import annotations

import errno
import os
import pickle
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.pipeline.steps import Row
from microcoder.judge.core.errors import DataError

_SCHEMA = pa.schema([("id", pa.string()), ("is_kept", pa.bool_()), ("reason", pa.string()), ("record", pa.string())])

_GROUP_CHARACTERS = 4 << 20
"""From which on a group of rows is written and read by itself."""


_SECONDS_BETWEEN = 1.0
_SUFFIX = ".rows"
_MAGIC = b"PAR1"
"""The last bytes of a Parquet file."""


@dataclass(frozen=True, slots=True)
class Part:
    """One shard's rows after one step."""

    shard: int
    step: str
    key: str
    path: Path

    @classmethod
    def of(cls, work: Path, step: str, shard: int, key: str) -> Part:
        """Name a part; its key is in its file name, so that a stale one is never taken."""
        return cls(shard, step, key, work / step / f"{shard:06d}-{key}.parquet")

    @property
    def is_there(self) -> bool:
        """It was written whole; one that a power cut shortened is made again."""
        return is_whole(self.path)


def is_whole(path: Path) -> bool:
    """Whether there is a part that ends as a whole one does."""
    try:
        with open(path, "rb") as file:
            file.seek(-len(_MAGIC), os.SEEK_END)
            return file.read() == _MAGIC
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.EINVAL:  # Shorter than its last bytes.
            return False
        raise


def write_part(path: Path, rows: Iterable[Row]) -> None:
    """Write a part by an atomic rename, as its rows come: the text of a few is in memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        _write_rows(partial, rows)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)


def _write_rows(path: Path, rows: Iterable[Row]) -> None:
    # A dictionary of texts that are all different would only be built in vain.
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd", use_dictionary=["reason"]) as writer:
        columns: list[list[Any]] = [[], [], [], []]
        size = 0

        def write_group() -> None:
            nonlocal columns, size
            writer.write_table(pa.table(columns, schema=_SCHEMA))
            columns, size = [[], [], [], []], 0

        for row in rows:
            record = row.model_dump_json(exclude_defaults=True)
            reason = "" if isinstance(row, Candidate) else row.reason
            for column, value in zip(columns, (row.id, isinstance(row, Candidate), reason, record), strict=True):
                column.append(value)
            size += len(record)
            if size >= _GROUP_CHARACTERS:
                write_group()
        if columns[0]:
            write_group()


def read_part(path: Path) -> list[Row]:
    """Return a part's rows, in order.

    Raises:
        DataError: the file is damaged.
    """
    return [
        Candidate.model_validate_json(text) if is_kept else Rejection.model_validate_json(text)
        for is_kept, text in _records(path)
    ]


def read_kept(path: Path) -> list[Candidate]:
    """Return the rows of a part that are still on their way."""
    return [Candidate.model_validate_json(text) for is_kept, text in _records(path) if is_kept]


class KeptRows(Collection[Candidate]):
    """The rows of a part that are still on their way, read as often as they are gone through; few are in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        tables = _read(path, ["id", "is_kept"])
        self.ids = [
            name
            for table in tables
            for name, is_kept in zip(table["id"].to_pylist(), table["is_kept"].to_pylist(), strict=True)
            if is_kept
        ]
        """In order."""

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Candidate]:
        return (Candidate.model_validate_json(text) for is_kept, text in _records(self._path) if is_kept)

    def __contains__(self, row: object) -> bool:
        return isinstance(row, Candidate) and row.id in self.ids


def read_rejected(path: Path) -> list[Rejection]:
    """Return the rejected rows of a part."""
    return [Rejection.model_validate_json(text) for is_kept, text in _records(path) if not is_kept]


def count_reasons(path: Path) -> Counter[str]:
    """Return how many rows of a part were rejected by reason; kept ones count under an empty text."""
    return Counter(reason for table in _read(path, ["reason"]) for reason in table["reason"].to_pylist())


class _SpilledTable:
    """A table on disk, in a file that ends with this object."""

    _TABLE = ""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None)
        self._connection.execute(f"CREATE TABLE {self._TABLE}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()


class SpilledRows(_SpilledTable):
    """Rows on disk, indexed by id."""

    _TABLE = "rows (id TEXT PRIMARY KEY, record TEXT NOT NULL) WITHOUT ROWID"

    def add(self, path: Path, names: Collection[str]) -> None:
        """Take these rows of a part."""
        for table in _read(path, ["id", "record"]):
            rows = zip(table["id"].to_pylist(), table["record"].to_pylist(), strict=True)
            self._connection.executemany("INSERT INTO rows VALUES (?, ?)", (row for row in rows if row[0] in names))

    def find(self, names: Iterable[str]) -> dict[str, Candidate]:
        """Return some of the rows by their ids."""
        found = {}
        for name in names:
            (record,) = self._connection.execute("SELECT record FROM rows WHERE id = ?", (name,)).fetchone()
            found[name] = Candidate.model_validate_json(record)
        return found


class SpilledObservations(_SpilledTable):
    """Observations of every row on disk; shards may come in any order."""

    _TABLE = "shards (number INTEGER PRIMARY KEY, ids BLOB NOT NULL, looks BLOB NOT NULL)"

    def add(self, shard: int, ids: Sequence[str], looks: Sequence[Any]) -> None:
        """Take the ids of a shard's rows, and what was seen of each."""
        row = (shard, pickle.dumps(list(ids)), pickle.dumps(list(looks)))
        self._connection.execute("INSERT INTO shards VALUES (?, ?, ?)", row)

    def ids(self, shard: int) -> list[str]:
        """Return the ids of a shard's rows."""
        (ids,) = self._connection.execute("SELECT ids FROM shards WHERE number = ?", (shard,)).fetchone()
        return pickle.loads(ids)

    def __iter__(self) -> Iterator[Any]:
        """Go through what was seen, shard after shard; as often as wanted."""
        # Written by ourselves a moment ago, to a file without a name.
        for (looks,) in self._connection.execute("SELECT looks FROM shards ORDER BY number"):
            yield from pickle.loads(looks)


def _records(path: Path) -> Iterator[tuple[bool, str]]:
    for table in _read(path, ["is_kept", "record"]):
        yield from zip(table["is_kept"].to_pylist(), table["record"].to_pylist(), strict=True)


def _read(path: Path, columns: list[str]) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                yield file.read_row_group(number, columns=columns)
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{path} is damaged ({said}); delete it and type the same command again") from None


class Ticker:
    """Reports how many of a shard's rows a step has done, in a small file that other machines see."""

    def __init__(self, path: Path, num_rows: int) -> None:
        self._tick = path.with_name(f".{path.name}{_SUFFIX}")
        self._num_rows = num_rows
        self._last = time.monotonic()

    def tell(self, done: int) -> None:
        """Say it, once a second."""
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN and self._num_rows:
            self._last = now
            self._tick.parent.mkdir(parents=True, exist_ok=True)
            self._tick.write_text(f"{done / self._num_rows:.4f}")

    def end(self) -> None:
        """Take the file away: the part is whole."""
        self._tick.unlink(missing_ok=True)


def read_ticks(folder: Path) -> dict[str, float]:
    """Return, by the name of a part that is being made, the share of its rows that is done."""
    shares = {}
    for tick in folder.glob(f".*{_SUFFIX}"):
        try:
            shares[tick.name[1 : -len(_SUFFIX)]] = float(tick.read_text())
        except (OSError, ValueError):
            continue  # taken away, or half written
    return shares
