"""Accuracy of one run, pass@k and shares, with intervals.

The interval of a run's accuracy is over problems, since *problems* were drawn independently and
their samples were not. So problems are resampled, each with all its samples (cluster bootstrap,
percentiles, fixed seed). Before and after training are compared problem by problem. The interval
does not cover the training seed.

Unscored samples (None) are left out. A problem with no scored sample is left out whole, which
lowers `num_problems`.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Solved = Mapping[str, Sequence[bool | None]]
"""Problem id -> whether each sample solved it; None is unscored."""

Ends = tuple[float, float]
"""Lower and upper end of an interval."""

NUM_RESAMPLES = 10_000
"""Number of resamples of the problems from which an interval is read."""

TAIL = 0.025
"""Share of the resamples outside each end of a 95 % interval."""

# Written out, so that this module needs no scipy.
_NORMAL = 1.959963984540054
"""Normal quantile of a 95 % interval."""

_RESAMPLES_AT_ONCE = 1_000
"""Number of resamples that are held in memory together."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over problems with its 95 % interval."""

    value: float
    low: float
    high: float
    num_problems: int

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is on one side of zero.

        A difference is then larger than the choice of problems explains.
        """
        return self.low > 0 or self.high < 0


def estimate_accuracy(solved: Solved, *, k: int = 1) -> Estimate | None:
    """Return mean pass@k over problems; None if no problem has k scored samples.

    For k = 1 it is the mean accuracy.
    """
    by_problem = pass_by_problem(solved, k)
    values = tuple(by_problem[name] for name in sorted(by_problem))
    return _bootstrap(values, lowest=0.0)


def estimate_difference(
    before: Solved,
    after: Solved,
    *,
    k: int = 1,
) -> Estimate | None:
    """Return the mean change of pass@k over the problems that both sides scored.

    It is None if there are no such problems.
    """
    old = pass_by_problem(before, k)
    new = pass_by_problem(after, k)
    # Paired by problem: how hard problems are then cancels out of the difference.
    both = sorted(old.keys() & new.keys())
    changes = tuple(new[name] - old[name] for name in both)
    return _bootstrap(changes, lowest=-1.0)


def estimate_mean(values: Sequence[float], *, lowest: float = 0.0) -> Estimate | None:
    """Return the mean of one value a problem, each from `lowest` to 1; None without any."""
    return _bootstrap(tuple(values), lowest=lowest)


def wilson_interval(hits: float, asked: int) -> Ends:
    """Return the 95 % score interval of a share, valid also at 0 and 1 (Wilson 1927).

    It is (0, 1) if nothing was asked.
    """
    if not asked:
        return 0.0, 1.0
    share = hits / asked
    z_squared = _NORMAL * _NORMAL
    centre = share + z_squared / (2 * asked)
    variance = share * (1 - share) / asked + z_squared / (4 * asked * asked)
    half = _NORMAL * math.sqrt(variance)
    scale = 1 + z_squared / asked
    low = (centre - half) / scale
    high = (centre + half) / scale
    return max(0.0, low), min(1.0, high)


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float:
    """Return an unbiased estimate of the chance that one of `k` samples is correct.

    It is the share of the size-`k` subsets of the samples that hold a correct one (Chen et al.
    2021).
    """
    if not 0 <= num_correct <= num_samples or not 1 <= k <= num_samples:
        raise ValueError(
            f"pass@{k} of {num_correct} in {num_samples} samples; needs 0 <= correct <= samples, "
            "1 <= k <= samples"
        )
    # The plain 1 - (1 - p)^k with an estimated p is biased, hence counts of subsets.
    num_wrong = num_samples - num_correct
    return 1.0 - math.comb(num_wrong, k) / math.comb(num_samples, k)


def pass_by_problem(solved: Solved, k: int = 1) -> dict[str, float]:
    """Return pass@k of each problem that has k scored samples."""
    by_problem = {}
    # An unscored sample is a failure of our machine: to count it as wrong would lower the accuracy.
    for name, samples in solved.items():
        scored = [bool(is_solved) for is_solved in samples if is_solved is not None]
        if len(scored) >= k:
            by_problem[name] = pass_at_k(len(scored), sum(scored), k)
    return by_problem


# A run that is followed is drawn again at each step, and its evaluations do not change.
@lru_cache(maxsize=256)
def _bootstrap(values: tuple[float, ...], *, lowest: float) -> Estimate | None:
    """Return the mean of values with its interval, by resampling them; None without values."""
    if not values:
        return None
    num = len(values)
    if min(values) == max(values):
        # The bootstrap would claim certainty from 0 of 5 solved.
        low, high = ends_without_spread(values[0], num, lowest, 1.0)
        return Estimate(values[0], low, high, num)
    try:
        low, high = _resample_by_numpy(values)
    except ImportError:
        # The same, slower, by other draws: a second for five hundred problems.
        low, high = _resample(values)
    mean = math.fsum(values) / num
    # Of few or very uneven values, quantiles of resamples can miss the mean itself.
    return Estimate(mean, min(low, mean), max(high, mean), num)


def _resample(values: tuple[float, ...]) -> Ends:
    """Return the bounds of a bootstrap interval for a mean, computed without numpy."""
    num = len(values)
    # A fixed seed, as with numpy: an interval must not change from look to look.
    draw = random.Random(0).choices
    means = sorted(sum(draw(values, k=num)) / num for _ in range(NUM_RESAMPLES))
    last = NUM_RESAMPLES - 1
    low = means[round(TAIL * last)]
    high = means[round((1 - TAIL) * last)]
    return low, high


def _resample_by_numpy(values: tuple[float, ...]) -> Ends:
    """Return the quantiles of the means of resamples; ImportError without numpy."""
    import numpy as np

    # A fixed seed: the same run must give the same interval each time it is looked at.
    generator = np.random.default_rng(0)
    # Values are means of a problem's samples, so each problem is drawn with all of them.
    array = np.asarray(values)
    size = (_RESAMPLES_AT_ONCE, len(array))
    parts = []
    # In pieces, which bounds the memory.
    for _ in range(NUM_RESAMPLES // _RESAMPLES_AT_ONCE):
        drawn = array[generator.integers(len(array), size=size)]
        parts.append(drawn.mean(axis=1))
    means = np.concatenate(parts)
    low, high = np.quantile(means, [TAIL, 1 - TAIL])
    return float(low), float(high)


def ends_without_spread(
    value: float,
    num_draws: int,
    lowest: float,
    highest: float,
) -> Ends:
    """Return the ends of a 95 % interval of a mean, for draws that all have the same value.

    The interval allows for draws that are otherwise but were not seen: the largest share of them
    that stays unseen with probability 2.5 % is put at each bound. For an accuracy of 0 or 1 this is
    the exact binomial interval.

    Args:
        value: the value of all draws.
        num_draws: number of draws.
        lowest: lower bound of a draw.
        highest: upper bound of a draw.
    """
    unseen = 1 - TAIL ** (1 / num_draws)
    low = value + unseen * (lowest - value)
    high = value + unseen * (highest - value)
    return low, high
