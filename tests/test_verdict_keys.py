"""Whatever decides a verdict tells problems apart: in a judge's memory, in the store of a corpus,
on the wire.
"""

import sys

import pytest

from microcoder.data.verify.store import verdict_key
from microcoder.judge.core.signatures import NOT_JUDGED_BY
from microcoder.judge.core.types import (
    Assertions,
    Call,
    Checker,
    Interactor,
    Problem,
    Program,
    TestCase,
)
from microcoder.judge.fleet.http import write_request
from microcoder.judge.fleet.remote import JudgeRequest, strip_problem
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.judge.run.workers import ProblemCache, Work

PROBLEM = Problem(id="p", fn_name="solve", tests=(TestCase(input="[1]", output="[1]"),))
CHANGES: dict[str, object] = {
    "language": "cpp",
    "language_version": "3.12" if sys.version_info < (3, 12) else "3.11",
    "fn_name": "other",
    "call": Call(returns="ListNode"),
    "dialect": "livecodebench",
    "assertions": Assertions(setup="import math"),
    "tests": PROBLEM.tests * 2,
    "time_limit_seconds": 1.0,
    "memory_limit_mib": 64,
    "checker": Checker(type="unordered", lists="all"),
    "interactor": Interactor(code="pass"),
}
"""Another value for each field that decides verdicts.

A new field of a problem belongs here, or to NOT_JUDGED_BY.
"""


def asked(problem: Problem) -> Work:
    return Work(Program("pass"), strip_problem(problem))


def test_every_field_decides_verdicts_or_is_said_not_to() -> None:
    assert Problem.model_fields.keys() == CHANGES.keys() | NOT_JUDGED_BY
    assert not CHANGES.keys() & NOT_JUDGED_BY


def store_key(
    problem: Problem,
    code: str = "pass",
    stop: str = "never",
    environment: str = "Python 3.11.7",
) -> bytes:
    return verdict_key(Program(code), problem, stop=stop, environment=environment)


def test_program_rule_and_environment_decide_in_the_store() -> None:
    others = ({"code": "print()"}, {"stop": "first_limit"}, {"environment": "Python 3"})
    assert len({store_key(PROBLEM), *(store_key(PROBLEM, **other) for other in others)}) == 4


@pytest.mark.parametrize("name", CHANGES)
def test_a_field_that_decides_is_in_all_keys_and_is_sent(name: str) -> None:
    problem = PROBLEM
    # No function is called in another language, or by an interactor.
    if name in ("language", "interactor"):
        problem = PROBLEM.model_copy(update={"fn_name": None})
    changed = problem.model_copy(update={name: CHANGES[name]})
    shelf = ProblemCache(PreparedProblem, 1 << 20)
    assert shelf.find(changed).number != shelf.find(problem).number
    assert store_key(changed) != store_key(problem)
    sent = JudgeRequest.model_validate_json(write_request([asked(changed)])).problems[0]
    assert getattr(sent, name) == CHANGES[name]
    assert store_key(sent) == store_key(changed)


def test_fields_that_do_not_decide_share_verdicts() -> None:
    others = PROBLEM.model_copy(update=dict.fromkeys(NOT_JUDGED_BY, "text"))
    shelf = ProblemCache(PreparedProblem, 1 << 20)
    assert shelf.find(others).number == shelf.find(PROBLEM).number
    assert store_key(others) == store_key(PROBLEM)


def test_a_call_that_starter_code_implies_decides() -> None:
    implied = PROBLEM.model_copy(update={"starter_code": "def solve(a: ListNode) -> ListNode:"})
    assert PreparedProblem(implied).call_message
    assert store_key(implied) != store_key(PROBLEM)
    sent = JudgeRequest.model_validate_json(write_request([asked(implied)])).problems[0]
    assert store_key(sent) == store_key(implied)
