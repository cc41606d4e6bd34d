"""Statistical power of a number of seeds, computed before the runs from the spread of a pilot."""

from __future__ import annotations

import math
from dataclasses import dataclass

from microcoder.insights.catalogue import INSIGHTS
from microcoder.insights.design import Claim, Direction
from microcoder.insights.effects import ALPHA, student_quantile

_MOST_SEEDS = 10_000
_GRID = 400


@dataclass(frozen=True, slots=True)
class Power:
    """Expected half width and power of a number of seeds."""

    num_seeds: int
    half_width: float
    """Of the 95 % interval, in the metric's unit."""
    power: float
    """Chance that the interval shows the claimed direction if the true effect is the smallest of interest; for `same`,
    that it lies within if there is no difference."""
    strict_power: float
    """The same if the claim is the first of Holm's steps: at 5 % over all claims of the catalogue."""


def expect_power(claim: Claim, *, num_seeds: int) -> Power | None:
    """Return the power of a claim's primary predicate with some seeds; None for a claim without one."""
    if claim.primary is None or claim.spread is None:
        return None
    sd, least = claim.spread.sd, claim.primary.least
    return Power(
        num_seeds,
        half_width=expected_half_width(sd, num_seeds),
        power=power_of(sd, least, num_seeds=num_seeds, direction=claim.primary.direction),
        strict_power=power_of(
            sd, least, num_seeds=num_seeds, direction=claim.primary.direction, alpha=ALPHA / len(INSIGHTS)
        ),
    )


def expected_half_width(sd: float, num_seeds: int) -> float:
    """Return the half width of the 95 % interval of a mean over seeds."""
    if num_seeds < 2:
        return math.inf
    return student_quantile(1 - ALPHA / 2, num_seeds - 1) * sd / math.sqrt(num_seeds)


def power_of(sd: float, least: float, *, num_seeds: int, direction: Direction, alpha: float = ALPHA) -> float:
    """Return the power of the paired t-test (noncentral t) against `least`, or of two one-sided tests for `same`."""
    from scipy import special

    if num_seeds < 2:
        return 0.0
    if direction == "same":
        return _power_within(sd, least, num_seeds=num_seeds, alpha=alpha)
    freedom, shift = num_seeds - 1, least * math.sqrt(num_seeds) / sd
    return 1.0 - float(special.nctdtr(freedom, shift, student_quantile(1 - alpha / 2, freedom)))


def _power_within(sd: float, least: float, *, num_seeds: int, alpha: float) -> float:
    """Chance that the interval lies within -+`least` if the truth is 0, averaged over the spread that may be seen."""
    import numpy as np
    from scipy import special

    freedom, error = num_seeds - 1, sd / math.sqrt(num_seeds)
    shares = (np.arange(_GRID) + 0.5) / _GRID
    halves = student_quantile(1 - alpha / 2, freedom) * error * np.sqrt(special.chdtri(freedom, shares) / freedom)
    room = np.maximum(0.0, least - halves)
    return float(np.mean(2 * special.ndtr(room / error) - 1))


def count_seeds(sd: float, *, half_width: float) -> int:
    """Return the fewest seeds whose expected half width is at most this one."""
    num = 2
    while expected_half_width(sd, num) > half_width and num < _MOST_SEEDS:
        num += max(1, num // 50)
    return num
