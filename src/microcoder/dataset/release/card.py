"""The dataset card: the funnel, what is inside, what was turned away and why, and how well the verifier did."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2

from microcoder.dataset.pipeline.engine import Passage
from microcoder.dataset.release.plots import draw_bars
from microcoder.runs import write_json, write_text

_MAX_LINES = 25
_UNKNOWN = "not stated"
_TEMPLATE = Path(__file__).with_name("card.md.j2")


@dataclass(slots=True)
class Tally:
    """What is counted while the corpus is written, row by row."""

    num_problems: int = 0
    num_tests: int = 0
    num_rejected: int = 0
    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in ("licence", "year", "difficulty", "dataset", "style")}
    )
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)

    def count_problem(self, row: Mapping[str, Any]) -> None:
        """Count a row of the problems table."""
        self.num_problems += 1
        self.num_tests += row["num_tests"]
        difficulty = row["difficulty"]
        self.counts["licence"][row["licence"] or _UNKNOWN] += 1
        self.counts["year"][row["date"][:4] or _UNKNOWN] += 1
        self.counts["difficulty"][_UNKNOWN if difficulty is None else f"{int(2 * difficulty) / 2:.1f}"] += 1
        self.counts["dataset"][row["dataset"]] += 1
        style = "function call" if row["fn_name"] else "stdin and stdout"
        self.counts["style"][f"{row['programming_language']}, {style}"] += 1

    def count_rejection(self, row: Mapping[str, Any]) -> None:
        """Count a row of the rejected table."""
        self.num_rejected += 1
        self.reasons[row["stage"], row["reason"]] += 1


def write_card(
    folder: Path,
    *,
    name: str,
    tally: Tally,
    passages: Sequence[Passage],
    figures: Mapping[str, Any],
    config: Mapping[str, Any],
) -> None:
    """Write README.md, its plots, and funnel.json.

    Args:
        folder: the corpus.
        name: what it is called.
        tally: what was counted.
        passages: rows in and out of every step.
        figures: measured figures of steps, by step: decontamination, verification, difficulty.
        config: what it was built from.
    """
    for kind in ("difficulty", "year", "licence"):
        counted = sorted(tally.counts[kind].items())
        write_text(folder / "plots" / f"{kind}.svg", draw_bars(counted[:_MAX_LINES], title=kind))
    funnel = [
        {"step": p.step, "stage": p.stage, "in": p.num_in, "kept": p.num_kept, "rejected": p.num_rejected}
        for p in passages
    ]
    reasons = [
        {"stage": stage, "reason": reason, "rows": count} for (stage, reason), count in sorted(tally.reasons.items())
    ]
    write_json(folder / "funnel.json", {"steps": funnel, "reasons": reasons, "figures": figures})
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    text = environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        name=name,
        tally=tally,
        funnel=funnel,
        reasons=reasons,
        counts={kind: counter.most_common(_MAX_LINES) for kind, counter in tally.counts.items()},
        figures={step: json.dumps(value, indent=2, ensure_ascii=False) for step, value in figures.items()},
        config=json.dumps(config, indent=2, ensure_ascii=False),
    )
    write_text(folder / "README.md", text)
