"""The fast judge against the specification, on a sample of everything that is judged; all of it is in benchmarks/."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import microcoder.judge.run.reference as reference
from microcoder.judge import Judge
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import Call, Checker, Outcome, Problem, Program, TestCase
from microcoder.judge.run.reference import judge_by_reference
from wheels import keep_packages_in

from .conftest import make_problem  # pyrefly: ignore[missing-import]
from .safety_suites import (  # pyrefly: ignore[missing-import]
    FORGERIES,
    HOSTILE,
    can_be_judged,
    forging_case,
    hostile_case,
)
from .stateful_programs import SCREENED  # pyrefly: ignore[missing-import]

MAY_IMPORT = {
    "compare.compare",
    "compare.values",
    "languages",
    "languages.packages",
    "run.builds",
    "run.problem",
    "run.runtimes",
    "run.supervisor",
    "sandbox.protocol",
}
"""What says how a program is run, how outputs are compared and what a problem's tests are; nothing that judges."""
SUM = make_problem(("1 2\n", "3\n"), ("3 4\n", "7\n"), ("5 6\n", "11\n"), time_limit_seconds=2.0, memory_limit_mib=128)
CALL = make_problem(("[1, 2]", "[2, 1]"), ("[]", "[]"), fn_name="turn", time_limit_seconds=2.0)
NODES = make_problem(("[1, 2]", "[2, 1]"), fn_name="turn", call=Call(parameters=("ListNode",), returns="ListNode"))
_TESTLIB = """
import sys
given, output = (open(path).read() for path in sys.argv[1:3])
sys.exit(0 if sum(map(int, output.split())) == int(given) else 1)
"""
CHECKED = make_problem(("10\n", "5 5\n"), checker=Checker(type="program", code=_TESTLIB))
BROKEN = make_problem(("10\n", "5 5\n"), ("12\n", "6 6\n"), checker=Checker(type="program", code="1 / 0"))
CPP = make_problem(("1 2\n", "3\n"), language="cpp")
_READS = "a, b = map(int, input().split())\n"
PROGRAMS: dict[str, tuple[Problem, str]] = {
    "right": (SUM, _READS + "print(a + b)"),
    "wrong": (SUM, _READS + "print(a - b)"),
    "wrong in the second test": (SUM, _READS + "print(a + b if a < 3 else 0)"),
    "no program of this language": (SUM, "print("),
    "an exception": (SUM, _READS + "print(1 // (b - 2))"),
    "an exit code": (SUM, _READS + "print(a + b)\nraise SystemExit(3)"),
    "a signal": (SUM, "import os\nos.kill(os.getpid(), 11)"),
    "no memory": (SUM, "x = bytearray(10 ** 9)"),
    "much memory": (SUM, "x = b'x' * (200 << 20)\n" + _READS + "print(a + b)"),
    "much output": (SUM, "while True: print('x' * 10000)"),
    "streams by name": (
        SUM,
        "a, b = map(int, open('/dev/stdin').read().split())\nprint(a + b, file=open('/dev/stdout', 'w'))",
    ),
    "a package": (SUM, "import numpy\n" + _READS + "print(numpy.add(a, b))"),
    "a function": (CALL, "def turn(a): return a[::-1]"),
    "a method": (CALL, "class Solution:\n    def turn(self, a: List[int]): return a[::-1]"),
    "a wrong function": (CALL, "def turn(a): return {}"),
    "no function": (CALL, "def move(a): return a"),
    "no value": (CALL, "import os\ndef turn(a): os._exit(0)"),
    "no kind of value": (CALL, "def turn(a): return open"),
    "nodes": (NODES, "def turn(a):\n    b = None\n    while a: a.next, b, a = b, a, a.next\n    return b"),
    "checked": (CHECKED, "print(3, int(input()) - 3)"),
    "checked and wrong": (CHECKED, "print(3)"),
    "what breaks the checker": (CHECKED, "print('ten')"),
    "a broken checker": (BROKEN, "print(5, 5)"),
    "C++": (CPP, '#include <cstdio>\nint main() { int a, b; scanf("%d%d", &a, &b); printf("%d", a + b); }'),
    "no C++": (CPP, "int main( {"),
}
EXPECTED = {
    Outcome.ACCEPTED: ("right", "streams by name", "a method", "nodes", "checked", "C++"),
    Outcome.WRONG_ANSWER: ("wrong in the second test", "a wrong function", "what breaks the checker"),
    Outcome.RUNTIME_ERROR: ("an exception", "an exit code", "a signal", "no function", "no value", "no kind of value"),
    Outcome.MEMORY_LIMIT: ("no memory", "much memory"),
    Outcome.OUTPUT_LIMIT: ("much output",),
    Outcome.COMPILE_ERROR: ("no program of this language", "no C++"),
    Outcome.SANDBOX_FAULT: ("a broken checker",),
}
SLOW = {Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT}


@pytest.fixture(scope="module")
def judging() -> Iterator[Judge]:
    with Judge(workers=1, cache_size=0, time_scale=1) as judge:
        yield judge


def test_the_specification_is_short_and_imports_nothing_that_judges() -> None:
    source = Path(reference.__file__).read_text(encoding="utf-8")
    modules = [node.module or "" for node in ast.walk(parse_source(source)) if isinstance(node, ast.ImportFrom)]
    inside = {name.removeprefix("microcoder.judge.") for name in modules if name.startswith("microcoder.judge.")}
    assert len(source.splitlines()) <= 300
    assert {name for name in inside if not name.startswith("core.")} <= MAY_IMPORT


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_say_the_same(judging: Judge, name: str) -> None:
    problem, code = PROGRAMS[name]
    program = Program(code, problem.language)
    (fast,) = judging.judge([program], [problem])
    slow = judge_by_reference(program, problem, stop="first_limit")
    assert outcomes(fast) == outcomes(slow), (fast.detail, slow.detail)
    assert [test.method for test in fast.tests] == [test.method for test in slow.tests]
    assert all(slow.outcome is outcome for outcome, names in EXPECTED.items() if name in names), slow.detail


@pytest.mark.parametrize("stop", ["first_failure", "first_limit", "never"])
def test_the_stop_rules_are_the_same(stop: str) -> None:
    partly_wrong = _READS + "print(a + b if a != 3 else 0)"
    at_a_limit = _READS + "if a == 3: x = bytearray(10 ** 9)\nprint(a + b)"
    with Judge(workers=1, cache_size=0, time_scale=1, stop=stop) as judging:  # pyrefly: ignore[bad-argument-type]
        for code, problem in ((partly_wrong, SUM), (at_a_limit, SUM), ("print(5, 5)", BROKEN)):
            (fast,) = judging.judge([Program(code)], [problem])
            slow = judge_by_reference(Program(code), problem, stop=stop)  # pyrefly: ignore[bad-argument-type]
            assert outcomes(fast) == outcomes(slow)
    # A broken checker ends the program whatever the rule.
    assert outcomes(fast) == [Outcome.SANDBOX_FAULT] * 2


def test_a_checker_may_import_packages_in_both_and_misses_them_in_both(
    judging: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checker = Checker(type="program", code=f"import sortedcontainers\n{_TESTLIB}")
    problem = CHECKED.model_copy(update={"checker": checker})
    program = Program("print(5, 5)")
    (fast,) = judging.judge([program], [problem])
    assert outcomes(fast) == outcomes(judge_by_reference(program, problem))
    keep_packages_in(tmp_path, monkeypatch)
    pins = tmp_path / "own.txt"
    pins.write_text("sortedcontainers==0.0.1\n")
    with Judge(workers=1, cache_size=0, time_scale=1, packages=str(pins)) as without:
        (fast,) = without.judge([program], [problem])
    slow = judge_by_reference(program, problem, packages=str(pins))
    assert outcomes(fast) == outcomes(slow) == [Outcome.SANDBOX_FAULT] * 2
    assert "it asks for sortedcontainers" in slow.detail


def sample() -> list[tuple[Program, Problem]]:
    """Programs of the suites that end by themselves; those that spend their time are left to the benchmark.

    What a shared process resets is left to the tests of sharing, which judge all of it with a process a test.
    """
    quick = [name for name, (allowed, _) in HOSTILE.items() if not SLOW & {*allowed}]
    cases = [hostile_case(name) for name in quick[::5]] + [forging_case(name) for name in list(FORGERIES)[::5]]
    pairs = [(case.attempt, case.problem) for case in cases if can_be_judged(case)]
    tests = tuple(TestCase(input="1 2\r\n3\nzzz\n", output=output) for output in ("new", "new", "left"))
    stateful = Problem(id="stateful", tests=tests)
    pairs += [(Program(code), stateful) for code in list(SCREENED.values())[::2]]
    python = [problem.model_copy(update={"tests": (problem.tests * 2)[:2]}) for _, problem in pairs]
    return list(zip([program for program, _ in pairs], python, strict=True))


def test_a_sample_of_the_suites_is_judged_alike(judging: Judge) -> None:
    pairs = sample()
    assert len(pairs) > 60
    for program, problem in pairs:
        (fast,) = judging.judge([program], [problem])
        slow = judge_by_reference(program, problem, stop="first_limit")
        assert outcomes(fast) == outcomes(slow), (program.code, fast.detail, slow.detail)


def outcomes(verdict: object) -> list[Outcome]:
    return [verdict.outcome, *(test.verdict for test in verdict.tests)]  # pyrefly: ignore[missing-attribute]
