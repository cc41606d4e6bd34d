"""Features: numbers that summarise the curves of runs, for claims to compare.

A *series* is a metric over the run; time runs from 0 (untrained) to 1 (the last step). A *feature*
sums a series up:

| feature | meaning |
|---|---|
| `start`, `early`, `late` | mean over time up to 0.1, over (0, 0.4], over (0.7, 1] |
| `mean` | mean over (0, 1] |
| `growth` | late - start |
| `at 40/120` | at that share of the run, between two values if need be |
| `up to 40/120` | mean over (0, 1/3] |
| `swing` | mean absolute second difference: a steady trend has none |

The difference of two is a feature, too: `early - late`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING

from microcoder.data.micro import TIERS
from microcoder.lab.studies.accuracy import pass_by_problem
from microcoder.train.metrics import EvaluationMetrics, ShownMetric, StepMetrics, shown_metrics
from microcoder.train.runs import History

if TYPE_CHECKING:
    from microcoder.lab.studies.effects import Array


def _charted(row: type[StepMetrics | EvaluationMetrics]) -> dict[str, ShownMetric]:
    """Return the metrics of a row class that have one value in a row, by their chart's name."""
    charted = {}
    for metric in shown_metrics(row):
        has_many_values = "{}" in metric.title or bool(metric.label)
        if metric.chart and not has_many_values:
            charted[metric.chart] = metric
    return charted


def _metrics_of_step() -> dict[str, ShownMetric]:
    metrics = _charted(StepMetrics)
    # It shares a chart with the masked share, and studies compare it by itself.
    for metric in shown_metrics(StepMetrics):
        if metric.name == "masked_effective_share":
            metrics["masked_effective"] = metric
    return metrics


def _metrics_of_evaluation() -> dict[str, ShownMetric]:
    metrics = {}
    for chart, metric in _charted(EvaluationMetrics).items():
        # Accuracy is read by problem, see `read_series`.
        if chart != "accuracy":
            metrics[f"heldout_{chart}"] = metric
    return metrics


_OF_STEP = _metrics_of_step()
"""Name in a study -> metric of a training step."""

_OF_EVALUATION = _metrics_of_evaluation()
"""Name in a study -> metric of a held-out evaluation, accuracy apart."""


def _label_metrics() -> dict[str, str]:
    labels = {"accuracy": "Accuracy, held out"}
    for name, metric in _OF_STEP.items():
        labels[name] = f"{metric.title}, training"
    for name, metric in _OF_EVALUATION.items():
        labels[name] = f"{metric.title}, held out"
    for tier in TIERS:
        labels[f"accuracy_{tier}"] = f"Accuracy on {tier} problems, held out"
    labels["masked_effective"] = "Masked where it changed an advantage, training"
    return labels


def _list_shares() -> tuple[str, ...]:
    names = ["accuracy"]
    names += [f"accuracy_{tier}" for tier in TIERS]
    for name, metric in (_OF_STEP | _OF_EVALUATION).items():
        if metric.unit == "share":
            names.append(name)
    return tuple(names)


LABELS: Mapping[str, str] = MappingProxyType(_label_metrics())
"""Every metric of runs that a study may compare -> its label in figures."""

SHARES = _list_shares()
"""Names of the metrics that lie between 0 and 1 (the reward's only if the rewards do)."""


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """A metric of one run; E times (0 untrained, 1 the last step), P held-out problems."""

    time_E: Array
    values_E_P: Array
    """Values by time and problem; a single column if it is no mean over problems; NaN if
    unknown."""

    @property
    def num_problems(self) -> int:
        """Number of columns; 1 if the metric is not a mean over held-out problems."""
        return self.values_E_P.shape[1]

    @property
    def means_E(self) -> Array:
        """The metric's mean over the scored problems, at each of the E times; NaN if no problem
        is scored."""
        import numpy as np

        known_E_P = np.isfinite(self.values_E_P)
        known_values_E_P = np.where(known_E_P, self.values_E_P, 0.0)
        sums_E = known_values_E_P.sum(axis=1)
        # NaN where no problem is scored.
        with np.errstate(invalid="ignore", divide="ignore"):
            return sums_E / known_E_P.sum(axis=1)


def read_series(history: History, metric: str) -> MetricSeries | None:
    """Return a metric of a run; None if the run did not record it."""
    import numpy as np

    rows_of_run = (*history.steps, *history.evaluations)
    last_step = max((row.step for row in rows_of_run), default=0)
    # Time is a share of the run, which has no length before its first step.
    if not last_step:
        return None
    recorded: Sequence[StepMetrics | EvaluationMetrics] = history.evaluations
    if metric.startswith("accuracy"):
        tier = metric.removeprefix("accuracy").removeprefix("_")
        rows = _read_accuracy(history, tier)
    else:
        if metric in _OF_STEP:
            recorded = history.steps
        read = attrgetter((_OF_STEP | _OF_EVALUATION)[metric].name)
        rows = [[read(row)] for row in recorded]
    # Unknown values, None, are NaN.
    values = np.asarray(rows, dtype=float)
    if not np.isfinite(values).any():
        return None
    steps = np.asarray([row.step for row in recorded], dtype=float)
    return MetricSeries(steps / last_step, values)


def _read_accuracy(history: History, tier: str) -> list[list[float | None]]:
    """Return the accuracy on each held-out problem, a row an evaluation; None if unscored."""
    evaluations = []
    names: set[str] = set()
    for evaluation in history.evaluations:
        by_problem = pass_by_problem(history.of_tier(evaluation.solved, tier))
        evaluations.append(by_problem)
        names.update(by_problem)
    columns = sorted(names)
    rows = []
    for by_problem in evaluations:
        # A problem may lack a score in one evaluation: its column stays, with a gap.
        rows.append([by_problem.get(name) for name in columns])
    return rows


def parse_feature(text: str) -> list[tuple[float, str]]:
    """Parse a feature or the difference of two into (sign, name) pairs.

    Raises:
        ValueError: for an unknown name.
    """
    signed: list[tuple[float, str]] = []
    sign = 1.0
    for name in text.split(" - "):
        if name not in FEATURES and not _AT.fullmatch(name):
            known = f"{', '.join(FEATURES)}, at 40/120, up to 40/120"
            raise ValueError(f"no feature {name!r}; use one of {known}, or two joined by ' - '")
        signed.append((sign, name))
        # Only the first is added.
        sign = -1.0
    return signed


def measure(series: MetricSeries, feature: str) -> float:
    """Return a feature of a series; NaN where it is unknown."""
    means_E = series.means_E
    total = 0.0
    for sign, name in parse_feature(feature):
        total += sign * _summarise(name, series.time_E, means_E)
    return total


def measure_alike(
    series: tuple[MetricSeries, MetricSeries],
    controls: tuple[MetricSeries, MetricSeries],
    feature: str,
) -> tuple[float, float]:
    """Return a metric of two runs at points where a second metric, the control, is equal in both.

    The run with the lower control is read at the feature's time. The other run is read earlier:
    over a span of the same length in which its control was as low, if need be between two such
    spans.

    Args:
        series: the metric of both runs.
        controls: the control of both runs, such as accuracy.
        feature: `late`, or `at 40/120`.

    Returns:
        The metric of either run; NaN for both if the runs were never equal.
    """
    first_S, control_of_first_S = _slide(series[0], controls[0], feature)
    second_S, control_of_second_S = _slide(series[1], controls[1], feature)
    # The lower of both: only the run that is ahead has been at the other's value, too.
    target = min(control_of_first_S[-1], control_of_second_S[-1])
    first = _read_at(first_S, control_of_first_S, target)
    second = _read_at(second_S, control_of_second_S, target)
    if math.isnan(first) or math.isnan(second):
        return math.nan, math.nan
    return first, second


def _slide(
    series: MetricSeries,
    control: MetricSeries,
    feature: str,
) -> tuple[Array, Array]:
    """Return means of a metric and its control over S spans that slide over the run.

    The feature's own span is the last.
    """
    import numpy as np

    time_E = series.time_E
    values_E = series.means_E
    # The two metrics may be recorded at different steps.
    controls_E = np.interp(time_E, control.time_E, control.means_E)
    low, high = _SPANS["late"]
    at = _AT.fullmatch(feature)
    if at:
        high = int(at[2]) / int(at[3])
        # A point in time is a span that holds one value.
        low = high - _ROUNDING
    last = int(np.flatnonzero(time_E <= high + _ROUNDING)[-1])
    is_inside_E = (time_E > low) & (time_E <= high + _ROUNDING)
    width = max(1, int(is_inside_E.sum()))
    values_S = []
    controls_S = []
    for start in range(last - width + 2):
        values_S.append(values_E[start : start + width].mean())
        controls_S.append(controls_E[start : start + width].mean())
    return np.asarray(values_S), np.asarray(controls_S)


def _read_at(values_S: Array, controls_S: Array, target: float) -> float:
    """Return the metric at the last span whose control had the target's value.

    It is read between two spans if need be, and NaN if the control never was as low.
    """
    if controls_S[-1] <= target:
        return float(values_S[-1])
    # From the end, so that a control that rises and falls is met where it was last as low.
    for index in range(len(values_S) - 2, -1, -1):
        if controls_S[index] <= target:
            rise = controls_S[index + 1] - controls_S[index]
            share = (target - controls_S[index]) / rise
            change = values_S[index + 1] - values_S[index]
            return float(values_S[index] + share * change)
    return math.nan


_AT = re.compile(r"(at|up to) (\d+)/([1-9]\d*)")
"""A feature at, or up to, a share of the run."""

_ROUNDING = 1e-9
"""Difference of two times that counts as rounding."""

_SPANS = {
    "early": (0.0, 0.4),
    "late": (0.7, 1.0),
    "mean": (0.0, 1.0),
}
"""Feature -> (low, high): the mean over times after low and up to high."""

FEATURES = ("start", *_SPANS, "growth", "swing")
"""Names of the features, those at a share of the run apart."""


def _summarise(name: str, time_E: Array, values_E: Array) -> float:
    """Return one feature of a metric's values over time."""
    import numpy as np

    if name == "growth":
        return _summarise("late", time_E, values_E) - _summarise("start", time_E, values_E)
    if name == "swing":
        return _mean(np.abs(np.diff(values_E, n=2)))
    if name == "start":
        # A run may have no value that early: then its first one is the start.
        return _mean(values_E[time_E <= max(0.1, time_E[0])])
    at = _AT.fullmatch(name)
    if at is None:
        low, high = _SPANS[name]
        return _mean(values_E[(time_E > low) & (time_E <= high)])
    time = int(at[2]) / int(at[3])
    if at[1] == "at":
        return float(np.interp(time, time_E, values_E))
    # A step at just that time belongs to it, whatever rounding made of its share.
    until_E = (time_E > 0.0) & (time_E <= time + _ROUNDING)
    return _mean(values_E[until_E])


def _mean(values: Array) -> float:
    """Return the mean of the known values; NaN if none is known."""
    known = [float(value) for value in values if math.isfinite(value)]
    return fmean(known) if known else math.nan
