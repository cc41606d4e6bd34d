"""Golden rows, as the public sets write them, in our own words;
and rows read as the collect stage does.
"""

import json
from pathlib import Path
from typing import Any

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.rows import FORMATS
from microcoder.data.sources import collect_shard, list_shards, open_source

GOLDEN = Path(__file__).with_name("golden")
"""The folder of golden rows, one file a format; what they become is in its `expected`."""
EXAMPLES = Path(__file__).parents[2] / "examples" / "extensions"
IN_FOLDERS = [name for name, found in FORMATS.items() if found.folders is not None]
IN_FILES = [name for name in FORMATS if name not in IN_FOLDERS]


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text().splitlines()]


def collect(
    path: Path,
    format_name: str,
    rows_per_shard: int = 1000,
) -> list[Candidate | Rejection]:
    """Read a path as the collect stage does, and see to it that no row is lost or read twice."""
    source = open_source(path, format_name)
    shards = list_shards(source, rows_per_shard)
    found = []
    for shard in shards:
        found.extend(collect_shard(source, shard))
    num_rows = []
    for shard in shards:
        num_rows.append(sum(part.num_rows for part in shard))
    assert len(found) == sum(num_rows)
    assert max(num_rows, default=0) <= rows_per_shard
    assert len({row.id for row in found}) == len(found)
    return found


def write_row(target: Path, values: dict[str, Any]) -> None:
    """Write one row of a format of folders."""
    for name, content in values["files"].items():
        file = target / values["name"] / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
