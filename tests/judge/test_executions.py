"""Running a program without judging it: what is refused, and what its limits become."""

from __future__ import annotations

from typing import Any

import pytest

from microcoder.judge import Invocation, Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Problem, Program

from .conftest import make_problem  # pyrefly: ignore[missing-import]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cpu_seconds": 1e14}, "a time limit of 1e\\+14 s"),
        ({"wall_seconds": 1e14}, "a wall time limit of 1e\\+14 s"),
        ({"wall_seconds": float("inf")}, "a wall time limit of inf s"),
        ({"wall_seconds": float("nan")}, "a wall time limit of nan s"),
        ({"memory_limit_mib": 1 << 40}, "a memory limit of"),
        ({"arguments": ("x" * 100_000,)}, "arguments: 100004 bytes"),
        ({"arguments": ("a\0b",)}, "NUL"),
        ({"files": {"a": b"", "a/": None, "a/b": b""}}, "'a/': duplicate name"),
        ({"files": {"a": b"", "a/b": b""}}, "'a' is not a folder"),
        ({"files": {"a/": b""}}, "has no content"),
        ({"files": {"a": None}}, "has no content"),
        ({"files": {"\u00e9" * 200: b""}}, "400 bytes; use at most 200"),
        ({"files": {"\ud800": b""}}, "not UTF-8"),
    ],
)
def test_what_cannot_be_run_is_refused_and_no_fault(judge_one: Judge, options: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        judge_one.run(Invocation(Program("print('A')"), **options))
    assert judge_one.run(Invocation(Program("print('B')"))).stdout == b"B\n"


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (make_problem(("1", "1"), fn_name="f" * 100_000), "fn_name has 100000 characters"),
        (
            make_problem(("1", "1"), checker={"type": "program", "code": "1", "arguments": ["x" * 100_000]}),
            "checker.arguments: 100004 bytes",
        ),
    ],
)
def test_what_no_sandbox_could_be_told_is_refused(judge_one: Judge, problem: Problem, words: str) -> None:
    with pytest.raises(DataError, match=words):
        judge_one.judge([Program("print('A')")], [problem])


def test_a_folder_that_is_named_like_stdin_breaks_no_sandbox(judge_one: Judge) -> None:
    code = "open('/dev/stdin').read()"
    files = {"stdin/": None, "stdin/a": b""}
    execution = judge_one.run(Invocation(Program(code), files=files))
    assert execution.is_conclusive, execution.detail


def test_modules_that_lie_beside_a_program_can_be_imported(judge_one: Judge) -> None:
    code = "import util, pack.inner as inner\nprint(util.x + inner.y, util.__name__)"
    files = {"util.py": b"x = 1", "pack/": None, "pack/inner.py": b"y = 2"}
    assert judge_one.run(Invocation(Program(code), files=files)).stdout == b"3 util\n"
    again = judge_one.run(Invocation(Program("import util"), files={"other.py": b""}))
    assert "No module named 'util'" in again.detail
    without = judge_one.run(Invocation(Program("import util"), files={"util": b"x = 1"}))
    assert "No module named 'util'" in without.detail
