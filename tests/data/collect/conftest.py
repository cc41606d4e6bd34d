"""Golden rows: as the public sets write them, in our own words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.sources import collect_shard, list_shards, open_source

Collected = list[Candidate | Rejection]
Collect = Callable[..., Collected]


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of golden rows, one file a format; what they become is in its `expected`."""
    return Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="session")
def collect() -> Collect:
    """Read a path as the collect stage does, and see to it that no row is lost or read twice."""

    def read(path: Path, format_name: str, rows_per_shard: int = 1000) -> Collected:
        source = open_source(path, format_name)
        shards = list_shards(source, rows_per_shard)
        found = [row for shard in shards for row in collect_shard(source, shard)]
        num_rows = [sum(part.num_rows for part in shard) for shard in shards]
        assert len(found) == sum(num_rows)
        assert max(num_rows, default=0) <= rows_per_shard
        assert len({row.id for row in found}) == len(found)
        return found

    return read


@pytest.fixture(scope="session")
def write_row() -> Callable[[Path, dict[str, Any]], None]:
    """Write one row of a format of folders."""

    def write(target: Path, values: dict[str, Any]) -> None:
        for name, content in values["files"].items():
            file = target / values["name"] / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write
