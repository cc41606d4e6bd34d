"""The two figures of studies in which a reward pays for wrong programs: over steps,
and over the rate of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from payments import Payments

from microcoder.lab.studies.figures import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    STYLE,
    VERMILION,
    Chart,
    finish_axes,
    render,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 7.6
_HEIGHT = 3.3
_LINES: tuple[tuple[str, str, str, Callable[[Payments], float]], ...] = (
    ("what the grader pays", BLACK, "--", lambda p: p.reward),
    ("right, by our judge", BLUE, "-", lambda p: p.accuracy),
    ("tricks", VERMILION, "-", lambda p: p.all_tricks),
)
_ERROR_LINES = (
    (ORANGE, "o", "-"),
    (SKY, "o", "--"),
    (VERMILION, "s", "-"),
    (BLUE, "s", "--"),
    (PURPLE, "D", "-"),
    (GREEN, "D", "--"),
)


def draw_payments(
    name: str,
    by_grader: Mapping[str, Sequence[Sequence[Payments]]],
    *,
    title: str,
) -> Chart:
    """Draw what a grader pays, what is right and what is a trick over the steps, a panel a grader.

    Lines are means over seeds, bands their range.
    """
    import numpy as np

    figure, panels = _new_panels(len(by_grader))
    ends = []
    for axes, (grader, runs) in zip(panels, by_grader.items(), strict=True):
        steps = [payments.step for payments in runs[0]]
        for label, colour, style, read in _LINES:
            curves = []
            for run in runs:
                curves.append([read(payments) for payments in run])
            rows = np.asarray(curves)
            axes.plot(steps, rows.mean(axis=0), style, color=colour, linewidth=1.8, label=label)
            axes.fill_between(
                steps,
                rows.min(axis=0),
                rows.max(axis=0),
                color=colour,
                alpha=0.13,
                linewidth=0,
            )
            ends.append(f"{grader}, {label}: {rows[:, 0].mean():.0%} to {rows[:, -1].mean():.0%}")
        axes.set_title(f"trained against {grader}", fontsize=9, loc="left")
        axes.set_ylim(-0.03, 1.03)
        _finish(axes, "share of the rollouts" if axes is panels[0] else "")
    _legend(figure, panels[0], columns=len(_LINES))
    return render(figure, name, title, f"First and last step, means over seeds: {'; '.join(ends)}.")


@dataclass(frozen=True, slots=True)
class SeedRange:
    """A mean difference over seeds, and the lowest and the highest of them.

    The seeds of these studies begin with one start. They tell what came of it,
    and not what another start would give, so that there is no interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """What one kind of error does, rate by rate."""

    label: str
    effects: Mapping[float, SeedRange]
    """Rate -> accuracy less that of the same seeds without errors."""


def draw_errors(
    name: str,
    lines: Sequence[ErrorLine],
    curves: Mapping[str, Sequence[Sequence[float]]],
    *,
    title: str,
) -> Chart:
    """Draw the loss of accuracy over the rate of errors,
    and beside it accuracy over the steps at one rate.

    Args:
        name: of the file. lines: a line a kind of error, at most six. curves: accuracy of each
        seed, step by step; first without errors, then in the order of `lines`. title: what the
        figure shows.
    """
    import numpy as np

    figure, (left, right) = _new_panels(2, legend_rows=2)
    changes = []
    for place, (line, (colour, marker, style)) in enumerate(zip(lines, _ERROR_LINES, strict=False)):
        rates = np.asarray(sorted(line.effects))
        values = [line.effects[rate].value for rate in rates]
        spans = [[line.effects[rate].value - line.effects[rate].low for rate in rates]]
        spans.append([line.effects[rate].high - line.effects[rate].value for rate in rates])
        shifted = rates + (place - (len(lines) - 1) / 2) * 0.004
        left.errorbar(
            shifted,
            values,
            spans,
            color=colour,
            marker=marker,
            linestyle=style,
            markersize=4,
            linewidth=1.5,
            elinewidth=1.0,
            label=line.label,
        )
        changes += [f"{line.label}, {rate:.0%}: {line.effects[rate].value:+.1%}" for rate in rates]
    left.axhline(0, color=BLACK, linewidth=0.8)
    effects = []
    for line in lines:
        for effect in line.effects.values():
            effects.append(effect.value)
    lowest = min(effects)
    left.set_ylim(lowest - 0.15, 0.15)
    styles = [(BLACK, "", "-"), *_ERROR_LINES]
    for (label, runs), (colour, _, style) in zip(curves.items(), styles, strict=False):
        mean = np.mean(np.asarray(runs), axis=0)
        right.plot(range(1, len(mean) + 1), mean, style, color=colour, linewidth=1.6, label=label)
    right.set_ylim(0, 1)
    _finish(left, "right, less what it is without errors")
    left.set_xlabel("share of verdicts turned round")
    left.set_xticks(sorted({rate for line in lines for rate in line.effects}))
    left.xaxis.set_major_formatter(left.yaxis.get_major_formatter())
    _finish(right, f"right; errors of {max(rate for line in lines for rate in line.effects):.0%}")
    _legend(figure, right, columns=3)
    return render(
        figure,
        name,
        title,
        f"Change of accuracy, means over seeds: {'; '.join(changes)}.",
    )


def _new_panels(num: int, *, legend_rows: int = 1) -> tuple[Figure, Sequence[Axes]]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(dict(STYLE)):
        figure = Figure(figsize=(_WIDTH, _HEIGHT))
        axes = figure.subplots(1, num, squeeze=False)
    figure.subplots_adjust(
        left=0.1,
        right=0.985,
        bottom=0.14,
        top=0.89 - 0.06 * legend_rows,
        wspace=0.27,
    )
    return figure, list(axes[0])


def _finish(axes: Axes, ylabel: str) -> None:
    from matplotlib.ticker import PercentFormatter

    finish_axes(axes, ylabel=ylabel)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.yaxis.set_label_coords(-0.18, 0.5)


def _legend(figure: Figure, axes: Axes, *, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="upper left",
        ncols=columns,
        fontsize=8.5,
        frameon=False,
        columnspacing=1.2,
    )
