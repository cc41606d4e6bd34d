"""Tests that share a process: usual programs have the verdict of a process a test, and whoever
answers by the place of a test gains no more than one chance in the number of tests.
"""

from collections.abc import Iterator
from math import comb

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.types import Call, Outcome, Problem, Program, Repeat
from microcoder.judge.run.executions import Invocation
from microcoder.judge.run.order import draw_order
from microcoder.judge.run.policy import RIGHT_ALONE
from tests.judge.conftest import make_problem
from tests.judge.forging_programs import FORGERS, PERCENTS
from tests.judge.guessing_programs import ADDRESSES, PLACES
from tests.judge.safety_suites import KINDS
from tests.judge.stateful_programs import FORGETTING, REACHING, REMEMBERING, RESET, SCREENED

NUM_TESTS = 10
"""Tests of the problems here: enough to share a process."""
INPUT = "1 2\r\n3\nzzz\n"


@pytest.fixture(scope="module")
def together() -> Iterator[Judge]:
    with Judge(workers=1, cache_size=0, stop="never", time_scale=1.0) as judge:
        yield judge


@pytest.fixture(scope="module")
def alone() -> Iterator[Judge]:
    with Judge(workers=1, cache_size=0, stop="never", time_scale=1.0, batch_tests=False) as judge:
        yield judge


def _outcomes(judge: Judge, code: str, problem: Problem) -> list[tuple[Outcome, str]]:
    (verdict,) = judge.judge([Program(code)], [problem])
    return [(result.verdict, result.detail) for result in verdict.tests]


def _accepted(judge: Judge, programs: dict[str, str], problem: Problem) -> list[str]:
    """Return the names of the programs that are accepted."""
    judged = [Program(code) for code in programs.values()]
    verdicts = judge.judge(judged, [problem] * len(judged))
    accepted = []
    for name, verdict in zip(programs, verdicts, strict=True):
        if verdict.is_accepted:
            accepted.append(name)
    return accepted


def test_the_order_of_tests_is_the_same_for_equal_programs_only() -> None:
    tests = range(1, 51)
    order = draw_order("key", "print(1)", tests)
    assert sorted(order) == [*tests]
    assert draw_order("key", "print(1)", tests) == order
    assert draw_order("key", "print(1) ", tests) != order
    assert draw_order("another", "print(1)", tests) != order


def test_a_verdict_says_in_which_order_its_tests_ran_and_a_key_repeats_it() -> None:
    orders = []
    for key in ("one", "one", "two"):
        with Judge(workers=1, cache_size=0, time_scale=1.0, order_key=key) as judge:
            (verdict,) = judge.judge([Program("print(input())")], [_counting(NUM_TESTS)])
            assert verdict.is_accepted
            orders.append(verdict.order)
    assert sorted(orders[0]) == [*range(1, NUM_TESTS + 1)]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


@pytest.mark.parametrize("processes", [0, 2])
def test_all_workers_of_a_judge_have_one_order_for_equal_programs(processes: int) -> None:
    with Judge(workers=2, processes=processes, cache_size=0, time_scale=1.0) as judge:
        program = Program("print(input())")
        verdicts = judge.judge([program] * 12, [_counting(NUM_TESTS)] * 12)
    orders = {verdict.order for verdict in verdicts}
    assert len(orders) == 1


FEW = 7
"""Tests that are too few to share a process."""


def test_few_tests_have_a_process_each(together: Judge) -> None:
    (verdict,) = together.judge([Program("print(input())")], [_counting(FEW)])
    assert verdict.is_accepted
    assert verdict.order == ()


@pytest.mark.parametrize("first", ["1", "2"])
def test_answers_by_place_are_right_in_one_order_of_as_many_as_there_are_tests(
    first: str,
) -> None:
    """Equal inputs with one output that differs: nothing but the place of a test tells which."""
    outputs = [first, *["2"] * (NUM_TESTS - 1)] if first == "1" else ["2"] * NUM_TESTS
    problem = make_problem(*(("[3]", output) for output in outputs), fn_name="f")
    programs = {**FORGERS, **PERCENTS}
    num_accepted = 0
    keys = ("a", "b", "c")
    for key in keys:
        with Judge(workers=1, cache_size=0, time_scale=1.0, order_key=key) as judge:
            num_accepted += len(_accepted(judge, programs, problem))
    most = _most_by_chance(len(keys) * len(programs), 1 / NUM_TESTS)
    assert num_accepted <= (most if first == "1" else 0)


def test_who_knows_the_first_test_of_a_process_is_right_by_chance_only() -> None:
    outputs = ["N", *["Y"] * (NUM_TESTS - 1)]
    problem = make_problem(*(("", output) for output in outputs))
    programs = {}
    with Judge(workers=1, cache_size=0, time_scale=1.0, stop="first_failure") as judge:
        by_address = {f"address {number}": place for number, place in enumerate(ADDRESSES)}
        for name, place in {**PLACES, **by_address}.items():
            shown = judge.run(Invocation(Program(f"{place}print(value())"))).stdout.decode().strip()
            answer = f"'N' if str(value()) == {shown!r} else 'Y'"
            programs[name] = f"{place}print({answer})"
        accepted = _accepted(judge, programs, problem)
    assert len(accepted) <= _most_by_chance(len(programs), 1 / NUM_TESTS)


def _most_by_chance(num_draws: int, chance: float) -> int:
    """Return a number of hits that is exceeded once in a million times at most."""
    beyond = 1.0
    for hits in range(num_draws + 1):
        beyond -= comb(num_draws, hits) * chance**hits * (1 - chance) ** (num_draws - hits)
        if beyond < 1e-6:
            return hits
    return num_draws


FOUND = (
    "a warning",
    "the name of a thread",
    "a class by another name",
    "a function inside a property",
    "an attribute of exit",
    "a typing alias",
    "a flag of re",
    "a flag of a template",
    "what dataclasses miss",
    "a class of a package",
    "a number of a package",
    "an annotation",
    "a module by a class",
    "a lock of a queue",
    "a name of all of sys",
)
"""Programs that look for what an earlier test left in the library, and find it."""


def test_what_a_test_leaves_behind_changes_no_verdict_but_of_who_looks_for_it(
    together: Judge, alone: Judge
) -> None:
    """Each program prints `new`, or `left` where it finds what an earlier test left."""
    problem = make_problem(*[(INPUT, "new")] * NUM_TESTS, time_limit_seconds=5.0)
    for name, code in {**RESET, **SCREENED}.items():
        expected = _outcomes(alone, code, problem)
        seen = _outcomes(together, code, problem)
        if name not in FOUND:
            assert seen == expected, name
            continue
        # The first answer that is wrong in company stands.
        (differing,) = set(seen) - set(expected)
        outcome, detail = differing
        assert outcome is Outcome.WRONG_ANSWER, name
        assert detail.startswith(RIGHT_ALONE), name


def test_what_finds_something_left_is_right_in_one_order(together: Judge, alone: Judge) -> None:
    outputs = ["new", *["left"] * (NUM_TESTS - 1)]
    problem = make_problem(*((INPUT, output) for output in outputs), time_limit_seconds=5.0)
    for code in {**RESET, **SCREENED}.values():
        (verdict,) = together.judge([Program(code)], [problem])
        if verdict.order[:1] != (1,):
            assert verdict.is_accepted == alone.judge([Program(code)], [problem])[0].is_accepted


USUAL_STATE = {
    "a global": "seen = []\nseen.append(input())\nprint(len(seen))",
    "the limit of calls": "import sys\nprint(sys.getrecursionlimit() == 1000)\n"
    "sys.setrecursionlimit(9999)",
    "random numbers": "import random\nprint(random.random() == random.Random(0).random())",
    "decimals": "import decimal\nprint(decimal.getcontext().prec)\ndecimal.getcontext().prec = 3",
    "a closed stream": "import sys\nprint(sys.stdin.read(1))\nsys.stdin.close()",
    "a replaced stream": "import sys, io\nprint(1)\nsys.stdout.flush()\nsys.stdout = io.StringIO()",
    "an object with an end": "class A:\n    def __del__(self): print('end')\na = A()\nprint(1)",
    "a text at the end": "import atexit\natexit.register(print, 'end')\nprint(1)",
    "a generator's end": "def f():\n    try: yield 1\n    finally: print(2)\n"
    "g = f()\nprint(next(g))",
    "a thread": "import threading\nt = threading.Thread(target=print, args=(1,))\n"
    "t.start()\nt.join()",
    "a larger stack": "import threading\nthreading.stack_size(1 << 26)\n"
    "def main(): print(input())\nif __name__ == '__main__':\n"
    "    t = threading.Thread(target=main, name='main')\n    t.start()",
    "a class that is filled": "class A:\n    found = {}\nA.found[input()] = 1\nprint(len(A.found))",
}
"""What honest programs do, and a process of many tests must put right."""


@pytest.mark.parametrize("name", USUAL_STATE)
def test_usual_programs_are_right_in_company(name: str, together: Judge) -> None:
    code = USUAL_STATE[name]
    said = together.run(Invocation(Program(code), b"1\n"))
    tests = [("1\n", said.stdout.decode())] * NUM_TESTS
    (verdict,) = together.judge([Program(code)], [make_problem(*tests)])
    assert verdict.is_accepted
    assert len(verdict.order) == NUM_TESTS
    assert verdict.uncounted == ()


def test_an_imported_module_ends_its_process_and_not_the_company(together: Judge) -> None:
    code = "import xml.dom.minidom\nprint(input())"
    (verdict,) = together.judge([Program(code)], [_counting(NUM_TESTS)])
    assert verdict.is_accepted
    assert len(verdict.order) == NUM_TESTS


FOUND_BY_CALLS = ("the command line", "cycles that pile up")
"""Functions that find what an earlier call left outside of their module."""


def test_functions_that_remember_are_right_where_each_call_is_the_first(
    together: Judge, alone: Judge
) -> None:
    programs = {**FORGETTING, **REACHING, **REMEMBERING}
    for right in ("1", "2"):
        # Right at first and wrong then, and the other way round.
        tests = [("[3]", "1"), *[("[3]", right)] * (NUM_TESTS - 1)]
        problem = make_problem(*tests, fn_name="f", time_limit_seconds=5.0)
        accepted = set(_accepted(alone, programs, problem))
        assert set(_accepted(together, programs, problem)) == accepted - {*FOUND_BY_CALLS}


def test_a_wrong_answer_in_company_stands(together: Judge) -> None:
    # In company there are more descriptors: this one says where it is.
    code = "import os\ntry: print('left', os.fstat(6) and '')\nexcept OSError: print('new')"
    before = together.statistics
    for output in ("new", "left"):
        problem = make_problem(*[(INPUT, output)] * NUM_TESTS)
        (verdict,) = together.judge([Program(code)], [problem])
        assert not verdict.is_accepted
    reasons = {run.reason for run in verdict.uncounted}
    assert reasons == set()
    (verdict,) = together.judge([Program(code)], [make_problem(*[(INPUT, "new")] * NUM_TESTS)])
    reasons = {run.reason for run in verdict.uncounted}
    assert reasons == {Repeat.SHARED_WRONG}
    assert verdict.detail.partition(": ")[2].startswith(RIGHT_ALONE)
    assert together.statistics.unshared - before.unshared == 2


def test_what_breaks_in_company_is_judged_with_a_process_a_test(together: Judge) -> None:
    code = "import os\ntry: os.fstat(6)\nexcept OSError: print(input())\nelse: 1 / 0"
    (verdict,) = together.judge([Program(code)], [_counting(NUM_TESTS)])
    assert verdict.is_accepted
    reasons = {run.reason for run in verdict.uncounted}
    assert reasons == {Repeat.SHARED_WRONG, Repeat.JUDGED_ANEW}


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
    "wrong in one": (_counting(20), "a = int(input())\nprint(a if a != 7 else 0)", 0),
    "fails behind its output": (_counting(20), "a = int(input())\nprint(a)\nif a == 11: 1 / 0", 0),
    "exits with 1 in some": (
        _counting(20),
        "a = int(input())\nprint(a)\nraise SystemExit(a > 15)",
        0,
    ),
    "is interrupted": (
        _counting(20),
        "a = int(input())\nwhile a == 9: raise KeyboardInterrupt\nprint(a)",
        0,
    ),
    "a deep thread": (
        _counting(40),
        _THREADED.format(
            "def f(k): return k and 1 + f(k - 1)\ndef main(): print(f(int(input()) * 900) // 900)"
        ),
        40,
    ),
    "a thread that fails": (
        _counting(40),
        _THREADED.format("def main():\n    n = int(input())\n    print(n)\n    1 / (n - 30)"),
        40,
    ),
    "a thread that exits": (
        _counting(40),
        _THREADED.format(
            "def main():\n    n = int(input())\n    if n == 25: sys.exit()\n    print(n)"
        ),
        0,
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
            KINDS[name].problem.model_copy(update={"tests": KINDS[name].problem.tests * 10}),
            str(code),
            10 * len(KINDS[name].problem.tests),
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
