"""What Verify asks of a problem. The paper publishes the number of tests and "the longest"; the rest is our choice.

Which tests to keep: those that catch the known-wrong programs, then some of every group, within a budget.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from microcoder.judge.core.config import Config
from microcoder.judge.core.types import LEAST_MEMORY_MIB, MOST_MEMORY_MIB, MOST_SECONDS

Role = Literal["accepted", "wrong", "slow", "partial", "trivial"]
"""What a program is tried as: `wrong` is known to be wrong or to crash, `slow` to be too slow."""


class ChoiceSettings(Config):
    """Which tests are kept."""

    mode: Literal["cover", "paper"] = "cover"
    """`cover`: those that catch the known-wrong programs, then some of every group (our choice); `paper`: the longest,
    whatever they cost."""
    max_tests: int = Field(default=15, ge=1)
    """The paper's number."""
    max_bytes: int = Field(default=8 << 20, ge=1)
    """Inputs and outputs of the kept tests together (our choice); not in `paper` mode."""
    max_seconds: float = Field(default=30.0, gt=0)
    """CPU seconds of the slowest accepted program over the kept tests, each counted as the most that needs no longer
    limit (0.4, 1, 2 or 10 s; our choice); not in `paper` mode."""


class VerifySettings(Config):
    """What a problem must show by execution. All values are our choice unless said otherwise."""

    runs: int = Field(default=3, ge=1)
    """How often every accepted program must pass; further runs take the tests in another order, the last one under
    the derived limits."""
    max_accepted_crashing: float = Field(default=0.5, ge=0, lt=1)
    """Share of the accepted programs that may crash or hit a limit; they are dropped. A refused output never may be."""
    max_wrong_passing: float = Field(default=0.5, ge=0, le=1)
    """Share of the known-wrong programs that may pass all tests; beyond it the tests are too weak."""
    max_slow_passing: float = Field(default=1.0, ge=0, le=1)
    """Share of the programs known to be too slow, or to solve a part, that may pass all tests. Where more than half do,
    the problem has the flag `slow_passes`: its tests tell right from wrong, not fast from slow."""
    max_accepted: int = Field(default=6, ge=1)
    """Accepted programs that are run, those in the language of the answers first."""
    max_wrong: int = Field(default=24, ge=0)
    """Known-wrong, slow and partial programs that are run."""
    python2: Literal["convert", "set_aside"] = "convert"
    """Whether Python 2 references are converted; what does not pass all tests afterwards is set aside."""
    trial_seconds: float = Field(default=20.0, gt=0, le=MOST_SECONDS)
    """CPU seconds a test that accepted programs get while no limit is derived, or the source's limit if longer."""
    multiplier: float = Field(default=5.0, ge=1)
    """Limit over the slowest accepted run where the source states neither a limit nor this number (Kattis' own)."""
    headroom: float = Field(default=1.5, ge=1)
    """A limit that the source has is kept if the slowest accepted run fits this often; otherwise raised to that."""
    interpreted_factor: float = Field(default=4.0, ge=1)
    """What a derived limit is multiplied by for Python answers where only compiled programs were timed."""
    limit_steps_seconds: tuple[float, ...] = Field(default=(2.0, 5.0, 10.0), min_length=1)
    """A derived limit is rounded up to one of these; the last one is the largest: a problem that needs longer
    costs a training step minutes for each wrong answer. Few and far apart, so that two builds on busy machines derive
    the same."""
    trial_memory_mib: int = Field(default=2048, ge=LEAST_MEMORY_MIB, le=MOST_MEMORY_MIB)
    """Memory that accepted programs get while no limit is derived, or the source's limit if larger."""
    default_memory_mib: int = Field(default=512, ge=LEAST_MEMORY_MIB, le=MOST_MEMORY_MIB)
    """Limit where the source has none; twice the largest accepted run where that is more."""
    all_tests_shown: Literal["refuse", "flag"] = "refuse"
    """What becomes of a problem whose statement shows every test that is kept: writing them down passes."""
    batch_problems: int = Field(default=64, ge=1)
    """Problems whose programs are judged in one batch."""
    choice: ChoiceSettings = ChoiceSettings()

    @model_validator(mode="after")
    def _steps_rise(self) -> VerifySettings:
        steps = self.limit_steps_seconds
        if list(steps) != sorted(set(steps)) or steps[0] <= 0 or steps[-1] > MOST_SECONDS:
            raise ValueError(f"limit_steps_seconds = {steps}; give rising numbers above 0, {MOST_SECONDS:g} at most")
        return self


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
