"""Real public data, where it is: every row comes out, as a candidate or as a rejection with its reason."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from published import find_archive

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.row import REASONS
from microcoder.data.rowfiles import unpack
from microcoder.data.sources import collect_shard, list_shards, open_source

EXAMPLES = Path(__file__).parents[3] / "examples/extensions"


class Real(NamedTuple):
    format_name: str
    num_rows: int
    """As the notes on the data count them."""
    candidates: float
    """Share of the rows, as measured; the others have tests that are no literals."""
    with_tests: float
    """Share of the candidates."""
    one_in: int = 1
    """So many rows are counted for one that is read: to read all takes half a minute."""


ARCHIVES = {
    "apps_sample": Real("apps_folder", 5, 1, 1),
    "codecontests_test": Real("humaneval", 165, 1, 0),
    "deepseek_leetcode": Real("deepseek_leetcode", 2 * 180, 1, 1, 9),
    "doocs": Real(f"{EXAMPLES}/doocs.py:doocs", 486, 1, 0.6, 5),
    "humaneval": Real("humaneval", 164, 0.9, 1),
    "humaneval_xl": Real("humaneval", 560, 0.9, 1, 4),
    "kodsport": Real("kattis", 277, 1, 1, 5),
    "lcb_eval": Real("livecodebench", 2 * 880, 1, 0, 4),
    "leetcodedataset": Real("leetcodedataset", 228 + 1890, 1, 1, 20),
    "mbpp": Real("mbpp", 974, 0.75, 1, 4),
    "odex": Real("odex", 945, 0.4, 1, 4),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_every_row_of_real_data_comes_out(tmp_path: Path, name: str) -> None:
    folder = unpack(find_archive(name), into=tmp_path, digest="")
    real = ARCHIVES[name]
    source = open_source(folder / name, real.format_name)
    shards = list_shards(source, 5)
    assert sum(shard.num_rows for shard in shards) == real.num_rows
    found = [row for shard in shards[:: real.one_in] for row in collect_shard(source, shard)]
    candidates = [row for row in found if isinstance(row, Candidate)]
    rejections = [row for row in found if isinstance(row, Rejection)]
    assert len(found) == sum(shard.num_rows for shard in shards[:: real.one_in])
    assert len(candidates) >= real.candidates * len(found)
    assert sum(bool(row.tests) for row in candidates) >= real.with_tests * len(candidates)
    for row in rejections:
        assert row.reason in REASONS
        assert row.reason != "adapter_fault", f"{row.id}: {row.detail}"
        assert row.detail
        assert row.raw
    assert all(row.candidate for row in rejections if row.reason == "tests_not_convertible")
    if name == "kodsport":
        check_packages(folder / name, candidates)


def check_packages(root: Path, candidates: list[Candidate]) -> None:
    """Every submission is read, or counted among those left out."""
    for candidate in candidates:
        package = root / candidate.source_row
        files = [path for path in (package / "submissions").rglob("*") if path.is_file() and not path.is_symlink()]
        notes = [line.detail for line in candidate.lineage if line.field == "solutions"]
        left_out = sum(int(found[0]) for note in notes if (found := re.match(r"\d+", note)))
        assert len(candidate.solutions) + left_out == len(files), candidate.source_row
        inputs = {path for path in (package / "data").rglob("*.in") if path.is_file()}
        unanswered = {path for path in inputs if not path.with_suffix(".ans").exists()}
        assert len(candidate.tests) == len(inputs - unanswered)
        assert bool(unanswered) == any("without an answer" in line.detail for line in candidate.lineage)
