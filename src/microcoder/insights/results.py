"""Results of studies: judged as one family, as records for other programs, and compared with replications."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from microcoder.errors import DataError
from microcoder.files import read_json
from microcoder.insights.claims import (
    ClaimResult,
    PredicateResult,
    StudyData,
    adjust_claims,
    judge_claims,
)
from microcoder.insights.design import Contrast
from microcoder.insights.history import History, read_history
from microcoder.insights.jobs import MeasuredValue
from microcoder.insights.measurements import read_measured
from microcoder.insights.study import StudyFile, StudyMeasurement, StudyRun, Work, plan_work
from microcoder.insights.verdicts import ClaimFinding

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
    """Of the finished measurements."""
    claims: Sequence[ClaimResult]

    @property
    def num_finished(self) -> int:
        """Number of finished runs and measurements."""
        return len(self.histories) + len(self.summaries)

    @property
    def histories(self) -> list[History]:
        """Of the finished runs."""
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
    """Return the records that a report wrote: its `results.json`, or the folder that holds it.

    Raises:
        DataError: they are missing, damaged or of another version.
    """
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
