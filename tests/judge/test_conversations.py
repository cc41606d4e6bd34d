"""Tests that are Python programs, run as they were published beside the answer."""

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Problem, Program, Verdict
from tests.judge.program_cases import CASES


def make_problem(*tests: str, setup: str = "", names: tuple[str, ...] = ()) -> Problem:
    return Problem.model_validate(
        {
            "id": "p",
            "fn_name": "f",
            "assertions": {"setup": setup, "names": names},
            "time_limit_seconds": 2.0,
            "tests": [{"input": "", "output": test} for test in tests],
        }
    )


def judge_case(judge: Judge, answer: str, *tests: str, setup: str = "") -> Verdict:
    (verdict,) = judge.judge([Program(answer)], [make_problem(*tests, setup=setup)])
    return verdict


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_judged_as_its_own_harness_does(judge_one: Judge, name: str) -> None:
    case = CASES[name]
    verdict = judge_case(judge_one, case.answer, case.test)
    assert verdict.is_accepted == case.is_right, verdict.detail
