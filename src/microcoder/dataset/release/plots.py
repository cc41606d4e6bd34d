"""Bars as SVG text: the same counts give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence

_BAR_INCHES, _WIDTH_INCHES = 0.28, 4.5


def draw_bars(counts: Sequence[tuple[str, int]], *, title: str) -> str:
    """Return horizontal bars, one a name, in the given order."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    names = [name if len(name) <= 40 else name[:39] + "…" for name, _ in counts]
    style = {"svg.fonttype": "none", "svg.hashsalt": "microcoder", "text.parse_math": False}
    with rc_context(style):
        figure = Figure(figsize=(_WIDTH_INCHES, 0.8 + _BAR_INCHES * max(1, len(counts))), layout="constrained")
        axes = figure.subplots()
        bars = axes.barh(range(len(counts)), [count for _, count in counts], color="#0072B2")
        axes.bar_label(bars, padding=2, fontsize=8)
        axes.set_yticks(range(len(counts)), names, fontsize=8)
        axes.invert_yaxis()
        axes.set_title(f"problems by {title}", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
