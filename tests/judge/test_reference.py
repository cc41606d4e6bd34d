"""The fast judge against the specification: every outcome, and a sample of the suites;
all is in benchmarks/.
"""

import ast
from pathlib import Path
from typing import Any

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import Checker, Outcome, Problem, Program, Verdict
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.run import policy
from microcoder.judge.run.reference import judge_by_reference
from tests.judge.conftest import make_problem, run
from tests.judge.safety_suites import KINDS
from tests.wheels import keep_packages_in

OF_PROCESSES = ("supervisor", "sandboxes", "sharing", "local", "conversations", "slots")
"""Modules of `judge/run` that know of processes."""
RIGHT = Outcome.ACCEPTED
WRONG = Outcome.WRONG_ANSWER
CRASH = Outcome.RUNTIME_ERROR
LIMIT = Outcome.TIME_LIMIT
MEMORY = Outcome.MEMORY_LIMIT
OUTPUT = Outcome.OUTPUT_LIMIT
COMPILE = Outcome.COMPILE_ERROR
FAULT = Outcome.SANDBOX_FAULT
ONE_TEST = ("1 2\n", "3\n")
SUM = make_problem(ONE_TEST, ("3 4\n", "7\n"), ("5 6\n", "11\n"))
CALL = make_problem(("[1, 2]\n3", "[3, 6]"), ("[]\n3", "[]"), fn_name="solve")
CHECKED = KINDS["checker"].problem
BRITTLE = make_problem(
    ("10\n", "5 5\n"),
    checker=Checker(
        type="program",
        code="import sys\nsys.exit(sum(map(int, open(sys.argv[2]).read().split())) != 10)",
    ),
)
BROKEN = make_problem(
    ("10\n", "5 5\n"),
    ("12\n", "6 6\n"),
    checker=Checker(type="program", code="1 / 0"),
)
CPP = make_problem(("1 2\n", "3\n"), ("2 2", "4"), language="cpp")
READS = "a, b = map(int, input().split())\n"
PROGRAMS: dict[str, tuple[Problem, str, Outcome, str]] = {
    "right": (SUM, READS + "print(a + b)", RIGHT, ""),
    "wrong": (SUM, "print(4)", WRONG, 'test 1: line 1: expected "3", got "4"'),
    "no output": (SUM, "pass", WRONG, 'test 1: no output, expected "3"'),
    "wrong in the second test": (SUM, READS + "print(a + b if a < 3 else 0)", WRONG, "test 2"),
    "no program of this language": (SUM, "print(", COMPILE, "SyntaxError"),
    "endless": (SUM, "while True: pass", LIMIT, "cpu"),
    "asleep": (SUM, "import time\ntime.sleep(99)", LIMIT, "wall"),
    "an exception": (SUM, "1 / 0", CRASH, "test 1: ZeroDivisionError: division by zero"),
    "an exception in the second test": (
        SUM,
        READS + "print(a + b)\n1 // (b - 4)",
        CRASH,
        "test 2: Zero",
    ),
    "an exit code": (SUM, READS + "print(a + b)\nraise SystemExit(7)", CRASH, "exit code 7"),
    "a signal": (SUM, "import ctypes\nctypes.string_at(0)", CRASH, "killed by SIGSEGV"),
    "no memory": (SUM, "x = bytearray(10 ** 9)", MEMORY, "128 MiB"),
    "much memory": (SUM, "x = b'x' * (200 << 20)\n" + READS + "print(a + b)", MEMORY, "of 128 MiB"),
    "much output": (SUM, "while True: print('x' * 10 ** 6)", OUTPUT, "stdout exceeds 16 MiB"),
    "streams by name": (
        SUM,
        (
            "a, b = map(int, open('/dev/stdin').read().split())\n"
            "print(a + b, file=open('/dev/stdout', 'w'))"
        ),
        RIGHT,
        "",
    ),
    "a package": (SUM, "import numpy\n" + READS + "print(numpy.add(a, b))", RIGHT, ""),
    "a method": (
        CALL,
        "class Solution:\n    def solve(self, a: List[int], k): return [x * k for x in a]",
        RIGHT,
        "",
    ),
    "wrong items": (CALL, "def solve(a, k): return [6, 3]", WRONG, "value[0]: expected 3, got 6"),
    "no kind of value": (CALL, "def solve(a, k): return solve", CRASH, "type function"),
    "other arguments": (CALL, "def solve(a): return a", CRASH, "TypeError"),
    "no function": (
        CALL,
        "def move(a, k): return a",
        CRASH,
        "neither Solution.solve nor a function solve",
    ),
    "a name of the prelude": (
        CALL.model_copy(update={"fn_name": "fsum"}),
        "pass",
        CRASH,
        "neither Solution.fsum",
    ),
    "an exit instead": (
        CALL,
        "def solve(a, k): exit(0)",
        CRASH,
        "ended before its function returned",
    ),
    "no value": (
        CALL,
        "import os\ndef solve(a, k): os._exit(0)",
        CRASH,
        "ended before its function returned",
    ),
    "an endless function": (CALL, "def solve(a, k):\n    while True: pass", LIMIT, "cpu"),
    "a value without end": (
        CALL,
        "x = []\nx.append(x)\ndef solve(a, k): return x",
        CRASH,
        "nested too deeply",
    ),
    "a large value": (CALL, "def solve(a, k): return ['x' * 10 ** 7] * 3", OUTPUT, ""),
    "checked and wrong": (CHECKED, "print(3)", WRONG, "the checker refused it"),
    "checked and crashed": (CHECKED, "print(3, 7)\n1 / 0", CRASH, "ZeroDivisionError"),
    "what breaks the checker": (
        BRITTLE,
        "print('ten')",
        WRONG,
        "the checker crashed on this output",
    ),
    "a broken checker": (BROKEN, "print(5, 5)", FAULT, "ZeroDivisionError"),
    "C++, wrong": (
        CPP,
        str(KINDS["cpp"].honest.code).replace("a + b", "a - b"),
        WRONG,
        'expected "3", got "-1"',
    ),
    "no C++": (CPP, "int main() { return x; }", COMPILE, "main.cpp:1:21: error: "),
    "C++, a file of the machine": (
        CPP,
        '#include "/etc/passwd"\nint main() {}',
        COMPILE,
        "No such file",
    ),
    "C++, a signal": (CPP, "int main() { *(volatile int*)0 = 1; }", CRASH, "SIGSEGV"),
    **{
        f"honest {name}": (kind.problem, str(kind.honest.code), RIGHT, "")
        for name, kind in KINDS.items()
        if kind.problem.call
        or kind.problem.checker.type == "program"
        or kind.problem.language == "cpp"
    },
}


def test_the_policy_knows_nothing_of_processes() -> None:
    source = Path(policy.__file__).read_text(encoding="utf-8")
    known = set()
    for node in ast.walk(parse_source(source)):
        if isinstance(node, ast.ImportFrom):
            known.add(node.module or "")
    assert known.isdisjoint(f"microcoder.judge.run.{name}" for name in OF_PROCESSES)


def outcomes(verdict: Verdict) -> list[Outcome]:
    return [verdict.outcome, *(test.verdict for test in verdict.tests)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_judges_give_the_outcome_that_is_deserved(judge_one: Judge, name: str) -> None:
    problem, code, outcome, detail = PROGRAMS[name]
    if why := LANGUAGES[problem.language].find_problem():
        pytest.skip(why)
    if outcome is LIMIT:
        problem = problem.model_copy(update={"time_limit_seconds": 0.1})
    program = Program(code, problem.language)
    (fast,) = judge_one.judge([program], [problem])
    assert fast.outcome is outcome, fast.detail
    assert detail in fast.detail
    slow = judge_by_reference(program, problem, stop="first_limit")
    assert outcomes(fast) == outcomes(slow), slow.detail
    assert [test.method for test in fast.tests] == [test.method for test in slow.tests]


def test_every_outcome_is_deserved_by_a_program(judge_one: Judge) -> None:
    assert run(judge_one, None, SUM).outcome is Outcome.NO_CODE
    threads = (
        "import threading, time\n"
        "for _ in range(999): threading.Thread(target=time.sleep, args=(1,)).start()"
    )
    for code in (threads, "import os\nos.fork()"):
        assert run(judge_one, code, SUM).outcome is Outcome.PROCESS_LIMIT
    seen = {outcome for _, _, outcome, _ in PROGRAMS.values()}
    assert seen == {*Outcome} - {Outcome.NO_CODE, Outcome.PROCESS_LIMIT}


@pytest.mark.parametrize("stop", ["first_failure", "first_limit", "never"])
def test_the_stop_rules_are_the_same(stop: Any) -> None:
    partly_wrong = READS + "print(a + b if a != 3 else 0)"
    at_a_limit = READS + "if a == 3: x = bytearray(10 ** 9)\nprint(a + b)"
    with Judge(workers=1, cache_size=0, time_scale=1, stop=stop) as judging:
        for code, problem in ((partly_wrong, SUM), (at_a_limit, SUM), ("print(5, 5)", BROKEN)):
            (fast,) = judging.judge([Program(code)], [problem])
            slow = judge_by_reference(Program(code), problem, stop=stop)
            assert outcomes(fast) == outcomes(slow)
    # A broken checker ends the program whatever the rule.
    assert outcomes(fast) == [Outcome.SANDBOX_FAULT] * 2


def test_a_checker_may_import_packages_in_both_and_misses_them_in_both(
    judge_one: Judge,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checker = Checker(type="program", code=f"import sortedcontainers\n{CHECKED.checker.code}")
    problem = CHECKED.model_copy(update={"checker": checker})
    program = Program("print(5, 5)")
    (fast,) = judge_one.judge([program], [problem])
    assert outcomes(fast) == outcomes(judge_by_reference(program, problem))
    keep_packages_in(tmp_path, monkeypatch)
    pins = tmp_path / "own.txt"
    pins.write_text("sortedcontainers==0.0.1\n")
    with Judge(workers=1, cache_size=0, time_scale=1, packages=str(pins)) as without:
        (fast,) = without.judge([program], [problem])
    slow = judge_by_reference(program, problem, packages=str(pins))
    assert outcomes(fast) == outcomes(slow) == [Outcome.SANDBOX_FAULT] * 2
    assert "it asks for sortedcontainers" in slow.detail
