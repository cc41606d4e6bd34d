"""The design of each claim before the runs: its smallest effect and its expected power."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from microcoder.insights.design import Claim
from microcoder.insights.power import Power, expect_power
from microcoder.insights.study import StudyFile
from microcoder.insights.wording import format_amount, format_least, name_comparison, unit_of


def expect_claim(claim: Claim, file: StudyFile, *, scale: str) -> Power | None:
    """Return the expected power of a claim's primary predicate with all seeds; None for a claim without one."""
    if claim.primary is None:
        return None
    measurement = claim.primary.measurement
    seeds = file.study.measurements[measurement].seeds if measurement else file.scale(scale).seeds
    return expect_power(claim, num_seeds=len(seeds))


def describe_expectation(claim: Claim, file: StudyFile, *, scale: str) -> str:
    """Return the expected power, or why a claim is not decidable, in a sentence."""
    expected = expect_claim(claim, file, scale=scale)
    if claim.undecidable is not None:
        return f"Said before the runs: {claim.undecidable.reason} What would decide it: {claim.undecidable.compute}"
    if claim.primary is None or claim.spread is None or expected is None:
        return ""
    unit = unit_of(claim.primary, file.study)
    spread, half, least = (
        format_amount(value, unit) for value in (claim.spread.sd, expected.half_width, claim.primary.least)
    )
    return (
        f"Computed before the runs: a spread between seeds of {spread} ({claim.spread.where}) lets "
        f"{expected.num_seeds} seeds give a half width of {half}, and a power of {expected.power:.0%} for {least}, the "
        f"smallest effect of interest ({expected.strict_power:.0%} at the strictest step of Holm's correction)."
    )


def expectation_rows(studies: Sequence[StudyFile], *, scale: str) -> list[dict[str, Any]]:
    """Return one record per claim: comparison, smallest effect and expected power."""
    rows = []
    for file in studies:
        for claim in file.study.claims:
            expected = expect_claim(claim, file, scale=scale)
            primary = claim.primary
            rows.append(
                {
                    "id": claim.id,
                    "study": file.name,
                    "family": claim.family,
                    "short": claim.short,
                    "design": claim.design,
                    "compared": name_comparison(primary, file.study) if primary else None,
                    "claimed": format_least(primary, file.study) if primary else None,
                    "num_seeds": expected.num_seeds if expected else None,
                    "half_width": expected.half_width if expected else None,
                    "power": expected.power if expected else None,
                    "strict_power": expected.strict_power if expected else None,
                    "is_precise": bool(primary and expected and expected.half_width <= primary.least),
                    "expectation": describe_expectation(claim, file, scale=scale),
                }
            )
    return rows
