"""Claims judged by finished work: contrasts measured, verdicts corrected for all claims, results as records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json
from microcoder.lab.studies.design import LEAST_GAIN, Claim, Contrast, Study, StudyFile
from microcoder.lab.studies.effects import Effect, draw_weightings, estimate_effect, estimate_rows
from microcoder.lab.studies.features import MetricSeries, measure, read_series, resolution
from microcoder.lab.studies.history import History, read_history
from microcoder.lab.studies.measure import MeasuredValue, read_measured
from microcoder.lab.studies.verdicts import ClaimFinding, Judgement, adjust_judgements, judge_effect
from microcoder.lab.studies.work import Work, plan_work

if TYPE_CHECKING:
    from microcoder.lab.studies.effects import Array

FORMAT = 1


@dataclass(frozen=True, slots=True)
class ContrastResult:
    """A contrast with its effect."""

    contrast: Contrast
    effect: Effect | None
    """None if no seed has all the work that it compares."""
    judgement: Judgement
    """The uncorrected verdict."""

    @property
    def is_precise(self) -> bool:
        """The interval's half width is at most the smallest effect of interest."""
        return self.effect is not None and self.effect.half_width <= self.contrast.least

    @property
    def is_reached(self) -> bool:
        """As a check: the mean over seeds reached `least`."""
        return self.effect is not None and self.effect.value >= self.contrast.least


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of one claim."""

    claim: Claim
    primary: ContrastResult | None
    secondary: tuple[ContrastResult, ...]
    checks: tuple[ContrastResult, ...]
    raw: ClaimFinding
    """The uncorrected verdict."""
    verdict: ClaimFinding
    """The verdict corrected for all claims (Holm)."""
    adjusted: Judgement | None = None
    """p-values adjusted for all claims; None if the claim was not decided by an effect."""


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


@dataclass(frozen=True)
class JudgedStudy:
    """A study with its work and verdicts."""

    file: StudyFile
    scale: str
    works: Sequence[Work]
    data: StudyData
    summaries: Sequence[Mapping[str, Any]]
    """Summaries of the finished measurements."""
    claims: Sequence[ClaimResult]

    @property
    def histories(self) -> list[History]:
        """Histories of the finished runs."""
        return [history for by_seed in self.data.histories.values() for history in by_seed.values()]

    @property
    def seeds(self) -> list[int]:
        """Seeds with finished work."""
        measured = {seed for by_seed in self.data.measured.values() for seed in by_seed}
        return sorted(measured.union(self.data.seeds))


def judge_studies(
    files: Sequence[StudyFile], *, scale: str, root: Path, code: str | None = None, seeds_from: int = 0
) -> list[JudgedStudy]:
    """Judge studies by their finished work, as one family of claims; arguments as in `plan_runs`."""
    judged = [
        judge_work(file, plan_work(file, scale=scale, root=root, code=code, seeds_from=seeds_from), scale=scale)
        for file in files
    ]
    tested = (ClaimFinding.SUPPORTED, ClaimFinding.CONTRADICTED, ClaimFinding.INCONCLUSIVE)
    adjusted = adjust_judgements(
        {
            result.claim.id: result.primary.judgement
            for study in judged
            for result in study.claims
            if result.claim.is_catalogued and result.primary and result.raw in tested
        }
    )
    return [
        replace(
            study,
            claims=[
                replace(result, verdict=found.verdict, adjusted=found)
                if (found := adjusted.get(result.claim.id))
                else result
                for result in study.claims
            ],
        )
        for study in judged
    ]


def judge_work(file: StudyFile, works: Sequence[Work], *, scale: str) -> JudgedStudy:
    """Read what is finished of a study's planned work and judge each claim by itself."""
    histories: dict[str, dict[int, History]] = {level: {} for level in file.study.levels}
    measured: dict[str, dict[int, Sequence[MeasuredValue]]] = {name: {} for name in file.study.measurements}
    summaries = []
    for work in (work for work in works if work.is_finished):
        if work.measurement is None:
            histories[work.name][work.seed] = read_history(work.folder)
        else:
            measured[work.name][work.seed], summary = read_measured(work.folder)
            summaries.append(summary)
    data = StudyData(file.study, histories, measured)
    return JudgedStudy(file, scale, works, data, summaries, [judge_claim(claim, data) for claim in file.study.claims])


def judge_claim(claim: Claim, data: StudyData) -> ClaimResult:
    """Judge a claim by its study's finished runs and measurements, uncorrected."""
    secondary = tuple(_judge_contrast(contrast, data) for contrast in claim.secondary)
    if claim.primary is None:
        verdict = ClaimFinding.UNDECIDABLE
        return ClaimResult(claim, None, secondary, (), verdict, verdict)
    primary = _judge_contrast(claim.primary, data)
    wanted = [claim.check] if claim.check else []
    if claim.family == "training":
        # The baseline must have learnt.
        wanted.append(Contrast(metric="accuracy", feature="growth", of=(data.study.reference,), least=LEAST_GAIN))
    checks = tuple(_judge_contrast(check, data) for check in wanted)
    verdict, effect = primary.judgement.verdict, primary.effect
    # Whole runs that differ nowhere are the same run: the setting changed nothing.
    is_same = not claim.primary.measurement and bool(claim.primary.against) and effect is not None and effect.is_nothing
    if verdict is not ClaimFinding.NOT_RUN and (is_same or not all(check.is_reached for check in checks)):
        verdict = ClaimFinding.CANNOT_APPEAR
    return ClaimResult(claim, primary, secondary, checks, verdict, verdict)


def _judge_contrast(contrast: Contrast, data: StudyData) -> ContrastResult:
    effect = measure_contrast(contrast, data)
    if effect is None:
        return ContrastResult(contrast, None, Judgement(ClaimFinding.NOT_RUN))
    return ContrastResult(contrast, effect, judge_effect(effect, direction=contrast.direction, least=contrast.least))


def measure_contrast(contrast: Contrast, data: StudyData) -> Effect | None:
    """Return a contrast over the seeds that have all its work; None without any."""
    is_share = data.study.unit_of(contrast.metric, contrast.measurement, contrast.feature) == "share"
    span = 1.0 if is_share and not contrast.dose else None
    if contrast.measurement:
        found = data.measured.get(contrast.measurement, {}).items()
        by_seed = {seed: pairs for seed, rows in found if (pairs := pair_rows(contrast, rows))}
        return estimate_rows(by_seed, span=span) if by_seed else None
    return _measure_runs(contrast, data, span)


def pair_rows(contrast: Contrast, rows: Sequence[MeasuredValue]) -> dict[str, float]:
    """Return unit -> effect between the levels; units that lack a level are left out."""
    values: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        if row.metric == contrast.metric and row.level in contrast.levels:
            values.setdefault(row.unit, {}).setdefault(row.level, []).append(row.value)
    pairs = {}
    for unit, levels in values.items():
        if len(levels) == len(contrast.levels):
            of, against = ([fmean(levels[level]) for level in side] for side in (contrast.of, contrast.against))
            mean = sum(w * value for w, value in zip(_slope(contrast), of, strict=True)) if contrast.dose else fmean(of)
            pairs[unit] = mean - (fmean(against) if against else 0.0)
    return pairs


def _slope(contrast: Contrast) -> list[float]:
    """Return the weight of each level whose sum is the least-squares slope over the dose."""
    centred = [dose - fmean(contrast.dose) for dose in contrast.dose]
    return [value / sum(x * x for x in centred) for value in centred]


def _measure_runs(contrast: Contrast, data: StudyData, span: float | None) -> Effect | None:
    import numpy as np

    features = (contrast.feature, contrast.against_feature or contrast.feature)
    rows, measured = [], None
    for seed in data.seeds:
        sides = []
        for levels, feature in zip((contrast.of, contrast.against), features, strict=True):
            series = [one for level in levels if (one := data.series(level, seed, contrast.metric)) is not None]
            if len(series) < len(levels):
                break
            values = [measure(one, feature, data.weightings(one.num_problems)) for one in series]
            measured = measured or next(iter(series), None)
            if values:
                sides.append(np.tensordot(_slope(contrast), values, 1) if contrast.dose else np.mean(values, axis=0))
        if len(sides) == 1 + bool(contrast.against) and all(np.isfinite(side[0]) for side in sides):
            rows.append(sides[0] - sides[1] if contrast.against else sides[0])
    if not rows or measured is None:
        return None
    return estimate_effect(
        np.stack(rows),
        num_problems=measured.num_problems if measured.num_problems > 1 else 0,
        resolution=max(resolution(measured, feature) for feature in features),
        span=span,
    )


def as_records(judged: Sequence[JudgedStudy]) -> dict[str, Any]:
    """Return the results as plain values."""
    return {
        "format": FORMAT,
        "scale": judged[0].scale if judged else "",
        "seeds": {study.file.name: study.seeds for study in judged},
        "claims": [_claim_record(study.file.name, result) for study in judged for result in study.claims],
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


def compare_results(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return each conclusive claim of the first report with its verdicts in both."""
    verdicts = {claim["id"]: claim["verdict"] for claim in second["claims"]}
    return [
        (claim["id"], claim["verdict"], verdicts.get(claim["id"], ClaimFinding.NOT_RUN.value))
        for claim in first["claims"]
        if ClaimFinding(claim["verdict"]).is_conclusive
    ]


def _claim_record(study: str, result: ClaimResult) -> dict[str, Any]:
    claim = result.claim
    return {
        "id": claim.id,
        "study": study,
        "short": claim.short,
        "family": claim.family,
        "verdict": result.verdict.value,
        "verdict_alone": result.raw.value,
        "p_holm_for": result.adjusted.p_for if result.adjusted else None,
        "p_holm_against": result.adjusted.p_against if result.adjusted else None,
        "primary": _contrast_record(result.primary) if result.primary else None,
        "secondary": [_contrast_record(part) for part in result.secondary],
        "checks": [
            {
                "compared": name_contrast(found.contrast),
                "value": found.effect.value if found.effect else None,
                "least": found.contrast.least,
                "is_reached": found.is_reached,
            }
            for found in result.checks
        ],
        "spread_assumed": claim.spread.sd if claim.spread else None,
        "undecidable": claim.undecidable.model_dump() if claim.undecidable else None,
    }


def _contrast_record(part: ContrastResult) -> dict[str, Any]:
    effect = part.effect
    return {
        "compared": name_contrast(part.contrast),
        "direction": part.contrast.direction,
        "least": part.contrast.least,
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
        "verdict": part.judgement.verdict.value,
    }


def name_contrast(contrast: Contrast) -> str:
    """Return a contrast by the names of the study's file."""
    of, against = (" and ".join(levels) for levels in (contrast.of, contrast.against))
    where, feature = contrast.measurement or contrast.feature, contrast.against_feature
    text = f"{contrast.metric} ({where}): {of}"
    return text + (f" against {against}" if against else "") + (f" ({feature})" if feature else "")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
