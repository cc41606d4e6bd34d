"""Features: numbers that summarise the curves of runs, for claims to compare.

A *series* is a metric over the run; time runs from 0 (untrained) to 1 (the last step). A *feature* sums a series up:

| feature | meaning |
|---|---|
| `start`, `early`, `late` | mean over time up to 0.1, over (0, 0.4], over (0.7, 1] |
| `mean` | mean over (0, 1] |
| `growth` | late - start |
| `at 40/120`, `up to 40/120` | at that share of the run: the nearest value, and the mean over (0, 1/3] |
| `swing` | mean absolute second difference: a steady trend has none |

The difference of two is a feature, too: `early - late`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
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
    """A metric of one run; E times (0 untrained, 1 the last step), P held-out problems, B weightings of these."""

    time_E: Array
    values_E_P: Array
    """Values by time and problem; a single column if there is nothing to resample; NaN if unknown."""

    @property
    def num_problems(self) -> int:
        """Number of columns; 1 if the metric is not a mean over held-out problems."""
        return self.values_E_P.shape[1]

    def weigh(self, weights_P_B: Array) -> Array:
        """Return the metric's values over time under each weighting (E, B); unscored problems are left out."""
        import numpy as np

        known_E_P = np.isfinite(self.values_E_P).astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            return (np.nan_to_num(self.values_E_P) @ weights_P_B) / (known_E_P @ weights_P_B)

    @property
    def means_E(self) -> Array:
        """The metric over time, as a mean over the problems."""
        import numpy as np

        return self.weigh(np.ones((self.num_problems, 1)))[:, 0]


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


def measure(series: MetricSeries, feature: str, weights_P_B: Array) -> Array:
    """Return a feature of a series under each weighting of the problems (B,)."""
    import numpy as np

    values_E_B = series.weigh(weights_P_B)
    parts = [
        sign * _summarise(name, series.time_E, values_E_B) for sign, name in parse_feature(feature)
    ]
    return np.sum(parts, axis=0)


_AT = re.compile(r"(at|up to) (\d+)/([1-9]\d*)")
_SPANS = {"early": (0.0, 0.4), "late": (0.7, 1.0), "mean": (0.0, 1.0)}
"""Feature -> (low, high): the mean over times after low and up to high."""
FEATURES = ("start", *_SPANS, "growth", "swing")


def _summarise(name: str, time_E: Array, values_E_B: Array) -> Array:
    import numpy as np

    if name == "growth":
        return _summarise("late", time_E, values_E_B) - _summarise("start", time_E, values_E_B)
    if name == "swing":
        return _mean(np.abs(np.diff(values_E_B, n=2, axis=0)))
    if name == "start":
        return _mean(values_E_B[time_E <= max(0.1, time_E[0])])
    if found := _AT.fullmatch(name):
        time = int(found[2]) / int(found[3])
        if found[1] == "at":
            return values_E_B[abs(time_E - time).argmin()]
        low, high = 0.0, time + 1e-9
    else:
        low, high = _SPANS[name]
    return _mean(values_E_B[(time_E > low) & (time_E <= high)])


def _mean(values_E_B: Array) -> Array:
    """Return the mean over time (B,), unknown values left out; NaN if all are unknown."""
    import warnings

    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return (
            np.nanmean(values_E_B, axis=0)
            if len(values_E_B)
            else np.full(values_E_B.shape[1], np.nan)
        )
