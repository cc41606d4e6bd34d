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

# Okabe and Ito's colours, told apart with every common colour blindness; without the yellow, too pale on white.
BLACK, BLUE, ORANGE, GREEN = "#222222", "#0072B2", "#E69F00", "#009E73"
VERMILION, PURPLE, SKY = "#D55E00", "#CC79A7", "#56B4E9"

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
    "text.parse_math": False,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}


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
    nothing: dict[str, Any] = dict.fromkeys(["Date", "Creator", "Format", "Type"])
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"microcoder.{name}"}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    svg = buffer.getvalue()
    head, _, rest = svg[svg.index("<svg") :].partition(">")
    label = 'role="img" aria-labelledby="title description"'
    text = f'<title id="title">{escape(title)}</title><desc id="description">{escape(description)}</desc>'
    return Chart(name, title, description, f"{head} {label}>\n {text}{rest}")


_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
_LEGEND_CHARACTERS = 80


def draw_curves(
    study: str,
    metric: str,
    by_level: Mapping[str, Sequence[MetricSeries]],
    *,
    reference: str,
    num_steps: int,
) -> Chart:
    """Return a chart of the mean over runs of each level, with a band from the lowest run to the highest."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib.figure import Figure

    levels = [level for level, series in by_level.items() if series]
    with mpl.rc_context(dict(STYLE)):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
    colours = itertools.cycle(_COLOURS)
    ends = []
    for level in levels:
        colour = BLACK if level == reference else next(colours)
        time_E = by_level[level][0].time_E
        rows = [series.means_E for series in by_level[level] if len(series.time_E) == len(time_E)]
        steps, mean = time_E * num_steps, np.mean(rows, axis=0)
        marker = "o" if len(steps) <= 12 else ""
        axes.plot(
            steps, mean, color=colour, linewidth=1.8, label=level, marker=marker, markersize=3.5
        )
        if len(rows) > 1:
            # A range, and no interval: runs that share a start are no independent draws.
            lowest, highest = np.min(rows, axis=0), np.max(rows, axis=0)
            axes.fill_between(steps, lowest, highest, color=colour, alpha=0.13, linewidth=0)
        ends.append(f"{level} from {mean[0]:.3g} to {mean[-1]:.3g}")
    finish_axes(axes, ylabel=LABELS[metric], is_share=metric in SHARES)
    columns = max(1, min(5, _LEGEND_CHARACTERS // max(len(level) + 4 for level in levels)))
    figure.legend(loc="outside upper left", ncols=columns, fontsize=8.5, frameon=False)
    return render(
        figure,
        study,
        LABELS[metric],
        f"Mean over runs, first and last value: {'; '.join(ends)}. Bands: from the lowest run to the highest.",
    )
