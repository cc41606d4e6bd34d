"""Which tests to keep: those that catch the known-wrong programs, then some of every group, within a budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from microcoder.dataset.verify.settings import ChoiceSettings


@dataclass(frozen=True, slots=True)
class TestCost:
    """What a test costs whoever keeps it."""

    __test__ = False  # not a pytest class

    num_bytes: int
    seconds: float = 0.0
    """CPU seconds of the slowest accepted program."""
    group: str = ""


def choose_tests(
    costs: Sequence[TestCost], failed_by_program: Sequence[Collection[int]], settings: ChoiceSettings
) -> tuple[int, ...]:
    """Return the numbers of the tests to keep, in their own order; none where no test fits the budget.

    Args:
        costs: one per test.
        failed_by_program: for each known-wrong program the numbers of the tests that it fails.
        settings: mode and budget.
    """
    if settings.mode == "paper":
        longest = sorted(range(len(costs)), key=lambda number: (-costs[number].num_bytes, number))
        return tuple(sorted(longest[: settings.max_tests]))
    budget = _Budget(costs, settings)
    _cover(costs, failed_by_program, budget)
    _spread(costs, budget)
    return tuple(sorted(budget.chosen))


class _Budget:
    """What was chosen and what is left to spend."""

    def __init__(self, costs: Sequence[TestCost], settings: ChoiceSettings) -> None:
        self._costs = costs
        self.chosen: set[int] = set()
        self._tests, self._bytes, self._seconds = settings.max_tests, settings.max_bytes, settings.max_seconds

    def fits(self, number: int) -> bool:
        cost = self._costs[number]
        is_new = number not in self.chosen
        return is_new and self._tests > 0 and cost.num_bytes <= self._bytes and cost.seconds <= self._seconds

    def take(self, number: int) -> None:
        self.chosen.add(number)
        self._tests -= 1
        self._bytes -= self._costs[number].num_bytes
        self._seconds -= self._costs[number].seconds


def _cover(costs: Sequence[TestCost], failed_by_program: Sequence[Collection[int]], budget: _Budget) -> None:
    """Greedy cover: always the test that catches most of the programs not caught yet, the cheaper one of equals."""
    uncaught = [set(failed) for failed in failed_by_program if failed]
    while uncaught:
        catches = [0] * len(costs)
        for failed in uncaught:
            for number in failed:
                catches[number] += 1
        fitting = [number for number, count in enumerate(catches) if count and budget.fits(number)]
        if not fitting:
            return
        best = min(fitting, key=lambda number: (-catches[number], costs[number].num_bytes, number))
        budget.take(best)
        uncaught = [failed for failed in uncaught if best not in failed]


def _spread(costs: Sequence[TestCost], budget: _Budget) -> None:
    """Fill up with the longest tests, one group after the other, those with fewest tests so far first."""
    while True:
        taken: dict[str, int] = {}
        for number in budget.chosen:
            taken[costs[number].group] = taken.get(costs[number].group, 0) + 1
        fitting = [number for number in range(len(costs)) if budget.fits(number)]
        if not fitting:
            return
        budget.take(min(fitting, key=lambda n: (taken.get(costs[n].group, 0), -costs[n].num_bytes, n)))
