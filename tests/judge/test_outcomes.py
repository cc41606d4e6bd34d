"""Every outcome, from a program that deserves it; what is kept of a wrong output; harnesses and dialects."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from microcoder import Problem
from microcoder.judge import Judge, judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Program, TestResult

from .conftest import ADD, make_problem, run  # pyrefly: ignore[missing-import]

ONE_TEST = ("1 2\n", "3\n")


@pytest.mark.parametrize(
    ("code", "outcome", "detail"),
    [
        (ADD, Outcome.ACCEPTED, ""),
        ("print(4)", Outcome.WRONG_ANSWER, 'test 1: line 1: expected "3", got "4"'),
        ("pass", Outcome.WRONG_ANSWER, 'test 1: no output, expected "3"'),
        ("while True: pass", Outcome.TIME_LIMIT, "cpu"),
        ("import time\ntime.sleep(99)", Outcome.TIME_LIMIT, "wall"),
        ("x = bytearray(10 ** 9)", Outcome.MEMORY_LIMIT, "128 MiB"),
        ("x = [bytearray(b'x' * 10 ** 7) for _ in range(20)]\nprint(3)", Outcome.MEMORY_LIMIT, "of 128 MiB"),
        ("1 / 0", Outcome.RUNTIME_ERROR, "test 1: ZeroDivisionError: division by zero"),
        ("print(3)\nimport sys\nsys.exit(7)", Outcome.RUNTIME_ERROR, "exit code 7"),
        ("import ctypes\nctypes.string_at(0)", Outcome.RUNTIME_ERROR, "killed by SIGSEGV"),
        ("while True: print('x' * 10 ** 6)", Outcome.OUTPUT_LIMIT, "stdout exceeds 16 MiB"),
        ("print(3", Outcome.COMPILE_ERROR, "SyntaxError"),
        (None, Outcome.NO_CODE, ""),
    ],
)
def test_outcome(judge_one: Judge, code: str | None, outcome: Outcome, detail: str) -> None:
    options = {"time_limit_seconds": 0.3} if outcome is Outcome.TIME_LIMIT else {}
    verdict = run(judge_one, code, make_problem(ONE_TEST, **options))
    assert verdict.outcome is outcome, verdict.detail
    assert detail in verdict.detail


def test_the_first_failing_test_decides(judge_one: Judge) -> None:
    code = "n = int(input())\nif n == 2: 1 / 0\nprint(n if n < 3 else 0)"
    verdict = run(judge_one, code, make_problem(("1", "1"), ("2", "2"), ("3", "3"), ("0", "0")))
    assert verdict.outcome is Outcome.RUNTIME_ERROR
    assert [test.verdict.value for test in verdict.tests] == ["accepted", "runtime_error", "wrong_answer", "accepted"]
    assert (verdict.tests_passed, verdict.tests_total) == (2, 4)


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


def test_threads_share_one_cpu_budget(judge_one: Judge) -> None:
    code = """
import threading, hashlib
def burn():
    for _ in range(300): hashlib.sha256(bytes(1 << 20)).digest()
threads = [threading.Thread(target=burn) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(3)
"""
    assert run(judge_one, code, make_problem(ONE_TEST, time_limit_seconds=0.3)).outcome is Outcome.TIME_LIMIT


def test_a_large_right_output_is_accepted(judge_one: Judge) -> None:
    expected = "7 " * 3_000_000
    verdict = run(judge_one, "print('7 ' * 3_000_000)", make_problem(("", expected), time_limit_seconds=10))
    assert verdict.is_accepted, verdict.detail


def test_numpy_programs_run_without_paying_for_its_import(judge_one: Judge) -> None:
    code = "import numpy as np\nprint(np.array(input().split(), dtype=int).sum())"
    verdict = run(judge_one, code, make_problem(("1 2", "3"), ("5 6", "11")))
    assert verdict.is_accepted, verdict.detail
    assert max(test.cpu_seconds for test in verdict.tests) < 0.05


def test_a_program_without_another_process_or_thread_ends_in_that_limit(judge_one: Judge) -> None:
    threads = "import threading, time\nfor _ in range(999): threading.Thread(target=time.sleep, args=(1,)).start()"
    for code in (threads, "import os\nos.fork()"):
        assert run(judge_one, code, make_problem(ONE_TEST)).outcome is Outcome.PROCESS_LIMIT


def first_result(judge: Judge, code: str, *, fn_name: str | None = None) -> TestResult:
    problem = make_problem(("0" if fn_name else "", "1"), **({"fn_name": fn_name} if fn_name else {}))
    return run(judge, code, problem).tests[0]


def test_a_right_output_is_not_kept(judge_one: Judge) -> None:
    assert first_result(judge_one, "print(1)").output is None


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("print('<b>2</b>')", "<b>2</b>\n"),
        ("pass", ""),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\x00')", "\\xff\x00"),
        ("print('half'); 1 / 0", "half\n"),
    ],
)
def test_a_wrong_output_is_kept_as_text(judge_one: Judge, code: str, kept: str) -> None:
    assert first_result(judge_one, code).output == kept


def test_a_long_output_is_cut_and_says_so(judge_one: Judge) -> None:
    kept = first_result(judge_one, "print('x' * 100_000)").output
    assert kept == "x" * 2000 + "\n[... of 100001 bytes]"


@pytest.mark.parametrize(
    ("returned", "kept"),
    [
        ("[1, (2, None), 'a\"']", '[1, [2, null], "a\\""]'),
        ("'\\ud800'", '"\\ud800"'),
        ("10 ** 6000", None),
        ("[0] * 100_000", None),
    ],
)
def test_a_returned_value_is_kept_as_the_expected_one_is_written(
    judge_one: Judge, returned: str, kept: str | None
) -> None:
    result = first_result(judge_one, f"def f(a): return {returned}", fn_name="f")
    assert (result.verdict, result.output) == (Outcome.WRONG_ANSWER, kept)


def test_a_program_that_does_not_compile_has_no_output(judge_one: Judge) -> None:
    assert first_result(judge_one, "x =").output is None


HARNESS = "def main(answer):\n    names = {}\n    exec(answer, names)\n    print(names['f'](int(input())))\n"
TESTS = ({"input": "3", "output": "9"}, {"input": "-2", "output": "4"})


def test_a_harness_calls_the_answer() -> None:
    problem = Problem.model_validate({"id": "square", "fn_name": "f", "harness": HARNESS, "tests": TESTS})
    answers = ["f = lambda n: n * n", "f = lambda n: n * 3", "f = None", "quote = \"'''\\n\\\\\"\nf = lambda n: n ** 2"]
    verdicts = judge([Program(code) for code in answers], [problem] * len(answers), workers=1)
    assert [verdict.outcome for verdict in verdicts] == [
        Outcome.ACCEPTED,
        Outcome.WRONG_ANSWER,
        Outcome.RUNTIME_ERROR,
        Outcome.ACCEPTED,
    ]


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


def test_functions_have_its_digits(judge_one: Judge) -> None:
    code = "def solve(n): return len(str(10 ** n)) + len(ascii_lowercase) - 26"
    call = ("40000", "40001")
    assert run(judge_one, code, make_problem(call, fn_name="solve", dialect="livecodebench")).is_accepted
    assert run(judge_one, code, make_problem(call, fn_name="solve")).outcome is Outcome.RUNTIME_ERROR


def test_a_built_language_has_no_dialect(judge_one: Judge) -> None:
    with pytest.raises(DataError, match='is in cpp, dialect "livecodebench" is a way to run Python programs; leave it'):
        judge_one.judge([Program("", "cpp")], [make_problem(("", ""), language="cpp", dialect="livecodebench")])
