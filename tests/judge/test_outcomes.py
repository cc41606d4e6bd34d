"""Every outcome, from a program that deserves it, by the judge and its specification; what is kept of outputs."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from microcoder import Problem
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Checker, Outcome, Program, Verdict
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.run.reference import judge_by_reference

from .conftest import make_problem, run  # pyrefly: ignore[missing-import]
from .safety_suites import KINDS  # pyrefly: ignore[missing-import]

RIGHT, WRONG, CRASH = Outcome.ACCEPTED, Outcome.WRONG_ANSWER, Outcome.RUNTIME_ERROR
LIMIT, MEMORY, OUTPUT = Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT
COMPILE, FAULT = Outcome.COMPILE_ERROR, Outcome.SANDBOX_FAULT
ONE_TEST = ("1 2\n", "3\n")
SUM = make_problem(ONE_TEST, ("3 4\n", "7\n"), ("5 6\n", "11\n"))
CALL = make_problem(("[1, 2]\n3", "[3, 6]"), ("[]\n3", "[]"), fn_name="solve")
CHECKED = KINDS["checker"].problem
BROKEN = make_problem(("10\n", "5 5\n"), ("12\n", "6 6\n"), checker=Checker(type="program", code="1 / 0"))
CPP = make_problem(("1 2\n", "3\n"), ("2 2", "4"), language="cpp")
READS = "a, b = map(int, input().split())\n"
CPP_TAKES_MEMORY = """
#include <cstring>
#include <vector>
int main() {
    std::vector<char*> held;
    for (;;) { held.push_back(new char[8 << 20]); std::memset(held.back(), 1, 8 << 20); }
}
"""
PROGRAMS: dict[str, tuple[Problem, str, Outcome, str]] = {
    "right": (SUM, READS + "print(a + b)", RIGHT, ""),
    "wrong": (SUM, "print(4)", WRONG, 'test 1: line 1: expected "3", got "4"'),
    "no output": (SUM, "pass", WRONG, 'test 1: no output, expected "3"'),
    "wrong in the second test": (SUM, READS + "print(a + b if a < 3 else 0)", WRONG, "test 2"),
    "no program of this language": (SUM, "print(", COMPILE, "SyntaxError"),
    "endless": (SUM, "while True: pass", LIMIT, "cpu"),
    "asleep": (SUM, "import time\ntime.sleep(99)", LIMIT, "wall"),
    "an exception": (SUM, "1 / 0", CRASH, "test 1: ZeroDivisionError: division by zero"),
    "an exception in the second test": (SUM, READS + "print(a + b)\n1 // (b - 4)", CRASH, "test 2: Zero"),
    "an exit code": (SUM, READS + "print(a + b)\nraise SystemExit(7)", CRASH, "exit code 7"),
    "a signal": (SUM, "import ctypes\nctypes.string_at(0)", CRASH, "killed by SIGSEGV"),
    "no memory": (SUM, "x = bytearray(10 ** 9)", MEMORY, "128 MiB"),
    "much memory": (SUM, "x = b'x' * (200 << 20)\n" + READS + "print(a + b)", MEMORY, "of 128 MiB"),
    "much output": (SUM, "while True: print('x' * 10 ** 6)", OUTPUT, "stdout exceeds 16 MiB"),
    "streams by name": (
        SUM,
        "a, b = map(int, open('/dev/stdin').read().split())\nprint(a + b, file=open('/dev/stdout', 'w'))",
        RIGHT,
        "",
    ),
    "a package": (SUM, "import numpy\n" + READS + "print(numpy.add(a, b))", RIGHT, ""),
    "a method": (CALL, "class Solution:\n    def solve(self, a: List[int], k): return [x * k for x in a]", RIGHT, ""),
    "wrong items": (CALL, "def solve(a, k): return [6, 3]", WRONG, "value[0]: expected 3, got 6"),
    "an item too few": (CALL, "def solve(a, k): return [3]", WRONG, "expected 2 items, got 1"),
    "a set": (CALL, "def solve(a, k): return {3, 6}", WRONG, "expected a list"),
    "a text of it": (CALL, "def solve(a, k): return '[3, 6]'", WRONG, "expected a list"),
    "nothing returned": (CALL, "def solve(a, k): pass", WRONG, "got None"),
    "no kind of value": (CALL, "def solve(a, k): return solve", CRASH, "type function"),
    "other arguments": (CALL, "def solve(a): return a", CRASH, "TypeError"),
    "no function": (CALL, "def move(a, k): return a", CRASH, "neither Solution.solve nor a function solve"),
    "a name of the prelude": (CALL.model_copy(update={"fn_name": "fsum"}), "pass", CRASH, "neither Solution.fsum"),
    "an exit instead": (CALL, "def solve(a, k): exit(0)", CRASH, "ended before its function returned"),
    "no value": (CALL, "import os\ndef solve(a, k): os._exit(0)", CRASH, "ended before its function returned"),
    "an endless function": (CALL, "def solve(a, k):\n    while True: pass", LIMIT, "cpu"),
    "a value without end": (CALL, "x = []\nx.append(x)\ndef solve(a, k): return x", CRASH, "nested too deeply"),
    "a large value": (CALL, "def solve(a, k): return ['x' * 10 ** 7] * 3", OUTPUT, ""),
    "checked and wrong": (CHECKED, "print(3)", WRONG, "the checker refused it"),
    "checked and crashed": (CHECKED, "print(3, 7)\n1 / 0", CRASH, "ZeroDivisionError"),
    "what breaks the checker": (CHECKED, "print('ten')", WRONG, "the checker crashed on this output"),
    "a broken checker": (BROKEN, "print(5, 5)", FAULT, "ZeroDivisionError"),
    "C++, wrong": (CPP, KINDS["cpp"].honest.code.replace("a + b", "a - b"), WRONG, 'expected "3", got "-1"'),
    "no C++": (CPP, "int main() { return x; }", COMPILE, "main.cpp:1:21: error: "),
    "C++, a file of the machine": (CPP, '#include "/etc/passwd"\nint main() {}', COMPILE, "No such file"),
    "C++, endless": (CPP, "int main() { for (volatile int i = 0;; i = i + 1) {} }", LIMIT, "cpu"),
    "C++, a signal": (CPP, "int main() { *(volatile int*)0 = 1; }", CRASH, "SIGSEGV"),
    "C++, an exit code": (CPP, "int main() { return 3; }", CRASH, "exit code 3"),
    "C++, much memory": (CPP, CPP_TAKES_MEMORY, MEMORY, "of 128 MiB"),
    "C++, much output": (CPP, '#include <cstdio>\nint main() { for (;;) std::puts("xxxxxxx"); }', OUTPUT, "16 MiB"),
    **{f"honest {name}": (kind.problem, str(kind.honest.code), RIGHT, "") for name, kind in KINDS.items()},
}


def outcomes(verdict: Verdict) -> list[Outcome]:
    return [verdict.outcome, *(test.verdict for test in verdict.tests)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_judges_give_the_outcome_that_is_deserved(judge_one: Judge, name: str) -> None:
    problem, code, outcome, detail = PROGRAMS[name]
    if why := LANGUAGES[problem.language].find_problem():
        pytest.skip(why)
    if outcome is LIMIT:
        problem = problem.model_copy(update={"time_limit_seconds": 0.3})
    program = Program(code, problem.language)
    (fast,) = judge_one.judge([program], [problem])
    assert fast.outcome is outcome, fast.detail
    assert detail in fast.detail
    slow = judge_by_reference(program, problem, stop="first_limit")
    assert outcomes(fast) == outcomes(slow), slow.detail
    assert [test.method for test in fast.tests] == [test.method for test in slow.tests]


def test_every_outcome_is_deserved_by_a_program(judge_one: Judge) -> None:
    assert run(judge_one, None, SUM).outcome is Outcome.NO_CODE
    threads = "import threading, time\nfor _ in range(999): threading.Thread(target=time.sleep, args=(1,)).start()"
    for code in (threads, "import os\nos.fork()"):
        assert run(judge_one, code, SUM).outcome is Outcome.PROCESS_LIMIT
    seen = {outcome for _, _, outcome, _ in PROGRAMS.values()}
    assert seen == {*Outcome} - {Outcome.NO_CODE, Outcome.PROCESS_LIMIT}


def test_measures_what_a_program_uses(judge_one: Judge) -> None:
    code = """
import time
held = b"x" * (40 << 20)
end = time.process_time() + 0.2
while time.process_time() < end: pass
print(3)
"""
    (test,) = run(judge_one, code, make_problem(ONE_TEST)).tests
    assert test.verdict is Outcome.ACCEPTED
    assert 0.2 <= test.cpu_seconds <= test.wall_seconds + 0.05
    assert 38 < test.memory_mib < 60


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("print(1)", None),
        ("x =", None),
        ("print('<b>2</b>')", "<b>2</b>\n"),
        ("pass", ""),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\x00')", "\\xff\x00"),
        ("print('half'); 1 / 0", "half\n"),
        ("print('x' * 100_000)", "x" * 2000 + "\n[... of 100001 bytes]"),
        ("def f(a): return [1, (2, None), 'a\"']", '[1, [2, null], "a\\""]'),
        ("def f(a): return '\\ud800'", '"\\ud800"'),
        ("def f(a): return 10 ** 6000", None),
        ("def f(a): return [0] * 100_000", None),
    ],
)
def test_a_wrong_answer_is_kept_as_the_expected_one_is_written(judge_one: Judge, code: str, kept: str | None) -> None:
    is_call = code.startswith("def f")
    problem = make_problem(("0" if is_call else "", "1"), fn_name="f" if is_call else None)
    assert run(judge_one, code, problem).tests[0].output == kept


HARNESS = "def main(answer):\n    names = {}\n    exec(answer, names)\n    print(names['f'](int(input())))\n"
TESTS = ({"input": "3", "output": "9"}, {"input": "-2", "output": "4"})


def test_a_harness_calls_the_answer(judge_one: Judge) -> None:
    problem = Problem.model_validate({"id": "square", "fn_name": "f", "harness": HARNESS, "tests": TESTS})
    answers = ["f = lambda n: n * n", "f = lambda n: n * 3", "f = None", "quote = \"'''\\n\\\\\"\nf = lambda n: n ** 2"]
    verdicts = judge_one.judge([Program(code) for code in answers], [problem] * len(answers))
    assert [verdict.outcome for verdict in verdicts] == [RIGHT, WRONG, CRASH, RIGHT]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"language": "cpp"}, "harness runs Python answers, but language is 'cpp'"),
        ({"fn_name": "f", "call": {"returns": "ListNode"}}, "harness makes the calls itself"),
        ({"harness": ""}, "at least 1 character"),
    ],
)
def test_what_contradicts_a_harness_is_refused(fields: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Problem.model_validate({"id": "p", "harness": HARNESS, "tests": TESTS} | fields)


NEEDS_THE_PRELUDE = {
    "star imports": "q = deque(map(int, input().split()))\nheappush(h := [], gcd(6, 3))\nprint(sum(q) * h[0] // 3)",
    "modules": "print(math.floor(3.5) + collections.Counter('a')['b'] + len(re.findall('x', string.digits)))",
    "typing last": "def f(x: List[int]) -> Optional[int]: return sum(x)\nprint(f([*map(int, input().split())]))",
    "deep recursion": "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(40000) - 39997)",
    "many digits": "print(len(str(10 ** 40000)) - 39998)",
    "limits as they are told": "assert sys.getrecursionlimit() == sys.get_int_max_str_digits() == 50000\nprint(3)",
}
AS_EVER = {
    "builtins over math and operator": "print(pow(2, 5, 29) if open and sum(map(int, input().split())) == 3 else 0)",
    "own names over all": "deque = 3\nprint(deque)",
    "no more digits than that": "try: str(10 ** 60000)\nexcept ValueError: print(3)",
    "still the main module": "import inspect\nif __name__ == '__main__': print(2 + len(inspect.stack()))",
}


@pytest.mark.parametrize("name", [*NEEDS_THE_PRELUDE, *AS_EVER])
def test_livecodebench_prelude(judge_one: Judge, name: str) -> None:
    code = {**NEEDS_THE_PRELUDE, **AS_EVER}[name]
    verdict = run(judge_one, code, make_problem(("1 2\n", "3\n"), dialect="livecodebench"))
    assert verdict.is_accepted, verdict.detail
    plain = run(judge_one, code, make_problem(("1 2\n", "3\n")))
    assert plain.is_accepted == (name in AS_EVER), plain.detail


def test_functions_have_its_digits_and_built_languages_no_dialect(judge_one: Judge) -> None:
    code = "def solve(n): return len(str(10 ** n)) + len(ascii_lowercase) - 26"
    call = ("40000", "40001")
    assert run(judge_one, code, make_problem(call, fn_name="solve", dialect="livecodebench")).is_accepted
    assert run(judge_one, code, make_problem(call, fn_name="solve")).outcome is Outcome.RUNTIME_ERROR
    with pytest.raises(DataError, match='is in cpp, dialect "livecodebench" is a way to run Python programs; leave it'):
        judge_one.judge([Program("", "cpp")], [make_problem(("", ""), language="cpp", dialect="livecodebench")])
