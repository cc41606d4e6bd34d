"""Hand-picked rollouts worth reading: illustrations, not a sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from microcoder.insights.history import History, Row
from microcoder.types import Outcome

_MAX_LEARNT = 3


@dataclass(frozen=True, slots=True)
class ShownRollout:
    """One rollout on the page."""

    label: str
    row: Row
    is_training: bool = False
    """None for held-out samples."""


@dataclass(frozen=True, slots=True)
class ExampleProblem:
    """One problem with one or two rollouts of it."""

    title: str
    problem_id: str
    why: str
    rollouts: tuple[ShownRollout, ...]


def choose_examples(history: History) -> list[ExampleProblem]:
    """Choose examples of gains, losses, remaining failures and masked rollouts; deterministic for the same files."""
    before, after = _by_problem(history.samples_before), _by_problem(history.samples_after)
    both = sorted(before.keys() & after.keys())
    chosen = _learnt(history, both, before, after)
    for find, names in (
        (lambda name: _lost(name, before[name], after[name]), both),
        (lambda name: _still_failing(name, after[name]), sorted(after)),
    ):
        shown = {example.problem_id for example in chosen}
        chosen += _first(find(name) for name in names if name not in shown)
    return [*chosen, *_masked(history)]


def _learnt(
    history: History, names: Sequence[str], before: dict[str, list[Row]], after: dict[str, list[Row]]
) -> list[ExampleProblem]:
    """The largest gain of each tier."""
    best: dict[str, tuple[float, str]] = {}
    for name in names:
        gain = _share_solved(after[name]) - _share_solved(before[name])
        tier = history.tier_of.get(name, "untiered")
        if _pick(before[name], 0.0) and _pick(after[name], 1.0) and gain > best.get(tier, (0.0, ""))[0]:
            best[tier] = (gain, name)
    chosen = [best[tier][1] for tier in history.tiers if tier in best][:_MAX_LEARNT]
    return [
        ExampleProblem(
            title=f"Learnt: {name}",
            problem_id=name,
            why=f"{_tally(before[name])} before, {_tally(after[name])} after: the largest gain of its tier.",
            rollouts=(
                *_shown("before", _pick(before[name], 0.0)),
                *_shown("after", _pick(after[name], 1.0)),
            ),
        )
        for name in chosen
    ]


def _lost(name: str, before: list[Row], after: list[Row]) -> ExampleProblem | None:
    if _share_solved(after) >= _share_solved(before):
        return None
    why = f"{_tally(before)} before, {_tally(after)} after."
    shown = (*_shown("before", _pick(before, 1.0)), *_shown("after", _pick(after, 0.0)))
    return ExampleProblem(f"Lost: {name}", name, why, shown)


def _still_failing(name: str, after: list[Row]) -> ExampleProblem | None:
    if _pick(after, 1.0) or not _pick(after, 0.0):
        return None
    why = f"{_tally(after)} after training."
    return ExampleProblem(f"Still failing: {name}", name, why, _shown("after", _pick(after, 0.0)))


def _masked(history: History) -> list[ExampleProblem]:
    """The latest masked training rollout, or else the latest truncated one."""
    latest_first = list(reversed(history.steps))
    for step in (s for s in latest_first if s.masked_share):
        row = next((row for row in history.training_samples(step.step) if row["masked_why"]), None)
        if row:
            why = f"Kept out of the loss by the truncation mask: {row['masked_why']}."
            return [_training_example("Masked", step.step, row, why)]
    for step in (s for s in latest_first if s.truncated_share):
        row = next((row for row in history.training_samples(step.step) if row["is_truncated"]), None)
        if row:
            why = "Reached the length limit; not masked."
            return [_training_example("Truncated", step.step, row, why)]
    return []


def _training_example(kind: str, step: int, row: Row, why: str) -> ExampleProblem:
    name = row["problem_id"]
    return ExampleProblem(f"{kind}: {name}", name, why, (ShownRollout(f"training step {step}", row, is_training=True),))


def _by_problem(rows: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["problem_id"], row["sample_index"])):
        grouped[row["problem_id"]].append(row)
    return dict(grouped)


def _pick(rows: Sequence[Row], reward: float) -> Row | None:
    return next((row for row in rows if row["reward"] is not None and _is_solved(row) == bool(reward)), None)


def _is_solved(row: Row) -> bool:
    return row["verdict"] == Outcome.ACCEPTED


def _share_solved(rows: Sequence[Row]) -> float:
    scored = [row for row in rows if row["reward"] is not None]
    return sum(map(_is_solved, scored)) / len(scored) if scored else 0.0


def _tally(rows: Sequence[Row]) -> str:
    scored = [row for row in rows if row["reward"] is not None]
    return f"{sum(map(_is_solved, scored))} of {len(scored)} samples solved"


def _shown(label: str, row: Row | None) -> tuple[ShownRollout, ...]:
    return (ShownRollout(label, row),) if row else ()


def _first(examples: Iterable[ExampleProblem | None]) -> list[ExampleProblem]:
    return [example for example in examples if example][:1]
