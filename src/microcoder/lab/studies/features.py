"""Features: numbers that summarise the curves of runs, for claims to compare.

A *series* is a metric over the run; time runs from 0 (untrained) to 1 (the last step). A *feature* sums a series up:

| feature | meaning |
|---|---|
| `start`, `early`, `late` | mean over time up to 0.1, over (0, 0.4], over (0.7, 1] |
| `mean` | mean over (0, 1] |
| `growth` | late - start |
| `at 40/120`, `up to 40/120` | at that share of the run, between two values if need be; and the mean over (0, 1/3] |
| `swing` | mean absolute second difference: a steady trend has none |

The difference of two is a feature, too: `early - late`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING

from microcoder.data.micro import TIERS
from microcoder.lab.studies.accuracy import pass_by_problem
from microcoder.train.metrics import EvaluationMetrics, Shown, StepMetrics, shown_metrics
from microcoder.train.runs import History

if TYPE_CHECKING:
    from microcoder.lab.studies.effects import Array


def _drawn(row: type[StepMetrics | EvaluationMetrics]) -> dict[str, Shown]:
    """Return chart name -> metric, for the declared metrics of a row class that have a single value in a row."""
    return {
        one.chart: one
        for one in shown_metrics(row)
        if one.chart and "{}" not in one.title and not one.label
    }


_EFFECTIVE = {one.name: one for one in shown_metrics(StepMetrics)}["masked_effective_share"]
_OF_STEP = {**_drawn(StepMetrics), "masked_effective": _EFFECTIVE}
_OF_EVALUATION = {
    f"heldout_{chart}": one
    for chart, one in _drawn(EvaluationMetrics).items()
    if chart != "accuracy"
}
LABELS: Mapping[str, str] = MappingProxyType(
    {
        "accuracy": "Accuracy, held out",
        **{name: f"{one.title}, training" for name, one in _OF_STEP.items()},
        **{name: f"{one.title}, held out" for name, one in _OF_EVALUATION.items()},
        **{f"accuracy_{tier}": f"Accuracy on {tier} problems, held out" for tier in TIERS},
        "masked_effective": "Masked where it changed an advantage, training",
    }
)
"""Every metric of runs that a study may compare -> its label in figures."""
SHARES = (
    "accuracy",
    *(f"accuracy_{tier}" for tier in TIERS),
    *(name for name, one in (_OF_STEP | _OF_EVALUATION).items() if one.unit == "share"),
)
"""Names of the metrics that lie between 0 and 1 (the reward's only if the rewards do)."""


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """A metric of one run; E times (0 untrained, 1 the last step), P held-out problems."""

    time_E: Array
    values_E_P: Array
    """Values by time and problem; a single column if it is no mean over problems; NaN if unknown."""

    @property
    def num_problems(self) -> int:
        """Number of columns; 1 if the metric is not a mean over held-out problems."""
        return self.values_E_P.shape[1]

    @property
    def means_E(self) -> Array:
        """The metric over time, as a mean over the problems; unscored problems are left out."""
        import numpy as np

        known_E_P = np.isfinite(self.values_E_P)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(known_E_P, self.values_E_P, 0.0).sum(axis=1) / known_E_P.sum(axis=1)


def read_series(history: History, metric: str) -> MetricSeries | None:
    """Return a metric of a run; None if the run did not record it."""
    import numpy as np

    num_steps = max(
        [s.step for s in history.steps] + [e.step for e in history.evaluations], default=0
    )
    if not num_steps:
        return None
    if metric.startswith("accuracy"):
        tier = metric.removeprefix("accuracy").removeprefix("_")
        found = [pass_by_problem(history.of_tier(e.solved, tier)) for e in history.evaluations]
        names = sorted({name for by_problem in found for name in by_problem})
        rows = [[by_problem.get(name) for name in names] for by_problem in found]
        steps = [e.step for e in history.evaluations]
    else:
        kept = history.steps if metric in _OF_STEP else history.evaluations
        read = attrgetter((_OF_STEP | _OF_EVALUATION)[metric].name)
        steps, rows = [one.step for one in kept], [[read(one)] for one in kept]
    # Unknown values, None, are NaN.
    values = np.asarray(rows, dtype=float)
    if not np.isfinite(values).any():
        return None
    return MetricSeries(np.asarray(steps, dtype=float) / num_steps, values)


def parse_feature(text: str) -> list[tuple[float, str]]:
    """Parse a feature or the difference of two into (sign, name) pairs; raises ValueError for an unknown name."""
    names = text.split(" - ")
    if unknown := [name for name in names if name not in FEATURES and not _AT.fullmatch(name)]:
        known = f"{', '.join(FEATURES)}, at 40/120, up to 40/120"
        raise ValueError(f"no feature {unknown[0]!r}; use one of {known}, or two joined by ' - '")
    return [(-1.0 if index else 1.0, name) for index, name in enumerate(names)]


def measure(series: MetricSeries, feature: str) -> float:
    """Return a feature of a series; NaN where it is unknown."""
    means_E = series.means_E
    return sum(
        sign * _summarise(name, series.time_E, means_E) for sign, name in parse_feature(feature)
    )


def measure_alike(
    series: tuple[MetricSeries, MetricSeries],
    controls: tuple[MetricSeries, MetricSeries],
    feature: str,
) -> tuple[float, float]:
    """Return a metric of two runs where a second metric, the control, is equal in both.

    The run whose control is lower at the feature's time is read there. The other one is read earlier, over a span of
    the same length at which its control was as low, in between two such spans if need be.

    Args:
        series: the metric of both runs.
        controls: the control of both runs, such as accuracy.
        feature: `late`, or `at 40/120`.

    Returns:
        The metric of either run; NaN for both if the runs were never equal.
    """
    spans = [_slide(one, control, feature) for one, control in zip(series, controls, strict=True)]
    target = min(controls_S[-1] for _, controls_S in spans)
    found = [_read_at(values_S, controls_S, target) for values_S, controls_S in spans]
    if any(math.isnan(value) for value in found):
        return math.nan, math.nan
    return found[0], found[1]


def _slide(series: MetricSeries, control: MetricSeries, feature: str) -> tuple[Array, Array]:
    """Return means of a metric and its control over spans that slide over the run, the feature's own span last."""
    import numpy as np

    time_E, values_E = series.time_E, series.means_E
    controls_E = np.interp(time_E, control.time_E, control.means_E)
    low, high = _SPANS["late"]
    if found := _AT.fullmatch(feature):
        high = int(found[2]) / int(found[3])
        low = high - 1e-9
    last = int(np.flatnonzero(time_E <= high + 1e-9)[-1])
    width = max(1, int(((time_E > low) & (time_E <= high + 1e-9)).sum()))
    ends = range(width - 1, last + 1)
    spans = [slice(end - width + 1, end + 1) for end in ends]
    return (
        np.asarray([values_E[span].mean() for span in spans]),
        np.asarray([controls_E[span].mean() for span in spans]),
    )


def _read_at(values_S: Array, controls_S: Array, target: float) -> float:
    """Return the metric at the last span whose control had the target's value, between two spans if need be."""
    if controls_S[-1] <= target:
        return float(values_S[-1])
    for place in range(len(values_S) - 2, -1, -1):
        if controls_S[place] <= target:
            rise = controls_S[place + 1] - controls_S[place]
            share = (target - controls_S[place]) / rise
            return float(values_S[place] + share * (values_S[place + 1] - values_S[place]))
    return math.nan


_AT = re.compile(r"(at|up to) (\d+)/([1-9]\d*)")
_SPANS = {"early": (0.0, 0.4), "late": (0.7, 1.0), "mean": (0.0, 1.0)}
"""Feature -> (low, high): the mean over times after low and up to high."""
FEATURES = ("start", *_SPANS, "growth", "swing")


def _summarise(name: str, time_E: Array, values_E: Array) -> float:
    import numpy as np

    if name == "growth":
        return _summarise("late", time_E, values_E) - _summarise("start", time_E, values_E)
    if name == "swing":
        return _mean(np.abs(np.diff(values_E, n=2)))
    if name == "start":
        return _mean(values_E[time_E <= max(0.1, time_E[0])])
    if found := _AT.fullmatch(name):
        time = int(found[2]) / int(found[3])
        if found[1] == "at":
            return float(np.interp(time, time_E, values_E))
        low, high = 0.0, time + 1e-9
    else:
        low, high = _SPANS[name]
    return _mean(values_E[(time_E > low) & (time_E <= high)])


def _mean(values: Array) -> float:
    """Return the mean of the known values; NaN if none is known."""
    known = [float(value) for value in values if math.isfinite(value)]
    return fmean(known) if known else math.nan
