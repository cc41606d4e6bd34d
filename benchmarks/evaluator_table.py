"""The table at the end of `evaluator.py`: medians, and how many times as fast ours is."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from evaluator_judges import OURS

Row = dict[str, Any]
_COST_COLUMNS = ("wall_ms", "cpu_ms", "cpu_ms_judge", "cpu_ms_fork_server", "cpu_ms_tests")


def write_table(rows: Sequence[Row]) -> str:
    """Return medians as text: a line a set and judge, with how many times as fast ours is."""
    measured = [row for row in rows if "set" in row]
    heading = ("set", "judge", "wall s", "CPU s", "ours is, wall", "CPU", "ending by s", "CPU ms/program", "as known")
    lines: list[Sequence[str]] = [heading]
    for name, label in dict.fromkeys((row["set"], row["judge"]) for row in measured):
        of_both = {each: _medians(measured, name, each) for each in (OURS, label)}
        ours, this = of_both[OURS], of_both[label]
        times = ("wall_seconds", "cpu_seconds")
        ratios = ["" if label == OURS else f"{this[key] / max(0.01, ours[key]):.2f} x" for key in times]
        figures = [f"{this[key]:.2f}" for key in times]
        others = [f"{this['ending_landed_seconds']:.2f}", f"{this['cpu_ms_per_program']:.1f}"]
        last = [row for row in measured if row["set"] == name and row["judge"] == label][-1]
        lines.append((name, label, *figures, *ratios, *others, f"{last['as_known']}/{last['programs']}"))
    tables = [lines] if measured else []
    costs = [row for row in rows if "cost" in row]
    if costs:
        heading = ("cost, ms (starts: the least)", *(key.replace("_ms", "") for key in _COST_COLUMNS))
        figures = [[f"{row[key]:.2f}" if key in row else "" for key in _COST_COLUMNS] for row in costs]
        tables.append([heading, *((row["cost"], *each) for row, each in zip(costs, figures, strict=True))])
    return "\n\n".join(map(_align, tables))


def _medians(rows: Sequence[Row], name: str, label: str) -> dict[str, float]:
    found = [row for row in rows if row["set"] == name and row["judge"] == label]
    keys = ("wall_seconds", "cpu_seconds", "ending_landed_seconds", "cpu_ms_per_program")
    return {key: median(row[key] for row in found) for key in keys} if found else {}


def _align(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
