"""The safety suites as lists of cases, and one way to run a case: the attempt,
then a canary in the same sandbox.

Run as a script, `python -m judge.safety_suites hostile [--together] [NAME ...]` in the folder
`tests`, it judges a suite in one process, as whoever starts it, looks for what that left behind,
and prints a report as JSON. The tests start it as themselves and as a user without rights
(`as_user`). With `--together` every program has several tests, all of which share a process,
whatever it names: what then holds is held without the screen.
"""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from microcoder.judge import Judge
from microcoder.judge.core.types import Call, Checker, Outcome, Problem, Program, Verdict
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.run import judging
from microcoder.judge.run.supervisor import LoadedProgram
from microcoder.lab.yardstick.cases import Case as StoredCase
from microcoder.lab.yardstick.cases import load_suite
from tests.judge.conftest import make_problem
from tests.judge.hostile_programs import HOSTILE
from tests.judge.leftovers import Leftovers
from tests.judge.processes import children_of

_NAMES = list(HOSTILE)
_DISK, _CALLS = map(_NAMES.index, ("files unlinked while they are open", "new namespaces"))
IN_A_CONTAINER = (*_NAMES[_DISK:_CALLS], *_NAMES[_CALLS::2])
"""Hostile programs that other layers stop in a container: those that take disk space, and half of
those that call the kernel; time and memory are watched in one way everywhere.
"""

_CANARY = Program(
    "import sys, os, math, random, csv, json\n"
    "a, b = map(int, input().split())\n"
    "try: folder = os.listdir('/tmp')\n"
    "except OSError: folder = []\n"
    "print(a + b, int(math.sqrt(49)), sys.getrecursionlimit(), folder, sys.stdin.read() == '',\n"
    "      sys.get_int_max_str_digits(), random.random(), 'microcoder' in sys.modules, "
    "hasattr(csv, 'reader'))\n"
)
_CANARY_OUTPUT = "3 7 1000 [] True 4300 0.8444218515250481 False True\n"
_ENOUGH_SECONDS = 20.0
_REPEATED = 3
"""How often its tests, where they share a process."""
_LIMIT_SECONDS = 0.2
"""Where running out of time is one way to be contained."""
_ENDLESS_SECONDS = 0.1
"""Where it is the only one."""
_ENDLESS_FORGERIES = (
    "a tree that grows with every read",
    "a tree without end",
    "a list without end",
)
"""Running out of time is as good an end as running out of nodes, seconds later."""

_SUM = (("90210 31337\n", "121547\n"), ("7 35\n", "42\n"))
_TESTLIB = """
import sys
try:
    given, output, answer = [open(path, errors="replace").read().split() for path in sys.argv[1:4]]
    sys.exit(0 if len(output) > 1 and sum(map(int, output)) == int(given[0]) else 1)
except ValueError:
    sys.exit(2)
"""
_VALUED = """
import json, sys
given, value = (json.load(open(path)) for path in sys.argv[1:3])
is_pair = isinstance(value, list) and len(value) == 2 and all(type(one) is int for one in value)
sys.exit(0 if is_pair and sum(value) == given else 1)
"""
_KATTIS = """
import sys
given, output = open(sys.argv[1]).read().split(), sys.stdin.read().split()
sys.exit(42 if len(output) > 1 and all(map(str.isdigit, output)) and sum(map(int, \
output)) == int(given[0]) else 43)
"""


class Kind(NamedTuple):
    """A kind of problem that forgeries are tried on, with an honest program for it."""

    problem: Problem
    honest: Program


def _checked(code: str, protocol: str) -> Kind:
    checker = Checker.model_validate({"type": "program", "code": code, "protocol": protocol})
    return Kind(
        make_problem(("10\n", "5 5\n"), checker=checker), Program("print(3, int(input()) - 3)")
    )


def _kind(code: str, *tests: tuple[str, str], language: str = "python", **options: object) -> Kind:
    problem = make_problem(*tests, language=language, time_limit_seconds=_ENOUGH_SECONDS, **options)
    return Kind(problem, Program(code, language))


KINDS: dict[str, Kind] = {
    "sum": _kind("print(sum(map(int, input().split())))", *_SUM),
    "third": _kind("print(1 / 3)", ("", "0.3333333333\n")),
    "yes": _kind("print('yes')", ("", "YES\n")),
    "set": _kind("print({5, 3})", ("", "{3, 5}\n")),
    "function": _kind(
        "def add(a, b): return a + b",
        ("90210\n31337", "121547"),
        ("7\n35", "42"),
        fn_name="add",
    ),
    "rows": _kind(
        "def rows(): return [{'b': 2, 'a': 1}]",
        ("", '[{"a": 1, "b": 2}]'),
        fn_name="rows",
        checker=Checker(type="unordered"),
    ),
    "list": _kind(
        "def turn(a):\n    b = None\n    while a: a.next, b, a = b, a, a.next\n    return b",
        ("[1, 2, 3]", "[3, 2, 1]"),
        fn_name="turn",
        call=Call(parameters=("ListNode",), returns="ListNode"),
    ),
    "tree": _kind(
        "def turn(root):\n    root.left, root.right = root.right, None\n    return root",
        ("[1, null, 2]", "[1, 2]"),
        fn_name="turn",
        call=Call(parameters=("TreeNode",), returns="TreeNode"),
    ),
    "design": _kind(
        "class Stack(list):\n    def push(self, n): self.append(n)",
        (
            '["Stack", "push", "push", "pop", "pop"]\n[[], [1], [2], [], []]',
            "[null, null, null, 2, 1]",
        ),
        fn_name="Stack",
        call=Call(style="design"),
    ),
    "valued": _kind(
        "def split(n): return [4, n - 4]",
        ("10", "[5, 5]"),
        fn_name="split",
        checker=Checker(type="program", code=_VALUED),
    ),
    "checker": _checked(_TESTLIB, "testlib"),
    "kattis": _checked(_KATTIS, "kattis"),
    "cpp": _kind(
        '#include <cstdio>\nint main() { int a, b; scanf("%d%d", &a, &b); printf("%d", a + b); }',
        *_SUM,
        language="cpp",
    ),
}


def _kind_of(case: StoredCase) -> str:
    """Return the name of the kind of problem that a stored case asks for."""
    left_out = {"id", "tests", "fn_name", "time_limit_seconds"}
    for name, (problem, _) in KINDS.items():
        asks = tuple((test.input, test.output) for test in problem.tests), problem.fn_name
        more = problem.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
        if (*asks, more) == (case.tests, case.fn_name, case.problem):
            return name
    raise LookupError(f"{case.title}: forgery.jsonl asks for what no kind of problem here asks for")


FORGERIES = {case.title: (_kind_of(case), case.code) for case in load_suite("forgery")}
"""Programs that try to be accepted without solving the problem, of the yardstick:
kind of problem and source.

None prints or returns the right answer in a form that counts. Safe to run only inside the sandbox.
"""


class Case(NamedTuple):
    """An attempt, and how it may end; None means any way but accepted or unscored,
    in every single test.
    """

    attempt: Program
    problem: Problem
    allowed: tuple[Outcome, ...] | None
    canary: Program
    canary_problem: Problem


def hostile_case(name: str) -> Case:
    """Return a program that tries to do harm."""
    allowed, code = HOSTILE[name]
    seconds = _LIMIT_SECONDS if Outcome.TIME_LIMIT in allowed else _ENOUGH_SECONDS
    seconds = _ENDLESS_SECONDS if allowed == (Outcome.TIME_LIMIT,) else seconds
    problem = make_problem(("1 2\n", "contained\n"), id="hostile", time_limit_seconds=seconds)
    canary_problem = make_problem(
        ("1 2\n", _CANARY_OUTPUT),
        id="canary",
        time_limit_seconds=_ENOUGH_SECONDS,
    )
    return Case(Program(code), problem, allowed, _CANARY, canary_problem)


def forging_case(name: str) -> Case:
    """Return a program that tries to be accepted."""
    kind, code = FORGERIES[name]
    problem, honest = KINDS[kind]
    seconds = _LIMIT_SECONDS if name in _ENDLESS_FORGERIES else problem.time_limit_seconds
    limited = problem.model_copy(update={"time_limit_seconds": seconds})
    return Case(Program(code, problem.language), limited, None, honest, problem)


def can_be_judged(case: Case) -> bool:
    """Whether this machine has what a case needs."""
    return not LANGUAGES[case.problem.language].find_problem()


def find_complaint(judging: Judge, case: Case) -> str:
    """Run a case; return what is wrong with how it ended, or an empty string.

    The judge must have one worker and keep no verdicts, so that the canary runs,
    and runs in the same sandbox.
    """
    before = {*children_of(os.getpid())}
    # One at a time: within a call the judge chooses the order.
    (verdict,) = judging.judge([case.attempt], [case.problem])
    (after,) = judging.judge([case.canary], [case.canary_problem])
    if not _is_allowed(verdict, case.allowed):
        return f"ended as {verdict.outcome}: {verdict.detail}"
    if not after.is_accepted:
        return f"then the canary ended as {after.outcome}: {after.detail}"
    if not before <= {*children_of(os.getpid())}:
        return (
            "it ended a fork server (runs that did not count: "
            f"{[*verdict.uncounted, *after.uncounted]})"
        )
    return ""


def _is_allowed(verdict: Verdict, allowed: tuple[Outcome, ...] | None) -> bool:
    if allowed is not None:
        return verdict.outcome in allowed
    return not {test.verdict for test in verdict.tests} & {Outcome.ACCEPTED, Outcome.SANDBOX_FAULT}


_SEEN_TOGETHER = ("inherited descriptors",)
"""A shared process has four more, which no program could name that passes the screen."""


def share_without_the_screen() -> None:
    """Let tests share a process whatever the program names."""

    def choose(_: object, trial: Any, tries: Any) -> Sequence[Any]:
        is_plain = (
            isinstance(trial.loaded, LoadedProgram)
            and trial.problem.problem.checker.type != "program"
        )
        # What is written by a stream's name is there when its process has ended:
        # too late to be asked about.
        is_plain = is_plain and not trial.writes_by_name
        return trial.problem.tests[len(tries.results) :] if is_plain else ()

    judging.Session._choose_batch = choose  # pyrefly: ignore[bad-assignment]


def _with_more_tests(case: Case) -> Case:
    more = {"tests": case.problem.tests * _REPEATED}
    return case._replace(problem=case.problem.model_copy(update=more))


def judge_suite(suite: str, names: list[str], *, together: bool = False) -> dict[str, object]:
    """Judge a suite, or those of its programs that are named; return the report."""
    complaints: dict[str, str] = {}
    make_case, known = (hostile_case, HOSTILE) if suite == "hostile" else (forging_case, FORGERIES)
    if together:
        share_without_the_screen()
    leftovers = Leftovers()
    with Judge(workers=1, cache_size=0, time_scale=1) as judging:
        for name in names or known:
            case = _with_more_tests(make_case(name)) if together else make_case(name)
            if together and name in _SEEN_TOGETHER:
                continue
            if can_be_judged(case) and (complaint := find_complaint(judging, case)):
                complaints[name] = complaint
        users = leftovers.users_of(children_of(os.getpid()))
    report = {
        "user": os.getuid(),
        "level": judging.isolation.level,
        "users": sorted(users),
        "complaints": complaints,
    }
    report["shared"] = judging.statistics.shared
    return {**report, "left": leftovers.find(users)}


if __name__ == "__main__":
    chosen = [name for name in sys.argv[2:] if name != "--together"]
    print(json.dumps(judge_suite(sys.argv[1], chosen, together="--together" in sys.argv)))
