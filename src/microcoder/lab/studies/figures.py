"""Curves as SVG text: the same rows give the same bytes, on a page or in a paper."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from microcoder.judge.core.files import write_text
from microcoder.lab.studies.history import missing_extra
from microcoder.train.run.probe import Probe, read_probe
from microcoder.train.runs import RunDirectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with every common colour blindness; without the yellow, too pale on white.
BLACK, BLUE, ORANGE, GREEN = "#222222", "#0072B2", "#E69F00", "#009E73"
VERMILION, PURPLE, SKY = "#D55E00", "#CC79A7", "#56B4E9"
_LEGEND_ROW_INCHES = 0.2

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
LEGEND: Mapping[str, Any] = {
    "loc": "lower left",
    "bbox_to_anchor": (-0.01, 1.0),
    "borderaxespad": 0.2,
    "columnspacing": 1.1,
    "handlelength": 1.4,
    "handletextpad": 0.5,
    "fontsize": 8.5,
    "frameon": False,
}
"""A row of names above the axes."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure: what it shows in words, and as SVG."""

    name: str
    """File name without suffix."""
    title: str
    description: str
    """Alternative text: what a reader who cannot see the picture needs."""
    svg: str


def new_figure(num_panels: int = 1, *, legend_rows: int = 1) -> tuple[Figure, Sequence[Axes]]:
    """Return empty panels; fixed margins, since measuring text for a tight fit doubles the drawing time."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    height = 3.6 + _LEGEND_ROW_INCHES * (legend_rows - 1)
    grid = {
        "height_ratios": [1] if num_panels == 1 else [1.7, 1],
        "left": 0.125,
        "right": 0.985,
        "bottom": 0.45 / height,
        "top": 1 - (0.1 + _LEGEND_ROW_INCHES * legend_rows) / height,
        "hspace": 0.32,
    }
    with mpl.rc_context(dict(STYLE)):
        figure = Figure(figsize=(6.4, height))
        axes = figure.subplots(num_panels, 1, sharex=True, squeeze=False, gridspec_kw=grid)
    return figure, list(axes[:, 0])


def finish_axes(axes: Axes, *, ylabel: str, is_share: bool = False) -> None:
    """Label the axes of a figure over steps."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.set_ylabel(ylabel)
    axes.yaxis.set_label_coords(-0.105, 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("training step")
    if is_share:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None, symbol=" %"))


def render(figure: Figure, name: str, title: str, description: str) -> Chart:
    """Return a figure as a chart: the same figure gives the same bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(["Date", "Creator", "Format", "Type"])
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"microcoder.{name}"}):
        FigureCanvasSVG(figure).print_svg(buffer, metadata=nothing)
    svg = buffer.getvalue()
    head, _, rest = svg[svg.index("<svg") :].partition(">")
    label = 'role="img" aria-labelledby="title description"'
    text = f'<title id="title">{escape(title)}</title><desc id="description">{escape(description)}</desc>'
    return Chart(name, title, description, f"{head} {label}>\n {text}{rest}")


def write_probe_figure(run_directory: Path) -> Path:
    """Draw the recorded probe of a run directory into it, and return the path."""
    run = RunDirectory(run_directory)
    probe = read_probe(run)
    try:
        write_text(run.probe_figure, draw_probe(probe).svg)
    except ImportError as error:
        raise missing_extra(error) from None
    return run.probe_figure


def draw_probe(probe: Probe) -> Chart:
    """Draw accuracy above, diversity below; the converged diversity and the bounds as lines."""
    figure, (top, bottom) = new_figure(2)
    temperatures = [point.temperature for point in probe.points]
    best = max((point.accuracy or 0.0 for point in probe.points), default=0.0)
    for axes, values, colour, name in (
        (top, [point.accuracy for point in probe.points], BLUE, "accuracy"),
        (bottom, [point.diversity for point in probe.points], GREEN, "diversity"),
    ):
        known = [(t, value) for t, value in zip(temperatures, values, strict=True) if value is not None]
        axes.plot([t for t, _ in known], [value for _, value in known], "o-", color=colour, label=name)
        axes.axvline(probe.choice.temperature, color=BLACK, linestyle="--", label="chosen" if axes is top else "")
        axes.set_ylabel(name)
    top.axhline(probe.min_accuracy_share * best, color=VERMILION, linewidth=1, label="unstable below")
    bottom.axhline(probe.max_diversity, color=VERMILION, linewidth=1, label="unstable above")
    bottom.axhline(probe.converged_diversity, color=GREEN, linewidth=1, linestyle=":", label="converged")
    top.set_ylim(bottom=0)
    bottom.set_ylim(0, 1.03)
    bottom.set_xlabel("temperature")
    for axes in (top, bottom):
        axes.legend(loc="best", fontsize=8, frameon=False)
    return render(
        figure,
        "probe",
        "Accuracy and diversity of the untrained model by temperature",
        f"Temperature {probe.choice.temperature:g} was chosen. {'; '.join(probe.choice.reasons)}.",
    )
