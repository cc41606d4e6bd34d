"""What is counted while a corpus is written, so that its card can say what is inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

UNKNOWN = "not stated"
_NOT_MEASURED = "not measured: tests enough, or no mutants"
_MANY = 10
_COUNTED = ("licence", "year", "difficulty", "dataset", "style", "hidden tests", "mutation score")


@dataclass(slots=True)
class Tally:
    """Counts of rows of the tables."""

    num_problems: int = 0
    num_tests: int = 0
    num_generated: int = 0
    """Tests that were made here."""
    num_rejected: int = 0
    counts: dict[str, Counter[str]] = field(
        default_factory=lambda: {
            name: Counter()
            for name in ("licence", "year", "difficulty", "dataset", "style", "hidden tests", "mutation score")
        }
    )
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)

    def count_problem(self, row: Mapping[str, Any]) -> None:
        """Count a row of the problems table."""
        self.num_problems += 1
        self.num_tests += row["num_tests"]
        self.num_generated += row["num_generated_tests"]
        hidden, score = row["num_hidden_tests"], row["mutation_score"]
        self.counts["hidden tests"]["10 or more" if hidden >= _MANY else str(hidden)] += 1
        self.counts["mutation score"][_NOT_MEASURED if score is None else f"{int(10 * score) / 10:.1f}"] += 1
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
