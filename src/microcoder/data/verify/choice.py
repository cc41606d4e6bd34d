"""Which tests are kept: those that catch known-wrong programs, then some of each group."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from pydantic import Field

from microcoder.judge.core.config import Config

MOST_BYTES = 8 << 20
"""Most bytes of the inputs and outputs of the kept tests (our choice)."""
MOST_SECONDS = 30.0
"""Most CPU seconds of the slowest accepted program over the kept tests (our choice).

Each test's seconds are rounded up by `limits.cost_of`.
"""


class VerifySettings(Config):
    """How many tests of a problem the verify stage keeps, and how many it asks for."""

    max_tests: int = Field(default=15, ge=1)
    """Tests of the source that are kept (15 in arXiv 2603.07779): those that catch the known-wrong
    programs, then the longest of every group, within 8 MiB and 30 s. Tests that were made here
    come on top."""
    min_hidden_tests: int = Field(default=5, ge=1)
    """Tests that the statement must not show, at least (our choice): by fewer a program that knows
    some cases is paid. Of tests that are Python each assertion counts."""

    def _contradictions(self) -> Iterator[str]:
        if self.min_hidden_tests > self.max_tests:
            yield (
                f"min_hidden_tests = {self.min_hidden_tests} of at most max_tests = "
                f"{self.max_tests} tests; raise max_tests, or lower min_hidden_tests"
            )


class Cost(NamedTuple):
    """What a test costs if it is kept: bytes and seconds; and its group."""

    num_bytes: int
    seconds: float = 0.0
    """CPU seconds of the slowest accepted program on the test."""
    group: str = ""


def choose_tests(
    costs: Sequence[Cost],
    failed_by_program: Sequence[Collection[int]],
    settings: VerifySettings,
    *,
    made: Collection[int] = (),
    max_bytes: int = MOST_BYTES,
    max_seconds: float = MOST_SECONDS,
) -> tuple[int, ...]:
    """Return the indices of the tests to keep, in order; empty if no test fits the budget.

    Args:
        costs: what each test costs.
        failed_by_program: for each known-wrong program the indices of the tests that it fails.
        settings: how many tests are kept.
        made: the tests that were made here. They are kept beside the others, since each is there
            for a reason.
        max_bytes: most bytes of the kept tests.
        max_seconds: most CPU seconds of the kept tests.
    """
    choice = _Choice(costs, settings.max_tests, max_bytes, max_seconds, made)
    choice.cover(failed_by_program)
    choice.fill_up()
    return tuple(sorted(choice.chosen))


class _Choice:
    """The tests chosen so far, and what is left of the budget."""

    def __init__(
        self,
        costs: Sequence[Cost],
        max_tests: int,
        max_bytes: int,
        max_seconds: float,
        made: Collection[int],
    ) -> None:
        self.chosen: list[int] = []
        self._made = frozenset(made)
        self._costs = costs
        self._max_tests = max_tests
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    def cover(self, failed_by_program: Sequence[Collection[int]]) -> None:
        """Choose tests until every program is caught that a test can catch.

        A greedy cover: the next test is always the one that catches most programs not caught yet;
        of equal ones, the cheaper.
        """
        uncaught = [failed for failed in failed_by_program if failed]
        # An exact cover would take exponential time.
        while uncaught:
            catches: Counter[int] = Counter()
            for failed in uncaught:
                catches.update(failed)
            ranks = []
            for test in self._fitting():
                ranks.append((-catches[test], self._costs[test].num_bytes, test))
            if not ranks:
                break
            best = min(ranks)[-1]
            # What is left is only caught by tests that no longer fit the budget.
            if not catches[best]:
                break
            self.chosen.append(best)
            uncaught = [failed for failed in uncaught if best not in failed]

    def fill_up(self) -> None:
        """Choose the longest tests, of the groups with fewest so far, while any fits."""
        fitting = self._fitting()
        while fitting:
            # Long inputs are the hard ones, as a rule; groups are subtasks of their own.
            num_chosen = Counter(self._costs[test].group for test in self.chosen)
            ranks = []
            for test in fitting:
                cost = self._costs[test]
                ranks.append((num_chosen[cost.group], -cost.num_bytes, test))
            self.chosen.append(min(ranks)[-1])
            fitting = self._fitting()

    def _fitting(self) -> list[int]:
        """Return the indices of the tests that can still be chosen."""
        num_of_source = len(set(self.chosen) - self._made)
        is_full = num_of_source >= self._max_tests
        # Added up each time: there are few chosen tests.
        spent_bytes = sum(self._costs[test].num_bytes for test in self.chosen)
        spent_seconds = sum(self._costs[test].seconds for test in self.chosen)
        left_bytes = self._max_bytes - spent_bytes
        left_seconds = self._max_seconds - spent_seconds
        fitting = []
        for test, cost in enumerate(self._costs):
            if is_full and test not in self._made:
                continue
            fits = cost.num_bytes <= left_bytes and cost.seconds <= left_seconds
            if fits and test not in self.chosen:
                fitting.append(test)
        return fitting
