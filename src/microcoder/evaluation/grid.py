"""Platform x difficulty: mean accuracy and pass@k with intervals, and the paired difference of two runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from microcoder.evaluation.folder import Key, Row
from microcoder.insights.statistics import Estimate, Solved, estimate_accuracy, estimate_difference
from microcoder.types import Outcome

ALL = "all"
_ORDER = ("atcoder", "leetcode", "codeforces", "easy", "medium", "hard")


def solved_from(verdicts: Mapping[Key, Row]) -> dict[str, list[bool | None]]:
    """Return which samples of which problem were accepted; None if the sandbox failed."""
    solved: dict[str, list[bool | None]] = {}
    for (problem_id, _), row in sorted(verdicts.items()):
        outcome = row["verdict"]
        scored = None if outcome == Outcome.SANDBOX_FAULT else outcome == Outcome.ACCEPTED
        solved.setdefault(problem_id, []).append(scored)
    return solved


def accuracy_grid(questions: Sequence[Row], solved: Solved, *, ks: Sequence[int]) -> list[Row]:
    """Return a row for every non-empty cell: platform, difficulty, k (1 is the mean accuracy of the samples), and the
    estimate, None if no problem of the cell has k scored samples. Totals are in cells named `all`."""
    return _cells(questions, solved, ks, lambda ids, k: estimate_accuracy(_only(solved, ids), k=k))


def difference_grid(questions: Sequence[Row], before: Solved, after: Solved, *, ks: Sequence[int]) -> list[Row]:
    """Return the mean change of pass@k in every cell, problem by problem, over the problems that both runs have."""
    return _cells(
        questions,
        before.keys() & after.keys(),
        ks,
        lambda ids, k: estimate_difference(_only(before, ids), _only(after, ids), k=k),
    )


def _cells(
    questions: Sequence[Row],
    known: Collection[str],
    ks: Sequence[int],
    estimate: Callable[[Collection[str], int], Estimate | None],
) -> list[Row]:
    asked = [question for question in questions if question["problem_id"] in known]
    cells = []
    for k in ks:
        for platform in _values(asked, "platform"):
            for difficulty in _values(asked, "difficulty"):
                ids = {
                    question["problem_id"]
                    for question in asked
                    if platform in (ALL, question["platform"]) and difficulty in (ALL, question["difficulty"])
                }
                if ids:
                    found = estimate(ids, k)
                    figures = {name: found and getattr(found, name) for name in ("value", "low", "high")}
                    num = found.num_problems if found else 0
                    cells.append(
                        {"platform": platform, "difficulty": difficulty, "k": k, "num_problems": num, **figures}
                    )
    return cells


def _values(questions: Sequence[Row], field: str) -> list[str]:
    """Return the values of a field in the table's order; only `all` for a benchmark without it."""
    found = {question[field] for question in questions} - {""}
    known = [value for value in _ORDER if value in found]
    return [*known, *sorted(found - set(known)), ALL]


def _only(solved: Solved, ids: Collection[str]) -> Solved:
    return {name: samples for name, samples in solved.items() if name in ids}
