"""Figures of studies: a curve a level with the range of its seeds, and effects beside what was claimed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from microcoder.insights.effects import Effect, Verdict
from microcoder.insights.features import Metric, Series
from microcoder.insights.figures import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Chart,
    finish_axes,
    new_figure,
    render,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS: Mapping[Metric, str] = {
    "accuracy": "held-out accuracy",
    "reward": "training reward",
    "length": "training length, tokens",
    "diversity": "training diversity",
    "truncated": "truncated in training",
    "masked": "masked in training",
    "heldout_length": "held-out length, tokens",
    "heldout_diversity": "held-out diversity",
    "holding_temperature": "highest holding temperature",
}
COLOUR_OF: Mapping[Verdict, str] = {
    Verdict.HOLDS: GREEN,
    Verdict.DOES_NOT: VERMILION,
    Verdict.UNDECIDED: ORANGE,
}
_COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, "#8C564B")
_SHARES = ("truncated", "masked")
_FARTHEST = 8.0
"""Effects beyond this many smallest effects are drawn at the edge."""
_ROW_INCHES = 0.22


@dataclass(frozen=True, slots=True)
class Bar:
    """One predicate in a figure of effects."""

    label: str
    effect: Effect
    least: float
    direction: str
    verdict: Verdict


def draw_curves(
    study: str, metric: Metric, by_level: Mapping[str, Sequence[Series]], *, reference: str, num_steps: int
) -> Chart:
    """Draw the mean over seeds of each level, and the range of its seeds as a band."""
    import numpy as np

    levels = [level for level, series in by_level.items() if series]
    columns = max(1, min(5, 60 // max(len(level) + 4 for level in levels)))
    figure, (axes,) = new_figure(legend_rows=-(-len(levels) // columns))
    colours = itertools.cycle(_COLOURS)
    ends = []
    for level in levels:
        colour = BLACK if level == reference else next(colours)
        time_E = by_level[level][0].time_E
        rows = [series.means_E for series in by_level[level] if len(series.time_E) == len(time_E)]
        steps, mean = time_E * num_steps, np.mean(rows, axis=0)
        is_sparse = len(steps) <= 12
        axes.plot(
            steps, mean, color=colour, linewidth=1.6, label=level, marker="o" if is_sparse else "", markersize=3.5
        )
        axes.fill_between(steps, np.min(rows, axis=0), np.max(rows, axis=0), color=colour, alpha=0.13, linewidth=0)
        ends.append(f"{level} from {mean[0]:.3g} to {mean[-1]:.3g}")
    _legend(axes, columns)
    finish_axes(axes, ylabel=LABELS[metric], is_share=metric in _SHARES, has_legend=False)
    return render(
        figure,
        f"{study}-{metric.replace('_', '-')}",
        LABELS[metric].capitalize(),
        f"Mean over seeds, first and last value: {'; '.join(ends)}. Bands: the range of the seeds.",
    )


def draw_effects(name: str, bars: Sequence[Bar], *, title: str) -> Chart:
    """Draw effects in units of their smallest effect of interest, turned so that the claimed direction is right."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from microcoder.insights.figures import STYLE

    height = 0.9 + _ROW_INCHES * len(bars)
    with mpl.rc_context(dict(STYLE)):
        figure = Figure(figsize=(7.6, height))
        axes = figure.subplots()
    figure.subplots_adjust(left=0.46, right=0.98, bottom=0.5 / height, top=1 - 0.15 / height)
    axes.axvspan(-1, 1, color="#f1f3f5", zorder=0)
    axes.axvline(0, color=BLACK, linewidth=0.8)
    for row, bar in enumerate(bars):
        sign = -1.0 if bar.direction == "lower" else 1.0
        value, *ends = (_clip(sign * x / bar.least) for x in (bar.effect.value, bar.effect.low, bar.effect.high))
        colour = COLOUR_OF[bar.verdict]
        axes.plot([min(ends), max(ends)], [row, row], color=colour, linewidth=1.6)
        axes.plot([value], [row], "s" if bar.direction == "same" else "o", color=colour, markersize=5)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(-_FARTHEST * 1.03, _FARTHEST * 1.03)
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars], fontsize=7.5)
    axes.set_xlabel("effect / smallest of interest; right: as claimed; square: claimed in the grey", fontsize=8)
    counts = ", ".join(f"{sum(bar.verdict is verdict for bar in bars)} {verdict}" for verdict in COLOUR_OF)
    return render(figure, name, title, f"{len(bars)} predicates: {counts}. Lines: 95 % intervals.")


def _clip(value: float) -> float:
    return max(-_FARTHEST, min(_FARTHEST, value))


def _legend(axes: Axes, columns: int) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=columns,
        borderaxespad=0.2,
        columnspacing=1.1,
        handlelength=1.4,
        handletextpad=0.5,
        fontsize=8.5,
        frameon=False,
    )
