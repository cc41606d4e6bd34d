"""Tests that are Python programs, run as they were published beside the answer."""

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.judge.run.reference import judge_by_reference
from tests.judge.forging_conversations import FORGERS, RIGHT, TEST
from tests.judge.program_cases import CASES

DOUBLE = "assert candidate(4) == 8"


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


def judge_answer(judge: Judge, answer: str, problem: Problem) -> Verdict:
    (verdict,) = judge.judge([Program(answer)], [problem])
    return verdict


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_judged_as_its_own_harness_does(judge_one: Judge, name: str) -> None:
    case = CASES[name]
    verdict = judge_answer(judge_one, case.answer, make_problem(case.test))
    assert verdict.is_accepted == case.is_right, verdict.detail


def test_the_test_of_the_forgers_can_be_passed(judge_one: Judge) -> None:
    verdict = judge_answer(judge_one, RIGHT, make_problem(TEST))
    assert verdict.is_accepted, verdict.detail


@pytest.mark.parametrize("name", FORGERS)
def test_no_forger_is_accepted(judge_one: Judge, name: str) -> None:
    problem = make_problem(TEST).model_copy(update={"time_limit_seconds": 1.0})
    verdict = judge_answer(judge_one, FORGERS[name], problem)
    assert not verdict.is_accepted
    # Nor does one escape its verdict.
    assert verdict.is_scorable, verdict.detail


OUTCOMES = {
    "def f(x): return x * 2": Outcome.ACCEPTED,
    "class Solution:\n    def f(self, x): return x * 2": Outcome.ACCEPTED,
    "def f(x): return x": Outcome.WRONG_ANSWER,
    "def f(x): return None": Outcome.WRONG_ANSWER,
    "def f(x) return x": Outcome.COMPILE_ERROR,
    "def g(x): return x": Outcome.RUNTIME_ERROR,
    "def f(x): return x * 2\nf = f(4)": Outcome.RUNTIME_ERROR,
    "f = None": Outcome.RUNTIME_ERROR,
    "import math as f": Outcome.RUNTIME_ERROR,
    "class Solution: f = 8": Outcome.RUNTIME_ERROR,
    "import nothing": Outcome.RUNTIME_ERROR,
    "def f(x): return x.y": Outcome.RUNTIME_ERROR,
    "def f(x):\n    while True: pass": Outcome.TIME_LIMIT,
    "def f(x): return [0] * (1 << 28)": Outcome.MEMORY_LIMIT,
    "x = [0] * (1 << 28)\ndef f(x): return 8": Outcome.MEMORY_LIMIT,
    "def f(x):\n    while True: print('x' * 9999)": Outcome.OUTPUT_LIMIT,
    "import threading, time\ndef f(x):\n    def g(): time.sleep(99)\n"
    "    [threading.Thread(target=g, daemon=True).start() for _ in range(999)]": (
        Outcome.PROCESS_LIMIT
    ),
}


def test_a_program_over_its_memory_is_refused_though_its_test_passes(judge_one: Judge) -> None:
    answer = "x = bytearray(b'x') * (300 << 20)\ndef f(x): return x * 2"
    problem = make_problem(DOUBLE).model_copy(update={"memory_limit_mib": 256})
    assert judge_answer(judge_one, answer, problem).outcome is Outcome.MEMORY_LIMIT


def test_a_program_over_its_output_is_refused_though_its_test_passes(judge_one: Judge) -> None:
    answer = "import os\ndef f(x):\n    for _ in range(20): os.write(2, b'x' * (1 << 20))\n"
    answer += "    return x * 2"
    assert judge_answer(judge_one, answer, make_problem(DOUBLE)).outcome is Outcome.OUTPUT_LIMIT


@pytest.mark.parametrize("answer", OUTCOMES)
def test_outcomes_are_those_of_any_program(judge_one: Judge, answer: str) -> None:
    problem = make_problem(DOUBLE).model_copy(update={"memory_limit_mib": 256})
    assert judge_answer(judge_one, answer, problem).outcome is OUTCOMES[answer]


@pytest.mark.parametrize(
    ("test", "why"),
    [
        ("assert candidate(", "SyntaxError"),
        ("import nothing_of_that_name\n" + DOUBLE, "No module named 'nothing_of_that_name'"),
        ("assert False", "AssertionError"),
        ("x = 1", "it ended without a call of the program"),
        ("import threading\ncandidate(threading.Lock())", "the test passes a _thread.lock"),
        ("while True: pass", "it took more than 10 s of CPU time"),
        ("import os\nos.kill(os.getpid(), 9)", "killed by SIGKILL"),
    ],
)
def test_a_broken_test_is_no_verdict(judge_one: Judge, test: str, why: str) -> None:
    verdict = judge_answer(judge_one, "def f(x): return x * 2", make_problem(test))
    assert verdict.outcome is Outcome.SANDBOX_FAULT
    assert why in verdict.detail


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        ("assert x == 8", Outcome.ACCEPTED),
        ("assert x == 9", Outcome.WRONG_ANSWER),
    ],
)
def test_time_that_a_test_takes_is_none_of_the_programs(
    judge_one: Judge, end: str, outcome: Outcome
) -> None:
    # Longer than the program's wall limit and what is added for its test.
    test = f"import time\nx = candidate(4)\ntime.sleep(6)\n{end}"
    problem = make_problem(test).model_copy(update={"time_limit_seconds": 0.5})
    assert judge_answer(judge_one, "def f(x): return x * 2", problem).outcome is outcome


def test_a_test_that_breaks_by_what_was_returned_is_a_wrong_answer(judge_one: Judge) -> None:
    verdict = judge_answer(judge_one, "def f(x): pass", make_problem("candidate(1)[0] + 1"))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert "the test ended with TypeError: 'NoneType' object" in verdict.detail


def test_a_test_that_is_made_to_run_on_ends_by_its_limit(judge_one: Judge) -> None:
    endless = "import itertools\ndef f(): return itertools.count()"
    problem = make_problem("candidate()\nwhile True: pass")
    assert judge_answer(judge_one, endless, problem).outcome is Outcome.TIME_LIMIT


def test_a_detail_shows_the_assertion_and_what_was_returned(judge_one: Judge) -> None:
    problem = make_problem("x = 1\nassert (\n    candidate(x)\n    == [2, 3]\n), 'not so'")
    detail = judge_answer(judge_one, "def f(x): return [x]", problem).detail
    expected = "not true: candidate(x) == [2, 3] (AssertionError: not so)"
    assert detail == f"test 1: {expected}; the last call returned [1]"


def test_the_setup_runs_in_both_modules(judge_one: Judge) -> None:
    setup = "import math\nclass Point:\n    def __init__(self, x): self.x = x\n"
    problem = make_problem(
        "p = Point(4)\nq = candidate(p)\nassert type(q) is Point and q.x == math.sqrt(4)\n"
        "assert candidate(p, True) is p and p.x == 5",
        setup=setup,
    )
    answer = (
        "def f(p, change=False):\n"
        "    if change:\n        p.x += 1\n        return p\n"
        "    return Point(math.sqrt(p.x))"
    )
    assert judge_answer(judge_one, answer, problem).is_accepted


def test_an_answer_may_redefine_a_class_of_the_setup(judge_one: Judge) -> None:
    setup = "class Node:\n    def __init__(self, val): self.val = val\n"
    answer = (
        "class Node:\n    def __init__(self, val, more=0): self.val = val\n"
        "    def __lt__(self, other): return self.val < other.val\n"
        "def f(nodes): return min(nodes)"
    )
    problem = make_problem("a, b = Node(2), Node(1)\nassert candidate([a, b]) is b", setup=setup)
    assert judge_answer(judge_one, answer, problem).is_accepted


def test_a_test_takes_further_names_from_the_answer(judge_one: Judge) -> None:
    problem = make_problem("assert candidate([Pair(3, 1), Pair(1, 2)]) == 4", names=("Pair",))
    pair = "class Pair:\n    def __init__(self, a, b): self.a, self.b = a, b\n"
    answer = f"{pair}def f(pairs): return sum(p.a for p in pairs)"
    assert judge_answer(judge_one, answer, problem).is_accepted
    # One that is there already is not taken.
    forged = make_problem("assert abs(candidate(1)) == 1", names=("abs",))
    answer = "def f(x): return 2\ndef abs(x): return 1"
    assert not judge_answer(judge_one, answer, forged).is_accepted


@pytest.mark.parametrize("test", ["assert g(candidate(4)) == 8", "assert g(4) == 8"])
def test_a_value_under_a_further_name_breaks_no_test_unscored(judge_one: Judge, test: str) -> None:
    problem = make_problem(test, names=("g",))
    verdict = judge_answer(judge_one, "def f(x): return x * 2\ng = 8", problem)
    assert verdict.outcome is Outcome.WRONG_ANSWER


def test_all_tests_of_a_problem_begin_anew(judge_one: Judge) -> None:
    problem = make_problem("assert candidate() == 1", "assert candidate() == 1\nassert f() == 2")
    assert judge_answer(judge_one, "n = [0]\ndef f():\n    n[0] += 1\n    return n[0]", problem)


@pytest.mark.parametrize("name", list(CASES)[::9])
def test_the_reference_judges_alike(name: str) -> None:
    case = CASES[name]
    verdict = judge_by_reference(Program(case.answer), make_problem(case.test))
    assert verdict.is_accepted == case.is_right, verdict.detail


@pytest.mark.parametrize("answer", list(OUTCOMES)[:8])
def test_the_reference_finds_the_same_outcomes(answer: str) -> None:
    problem = make_problem(DOUBLE).model_copy(update={"memory_limit_mib": 256})
    assert judge_by_reference(Program(answer), problem).outcome is OUTCOMES[answer]
