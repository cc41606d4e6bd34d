"""Rows between steps: a file per step and shard, whole or absent.

The same rows give the same bytes.
"""

from __future__ import annotations

import math
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.pipeline.steps import Row
from microcoder.judge.core.errors import DataError

T = TypeVar("T")
ValueT = TypeVar("ValueT")
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("is_kept", pa.bool_()),
        ("reason", pa.string()),
        ("record", pa.string()),
    ]
)
"""Columns of a part; `record` is the row as JSON."""
_GROUP_CHARACTERS = 4 << 20
"""Characters of rows from which on they are written as one row group of the Parquet file."""
_MAGIC = b"PAR1"
"""The last bytes of a Parquet file."""


@dataclass(frozen=True, slots=True)
class Part:
    """One shard's rows after one step."""

    key: str
    """Digest of everything that decides these rows."""
    path: Path

    @property
    def is_there(self) -> bool:
        """Whether the part's file exists and is complete; a crash of the machine may truncate
        it."""
        try:
            with open(self.path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - len(_MAGIC)))
                return file.read() == _MAGIC
        except FileNotFoundError:
            return False


def write_part(path: Path, rows: Iterable[Row]) -> None:
    """Write a part by an atomic rename, one row group at a time, so that few rows are in memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # By such a name a later build finds and removes it, if this one is killed.
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    records = map(_record, rows)
    try:
        # A dictionary of texts that are all different would only be built in vain.
        with pq.ParquetWriter(
            partial,
            _SCHEMA,
            compression="zstd",
            use_dictionary=["reason"],
        ) as writer:
            for group in cut(records, _num_characters, size=_GROUP_CHARACTERS):
                writer.write_table(pa.Table.from_pylist(group, _SCHEMA))
    # Also after Ctrl-C: nothing unfinished is left behind.
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)


def _record(row: Row) -> dict[str, Any]:
    reason = row.reason if isinstance(row, Rejection) else ""
    return {
        "id": row.id,
        "is_kept": isinstance(row, Candidate),
        "reason": reason,
        "record": row.model_dump_json(exclude_defaults=True),
    }


def _num_characters(record: dict[str, Any]) -> int:
    return len(record["record"])


def cut(
    items: Iterable[T],
    size_of: Callable[[T], int],
    *,
    size: int,
    most: float = math.inf,
) -> Iterator[list[T]]:
    """Yield lists of successive items.

    Args:
        size: a list ends as soon as its items' sizes add up to this.
        most: a list ends with so many items.
    """
    piece: list[T] = []
    piece_size = 0
    for item in items:
        piece.append(item)
        piece_size += size_of(item)
        if len(piece) >= most or piece_size >= size:
            yield piece
            piece = []
            piece_size = 0
    if piece:
        yield piece


class KeptRows(Iterable[Candidate]):
    """The candidates of a part, without its rejections.

    Read from the file on each iteration, few in memory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ids = [name for is_kept, name in _column(path, "id") if is_kept]
        """Ids of the candidates, in order."""

    def __iter__(self) -> Iterator[Candidate]:
        for is_kept, text in _column(self._path, "record"):
            if is_kept:
                yield Candidate.model_validate_json(text)


def read_rows(path: Path) -> Iterator[Row]:
    """Yield all rows of a part, in order."""
    for is_kept, text in _column(path, "record"):
        if is_kept:
            yield Candidate.model_validate_json(text)
        else:
            yield Rejection.model_validate_json(text)


def read_rejected(path: Path) -> list[Rejection]:
    """Return the rejected rows of a part."""
    rejected = [text for is_kept, text in _column(path, "record") if not is_kept]
    return [Rejection.model_validate_json(text) for text in rejected]


def count_reasons(path: Path) -> Counter[str]:
    """Return {reason: number of rejected rows} of a part; kept rows count under an empty reason."""
    return Counter(reason for _, reason in _column(path, "reason"))


class Spilled(Generic[ValueT]):
    """Values by key in a temporary file that ends with this object; in memory are their offsets."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - it ends with this object.
        self._starts: dict[Any, int] = {}

    def add(self, key: str | int, value: ValueT) -> None:
        """Store a value under a key."""
        # The position may be anywhere, since values are read in between.
        self._starts[key] = self._file.seek(0, os.SEEK_END)
        pickle.dump(value, self._file)

    def find(self, key: str | int) -> ValueT:
        """Return the value that was last stored under a key; KeyError without one."""
        self._file.seek(self._starts[key])
        # Written by ourselves a moment ago, to a file without a name.
        return pickle.load(self._file)

    def __iter__(self: Spilled[Sequence[T]]) -> Iterator[T]:
        """Iterate over the items of all values, which are lists, in the order of their keys.

        That may be repeated.
        """
        return chain.from_iterable(map(self.find, sorted(self._starts)))


def _column(path: Path, name: str) -> Iterator[tuple[bool, str]]:
    """Yield, for each row of a part, whether it was kept, and its column `name`.

    Raises:
        DataError: the file is damaged.
    """
    try:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                # Only what is asked for is read: records are nearly all of a part.
                table = file.read_row_group(number, columns=["is_kept", name])
                is_kept = table["is_kept"].to_pylist()
                yield from zip(is_kept, table[name].to_pylist(), strict=True)
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{path} is damaged ({reason}); delete it and type the same command again"
        ) from None
