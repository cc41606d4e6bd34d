"""Effects over a few seeds and many problems, with an interval whose width is never zero.

Each seed gives one difference: levels are compared seed by seed, since runs of one seed see the same problems in the
same order, and unit by unit. Two things were drawn at random, seeds and problems, and both widen the interval:

- seeds: the variance of the seeds' differences over their number;
- problems: the variance of the mean difference when the problems (units), the same for every seed, are resampled.

The interval is the mean -+ Student's t times the root of their sum, with Welch and Satterthwaite's degrees of freedom.
A percentile bootstrap of three seeds would cover 70 to 80 % and not 95: `tests/lab/test_claims.py` measures.

If nothing varied, equal values are no certainty: of n draws with one value, the largest share that could be otherwise
is 1 - 0.025^(1/n) (Clopper and Pearson 1934; about 3.7 / n), which bounds the mean of a quantity with known bounds;
that of another has none. Differences of single yes-or-no draws that hardly vary get Bonett and Price's interval
for paired proportions (2012), which adds one pair each way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from microcoder.lab.studies.accuracy import ends_without_spread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_NUM_WEIGHTINGS = 2000
_ROUNDING = 1e-9
"""Size below which a difference counts as rounding."""
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Effect:
    """A mean difference over seeds with its 95 % interval; the ends are infinite if unknown, as from one seed."""

    value: float
    low: float
    high: float
    num_seeds: int
    """Number of seeds with distinct values."""
    num_units: int
    """Held-out problems, or other units, over which the metric is a mean; 0 if there are none."""
    by_seed: tuple[float, ...]
    freedom: float = math.inf
    """Degrees of freedom of the interval."""

    @property
    def half_width(self) -> float:
        """The distance from the value to the farther end of the interval."""
        return max(self.value - self.low, self.high - self.value)

    @property
    def is_nothing(self) -> bool:
        """Whether every seed gave zero."""
        return all(abs(value) < _ROUNDING for value in self.by_seed)

    def p_above(self, bound: float) -> float:
        """Return the one-sided p-value of "the true effect is at most `bound`"."""
        return self._tail(self.value - bound, self.value - self.low)

    def p_below(self, bound: float) -> float:
        """Return the one-sided p-value of "the true effect is at least `bound`"."""
        return self._tail(bound - self.value, self.high - self.value)

    def _tail(self, distance: float, half: float) -> float:
        """Return the p-value of a distance: `half` is the 97.5 % quantile times the standard error."""
        if not math.isfinite(half):
            return 1.0
        if half <= 0:
            return 0.0 if distance > 0 else 1.0
        from scipy import special

        value = distance / half * student_quantile(1 - ALPHA / 2, self.freedom)
        # The chance that Student's t is above the value.
        return float(special.stdtr(self.freedom, -value))


# scipy.special rather than scipy.stats: the same functions, without a second of imports.
def student_quantile(share: float, freedom: float) -> float:
    """Return a quantile of Student's t; of the normal distribution for infinite degrees of freedom."""
    from scipy import special

    return float(special.stdtrit(freedom, share))


def expected_half_width(sd: float, num_seeds: int) -> float:
    """Return the half width of the 95 % interval of a mean over seeds whose standard deviation is `sd`."""
    if num_seeds < 2:
        return math.inf
    return student_quantile(1 - ALPHA / 2, num_seeds - 1) * sd / math.sqrt(num_seeds)


@cache
def draw_weightings(num_problems: int) -> Array:
    """Return weights of problems (P, B): all equal in the first column, then bootstrap samples."""
    import numpy as np

    equal = np.full((num_problems, 1), 1.0 / num_problems)
    if num_problems < 2:
        return equal
    counts = np.random.default_rng(0).multinomial(num_problems, equal[:, 0], size=_NUM_WEIGHTINGS)
    return np.hstack([equal, counts.T / num_problems])


def estimate_effect(
    differences_S_B: Array, *, num_problems: int = 0, span: float | None = None
) -> Effect:
    """Estimate an effect from the differences of the seeds.

    Args:
        differences_S_B: a row a seed; the difference over the problems as they are in the first column, over
            resampled problems in the others (none if there is nothing to resample). Seeds with equal rows over
            resampled problems are one set of samples, counted once, unless they show no difference at all.
        num_problems: held-out problems that were resampled.
        span: the largest difference that the metric can show in either direction; None if it has no bounds.
    """
    import numpy as np

    if num_problems > 1 and differences_S_B.shape[1] > 1:
        _, first = np.unique(differences_S_B, axis=0, return_index=True)
        is_nothing = ~differences_S_B.any(axis=1)
        differences_S_B = differences_S_B[np.union1d(first, np.flatnonzero(is_nothing))]
    by_seed = differences_S_B[:, 0]
    if len(by_seed) < 2:
        # Trained once: what another seed would give is unknown.
        return Effect(float(by_seed[0]), -math.inf, math.inf, 1, num_problems, (float(by_seed[0]),))
    of_seeds = float(np.var(by_seed, ddof=1)) / len(by_seed)
    resampled = differences_S_B[:, 1:].mean(axis=0)
    of_problems = float(np.var(resampled, ddof=1)) if resampled.size > 1 else 0.0
    return _interval(by_seed, num_problems, of_seeds=of_seeds, of_units=of_problems, span=span)


def estimate_rows(
    by_seed: Mapping[int, Mapping[str, float]], *, span: float | None = None
) -> Effect:
    """Estimate an effect from a measurement's paired rows.

    Units that occur in several seeds are crossed with them, as problems with runs: both variances count. Units of
    their own in each seed are nested: they widen the seeds' spread already. With a single seed only units count.

    Args:
        by_seed: seed -> unit -> difference between the levels.
        span: as in `estimate_effect`.
    """
    import numpy as np

    distinct = {
        tuple(sorted(units.items())): seed for seed, units in reversed(list(by_seed.items()))
    }
    rows = [by_seed[seed] for seed in sorted(distinct.values())]
    means = np.asarray([float(np.mean(list(units.values()))) for units in rows])
    num_units = len({name for units in rows for name in units})
    is_crossed = num_units < sum(map(len, rows)) or len(rows) == 1
    values = np.asarray([value for units in rows for value in units.values()])
    # Differences of single yes-or-no draws, few of which differ.
    if (
        span is not None
        and np.isin(values, (-span, 0.0, span)).all()
        and 0 < np.count_nonzero(values) <= _FEW
    ):
        return _interval_of_pairs(values, means, num_units, span=span)
    of_seeds = float(np.var(means, ddof=1)) / len(means) if len(means) > 1 else 0.0
    of_units = 0.0
    if is_crossed and num_units > 1:
        units = {name: [row[name] for row in rows if name in row] for row in rows for name in row}
        of_units = float(np.var([np.mean(found) for found in units.values()], ddof=1)) / num_units
    return _interval(means, num_units, of_seeds=of_seeds, of_units=of_units, span=span)


_FEW = 12
"""Number of yes-or-no pairs that differ up to which Student's interval would be too narrow."""


def _interval_of_pairs(values: Array, by_seed: Array, num_units: int, *, span: float) -> Effect:
    """Return the effect with Bonett and Price's interval: one more pair in each direction."""
    import numpy as np

    padded = np.concatenate([values / span, [1.0, -1.0]])
    centre = float(np.mean(padded))
    error = math.sqrt((float(np.mean(padded**2)) - centre**2) / len(padded))
    half = span * student_quantile(1 - ALPHA / 2, math.inf) * error
    value = float(np.mean(values))
    low, high = min(value, span * centre - half), max(value, span * centre + half)
    return Effect(
        value, max(low, -span), min(high, span), len(by_seed), num_units, tuple(map(float, by_seed))
    )


def _interval(
    by_seed: Array, num_units: int, *, of_seeds: float, of_units: float, span: float | None
) -> Effect:
    import numpy as np

    num_seeds, value, each = len(by_seed), float(np.mean(by_seed)), tuple(map(float, by_seed))
    if of_seeds + of_units <= _ROUNDING**2 * (1 + value**2):
        low, high = -math.inf, math.inf
        if span is not None:
            low, high = ends_without_spread(value, max(num_seeds, num_units), -span, span)
        return Effect(value, low, high, num_seeds, num_units, each)
    freedom = (of_seeds + of_units) ** 2 / (
        of_seeds**2 / max(1, num_seeds - 1) + of_units**2 / max(1, num_units - 1)
    )
    half = student_quantile(1 - ALPHA / 2, freedom) * math.sqrt(of_seeds + of_units)
    return Effect(value, value - half, value + half, num_seeds, num_units, each, freedom)
