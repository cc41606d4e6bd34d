"""Verdicts on claims from finished work.

Contrasts are measured as effects, judged alone, and corrected for all claims. Sign and size have
separate tests. Of a claim "higher by `least` or more" ("lower" is mirrored), with a 95 % interval
of the effect:

| verdict | sign | size |
|---|---|---|
| supported | the interval is above 0 | and reaches `least` |
| there, but smaller than d | the interval is above 0 | and below `least`: d is excluded |
| contradicted | the interval is below 0 | |
| contradicted | the interval holds 0 | and is below `least` (1) |
| inconclusive | anything else | |

(1) Only if `least` is not above the paper's effect.

More seeds narrow an interval about the true effect: from "supported" they lead to "there, but
smaller", never to "contradicted". An effect smaller than the smallest of interest that the paper
itself reports is no contradiction. "The same within `least`" is supported by an interval within,
and contradicted by one wholly outside.

The interval is over starts, the models that runs begin with (`effects`). Fewer than eight starts
conclude nothing: the verdict is inconclusive, and says how many there are. That holds for given
models and for units, too.

A claim may name controls: the same contrast at equal accuracy, after as many rounds, against
another arm. They only take away. A claim reverses or vanishes under one where its interval is on
the other side of 0, or holds 0 and excludes `least`: it is then "undone by its control". A claim
that the control leaves open is inconclusive.

There are two null hypotheses a claim: the sign (that the effect is 0, either way) and the size
(that it is at least `least`); of `same`, that it is not within and that it is not outside. Over
the catalogue these are two families. Holm's step-down procedure (1979) holds the chance of any
wrong rejection in each at 2.5 %, one-sided, so that of any wrong verdict at 5 %. A family counts
all claims of the catalogue, tested or not, so that leaving one out frees nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from microcoder.lab.studies.contrasts import (
    Histories,
    MeasuredRows,
    measure_contrast,
    name_start,
)
from microcoder.lab.studies.design import INSIGHTS, LEAST_GAIN, Claim, Contrast, Control, Study
from microcoder.lab.studies.effects import ALPHA, Effect
from microcoder.lab.studies.work import Work, name_seeds, plan_work, read_measured
from microcoder.train.runs import History, read_history


class ClaimFinding(StrEnum):
    """The verdict on a claim."""

    SUPPORTED = "supported"
    SMALLER = "there, but smaller than d"
    """The sign holds; an effect as large as the smallest of interest, d, is excluded."""
    CONTRADICTED = "contradicted"
    UNDONE = "undone by its control"
    """The claim was decided as it stands, and reverses or vanishes once another explanation is held
    equal."""
    CONSTRUCTED = "by construction"
    """The claim holds, and could not have come out with another sign here."""
    INCONCLUSIVE = "inconclusive"
    CANNOT_APPEAR = "cannot appear here"
    """A manipulation check failed, or the baseline learnt too little."""
    UNASKED = "not asked"
    """The study does not ask the claim; its file says what it would take of the micro model."""
    UNDECIDABLE = "not decidable at this scale"
    """No hours of the micro model decide the claim; the study's file says what would."""
    NOT_RUN = "not run"

    @property
    def is_conclusive(self) -> bool:
        """Whether the verdict is for or against the claim."""
        return self in (ClaimFinding.SUPPORTED, ClaimFinding.SMALLER, ClaimFinding.CONTRADICTED)


@dataclass(frozen=True, slots=True)
class ContrastResult:
    """A contrast with its effect, its verdict, and its two-sided p-values.

    They are at most 5 % if the interval excludes the null hypothesis.
    """

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
        """Whether the mean over starts is at least `least`, as a check requires."""
        return self.effect is not None and self.effect.value >= self.contrast.least


def judge_contrast(contrast: Contrast, effect: Effect | None) -> ContrastResult:
    """Return a contrast with effect, verdict and p-values, not yet corrected for other claims."""
    if effect is None or not math.isfinite(effect.value):
        return ContrastResult(contrast, effect)
    least = contrast.least
    if contrast.direction == "same":
        # The larger one: to show sameness, both sides have to be rejected.
        p_sign = max(effect.p_below(least), effect.p_above(-least))
        p_size = min(effect.p_below(-least), effect.p_above(least))
    else:
        p_sign = min(effect.p_above(0.0), effect.p_below(0.0))
        if contrast.direction == "lower":
            p_size = effect.p_above(-least)
        else:
            p_size = effect.p_below(least)
    return _judge(contrast, effect, min(1.0, 2 * p_sign), min(1.0, 2 * p_size))


def adjust_verdicts(
    results: Mapping[str, ContrastResult], *, num_claims: int
) -> dict[str, ContrastResult]:
    """Return the results, by the same keys, with verdicts corrected for `num_claims` claims.

    All claims of the family count, tested or not.
    """
    p_signs = {name: result.p_sign for name, result in results.items()}
    p_sizes = {name: result.p_size for name, result in results.items()}
    p_signs = adjust_p_values(p_signs, num_tests=num_claims)
    p_sizes = adjust_p_values(p_sizes, num_tests=num_claims)
    adjusted = {}
    for name, result in results.items():
        if result.effect is not None:
            adjusted[name] = _judge(result.contrast, result.effect, p_signs[name], p_sizes[name])
    return adjusted


def _judge(contrast: Contrast, effect: Effect, p_sign: float, p_size: float) -> ContrastResult:
    """Return the verdict of an effect, by its interval and the p-values of sign and size."""
    if effect.too_few:
        verdict = ClaimFinding.INCONCLUSIVE
    elif contrast.direction == "same":
        verdict = _judge_sameness(p_sign, p_size)
    else:
        verdict = _judge_direction(contrast, effect, p_sign, p_size)
    return ContrastResult(contrast, effect, verdict, p_sign, p_size)


def _judge_sameness(p_within: float, p_outside: float) -> ClaimFinding:
    if p_within <= ALPHA:
        return ClaimFinding.SUPPORTED
    if p_outside <= ALPHA:
        return ClaimFinding.CONTRADICTED
    return ClaimFinding.INCONCLUSIVE


def _judge_direction(
    contrast: Contrast, effect: Effect, p_sign: float, p_size: float
) -> ClaimFinding:
    # The ends of the interval, mirrored so that up is as claimed.
    low = effect.low
    high = effect.high
    if contrast.direction == "lower":
        low = -effect.high
        high = -effect.low
    has_sign = p_sign <= ALPHA
    excludes_least = p_size <= ALPHA
    if low > 0:
        if not has_sign:
            return ClaimFinding.INCONCLUSIVE
        return ClaimFinding.SMALLER if excludes_least else ClaimFinding.SUPPORTED
    if excludes_least and not contrast.is_above_paper:
        return ClaimFinding.CONTRADICTED
    if has_sign and high < 0:
        return ClaimFinding.CONTRADICTED
    return ClaimFinding.INCONCLUSIVE


def adjust_p_values(p_values: Mapping[str, float], *, num_tests: int) -> dict[str, float]:
    """Return Holm's adjusted p-values in a family of `num_tests`.

    Rejecting those up to a level bounds the chance of any wrong rejection by that level.
    """
    adjusted = {}
    highest = 0.0
    ascending = sorted(p_values.items(), key=lambda item: (item[1], item[0]))
    for rank, (name, p_value) in enumerate(ascending):
        highest = max(highest, min(1.0, (num_tests - rank) * p_value))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


@dataclass(frozen=True, slots=True)
class ControlResult:
    """The result of a claim's control, and how much of the claim it leaves standing."""

    control: Control
    effect: Effect | None
    """The effect under the control; None if the records lack what it compares."""

    def settle(self, verdict: ClaimFinding, primary: ContrastResult) -> ClaimFinding:
        """Return the claim's verdict after its control: unchanged, undone, or inconclusive."""
        if not verdict.is_conclusive:
            return verdict
        if self.effect is None or self.effect.too_few:
            return ClaimFinding.INCONCLUSIVE
        contrast = primary.contrast
        if contrast.direction == "same":
            return self._settle_sameness(verdict, contrast)
        sign = _sign_of(verdict, primary)
        # The ends, mirrored so that up is what the verdict says.
        low, high = sorted((sign * self.effect.low, sign * self.effect.high))
        if low > 0:
            return verdict
        if high < contrast.least:
            return ClaimFinding.UNDONE
        return ClaimFinding.INCONCLUSIVE

    def _settle_sameness(self, verdict: ClaimFinding, contrast: Contrast) -> ClaimFinding:
        under_control = judge_contrast(contrast, self.effect).verdict
        if under_control is verdict:
            return verdict
        if under_control is ClaimFinding.INCONCLUSIVE:
            return under_control
        return ClaimFinding.UNDONE


def _sign_of(verdict: ClaimFinding, primary: ContrastResult) -> float:
    """Return the direction that a verdict speaks for: 1.0 for higher, -1.0 for lower."""
    claimed = -1.0 if primary.contrast.direction == "lower" else 1.0
    return -claimed if verdict is ClaimFinding.CONTRADICTED else claimed


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of one claim: its contrasts with their effects, and the verdict."""

    claim: Claim
    primary: ContrastResult | None
    secondary: tuple[ContrastResult, ...]
    checks: tuple[ContrastResult, ...]
    raw: ClaimFinding
    """The uncorrected verdict."""
    controls: tuple[ControlResult, ...] = ()
    adjusted: ContrastResult | None = None
    """Verdict and p-values adjusted for all claims (Holm); None if the claim was not decided by an
    effect."""

    @property
    def verdict(self) -> ClaimFinding:
        """The verdict, corrected where it was decided by an effect."""
        if self.adjusted is None:
            return self.raw
        return _settle(self.adjusted, self.checks, self.controls)

    @property
    def why_open(self) -> str:
        """What a verdict lacks, such as `3 starts, at least 8 are needed`.

        Empty if nothing is lacking that can be counted.
        """
        if self.verdict is not ClaimFinding.INCONCLUSIVE:
            return ""
        if self.primary is None or self.primary.effect is None:
            return ""
        if self.primary.effect.too_few:
            return self.primary.effect.too_few
        for result in self.controls:
            if result.effect is None:
                return f"not on record: {result.control.says}"
            if result.effect.too_few:
                return f"{result.control.says}: {result.effect.too_few}"
        decided = self.adjusted or self.primary
        if decided.verdict.is_conclusive:
            for result in self.controls:
                if result.settle(decided.verdict, decided) is ClaimFinding.INCONCLUSIVE:
                    return "left open by its control"
        return ""


@dataclass(frozen=True)
class JudgedStudy:
    """A study with the results of its finished work: all that its page is written from."""

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
            "before": [run.before.accuracy for run in runs if run.before],
            "after": [run.after.accuracy for run in runs if run.after],
        }


def judge_studies(
    studies: Sequence[Study],
    *,
    scale: str,
    root: Path,
    code: str | None = None,
    seeds_from: int = 0,
) -> list[JudgedStudy]:
    """Return studies with verdicts, corrected for the number of claims.

    Claims of the catalogue are corrected for all of the catalogue, a study's own claims (X1, X2
    ...) for that study's. The other arguments are those of `plan_work`.
    """
    judged = []
    catalogued: list[ClaimResult] = []
    for study in studies:
        works = plan_work(study, scale=scale, root=root, code=code, seeds_from=seeds_from)
        uncorrected = judge_work(study, works, scale=scale)
        judged.append(uncorrected)
        catalogued += [result for result in uncorrected.claims if result.claim.is_catalogued]
    adjusted_of_catalogue = _adjust(catalogued, num_claims=len(INSIGHTS))
    corrected = []
    for uncorrected in judged:
        own = [result for result in uncorrected.claims if not result.claim.is_catalogued]
        adjusted = adjusted_of_catalogue | _adjust(own, num_claims=len(own))
        claims = []
        for result in uncorrected.claims:
            claims.append(replace(result, adjusted=adjusted.get(result.claim.id)))
        corrected.append(replace(uncorrected, claims=claims))
    return corrected


_BY_EFFECT = (
    ClaimFinding.SUPPORTED,
    ClaimFinding.SMALLER,
    ClaimFinding.CONTRADICTED,
    ClaimFinding.UNDONE,
    ClaimFinding.INCONCLUSIVE,
)
"""Verdicts that an effect decides, and that are corrected."""


def _adjust(results: Sequence[ClaimResult], *, num_claims: int) -> dict[str, ContrastResult]:
    """Return the corrected results of claims that an effect decides, by claim id.

    Args:
        results: of the claims.
        num_claims: size of the family that they are corrected for.
    """
    tested = {}
    for result in results:
        if result.primary and result.raw in _BY_EFFECT:
            tested[result.claim.id] = result.primary
    return adjust_verdicts(tested, num_claims=num_claims)


def judge_work(study: Study, works: Sequence[Work], *, scale: str) -> JudgedStudy:
    """Read the finished part of a study's planned work.

    Returns:
        The study with an uncorrected verdict on each claim.
    """
    histories: dict[str, dict[int, History]] = {level: {} for level in study.levels}
    measured: dict[str, dict[int, MeasuredRows]] = {name: {} for name in study.measurements}
    done = [work for work in works if work.is_finished]
    summaries = []
    for work in done:
        if work.measurement is None:
            histories[work.name][work.seed] = read_history(work.folder)
            continue
        rows, summary = read_measured(work.folder)
        config = summary.get("config") or {}
        model = config.get("model") or {}
        measured[work.name][work.seed] = MeasuredRows(rows, model)
        summaries.append(summary)
    contrasts: list[Contrast] = []
    for claim in study.claims:
        contrasts += [*claim.contrasts, *claim.controls, *_checks(claim, study)]
    effects = {}
    # Claims share contrasts: each is measured once.
    for contrast in dict.fromkeys(contrasts):
        effect = measure_contrast(contrast, study, histories, measured)
        if effect:
            effects[contrast] = effect
    seeds = sorted({work.seed for work in done})
    runs: list[History] = []
    for by_seed in histories.values():
        runs += by_seed.values()
    return JudgedStudy(
        study=study,
        scale=scale,
        works=works,
        seeds=seeds,
        histories=histories,
        effects=effects,
        claims=[judge_claim(claim, study, effects) for claim in study.claims],
        made=_describe_origin(seeds, runs, summaries, done),
    )


def _describe_origin(
    seeds: Sequence[int],
    runs: Sequence[History],
    summaries: Sequence[Mapping[str, Any]],
    works: Sequence[Work],
) -> str:
    """Return seeds, starts, CPU-hours, code, commits and machines of finished work in sentences."""
    records = [history.manifest for history in runs]
    records += summaries
    commits = sorted({_name_commit(record.get("git") or {}) for record in records})
    starts = set()
    for record in records:
        start = name_start((record.get("config") or {}).get("model") or {})
        if start:
            starts.add(start)
    begun = ""
    if starts:
        begun = f" from {len(starts)} starts" if len(starts) > 1 else " from 1 start"
    machines = set()
    for history in runs:
        machine = history.manifest.get("machine")
        if machine:
            machines.add(f"{machine.get('num_cpus')} cores, {machine.get('platform')}")
    codes = sorted({work.folder.parent.name for work in works})
    seconds = sum((history.summary or {}).get("cpu_seconds", 0.0) for history in runs)
    seconds += sum(summary.get("cpu_seconds", 0.0) for summary in summaries)
    parts = [
        f"Seeds {name_seeds(seeds)}{begun}",
        f"{len(runs)} runs and {len(summaries)} measurements, {seconds / 3600:.1f} CPU-hours",
        f"Code digest {', '.join(codes)}, commit {', '.join(commits) or '-'}",
        f"Machines: {'; '.join(sorted(machines)) or '-'}",
    ]
    return ". ".join(parts) + "."


def _name_commit(git: Mapping[str, Any]) -> str:
    name = str(git.get("commit") or "unknown")[:12]
    return f"{name} with changes" if git.get("is_dirty") else name


def _checks(claim: Claim, study: Study) -> list[Contrast]:
    """Return the manipulation checks of a claim: its own, and that the baseline has learnt."""
    checks = []
    if claim.check:
        checks.append(claim.check)
    if claim.primary and claim.family == "training":
        learnt = Contrast(
            metric="accuracy", feature="growth", of=(study.reference,), least=LEAST_GAIN
        )
        checks.append(learnt)
    return checks


def judge_claim(claim: Claim, study: Study, effects: Mapping[Contrast, Effect]) -> ClaimResult:
    """Return the result of a claim, not yet corrected for other claims."""

    def find(contrast: Contrast) -> ContrastResult:
        return judge_contrast(contrast, effects.get(contrast))

    secondary = tuple(map(find, claim.secondary))
    if claim.primary is None:
        verdict = ClaimFinding.UNDECIDABLE if claim.undecidable else ClaimFinding.UNASKED
        return ClaimResult(claim, None, secondary, (), verdict)
    primary = find(claim.primary)
    checks = tuple(map(find, _checks(claim, study)))
    controls = tuple(ControlResult(control, effects.get(control)) for control in claim.controls)
    if primary.verdict is ClaimFinding.NOT_RUN:
        verdict = ClaimFinding.NOT_RUN
    elif _cannot_appear(primary, checks):
        verdict = ClaimFinding.CANNOT_APPEAR
    elif claim.construction and _is_as_claimed(primary):
        verdict = ClaimFinding.CONSTRUCTED
    else:
        verdict = _settle(primary, checks, controls)
    return ClaimResult(claim, primary, secondary, checks, verdict, controls)


def _cannot_appear(primary: ContrastResult, checks: Sequence[ContrastResult]) -> bool:
    """Whether the setting changed nothing, or a check was missed."""
    contrast = primary.contrast
    compares_runs = bool(contrast.against) and not contrast.measurement
    # Whole runs that differ nowhere are the same run.
    if compares_runs and primary.effect is not None and primary.effect.is_nothing:
        return True
    return any(check.effect is not None and not check.is_reached for check in checks)


def _is_as_claimed(primary: ContrastResult) -> bool:
    """Whether each start has the sign that the claim says.

    This is asked of values that could not have been otherwise, which do not need eight starts.
    """
    effect = primary.effect
    if effect is None or primary.contrast.direction == "same":
        return False
    sign = -1.0 if primary.contrast.direction == "lower" else 1.0
    return all(sign * value > 0 for value in effect.by_start or effect.by_seed)


def _settle(
    primary: ContrastResult,
    checks: Sequence[ContrastResult],
    controls: Sequence[ControlResult],
) -> ClaimFinding:
    """Return the verdict on a primary contrast after its checks and controls."""
    verdict = primary.verdict
    # An effect is seen whatever its dose. That none is seen says something only of a known dose,
    # and the check is what tells the dose.
    if verdict is ClaimFinding.CONTRADICTED and any(check.effect is None for check in checks):
        return ClaimFinding.INCONCLUSIVE
    left = [control.settle(verdict, primary) for control in controls]
    for finding in (ClaimFinding.UNDONE, ClaimFinding.INCONCLUSIVE):
        if finding in left:
            return finding
    return verdict


def as_records(judged: Sequence[JudgedStudy]) -> dict[str, Any]:
    """Return the studies' records and verdicts as JSON values.

    Floats have nine digits, as others vary between processors; infinity and NaN are None.
    """
    studies = {}
    claims = []
    for judged_study in judged:
        study = judged_study.study
        studies[study.name] = _record_study(judged_study)
        claims += [_record_claim(result, study) for result in judged_study.claims]
    scale = judged[0].scale if judged else ""
    records = {
        "scale": scale,
        "studies": studies,
        "claims": claims,
    }
    return json.loads(
        json.dumps(records),
        parse_float=lambda text: float(f"{float(text):.9g}"),
        parse_constant=lambda _: None,
    )


def _record_study(judged: JudgedStudy) -> dict[str, Any]:
    effects = {}
    for contrast, effect in judged.effects.items():
        effects[judged.study.describe(contrast)] = asdict(effect)
    return {
        "seeds": judged.seeds,
        "effects": effects,
        "levels": {level: judged.accuracies(level) for level in judged.study.levels},
        "made": judged.made,
    }


def _record_claim(result: ClaimResult, study: Study) -> dict[str, Any]:
    claim = result.claim
    primary = None
    if claim.primary:
        primary = study.describe(claim.primary)
    p_sign = None
    p_size = None
    if result.adjusted:
        p_sign = result.adjusted.p_sign
        p_size = result.adjusted.p_size
    return {
        "id": claim.id,
        "study": study.name,
        "short": claim.short,
        "primary": primary,
        "verdict": result.verdict.value,
        "verdict_alone": result.raw.value,
        "why_open": result.why_open,
        "controls": [study.describe(control) for control in claim.controls],
        "p_sign_holm": p_sign,
        "p_size_holm": p_size,
    }
