"""Active sampling: each step prefers the problems that the policy has lately solved about half of the time.

A group teaches only if its rewards differ, which is likeliest at a pass rate of one half. Each problem has a posterior
of its pass rate, Beta(1 + solved, 1 + failed), in which a sample that is 20 steps old counts half: the policy
has changed since. Each step draws a rate from each posterior (Thompson sampling) and samples the problems whose draw
is nearest to one half. So problems that were never sampled, or long ago, are sampled now and then.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from microcoder.judge.core.types import Outcome

ProblemChoice = Literal["uniform", "active"]
HALF_LIFE_STEPS = 20.0
"""Age at which a recorded sample counts half."""


@dataclass(frozen=True, slots=True)
class PassCount:
    """Scored samples of one problem in one step."""

    step: int
    problem_id: str
    solved: int
    failed: int


def count_passes(rows: Iterable[Mapping[str, Any]], *, step: int) -> list[PassCount]:
    """Return the counts of a step's rollout rows, by problem; unscored samples are left out."""
    solved: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row["verdict"] != Outcome.SANDBOX_FAULT:
            solved[row["problem_id"]].append(row["verdict"] == Outcome.ACCEPTED)
    return [PassCount(step, name, sum(known), len(known) - sum(known)) for name, known in sorted(solved.items())]


def choose_problems(
    problem_ids: Sequence[str],
    counts: Iterable[PassCount],
    *,
    number: int,
    seed: int,
    step: int,
    half_life_steps: float = HALF_LIFE_STEPS,
) -> list[str]:
    """Return the problems that a step samples, each once: those whose drawn pass rate is nearest to one half.

    A pure function of its arguments, whatever the order of the problems, so that every engine and every resumed run
    samples the same.

    Args:
        problem_ids: all training problems.
        counts: those of the steps before, in their order.
        number: how many to choose.
        seed: the run's seed.
        step: the training step, from 1.
        half_life_steps: age at which a sample counts half.
    """
    solved: dict[str, float] = defaultdict(float)
    failed: dict[str, float] = defaultdict(float)
    for count in counts:
        weight = 0.5 ** ((step - count.step) / half_life_steps)
        solved[count.problem_id] += weight * count.solved
        failed[count.problem_id] += weight * count.failed

    def distance(problem_id: str) -> tuple[float, str]:
        draw = random.Random(f"active-{seed}-{step}-{problem_id}")
        return abs(draw.betavariate(1 + solved[problem_id], 1 + failed[problem_id]) - 0.5), problem_id

    return sorted(problem_ids, key=distance)[:number]
