"""Results and expectations in words: effects with their units, and the five sentences at the top of a study's page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from microcoder.lab.studies.claims import CheckResult, ClaimResult, JudgedStudy, PredicateResult, is_share
from microcoder.lab.studies.design import Claim, Contrast, Predicate, Study, Unit
from microcoder.lab.studies.effects import Effect
from microcoder.lab.studies.study import StudyFile
from microcoder.lab.studies.verdicts import ClaimFinding, Power, count_seeds, expect_power

_SUFFIX: dict[Unit, str] = {"share": " points", "tokens": " tokens", "nats": " nats", "1": ""}
_MOST_NAMED = 4
"""Claims that a sentence names one by one."""


def unit_of(contrast: Contrast, study: Study) -> Unit:
    """Return the unit of a contrast."""
    if contrast.measurement:
        return study.measurements[contrast.measurement].metrics[contrast.metric].unit
    if is_share(contrast, study):
        return "share"
    return "tokens" if "length" in contrast.metric and "peak_at" not in contrast.feature else "1"


def name_metric(contrast: Contrast, study: Study) -> str:
    """Return the metric of a contrast in words."""
    if contrast.measurement:
        return study.measurements[contrast.measurement].metrics[contrast.metric].says
    feature = f", {contrast.feature.replace('_', ' ')}" if contrast.feature else ""
    return f"{contrast.metric.replace('_', ' ').replace('heldout', 'held-out')}{feature}"


def name_comparison(contrast: Contrast, study: Study) -> str:
    """Return a contrast in words: metric, levels, and what they are compared with."""
    text = f"{name_metric(contrast, study)}: {' and '.join(contrast.of)}"
    if not contrast.against:
        return text
    other = f" ({contrast.against_feature.replace('_', ' ')})" if contrast.against_feature else ""
    return f"{text} against {' and '.join(contrast.against)}{other}"


def format_value(value: float, unit: Unit, *, sign: bool = True) -> str:
    """Return a number of a unit, without the unit: points for shares."""
    if not math.isfinite(value):
        return "any" if value > 0 else "-any"
    scaled = 100 * value if unit == "share" else value
    digits = (
        1
        if unit in ("share", "tokens") and abs(scaled) >= 0.1
        else max(0, 2 - math.floor(math.log10(abs(scaled) or 1)))
    )
    text = f"{scaled:{'+' if sign else ''}.{min(digits, 6)}f}"
    return text.replace("-0.0", "0.0") if float(text) == 0 else text


def format_amount(value: float, unit: Unit) -> str:
    """Return a size with its unit: `2 points`."""
    return f"{100 * value if unit == 'share' else value:.3g}{_SUFFIX[unit]}"


def format_effect(effect: Effect | None, unit: Unit) -> str:
    """Return an effect with its interval and unit."""
    if effect is None:
        return "-"
    value = format_value(effect.value, unit)
    if not (math.isfinite(effect.low) and math.isfinite(effect.high)):
        return f"{value}{_SUFFIX[unit]}, no interval"
    return f"{value} [{format_value(effect.low, unit)}, {format_value(effect.high, unit)}]{_SUFFIX[unit]}"


def format_least(predicate: Predicate, study: Study) -> str:
    """Return a predicate in words."""
    least = format_amount(predicate.least, unit_of(predicate, study))
    return f"same within {least}" if predicate.direction == "same" else f"{predicate.direction} by {least} or more"


def format_check(found: CheckResult, study: Study) -> str:
    """Return a check's result and requirement in words."""
    unit = unit_of(found.check, study)
    if unit == "share" and not found.check.against:
        value, least = (f"{x:.1%}" if x is not None else "not run" for x in (found.value, found.check.least))
    else:
        value = "not run" if found.value is None else format_amount(found.value, unit)
        least = format_amount(found.check.least, unit)
    return f"{name_comparison(found.check, study)}: {value}, at least {least} needed"


def describe_claim(result: ClaimResult, study: Study) -> str:
    """Return a claim's result in a line for a terminal."""
    part = result.primary
    effect = f", {format_effect(part.effect, unit_of(part.predicate, study))}" if part and part.effect else ""
    missed = [format_check(check, study) for check in result.checks if not check.is_reached]
    why = f" ({'; '.join(missed)})" if result.verdict is ClaimFinding.CANNOT_APPEAR and missed else ""
    return f"{result.claim.id:<4}{result.verdict}{effect}: {result.claim.short}{why}"


def open_page(judged: JudgedStudy) -> list[str]:
    """Return the five sentences: asked, done, seen, what it means, what next."""
    study = judged.file.study
    return [
        f"**Asked:** {study.question}",
        f"**Done:** {study.done}",
        f"**Seen:** {_seen(judged)}",
        f"**It means:** {_meaning(judged.claims)}",
        f"**Next:** {_next(judged)}",
    ]


def count_verdicts(results: Sequence[ClaimResult]) -> str:
    """Return how many claims got which verdict, in words."""
    counts = Counter(result.verdict for result in results)
    parts = []
    for verdict in ClaimFinding:
        verb = "" if verdict is ClaimFinding.CANNOT_APPEAR else "is " if counts[verdict] == 1 else "are "
        parts += [f"{counts[verdict]} {verb}{verdict}"] if counts[verdict] else []
    return join_words(parts)


def join_words(words: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _seen(judged: JudgedStudy) -> str:
    study = judged.file.study
    tested = [(r, r.primary) for r in judged.claims if r.primary and r.primary.effect]
    if not tested:
        return "Nothing that decides a claim has been run yet."
    parts = [
        f"{_subject(part, study)} was {format_effect(part.effect, unit_of(part.predicate, study))}"
        for _, part in sorted(tested, key=lambda pair: min(pair[1].judgement.p_for, pair[1].judgement.p_against))[
            : 2 if len(tested) < 3 else 1
        ]
    ]
    if len(tested) <= 2:
        return f"{_capital(join_words(parts))} (effect and 95 % interval)."
    return f"Of {len(judged.claims)} claims {count_verdicts(judged.claims)}; most clearly, {parts[0]}."


def _subject(part: PredicateResult, study: Study) -> str:
    predicate = part.predicate
    metric = name_metric(predicate, study)
    of = " and ".join(predicate.of)
    if not predicate.against:
        return f"{metric} at {of}"
    other = f" ({predicate.against_feature.replace('_', ' ')})" if predicate.against_feature else ""
    return f"the difference in {metric} between {of} and {' and '.join(predicate.against)}{other}"


def _meaning(results: Sequence[ClaimResult]) -> str:
    clauses = [
        _clause("this experiment supports that", ClaimFinding.SUPPORTED, results),
        _clause("it excludes, at the size that would matter, that", ClaimFinding.CONTRADICTED, results),
        _clause("it leaves open whether", ClaimFinding.INCONCLUSIVE, results),
        _names("the treatment reached too little here to ask about", ClaimFinding.CANNOT_APPEAR, results),
        _names("more than this scale is needed for", ClaimFinding.UNDECIDABLE, results),
        _names("nothing has been run for", ClaimFinding.NOT_RUN, results),
    ]
    return f"{_capital('; '.join(clause for clause in clauses if clause))}."


def _clause(lead: str, verdict: ClaimFinding, results: Sequence[ClaimResult]) -> str:
    named = [f"{r.claim.short} ({r.claim.id})" for r in results if r.verdict is verdict]
    if not named:
        return ""
    parts = [lead.rpartition(" ")[2] + " " + name for name in named[:_MOST_NAMED]]
    parts += [f"{len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
    return f"{lead.rpartition(' ')[0]} {join_words(parts)}"


def _names(lead: str, verdict: ClaimFinding, results: Sequence[ClaimResult]) -> str:
    named = [r.claim.id for r in results if r.verdict is verdict]
    return f"{lead} {join_words(named)}" if named else ""


def _next(judged: JudgedStudy) -> str:
    needed = {}
    for result in judged.claims:
        seeds = _seeds_to_settle(result)
        if seeds is not None:
            needed[result.claim.id] = seeds
    if not needed:
        return judged.file.study.next
    parts = join_words([f"{seeds} for {name}" for name, seeds in list(needed.items())[:_MOST_NAMED]])
    return f"{judged.file.study.next.rstrip('.')}; seeds that would make the open intervals narrow enough: {parts}."


def _seeds_to_settle(result: ClaimResult) -> int | None:
    """Seeds for a half width of half the smallest effect, by the spread that was seen; None if it is not open."""
    part = result.primary
    if part is None or part.effect is None or result.verdict is not ClaimFinding.INCONCLUSIVE:
        return None
    effect = part.effect
    if effect.num_seeds < 2 or not math.isfinite(effect.half_width):
        return None
    mean = sum(effect.by_seed) / len(effect.by_seed)
    sd = math.sqrt(sum((value - mean) ** 2 for value in effect.by_seed) / (len(effect.by_seed) - 1))
    needed = count_seeds(sd, half_width=part.predicate.least / 2)
    return needed if needed > effect.num_seeds else None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


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
