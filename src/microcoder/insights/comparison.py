"""Held-out accuracy before and after training, overall and by tier."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from microcoder.insights.history import History
from microcoder.insights.statistics import Estimate, Solved, estimate_accuracy, estimate_difference
from microcoder.types import Outcome


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
