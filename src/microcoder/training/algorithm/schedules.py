"""Values that change with the training step: pure functions of a schedule and a step."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

ValueT = TypeVar("ValueT", int, float)


def staged_value(stages: Sequence[tuple[int, ValueT]], *, step: int) -> ValueT:
    """Return the value of the last stage that starts at or before `step`.

    Args:
        stages: (first step, value), ascending, the first at step 1.
        step: training step, from 1.
    """
    return [value for first_step, value in stages if first_step <= step][-1]


def order_problems(num_problems: int, *, num_steps: int, train_batch_size: int, seed: int) -> list[int]:
    """Return which problem is asked when: `num_steps * train_batch_size` indices.

    Each pass over the problems is a fresh permutation; no problem appears twice within a pass, so never twice in
    a step as long as a step is no larger than the problem set and passes are cut at its size. A pure function of
    its arguments: a resumed run asks the same problems.

    Raises:
        ValueError: a step is larger than the problem set.
    """
    if train_batch_size > num_problems:
        raise ValueError(f"train_batch_size={train_batch_size} is more than the {num_problems} problems there are")
    steps_per_pass = num_problems // train_batch_size
    order: list[int] = []
    for first_step in range(0, num_steps, steps_per_pass):
        shuffled = list(range(num_problems))
        random.Random(f"{seed}-{first_step}").shuffle(shuffled)
        steps = min(steps_per_pass, num_steps - first_step)
        order.extend(shuffled[: steps * train_batch_size])
    return order
