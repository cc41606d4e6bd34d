"""Function-call problems: how functions are found, called and compared."""

from __future__ import annotations

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Problem

from .conftest import make_problem, run  # pyrefly: ignore[missing-import]


def call(arguments: str, expected: str, **options: object) -> Problem:
    return make_problem((arguments, expected), fn_name="solve", **options)


SCALED = call("[1, 2]\n3", "[3, 6]")


@pytest.mark.parametrize(
    ("code", "outcome", "detail"),
    [
        ("def solve(a, k): return [6, 3]", Outcome.WRONG_ANSWER, "value[0]: expected 3, got 6"),
        ("def solve(a, k): return [3]", Outcome.WRONG_ANSWER, "expected 2 items, got 1"),
        ("def solve(a, k): return {3, 6}", Outcome.WRONG_ANSWER, "expected a list"),
        ("def solve(a, k): return '[3, 6]'", Outcome.WRONG_ANSWER, "expected a list"),
        ("def solve(a, k): pass", Outcome.WRONG_ANSWER, "got None"),
        ("def solve(a, k): return solve", Outcome.RUNTIME_ERROR, "type function"),
        ("def solve(a): return a", Outcome.RUNTIME_ERROR, "TypeError"),
        ("def other(a, k): return [3, 6]", Outcome.RUNTIME_ERROR, "neither Solution.solve nor a function solve"),
        ("def solve(a, k): exit(0)", Outcome.RUNTIME_ERROR, "ended before its function returned"),
        ("import os\ndef solve(a, k): os._exit(0)", Outcome.RUNTIME_ERROR, "ended before its function returned"),
        ("def solve(a, k):\n    while True: pass", Outcome.TIME_LIMIT, "cpu"),
        ("def solve(a, k): return ['x' * 10 ** 7] * 3", Outcome.OUTPUT_LIMIT, ""),
        ("def solve(a, k): return 1 +", Outcome.COMPILE_ERROR, "SyntaxError"),
        ("x = []\nx.append(x)\ndef solve(a, k): return x", Outcome.RUNTIME_ERROR, "nested too deeply"),
    ],
)
def test_refuses(judge_one: Judge, code: str, outcome: Outcome, detail: str) -> None:
    seconds = 0.3 if outcome is Outcome.TIME_LIMIT else 5.0
    verdict = run(judge_one, code, SCALED.model_copy(update={"time_limit_seconds": seconds}))
    assert verdict.outcome is outcome, verdict.detail
    assert detail in verdict.detail


def test_usual_names_are_there_and_hide_nothing(judge_one: Judge) -> None:
    code = """
def count(x): return 'mine'
class Solution:
    def search(self): return 'own'
    def solve(self, a):
        gcd_and_inf = (math.gcd(4, 6), gcd(4, 6), inf > 1, Counter([1])[1], heapq.nsmallest(1, a), bisect_left(a, 2))
        tools = (accumulate, lru_cache, reduce, cmp_to_key, combinations, defaultdict, deque, sqrt, ceil, re, string)
        return [count(1), self.search(), list(gcd_and_inf), pow(2, 10, 1000), len(tools), bisect.bisect(a, 1)]
"""
    problem = call("[1, 2, 3]", '["mine", "own", [2, 2, true, 1, [1], 1], 24, 11, 1]')
    verdict = run(judge_one, code, problem)
    assert verdict.is_accepted, verdict.detail


def test_a_name_from_the_prelude_is_not_the_programs_function(judge_one: Judge) -> None:
    problem = make_problem(("[1, 2]", "3"), fn_name="fsum")
    assert run(judge_one, "pass", problem).outcome is Outcome.RUNTIME_ERROR


def test_solution_is_made_anew_for_each_test(judge_one: Judge) -> None:
    code = (
        "class Solution:\n    seen = []\n    def solve(self, x):\n        self.seen.append(x)\n        return self.seen"
    )
    assert run(judge_one, code, make_problem(("1", "[1]"), ("2", "[2]"), fn_name="solve")).is_accepted


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("True", "true"),
        ("1", "true"),
        ("True", "1"),
        ("None", "null"),
        ("{1: 'a', 'b': [2]}", '{"b": [2], "1": "a"}'),
        ("Counter('aab')", '{"a": 2, "b": 1}'),
        ("0.1 + 0.2", "0.3"),
        ("1", "1.000001"),
        ("float('inf')", "Infinity"),
        ("float('nan')", "NaN"),
        ("10 ** 40", "1" + "0" * 40),
        ("10 ** 5000", "1" + "0" * 5000),
        ("'é\\ud800'", '"é\\ud800"'),
        ("[[], {}, '']", '[[], {}, ""]'),
    ],
)
def test_values_agree(judge_one: Judge, value: str, expected: str) -> None:
    verdict = run(judge_one, f"def solve(): return {value}", call("", expected))
    assert verdict.is_accepted, verdict.detail


@pytest.mark.parametrize(
    ("arguments", "expected", "message"),
    [
        ("[1, 2]\nthree", "1", "problem broken, test 1, input line 2 is not a JSON argument"),
        ("1", "one", "problem broken, test 1: the expected output is not JSON"),
    ],
)
def test_a_broken_problem_is_an_error_before_anything_runs(
    judge_one: Judge, arguments: str, expected: str, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        run(judge_one, "def solve(*a): pass", call(arguments, expected, id="broken"))
