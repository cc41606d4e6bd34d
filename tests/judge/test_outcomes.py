"""What is measured and kept of a program; harnesses and dialects."""

import pytest
from pydantic import ValidationError

from microcoder import Problem, read_problem
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Program
from tests.judge.conftest import make_problem, run

ONE_TEST = ("1 2\n", "3\n")


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
def test_a_wrong_answer_is_kept_as_the_expected_one_is_written(
    judge_one: Judge,
    code: str,
    kept: str | None,
) -> None:
    is_call = code.startswith("def f")
    problem = make_problem(("0" if is_call else "", "1"), fn_name="f" if is_call else None)
    assert run(judge_one, code, problem).tests[0].output == kept


WORDS = {
    "x = bytearray(10 ** 12)": "one allocation asked for more than the limit leaves: it held",
    "x = [0] * 10 ** 11": "of 128 MiB",
    "raise MemoryError('my own pool')": "MemoryError: my own pool (it held",
    "import multiprocessing\nmultiprocessing.Queue()": "starts no further processes",
    "import multiprocessing\nmultiprocessing.Pool(2)": "starts no further processes",
    "import multiprocessing\nmultiprocessing.Value('i', 3)": "starts no further processes",
    "import os\nos.fork()": "starts no further processes",
    "import subprocess\nsubprocess.run(['ls'])": "starts no further processes",
    "import os\nos.execvp('ls', ['ls'])": "starts no further processes",
    (
        "from multiprocessing import shared_memory as s\ns.SharedMemory(create=True, size=9)"
    ): "further",
    "import pty\npty.fork()": "starts no further processes",
    "import os\nos.forkpty()": "starts no further processes",
    "import sqlite3\nsqlite3.connect('/opt/x.db')": "working folder and /tmp only",
    "import numpy\nnumpy.loadtxt('in.txt')": "in.txt not found. (the sandbox has no file",
    "import socket\nsocket.socket()": "the sandbox has no network",
    "import urllib.request as u\nu.urlopen('http://example.com')": "the sandbox has no network",
    "import torch": "programs may import Python's library, numpy",
    "import colections": "No module named 'colections' (programs may import",
    "open('input.txt')": "'input.txt' (the sandbox has no file of that name: input comes on stdin",
    "open('/etc/x', 'w')": "working folder and /tmp only",
    "for n in range(999): open(f'x{n}', 'w').close()": "256 of them",
    "held = []\nwhile True: held.append(open('/dev/null'))": "at most 64 open files",
    (
        "import threading as t, time\nwhile True: t.Thread(target=time.sleep, args=(9,)).start()"
    ): "256 threads",
    "def f(n): return f(n + 1)\nf(0)": "sys.setrecursionlimit raises",
    "import ctypes\nctypes.string_at(0)": "killed by SIGSEGV: its stack was full, or",
    "import os\nos.kill(os.getpid(), 9)": "killed by SIGKILL: it did so itself, or the machine",
    "import os\nos.nice(-5)": "the sandbox refuses that system call",
    "input(); input()": "EOFError: EOF when reading a line (it read more than the input has)",
    "x = 1\nraise ValueError": "ValueError, without a message, in line 2",
    "assert input() == 4": "AssertionError, without a message, in line 1",
    "raise ValueError('a\\nb')": "ValueError: a b",
    "raise ExceptionGroup('two', [ValueError(1)])": "ExceptionGroup: two (1 sub-exception)",
    "raise SystemExit('no way')": "exit code 1: no way",
    "import os\nos._exit(7)": "exit code 7",
    "print('x' * (17 << 20))": "stdout exceeds 16 MiB",
}
"""Programs that fail, and what their verdict's detail says of it."""


def test_a_detail_says_which_limit_or_refusal_did_it(judge_one: Judge) -> None:
    problem = make_problem(ONE_TEST)
    verdicts = judge_one.judge([Program(code) for code in WORDS], [problem] * len(WORDS))
    details = dict(zip(WORDS, (verdict.detail for verdict in verdicts), strict=True))
    unexplained = {}
    for code, text in details.items():
        if WORDS[code] not in text:
            unexplained[code] = text
    assert unexplained == {}


def test_a_detail_of_a_function_without_input_says_where_arguments_come_from(
    judge_one: Judge,
) -> None:
    verdict = run(judge_one, "def f(a): return input()", make_problem(("1", "1"), fn_name="f"))
    assert "a function gets its arguments by the call" in verdict.detail


def test_a_long_message_leaves_room_for_the_hint(judge_one: Judge) -> None:
    verdict = run(judge_one, "open('x' * 250)", make_problem(ONE_TEST))
    assert verdict.detail.endswith("a test finds only files it made)")


STUBBED = {
    "task_id": "HumanEval/0",
    "prompt": 'def twice(n):\n    return 2 * n\n\n\ndef four(n):\n    """Four times n."""\n',
    "entry_point": "four",
    "test": "def check(candidate):\n    assert candidate(1) == 4\n",
}


@pytest.mark.parametrize(
    ("code", "is_stub"),
    [
        ("x = 1", True),
        ("def other(n): return 4 * n", True),
        ("def twice(n): return 4 * n", True),
        ("def four(n): return 5 * n", False),
        ("four = lambda n: n", False),
    ],
)
def test_a_detail_says_that_the_prompts_own_function_was_called(
    judge_one: Judge,
    code: str,
    is_stub: bool,
) -> None:
    detail = run(judge_one, code, read_problem(STUBBED)).detail
    assert ("the answer does not define four, so the prompt's own was called" in detail) == is_stub


PROGRAM = {
    "id": "square",
    "fn_name": "f",
    "assertions": {},
    "tests": ({"input": "", "output": "assert candidate(3) == 9"},),
}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"language": "cpp"}, "assertions call Python answers, but language is 'cpp'"),
        ({"call": {"returns": "ListNode"}}, "assertions make the calls themselves"),
        ({"fn_name": None}, "none is named"),
        ({"dialect": "livecodebench"}, "assertions run as plain Python"),
        ({"checker": {"type": "tokens"}}, "checker says nothing"),
        ({"harness": "def main(code): ..."}, "harness is gone: .*microcoder data convert"),
    ],
)
def test_what_contradicts_assertions_is_refused(fields: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Problem.model_validate(PROGRAM | fields)


NEEDS_THE_PRELUDE = {
    "star imports": (
        "q = deque(map(int, input().split()))\n"
        "heappush(h := [], gcd(6, 3))\n"
        "print(sum(q) * h[0] // 3)"
    ),
    "modules": (
        "print(math.floor(3.5) + collections.Counter('a')['b'] + len(re.findall('x', "
        "string.digits)))"
    ),
    "typing last": (
        "def f(x: List[int]) -> Optional[int]: return sum(x)\n"
        "print(f([*map(int, input().split())]))"
    ),
    "deep recursion": "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(40000) - 39997)",
    "many digits": "print(len(str(10 ** 40000)) - 39998)",
    "limits as they are told": (
        "assert sys.getrecursionlimit() == sys.get_int_max_str_digits() == 50000\nprint(3)"
    ),
}
AS_EVER = {
    "builtins over math and operator": (
        "print(pow(2, 5, 29) if open and sum(map(int, input().split())) == 3 else 0)"
    ),
    "own names over all": "deque = 3\nprint(deque)",
    "no more digits than that": "try: str(10 ** 60000)\nexcept ValueError: print(3)",
    "still the main module": (
        "import inspect\nif __name__ == '__main__': print(2 + len(inspect.stack()))"
    ),
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
    assert run(
        judge_one,
        code,
        make_problem(call, fn_name="solve", dialect="livecodebench"),
    ).is_accepted
    assert (
        run(judge_one, code, make_problem(call, fn_name="solve")).outcome is Outcome.RUNTIME_ERROR
    )
    with pytest.raises(
        DataError,
        match='is in cpp, dialect "livecodebench" is a way to run Python programs; leave it',
    ):
        judge_one.judge(
            [Program("", "cpp")], [make_problem(("", ""), language="cpp", dialect="livecodebench")]
        )
