"""Curves as SVG text: the same rows give the same bytes, on a page or in a paper."""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from microcoder.lab.studies.effects import Estimate
from microcoder.train.metrics import EvaluationMetrics, StepMetrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

from pathlib import Path

from microcoder.judge.core.files import write_text
from microcoder.lab.studies.history import missing_extra
from microcoder.train.run.probe import Probe, read_probe
from microcoder.train.runs import RunDirectory

# Okabe and Ito's colours, told apart with every common colour blindness; without the yellow, too pale on white.
BLACK, BLUE, ORANGE, GREEN = "#222222", "#0072B2", "#E69F00", "#009E73"
VERMILION, PURPLE, SKY = "#D55E00", "#CC79A7", "#56B4E9"
_TIER_STYLES = ((GREEN, "o"), (ORANGE, "s"), (VERMILION, "^"), (PURPLE, "D"), (SKY, "v"), (BLUE, "P"))
_ARM_STYLES = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (SKY, "P"), (BLACK, "x"))
_PHASE_COLOURS = {
    "generate": BLUE,
    "judge": ORANGE,
    "update": GREEN,
    "evaluate": PURPLE,
    "checkpoint": SKY,
}
_MAX_BARS = 90
_MAX_LEGEND_COLUMNS = 5
_LEGEND_ROW_INCHES = 0.2
_MAX_POINTS_WITH_MARKERS = 30

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
    """Without an XML declaration, so it can stand inside a page."""


@dataclass(frozen=True, slots=True)
class HeldOutPoint:
    """Held-out accuracy after some steps, with its interval."""

    step: int
    overall: Estimate | None
    by_tier: Mapping[str, Estimate]


def draw_accuracy(steps: Sequence[StepMetrics], points: Sequence[HeldOutPoint], tiers: Sequence[str]) -> Chart:
    """Draw training accuracy by tier as faint lines, held-out accuracy as points with intervals."""
    figure, (axes,) = new_figure(legend_rows=1 + len(tiers) // _MAX_LEGEND_COLUMNS)
    last = max([s.step for s in steps] + [p.step for p in points], default=1)
    styles = dict(zip(tiers, itertools.cycle(_TIER_STYLES), strict=False)) if tiers != ["untiered"] else {}
    for index, (tier, (colour, marker)) in enumerate(styles.items()):
        _line(axes, steps, [s.accuracy_by_tier.get(tier) for s in steps], colour, alpha=0.35, width=1.0)
        estimates = [(p.step, p.by_tier[tier]) for p in points if tier in p.by_tier]
        _intervals(axes, estimates, colour, marker, label=tier, shift=(index + 1) * last * 0.008)
    overall = [(p.step, p.overall) for p in points if p.overall]
    _intervals(axes, overall, BLACK, "o", label="all held-out", width=2.0)
    axes.set_ylim(-0.03, 1.03)
    finish_axes(axes, ylabel="accuracy", is_share=True)
    ends = f"from {overall[0][1].value:.3f} to {overall[-1][1].value:.3f}" if overall else "not evaluated yet"
    return render(
        figure,
        "accuracy",
        "Accuracy by tier",
        f"Held-out accuracy {ends}. Points: held-out problems with 95 % intervals; faint lines: training rollouts.",
    )


def draw_arms(curves: Sequence[tuple[str, Sequence[tuple[int, Estimate]]]]) -> Chart:
    """Draw each arm's held-out accuracy under its name, on an axis that shows their difference."""
    figure, (axes,) = new_figure(legend_rows=len(curves))
    last = max((step for _, points in curves for step, _ in points), default=1)
    for index, ((label, points), (colour, marker)) in enumerate(
        zip(curves, itertools.cycle(_ARM_STYLES), strict=False)
    ):
        _intervals(axes, points, colour, marker, label=label, width=1.8, shift=index * last * 0.008)
    finish_axes(axes, ylabel="held-out accuracy", is_share=True, most_columns=1)
    ends = "; ".join(f"{name} {points[-1][1].value:.3f} at step {points[-1][0]}" for name, points in curves if points)
    return render(figure, "arms", "Held-out accuracy of the arms", f"{ends}. Bars: 95 % intervals over problems.")


def draw_length(steps: Sequence[StepMetrics], evaluations: Sequence[EvaluationMetrics]) -> Chart:
    """Draw mean response length under its limit, and the truncated share below."""
    figure, (top, bottom) = new_figure(2)
    _line(top, steps, [s.length_mean for s in steps], BLUE, label="training mean")
    _line(top, steps, [s.max_response_tokens for s in steps], BLACK, label="limit", style="--", width=1.0, marker="")
    _points(top, evaluations, [e.length_mean for e in evaluations], BLUE, label="held-out mean")
    top.set_ylim(bottom=0)
    _line(bottom, steps, [s.truncated_share for s in steps], VERMILION, label="truncated, training")
    _points(bottom, evaluations, [e.truncated_share for e in evaluations], VERMILION, label="held-out")
    _share_limits(bottom)
    finish_axes(top, ylabel="tokens", has_steps=False)
    finish_axes(bottom, ylabel="truncated", is_share=True)
    return render(
        figure,
        "length",
        "Response length and truncation",
        f"Mean response tokens {_ends([s.length_mean for s in steps])}; "
        f"truncated share {_ends([s.truncated_share for s in steps])}.",
    )


def draw_diversity(steps: Sequence[StepMetrics], evaluations: Sequence[EvaluationMetrics]) -> Chart:
    """Draw 4-gram diversity, and the sampling temperature below."""
    figure, (top, bottom) = new_figure(2)
    _line(top, steps, [s.diversity for s in steps], GREEN, label="training")
    _points(top, evaluations, [e.diversity for e in evaluations], GREEN, label="held-out")
    top.set_ylim(-0.03, 1.03)
    _line(bottom, steps, [s.temperature for s in steps], ORANGE, label="training")
    _points(bottom, evaluations, [e.temperature for e in evaluations], ORANGE, label="held-out")
    bottom.set_ylim(bottom=0)
    finish_axes(top, ylabel="diversity", has_steps=False)
    finish_axes(bottom, ylabel="temperature")
    return render(
        figure,
        "diversity",
        "Diversity and temperature",
        f"Unique over all 4-grams of a problem's samples {_ends([s.diversity for s in steps])}; "
        f"sampling temperature {_ends([s.temperature for s in steps])}.",
    )


def draw_reward(steps: Sequence[StepMetrics]) -> Chart:
    """Draw the mean reward of each step's scored rollouts."""
    figure, (axes,) = new_figure()
    rewards = [s.reward_mean for s in steps]
    _line(axes, steps, rewards, BLUE, label="each step", alpha=0.4, width=1.0)
    if len(steps) >= 10:
        width = max(5, len(steps) // 20)
        _line(axes, steps, _smooth(rewards, width), BLUE, label=f"mean of {width} steps", width=2.0, marker="")
    axes.set_ylim(min([-0.03, *(r - 0.03 for r in rewards if r is not None)]), 1.03)
    finish_axes(axes, ylabel="mean reward")
    return render(figure, "reward", "Training reward", f"Mean reward of scored rollouts {_ends(rewards)}.")


def draw_shares(steps: Sequence[StepMetrics]) -> Chart:
    """Draw the shares of rollouts that carry no signal, by cause, and of problems whose rewards are all equal."""
    figure, (axes,) = new_figure()
    shares = {
        "masked": ([s.masked_share for s in steps], PURPLE, "-"),
        "no code": ([s.no_code_share for s in steps], ORANGE, "-"),
        "unscored": ([s.unscored_share for s in steps], VERMILION, "-"),
        "equal rewards": ([s.zero_variance_share for s in steps], SKY, "--"),
    }
    for label, (values, colour, style) in shares.items():
        _line(axes, steps, values, colour, label=label, style=style)
    _share_limits(axes)
    finish_axes(axes, ylabel="share", is_share=True)
    text = "; ".join(f"{label} {_ends(values)}" for label, (values, _, _) in shares.items())
    return render(figure, "shares", "Rollouts without signal", f"Shares by cause: {text}.")


def draw_seconds(steps: Sequence[StepMetrics]) -> Chart:
    """Draw wall time by phase as stacked bars; neighbouring steps share a bar (their mean) in a long run."""
    figure, (axes,) = new_figure()
    size = math.ceil(len(steps) / _MAX_BARS) or 1
    groups = [steps[i : i + size] for i in range(0, len(steps), size)]
    seen = {phase for s in steps for phase in s.seconds if phase not in ("total", "judge_beside")}
    phases = [p for p in _PHASE_COLOURS if p in seen] + sorted(seen - _PHASE_COLOURS.keys())
    spare = itertools.cycle((BLACK, VERMILION))
    base = [0.0] * len(groups)
    for phase in phases:
        means = [sum(s.seconds.get(phase, 0.0) for s in group) / len(group) for group in groups]
        centres = [(group[0].step + group[-1].step) / 2 for group in groups]
        colour = _PHASE_COLOURS.get(phase) or next(spare)
        axes.bar(centres, means, width=0.85 * size, bottom=base, color=colour, label=phase)
        base = [a + b for a, b in zip(base, means, strict=True)]
    axes.grid(visible=False, axis="x")
    finish_axes(axes, ylabel="seconds a step")
    total = {phase: sum(s.seconds.get(phase, 0.0) for s in steps) for phase in phases}
    text = ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in total.items()) or "none recorded"
    if beside := sum(s.seconds.get("judge_beside", 0.0) for s in steps):
        text += f"; programs were judged for {beside:.0f} of the seconds of generate"
    return render(figure, "seconds", "Wall time by phase", f"Seconds over all steps: {text}.")


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


def _line(
    axes: Axes,
    steps: Sequence[StepMetrics],
    values: Sequence[float | None],
    colour: str,
    *,
    label: str = "",
    style: str = "-",
    width: float = 1.6,
    alpha: float = 1.0,
    marker: str = ".",
) -> None:
    axes.plot(
        [s.step for s in steps],
        _gaps(values),
        style,
        color=colour,
        linewidth=width,
        alpha=alpha,
        label=label or "_unlisted",
        marker=marker if len(steps) <= _MAX_POINTS_WITH_MARKERS else "",
        markersize=4,
    )


def _points(
    axes: Axes, rows: Sequence[EvaluationMetrics], values: Sequence[float | None], colour: str, *, label: str
) -> None:
    steps = [row.step for row in rows]
    axes.plot(
        steps, _gaps(values), "o", color=colour, markerfacecolor="white", markeredgewidth=1.4, markersize=6, label=label
    )


def _intervals(
    axes: Axes,
    estimates: Sequence[tuple[int, Estimate]],
    colour: str,
    marker: str,
    *,
    label: str,
    width: float = 1.2,
    shift: float = 0.0,
) -> None:
    """Points with intervals; `shift` keeps the intervals of one step from covering each other."""
    if not estimates:
        return
    axes.errorbar(
        [step + shift for step, _ in estimates],
        [e.value for _, e in estimates],
        yerr=[[e.value - e.low for _, e in estimates], [e.high - e.value for _, e in estimates]],
        color=colour,
        marker=marker,
        markersize=5,
        linewidth=width,
        elinewidth=1.0,
        capsize=2,
        label=label,
    )


def finish_axes(
    axes: Axes,
    *,
    ylabel: str,
    is_share: bool = False,
    has_steps: bool = True,
    has_legend: bool = True,
    most_columns: int = _MAX_LEGEND_COLUMNS,
) -> None:
    """Label the axes, and give a legend above them where there is more than one line."""
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.set_ylabel(ylabel)
    axes.yaxis.set_label_coords(-0.105, 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if has_steps:
        axes.set_xlabel("training step")
    if is_share:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None, symbol=" %"))
    handles, labels = axes.get_legend_handles_labels()
    if has_legend and len(labels) > 1:
        axes.legend(
            handles,
            labels,
            ncols=min(most_columns, len(labels)),
            **LEGEND,
        )


def _share_limits(axes: Axes) -> None:
    """From zero to the largest share, but never so close that a percent looks like a cliff."""
    axes.set_ylim(bottom=0, top=max(0.1, min(1.03, axes.get_ylim()[1])))


def render(figure: Figure, name: str, title: str, description: str) -> Chart:
    """Return a figure as a chart: the same figure gives the same bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(["Date", "Creator", "Format", "Type"])
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"microcoder.{name}"}):
        FigureCanvasSVG(figure).print_svg(buffer, metadata=nothing)
    return Chart(name, title, description, _for_a_page(buffer.getvalue(), name, title, description))


def _for_a_page(svg: str, name: str, title: str, description: str) -> str:
    """Drop the XML declaration, make ids unique among the charts of one page, and add the text alternative."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(\bid="|url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    label = f'role="img" aria-labelledby="{name}-title {name}-description"'
    text = f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-description">{escape(description)}</desc>'
    head, _, rest = svg.partition(">")
    return f"{head} {label}>\n {text}{rest}"


def _gaps(values: Iterable[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _smooth(values: Sequence[float | None], width: int) -> list[float | None]:
    """Trailing mean over the last `width` known values."""
    smoothed: list[float | None] = []
    for end in range(1, len(values) + 1):
        known = [v for v in values[max(0, end - width) : end] if v is not None]
        smoothed.append(sum(known) / len(known) if known else None)
    return smoothed


def _ends(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"from {known[0]:.3g} to {known[-1]:.3g}" if known else "not known"


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
