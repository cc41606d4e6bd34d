"""The curves of a run as plain numbers: the page overlays those of several runs that have the same id."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from microcoder.lab.studies.effects import estimate_accuracy
from microcoder.lab.studies.history import History
from microcoder.train.metrics import EvaluationMetrics, StepMetrics, shown_metrics

Row = dict[str, Any]


def draw_training(history: History) -> list[Row]:
    """Return every chart that a run's metrics declare and it has values for: id, title, unit and series."""
    charts: dict[str, Row] = {}
    for kind, rows, label in (
        (StepMetrics, history.steps, "training"),
        (EvaluationMetrics, history.evaluations, "held out"),
    ):
        for shown in (one for one in shown_metrics(kind) if one.chart):
            values = [getattr(row, shown.name) for row in rows]
            if shown.is_rare and not any(values):
                continue
            keys = [""] if "{}" not in shown.title else list(dict.fromkeys(key for value in values for key in value))
            for key in sorted(keys, key=lambda key: history.tiers.index(key) if key in history.tiers else -1):
                points = [(row.step, value.get(key) if key else value) for row, value in zip(rows, values, strict=True)]
                # A loss that overflowed is a gap.
                known = [(step, value) for step, value in points if value is not None and math.isfinite(value)]
                if not known:
                    continue
                title = shown.title.format(key.replace("_", " "))
                empty = {"title": title[:1].upper() + title[1:], "unit": shown.unit, "series": []}
                name = f"{shown.chart}-{key}" if key else shown.chart
                series: Row = {
                    "label": shown.label or label,
                    "steps": [step for step, _ in known],
                    "values": [round(value, 6) for _, value in known],
                }
                if label == "held out" and shown.chart == "accuracy":
                    series |= _intervals(history, key, series["steps"])
                charts.setdefault(name, {"id": name, **empty})["series"].append(series)
    return sorted(charts.values(), key=lambda chart: chart["id"] != "accuracy")


def list_alarms(steps: Sequence[StepMetrics]) -> list[str]:
    """Return a line for each early warning of a run: its name and where it held."""
    lines = []
    for name in dict.fromkeys(name for step in steps for name in step.alarms):
        held = [step.step for step in steps if name in step.alarms]
        where = f"step {held[0]}" if len(held) == 1 else f"{len(held)} steps between {held[0]} and {held[-1]}"
        lines.append(f"Early warning {name.replace('_', ' ')}: {where}.")
    return lines


def _intervals(history: History, tier: str, steps: Sequence[int]) -> Mapping[str, list[float | None]]:
    """Return the bounds of held-out accuracy, of all problems or of a tier; None where no file names tiers."""
    of_step = {evaluation.step: evaluation.solved for evaluation in history.evaluations}
    tier_of = history.tier_of if tier else {}
    chosen = [{name: s for name, s in of_step[step].items() if tier_of.get(name, "") == tier} for step in steps]
    estimates = [estimate_accuracy(solved) for solved in chosen]
    return {bound: [getattr(one, bound) if one else None for one in estimates] for bound in ("low", "high")}
