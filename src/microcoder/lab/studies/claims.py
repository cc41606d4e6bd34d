"""Claims judged by finished work: primary predicates, secondary ones, and the family of all claims.

Results of studies: judged as one family, as records for other programs, and compared with replications.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json
from microcoder.lab.studies.design import LEAST_GAIN, Check, Claim, Contrast, Predicate, Study
from microcoder.lab.studies.effects import Effect, draw_weightings, estimate_effect, estimate_rows
from microcoder.lab.studies.features import SHARES, MetricSeries, measure, read_series, resolution
from microcoder.lab.studies.history import History, read_history
from microcoder.lab.studies.jobs import MeasuredValue
from microcoder.lab.studies.measure import read_measured
from microcoder.lab.studies.study import StudyFile, StudyMeasurement, StudyRun, Work, plan_work
from microcoder.lab.studies.verdicts import ClaimFinding, Judgement, adjust_judgements, judge_effect

if TYPE_CHECKING:
    from microcoder.lab.studies.effects import Array


FORMAT = 1


@dataclass(frozen=True)
class JudgedStudy:
    """A study with its finished work and verdicts."""

    file: StudyFile
    scale: str
    runs: Sequence[StudyRun]
    measurements: Sequence[StudyMeasurement]
    data: StudyData
    summaries: Sequence[Mapping[str, Any]]
    """Summaries of the finished measurements."""
    claims: Sequence[ClaimResult]

    @property
    def num_finished(self) -> int:
        """Number of finished runs and measurements."""
        return len(self.histories) + len(self.summaries)

    @property
    def histories(self) -> list[History]:
        """Histories of the finished runs."""
        return [history for by_seed in self.data.histories.values() for history in by_seed.values()]

    @property
    def seeds(self) -> list[int]:
        """Seeds with finished work."""
        measured = {seed for by_seed in self.data.measured.values() for seed in by_seed}
        return sorted(measured.union(self.data.seeds))


@dataclass(frozen=True, slots=True)
class Replication:
    """Which conclusions of one report a second one, with other seeds, reproduces."""

    kept: tuple[str, ...]
    """Conclusive in the first, with the same verdict in the second."""
    changed: tuple[tuple[str, str, str], ...]
    """Claim and both verdicts, of those that were conclusive in the first."""

    @property
    def share_kept(self) -> float | None:
        """Share of the first's conclusions that is reproduced; None if it has none."""
        total = len(self.kept) + len(self.changed)
        return len(self.kept) / total if total else None


def judge_studies(
    files: Sequence[StudyFile],
    *,
    scale: str,
    root: Path,
    code: str | None = None,
    seeds_from: int = 0,
) -> list[JudgedStudy]:
    """Judge studies by their finished work, as one family of claims; arguments as in `plan_runs`."""
    judged = [judge_study(file, scale=scale, root=root, code=code, seeds_from=seeds_from) for file in files]
    adjusted = iter(adjust_claims([result for study in judged for result in study.claims]))
    return [replace(study, claims=[next(adjusted) for _ in study.claims]) for study in judged]


def judge_study(
    file: StudyFile, *, scale: str, root: Path, code: str | None = None, seeds_from: int = 0
) -> JudgedStudy:
    """Read a study's finished work and judge each claim by itself."""
    return judge_work(file, plan_work(file, scale=scale, root=root, code=code, seeds_from=seeds_from), scale=scale)


def judge_work(file: StudyFile, works: Sequence[Work], *, scale: str) -> JudgedStudy:
    """Read what is finished of a study's planned work and judge each claim by itself."""
    runs = [work for work in works if isinstance(work, StudyRun)]
    measurements = [work for work in works if isinstance(work, StudyMeasurement)]
    histories: dict[str, dict[int, History]] = {level: {} for level in file.study.levels}
    for run in runs:
        if run.is_finished:
            histories[run.level][run.seed] = read_history(run.folder)
    measured: dict[str, dict[int, Sequence[MeasuredValue]]] = {name: {} for name in file.study.measurements}
    summaries = []
    for work in measurements:
        if work.is_finished:
            measured[work.name][work.seed], summary = read_measured(work.folder)
            summaries.append(summary)
    data = StudyData(file.study, histories, measured)
    return JudgedStudy(file, scale, runs, measurements, data, summaries, judge_claims(file.study.claims, data))


def as_records(judged: Sequence[JudgedStudy]) -> dict[str, Any]:
    """Return the results as plain values."""
    return {
        "format": FORMAT,
        "scale": judged[0].scale if judged else "",
        "seeds": {study.file.name: study.seeds for study in judged},
        "claims": [_claim_record(study, result) for study in judged for result in study.claims],
    }


def read_results(path: Path) -> dict[str, Any]:
    """Return the records that a report wrote: its `results.json`, or the folder that holds it."""
    path = path / "results.json" if path.is_dir() else path
    if not path.is_file():
        raise DataError(f"{path} does not exist; pass a folder that `microcoder study report --all` wrote")
    found = read_json(path, what="report of studies")
    if found.get("format") != FORMAT:
        raise DataError(
            f"{path} has format {found.get('format')}, not {FORMAT}; write it again with `microcoder study report`"
        )
    return found


def compare_results(first: Mapping[str, Any], second: Mapping[str, Any]) -> Replication:
    """Compare the conclusions of the first report with the second's."""
    verdicts = {claim["id"]: claim["verdict"] for claim in second["claims"]}
    kept, changed = [], []
    for claim in first["claims"]:
        name, verdict = claim["id"], claim["verdict"]
        if not ClaimFinding(verdict).is_conclusive:
            continue
        other = verdicts.get(name, ClaimFinding.NOT_RUN.value)
        if other == verdict:
            kept.append(name)
        else:
            changed.append((name, verdict, other))
    return Replication(tuple(kept), tuple(changed))


def _claim_record(study: JudgedStudy, result: ClaimResult) -> dict[str, Any]:
    claim = result.claim
    return {
        "id": claim.id,
        "study": study.file.name,
        "short": claim.short,
        "family": claim.family,
        "verdict": result.verdict.value,
        "verdict_alone": result.raw.value,
        "p_holm_for": result.adjusted.p_for if result.adjusted else None,
        "p_holm_against": result.adjusted.p_against if result.adjusted else None,
        "primary": _predicate_record(result.primary) if result.primary else None,
        "secondary": [_predicate_record(part) for part in result.secondary],
        "checks": [
            {
                "compared": name_contrast(found.check),
                "value": found.value,
                "least": found.check.least,
                "is_reached": found.is_reached,
            }
            for found in result.checks
        ],
        "spread_assumed": claim.spread.sd if claim.spread else None,
        "undecidable": claim.undecidable.model_dump() if claim.undecidable else None,
    }


def _predicate_record(part: PredicateResult) -> dict[str, Any]:
    effect = part.effect
    return {
        "compared": name_contrast(part.predicate),
        "direction": part.predicate.direction,
        "least": part.predicate.least,
        "value": effect.value if effect else None,
        "low": _finite(effect.low) if effect else None,
        "high": _finite(effect.high) if effect else None,
        "half_width": _finite(effect.half_width) if effect else None,
        "is_precise": part.is_precise,
        "num_seeds": effect.num_seeds if effect else 0,
        "num_units": effect.num_units if effect else 0,
        "by_seed": list(effect.by_seed) if effect else [],
        "p_for": part.judgement.p_for,
        "p_against": part.judgement.p_against,
        "verdict": part.verdict.value,
    }


def name_contrast(contrast: Contrast) -> str:
    """Return a contrast by the names of the study's file."""
    of, against = (" and ".join(levels) for levels in (contrast.of, contrast.against))
    where, feature = contrast.measurement or contrast.feature, contrast.against_feature
    text = f"{contrast.metric} ({where}): {of}"
    return text + (f" against {against}" if against else "") + (f" ({feature})" if feature else "")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class PredicateResult:
    """The result of one predicate."""

    predicate: Predicate
    effect: Effect | None
    """The effect; None if no seed has all the runs that it compares."""
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
    """p-value adjusted for all claims; None if the claim was not decided by an effect."""

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
    effect, is_of_runs = primary.effect, not primary.predicate.measurement and bool(primary.predicate.against)
    # Whole runs that differ nowhere are the same run: the setting changed nothing.
    is_same = is_of_runs and effect is not None and effect.is_nothing
    if verdict is not ClaimFinding.NOT_RUN and (is_same or not all(check.is_reached for check in checks)):
        verdict = ClaimFinding.CANNOT_APPEAR
    return ClaimResult(claim, primary, secondary, checks, verdict, verdict)


def find_checks(claim: Claim, data: StudyData) -> list[CheckResult]:
    """Return the manipulation checks: whether the treatment reached the rollouts and, for training, the baseline
    learnt."""
    checks = [claim.check] if claim.check else []
    if claim.family == "training":
        reference = data.study.reference
        checks.append(Check(metric="accuracy", feature="growth", of=(reference,), least=LEAST_GAIN))
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
