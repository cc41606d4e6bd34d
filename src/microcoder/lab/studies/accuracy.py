"""Accuracy of one run, pass@k and shares, with intervals.

Accuracy of one run has an interval over problems: what was drawn independently are the *problems*, not their samples,
so they are resampled, each with all its samples (cluster bootstrap, percentiles, fixed seed), and before and after
training are compared problem by problem. It does not cover the training seed. Unscored samples (None) are left out; a
problem with no scored sample is left out whole and so lowers `num_problems`.
"""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

Solved = Mapping[str, Sequence[bool | None]]
"""Problem id -> whether each sample solved it; None is unscored."""

NUM_RESAMPLES = 10_000
TAIL = 0.025
_NORMAL = 1.959963984540054
"""Normal quantile of a 95 % interval."""
_RESAMPLES_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over problems with its 95 % interval."""

    value: float
    low: float
    high: float
    num_problems: int

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval is on one side of zero: for a difference, more than the choice of problems explains."""
        return self.low > 0 or self.high < 0


def estimate_accuracy(solved: Solved, *, k: int = 1) -> Estimate | None:
    """Return mean pass@k over problems (k = 1: mean accuracy), or None if no problem has k scored samples."""
    by_problem = pass_by_problem(solved, k)
    return _bootstrap(tuple(by_problem[name] for name in sorted(by_problem)), lowest=0.0)


def estimate_difference(before: Solved, after: Solved, *, k: int = 1) -> Estimate | None:
    """Return the mean change of pass@k over the problems that both sides scored; None if there are none."""
    old, new = pass_by_problem(before, k), pass_by_problem(after, k)
    both = sorted(old.keys() & new.keys())
    return _bootstrap(tuple(new[name] - old[name] for name in both), lowest=-1.0)


def wilson_interval(hits: int, asked: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927), valid also at 0 and 1; (0, 1) if nothing was asked."""
    if not asked:
        return 0.0, 1.0
    share = hits / asked
    centre = share + _NORMAL * _NORMAL / (2 * asked)
    half = _NORMAL * math.sqrt(
        share * (1 - share) / asked + _NORMAL * _NORMAL / (4 * asked * asked)
    )
    scale = 1 + _NORMAL * _NORMAL / asked
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float:
    """Return the unbiased estimate of the chance that one of `k` samples is correct (Chen et al. 2021).

    It is the share of the size-`k` subsets of the samples that hold a correct one.
    """
    if not 0 <= num_correct <= num_samples or not 1 <= k <= num_samples:
        raise ValueError(
            f"pass@{k} of {num_correct} in {num_samples} samples; needs 0 <= correct <= samples, 1 <= k <= samples"
        )
    return 1.0 - math.comb(num_samples - num_correct, k) / math.comb(num_samples, k)


def pass_by_problem(solved: Solved, k: int = 1) -> dict[str, float]:
    """Return pass@k of each problem that has k scored samples."""
    scored = {name: [bool(s) for s in samples if s is not None] for name, samples in solved.items()}
    return {
        name: pass_at_k(len(samples), sum(samples), k)
        for name, samples in scored.items()
        if len(samples) >= k
    }


# A run that is followed is drawn anew at each step, and its evaluations do not change.
@lru_cache(maxsize=256)
def _bootstrap(values: tuple[float, ...], *, lowest: float) -> Estimate | None:
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if min(values) == max(values):
        # The bootstrap would claim certainty from 0 of 5 solved.
        return Estimate(
            values[0], *ends_without_spread(values[0], len(values), lowest, 1.0), len(values)
        )
    try:
        import numpy as np
    except ImportError:  # The same, slower, by other draws: a second for five hundred problems.
        draw = random.Random(0).choices
        means = sorted(sum(draw(values, k=len(values))) / len(values) for _ in range(NUM_RESAMPLES))
        low, high = (means[round(share * (NUM_RESAMPLES - 1))] for share in (TAIL, 1 - TAIL))
        return Estimate(mean, min(low, mean), max(high, mean), len(values))
    generator, array = np.random.default_rng(0), np.asarray(values)
    size = (_RESAMPLES_AT_ONCE, len(array))
    rounds = range(NUM_RESAMPLES // _RESAMPLES_AT_ONCE)
    means = np.concatenate(
        [array[generator.integers(len(array), size=size)].mean(axis=1) for _ in rounds]
    )
    low, high = (float(quantile) for quantile in np.quantile(means, [TAIL, 1 - TAIL]))
    return Estimate(mean, min(low, mean), max(high, mean), len(values))


def ends_without_spread(
    value: float, num_draws: int, lowest: float, highest: float
) -> tuple[float, float]:
    """Return the ends of a 95 % interval of a mean of which `num_draws` draws all have one value, given its bounds.

    The largest share of draws that could be otherwise and still, with probability 2.5 %, never be seen, is put at each
    bound (for an accuracy of 0 or 1 this is the exact binomial interval).
    """
    unseen = 1 - TAIL ** (1 / num_draws)
    return value + unseen * (lowest - value), value + unseen * (highest - value)
