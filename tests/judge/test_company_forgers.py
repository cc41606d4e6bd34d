"""Who tells a test from the one before it, or company from a process alone, gains nothing by it."""

from collections.abc import Iterator

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Problem, Program, Repeat
from microcoder.judge.run.order import draw_order
from tests.judge.company_forgers import BY_CHANCE, COMPANY, FORGERS, answering
from tests.judge.conftest import make_problem

NUM_TESTS = 12
KEY = "a key that the programs do not know"
COMPANY_LOST = {Repeat.SHARED_LOST, Repeat.SHARED_OVER, Repeat.KILLED, Repeat.SANDBOX_DIED}
"""Why a program's tests in company do not count: it is judged alone, by the guess of that."""
ODD = 7
"""The test in which two guesses differ."""
PLACES = make_problem(*(("1\n", "N" if place == 0 else "Y") for place in range(NUM_TESTS)))
"""Equal inputs, of which the published first has another output."""
READS = "given = int(input())\n"
FIRST_GUESS = "given"
SECOND_GUESS = f"given + (given == {ODD})"
STEADY = [name for name in FORGERS if name not in BY_CHANCE]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(
        workers=1, cache_size=0, stop="first_failure", time_scale=1.0, order_key=KEY
    ) as opened:
        yield opened


def _is_accepted(judge: Judge, code: str, problem: Problem) -> bool:
    (verdict,) = judge.judge([Program(code)], [problem])
    assert verdict.is_scorable
    return verdict.is_accepted


def _is_accepted_after_company(judge: Judge, code: str, problem: Problem) -> bool:
    """Whether a program is accepted whose tests were in company, and counted there.

    On a starved machine its first test may be too slow for that, or the company is lost: then it
    has one guess, which is another one than in company.
    """
    (verdict,) = judge.judge([Program(code)], [problem])
    assert verdict.is_scorable
    reasons = {run.reason for run in verdict.uncounted}
    was_in_company = bool(verdict.order) and not reasons & COMPANY_LOST
    return verdict.is_accepted and was_in_company


def _with_another_first(code: str) -> str:
    """Return a program in whose secret order the published first test comes later."""
    number = 0
    changed = code
    while draw_order(KEY, changed, range(1, NUM_TESTS + 1))[0] == 1:
        number += 1
        changed = f"{code}# {number}\n"
    return changed


@pytest.mark.parametrize("name", FORGERS)
def test_the_published_place_of_a_test_is_not_to_be_told(name: str, judge: Judge) -> None:
    """One order in as many as there are tests begins with the published first: not this one."""
    code = _with_another_first(answering(FORGERS[name], "'N'", "'Y'"))
    assert not _is_accepted(judge, code, PLACES)


def _guessed(guess: str) -> Problem:
    """Return the problem of which a guess is the truth."""
    tests = []
    for given in range(1, NUM_TESTS + 1):
        tests.append((f"{given}\n", str(eval(guess, {"given": given}))))
    return make_problem(*tests)


@pytest.mark.parametrize("name", STEADY)
def test_a_program_with_two_guesses_has_one_of_them(name: str, judge: Judge) -> None:
    """The first guess where it takes itself for alone, the other in company."""
    code = answering(READS + FORGERS[name], FIRST_GUESS, SECOND_GUESS)
    num_accepted = 0
    for guess in (FIRST_GUESS, SECOND_GUESS):
        num_accepted += _is_accepted_after_company(judge, code, _guessed(guess))
    assert num_accepted <= 1


@pytest.mark.parametrize("name", [name for name in STEADY if name in COMPANY])
def test_a_program_that_begins_in_company_has_one_guess(name: str, judge: Judge) -> None:
    """Where the programs before were right, the first test has no process of its own before."""
    code = answering(READS + FORGERS[name], FIRST_GUESS, SECOND_GUESS)
    num_accepted = 0
    for guess in (FIRST_GUESS, SECOND_GUESS):
        problem = _guessed(guess)
        right = f"{READS}print({guess})"
        for _ in range(2):
            assert _is_accepted(judge, right, problem)
        num_accepted += _is_accepted_after_company(judge, code, problem)
    assert num_accepted <= 1
