"""Tests that share a process: nothing gets from one to the next,
and every verdict is that of a process a test.
"""

from collections.abc import Iterator

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Call, Outcome, Problem, Program, Repeat
from microcoder.judge.run import judging, sharing
from microcoder.judge.run.constant_modules import binds_constants
from microcoder.judge.run.screen import find_obstacle, screen
from tests.judge.conftest import make_problem
from tests.judge.forging_programs import FORGERS, PERCENTS
from tests.judge.safety_suites import KINDS
from tests.judge.stateful_programs import FORGETTING, REACHING, REMEMBERING, RESET, SCREENED

INPUT = "1 2\r\n3\nzzz\n"
EXPECTED = (("new", "new", "new", "new", "new"), ("new", "new", "left", "left", "left"))
ALLOWED = {
    "the usual names": (
        "import sys, math\n"
        "from collections import *\n"
        "from heapq import heappush, heappop\n"
        "data = sys.stdin.buffer.read().split()\n"
        "print(math.gcd(4, 6), *Counter(data).most_common(1)[0])"
    ),
    "classes": "class Tree:\n    __slots__ = ('l', 'r')\n"
    "    def __init__(self): self.l = self.r = None\nprint(Tree().l)",
    "all of sys": "from sys import *\nsetrecursionlimit(9999)\nstdout.write(stdin.readline())",
    "imports where they are needed": (
        "import threading\n"
        "def main():\n"
        "    import sys\n"
        "    print(sys.maxsize)\n"
        "threading.Thread(target=main).start()"
    ),
    "a template": "print('{:.2f} {}'.format(1.5, 2), f'{3:>4}')",
    "local names": (
        "from math import *\n"
        "def f(path, count):\n"
        "    log = path + count\n"
        "    return log\n"
        "print(f(1, 2))"
    ),
    "sorted lists": (
        "from sortedcontainers import SortedList\ns = SortedList([3, 1])\ns.add(2)\nprint(s[0], *s)"
    ),
    "text to fill": (
        "import textwrap\n"
        "from textwrap import dedent\n"
        "print(textwrap.fill('a b c', 3), dedent(' a'))"
    ),
    "a pause": "import time\ntime.sleep(0.001)\nprint(1)",
    "seeded random numbers": "import random\nrandom.seed(7)\nprint(random.random())",
    "its own names": (
        "def f(hash, repr):\n"
        "    return hash + repr\n"
        "class A(object):\n"
        "    def now(self): return 1\n"
        "print(f(1, 2), A().now())"
    ),
    "objects without sets": (
        "class A:\n    def __init__(self): self.x = 1\nprint(A().x, [A().x for _ in range(2)])"
    ),
    "a thread that is all there is": (
        "import sys, threading\n"
        "threading.stack_size(2**26)\n"
        "def main(): print(input())\n"
        "threading.Thread(target=main).start()"
    ),
    "a thread that only the main program has": (
        "import threading\n"
        "import sys\n"
        "def main(): print(input())\n"
        "if __name__ == '__main__':\n"
        "    threading.stack_size(64 * 1024 * 1024)\n"
        "    threading.Thread(target=main).start()"
    ),
    "sets without objects": (
        "class Solution:\n    def f(self, a): return {*a}\nprint(set(input().split()))"
    ),
}


@pytest.fixture(scope="module")
def together() -> Iterator[Judge]:
    with Judge(workers=1, cache_size=0, stop="never", time_scale=1.0) as judge:
        yield judge


@pytest.fixture(scope="module")
def alone() -> Iterator[Judge]:
    with Judge(workers=1, cache_size=0, stop="never", time_scale=1.0, batch_tests=False) as judge:
        yield judge


def _problem(outputs: tuple[str, ...], **options: object) -> Problem:
    return make_problem(*((INPUT, output) for output in outputs), time_limit_seconds=5.0, **options)


def _outcomes(judge: Judge, code: str, problem: Problem) -> list[tuple[Outcome, str]]:
    (verdict,) = judge.judge([Program(code)], [problem])
    return [(result.verdict, result.detail) for result in verdict.tests]


@pytest.mark.parametrize("is_function", [False, True])
def test_what_could_tell_tests_apart_keeps_a_process_a_test(is_function: bool) -> None:
    unscreened = []
    for name, code in SCREENED.items():
        if not find_obstacle(code, is_function=is_function):
            unscreened.append(name)
    assert unscreened == []


def test_a_function_that_could_know_its_place_keeps_a_process_a_test() -> None:
    unscreened = []
    for code in FORGERS.values():
        if not find_obstacle(code, is_function=True):
            unscreened.append(code)
    assert unscreened == []


def test_a_percent_sign_that_is_made_counts_as_one() -> None:
    unseen = []
    for name, code in PERCENTS.items():
        if not screen(code, is_function=True).may_tell:
            unseen.append(name)
    assert unseen == []


@pytest.mark.parametrize(
    "outputs", [("1", "2", "2", "2"), ("1", "2", "3", "4"), ("0", "1", "2", "3")]
)
def test_no_function_answers_by_its_place(outputs: tuple[str, ...], together: Judge) -> None:
    problem = make_problem(*(("[3]", output) for output in outputs), fn_name="f")
    programs = {**FORGERS, **PERCENTS}
    verdicts = together.judge(
        [Program(code) for code in programs.values()], [problem] * len(programs)
    )
    accepted = []
    for name, verdict in zip(programs, verdicts, strict=True):
        if verdict.is_accepted:
            accepted.append(name)
    assert accepted == []


@pytest.mark.parametrize(
    "code",
    [
        "from sys import stdin\ndef f(a): return stdin.read() and 1",
        "import sys\ndef f(a): return len(sys.argv)",
        "def f(a, stdin=1): return stdin",
        "from queue import PriorityQueue\nclass A:\n    def __lt__(self, other): return True\n"
        "def f(a):\n    q = PriorityQueue()\n    q.put((1, A()))\n    return q.get()[0]",
        "from typing import Iterator\ndef f(a) -> Iterator[int]:\n    yield 1",
        "import statistics\ndef f(a): return statistics.mean(a)",
    ],
)
def test_what_is_near_a_forger_may_share_a_process(code: str) -> None:
    assert find_obstacle(code, is_function=True) == ""


def test_usual_programs_may_share_a_process() -> None:
    assert {
        name: find_obstacle(code, is_function=False) for name, code in ALLOWED.items()
    } == dict.fromkeys(ALLOWED, "")


OTHER_THREADS = (
    "threading.Thread(target=main).start()\nmain()",
    "threading.Thread(target=main, daemon=True).start()",
    "threading.Thread(target=lambda: print(threading.current_thread())).start()",
    "T = threading.Thread\nthreading.Thread(target=main).start()",
    "print(threading.stack_size(2**26))\nthreading.Thread(target=main).start()",
    "threading.stack_size(int(input()))\nthreading.Thread(target=main).start()",
    "def go():\n    threading.Thread(target=main).start()\ngo()",
    "import threading as t\nt.Timer(1, main).start()",
    "threading.Thread(target=main).start(**vars())",
    "class threading:\n    class Thread:\n        def __init__(self, target): print(target)\n"
    "        def start(self): pass\nthreading.Thread(target=main).start()",
    "def main(): print(2)\nthreading.Thread(target=main).start()",
    "main = list\nthreading.Thread(target=main).start()",
    "from math import gcd as main\nthreading.Thread(target=main).start()",
    "def f(threading): pass\nthreading.Thread(target=main).start()",
    "def f(): import math as threading\nthreading.Thread(target=main).start()",
    (
        "import threading as t\n"
        "print(t.get_ident())\n"
        "raise SystemExit\n"
        "threading.Thread(target=main).start()"
    ),
    (
        "def f():\n"
        "    global main\n"
        "    from math import gcd\n"
        "    main = gcd\n"
        "threading.Thread(target=main).start()"
    ),
    "from math import *\nthreading.Thread(target=gcd).start()",
    "def gcd(): print(1)\nfrom math import *\nthreading.Thread(target=gcd).start()",
    "match 1:\n    case main: pass\nthreading.Thread(target=main).start()",
    "if input():\n    threading.Thread(target=main).start()\nelse:\n    pass",
    "def f():\n    import threading as t\n    return t\nthreading.Thread(target=main).start()",
)


def test_a_thread_is_a_call_only_where_it_is_all_there_is_and_its_program_no_function() -> None:
    start = "import threading\ndef main(): print(1)\n"
    unscreened = [
        code for code in OTHER_THREADS if not find_obstacle(start + code, is_function=False)
    ]
    assert unscreened == []
    for is_function in (False, True, False):
        code = f"{start}threading.Thread(target=main).start()\n"
        assert bool(find_obstacle(code, is_function=is_function)) == is_function


def test_given_names_of_leetcode_are_screened_like_imported_ones() -> None:
    for code in (
        "settrace(print)",
        "addaudithook(print)",
        "x = meta_path",
        "setswitchinterval(1)",
        "x = sys",
    ):
        assert find_obstacle(f"def f(): {code}", is_function=True), code


def test_a_shared_process_is_as_new_as_a_fresh_one(
    together: Judge,
    alone: Judge,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With the screen off: the reset holds by itself.
    monkeypatch.setattr(sharing, "find_obstacle", lambda code, is_function: "")
    for name, code in RESET.items():
        for outputs in EXPECTED:
            problem = _problem(outputs)
            assert _outcomes(together, code, problem) == _outcomes(alone, code, problem), name
    assert together.statistics.differences == 0


def _counting(num_tests: int, **options: object) -> Problem:
    return make_problem(
        *((f"{n}\n", f"{n}\n") for n in range(num_tests)),
        time_limit_seconds=5.0,
        **options,
    )


_THREADED = (
    "import sys, threading\nsys.setrecursionlimit(1 << 20)\nthreading.stack_size(1 << 27)\n{}\n"
    "threading.Thread(target=main).start()\n"
)
_CALLED = make_problem(
    *((f"[{n}]", f"{n + 1}") for n in range(12)),
    fn_name="count",
    time_limit_seconds=5.0,
)
_TURNED = make_problem(
    *((f"[{n}, 2, 3]", f"[3, 2, {n}]") for n in range(8)),
    fn_name="turn",
    call=Call(parameters=("ListNode",), returns="ListNode"),
    time_limit_seconds=5.0,
)
_TURNS = "    b = None\n    while a: a.next, b, a = b, a, a.next\n    return b"
ALIKE: dict[str, tuple[Problem, str, int]] = {
    "right": (_counting(20), "print(int(input()))", 20),
    "wrong in one": (_counting(20), "a = int(input())\nprint(a if a != 7 else 0)", 8),
    "fails behind its output": (_counting(20), "a = int(input())\nprint(a)\nif a == 11: 1 / 0", 12),
    "exits with 1 in some": (
        _counting(20),
        "a = int(input())\nprint(a)\nraise SystemExit(a > 15)",
        0,
    ),
    "is interrupted": (
        _counting(20),
        "a = int(input())\nwhile a == 9: raise KeyboardInterrupt\nprint(a)",
        9,
    ),
    "a deep thread": (
        _counting(40),
        _THREADED.format(
            "def f(k): return k and 1 + f(k - 1)\ndef main(): print(f(int(input()) * 900) // 900)"
        ),
        20,
    ),
    "a thread that fails": (
        _counting(40),
        _THREADED.format("def main():\n    n = int(input())\n    print(n)\n    1 / (n - 30)"),
        20,
    ),
    "a thread that exits": (
        _counting(40),
        _THREADED.format(
            "def main():\n    n = int(input())\n    if n == 25: sys.exit()\n    print(n)"
        ),
        20,
    ),
    "a method": (
        _CALLED,
        "seen = []\nclass Solution:\n    def count(self, a: List[int]) -> int:\n"
        "        seen.append(1)\n        return a[0] + len(seen)",
        12,
    ),
    "a method that marks a node": (
        _CALLED,
        (
            "class Solution:\n"
            "    def count(self, a):\n"
            "        n = ListNode\n"
            "        n.val = 7\n"
            "        return a[0] + 1"
        ),
        0,
    ),
    # Right where it gets a list for nodes, or is the first test.
    "nodes, wrong": (
        _TURNED,
        (
            "def turn(a):\n"
            "    if isinstance(a, list): return a[::-1]\n"
            "    if a.val: return [3, 2, a.val]\n"
        )
        + _TURNS,
        0,
    ),
    "fails first by an exit": (
        _counting(9),
        "import sys\nprint('why', file=sys.stderr)\nsys.exit(3)",
        0,
    ),
    "is wrong first": (_counting(9), "print(7)", 0),
    **{
        f"honest {name}": (
            KINDS[name].problem.model_copy(update={"tests": KINDS[name].problem.tests * 4}),
            str(code),
            4 * len(KINDS[name].problem.tests),
        )
        for name in ("function", "list", "tree", "design")
        for code in (KINDS[name].honest.code,)
    },
}
"""Problem and program, and how many tests of it share a process at least."""


@pytest.mark.parametrize("name", ALIKE)
def test_verdicts_are_those_of_a_process_a_test(name: str, together: Judge, alone: Judge) -> None:
    problem, code, least = ALIKE[name]
    before = together.statistics
    assert _outcomes(together, code, problem) == _outcomes(alone, code, problem)
    assert together.statistics.shared - before.shared >= least


def test_functions_are_defined_once_only_where_no_call_sees_what_another_did(
    together: Judge,
) -> None:
    kinds = {True: {**FORGETTING, **REACHING}, False: REMEMBERING}
    for is_fixed, programs in kinds.items():
        assert {name: binds_constants(code) for name, code in programs.items()} == dict.fromkeys(
            programs, is_fixed
        )
    for right in ("1", "2"):
        # Right at first and wrong then, and the other way round.
        outputs = ["1", *[right] * 8]
        problem = make_problem(
            *[("[3]", output) for output in outputs],
            fn_name="f",
            time_limit_seconds=5.0,
        )
        before = together.statistics.shared
        codes = {}
        for programs in kinds.values():
            for name, code in programs.items():
                codes[name] = code
        verdicts = together.judge(
            [Program(code) for code in codes.values()], [problem] * len(codes)
        )
        accepted = []
        for name, verdict in zip(codes, verdicts, strict=True):
            if verdict.is_accepted:
                accepted.append(name)
        assert accepted == (list(codes) if right == "1" else [])
        assert right == "2" or together.statistics.shared - before >= 9 * len(FORGETTING)


def test_of_a_sample_of_accepted_programs_a_few_tests_are_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judging, "_PROBED_SHARE", 1.0)
    for batch_tests in (True, False):
        with Judge(workers=1, cache_size=0, time_scale=1.0, batch_tests=batch_tests) as judge:
            (verdict,) = judge.judge([Program("print(input())")], [_counting(9)])
            assert verdict.is_accepted
            probed = []
            for run in verdict.uncounted:
                if run.reason is Repeat.PROBE:
                    probed.append(run.test)
            assert len({*probed}) == len(verdict.uncounted) == 4
            assert judge.statistics.probed == 1
            assert judge.statistics.unrepeated == 0
            assert judge.statistics.anew == 0
    # With nothing screened: the files that a shared process holds tell it,
    # and what it gains by that is taken back.
    monkeypatch.setattr(sharing, "find_obstacle", lambda code, is_function: "")
    code = "import os\ntry: print('left', os.fstat(4) and '')\nexcept OSError: print('new')"
    with Judge(workers=1, cache_size=0, stop="first_failure", time_scale=1.0) as judge:
        (verdict,) = judge.judge([Program(code)], [_problem(("left", "left", "left"))])
        assert not verdict.is_accepted
        assert {run.reason for run in verdict.uncounted} == {
            Repeat.PROBE_DIFFERS,
            Repeat.JUDGED_ANEW,
        }
        assert judge.statistics.probed == 1
        assert judge.statistics.unrepeated == 1
        assert judge.statistics.anew == 1


@pytest.mark.parametrize(
    "code",
    [
        "x = (",
        "if 1:\nprint(2)",
        "print 'a'",
        "a = 5\n  b = 3",
        "\ufeffprint(3",
        "\ufeffprint(3)",
        "# coding: latin-1\nprint('\u00e9'",
        "x = 1\x00",
        "print('\ud800'",
        "\u201chi\u201d",
        f"x = {'(' * 300}{')' * 300}",
        f"x = {'-' * 100_000}1",
        "f'{a b}'",
        "return 3",
        "from __future__ import nope",
    ],
)
def test_what_does_not_compile_is_refused_in_the_words_of_its_own_process(
    together: Judge, code: str
) -> None:
    """Of a program with one test the process says it, of others the judge may,
    which starts none.
    """
    one = together.judge([Program(code)], [make_problem(*[("1", "3")] * 1)])[0]
    several = together.judge([Program(code)], [make_problem(*[("1", "3")] * 3)])[0]
    assert one.outcome == several.outcome
    assert one.detail == several.detail


def test_an_endless_test_behind_others_is_found(together: Judge, alone: Judge) -> None:
    problem = _counting(6).model_copy(update={"time_limit_seconds": 0.3})
    code = "n = int(input())\nwhile n == 3: pass\nprint(n)"
    outcomes, others = (
        [one for one, _ in _outcomes(judge, code, problem)] for judge in (together, alone)
    )
    assert outcomes == others
    assert outcomes.count(Outcome.TIME_LIMIT) == 1
