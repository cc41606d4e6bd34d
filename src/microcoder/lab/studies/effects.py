"""Effects over starts, with an interval whose width is never zero.

Each seed gives one difference: levels are compared seed by seed, since runs of one seed see the
same problems in the same order. Seeds that start from the same model are not independent draws:
what a run learns depends on its start. So the differences of one start are averaged first.
Student's interval is then taken over the starts; its degrees of freedom are their number, less one.
Held-out problems are the same for every run, and are taken as given.

It is not always starts that are drawn at random. Where all runs begin at one given model, such as a
published checkpoint, every seed counts: the claim is then about that model. Where a measurement
says that its rows are a sample of units (problems, programs), the units count.

Equal values are no certainty. Of n draws with one value, the largest share that could be otherwise
is 1 - 0.025^(1/n) (Clopper and Pearson 1934; about 3.7 / n). For a quantity with known bounds this
bounds the mean; without bounds there is no interval. Differences of single yes-or-no draws that
hardly vary get Bonett and Price's interval for paired proportions (2012), which adds one pair each
way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from microcoder.lab.studies.accuracy import Ends, ends_without_spread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_ROUNDING = 1e-9
"""Size below which a difference counts as rounding."""

ALPHA = 0.05
"""Chance of a wrong rejection, two-sided; intervals cover 1 - ALPHA."""

MIN_DRAWS = 8
"""Fewest independent draws, such as starts, from which a verdict is drawn.

Of eight draws that all show one sign the sign test's p-value is 0.8 %; of five it is 6 %, whatever
the effect.
"""

_FEW = 12
"""Number of yes-or-no pairs that differ up to which Student's interval would be too narrow."""

Drawn = Literal["starts", "seeds", "units"]
"""What an interval is over: what was drawn independently."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A mean difference with its 95 % interval; the ends are infinite where they are unknown.

    They are unknown with a single start.
    """

    value: float
    low: float
    high: float
    num_draws: int
    """Number of independent draws: starts, or what `drawn` says."""
    drawn: Drawn = "starts"
    num_units: int = 0
    """Held-out problems, or other units, over which the metric is a mean; 0 if there are none."""
    by_seed: tuple[float, ...] = ()
    by_start: tuple[float, ...] = ()
    """Mean of each start's seeds, in the order of their first seeds; empty if starts are not
    what was drawn."""
    freedom: float = math.inf
    """Degrees of freedom of the interval."""

    @property
    def half_width(self) -> float:
        """Half the width of the interval: the distance from the value to the farther end."""
        return max(self.value - self.low, self.high - self.value)

    @property
    def is_nothing(self) -> bool:
        """Whether every seed gave zero."""
        # By seed and not by start: differences of opposite sign would cancel in a mean.
        return all(abs(value) < _ROUNDING for value in self.by_seed)

    @property
    def too_few(self) -> str:
        """Why this effect decides nothing, such as `3 starts, at least 8 are needed`.

        Empty if there are enough draws.
        """
        if self.num_draws >= MIN_DRAWS:
            return ""
        drawn: str = self.drawn
        if self.num_draws == 1:
            drawn = drawn.removesuffix("s")
        return f"{self.num_draws} {drawn}, at least {MIN_DRAWS} are needed"

    def p_above(self, bound: float) -> float:
        """Return the one-sided p-value of "the true effect is at most `bound`"."""
        return self._tail(self.value - bound, self.value - self.low)

    def p_below(self, bound: float) -> float:
        """Return the one-sided p-value of "the true effect is at least `bound`"."""
        return self._tail(bound - self.value, self.high - self.value)

    def _tail(self, distance: float, half: float) -> float:
        """Return the p-value of a distance.

        Args:
            distance: from the mean to the bound of the null hypothesis, up as against it.
            half: the 97.5 % quantile of the mean's distribution, times its standard error.
        """
        # An interval without ends excludes nothing, so nothing is rejected.
        if not math.isfinite(half):
            return 1.0
        # The interval ends at the mean itself only where that is the metric's own bound.
        if half <= 0:
            return 0.0 if distance > 0 else 1.0
        from scipy import special

        # Of the interval itself, so that interval and p-value never contradict each other.
        value = distance / half * student_quantile(1 - ALPHA / 2, self.freedom)
        # The chance that Student's t is above the value.
        return float(special.stdtr(self.freedom, -value))


# scipy.special rather than scipy.stats: the same functions, without a second of imports.
def student_quantile(share: float, freedom: float) -> float:
    """Return a quantile of Student's t.

    For infinite degrees of freedom it is the normal distribution's.
    """
    from scipy import special

    return float(special.stdtrit(freedom, share))


def expected_half_width(sd: float, num_draws: int) -> float:
    """Return the half width of the 95 % interval of a mean.

    Args:
        sd: standard deviation of the draws.
        num_draws: number of independent draws; of one the half width is infinite.
    """
    # One draw says nothing of how far apart draws are.
    if num_draws < 2:
        return math.inf
    quantile = student_quantile(1 - ALPHA / 2, num_draws - 1)
    return quantile * sd / math.sqrt(num_draws)


def group_seeds(models: Mapping[int, Sequence[str]]) -> list[list[int]]:
    """Return the seeds in groups that share a model, in the order of their first seeds.

    Args:
        models: seed -> the models that its compared runs start from. Two seeds that have any of
            them in common are in one group, also by way of a third.
    """
    groups: list[tuple[set[str], list[int]]] = []
    for seed in sorted(models):
        names = set(models[seed])
        members = [seed]
        apart = []
        # A seed may tie groups together that had nothing in common before.
        for known, seeds in groups:
            if known & names:
                names |= known
                members = [*seeds, *members]
            else:
                apart.append((known, seeds))
        groups = [*apart, (names, members)]
    return sorted(sorted(members) for _, members in groups)


def estimate_starts(
    by_seed: Mapping[int, float],
    groups: Sequence[Sequence[int]],
    *,
    drawn: Drawn = "starts",
    num_units: int = 0,
    span: float | None = None,
) -> Effect:
    """Estimate an effect from the differences of the seeds.

    A mean is taken for each start, and then over the starts.

    Args:
        by_seed: seed -> difference.
        groups: the seeds of each start, see `group_seeds`; those without a difference are left out.
        drawn: what a group is.
        num_units: problems or other units of which each difference is a mean, for display.
        span: the largest difference that the metric can show in either direction; None if it has no
            bounds.
    """
    # Seeds of one start hang together: each start counts once, however many seeds it has.
    by_start = []
    for seeds in groups:
        known = [by_seed[seed] for seed in seeds if seed in by_seed]
        if known:
            by_start.append(fmean(known))
    low, high = _ends(by_start, span=span)
    return Effect(
        value=fmean(by_start),
        low=low,
        high=high,
        num_draws=len(by_start),
        drawn=drawn,
        num_units=num_units,
        by_seed=tuple(by_seed[seed] for seed in sorted(by_seed)),
        by_start=tuple(by_start),
        freedom=_degrees_of_freedom(len(by_start)),
    )


def _degrees_of_freedom(num_draws: int) -> float:
    """Return the degrees of freedom of Student's interval; infinite if one draw gives no
    interval."""
    return float(num_draws - 1) if num_draws > 1 else math.inf


def estimate_units(
    by_seed: Mapping[int, Mapping[str, float]], *, span: float | None = None
) -> Effect:
    """Estimate an effect from paired rows whose units were drawn, whatever the seed.

    A mean is taken for each unit, and then over the units.

    Args:
        by_seed: seed -> unit -> difference between the levels.
        span: as in `estimate_starts`.
    """
    by_unit: dict[str, list[float]] = {}
    for seed in sorted(by_seed):
        for unit, value in by_seed[seed].items():
            by_unit.setdefault(unit, []).append(value)
    values = [fmean(of_unit) for _, of_unit in sorted(by_unit.items())]
    # Where few pairs differ, Student's interval is too narrow.
    if span is not None and _hardly_differ(values, span):
        low, high = _ends_of_pairs(values, span=span)
        # The normal distribution's quantile is in that interval.
        freedom = math.inf
    else:
        low, high = _ends(values, span=span)
        freedom = _degrees_of_freedom(len(values))
    return Effect(
        value=fmean(values),
        low=low,
        high=high,
        num_draws=len(values),
        drawn="units",
        num_units=len(values),
        by_seed=tuple(fmean(by_seed[seed].values()) for seed in sorted(by_seed)),
        freedom=freedom,
    )


def _hardly_differ(values: Sequence[float], span: float) -> bool:
    """Whether values are differences of single yes-or-no draws, of which only a few differ."""
    num_different = 0
    for value in values:
        if value not in (-span, 0.0, span):
            return False
        if value != 0.0:
            num_different += 1
    # Where none differs, the interval for draws without spread holds.
    return 0 < num_different <= _FEW


def _ends_of_pairs(values: Sequence[float], *, span: float) -> Ends:
    """Return the ends of Bonett and Price's interval, which adds a pair in each direction."""
    padded = [value / span for value in values]
    padded += [1.0, -1.0]
    centre = fmean(padded)
    variance = fmean(value**2 for value in padded) - centre**2
    error = math.sqrt(variance / len(padded))
    half = span * student_quantile(1 - ALPHA / 2, math.inf) * error
    # The interval is about the padded mean, and has to hold the mean itself.
    mean = fmean(values)
    low = max(min(mean, span * centre - half), -span)
    high = min(max(mean, span * centre + half), span)
    return low, high


def _ends(values: Sequence[float], *, span: float | None) -> Ends:
    """Return the ends of Student's 95 % interval of the mean of independent values."""
    num = len(values)
    mean = fmean(values)
    if num < 2:
        # Drawn once: what another draw would give is unknown.
        return -math.inf, math.inf
    # Over n - 1, since the mean is estimated from the same values.
    squares = sum((value - mean) ** 2 for value in values)
    variance = squares / (num - 1)
    # Not `== 0`: sums of equal values differ by rounding, and would seem to be certain.
    if variance / num <= _ROUNDING**2 * (1 + mean**2):
        if span is None:
            return -math.inf, math.inf
        return ends_without_spread(mean, num, -span, span)
    quantile = student_quantile(1 - ALPHA / 2, num - 1)
    half = quantile * math.sqrt(variance / num)
    return mean - half, mean + half
