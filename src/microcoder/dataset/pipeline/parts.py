"""The files between steps: one a shard and step, whole or absent, the same bytes for the same rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.dataset.candidates import Candidate, Rejection
from microcoder.dataset.pipeline.steps import Row
from microcoder.errors import DataError

_SCHEMA = pa.schema([("id", pa.string()), ("is_kept", pa.bool_()), ("record", pa.string())])


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
        """It was written whole."""
        return self.path.exists()


def write_part(path: Path, rows: Sequence[Row]) -> None:
    """Write a part by an atomic rename."""
    table = pa.table(
        {
            "id": [row.id for row in rows],
            "is_kept": [isinstance(row, Candidate) for row in rows],
            "record": [row.model_dump_json(exclude_defaults=True) for row in rows],
        },
        schema=_SCHEMA,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    pq.write_table(table, partial, compression="zstd")
    partial.replace(path)


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


def read_rejected(path: Path) -> list[Rejection]:
    """Return the rows of a part that were turned away."""
    return [Rejection.model_validate_json(text) for is_kept, text in _records(path) if not is_kept]


def count_rows(path: Path) -> tuple[int, int]:
    """Return how many rows of a part are kept and how many were turned away."""
    kept = pq.read_table(path, columns=["is_kept"])["is_kept"].to_pylist()
    return sum(kept), len(kept) - sum(kept)


def _records(path: Path) -> Iterator[tuple[bool, str]]:
    try:
        table = pq.read_table(path, columns=["is_kept", "record"])
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is damaged ({error}); delete it and type the same command again") from None
    yield from zip(table["is_kept"].to_pylist(), table["record"].to_pylist(), strict=True)
