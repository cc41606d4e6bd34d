"""Accuracy with a confidence interval over problems.

Samples of one problem are not independent: an easy problem is solved by nearly all of them. What was drawn
independently are the *problems*, so every interval here resamples problems, each with all its samples (cluster
bootstrap, percentiles, fixed seed). Before and after training are compared problem by problem (paired), which
removes the spread between easy and hard problems from the difference.

The intervals cover the choice of problems. They do not cover the training seed: that takes several runs.
Unscored samples (None) are left out; a problem with no scored sample is left out whole and so lowers
`num_problems`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Solved = Mapping[str, Sequence[bool | None]]
"""Problem id -> solved or not, sample by sample; None is unscored."""

NUM_RESAMPLES = 10_000
_TAIL = 0.025
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
        """The interval lies on one side of zero: for a difference, more than the choice of problems explains."""
        return self.low > 0 or self.high < 0


def estimate_accuracy(solved: Solved, *, k: int = 1, seed: int = 0) -> Estimate | None:
    """Return mean pass@k over problems (k = 1: mean accuracy), or None if no problem has k scored samples."""
    by_problem = _pass_at_k_by_problem(solved, k)
    return _bootstrap([by_problem[name] for name in sorted(by_problem)], lowest=0.0, seed=seed)


def estimate_difference(before: Solved, after: Solved, *, k: int = 1, seed: int = 0) -> Estimate | None:
    """Return the mean change of pass@k over the problems that both sides scored; None if there are none."""
    old, new = _pass_at_k_by_problem(before, k), _pass_at_k_by_problem(after, k)
    both = sorted(old.keys() & new.keys())
    return _bootstrap([new[name] - old[name] for name in both], lowest=-1.0, seed=seed)


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float:
    """Return the unbiased estimate of the chance that one of `k` samples is correct (Chen et al. 2021).

    It is the share of the size-`k` subsets of the samples that hold a correct one.
    """
    if not 0 <= num_correct <= num_samples or not 1 <= k <= num_samples:
        raise ValueError(
            f"pass@{k} of {num_correct} in {num_samples} samples; needs 0 <= correct <= samples, 1 <= k <= samples"
        )
    return 1.0 - math.comb(num_samples - num_correct, k) / math.comb(num_samples, k)


def _pass_at_k_by_problem(solved: Solved, k: int) -> dict[str, float]:
    scored = {name: [bool(s) for s in samples if s is not None] for name, samples in solved.items()}
    return {name: pass_at_k(len(samples), sum(samples), k) for name, samples in scored.items() if len(samples) >= k}


def _bootstrap(values: Sequence[float], *, lowest: float, seed: int) -> Estimate | None:
    """Mean of per-problem values in [lowest, 1] with its percentile interval."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if min(values) == max(values):
        return _estimate_without_spread(values[0], len(values), lowest)
    import numpy as np

    generator = np.random.default_rng(seed)
    array = np.asarray(values)
    means = np.concatenate(
        [
            array[generator.integers(len(array), size=(_RESAMPLES_AT_ONCE, len(array)))].mean(axis=1)
            for _ in range(NUM_RESAMPLES // _RESAMPLES_AT_ONCE)
        ]
    )
    low, high = (float(quantile) for quantile in np.quantile(means, [_TAIL, 1 - _TAIL]))
    return Estimate(mean, min(low, mean), max(high, mean), len(values))


def _estimate_without_spread(value: float, num_problems: int, lowest: float) -> Estimate:
    """Widen an interval for equal values: the bootstrap would claim certainty from 0 of 5 solved.

    `unseen` is the largest share of problems that could behave otherwise and still, with probability 2.5 %, never
    be drawn (at value 0 or 1 of an accuracy this is the exact binomial interval).
    """
    unseen = 1 - _TAIL ** (1 / num_problems)
    return Estimate(value, value + unseen * (lowest - value), value + unseen * (1.0 - value), num_problems)
