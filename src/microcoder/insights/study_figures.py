"""The figure of a study's page: a few curves, a few measured levels, or the primary effects beside what was claimed."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from microcoder.insights.effects import Effect
from microcoder.insights.features import METRICS, SHARES, Metric, MetricSeries
from microcoder.insights.figures import (
    BLACK,
    BLUE,
    GREEN,
    LEGEND,
    ORANGE,
    PURPLE,
    STYLE,
    VERMILION,
    Chart,
    finish_axes,
    new_figure,
    render,
)
from microcoder.insights.power import expected_half_width
from microcoder.insights.verdicts import ClaimFinding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
COLOUR_OF: Mapping[ClaimFinding, str] = {
    ClaimFinding.SUPPORTED: GREEN,
    ClaimFinding.CONTRADICTED: VERMILION,
    ClaimFinding.INCONCLUSIVE: ORANGE,
    ClaimFinding.CANNOT_APPEAR: "#999999",
}
_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
_FARTHEST = 6.0
"""Effects beyond this many smallest effects are drawn at the edge."""
_ROW_INCHES = 0.42
_LABEL_CHARACTERS = 46
_LEGEND_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Bar:
    """One primary effect in a figure of effects."""

    label: str
    effect: Effect
    least: float
    direction: str
    verdict: ClaimFinding


def draw_curves(
    study: str, metric: str, by_level: Mapping[str, Sequence[MetricSeries]], *, reference: str, num_steps: int
) -> Chart:
    """Draw the mean over seeds of each level, with its 95 % interval as a band."""
    import numpy as np

    levels = [level for level, series in by_level.items() if series]
    columns = max(1, min(5, _LEGEND_CHARACTERS // max(len(level) + 4 for level in levels)))
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
            steps, mean, color=colour, linewidth=1.8, label=level, marker="o" if is_sparse else "", markersize=3.5
        )
        if len(rows) > 1:
            half = expected_half_width(1.0, len(rows)) * np.std(rows, axis=0, ddof=1)
            axes.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.13, linewidth=0)
        ends.append(f"{level} from {mean[0]:.3g} to {mean[-1]:.3g}")
    label = LABELS[next(name for name in METRICS if name == metric)]
    finish_axes(axes, ylabel=label, is_share=metric in SHARES, has_legend=False)
    axes.legend(ncols=columns, **LEGEND)
    return render(
        figure,
        study,
        label.capitalize(),
        f"Mean over seeds, first and last value: {'; '.join(ends)}. Bands: 95 % intervals of the mean over seeds.",
    )


def draw_levels(study: str, says: str, effects: Mapping[str, Effect], *, is_share: bool) -> Chart:
    """Draw what was measured at a few levels, with intervals."""
    figure, axes = _rows_figure(len(effects), left=0.24)
    for row, (_, effect) in enumerate(effects.items()):
        axes.plot([effect.low, effect.high], [row, row], color=BLUE, linewidth=2)
        axes.plot([effect.value], [row], "o", color=BLUE, markersize=6)
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.set_yticks(range(len(effects)), list(effects), fontsize=9)
    axes.set_xlabel(says)
    if is_share:
        from matplotlib.ticker import PercentFormatter

        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=None, symbol=" %"))
    means = "; ".join(f"{name} {e.value:.3g} [{e.low:.3g}, {e.high:.3g}]" for name, e in effects.items())
    return render(figure, study, says, f"Means with 95 % intervals: {means}.")


def draw_effects(name: str, bars: Sequence[Bar], *, title: str) -> Chart:
    """Draw effects in units of their smallest effect of interest, turned so that the claimed direction is right."""
    from matplotlib.lines import Line2D

    figure, axes = _rows_figure(len(bars), left=0.47)
    axes.axvspan(-1, 1, color="#eef1f4", zorder=0)
    axes.axvline(0, color=BLACK, linewidth=0.8)
    for row, bar in enumerate(bars):
        sign = -1.0 if bar.direction == "lower" else 1.0
        value, *ends = (_clip(sign * x / bar.least) for x in (bar.effect.value, bar.effect.low, bar.effect.high))
        colour = COLOUR_OF[bar.verdict]
        axes.plot([min(ends), max(ends)], [row, row], color=colour, linewidth=2)
        axes.plot([value], [row], "s" if bar.direction == "same" else "o", color=colour, markersize=6)
    axes.set_xlim(-_FARTHEST * 1.03, _FARTHEST * 1.03)
    labels = [textwrap.fill(bar.label, _LABEL_CHARACTERS) for bar in bars]
    axes.set_yticks(range(len(bars)), labels, fontsize=8)
    axes.set_xlabel("effect / smallest effect of interest; to the right: as claimed", fontsize=8)
    seen = [verdict for verdict in COLOUR_OF if any(bar.verdict is verdict for bar in bars)]
    axes.legend(
        handles=[Line2D([], [], color=COLOUR_OF[verdict], marker="o", label=str(verdict)) for verdict in seen],
        loc="lower right",
        bbox_to_anchor=(1.01, 1.0),
        ncols=len(seen),
        fontsize=8,
        frameon=False,
        borderaxespad=0.1,
    )
    counts = ", ".join(f"{sum(bar.verdict is verdict for bar in bars)} {verdict}" for verdict in seen)
    square = " Squares: claimed to be within the grey." if any(bar.direction == "same" for bar in bars) else ""
    return render(figure, name, title, f"{len(bars)} primary effects with 95 % intervals: {counts}.{square}")


def _rows_figure(num_rows: int, *, left: float) -> tuple[Figure, Axes]:
    """An empty figure with a row for each of some labels."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    height = 1.0 + _ROW_INCHES * num_rows
    with mpl.rc_context(dict(STYLE)):
        figure = Figure(figsize=(7.6, height))
        axes = figure.subplots()
    figure.subplots_adjust(left=left, right=0.98, bottom=0.55 / height, top=1 - 0.3 / height)
    axes.set_ylim(num_rows - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    return figure, axes


def _clip(value: float) -> float:
    return max(-_FARTHEST, min(_FARTHEST, value))
