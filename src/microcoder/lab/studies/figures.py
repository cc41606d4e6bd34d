"""Figures as SVG text: the same rows give the same bytes, on a page or in a paper."""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from microcoder.lab.studies.features import LABELS, SHARES, MetricSeries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with every common colour blindness; without the yellow, too
# pale on white.
BLACK = "#222222"
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"

STYLE: Mapping[str, Any] = {
    "axes.edgecolor": "#999999",
    "axes.grid": True,
    "axes.labelcolor": "#444444",
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "svg.fonttype": "none",
    # A dollar sign in a label begins no formula.
    "text.parse_math": False,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}
"""matplotlib's settings of all figures."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure as SVG, with title and alternative text."""

    name: str
    """File name without suffix."""
    title: str
    description: str
    """Alternative text: what a reader who cannot see the picture needs."""
    svg: str


def finish_axes(axes: Axes, *, ylabel: str, is_share: bool = False) -> None:
    """Label the axes of a figure over steps."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.set_ylabel(ylabel)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("training step")
    if is_share:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None, symbol=" %"))


def render(figure: Figure, name: str, title: str, description: str) -> Chart:
    """Return a figure as a chart: the same figure gives the same bytes."""
    import matplotlib as mpl

    buffer = io.StringIO()
    # A date or a version would make each drawing another file.
    nothing: dict[str, Any] = dict.fromkeys(["Date", "Creator", "Format", "Type"])
    # Without a salt the ids in an SVG are random, and the same rows give another file.
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"microcoder.{name}"}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    svg = buffer.getvalue()
    begin = svg.index("<svg")
    head, _, rest = svg[begin:].partition(">")
    label = 'role="img" aria-labelledby="title description"'
    text = f'<title id="title">{escape(title)}</title>'
    text += f'<desc id="description">{escape(description)}</desc>'
    return Chart(name, title, description, f"{head} {label}>\n {text}{rest}")


_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
"""Colours of the levels that are not the reference, in their order."""

_LEGEND_CHARACTERS = 80
"""Number of characters of labels that fit beside each other above a figure."""

_MOST_MARKED = 12
"""Most points of a curve up to which each has a mark."""


def draw_curves(
    study: str,
    metric: str,
    by_level: Mapping[str, Sequence[MetricSeries]],
    *,
    reference: str,
    num_steps: int,
) -> Chart:
    """Return a chart of each level's mean over runs, with a band from the lowest to the highest.

    Args:
        study: name of the chart.
        metric: of the runs, a key of `LABELS`.
        by_level: level -> the metric of its runs; levels without runs are left out.
        reference: the level that is drawn in black.
        num_steps: steps of a run, for the axis.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    levels = [level for level, series in by_level.items() if series]
    with mpl.rc_context(dict(STYLE)):
        # Not pyplot, which keeps every figure and may look for a display.
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
    colours = itertools.cycle(_COLOURS)
    ends = []
    for level in levels:
        colour = BLACK if level == reference else next(colours)
        first, last = _draw_level(axes, level, by_level[level], colour, num_steps)
        ends.append(f"{level} from {first:.3g} to {last:.3g}")
    finish_axes(axes, ylabel=LABELS[metric], is_share=metric in SHARES)
    # A label's line and its margins are as wide as four characters.
    widest = max(len(level) + 4 for level in levels)
    columns = max(1, min(5, _LEGEND_CHARACTERS // widest))
    figure.legend(
        loc="outside upper left",
        ncols=columns,
        fontsize=8.5,
        frameon=False,
    )
    description = (
        f"Mean over runs, first and last value: {'; '.join(ends)}. "
        "Bands: from the lowest run to the highest."
    )
    return render(figure, study, LABELS[metric], description)


def _draw_level(
    axes: Axes,
    level: str,
    runs: Sequence[MetricSeries],
    colour: str,
    num_steps: int,
) -> tuple[float, float]:
    """Draw one level's curve and band; return the first and the last value of the mean."""
    import numpy as np

    time_E = runs[0].time_E
    # A run that was evaluated less often has no values at these times.
    rows = [series.means_E for series in runs if len(series.time_E) == len(time_E)]
    steps = time_E * num_steps
    mean = np.mean(rows, axis=0)
    marker = "o" if len(steps) <= _MOST_MARKED else ""
    axes.plot(
        steps,
        mean,
        color=colour,
        linewidth=1.8,
        label=level,
        marker=marker,
        markersize=3.5,
    )
    if len(rows) > 1:
        # A range, and no interval: runs that share a start are no independent draws.
        lowest = np.min(rows, axis=0)
        highest = np.max(rows, axis=0)
        axes.fill_between(
            steps,
            lowest,
            highest,
            color=colour,
            alpha=0.13,
            linewidth=0,
        )
    return mean[0], mean[-1]
