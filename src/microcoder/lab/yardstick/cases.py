"""Cases for a judge: a program, the tests of its problem, and the right verdict.

Fresh cases are generated from a seed: they are known tactics with new numbers and names, so that no
judge can be tuned to them.
"""

import hashlib
import json
import operator
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

Suite = Literal["forgery", "fidelity", "pairs", "isolation", "timeouts"]
"""What a case is about."""

STORED: tuple[Suite, ...] = get_args(Suite)
"""The suites that come with this package, one file each."""

DATA_VERSION = 1
"""Version of the files in `data/`; figures of different versions are not to be compared."""

_DATA = files("microcoder.lab.yardstick") / "data"
"""Folder of the stored cases and of the templates of fresh ones."""

_PAIRS_A_ROUND = 6
"""Number of generated pairs of an output and an expected output, in a round of fresh cases."""

_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
"""Sign in a fresh program -> its meaning."""

Tests = tuple[tuple[str, str], ...]
"""Inputs and expected outputs of a program."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program to judge, its tests, and whether it must be accepted."""

    id: str
    suite: Suite
    title: str
    flaw: str
    """The flaw of a judge that answers wrongly: V1 to V8 of BenchJack (arXiv 2605.12673), see
    docs/judges.md."""
    expect: bool
    """Whether the program must be accepted."""
    why: str
    """One sentence that says why `expect` is the right answer."""
    code: str
    tests: Tests
    """Input and expected output; for functions one JSON argument a line, and a JSON value."""
    fn_name: str | None = None
    time_limit_seconds: float = 4.0
    needs: tuple[str, ...] = ()
    """Abilities that the case needs beyond stdin and stdout: see `contained/judges.py`."""
    problem: dict[str, Any] = field(default_factory=dict)
    """Further fields of our own `Problem`, for the judges that can read them: a checker, a
    language."""
    is_fresh: bool = False
    """Whether the case was generated from a seed, so that no judge can be tuned to it."""


def make_id(suite: str, *parts: object) -> str:
    """Return a case's id: its suite, and a hash of `parts`, its content."""
    # By content, so that a case keeps its id when others are added.
    content = json.dumps(parts, default=str).encode()
    return f"{suite}-{hashlib.sha256(content).hexdigest()[:8]}"


@cache
def load_suite(suite: Suite) -> tuple[Case, ...]:
    """Return a suite that comes with this package."""
    lines = (_DATA / f"{suite}.jsonl").read_text("utf-8").splitlines()
    # The first line says which version of the data the others are of.
    header, *rows = map(json.loads, lines)
    assert header["version"] == DATA_VERSION
    cases = []
    for row in rows:
        row["tests"] = tuple(map(tuple, row["tests"]))
        row["needs"] = tuple(row.get("needs", ()))
        cases.append(Case(**row))
    return tuple(cases)


def choose_cases(cases: Sequence[Case], most: int | None, *, seed: int) -> list[Case]:
    """Return at most `most` cases in their order; None: all.

    Cases to accept and cases to refuse are drawn in proportion.
    """
    if most is None or len(cases) <= most:
        return list(cases)
    # A source of its own: a suite that grows does not change the draws from the others.
    source = random.Random(f"{seed} {len(cases)}")
    right = [case for case in cases if case.expect]
    wrong = [case for case in cases if not case.expect]
    num_right = round(most * len(right) / len(cases))
    drawn = source.sample(right, num_right)
    drawn += source.sample(wrong, most - num_right)
    chosen = {case.id for case in drawn}
    return [case for case in cases if case.id in chosen]


# ----- Fresh cases.


def build_fresh(seed: int, *, rounds: int = 2) -> list[Case]:
    """Return generated cases, `rounds` times of all kinds; the same seed gives the same cases."""
    source = random.Random(seed)
    cases: list[Case] = []
    for _ in range(rounds):
        cases += _build_round(source)
    return cases


def _build_round(source: random.Random) -> Iterator[Case]:
    """Yield a case for each template, and some pairs."""
    templates = json.loads((_DATA / "fresh.json").read_text("utf-8"))
    for template in templates["forged"]:
        yield _fill_template(
            source,
            template,
            "forgery",
            expect=False,
            why="It does not solve the problem.",
        )
    for template in templates["unusual"]:
        yield _fill_template(
            source,
            template,
            "fidelity",
            expect=True,
            why="It solves the problem in an unusual form.",
        )
    for _ in range(_PAIRS_A_ROUND):
        yield _make_pair(source)


def _fill_template(
    source: random.Random,
    template: dict[str, str],
    suite: Suite,
    *,
    expect: bool,
    why: str,
) -> Case:
    """Return a template's program with new numbers and names, for a problem with new numbers."""
    # The order of the draws is part of what a seed means.
    first, second = source.sample(["left", "right", "n", "m", "x1", "y1", "first", "second"], 2)
    sign = source.choice("+-*")
    factor = source.randint(3, 99)
    tests = []
    for _ in range(3):
        left = source.randint(1000, 99999)
        right = source.randint(100, 999)
        output = _OPERATORS[sign](left, right) * factor
        tests.append((f"{left} {right}\n", f"{output}\n"))
    words = {
        "a": first,
        "b": second,
        "answer": f"({first} {sign} {second}) * {factor}",
        "read": f"{first}, {second} = map(int, input().split())",
        "first": tests[0][1].strip(),
        "small": str(source.randint(2, 9)),
        "name": source.choice(["Solver", "Task", "Main"]),
    }
    return _make_fresh(
        suite,
        title=template["title"].format(**words),
        code=template["code"].format(**words) + "\n",
        tests=tuple(tests),
        flaw=template.get("flaw", "V6"),
        expect=expect,
        why=why,
    )


def _make_pair(source: random.Random) -> Case:
    """Return a program whose output is, or is not, the expected one."""
    number = source.randint(10_000, 999_999)
    real = source.randint(1, 999) + source.randint(1, 999_999) / 1e6
    pairs = (
        (f"{number}\r\n", f"{number}\n", True),
        (f"{real:.9f}", f"{real:.6f}", True),
        (f"{number} \n\n", f"{number}\n", True),
        (f"{number + 1}", f"{number}", False),
        (f"{real + 0.01:.6f}", f"{real:.6f}", False),
        (f"{number} {number}", f"{number}", False),
        (f"{number}{source.randint(0, 9)}", f"{number}", False),
    )
    output, expected, is_right = source.choice(pairs)
    if is_right:
        flaw = "V6"
        why = "The same answer in another layout or with more digits."
    else:
        flaw = "V5"
        why = "Another answer."
    return _make_fresh(
        "pairs",
        title=f"{output!r} for {expected!r}",
        code=f"import sys\nsys.stdout.write({output!r})\n",
        tests=(("1\n", expected + "\n"),),
        flaw=flaw,
        expect=is_right,
        why=why,
    )


def _make_fresh(
    suite: Suite,
    *,
    title: str,
    code: str,
    tests: Tests,
    flaw: str,
    expect: bool,
    why: str,
) -> Case:
    return Case(
        id=make_id(suite, "fresh", code, tests),
        suite=suite,
        title=title,
        flaw=flaw,
        expect=expect,
        why=why,
        code=code,
        tests=tests,
        is_fresh=True,
    )
