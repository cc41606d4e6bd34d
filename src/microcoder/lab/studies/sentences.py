"""Effects, claims and expectations in words, for pages and for the terminal."""

import math

from microcoder.lab.studies.claims import ClaimFinding, ClaimResult, ContrastResult
from microcoder.lab.studies.design import Claim, Study, Unit
from microcoder.lab.studies.effects import MIN_DRAWS, expected_half_width

_SUFFIX: dict[Unit, str] = {
    "share": " points",
    "tokens": " tokens",
    "nats": " nats",
    "1": "",
}
"""Unit -> what follows a number in it."""

_MOST_DIGITS = 6
"""Most digits after the point."""


def format_value(value: float, unit: Unit) -> str:
    """Return a signed number as text without its unit, shares in percentage points."""
    scaled = 100 * value if unit == "share" else value
    # The order in which a processor adds is not to decide which way a half is rounded.
    scaled = round(scaled, 9)
    if unit in ("share", "tokens") and abs(scaled) >= 0.1:
        digits = 1
    else:
        # Three digits that count.
        magnitude = math.floor(math.log10(abs(scaled) or 1))
        digits = max(0, 2 - magnitude)
    text = f"{scaled:+.{min(digits, _MOST_DIGITS)}f}"
    # A negative zero would claim a direction.
    if float(text) == 0:
        return text.replace("-", "+")
    return text


def format_amount(value: float, unit: Unit) -> str:
    """Return a size as text with its unit: `2 points`."""
    scaled = 100 * value if unit == "share" else value
    return f"{scaled:.3g}{_SUFFIX[unit]}"


def format_effect(result: ContrastResult, study: Study) -> str:
    """Return an effect as text, with its interval and unit; `-` if there is none."""
    effect = result.effect
    if effect is None:
        return "-"
    unit = study.unit_of(result.contrast)
    value = format_value(effect.value, unit)
    if not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return f"{value}{_SUFFIX[unit]}, no interval"
    interval = f"[{format_value(effect.low, unit)}, {format_value(effect.high, unit)}]"
    return f"{value} {interval}{_SUFFIX[unit]}"


def format_check(result: ContrastResult, study: Study) -> str:
    """Return a check's result and requirement in words."""
    check = result.contrast
    measured = "not run"
    if result.effect:
        measured = _format_level(result.effect.value, result, study)
    least = _format_level(check.least, result, study)
    return f"{study.describe(check)}: {measured}, at least {least} needed"


def _format_level(value: float, result: ContrastResult, study: Study) -> str:
    """Return a check's value: percent where a share is compared with zero, else with its unit."""
    unit = study.unit_of(result.contrast)
    if unit == "share" and not result.contrast.against:
        return f"{100 * value:.3g}%"
    return format_amount(value, unit)


def describe_claim(result: ClaimResult, study: Study) -> str:
    """Return a claim's verdict, effect and words, and the check that it missed, if it did."""
    verdict = str(result.verdict)
    if result.primary and result.primary.effect:
        verdict += f", {format_effect(result.primary, study)}"
    text = f"{verdict}: {result.claim.short}"
    if result.verdict is ClaimFinding.CANNOT_APPEAR:
        missed = [format_check(check, study) for check in result.checks if not check.is_reached]
        if missed:
            text += f". Missed check: {'; '.join(missed)}"
    return text


def describe_expectation(
    claim: Claim,
    study: Study,
    *,
    scale: str,
    draws: str,
) -> str:
    """Return a sentence: how wide an interval to expect, or why the claim is not decided.

    It is empty for a claim without a spread.

    Args:
        claim: of the study.
        study: whose seeds are counted.
        scale: at which it is run.
        draws: from how many starts they begin, see `count_draws`.
    """
    if claim.undecidable:
        return f"Not decidable here: {claim.undecidable}"
    if claim.unasked:
        return f"Not asked here: {claim.unasked}"
    primary = claim.primary
    spread = claim.spread
    if primary is None or spread is None:
        return ""
    num_seeds = len(study.at_scale(scale).seeds)
    unit = study.unit_of(primary)
    sd = format_amount(spread.sd, unit)
    half = format_amount(expected_half_width(spread.sd, num_seeds), unit)
    least = format_amount(primary.least, unit)
    return (
        f"A spread between starts of {sd} ({spread.where}) lets {num_seeds} starts give a half "
        f"width of {half}; the smallest effect of interest is {least}. Here are {draws}; fewer "
        f"than {MIN_DRAWS} starts conclude nothing."
    )


def capital(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return text[:1].upper() + text[1:]
