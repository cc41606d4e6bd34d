"""Cases for a judge: a program, the tests of its problem, and the right verdict."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Suite = Literal["forgery", "fidelity", "pairs", "isolation", "timeouts", "contests"]
STORED: tuple[Suite, ...] = ("forgery", "fidelity", "pairs", "isolation", "timeouts")
"""The suites that come with this package, one file each."""

DATA_VERSION = 1
"""Of the files in `data/`; figures of different versions are not to be compared."""

FLAWS = {
    "V1": "no isolation between program and evaluator",
    "V2": "answers shipped with the test",
    "V3": "execution of untrusted text in the evaluator",
    "V4": "model judges without input sanitisation",
    "V5": "weak string matching",
    "V6": "gaps in the evaluation's logic",
    "V7": "trusting what untrusted code says",
    "V8": "unnecessary permissions",
}
"""The eight flaw classes of BenchJack (arXiv 2605.12673); V4 has no case: nothing here asks a model."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case for a judge."""

    id: str
    suite: Suite
    title: str
    flaw: str
    """A key of `FLAWS`: the flaw of a judge that answers wrongly."""
    expect: bool
    """Whether the program must be accepted."""
    why: str
    """One sentence: why that is the right answer."""
    code: str
    tests: tuple[tuple[str, str], ...]
    """Input and expected output; for functions one JSON argument a line, and a JSON value."""
    fn_name: str | None = None
    time_limit_seconds: float = 4.0
    needs: tuple[str, ...] = ()
    """Abilities that the case needs beyond stdin and stdout: see `catalogue.ABILITIES`."""
    problem: dict[str, Any] = field(default_factory=dict)
    """Further fields of our own `Problem`, for the judges that can read them: a checker, a language."""
    is_fresh: bool = False
    """Whether it was generated from a seed, so that no judge can be tuned to it."""

    def as_record(self) -> dict[str, Any]:
        """Return it as plain values, without what is left at its default."""
        known = {"fn_name": None, "time_limit_seconds": 4.0, "needs": (), "problem": {}, "is_fresh": False}
        return {name: value for name, value in asdict(self).items() if name not in known or value != known[name]}


def make_id(suite: str, *parts: object) -> str:
    """Return a case's name, which depends on what it asks alone."""
    return f"{suite}-{hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:8]}"


def write_cases(cases: Iterable[Case]) -> str:
    """Return cases as JSON lines, the version first."""
    lines = [{"version": DATA_VERSION, "licence": "Apache-2.0"}, *(case.as_record() for case in cases)]
    return "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in lines)


def read_cases(text: str) -> tuple[Case, ...]:
    """Return the cases of JSON lines that `write_cases` wrote."""
    first, *lines = map(json.loads, text.splitlines())
    assert first["version"] == DATA_VERSION
    return tuple(_read_case(line) for line in lines)


@cache
def load_suite(suite: Suite) -> tuple[Case, ...]:
    """Return a suite that comes with this package."""
    return read_cases(files("microcoder.yardstick").joinpath(f"data/{suite}.jsonl").read_text("utf-8"))


def choose_cases(cases: Sequence[Case], most: int | None, *, seed: int) -> list[Case]:
    """Return at most so many, drawn evenly from both expectations, in the order they stand in."""
    if most is None or len(cases) <= most:
        return list(cases)
    drawn = random.Random(f"{seed} {len(cases)}")
    right = [case for case in cases if case.expect]
    wrong = [case for case in cases if not case.expect]
    num_right = round(most * len(right) / len(cases))
    chosen = {case.id for case in drawn.sample(right, num_right) + drawn.sample(wrong, most - num_right)}
    return [case for case in cases if case.id in chosen]


def _read_case(line: dict[str, Any]) -> Case:
    tests = tuple((given, expected) for given, expected in line["tests"])
    fields: dict[str, Any] = {**line, "tests": tests, "needs": tuple(line.get("needs", ()))}
    return Case(**fields)
