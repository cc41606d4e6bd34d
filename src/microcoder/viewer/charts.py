"""The curves of a run as plain numbers: the page overlays those of several runs that have the same id."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from microcoder.insights.history import History
from microcoder.insights.statistics import estimate_accuracy
from microcoder.metrics import EvaluationMetrics, StepMetrics

Row = dict[str, Any]
_TRAINING, _HELDOUT = "training", "held out"


def draw_training(history: History) -> list[Row]:
    """Return every chart of a training run: id, title, unit and series of steps and values."""
    steps, evaluations = history.steps, history.evaluations
    charts = [
        _chart("accuracy", "Accuracy, held out", "share", [_accuracy(evaluations)]),
        *(
            _chart(f"accuracy-{tier}", f"Accuracy, {tier}", "share", _tier_series(history, tier))
            for tier in history.tiers
        ),
        _chart("reward", "Reward", "share", [_line(steps, lambda s: s.reward_mean)]),
        _chart(
            "length",
            "Response length (tokens)",
            "count",
            [_line(steps, lambda s: s.length_mean), _points(evaluations, lambda e: e.length_mean)],
        ),
        _chart(
            "diversity",
            "Diversity (unique 4-grams)",
            "share",
            [_line(steps, lambda s: s.diversity), _points(evaluations, lambda e: e.diversity)],
        ),
        _chart("temperature", "Sampling temperature", "number", [_line(steps, lambda s: s.temperature)]),
        _chart(
            "truncated",
            "Truncated share",
            "share",
            [_line(steps, lambda s: s.truncated_share), _points(evaluations, lambda e: e.truncated_share)],
        ),
        _chart("masked", "Masked share", "share", [_line(steps, lambda s: s.masked_share)]),
        _chart("no-code", "No-code share", "share", [_line(steps, lambda s: s.no_code_share)]),
        _chart("no-signal", "Problems without a gradient", "share", [_line(steps, lambda s: s.zero_variance_share)]),
        *_filtered(steps),
        _chart("unscored", "Unscored share", "share", [_line(steps, lambda s: s.unscored_share)]),
        *_optimizer(steps),
        *_seconds(steps),
    ]
    return [chart for chart in charts if chart["series"]]


def _tier_series(history: History, tier: str) -> list[Row | None]:
    return [
        _line(history.steps, lambda s: s.accuracy_by_tier.get(tier)),
        _points(history.evaluations, lambda e: e.accuracy_by_tier.get(tier)),
    ]


def _filtered(steps: Sequence[StepMetrics]) -> Iterator[Row]:
    if any(step.filtered_groups for step in steps):
        yield _chart("filtered", "Problems filtered out", "count", [_line(steps, lambda s: s.filtered_groups)])
        yield _chart("sampled", "Accuracy of all sampled", "share", [_line(steps, lambda s: s.sampled_accuracy)])


def list_alarms(steps: Sequence[StepMetrics]) -> list[str]:
    """Return a line for each early warning of a run: its name and where it held."""
    lines = []
    for name in _keys(step.alarms for step in steps):
        held = [step.step for step in steps if name in step.alarms]
        where = f"step {held[0]}" if len(held) == 1 else f"{len(held)} steps between {held[0]} and {held[-1]}"
        lines.append(f"Early warning {name.replace('_', ' ')}: {where}.")
    return lines


def _optimizer(steps: Sequence[StepMetrics]) -> Iterator[Row]:
    for name in _keys(step.optimizer for step in steps):
        title = name.replace("_", " ").capitalize()
        yield _chart(f"optimizer-{name}", title, "number", [_line(steps, lambda s, name=name: s.optimizer.get(name))])


def _seconds(steps: Sequence[StepMetrics]) -> Iterator[Row]:
    for name in _keys(step.seconds for step in steps):
        series = [_line(steps, lambda s, name=name: s.seconds.get(name))]
        yield _chart(f"seconds-{name}", f"Seconds a step: {name}", "seconds", series)


def _keys(rows: Iterable[Any]) -> list[str]:
    """Keys in the order in which they first occur."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _chart(name: str, title: str, unit: str, series: Sequence[Row | None]) -> Row:
    return {"id": name, "title": title, "unit": unit, "series": [line for line in series if line]}


def _line(steps: Sequence[StepMetrics], read: Callable[[StepMetrics], float | None]) -> Row | None:
    return _series(_TRAINING, [(step.step, read(step)) for step in steps])


def _points(evaluations: Sequence[EvaluationMetrics], read: Callable[[EvaluationMetrics], float | None]) -> Row | None:
    return _series(_HELDOUT, [(evaluation.step, read(evaluation)) for evaluation in evaluations])


def _accuracy(evaluations: Sequence[EvaluationMetrics]) -> Row | None:
    """Held-out accuracy with the interval that the choice of problems leaves."""
    series = _points(evaluations, lambda e: e.accuracy)
    if series is not None:
        estimates = [estimate_accuracy(evaluation.solved) for evaluation in evaluations]
        series["low"] = [estimate.low if estimate else None for estimate in estimates]
        series["high"] = [estimate.high if estimate else None for estimate in estimates]
    return series


def _series(label: str, points: Iterable[tuple[int, float | None]]) -> Row | None:
    """Return the points that can be drawn: a loss that overflowed is a gap."""
    known = [(step, value) for step, value in points if value is not None and math.isfinite(value)]
    if not known:
        return None
    return {"label": label, "steps": [step for step, _ in known], "values": [round(value, 6) for _, value in known]}
