"""The dataset card: the funnel, what is inside, what was rejected and why, and how well the verifier did."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from microcoder.dataset.pipeline.engine import StepCounts
from microcoder.dataset.release.tables import UNKNOWN, Tally
from microcoder.files import write_json, write_text

CARD = "README.md"
_MAX_LINES = 25
_BAR_INCHES, _WIDTH_INCHES = 0.28, 4.5
_LICENCES = frozenset({
    "mit", "apache-2.0", "bsd-2-clause", "bsd-3-clause", "isc", "unlicense", "cc0-1.0", "cc-by-2.0", "cc-by-3.0",
    "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "odc-by", "pddl", "odbl", "gpl-2.0", "gpl-3.0", "lgpl-3.0", "mpl-2.0",
})  # fmt: skip
"""Names that the Hugging Face Hub knows."""
_TEMPLATE = Path(__file__).with_name("card.md.j2")


def write_card(
    folder: Path,
    *,
    name: str,
    tally: Tally,
    step_counts: Sequence[StepCounts],
    figures: Mapping[str, Any],
    config: Mapping[str, Any],
) -> None:
    """Write README.md, its plots, and funnel.json.

    Args:
        folder: the corpus.
        name: what it is called.
        tally: what was counted.
        step_counts: rows in and out of every step.
        figures: measured figures of steps, by step: decontamination, verification, difficulty.
        config: what it was built from.
    """
    for kind in ("difficulty", "year", "licence"):
        counted = sorted(tally.counts[kind].items())
        write_text(folder / "plots" / f"{kind}.svg", draw_bars(counted[:_MAX_LINES], title=kind))
    funnel = [
        {"step": p.step, "stage": p.stage, "in": p.num_in, "kept": p.num_kept, "rejected": p.num_rejected}
        for p in step_counts
    ]
    reasons = [
        {"stage": stage, "reason": reason, "rows": count} for (stage, reason), count in sorted(tally.reasons.items())
    ]
    write_json(folder / "funnel.json", {"steps": funnel, "reasons": reasons, "figures": figures})
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        name=name,
        licence=find_licence(tally),
        tally=tally,
        funnel=funnel,
        reasons=reasons,
        counts={kind: counter.most_common(_MAX_LINES) for kind, counter in tally.counts.items()},
        figures={step: json.dumps(value, indent=2, ensure_ascii=False) for step, value in figures.items()},
        config=json.dumps(config, indent=2, ensure_ascii=False),
    )
    write_text(folder / CARD, text)


def find_licence(tally: Tally) -> str:
    """Return the Hub's name for the licence of all problems: `other` for several, `unknown` where none is stated."""
    found = set(tally.counts["licence"])
    if found <= {UNKNOWN}:
        return "unknown"
    name = found.pop().lower()
    return name if not found and name in _LICENCES else "other"


def draw_bars(counts: Sequence[tuple[str, int]], *, title: str) -> str:
    """Return horizontal bars as SVG, one a name, in the given order; the same counts give the same bytes."""
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
