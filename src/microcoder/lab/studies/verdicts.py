"""Verdicts on claims from effects, for a single claim and corrected for all of them.

| direction | supported | contradicted |
|---|---|---|
| higher | the 95 % interval is above 0 and reaches `least` | the interval is below `least` |
| lower | the same, mirrored | the same, mirrored |
| same | the interval is within -+`least` | it excludes 0 and is not within -+`least` |

Anything else is inconclusive. Contradicted means: an effect as large as the smallest of interest is excluded.

Each verdict rejects a null hypothesis: supported that the effect is at most 0, contradicted that it is at least `least`
(of `same`: that it is at least `least` either way, or that it is 0). Over all claims these are two families, and Holm's
step-down procedure (1979) holds the chance of any wrong rejection in each at 2.5 %, one-sided, so that of any wrong
verdict at 5 %. One family of the verdicts as they fell would not do: a claim that is decided rightly frees its share
for the rest, though its other null may be true (`tests/lab/test_claims_rates.py` has the case).

Statistical power of a number of seeds, computed before the runs from the spread of a pilot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from microcoder.lab.studies.design import INSIGHTS, Claim, Direction
from microcoder.lab.studies.effects import ALPHA, Effect, student_quantile

_GRID = 400


@dataclass(frozen=True, slots=True)
class Power:
    """Expected half width and power of a number of seeds."""

    num_seeds: int
    half_width: float
    """Half width of the 95 % interval, in the metric's unit."""
    power: float
    """Chance that the interval shows the claimed direction if the true effect is the smallest of interest; for `same`,
    that it lies within if there is no difference."""
    strict_power: float
    """`power` if the claim is the first of Holm's steps: at 5 % over all claims of the catalogue."""


def expect_power(claim: Claim, *, num_seeds: int) -> Power | None:
    """Return the power of a claim's primary contrast with some seeds; None for a claim without one."""
    if claim.primary is None or claim.spread is None:
        return None
    sd, least, direction = claim.spread.sd, claim.primary.least, claim.primary.direction
    power, strict = (
        power_of(sd, least, num_seeds=num_seeds, direction=direction, alpha=alpha)
        for alpha in (ALPHA, ALPHA / len(INSIGHTS))
    )
    return Power(num_seeds, expected_half_width(sd, num_seeds), power, strict)


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


class ClaimFinding(StrEnum):
    """The verdict on a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    INCONCLUSIVE = "inconclusive"
    CANNOT_APPEAR = "cannot appear here"
    """A manipulation check failed, or the baseline learnt too little."""
    UNDECIDABLE = "not decidable at this scale"
    """Declared before the runs, with the compute that would decide it."""
    NOT_RUN = "not run"

    @property
    def is_conclusive(self) -> bool:
        """Whether it is for or against the claim."""
        return self in (ClaimFinding.SUPPORTED, ClaimFinding.CONTRADICTED)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The uncorrected verdict of a predicate; p-values are two-sided, below 5 % if the interval excludes the null."""

    verdict: ClaimFinding
    p_for: float = 1.0
    """p-value of the null hypothesis that "supported" rejects."""
    p_against: float = 1.0
    """p-value of the one that "contradicted" rejects."""


def judge_effect(effect: Effect, *, direction: Direction, least: float) -> Judgement:
    """Return the verdict of an effect on a predicate."""
    if not math.isfinite(effect.value):
        return Judgement(ClaimFinding.NOT_RUN)
    if direction == "lower":
        effect = effect.mirrored
    if direction == "same":
        is_for = -least < effect.low and effect.high < least
        is_against = not is_for and (effect.low > 0 or effect.high < 0)
        p_for = 2 * max(effect.p_below(least), effect.p_above(-least))
        p_against = 2 * min(effect.p_below(0.0), effect.p_above(0.0))
    else:
        is_for, is_against = effect.low > 0 and effect.high >= least, effect.high < least
        p_for, p_against = 2 * effect.p_above(0.0), 2 * effect.p_below(least)
    verdict = (
        ClaimFinding.SUPPORTED if is_for else ClaimFinding.CONTRADICTED if is_against else ClaimFinding.INCONCLUSIVE
    )
    return Judgement(verdict, min(1.0, p_for), min(1.0, p_against))


def adjust_judgements(judgements: Mapping[str, Judgement]) -> dict[str, Judgement]:
    """Return the corrected verdicts: a conclusion that does not survive Holm is inconclusive."""
    p_for = adjust_p_values({name: found.p_for for name, found in judgements.items()})
    p_against = adjust_p_values({name: found.p_against for name, found in judgements.items()})
    adjusted = {}
    for name, found in judgements.items():
        p = p_for[name] if found.verdict is ClaimFinding.SUPPORTED else p_against[name]
        verdict = ClaimFinding.INCONCLUSIVE if found.verdict.is_conclusive and p > ALPHA else found.verdict
        adjusted[name] = Judgement(verdict, p_for[name], p_against[name])
    return adjusted


def adjust_p_values(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return Holm's adjusted p-values: reject those under a level to have a family-wise error of that level."""
    adjusted, highest = {}, 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: (item[1], item[0]))):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}
