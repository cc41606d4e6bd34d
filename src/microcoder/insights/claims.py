"""Claims over finished runs: predicate by predicate an effect, its interval and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from microcoder.insights.effects import Effect, Verdict, draw_weightings, estimate_effect, join_verdicts, judge_effect
from microcoder.insights.features import Metric, Series, measure, read_series, resolution
from microcoder.insights.history import History
from microcoder.insights.study import Claim, Predicate, Study

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PredicateResult:
    """What the runs say about one predicate."""

    predicate: Predicate
    effect: Effect | None
    """None where no seed has all the runs that it compares."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """What the runs say about one claim."""

    claim: Claim
    results: tuple[PredicateResult, ...]
    verdict: Verdict


@dataclass
class StudyData:
    """The finished runs of a study by level and seed, and their series, read once."""

    study: Study
    histories: Mapping[str, Mapping[int, History]]
    _series: dict[tuple[str, int, Metric], Series | None] = field(default_factory=dict)
    _weightings: dict[int, Array] = field(default_factory=dict)

    def series(self, level: str, seed: int, metric: Metric) -> Series | None:
        """Return a metric of a run; None where there is no such run or it did not record it."""
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
        """Seeds of which any run is finished."""
        return sorted({seed for runs in self.histories.values() for seed in runs})


def judge_claim(claim: Claim, data: StudyData) -> ClaimResult:
    """Judge a claim by the finished runs of its study."""
    if claim.cannot:
        return ClaimResult(claim, (), Verdict.CANNOT)
    results = tuple(judge_predicate(predicate, data) for predicate in claim.predicates)
    return ClaimResult(claim, results, join_verdicts([result.verdict for result in results]))


def judge_predicate(predicate: Predicate, data: StudyData) -> PredicateResult:
    """Measure a predicate's effect over all seeds that have its runs, and judge it."""
    import numpy as np

    rows = [row for seed in data.seeds if (row := _difference(predicate, data, seed)) is not None]
    if not rows:
        return PredicateResult(predicate, None, Verdict.NOT_RUN)
    one = next(
        series for seed in data.seeds if (series := data.series(predicate.of[0], seed, predicate.metric)) is not None
    )
    grid = max(resolution(one, predicate.feature), resolution(one, predicate.against_feature or predicate.feature))
    effect = estimate_effect(
        np.stack(rows), num_problems=one.num_problems if one.num_problems > 1 else 0, resolution=grid
    )
    return PredicateResult(
        predicate, effect, judge_effect(effect, direction=predicate.direction, least=predicate.least)
    )


def _difference(predicate: Predicate, data: StudyData, seed: int) -> Array | None:
    """The seed's difference under each weighting of the problems; None where a run is missing."""
    of = _mean_feature(predicate.of, predicate.feature, predicate.metric, data, seed)
    if not predicate.against:
        return of
    against = _mean_feature(
        predicate.against, predicate.against_feature or predicate.feature, predicate.metric, data, seed
    )
    return None if of is None or against is None else of - against


def _mean_feature(levels: Sequence[str], feature: str, metric: Metric, data: StudyData, seed: int) -> Array | None:
    import numpy as np

    values = []
    for level in levels:
        series = data.series(level, seed, metric)
        if series is None:
            return None
        values.append(measure(series, feature, data.weightings(series.num_problems)))
    mean = np.mean(values, axis=0)
    return mean if np.isfinite(mean[0]) else None
