"""Verdicts on claims from effects, for a single claim and corrected for all of them; sign and size have separate tests.

Of a claim "higher by `least` or more" ("lower" is mirrored), with a 95 % interval of the effect:

| verdict | sign | size |
|---|---|---|
| supported | the interval is above 0 | and reaches `least` |
| there, but smaller than d | the interval is above 0 | and below `least`: an effect of d is excluded |
| contradicted | the interval is below 0 | |
| contradicted | the interval holds 0 | and is below `least`, if `least` is not above the paper's effect |
| inconclusive | anything else | |

More seeds narrow an interval about the true effect: from "supported" they lead to "there, but smaller", never to
"contradicted". An effect smaller than the smallest of interest that the paper itself reports is no contradiction.
"The same within `least`" is supported by an interval within, and contradicted by one wholly outside.

Two null hypotheses a claim: the sign (that the effect is 0, either way) and the size (that it is at least `least`); of
`same`, that it is not within and that it is not outside. Over the catalogue these are two families, and Holm's
step-down procedure (1979) holds the chance of any wrong rejection in each at 2.5 %, one-sided, so that of any wrong
verdict at 5 %. A family counts all claims of the catalogue, tested or not, so that leaving one out frees nothing.

The expected half width of a number of seeds is computed before the runs from the spread of a pilot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from microcoder.lab.studies.design import Contrast
from microcoder.lab.studies.effects import ALPHA, Effect, student_quantile


def expected_half_width(sd: float, num_seeds: int) -> float:
    """Return the half width of the 95 % interval of a mean over seeds whose standard deviation is `sd`."""
    if num_seeds < 2:
        return math.inf
    return student_quantile(1 - ALPHA / 2, num_seeds - 1) * sd / math.sqrt(num_seeds)


class ClaimFinding(StrEnum):
    """The verdict on a claim."""

    SUPPORTED = "supported"
    SMALLER = "there, but smaller than d"
    """The sign holds; an effect as large as the smallest of interest, d, is excluded."""
    CONTRADICTED = "contradicted"
    CONSTRUCTED = "by construction"
    """It holds, and could not have come out with another sign here."""
    INCONCLUSIVE = "inconclusive"
    CANNOT_APPEAR = "cannot appear here"
    """A manipulation check failed, or the baseline learnt too little."""
    UNDECIDABLE = "not decidable at this scale"
    """Declared with the compute that would decide it."""
    NOT_RUN = "not run"

    @property
    def is_conclusive(self) -> bool:
        """Whether it is for or against the claim."""
        return self in (ClaimFinding.SUPPORTED, ClaimFinding.SMALLER, ClaimFinding.CONTRADICTED)


@dataclass(frozen=True, slots=True)
class ContrastResult:
    """A contrast with its effect, verdict and p-values, two-sided: at most 5 % if the interval excludes the null."""

    contrast: Contrast
    effect: Effect | None
    """None if no seed has all the work that it compares."""
    verdict: ClaimFinding = ClaimFinding.NOT_RUN
    p_sign: float = 1.0
    """p-value of "the effect is 0"; of `same`, of "it is not within `least`"."""
    p_size: float = 1.0
    """p-value of "the effect is at least `least`"; of `same`, of "it is within `least`"."""

    @property
    def is_precise(self) -> bool:
        """Whether the interval's half width is at most the smallest effect of interest."""
        return self.effect is not None and self.effect.half_width <= self.contrast.least

    @property
    def is_reached(self) -> bool:
        """Whether the mean over seeds is at least `least`, as a check requires."""
        return self.effect is not None and self.effect.value >= self.contrast.least


def judge_contrast(contrast: Contrast, effect: Effect | None) -> ContrastResult:
    """Return the uncorrected verdict of a contrast with its effect."""
    if effect is None or not math.isfinite(effect.value):
        return ContrastResult(contrast, effect)
    least = contrast.least
    if contrast.direction == "same":
        p_sign = max(effect.p_below(least), effect.p_above(-least))
        p_size = min(effect.p_below(-least), effect.p_above(least))
    else:
        p_sign = min(effect.p_above(0.0), effect.p_below(0.0))
        p_size = effect.p_above(-least) if contrast.direction == "lower" else effect.p_below(least)
    return _judge(contrast, effect, min(1.0, 2 * p_sign), min(1.0, 2 * p_size))


def adjust_verdicts(results: Mapping[str, ContrastResult], *, num_claims: int) -> dict[str, ContrastResult]:
    """Return results corrected for `num_claims` claims, tested or not, under their names."""
    p_sign, p_size = (
        adjust_p_values({name: getattr(part, field) for name, part in results.items()}, num_tests=num_claims)
        for field in ("p_sign", "p_size")
    )
    return {
        name: _judge(part.contrast, part.effect, p_sign[name], p_size[name])
        for name, part in results.items()
        if part.effect is not None
    }


def _judge(contrast: Contrast, effect: Effect, p_sign: float, p_size: float) -> ContrastResult:
    """Return the verdict of an effect, by its interval and the p-values of sign and size."""
    has_sign, has_size = p_sign <= ALPHA, p_size <= ALPHA
    if contrast.direction == "same":
        is_for, is_against, is_small = has_sign, has_size, False
    else:
        # The ends of the interval, turned so that up is as claimed.
        low, high = (-effect.high, -effect.low) if contrast.direction == "lower" else (effect.low, effect.high)
        is_for, is_small = low > 0 and has_sign, has_size
        is_against = low <= 0 and ((has_size and not contrast.is_above_paper) or (has_sign and high < 0))
    verdict = ClaimFinding.CONTRADICTED if is_against else ClaimFinding.INCONCLUSIVE
    if is_for:
        verdict = ClaimFinding.SMALLER if is_small else ClaimFinding.SUPPORTED
    return ContrastResult(contrast, effect, verdict, p_sign, p_size)


def adjust_p_values(p_values: Mapping[str, float], *, num_tests: int) -> dict[str, float]:
    """Return Holm's adjusted p-values in a family of `num_tests`: rejecting at a level bounds its error by that."""
    adjusted, highest = {}, 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: (item[1], item[0]))):
        highest = max(highest, min(1.0, (num_tests - rank) * p))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}
