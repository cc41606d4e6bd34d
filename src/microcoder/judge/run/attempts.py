"""A program's runs: those that count, in the order of its tests, and those that do not.

Which runs do not count, and why a program must not gain by them, is said in `judging.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from microcoder.judge.core.types import Outcome, Repeat, TestResult, UncountedRun
from microcoder.judge.run.sharing import DiscardedRun


@dataclass(slots=True)
class Attempts:
    """A program's results of tests, in order, and its runs that do not count."""

    results: list[TestResult] = field(default_factory=list)
    """The runs that count."""
    uncounted: list[UncountedRun] = field(default_factory=list)
    """The runs that do not count."""
    is_doubtful: bool = False
    """Whether a test failed and was then accepted, in a way that the program could have caused."""
    is_shared: bool = False
    """Whether tests that count shared a process."""
    is_apart: bool = False
    """Whether the program changed the library: each further test has a process of its own."""
    discarded: dict[int, DiscardedRun] = field(default_factory=dict)
    """Number of a test that is to be run again -> why its earlier run does not count."""

    @property
    def next_test(self) -> int:
        """Number of the next test, from 1."""
        return len(self.results) + 1

    @property
    def is_accepted(self) -> bool:
        """Whether every test so far was accepted."""
        return all(result.verdict is Outcome.ACCEPTED for result in self.results)

    def uncount(self, test: int, reason: Repeat) -> None:
        """Note a run that does not count, of the test with this number."""
        self.uncounted.append(UncountedRun(test, reason))

    def discard(
        self,
        run: DiscardedRun,
        test: int | None = None,
    ) -> None:
        """Note a run that does not count and is repeated.

        Args:
            run: why it does not count.
            test: number of its test, by default the next one.
        """
        test = test or self.next_test
        self.uncount(test, run.reason)
        # Of several runs of a test, the one that leaves most doubt stays.
        if test not in self.discarded or self.discarded[test].cpu_seconds < run.cpu_seconds:
            self.discarded[test] = run

    def add(self, result: TestResult) -> None:
        """Add the next test's result.

        It is doubtful if it is accepted in less CPU time than its discarded run calls for.
        """
        discarded = self.discarded.pop(self.next_test, None)
        if discarded is not None and result.verdict is Outcome.ACCEPTED:
            is_quicker = result.cpu_seconds < discarded.cpu_seconds
            self.is_doubtful = self.is_doubtful or is_quicker
        self.results.append(result)

    def replaced_by(
        self,
        first: Attempts,
        second: Attempts | None,
    ) -> Attempts:
        """Return the result of a program that was judged again; a test counts as its worse run.

        Args:
            first: the first time.
            second: the second time; None if the first one decides.
        """
        uncounted = [*self.uncounted, *_rejudged(len(self.results)), *first.uncounted]
        if second is None:
            return Attempts(list(first.results), uncounted)
        results = []
        # They may differ in length: each ends where the stop rule says.
        for result, repeated in zip(first.results, second.results, strict=False):
            worse = repeated if result.verdict is Outcome.ACCEPTED else result
            results.append(worse)
        uncounted += [*_rejudged(len(results)), *second.uncounted]
        return Attempts(results, uncounted)


def _rejudged(num_tests: int) -> Iterable[UncountedRun]:
    return (UncountedRun(number, Repeat.JUDGED_ANEW) for number in range(1, num_tests + 1))
