"""Rows as they were published: every one becomes a problem, and the programs that come with it are accepted."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from published import real_file

from microcoder import Outcome, Problem, Program
from microcoder.data.formats.format import recognise
from microcoder.data.formats.rows import FORMATS
from microcoder.judge import Judge

FILES = {
    "humaneval": ("HumanEval.jsonl.gz", 164),
    "mbpp": ("mbpp.jsonl", 974),
    "leetcodedataset": ("LeetCodeDataset-v0.3.1-test.jsonl.gz", 228),
    "deepseek_leetcode": ("20240121-Jul.jsonl", 180),
    "odex": ("en_test.jsonl", 439),
}
"""Archives: a file, and how many rows it has."""


def read_file(archive: str, folder: Path) -> list[dict[str, Any]]:
    path = real_file(archive, FILES[archive][0], folder)
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def reference_of(archive: str, row: dict[str, Any]) -> str:
    match archive:
        case "humaneval":
            return row["prompt"] + row["canonical_solution"]
        case "mbpp":
            return row["code"]
        case _:
            return f"{row['prompt']}\n\n{row['completion']}"


@pytest.mark.parametrize("archive", FILES)
def test_every_row_is_recognised_and_read(archive: str, tmp_path: Path) -> None:
    """Collecting reads the tests of all of them; here those of a tenth, which takes most of the time."""
    rows = read_file(archive, tmp_path)
    assert len(rows) == FILES[archive][1]
    formats = [recognise(row, FORMATS.values()) for row in rows]
    assert {found.name for found in formats if found is not None} == {archive}
    assert None not in formats
    assert {Problem.from_row(row).id.partition("/")[0] for row in rows[::10]} == {archive}


@pytest.mark.parametrize(("archive", "every"), [("humaneval", 20), ("mbpp", 120), ("leetcodedataset", 76)])
def test_references_are_accepted_and_empty_answers_are_not(archive: str, every: int, tmp_path: Path) -> None:
    rows = read_file(archive, tmp_path)[::every]
    problems = [Problem.from_row(row) for row in rows]
    stubs = [Program(f"def {problem.fn_name}(*a, **k): pass") for problem in problems]
    with Judge(workers=2) as judge:
        right = judge.judge([Program(reference_of(archive, row)) for row in rows], problems)
        wrong = judge.judge(stubs, problems)
    assert {verdict.outcome for verdict in right} == {Outcome.ACCEPTED}
    assert Outcome.ACCEPTED not in {verdict.outcome for verdict in wrong}
