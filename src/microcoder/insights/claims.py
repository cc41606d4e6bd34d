"""Claims judged by finished work: primary predicates, secondary ones, and the family of all claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING

from microcoder.insights.design import Check, Claim, Contrast, Predicate, Study
from microcoder.insights.effects import Effect, draw_weightings, estimate_effect, estimate_rows
from microcoder.insights.features import SHARES, MetricSeries, measure, read_series, resolution
from microcoder.insights.history import History
from microcoder.insights.jobs import MeasuredValue
from microcoder.insights.verdicts import ClaimFinding, Judgement, adjust_judgements, judge_effect

if TYPE_CHECKING:
    from microcoder.insights.effects import Array


@dataclass(frozen=True, slots=True)
class PredicateResult:
    """The result of one predicate."""

    predicate: Predicate
    effect: Effect | None
    """None if no seed has all the runs that it compares."""
    judgement: Judgement

    @property
    def verdict(self) -> ClaimFinding:
        """The verdict of this predicate alone."""
        return self.judgement.verdict

    @property
    def is_precise(self) -> bool:
        """The interval's half width is at most the smallest effect of interest."""
        return self.effect is not None and self.effect.half_width <= self.predicate.least


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a manipulation check."""

    check: Check
    value: float | None
    """Mean over seeds; None if nothing was run."""

    @property
    def is_reached(self) -> bool:
        """It reached `least`."""
        return self.value is not None and self.value >= self.check.least


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of one claim."""

    claim: Claim
    primary: PredicateResult | None
    secondary: tuple[PredicateResult, ...]
    checks: tuple[CheckResult, ...]
    raw: ClaimFinding
    """The uncorrected verdict."""
    verdict: ClaimFinding
    """The verdict corrected for all claims (Holm)."""
    adjusted: Judgement | None = None
    """None if the claim was not decided by an effect."""

    @property
    def is_tested(self) -> bool:
        """Whether the claim was tested, and so belongs to the family."""
        return self.primary is not None and self.raw in (
            ClaimFinding.SUPPORTED, ClaimFinding.CONTRADICTED, ClaimFinding.INCONCLUSIVE,
        )  # fmt: skip


@dataclass
class StudyData:
    """The finished runs of a study by level and seed and its measurements by name and seed, read once."""

    study: Study
    histories: Mapping[str, Mapping[int, History]]
    measured: Mapping[str, Mapping[int, Sequence[MeasuredValue]]] = field(default_factory=dict)
    _series: dict[tuple[str, int, str], MetricSeries | None] = field(default_factory=dict)
    _weightings: dict[int, Array] = field(default_factory=dict)

    def series(self, level: str, seed: int, metric: str) -> MetricSeries | None:
        """Return a metric of a run; None if there is no such run or it did not record it."""
        key = (level, seed, metric)
        if key not in self._series:
            history = self.histories.get(level, {}).get(seed)
            self._series[key] = read_series(history, metric) if history else None
        return self._series[key]

    def weightings(self, num_problems: int) -> Array:
        """Return the resampled problems, the same for all runs."""
        if num_problems not in self._weightings:
            self._weightings[num_problems] = draw_weightings(num_problems)
        return self._weightings[num_problems]

    @property
    def seeds(self) -> list[int]:
        """Seeds with a finished run."""
        return sorted({seed for runs in self.histories.values() for seed in runs})


def judge_claims(claims: Sequence[Claim], data: StudyData) -> list[ClaimResult]:
    """Judge a study's claims, uncorrected."""
    return [judge_claim(claim, data) for claim in claims]


def adjust_claims(results: Sequence[ClaimResult]) -> list[ClaimResult]:
    """Return the claims with verdicts corrected by Holm over the tested claims of the catalogue."""
    family = {r.claim.id: r.primary.judgement for r in results if r.is_tested and r.primary and not r.claim.says}
    adjusted = adjust_judgements(family)
    return [
        replace(r, verdict=adjusted[r.claim.id].verdict, adjusted=adjusted[r.claim.id]) if r.claim.id in adjusted else r
        for r in results
    ]


def judge_claim(claim: Claim, data: StudyData) -> ClaimResult:
    """Judge a claim by its study's finished runs and measurements."""
    secondary = tuple(judge_predicate(predicate, data) for predicate in claim.secondary)
    if claim.primary is None:
        verdict = ClaimFinding.UNDECIDABLE
        return ClaimResult(claim, None, secondary, (), verdict, verdict)
    primary = judge_predicate(claim.primary, data)
    checks = tuple(find_checks(claim, data))
    verdict = primary.verdict
    if verdict is not ClaimFinding.NOT_RUN and not (all(c.is_reached for c in checks) and _differs(primary)):
        verdict = ClaimFinding.CANNOT_APPEAR
    return ClaimResult(claim, primary, secondary, checks, verdict, verdict)


def find_checks(claim: Claim, data: StudyData) -> list[CheckResult]:
    """Return the manipulation checks: whether the treatment reached the rollouts and, for training, the baseline
    learnt."""
    checks = [claim.check] if claim.check else []
    if claim.family == "training" and data.study.min_gain:
        reference = data.study.reference
        checks.append(Check(metric="accuracy", feature="growth", of=(reference,), least=data.study.min_gain))
    effects = [measure_contrast(check, data) for check in checks]
    return [CheckResult(check, e.value if e else None) for check, e in zip(checks, effects, strict=True)]


def judge_predicate(predicate: Predicate, data: StudyData) -> PredicateResult:
    """Measure a predicate's effect over all seeds that have its work, and judge it."""
    effect = measure_contrast(predicate, data)
    if effect is None:
        return PredicateResult(predicate, None, Judgement(ClaimFinding.NOT_RUN))
    return PredicateResult(
        predicate, effect, judge_effect(effect, direction=predicate.direction, least=predicate.least)
    )


def measure_contrast(contrast: Contrast, data: StudyData) -> Effect | None:
    """Return a contrast over the seeds that have all its work; None without any."""
    if contrast.measurement:
        by_seed = {
            seed: pairs
            for seed, rows in data.measured.get(contrast.measurement, {}).items()
            if (pairs := pair_rows(contrast, rows))
        }
        unit = data.study.measurements[contrast.measurement].metrics[contrast.metric].unit
        return estimate_rows(by_seed, span=1.0 if unit == "share" else None) if by_seed else None
    return _measure_runs(contrast, data)


def pair_rows(contrast: Contrast, rows: Sequence[MeasuredValue]) -> dict[str, float]:
    """Return unit -> difference between the levels; units that lack a level are left out."""
    values: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.metric == contrast.metric and row.level in contrast.levels:
            values.setdefault(row.unit, {}).setdefault(row.level, []).append(row.value)
    return {
        unit: _mean_of(levels, contrast.of) - _mean_of(levels, contrast.against)
        for unit, levels in values.items()
        if len(levels) == len(contrast.levels)
    }


def is_share(contrast: Contrast, study: Study) -> bool:
    """Whether the contrast is of a share, shown in percent."""
    if contrast.measurement:
        return study.measurements[contrast.measurement].metrics[contrast.metric].unit == "share"
    return contrast.metric in SHARES and "peak_at" not in contrast.feature


def _mean_of(values: Mapping[str, Sequence[float]], levels: Sequence[str]) -> float:
    return fmean(fmean(values[level]) for level in levels) if levels else 0.0


def _differs(result: PredicateResult) -> bool:
    """Whole runs that differ nowhere are the same run: the setting changed nothing."""
    is_of_runs = not result.predicate.measurement and bool(result.predicate.against)
    return not (is_of_runs and result.effect is not None and result.effect.is_nothing)


def _measure_runs(contrast: Contrast, data: StudyData) -> Effect | None:
    import numpy as np

    rows = [row for seed in data.seeds if (row := _difference(contrast, data, seed)) is not None]
    if not rows:
        return None
    one = next(
        series for seed in data.seeds if (series := data.series(contrast.of[0], seed, contrast.metric)) is not None
    )
    features = (contrast.feature, contrast.against_feature or contrast.feature)
    return estimate_effect(
        np.stack(rows),
        num_problems=one.num_problems if one.num_problems > 1 else 0,
        resolution=max(resolution(one, feature) for feature in features),
        span=1.0 if is_share(contrast, data.study) else None,
    )


def _difference(contrast: Contrast, data: StudyData, seed: int) -> Array | None:
    """The seed's difference under each weighting of the problems; None if a run is missing."""
    of = _mean_feature(contrast.of, contrast.feature, contrast.metric, data, seed)
    if not contrast.against:
        return of
    other = contrast.against_feature or contrast.feature
    against = _mean_feature(contrast.against, other, contrast.metric, data, seed)
    return None if of is None or against is None else of - against


def _mean_feature(levels: Sequence[str], feature: str, metric: str, data: StudyData, seed: int) -> Array | None:
    import numpy as np

    values = []
    for level in levels:
        series = data.series(level, seed, metric)
        if series is None:
            return None
        values.append(measure(series, feature, data.weightings(series.num_problems)))
    mean = np.mean(values, axis=0)
    return mean if np.isfinite(mean[0]) else None
