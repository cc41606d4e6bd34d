"""Real public data, where it is: every row comes out, as a candidate or as a rejection with its reason."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.row import REASONS
from microcoder.data.rowfiles import unpack

EXAMPLES = Path(__file__).parents[3] / "examples/extensions"
DATA_VARIABLE = "MICROCODER_DATA"


class Real(NamedTuple):
    format_name: str
    num_rows: int
    """As the notes on the data count them."""
    min_candidates: int
    """As measured; the others have tests that are no literals."""
    num_with_tests: int


ARCHIVES = {
    "apps_sample": Real("apps_folder", 5, 5, 5),
    "codecontests_test": Real("humaneval", 165, 165, 0),
    "deepseek_leetcode": Real("deepseek_leetcode", 2 * 180, 360, 360),
    "doocs": Real(f"{EXAMPLES}/doocs.py:doocs", 486, 486, 367),
    "humaneval": Real("humaneval", 164, 155, 155),
    "humaneval_xl": Real("humaneval", 560, 546, 546),
    "kodsport": Real("kattis", 277, 277, 277),
    "lcb_eval": Real("livecodebench", 2 * 880, 2 * 880, 0),
    "leetcodedataset": Real("leetcodedataset", 228 + 1890, 2118, 2118),
    "mbpp": Real("mbpp", 974, 832, 832),
    "odex": Real("odex", 945, 445, 445),
}


def find_archive(name: str) -> Path:
    """Return an archive of real data; skip the test where there is none."""
    named = os.environ.get(DATA_VARIABLE)
    folders = [Path(named)] if named else [parent / "shared" / "data" for parent in Path(__file__).parents]
    for folder in folders:
        if (folder / f"{name}.tar.xz").exists():
            return folder / f"{name}.tar.xz"
    pytest.skip(f"{name}.tar.xz is not here; set {DATA_VARIABLE} to the folder of real data")


@pytest.mark.parametrize("name", ARCHIVES)
def test_every_row_of_real_data_comes_out(tmp_path: Path, collect: Any, name: str) -> None:
    folder = unpack(find_archive(name), into=tmp_path, digest="")
    real = ARCHIVES[name]
    found = collect(folder / name, real.format_name, 200)
    candidates = [row for row in found if isinstance(row, Candidate)]
    rejections = [row for row in found if isinstance(row, Rejection)]
    assert len(candidates) + len(rejections) == real.num_rows
    assert len(candidates) >= real.min_candidates
    assert sum(bool(row.tests) for row in candidates) >= real.num_with_tests
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
