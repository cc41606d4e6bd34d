"""What is counted while a corpus is written, so that its card can say what is inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

UNKNOWN = "not stated"


@dataclass(slots=True)
class Tally:
    """Counts of rows of the tables."""

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
        self.counts["licence"][row["licence"] or UNKNOWN] += 1
        self.counts["year"][row["date"][:4] or UNKNOWN] += 1
        self.counts["difficulty"][UNKNOWN if difficulty is None else f"{int(2 * difficulty) / 2:.1f}"] += 1
        self.counts["dataset"][row["dataset"]] += 1
        style = "function call" if row["fn_name"] else "stdin and stdout"
        self.counts["style"][f"{row['programming_language']}, {style}"] += 1

    def count_rejection(self, row: Mapping[str, Any]) -> None:
        """Count a row of the rejected table."""
        self.num_rejected += 1
        self.reasons[row["stage"], row["reason"]] += 1
