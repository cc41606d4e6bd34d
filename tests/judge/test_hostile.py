"""Hostile programs end in their outcome, and the next one does not notice;
nothing but a solution is accepted.
"""

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome
from tests.judge.as_user import SETTINGS, contain_suite
from tests.judge.conftest import make_problem, run
from tests.judge.hostile_programs import HUNT_FOR_EXPECTED
from tests.judge.safety_suites import FORGERIES, IN_A_CONTAINER, KINDS


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        pytest.param("ourselves", (), id="ourselves"),
        pytest.param("nobody", ("fork", "read files", "kill the parent"), id="nobody, in part"),
        pytest.param("nobody in a container", IN_A_CONTAINER, id="nobody in a container, in part"),
        *(
            pytest.param(name, (), id=name, marks=pytest.mark.long)
            for name in SETTINGS
            if name != "ourselves"
        ),
    ],
)
def test_hostile_programs_are_contained(setting: str, names: tuple[str, ...]) -> None:
    assert contain_suite("hostile", setting, *names) in ("full", "degraded")


@pytest.mark.long
def test_hostile_programs_are_contained_where_tests_share_a_process() -> None:
    contain_suite("hostile", "ourselves", "--together")


def test_expected_output_is_nowhere_in_the_sandbox(judge_one: Judge) -> None:
    verdict = run(judge_one, HUNT_FOR_EXPECTED, make_problem(("1\n", "SECRET-ANSWER\n")))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert 'got "nothing"' in verdict.detail


# A compiler takes seconds to fill its memory: test_containers.py has one with less of it.
QUICK = tuple(name for name in FORGERIES if name != "source without end at build time")


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        pytest.param("ourselves", QUICK, id="ourselves"),
        # The layers change nothing about most of them: a few are enough a second time.
        pytest.param(
            "root without capabilities in a container",
            QUICK[::6],
            id="root in a container, in part",
        ),
        *(pytest.param(name, (), id=f"{name}, all", marks=pytest.mark.long) for name in SETTINGS),
    ],
)
def test_no_forgery_is_accepted(setting: str, names: tuple[str, ...]) -> None:
    assert contain_suite("forging", setting, *names) in ("full", "degraded")


@pytest.mark.long
def test_no_forgery_is_accepted_where_tests_share_a_process() -> None:
    contain_suite("forging", "ourselves", "--together")


def test_every_kind_of_problem_is_tried() -> None:
    assert {kind for kind, _ in FORGERIES.values()} == set(KINDS)
