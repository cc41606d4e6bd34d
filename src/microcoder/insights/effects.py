"""Effects over a few seeds and many problems, and what they say about a claim.

Each seed gives one difference: levels are compared seed by seed, since runs of one seed see the same problems in the
same order. Two things were drawn at random, seeds and held-out problems, and both widen the interval:

- seeds: the variance of the seeds' differences over their number (what resampling seeds gives, times n / (n - 1));
- problems: the variance of the mean difference when the held-out problems are resampled, the same for every run.

The interval is the mean -+ Student's t times the root of their sum, with Welch and Satterthwaite's degrees of freedom.
A percentile bootstrap of three seeds would cover 70 to 80 % and not 95: `tests/insights/test_claims_rates.py` measures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from microcoder.insights.study import Direction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NUM_WEIGHTINGS = 2000
_CONFIDENCE = 0.95


class Verdict(StrEnum):
    """What finished runs say about a claim."""

    HOLDS = "holds"
    DOES_NOT = "does not"
    UNDECIDED = "undecided"
    CANNOT = "cannot appear"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Effect:
    """A mean difference over seeds with its 95 % interval; the interval is unbounded with fewer than two seeds."""

    value: float
    low: float
    high: float
    num_seeds: int
    num_problems: int
    """Held-out problems behind it; 0 where the metric is none over them."""
    by_seed: tuple[float, ...]


def draw_weightings(num_problems: int, *, seed: int = 0, num: int = NUM_WEIGHTINGS) -> Array:
    """Return weights of problems (P, 1 + num): all equal in the first column, then bootstrap samples."""
    import numpy as np

    equal = np.full((num_problems, 1), 1.0 / num_problems)
    if num_problems < 2:
        return equal
    counts = np.random.default_rng(seed).multinomial(num_problems, equal[:, 0], size=num)
    return np.hstack([equal, counts.T / num_problems])


def estimate_effect(differences_S_B: Array, *, num_problems: int = 0, resolution: float = 0.0) -> Effect:
    """Return the effect that the seeds' differences show.

    Args:
        differences_S_B: a row a seed; the difference over the problems as they are in the first column, over
            resampled problems in the others (none where there is nothing to resample).
        num_problems: held-out problems that were resampled.
        resolution: grid of the differences by construction, such as the times of evaluations; adds to the variance,
            since equal values on a coarse grid are no proof of no variance.
    """
    import numpy as np

    by_seed = differences_S_B[:, 0]
    num_seeds, value = len(by_seed), float(np.mean(by_seed))
    if num_seeds < 2:
        return Effect(value, -math.inf, math.inf, num_seeds, num_problems, tuple(map(float, by_seed)))
    of_seeds = float(np.var(by_seed, ddof=1)) / num_seeds + resolution**2 / 6 / num_seeds
    resampled = differences_S_B[:, 1:].mean(axis=0)
    of_problems = float(np.var(resampled, ddof=1)) if resampled.size > 1 else 0.0
    half = 0.0
    if of_seeds + of_problems > 0:
        freedom = (of_seeds + of_problems) ** 2 / (
            of_seeds**2 / (num_seeds - 1) + of_problems**2 / max(1, num_problems - 1)
        )
        half = student_quantile(0.5 + _CONFIDENCE / 2, freedom) * math.sqrt(of_seeds + of_problems)
    return Effect(value, value - half, value + half, num_seeds, num_problems, tuple(map(float, by_seed)))


def judge_effect(effect: Effect, *, direction: Direction, least: float) -> Verdict:
    """Say what an effect means for a predicate.

    | direction | holds | does not |
    |---|---|---|
    | higher | interval above 0, mean at least `least` | interval below `least` |
    | lower | the same, mirrored | the same, mirrored |
    | same | interval within -+`least` | interval outside it, or off 0 with a mean of at least `least` |

    Anything else is undecided: more seeds, or a larger effect, would be needed.
    """
    if not math.isfinite(effect.value):
        return Verdict.NOT_RUN
    if direction == "lower":
        effect = Effect(-effect.value, -effect.high, -effect.low, effect.num_seeds, effect.num_problems, ())
    if direction == "same":
        if -least < effect.low and effect.high < least:
            return Verdict.HOLDS
        is_off_zero = effect.low > 0 or effect.high < 0
        is_outside = effect.low >= least or effect.high <= -least
        return Verdict.DOES_NOT if is_outside or (is_off_zero and abs(effect.value) >= least) else Verdict.UNDECIDED
    if effect.low > 0 and effect.value >= least:
        return Verdict.HOLDS
    return Verdict.DOES_NOT if effect.high < least else Verdict.UNDECIDED


def join_verdicts(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of a claim whose predicates must all hold."""
    for decisive in (Verdict.NOT_RUN, Verdict.DOES_NOT, Verdict.UNDECIDED):
        if decisive in verdicts:
            return decisive
    return Verdict.HOLDS


@lru_cache(maxsize=1024)
def student_quantile(share: float, freedom: float) -> float:
    """Return a quantile of Student's t above 0.5, for any positive degrees of freedom, to about 1e-9."""
    low, high = 0.0, 1.0
    while _student_cdf(high, freedom) < share:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_cdf(middle, freedom) < share else (low, middle)
    return (low + high) / 2


def _student_cdf(t: float, freedom: float) -> float:
    """For t >= 0, by the regularised incomplete beta function."""
    return 1.0 - 0.5 * _beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _beta(x: float, a: float, b: float) -> float:
    """Regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta(1 - x, b, a)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)) / a
    fraction, c, d = 1.0, 1.0, 0.0
    for i in range(400):
        m = i // 2
        if i == 0:
            numerator = 1.0
        elif i % 2 == 0:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / (1.0 + numerator * d or 1e-300)
        c = 1.0 + numerator / c or 1e-300
        fraction *= c * d
        if abs(1.0 - c * d) < 1e-14:
            break
    return front * (fraction - 1.0)
