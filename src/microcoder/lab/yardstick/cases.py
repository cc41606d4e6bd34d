"""Cases for a judge: a program, the tests of its problem, and the right verdict.

Fresh cases are generated from a seed: known tactics with new numbers and names, to which no judge can be tuned.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

Suite = Literal["forgery", "fidelity", "pairs", "isolation", "timeouts"]
STORED: tuple[Suite, ...] = get_args(Suite)
"""The suites that come with this package, one file each."""

DATA_VERSION = 1
"""Version of the files in `data/`; figures of different versions are not to be compared."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program to judge, its tests, and whether it must be accepted."""

    id: str
    suite: Suite
    title: str
    flaw: str
    """The flaw of a judge that answers wrongly: V1 to V8 of BenchJack (arXiv 2605.12673), see docs/judges.md."""
    expect: bool
    """Whether the program must be accepted."""
    why: str
    """One sentence that says why `expect` is the right answer."""
    code: str
    tests: tuple[tuple[str, str], ...]
    """Input and expected output; for functions one JSON argument a line, and a JSON value."""
    fn_name: str | None = None
    time_limit_seconds: float = 4.0
    needs: tuple[str, ...] = ()
    """Abilities that the case needs beyond stdin and stdout: see `inside/judges.py`."""
    problem: dict[str, Any] = field(default_factory=dict)
    """Further fields of our own `Problem`, for the judges that can read them: a checker, a language."""
    is_fresh: bool = False
    """Whether the case was generated from a seed, so that no judge can be tuned to it."""


def make_id(suite: str, *parts: object) -> str:
    """Return a case's id: its suite, and a hash of `parts`, its content."""
    return f"{suite}-{hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:8]}"


_DATA = files("microcoder.lab.yardstick") / "data"


@cache
def load_suite(suite: Suite) -> tuple[Case, ...]:
    """Return a suite that comes with this package."""
    first, *lines = map(json.loads, (_DATA / f"{suite}.jsonl").read_text("utf-8").splitlines())
    assert first["version"] == DATA_VERSION
    for line in lines:
        line |= {"tests": tuple(map(tuple, line["tests"])), "needs": tuple(line.get("needs", ()))}
    return tuple(Case(**line) for line in lines)


def choose_cases(cases: Sequence[Case], most: int | None, *, seed: int) -> list[Case]:
    """Return at most `most` cases in their order, drawn in proportion from those to accept and to refuse."""
    if most is None or len(cases) <= most:
        return list(cases)
    drawn = random.Random(f"{seed} {len(cases)}")
    right = [case for case in cases if case.expect]
    wrong = [case for case in cases if not case.expect]
    num_right = round(most * len(right) / len(cases))
    chosen = {
        case.id for case in drawn.sample(right, num_right) + drawn.sample(wrong, most - num_right)
    }
    return [case for case in cases if case.id in chosen]


def build_fresh(seed: int, *, rounds: int = 2) -> list[Case]:
    """Return generated cases, `rounds` times of all kinds; the same seed gives the same cases."""
    drawn = random.Random(seed)
    return [case for _ in range(rounds) for case in _build_round(drawn)]


def _build_round(drawn: random.Random) -> Iterator[Case]:
    templates = json.loads((_DATA / "fresh.json").read_text("utf-8"))
    for kind, suite, why in (
        ("forged", "forgery", "It does not solve the problem."),
        ("unusual", "fidelity", "It solves the problem in an unusual form."),
    ):
        for one in templates[kind]:
            code, tests, words = _fill(drawn, one["code"])
            title, flaw = one["title"].format(**words), one.get("flaw", "V6")
            yield _make(suite, title, code, tests, flaw=flaw, expect=kind == "unusual", why=why)
    for _ in range(6):
        yield _pair(drawn)


def _fill(
    drawn: random.Random, template: str
) -> tuple[str, tuple[tuple[str, str], ...], dict[str, str]]:
    a, b = drawn.sample(["left", "right", "n", "m", "x1", "y1", "first", "second"], 2)
    sign = drawn.choice("+-*")
    factor = drawn.randint(3, 99)
    answer = f"({a} {sign} {b}) * {factor}"
    pairs = [(drawn.randint(1000, 99999), drawn.randint(100, 999)) for _ in range(3)]
    ends = [eval(f"({left} {sign} {right}) * {factor}") for left, right in pairs]
    words = {"a": a, "b": b, "answer": answer, "read": f"{a}, {b} = map(int, input().split())", "first": str(ends[0]),
             "small": str(drawn.randint(2, 9)), "name": drawn.choice(["Solver", "Task", "Main"])}  # fmt: skip
    tests = tuple(
        (f"{left} {right}\n", f"{end}\n") for (left, right), end in zip(pairs, ends, strict=True)
    )
    return template.format(**words) + "\n", tests, words


def _pair(drawn: random.Random) -> Case:
    number = drawn.randint(10_000, 999_999)
    real = drawn.randint(1, 999) + drawn.randint(1, 999_999) / 1e6
    output, expected, is_right = drawn.choice((
        (f"{number}\r\n", f"{number}\n", True),
        (f"{real:.9f}", f"{real:.6f}", True),
        (f"{number} \n\n", f"{number}\n", True),
        (f"{number + 1}", f"{number}", False),
        (f"{real + 0.01:.6f}", f"{real:.6f}", False),
        (f"{number} {number}", f"{number}", False),
        (f"{number}{drawn.randint(0, 9)}", f"{number}", False),
    ))  # fmt: skip
    code, tests = f"import sys\nsys.stdout.write({output!r})\n", (("1\n", expected + "\n"),)
    why = (
        "The same answer in another layout or with more digits." if is_right else "Another answer."
    )
    flaw = "V6" if is_right else "V5"
    return _make(
        "pairs", f"{output!r} for {expected!r}", code, tests, flaw=flaw, expect=is_right, why=why
    )


def _make(
    suite: Suite, title: str, code: str, tests: tuple[tuple[str, str], ...], **rest: Any
) -> Case:
    name = make_id(suite, "fresh", code, tests)
    return Case(id=name, suite=suite, title=title, code=code, tests=tests, is_fresh=True, **rest)
