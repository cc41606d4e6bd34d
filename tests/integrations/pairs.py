"""One fixed set of programs with their problems, for every door:
each must say of them what the judge itself says.

From the suites of the evaluator: forgeries, honest programs, right but unusual functions, and
outputs beside expected ones. What takes long, another language and packages are left out, so that a
door's environment needs nothing but us.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import pytest

from microcoder import extract_program
from microcoder.integrations.shared import shared_judge
from microcoder.judge import Judge
from microcoder.judge.core.types import Checker, Outcome, Problem, Verdict
from tests.judge.fidelity_programs import CALLS
from tests.judge.output_pairs import PAIRS as OUTPUTS
from tests.judge.safety_suites import FORGERIES, KINDS

# The tests of all doors run in one process, so its judge has what the one that needs most asks for.
shared_judge(stop="never")

_SLOW = re.compile(
    "a generator|a (list|tree) without end|a tree that grows with every read|a list that "
    "is too long.*"
)
_SAMPLE_SIZE = 60


class Pair(NamedTuple):
    """A program and what it is judged by."""

    name: str
    code: str
    problem: Problem
    is_right: bool

    @property
    def response(self) -> str:
        """What a model would say."""
        return f"Here it is.\n````python\n{self.code}\n````\n"

    @property
    def is_plain(self) -> bool:
        """Whether inputs, outputs and a function's name say it all,
        as LiveCodeBench's form has it.
        """
        return self.problem.checker == Checker() and self.problem.call is None

    def as_input_output(self) -> dict[str, object]:
        """Return a plain problem in APPS' and LiveCodeBench's form."""
        given, expected = zip(
            *((test.input, test.output) for test in self.problem.tests), strict=True
        )
        return {"inputs": list(given), "outputs": list(expected), "fn_name": self.problem.fn_name}


def _problem(name: str, *tests: tuple[str, str], **options: object) -> Problem:
    values = [{"input": given, "output": expected} for given, expected in tests]
    return Problem.model_validate(
        {"id": name, "tests": values, "time_limit_seconds": 20.0, **options}
    )


def _make() -> list[Pair]:
    pairs = [
        Pair(f"forged: {name}", code, KINDS[kind].problem.model_copy(update={"id": name}), False)
        for name, (kind, code) in FORGERIES.items()
        if kind != "cpp" and not _SLOW.fullmatch(name)
    ]
    pairs += [
        Pair(
            f"honest: {name}",
            kind.honest.code or "",
            kind.problem.model_copy(update={"id": name}),
            True,
        )
        for name, kind in KINDS.items()
        if name != "cpp"
    ]
    pairs += [
        Pair(
            f"unusual: {name}",
            code,
            _problem(name, ("[1, 2]\n3", "[3, 6]"), fn_name="solve"),
            True,
        )
        for name, code in CALLS.items()
        if not re.search("numpy|numba|sorted", code, re.I)
    ]
    for number, (checker, is_right, output, expected) in enumerate(OUTPUTS):
        code = f"import sys\nsys.stdout.buffer.write({output!r}.encode())"
        pairs.append(
            Pair(
                f"output {number}",
                code,
                _problem(f"o{number}", ("", expected), checker=checker),
                is_right,
            )
        )
    return pairs


ALL: Final = _make()
SAMPLE: Final = ALL[:: len(ALL) // _SAMPLE_SIZE]
AMOUNTS: Final = [
    pytest.param(SAMPLE, id="sample"),
    pytest.param(ALL, id="all", marks=pytest.mark.long),
]
"""What a door's test is parametrized with: a sample, and with LONG= all of them."""


_judged: dict[str, Verdict] = {}


def judged(pairs: Sequence[Pair]) -> list[Verdict]:
    """Return what the judge itself says of responses that hold the pairs' programs;
    it is asked once.
    """
    new = []
    for pair in pairs:
        if pair.name not in _judged:
            new.append(pair)
    if new:
        with Judge() as judge:
            verdicts = judge.judge(
                [extract_program(pair.response) for pair in new], [pair.problem for pair in new]
            )
        _judged.update(zip((pair.name for pair in new), verdicts, strict=True))
    return [_judged[pair.name] for pair in pairs]


FAULTY: Final = _problem(
    "faulty",
    ("1", "1"),
    checker={"type": "program", "code": "import sys\nsys.exit(3)"},
)
"""A problem on which any judge fails: its checker breaks on its own answer,
which says nothing about a program.
"""


RIGHT: Final = "```python\nprint(sum(map(int, input().split())))\n```"
"""What a model says that adds all integers of a line."""
ROW: Final = {
    "question": "Print the sum.",
    "input_output": '{"inputs": ["1 2"], "outputs": ["3"]}',
    "id": "apps",
}


def fault(problem: Problem) -> Verdict:
    """Return what a judge says whose machine failed."""
    return Verdict(Outcome.SANDBOX_FAULT, (), len(problem.tests), "the sandbox is gone")
