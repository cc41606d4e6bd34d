"""Nothing but a solution is accepted, whatever else a program does to be."""

from __future__ import annotations

import pytest

from microcoder.judge import Judge

from .as_user import SETTINGS, contain_suite  # pyrefly: ignore[missing-import]
from .forging_programs import FORGERIES  # pyrefly: ignore[missing-import]
from .safety_suites import KINDS  # pyrefly: ignore[missing-import]

LONG = ("nobody", "nobody in a container", "root in a container")
SPEND_TIME = (
    "a tree without end",
    "a tree that grows with every read",
    "a list without end",
    "a generator function",
    "a list that is too long for the checker",
)
"""Values that the judge takes apart itself, for seconds, whoever runs it: once is enough."""


@pytest.mark.parametrize(
    "setting", [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in SETTINGS]
)
def test_no_forgery_is_accepted(setting: str) -> None:
    is_again = setting not in ("ourselves", *LONG)
    names = [name for name in FORGERIES if name not in SPEND_TIME] if is_again else []
    assert contain_suite("forging", setting, *names) in ("full", "degraded")


@pytest.mark.long
def test_no_forgery_is_accepted_where_tests_share_a_process() -> None:
    contain_suite("forging", "ourselves", "--together")


def test_every_kind_of_problem_is_tried() -> None:
    assert {kind for kind, _ in FORGERIES.values()} == set(KINDS)


@pytest.mark.parametrize("name", sorted(set(KINDS) - {"cpp"}))
def test_the_honest_program_of_each_kind_is_accepted(judge_one: Judge, name: str) -> None:
    problem, honest = KINDS[name]
    assert judge_one.judge([honest], [problem])[0].is_accepted
