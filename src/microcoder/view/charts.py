"""The curves of a run as plain numbers: the page overlays those of several runs that have the same id."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from microcoder.lab.studies.effects import estimate_accuracy
from microcoder.lab.studies.history import History
from microcoder.train.metrics import EvaluationMetrics, StepMetrics

Row = dict[str, Any]
_TRAINING, _HELDOUT = "training", "held out"


StepFigure = Callable[[StepMetrics], float | None]
HeldoutFigure = Callable[[EvaluationMetrics], float | None]


def draw_training(history: History) -> list[Row]:
    """Return every chart of a training run: id, title, unit and series of steps and values."""
    steps, evaluations = history.steps, history.evaluations
    charts: list[tuple[str, str, str, StepFigure, HeldoutFigure | None]] = [
        *(
            (
                f"accuracy-{tier}",
                f"Accuracy, {tier}",
                "share",
                lambda s, tier=tier: s.accuracy_by_tier.get(tier),
                lambda e, tier=tier: e.accuracy_by_tier.get(tier),
            )
            for tier in history.tiers
        ),
        ("reward", "Reward", "share", lambda s: s.reward_mean, None),
        ("length", "Response length (tokens)", "count", lambda s: s.length_mean, lambda e: e.length_mean),
        ("diversity", "Diversity (unique 4-grams)", "share", lambda s: s.diversity, lambda e: e.diversity),
        ("temperature", "Sampling temperature", "number", lambda s: s.temperature, None),
        ("truncated", "Truncated share", "share", lambda s: s.truncated_share, lambda e: e.truncated_share),
        ("masked", "Masked share", "share", lambda s: s.masked_share, None),
        ("no-code", "No-code share", "share", lambda s: s.no_code_share, None),
        ("no-signal", "Problems without a gradient", "share", lambda s: s.zero_variance_share, None),
    ]
    if any(step.filtered_groups for step in steps):
        charts.append(("filtered", "Problems filtered out", "count", lambda s: s.filtered_groups, None))
        charts.append(("sampled", "Accuracy of all sampled", "share", lambda s: s.sampled_accuracy, None))
    charts.append(("unscored", "Unscored share", "share", lambda s: s.unscored_share, None))
    charts.append(("unrepeated", "Rewards that do not repeat", "share", lambda s: s.unrepeated_share, None))
    for name in _keys(step.uncounted for step in steps):
        title = f"Accepted programs with a run that did not count: {name}"
        charts.append((f"uncounted-{name}", title, "share", lambda s, name=name: s.uncounted.get(name), None))
    for name in _keys(step.optimizer for step in steps):
        title = name.replace("_", " ").capitalize()
        charts.append((f"optimizer-{name}", title, "number", lambda s, name=name: s.optimizer.get(name), None))
    for name in _keys(step.seconds for step in steps):
        title = f"Seconds a step: {name}"
        charts.append((f"seconds-{name}", title, "seconds", lambda s, name=name: s.seconds.get(name), None))
    drawn = [_chart("accuracy", "Accuracy, held out", "share", [_accuracy(evaluations)])]
    for name, title, unit, read_step, read_heldout in charts:
        training = _series(_TRAINING, [(step.step, read_step(step)) for step in steps])
        drawn.append(_chart(name, title, unit, [training, _points(evaluations, read_heldout)]))
    return [chart for chart in drawn if chart["series"]]


def list_alarms(steps: Sequence[StepMetrics]) -> list[str]:
    """Return a line for each early warning of a run: its name and where it held."""
    lines = []
    for name in _keys(step.alarms for step in steps):
        held = [step.step for step in steps if name in step.alarms]
        where = f"step {held[0]}" if len(held) == 1 else f"{len(held)} steps between {held[0]} and {held[-1]}"
        lines.append(f"Early warning {name.replace('_', ' ')}: {where}.")
    return lines


def _keys(rows: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _chart(name: str, title: str, unit: str, series: Sequence[Row | None]) -> Row:
    return {"id": name, "title": title, "unit": unit, "series": [line for line in series if line]}


def _points(evaluations: Sequence[EvaluationMetrics], read: HeldoutFigure | None) -> Row | None:
    return (
        None if read is None else _series(_HELDOUT, [(evaluation.step, read(evaluation)) for evaluation in evaluations])
    )


def _accuracy(evaluations: Sequence[EvaluationMetrics]) -> Row | None:
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
