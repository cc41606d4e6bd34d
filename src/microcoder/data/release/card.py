"""The card of a corpus: README.md and funnel.json.

It has rows by step, counts, reasons of rejections, verifier rates.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from microcoder.data.pipeline.engine import StepCounts
from microcoder.data.release.tables import UNKNOWN, Tally
from microcoder.judge.core.files import write_json, write_text

CARD = "README.md"
"""File of the card."""
_MAX_LINES = 25
"""Lines of a table of counts; the commonest values stay."""
_LICENCES = frozenset(
    {
        "mit",
        "apache-2.0",
        "bsd-2-clause",
        "bsd-3-clause",
        "isc",
        "unlicense",
        "cc0-1.0",
        "cc-by-2.0",
        "cc-by-3.0",
        "cc-by-4.0",
        "cc-by-sa-3.0",
        "cc-by-sa-4.0",
        "odc-by",
        "pddl",
        "odbl",
        "gpl-2.0",
        "gpl-3.0",
        "lgpl-3.0",
        "mpl-2.0",
    }
)
"""Licence names that the Hugging Face Hub knows."""
_TEMPLATE = Path(__file__).with_name("card.md.j2")


def write_card(
    folder: Path,
    *,
    name: str,
    tally: Tally,
    step_counts: Sequence[StepCounts],
    figures: Mapping[str, Any],
    config: Mapping[str, Any],
    sources: Sequence[Mapping[str, str]] = (),
) -> None:
    """Write the dataset card, README.md, and its figures, funnel.json."""
    funnel = [_describe_step(counts) for counts in step_counts]
    reasons = []
    for (stage, reason), count in sorted(tally.reasons.items()):
        reasons.append({"stage": stage, "reason": reason, "rows": count})
    write_json(folder / "funnel.json", {"steps": funnel, "reasons": reasons, "figures": figures})
    # Strict: a name that the template misses is an error, not an empty cell.
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    commonest = {}
    for kind, counter in tally.counts.items():
        commonest[kind] = counter.most_common(_MAX_LINES)
    text = template.render(
        name=name,
        licence=find_licence(tally.counts["licence"]),
        sources=sources,
        tally=tally,
        funnel=funnel,
        reasons=reasons,
        counts=commonest,
        figures={step: _write_readable(value) for step, value in figures.items()},
        config=_write_readable(config),
    )
    write_text(folder / CARD, text)


def _describe_step(counts: StepCounts) -> dict[str, Any]:
    return {
        "step": counts.step,
        "stage": counts.stage,
        "in": counts.num_in,
        "kept": counts.num_kept,
        "rejected": counts.num_rejected,
    }


def _write_readable(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def find_licence(licences: Collection[str]) -> str:
    """Return the Hub's name for the licence of all problems.

    It is `other` if they have several, `unknown` if none is stated.
    """
    if set(licences) <= {UNKNOWN}:
        return "unknown"
    (name, *others) = {licence.lower() for licence in licences}
    if others or name not in _LICENCES:
        return "other"
    return name
