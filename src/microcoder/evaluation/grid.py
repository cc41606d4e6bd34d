"""Platform x difficulty: mean accuracy and pass@k with intervals, and the paired difference of two runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from microcoder.evaluation.folder import Key, Row
from microcoder.insights.statistics import Estimate, Solved, estimate_accuracy, estimate_difference
from microcoder.types import Outcome

ALL = "all"
_ORDER = ("atcoder", "leetcode", "codeforces", "easy", "medium", "hard")


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of the table."""

    platform: str
    difficulty: str
    k: int
    """1 is the mean accuracy of the samples."""
    estimate: Estimate | None
    """None if no problem of the cell has k scored samples."""

    def as_record(self) -> dict[str, Any]:
        """Return the cell as it stands in results.json."""
        figures = asdict(self.estimate) if self.estimate else dict.fromkeys(("value", "low", "high"))
        return {
            "platform": self.platform,
            "difficulty": self.difficulty,
            "k": self.k,
            "num_problems": self.estimate.num_problems if self.estimate else 0,
            **{name: figures[name] for name in ("value", "low", "high")},
        }


def solved_from(verdicts: Mapping[Key, Row]) -> dict[str, list[bool | None]]:
    """Return which samples of which problem were accepted; None if the sandbox failed."""
    solved: dict[str, list[bool | None]] = {}
    for (problem_id, _), row in sorted(verdicts.items()):
        outcome = row["verdict"]
        scored = None if outcome == Outcome.SANDBOX_FAULT else outcome == Outcome.ACCEPTED
        solved.setdefault(problem_id, []).append(scored)
    return solved


def accuracy_grid(questions: Sequence[Row], solved: Solved, *, ks: Sequence[int]) -> list[Cell]:
    """Return every non-empty cell; totals over platforms and difficulties are cells named `all`."""
    return [
        Cell(platform, difficulty, k, estimate_accuracy(_only(solved, ids), k=k))
        for k in ks
        for platform, difficulty, ids in _cells(questions, solved)
    ]


def difference_grid(questions: Sequence[Row], before: Solved, after: Solved, *, ks: Sequence[int]) -> list[Cell]:
    """Return the mean change of pass@k in every cell, problem by problem, over the problems that both runs have."""
    both = before.keys() & after.keys()
    return [
        Cell(platform, difficulty, k, estimate_difference(_only(before, ids), _only(after, ids), k=k))
        for k in ks
        for platform, difficulty, ids in _cells(questions, both)
    ]


def _cells(questions: Sequence[Row], known: Collection[str]) -> Iterator[tuple[str, str, set[str]]]:
    asked = [question for question in questions if question["problem_id"] in known]
    for platform in _values(asked, "platform"):
        for difficulty in _values(asked, "difficulty"):
            ids = {
                question["problem_id"]
                for question in asked
                if platform in (ALL, question["platform"]) and difficulty in (ALL, question["difficulty"])
            }
            if ids:
                yield platform, difficulty, ids


def _values(questions: Sequence[Row], field: str) -> list[str]:
    """Return the values of a field in the table's order; only `all` for a benchmark without it."""
    found = {question[field] for question in questions} - {""}
    known = [value for value in _ORDER if value in found]
    return [*known, *sorted(found - set(known)), ALL]


def _only(solved: Solved, ids: Collection[str]) -> Solved:
    return {name: samples for name, samples in solved.items() if name in ids}
