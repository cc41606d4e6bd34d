"""What is kept of the output of a test that failed: for a reader, never for the decision."""

from __future__ import annotations

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, TestResult

from .conftest import make_problem  # pyrefly: ignore[missing-import]
from .conftest import run as run_all  # pyrefly: ignore[missing-import]


def run(judge: Judge, code: str, *, fn_name: str | None = None) -> TestResult:
    problem = make_problem(("0" if fn_name else "", "1"), **({"fn_name": fn_name} if fn_name else {}))
    return run_all(judge, code, problem).tests[0]


def test_a_right_output_is_not_kept(judge_one: Judge) -> None:
    assert run(judge_one, "print(1)").output is None


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("print('<b>2</b>')", "<b>2</b>\n"),
        ("pass", ""),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\x00')", "\\xff\x00"),
        ("print('half'); 1 / 0", "half\n"),
    ],
)
def test_a_wrong_output_is_kept_as_text(judge_one: Judge, code: str, kept: str) -> None:
    assert run(judge_one, code).output == kept


def test_a_long_output_is_cut_and_says_so(judge_one: Judge) -> None:
    kept = run(judge_one, "print('x' * 100_000)").output
    assert kept == "x" * 2000 + "\n[... of 100001 bytes]"


@pytest.mark.parametrize(
    ("returned", "kept"),
    [
        ("[1, (2, None), 'a\"']", '[1, [2, null], "a\\""]'),
        ("'\\ud800'", '"\\ud800"'),
        ("10 ** 6000", None),
        ("[0] * 100_000", None),
    ],
)
def test_a_returned_value_is_kept_as_the_expected_one_is_written(
    judge_one: Judge, returned: str, kept: str | None
) -> None:
    result = run(judge_one, f"def f(a): return {returned}", fn_name="f")
    assert (result.verdict, result.output) == (Outcome.WRONG_ANSWER, kept)


def test_a_program_that_does_not_compile_has_no_output(judge_one: Judge) -> None:
    assert run(judge_one, "x =").output is None
