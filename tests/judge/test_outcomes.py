"""Every outcome, from a program that deserves it."""

from __future__ import annotations

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome

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


def test_cpu_time_decides_however_busy_the_machine_is(judge_one: Judge) -> None:
    code = "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end: pass\nprint(3)"
    assert run(judge_one, code, make_problem(ONE_TEST, time_limit_seconds=5)).is_accepted
    assert run(judge_one, code, make_problem(ONE_TEST, time_limit_seconds=0.2)).outcome is Outcome.TIME_LIMIT


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


def test_a_larger_stack_may_be_asked_for(judge_one: Judge) -> None:
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
sys.setrecursionlimit(10 ** 6)
def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
print(depth(50000))
"""
    assert run(judge_one, code, make_problem(("", "50000"))).is_accepted


def test_a_program_without_another_process_or_thread_ends_in_that_limit(judge_one: Judge) -> None:
    threads = "import threading, time\nfor _ in range(999): threading.Thread(target=time.sleep, args=(1,)).start()"
    for code in (threads, "import os\nos.fork()"):
        assert run(judge_one, code, make_problem(ONE_TEST)).outcome is Outcome.PROCESS_LIMIT
