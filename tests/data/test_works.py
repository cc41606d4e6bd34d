"""Works and reasons."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from microcoder.data import Candidate, Rejection
from microcoder.data.build.config import SourceSettings
from microcoder.data.build.steps import Resources, open_process, read_benchmark_problems
from microcoder.data.clean import ProcessSettings
from microcoder.data.formats import row
from microcoder.data.formats.candidates import REASONS, process_row
from microcoder.judge.core.errors import DataError

FINE = "Given two numbers, print the sum of both of them on one line."


def test_a_row_that_our_code_fails_on_is_rejected_and_the_others_go_on(tmp_path: Path) -> None:
    rows = [Candidate(id=f"a/{n}", dataset="a", statement_found=FINE) for n in range(3)]
    values: dict[str, Any] = {**dict(rows[1]), "statement_found": 7}  # no format may hand this on
    rows[1] = Candidate.model_construct(**values)
    with open_process(ProcessSettings(), Resources(work=tmp_path)) as work:
        first, second, third = work(rows)
    assert isinstance(first, Candidate)
    assert isinstance(third, Candidate)
    assert isinstance(second, Rejection)
    assert (second.stage, second.reason) == ("process", "row_fault")
    assert re.match(r"\w+Error: .*int", second.detail)
    assert second.candidate == rows[1]


def test_where_recursion_ends_is_not_written_into_a_corpus() -> None:
    def recurse(row: Candidate) -> Candidate:
        return recurse(row)

    made = process_row(Candidate(id="a/1", dataset="a"), "process", recurse)
    assert isinstance(made, Rejection)
    assert made.detail == "RecursionError"


def test_a_benchmark_of_which_nothing_can_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bench.jsonl").write_text('{"text": "Print 1."}\n{"text": "Print 2."}\n')
    source = SourceSettings(path=str(tmp_path / "bench.jsonl"), format="mbpp", name="bench")
    with pytest.raises(DataError, match=r"benchmark 'bench' .*: none of 2 rows is of the format 'mbpp'; the first: "):
        read_benchmark_problems([source])


def test_a_benchmarks_long_tests_are_not_held(tmp_path: Path) -> None:
    tests = [{"input": text, "output": "1\n", "testtype": "stdin"} for text in ("1\n", "1 " * 5000)]
    row = {
        "question_title": "Ones",
        "question_content": "Count the ones.",
        "platform": "atcoder",
        "question_id": "abc001_a",
        "public_test_cases": json.dumps(tests),
        "private_test_cases": json.dumps(tests),
    }
    (tmp_path / "bench.jsonl").write_text(json.dumps(row) + "\n")
    (problem,) = read_benchmark_problems([SourceSettings(path=str(tmp_path / "bench.jsonl"), format="livecodebench")])
    assert {test.input for test in problem.tests} == {"1\n"}


DOCS = Path(__file__).parents[2] / "docs" / "dataset-audit.md"


def test_the_table_of_reasons_is_up_to_date() -> None:
    reasons = DOCS.read_text(encoding="utf-8").partition("\n## Why a row was turned away\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", reasons.partition("\n## ")[0], re.MULTILINE)
    assert rows == [*row.REASONS.items(), *REASONS.items()]
