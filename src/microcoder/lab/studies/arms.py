"""Held-out accuracy compared, with intervals: before and after training, and of several runs on the same problems."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome
from microcoder.lab.studies.effects import Estimate, Solved, estimate_accuracy, estimate_difference
from microcoder.lab.studies.history import History, read_history
from microcoder.lab.studies.overview import algorithm_name, count_masked


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """One row of the before/after table."""

    label: str
    before: Estimate | None
    after: Estimate | None
    difference: Estimate | None
    """Paired, over the problems that both sides scored."""

    @property
    def num_problems(self) -> int:
        """Number of problems of the difference, or of the only side."""
        estimate = self.difference or self.after or self.before
        return estimate.num_problems if estimate else 0


@dataclass(frozen=True, slots=True)
class Unscored:
    """Numbers of samples that the sandbox could not judge; they are in no mean."""

    training: int
    before: int
    after: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.training + self.before + self.after


def compare(history: History, *, label: str = "all", k: int = 1, tier: str | None = None) -> BeforeAfter:
    """Compare pass@k (k = 1: accuracy) before and after, on one tier or on all problems."""
    ids = None if tier is None else {name for name, its_tier in history.tier_of.items() if its_tier == tier}
    before = _solved(history.before.solved if history.before else {}, ids)
    after = _solved(history.after.solved if history.after else {}, ids)
    return BeforeAfter(
        label=label,
        before=estimate_accuracy(before, k=k),
        after=estimate_accuracy(after, k=k),
        difference=estimate_difference(before, after, k=k),
    )


def compare_by_tier(history: History) -> list[BeforeAfter]:
    """Return one comparison per tier; none if problems have no tiers or the sample files are missing."""
    tiers = [tier for tier in history.tiers if tier in set(history.tier_of.values())]
    if tiers == ["untiered"]:
        return []
    return [compare(history, label=tier, tier=tier) for tier in tiers]


def count_unscored(history: History) -> Unscored:
    """Count the unscored samples in training and in both evaluations."""
    return Unscored(
        training=sum(step.outcomes.get(str(Outcome.SANDBOX_FAULT), 0) for step in history.steps),
        before=history.before.num_unscored if history.before else 0,
        after=history.after.num_unscored if history.after else 0,
    )


def _solved(solved: Solved, ids: Collection[str] | None) -> Solved:
    return solved if ids is None else {name: samples for name, samples in solved.items() if name in ids}


_NEUTRAL = ("evaluator.", "checkpoint.", "logging.")
"""Keys that do not define an arm, such as the seed's."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One run in the comparison."""

    label: str
    accuracy: Estimate | None
    """Held-out accuracy in the last evaluation."""
    difference: Estimate | None
    """Accuracy minus that of the reported run, paired by problem; None for that run itself."""
    length: float | None
    """Mean of the held-out responses, in tokens."""
    diversity: float | None
    truncated_share: float
    """Share of the training rollouts that were truncated."""
    masked_share: float


@dataclass(frozen=True, slots=True)
class Arms:
    """The compared runs and a summary."""

    rows: tuple[Arm, ...]
    """The reported run comes first."""
    conclusion: str
    changed: tuple[str, ...]
    """Recipe keys that differ between the arms, with their values."""


def compare_arms(history: History, others: Sequence[Path]) -> Arms | None:
    """Compare a run with others on the same held-out problems; None without others."""
    if not others:
        return None
    against = [read_history(folder) for folder in others]
    for other in against:
        _check_alike(history, other)
    arms = [history, *against]
    labels = _labels(arms)
    rows = tuple(_arm(arm, None if arm is history else history, labels[place]) for place, arm in enumerate(arms))
    changed = tuple(line for other in against for line in _changed(history, other))
    return Arms(rows, conclude(rows), changed)


def _labels(arms: Sequence[History]) -> list[str]:
    """Return the arms' names: their algorithms; with the run's own name and seed where two would be called alike."""
    names = [algorithm_name((arm.manifest.get("config") or {}).get("algorithm") or {}) or arm.name for arm in arms]
    longer = [
        f"{name} ({arm.name}, seed {arm.manifest.get('seed')})" if names.count(name) > 1 else name
        for name, arm in zip(names, arms, strict=True)
    ]
    return [label if longer.count(label) == 1 else f"{label} {place}" for place, label in enumerate(longer, 1)]


def conclude(rows: Sequence[Arm]) -> str:
    """Summarise the differences in words, null results included."""
    ours = rows[0]
    parts = []
    for other in rows[1:]:
        if other.difference is None:
            parts.append(f"{other.label} has no evaluation after training yet: nothing to compare.")
        elif other.difference.excludes_zero:
            better, worse = (ours, other) if other.difference.value < 0 else (other, ours)
            parts.append(
                f"{better.label} ends above {worse.label}, by more than the choice of problems explains; one run each "
                "does not show what another seed would give."
            )
        else:
            parts.append(
                f"No difference in accuracy between {ours.label} and {other.label} is shown by these two runs."
            )
    return " ".join(parts)


def _arm(history: History, reference: History | None, label: str) -> Arm:
    total, truncated, masked = count_masked(history)
    after = history.after
    compared = reference.after if reference else None
    return Arm(
        label=label,
        accuracy=estimate_accuracy(after.solved) if after else None,
        difference=estimate_difference(compared.solved, after.solved) if compared and after else None,
        length=after.length_mean if after else None,
        diversity=after.diversity if after else None,
        truncated_share=truncated / total if total else 0.0,
        masked_share=sum(masked.values()) / total if total else 0.0,
    )


def _check_alike(history: History, other: History) -> None:
    ours, theirs = ((h.manifest.get("problems") or {}).get("digest") for h in (history, other))
    if ours != theirs:
        raise DataError(
            f"{other.run.root} asked other problems than {history.run.root} (digest {theirs} against {ours}); compare "
            "runs of one recipe that differ in their algorithm"
        )


def _changed(history: History, other: History) -> list[str]:
    # What only one of them has hangs on a kind, in which they then differ.
    ours, theirs = (flatten(h.manifest.get("config") or {}) for h in (history, other))
    return [
        f"{key}: {ours[key]} / {theirs[key]}"
        for key in sorted(ours.keys() & theirs.keys())
        if ours[key] != theirs[key] and not key.startswith(_NEUTRAL)
    ]
