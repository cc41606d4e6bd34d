"""No program has a second try: what is kept of runs that did not count, and when a program is judged anew.

A test is run again where a run says too little: it failed in a process that it shared, ended close to its time limit,
was killed from outside. A guess must not gain by that. Two rules see to it:

- A run that is only timed again keeps its output (`timing`).
- Where a test failed and then was accepted, in a way that the program could have caused, the program is judged anew: a
  process a test, without any repeats, twice, and it passes the tests that it passes both times. A program whose runs
  are all alike loses nothing but time.

One failure in a shared process is no such case: to run out of the CPU time that tests may take together, which is less
than that of one test, and then to be accepted after taking at least as much. Whoever burns time to be asked again must
burn it in the accepted run too, which would have been cut off the first time: nothing is gained. What earlier tests of
the process had used is not known from outside, so the lost test counts as having had all of that time.

A run that is cut off because neighbours slow it has left no output, so its repetition is another try. It is excused
only if it takes at least what the first was cut off at; a quicker one, usual where the neighbours left, is doubted.
The runs anew neither lose nor gain by neighbours: each has from the beginning all the room that neighbours could call
for, and one that ends beyond its limit is timed again, alone, and keeps its output.

A sandbox that dies may have been killed by its program where isolation is degraded (it can fill the disk), so a test
that is accepted after that is doubted too. The runs anew are not repeated where the disk is full.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from microcoder.evaluator.preparation import PreparedTest
from microcoder.types import Outcome, Repeat, TestResult, UncountedRun

_PROBED_SHARE, _PROBED_TESTS = 0.01, 4


class Loss(NamedTuple):
    """Why a run of a test does not count."""

    reason: Repeat
    cpu_seconds: float = math.inf
    """What an accepted run must take for nothing to be gained: the time that was given when it ran out, 0 if the
    program could not have caused this, infinite otherwise."""


@dataclass(slots=True)
class Tries:
    """One way of a program through its tests, in order."""

    results: list[TestResult] = field(default_factory=list)
    """The runs that count."""
    uncounted: list[UncountedRun] = field(default_factory=list)
    """The others."""
    is_doubtful: bool = False
    """Whether a test failed and was then accepted, in a way that the program could have caused."""
    losses: dict[int, Loss] = field(default_factory=dict)
    """What tests to come did before, by their numbers."""

    @property
    def next_test(self) -> int:
        """Number of the next test, from 1."""
        return len(self.results) + 1

    @property
    def is_accepted(self) -> bool:
        """Whether every test so far was."""
        return all(result.verdict is Outcome.ACCEPTED for result in self.results)

    def lose(self, loss: Loss, test: int | None = None) -> None:
        """Note a run of a test to come, the next if it is not said, that does not count."""
        test = test or self.next_test
        self.uncounted.append(UncountedRun(test, loss.reason))
        if test not in self.losses or self.losses[test].cpu_seconds < loss.cpu_seconds:
            self.losses[test] = loss

    def add(self, result: TestResult) -> None:
        """Note the run of the next test that counts."""
        loss = self.losses.pop(self.next_test, None)
        if loss is not None and result.verdict is Outcome.ACCEPTED and result.cpu_seconds < loss.cpu_seconds:
            self.is_doubtful = True
        self.results.append(result)

    def replaced_by(self, first: Tries, second: Tries | None) -> Tries:
        """Return what a program that was judged anew has come to; the second time may be missing if it is not needed.

        A test counts as the worse of its two runs.
        """
        of_second = first.results if second is None else second.results
        pairs = zip(first.results, of_second, strict=False)
        results = [one if one.verdict is not Outcome.ACCEPTED else other for one, other in pairs]
        uncounted = [*self.uncounted, *_anew(len(self.results)), *first.uncounted]
        if second is not None:
            uncounted += [*_anew(len(results)), *second.uncounted]
        return Tries(results, uncounted)


def _anew(num_tests: int) -> Iterable[UncountedRun]:
    return (UncountedRun(number, Repeat.JUDGED_ANEW) for number in range(1, num_tests + 1))


def choose_probed(code: str, tests: Sequence[PreparedTest]) -> list[int]:
    """Return the places of the tests that are run again if the program is accepted; none of most programs.

    A draw that depends on nothing but the program and its first input.
    """
    digest = hashlib.sha256(code.encode("utf-8", "surrogatepass") + tests[0].stdin).digest()
    if int.from_bytes(digest[:4]) >= _PROBED_SHARE * (1 << 32):
        return []
    return sorted(random.Random(digest).sample(range(len(tests)), min(_PROBED_TESTS, len(tests))))
