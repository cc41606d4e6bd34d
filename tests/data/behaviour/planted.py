"""Benchmark problems in disguise, and near misses, written by hand: stories, paraphrases,
translations, other formats.

They are in `planted.jsonl`, one a line, their words and programs CC0.
Each belongs to a part. `chosen on` are those that thresholds and rules were chosen on. `held out`
were written by somebody who had not read how copies are found. `drawn` are of benchmark problems
that were drawn at random from all with a program, so that none was left out for being hard.
"""

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.types import TestCase


@dataclass(frozen=True)
class Planted:
    """A problem, and the benchmark problem that it is or is close to, by its title there."""

    of: str
    how: str
    statement: str
    code: str
    inputs: tuple[Any, ...]
    """Argument lists of `solve`, or texts for stdin."""
    is_copy: bool = True
    has_code: bool = True
    """Whether the program comes with the problem, or only its tests."""
    part: str = "chosen on"
    """`chosen on`, `held out` or `drawn`."""

    @property
    def titles(self) -> frozenset[str]:
        """Return its titles there: MBPP has some problems twice."""
        return frozenset(self.of.removeprefix("lcb:").split(" or "))

    def candidate(self, number: int) -> Candidate:
        """Return the row as it would come from somewhere, with the answers of its own program."""
        is_call = not isinstance(self.inputs[0], str)
        tests = tuple(_test(self.code, given) for given in self.inputs)
        head = self.code.split("\n")[0] if is_call else None
        return Candidate(
            id=f"planted/{number}",
            dataset="planted",
            statement_found=self.statement,
            statement=self.statement,
            fn_name="solve" if is_call else None,
            starter_code=head,
            tests=tests,
            solutions=(Solution(code=self.code),) if self.has_code else (),
        )


def _test(code: str, given: Any) -> TestCase:
    names: dict[str, Any] = {"__name__": "__main__"}
    if isinstance(given, str):
        kept, sys.stdin = sys.stdin, io.StringIO(given)
        try:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, names)
        finally:
            sys.stdin = kept
        return TestCase(input=given, output=printed.getvalue())
    exec(code, names)
    return TestCase(
        input="\n".join(map(json.dumps, given)),
        output=json.dumps(names["solve"](*given)),
    )


def _read() -> tuple[Planted, ...]:
    lines = Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Planted(inputs=tuple(row.pop("inputs")), **row) for row in map(json.loads, lines))


DISGUISED = tuple(one for one in _read() if one.is_copy)
NEAR_MISSES = tuple(one for one in _read() if not one.is_copy)
