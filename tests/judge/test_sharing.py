"""Tests that share a process: nothing gets from one to the next, and every verdict is that of a process a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Call, Outcome, Problem, Program, Repeat, TestResult
from microcoder.judge.run import sharing
from microcoder.judge.run.screen import find_obstacle

from .conftest import make_problem  # pyrefly: ignore[missing-import]
from .safety_suites import KINDS  # pyrefly: ignore[missing-import]
from .stateful_programs import RESET, SCREENED  # pyrefly: ignore[missing-import]

INPUT = "1 2\r\n3\nzzz\n"
EXPECTED = (("new", "new", "new", "new", "new"), ("new", "new", "left", "left", "left"))
ALLOWED = {
    "the usual names": "import sys, math\nfrom collections import *\nfrom heapq import heappush, heappop\n"
    "data = sys.stdin.buffer.read().split()\nprint(math.gcd(4, 6), *Counter(data).most_common(1)[0])",
    "classes": "class Tree:\n    __slots__ = ('l', 'r')\n"
    "    def __init__(self): self.l = self.r = None\nprint(Tree().l)",
    "a template": "print('{:.2f} {}'.format(1.5, 2), f'{3:>4}')",
    "local names": "from math import *\ndef f(path, count):\n    log = path + count\n    return log\nprint(f(1, 2))",
    "sorted lists": "from sortedcontainers import SortedList\ns = SortedList([3, 1])\ns.add(2)\nprint(s[0], *s)",
    "text to fill": "import textwrap\nfrom textwrap import dedent\nprint(textwrap.fill('a b c', 3), dedent(' a'))",
    "a pause": "import time\ntime.sleep(0.001)\nprint(1)",
    "seeded random numbers": "import random\nrandom.seed(7)\nprint(random.Random(5).random(), random.random())",
    "its own names": "def f(hash, repr):\n    return hash + repr\nclass A(object):\n    def now(self): return 1\n"
    "print(f(1, 2), A().now())",
    "objects without sets": "class A:\n    def __init__(self): self.x = 1\nprint(A().x, [A().x for _ in range(2)])",
    "a thread that is all there is": "import sys, threading\nthreading.stack_size(2**26)\ndef main(): print(input())\n"
    "threading.Thread(target=main).start()",
    "a thread by its name": "from threading import Thread, stack_size\ndef main(): print(input())\n"
    "if __name__ == '__main__':\n    stack_size(64 * 1024 * 1024)\n    t = Thread(target=main)\n    t.start()\n"
    "    t.join()",
    "sets without objects": "class Solution:\n    def f(self, a): return {*a}\nprint(set(input().split()))",
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
    return [_essence(result) for result in verdict.tests]


def _essence(result: TestResult) -> tuple[Outcome, str]:
    return result.verdict, result.detail


@pytest.mark.parametrize("name", SCREENED)
def test_what_could_tell_tests_apart_keeps_a_process_a_test(name: str) -> None:
    assert find_obstacle(SCREENED[name], is_function=False)
    assert find_obstacle(SCREENED[name], is_function=True)


@pytest.mark.parametrize("name", ALLOWED)
def test_usual_programs_may_share_a_process(name: str) -> None:
    assert find_obstacle(ALLOWED[name], is_function=False) == ""


@pytest.mark.parametrize(
    "code",
    [
        "threading.Thread(target=main).start()\nmain()",
        "t = threading.Thread(target=main)\nt.start()\nmain()\nt.join()",
        "threading.Thread(target=main, daemon=True).start()",
        "threading.Thread(target=lambda: print(threading.current_thread())).start()",
        "T = threading.Thread\nthreading.Thread(target=main).start()",
        "print(threading.stack_size(2**26))\nthreading.Thread(target=main).start()",
        "threading.stack_size(int(input()))\nthreading.Thread(target=main).start()",
        "def go():\n    threading.Thread(target=main).start()\ngo()",
        "from threading import Thread as T, active_count\nT(target=main).start()",
        "from threading import Thread as T\nprint(T)\nT(target=main).start()",
        "import threading as t\nt.Timer(1, main).start()",
        "t = threading.Thread(target=main)\nt.start()\nt.join(timeout=hash(main))",
        "t = threading.Thread(target=main)\nt.start(**vars())\nt.join()",
        "threading.Thread(target=main).start(**vars())",
        "def own(): print(t.name)\nt = threading.Thread(target=own)\nt.start()\nt.join()",
    ],
)
def test_other_threads_keep_a_process_a_test(code: str) -> None:
    assert find_obstacle(f"import threading\ndef main(): print(1)\n{code}", is_function=False)


def test_a_thread_is_a_call_only_where_its_program_is_no_function() -> None:
    code = "import threading\n\ndef main():\n    print(int(input()))\n\nthreading.Thread(target=main).start()\n"
    for is_function in (False, True, False):
        assert bool(find_obstacle(code, is_function=is_function)) == is_function


def test_tests_of_a_program_in_a_thread_share_a_process(together: Judge, alone: Judge) -> None:
    before = together.statistics.shared
    problem = make_problem(*((f"{n}\n", f"{n}\n") for n in range(1, 41)), time_limit_seconds=5.0)
    deep = "def down(k): return k and 1 + down(k - 1)\n"
    codes = [
        f"{deep}def main(): print(down(int(input()) * 900) // 900)",
        "def main():\n    n = int(input())\n    print(n)\n    1 / (n - 30)",
        "def main():\n    n = int(input())\n    print(n + (n == 20))",
        "def main():\n    n = int(input())\n    if n == 25: sys.exit()\n    print(n)",
    ]
    for code in codes:
        whole = (
            f"import sys, threading\nsys.setrecursionlimit(1 << 20)\nthreading.stack_size(1 << 27)\n{code}\n"
            "threading.Thread(target=main).start()\n"
        )
        assert _outcomes(together, whole, problem) == _outcomes(alone, whole, problem)
    assert together.statistics.shared - before >= 80


@pytest.mark.parametrize(
    "code", ["settrace(print)", "addaudithook(print)", "x = meta_path", "setswitchinterval(1)", "x = sys"]
)
def test_given_names_of_leetcode_are_screened_like_imported_ones(code: str) -> None:
    assert find_obstacle(f"def f(): {code}", is_function=True)


@pytest.mark.parametrize("name", RESET)
def test_a_shared_process_is_as_new_as_a_fresh_one(
    name: str, together: Judge, alone: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With the screen off: the reset holds by itself.
    monkeypatch.setattr(sharing, "find_obstacle", lambda code, is_function: "")
    for outputs in EXPECTED:
        problem = _problem(outputs)
        assert _outcomes(together, RESET[name], problem) == _outcomes(alone, RESET[name], problem)
    assert together.statistics.differences == 0


def test_verdicts_of_ordinary_programs_are_those_of_a_process_a_test(together: Judge, alone: Judge) -> None:
    before = together.statistics.shared
    problem = make_problem(*((f"{n} {n}\n", f"{n + n}\n") for n in range(20)), time_limit_seconds=5.0)
    codes = [
        "print(sum(map(int, input().split())))",
        "a, b = map(int, input().split())\nprint(a + b if a != 7 else 0)",
        "a, b = map(int, input().split())\nprint(a + b)\nif a == 11: 1 / 0",
        "a, b = map(int, input().split())\nprint(a + b)\nraise SystemExit(a > 15)",
        "a, b = map(int, input().split())\nwhile a == 9: raise KeyboardInterrupt\nprint(a + b)",
    ]
    for code in codes:
        assert _outcomes(together, code, problem) == _outcomes(alone, code, problem)
    assert together.statistics.shared - before >= 40


def test_functions_share_a_process_and_start_anew(together: Judge, alone: Judge) -> None:
    problem = make_problem(*((f"[{n}]", f"{n + 1}") for n in range(12)), fn_name="count", time_limit_seconds=5.0)
    code = (
        "seen = []\nclass Solution:\n    def count(self, a: List[int]) -> int:\n"
        "        seen.append(1)\n        return a[0] + len(seen)"
    )
    node = "class Solution:\n    def count(self, a):\n        n = ListNode\n        n.val = 7\n        return a[0] + 1"
    for one in (code, node):
        assert _outcomes(together, one, problem) == _outcomes(alone, one, problem)


def test_of_a_sample_of_accepted_programs_a_few_tests_are_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_PROBED_SHARE", 1.0)
    problem = make_problem(*((f"{n}\n", f"{n}\n") for n in range(9)), time_limit_seconds=5.0)
    for batch_tests in (True, False):
        with Judge(workers=1, cache_size=0, time_scale=1.0, batch_tests=batch_tests) as judge:
            (verdict,) = judge.judge([Program("print(input())")], [problem])
            assert verdict.is_accepted
            probed = [run.test for run in verdict.uncounted if run.reason is Repeat.PROBE]
            assert len({*probed}) == len(verdict.uncounted) == 4
            assert (judge.statistics.probed, judge.statistics.unrepeated, judge.statistics.anew) == (1, 0, 0)


def test_what_is_accepted_by_sharing_a_process_alone_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    # With nothing screened and all run again: the files that a shared process holds tell it.
    monkeypatch.setattr(sharing, "find_obstacle", lambda code, is_function: "")
    monkeypatch.setattr(sharing, "_PROBED_SHARE", 1.0)
    code = "import os\ntry: print('left', os.fstat(4) and '')\nexcept OSError: print('new')"
    with Judge(workers=1, cache_size=0, stop="first_failure", time_scale=1.0) as judge:
        (verdict,) = judge.judge([Program(code)], [_problem(("left", "left", "left"))])
        assert not verdict.is_accepted
        assert {run.reason for run in verdict.uncounted} == {Repeat.PROBE_DIFFERS, Repeat.JUDGED_ANEW}
        assert (judge.statistics.probed, judge.statistics.unrepeated, judge.statistics.anew) == (1, 1, 1)


def test_what_fails_first_is_judged_in_the_process_that_it_would_have_shared(together: Judge, alone: Judge) -> None:
    problem = make_problem(*((f"{n}\n", f"{n}\n") for n in range(9)), time_limit_seconds=5.0)
    before = together.statistics
    for code in (
        "import sys\nprint('why', file=sys.stderr)\nsys.exit(3)",
        "print(1 / 0)",
        "print(7)",
        "print(int('x'))",
    ):
        assert _outcomes(together, code, problem) == _outcomes(alone, code, problem)
    assert together.statistics.fallbacks == before.fallbacks


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
def test_what_does_not_compile_is_refused_in_the_words_of_its_own_process(together: Judge, code: str) -> None:
    """Of a program with one test the process says it, of others the judge may, which starts none."""
    one, several = (together.judge([Program(code)], [make_problem(*[("1", "3")] * num)])[0] for num in (1, 3))
    assert (one.outcome, one.detail) == (several.outcome, several.detail)


def test_an_endless_test_behind_others_is_found(together: Judge, alone: Judge) -> None:
    problem = make_problem(*((f"{n}\n", f"{n}\n") for n in range(6)), time_limit_seconds=0.7)
    code = "n = int(input())\nwhile n == 3: pass\nprint(n)"
    outcomes = [outcome for outcome, _ in _outcomes(together, code, problem)]
    assert outcomes == [outcome for outcome, _ in _outcomes(alone, code, problem)]
    assert outcomes.count(Outcome.TIME_LIMIT) == 1


def test_nodes_are_nodes_in_a_shared_process_too(together: Judge, alone: Judge) -> None:
    tests = [(f"[{n}, 2, 3]", f"[3, 2, {n}]") for n in range(8)]
    problem = make_problem(
        *tests, fn_name="turn", call=Call(parameters=("ListNode",), returns="ListNode"), time_limit_seconds=5.0
    )
    right = "def turn(a):\n    b = None\n    while a: a.next, b, a = b, a, a.next\n    return b"
    # Right where it gets a list for nodes, or is the first test.
    wrong = "def turn(a):\n    if isinstance(a, list): return a[::-1]\n    if a.val: return [3, 2, a.val]\n" + (
        right.removeprefix("def turn(a):\n")
    )
    before = together.statistics
    assert {outcome for outcome, _ in _outcomes(together, right, problem)} == {Outcome.ACCEPTED}
    assert together.statistics.shared - before.shared == len(tests)
    assert together.statistics.fallbacks == before.fallbacks
    assert _outcomes(together, wrong, problem) == _outcomes(alone, wrong, problem)


def test_each_kind_of_node_and_design_classes_share_processes(together: Judge, alone: Judge) -> None:
    for name in ("function", "list", "tree", "design"):
        problem, honest = KINDS[name]
        problem = problem.model_copy(update={"tests": problem.tests * 4})
        before = together.statistics
        assert _outcomes(together, str(honest.code), problem) == _outcomes(alone, str(honest.code), problem)
        assert together.statistics.shared - before.shared == len(problem.tests), name
        assert together.statistics.fallbacks == before.fallbacks, name
