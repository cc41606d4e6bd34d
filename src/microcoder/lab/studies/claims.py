"""Verdicts on claims from finished work: contrasts are measured as effects, judged alone, and corrected for all claims.

Sign and size have separate tests. Of a claim "higher by `least` or more" ("lower" is mirrored), with a 95 % interval of
the effect:

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
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from microcoder.lab.studies.design import INSIGHTS, LEAST_GAIN, Claim, Contrast, Study
from microcoder.lab.studies.effects import (
    ALPHA,
    Effect,
    draw_weightings,
    estimate_effect,
    estimate_rows,
)
from microcoder.lab.studies.features import MetricSeries, measure, read_series
from microcoder.lab.studies.work import MeasuredValue, Work, plan_work, read_measured
from microcoder.train.runs import History, read_history

if TYPE_CHECKING:
    from microcoder.lab.studies.effects import Array


class ClaimFinding(StrEnum):
    """The verdict on a claim."""

    SUPPORTED = "supported"
    SMALLER = "there, but smaller than d"
    """The sign holds; an effect as large as the smallest of interest, d, is excluded."""
    CONTRADICTED = "contradicted"
    CONSTRUCTED = "by construction"
    """The claim holds, and could not have come out with another sign here."""
    INCONCLUSIVE = "inconclusive"
    CANNOT_APPEAR = "cannot appear here"
    """A manipulation check failed, or the baseline learnt too little."""
    UNDECIDABLE = "not decidable at this scale"
    """The study file says so, with the compute that would decide the claim."""
    NOT_RUN = "not run"

    @property
    def is_conclusive(self) -> bool:
        """Whether the verdict is for or against the claim."""
        return self in (ClaimFinding.SUPPORTED, ClaimFinding.SMALLER, ClaimFinding.CONTRADICTED)


@dataclass(frozen=True, slots=True)
class ContrastResult:
    """A contrast with its effect, verdict and p-values, two-sided: at most 5 % if the interval excludes the null."""

    contrast: Contrast
    effect: Effect | None
    """The measured effect; None if no seed has all the work that the contrast compares."""
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
    """Return a contrast with its effect, verdict and p-values, not yet corrected for other claims."""
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


def adjust_verdicts(
    results: Mapping[str, ContrastResult], *, num_claims: int
) -> dict[str, ContrastResult]:
    """Return the results, by the same keys, with verdicts corrected for `num_claims` claims, tested or not."""
    p_sign, p_size = (
        adjust_p_values(
            {name: getattr(part, field) for name, part in results.items()}, num_tests=num_claims
        )
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
        low, high = (
            (-effect.high, -effect.low)
            if contrast.direction == "lower"
            else (effect.low, effect.high)
        )
        is_for, is_small = low > 0 and has_sign, has_size
        is_against = low <= 0 and (
            (has_size and not contrast.is_above_paper) or (has_sign and high < 0)
        )
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


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of one claim: its contrasts with their effects, and the verdict."""

    claim: Claim
    primary: ContrastResult | None
    secondary: tuple[ContrastResult, ...]
    checks: tuple[ContrastResult, ...]
    raw: ClaimFinding
    """The uncorrected verdict."""
    adjusted: ContrastResult | None = None
    """Verdict and p-values adjusted for all claims (Holm); None if the claim was not decided by an effect."""

    @property
    def verdict(self) -> ClaimFinding:
        """The verdict, corrected where it was decided by an effect."""
        return self.adjusted.verdict if self.adjusted else self.raw


Histories = Mapping[str, Mapping[int, History]]
"""Finished runs by level and seed."""
Measured = Mapping[str, Mapping[int, Sequence[MeasuredValue]]]
"""Rows of finished measurements by name and seed."""


@dataclass(frozen=True)
class JudgedStudy:
    """A study with the results of its finished work, from which, with the study's file, its page is written."""

    study: Study
    scale: str
    works: Sequence[Work]
    """All planned work, finished or not."""
    seeds: Sequence[int]
    """Seeds with finished work."""
    histories: Histories
    effects: Mapping[Contrast, Effect]
    """Effects of the contrasts with finished work."""
    claims: Sequence[ClaimResult]
    made: str
    """Seeds, runs, CPU-hours, code, commits and machines in words."""

    def accuracies(self, level: str) -> dict[str, list[float]]:
        """Return a level's held-out accuracy `before` and `after` training, a value per run."""
        runs = self.histories[level].values()
        return {
            side: [one.accuracy for run in runs if (one := getattr(run, side))]
            for side in ("before", "after")
        }


def judge_studies(
    studies: Sequence[Study],
    *,
    scale: str,
    root: Path,
    code: str | None = None,
    seeds_from: int = 0,
) -> list[JudgedStudy]:
    """Return studies with verdicts, corrected for all claims of the catalogue, and for each study's own (X1, X2 ...).

    The other arguments are those of `plan_work`.
    """
    judged = [
        judge_work(
            study,
            plan_work(study, scale=scale, root=root, code=code, seeds_from=seeds_from),
            scale=scale,
        )
        for study in studies
    ]
    catalogued = _adjust(
        [result for one in judged for result in one.claims if result.claim.is_catalogued], INSIGHTS
    )
    corrected = []
    for one in judged:
        own = [result for result in one.claims if not result.claim.is_catalogued]
        adjusted = catalogued | _adjust(own, own)
        claims = [replace(result, adjusted=adjusted.get(result.claim.id)) for result in one.claims]
        corrected.append(replace(one, claims=claims))
    return corrected


def _adjust(results: Sequence[ClaimResult], family: Sequence[object]) -> dict[str, ContrastResult]:
    """Return the results of the claims that an effect decides, corrected for all of a family, by the claim's id."""
    tested = {
        result.claim.id: result.primary
        for result in results
        if result.primary and (result.raw.is_conclusive or result.raw is ClaimFinding.INCONCLUSIVE)
    }
    return adjust_verdicts(tested, num_claims=len(family))


def judge_work(study: Study, works: Sequence[Work], *, scale: str) -> JudgedStudy:
    """Read the finished part of a study's planned work; return it with an uncorrected verdict on each claim."""
    histories: dict[str, dict[int, History]] = {level: {} for level in study.levels}
    measured: dict[str, dict[int, Sequence[MeasuredValue]]] = {
        name: {} for name in study.measurements
    }
    done = [work for work in works if work.is_finished]
    summaries = []
    for work in done:
        if work.measurement is None:
            histories[work.name][work.seed] = read_history(work.folder)
        else:
            measured[work.name][work.seed], summary = read_measured(work.folder)
            summaries.append(summary)
    contrasts = [
        one for claim in study.claims for one in (*claim.contrasts, *_checks(claim, study))
    ]
    found = {
        one: measure_contrast(one, study, histories, measured) for one in dict.fromkeys(contrasts)
    }
    effects = {contrast: effect for contrast, effect in found.items() if effect}
    claims = [judge_claim(claim, study, effects) for claim in study.claims]
    seeds = sorted({work.seed for work in done})
    made = _describe_origin(
        seeds, [run for runs in histories.values() for run in runs.values()], summaries, done
    )
    return JudgedStudy(study, scale, works, seeds, histories, effects, claims, made)


def _describe_origin(
    seeds: Sequence[int],
    runs: Sequence[History],
    summaries: Sequence[Mapping[str, Any]],
    works: Sequence[Work],
) -> str:
    commits = set()
    for record in [*(history.manifest for history in runs), *summaries]:
        git = record.get("git") or {}
        commits.add(
            str(git.get("commit") or "unknown")[:12]
            + (" with changes" if git.get("is_dirty") else "")
        )
    machines = {
        f"{m.get('num_cpus')} cores, {m.get('platform')}"
        for h in runs
        if (m := h.manifest.get("machine"))
    }
    codes = sorted({work.folder.parent.name for work in works})
    seconds = sum((history.summary or {}).get("cpu_seconds", 0.0) for history in runs)
    seconds += sum(summary.get("cpu_seconds", 0.0) for summary in summaries)
    return (
        f"Seeds {', '.join(map(str, seeds))}; {len(runs)} runs and {len(summaries)} measurements; "
        f"{seconds / 3600:.1f} CPU-hours; code digest {', '.join(codes)}; commit {', '.join(sorted(commits)) or '-'}; "
        f"{'; '.join(sorted(machines)) or '-'}."
    )


def _checks(claim: Claim, study: Study) -> list[Contrast]:
    checks = [claim.check] if claim.check else []
    if claim.primary and claim.family == "training":
        # The baseline must have learnt.
        checks.append(
            Contrast(metric="accuracy", feature="growth", of=(study.reference,), least=LEAST_GAIN)
        )
    return checks


def judge_claim(claim: Claim, study: Study, effects: Mapping[Contrast, Effect]) -> ClaimResult:
    """Return the result of a claim, not yet corrected for other claims."""

    def find(contrast: Contrast) -> ContrastResult:
        return judge_contrast(contrast, effects.get(contrast))

    secondary = tuple(map(find, claim.secondary))
    if claim.primary is None:
        return ClaimResult(claim, None, secondary, (), ClaimFinding.UNDECIDABLE)
    primary, checks = find(claim.primary), tuple(find(check) for check in _checks(claim, study))
    verdict, effect = primary.verdict, primary.effect
    # Whole runs that differ nowhere are the same run: the setting changed nothing.
    is_same = (
        not claim.primary.measurement
        and bool(claim.primary.against)
        and effect is not None
        and effect.is_nothing
    )
    is_missed = any(check.effect is not None and not check.is_reached for check in checks)
    if verdict is not ClaimFinding.NOT_RUN and (is_same or is_missed):
        verdict = ClaimFinding.CANNOT_APPEAR
    # An effect is seen whatever its dose; that none is seen says something of a known dose alone.
    if verdict is ClaimFinding.CONTRADICTED and any(check.effect is None for check in checks):
        verdict = ClaimFinding.INCONCLUSIVE
    if claim.construction and verdict in (ClaimFinding.SUPPORTED, ClaimFinding.SMALLER):
        verdict = ClaimFinding.CONSTRUCTED
    return ClaimResult(claim, primary, secondary, checks, verdict)


def measure_contrast(
    contrast: Contrast, study: Study, histories: Histories, measured: Measured | None = None
) -> Effect | None:
    """Return a contrast's effect over the seeds that have all its work; None without any."""
    span = 1.0 if study.unit_of(contrast) == "share" and not contrast.dose else None
    if contrast.measurement:
        found = (measured or {}).get(contrast.measurement, {}).items()
        by_seed = {seed: pairs for seed, rows in found if (pairs := pair_rows(contrast, rows))}
        return estimate_rows(by_seed, span=span) if by_seed else None
    return _measure_runs(contrast, histories, span)


def pair_rows(contrast: Contrast, rows: Sequence[MeasuredValue]) -> dict[str, float]:
    """Return unit -> difference between the contrast's levels; units that lack a level are left out."""
    values: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.metric == contrast.metric and row.level in contrast.levels:
            values.setdefault(row.unit, {}).setdefault(row.level, []).append(row.value)
    pairs = {}
    for unit, levels in values.items():
        if len(levels) == len(contrast.levels):
            of, against = (
                [fmean(levels[level]) for level in side] for side in (contrast.of, contrast.against)
            )
            pairs[unit] = fmean(of) - (fmean(against) if against else 0.0)
    return pairs


def read_level(histories: Histories, level: str, metric: str) -> dict[int, MetricSeries]:
    """Return seed -> series of a metric for a level's runs, seeds ascending; leaves out runs that did not record it."""
    found = {
        seed: read_series(history, metric) for seed, history in sorted(histories[level].items())
    }
    return {seed: series for seed, series in found.items() if series is not None}


def _measure_runs(contrast: Contrast, histories: Histories, span: float | None) -> Effect | None:
    import numpy as np

    curves = {level: read_level(histories, level, contrast.metric) for level in contrast.levels}
    doses = {
        level: read_level(histories, level, contrast.dose or contrast.metric)
        for level in contrast.levels
    }
    common = set.intersection(
        *(set(found[level]) for found in (curves, doses) for level in contrast.levels)
    )

    def read_side(levels: Sequence[str], feature: str, seed: int) -> Array:
        """Return the levels' mean, or slope over the dose, under each weighting of the problems (B,)."""
        series = [curves[level][seed] for level in levels]
        values_L_B = np.asarray(
            [measure(one, feature, draw_weightings(one.num_problems)) for one in series]
        )
        if not contrast.dose:
            return values_L_B.mean(axis=0)
        over = feature.replace("at", "up to", 1)
        given = [measure(doses[level][seed], over, draw_weightings(1))[0] for level in levels]
        centred = given - np.mean(given)
        # Least squares; NaN if all doses are equal.
        with np.errstate(invalid="ignore"):
            return centred / (centred @ centred) @ values_L_B

    rows = []
    for seed in sorted(common):
        sides = [read_side(contrast.of, contrast.feature, seed)]
        if contrast.against:
            sides.append(
                -read_side(contrast.against, contrast.against_feature or contrast.feature, seed)
            )
        if all(np.isfinite(side[0]) for side in sides):
            rows.append(sum(sides))
    if not rows:
        return None
    num_problems = next(iter(curves[contrast.of[0]].values())).num_problems
    return estimate_effect(
        np.stack(rows), num_problems=num_problems if num_problems > 1 else 0, span=span
    )


def as_records(judged: Sequence[JudgedStudy]) -> dict[str, Any]:
    """Return the studies' records and verdicts as JSON values.

    Floats have nine digits, as others vary between processors; infinity and NaN are None.
    """
    records = {
        "scale": judged[0].scale if judged else "",
        "studies": {
            one.study.name: {
                "seeds": one.seeds,
                "effects": {
                    one.study.describe(contrast): asdict(effect)
                    for contrast, effect in one.effects.items()
                },
                "levels": {level: one.accuracies(level) for level in one.study.levels},
                "made": one.made,
            }
            for one in judged
        },
        "claims": [
            {
                "id": result.claim.id,
                "study": one.study.name,
                "short": result.claim.short,
                "primary": one.study.describe(result.claim.primary)
                if result.claim.primary
                else None,
                "verdict": result.verdict.value,
                "verdict_alone": result.raw.value,
                "p_sign_holm": result.adjusted.p_sign if result.adjusted else None,
                "p_size_holm": result.adjusted.p_size if result.adjusted else None,
            }
            for one in judged
            for result in one.claims
        ],
    }
    return json.loads(
        json.dumps(records),
        parse_float=lambda text: float(f"{float(text):.9g}"),
        parse_constant=lambda _: None,
    )
