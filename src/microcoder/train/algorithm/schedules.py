"""Sampling temperature, staged values and problem order by training step, and the trend of diversity: pure functions.

A steady decline of diversity precedes failure (paper, section 3.2).

The temperature of a step follows from the schedule and the probe's choice. The paper uses a constant temperature
chosen before training and staged transitions (section 3.2); a continuous ramp damages diversity for good and is here
for ablation only.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from statistics import correlation, linear_regression
from typing import NamedTuple, TypeVar

from microcoder.train.algorithm.sampling import (
    AblationRamp,
    ConstantTemperature,
    DiversityWatch,
    StagedTemperature,
    TemperatureSchedule,
)

STEADINESS = 0.7
"""A fall counts as steady if the correlation of diversity with the step is below minus this."""


class Decline(NamedTuple):
    """A falling regression line through the last steps."""

    start: float
    """The line at the window's first step."""
    end: float
    """The line at the window's last step."""
    steps_to_half: int
    """Steps until half of `end` at this rate."""


def find_decline(values: Sequence[float | None], *, window_steps: int, min_drop: float) -> Decline | None:
    """Return the steady decline over the last `window_steps` values, or None.

    Steady: a least-squares line loses at least `min_drop` of its level, and follows the values closely (correlation
    below -0.7), so that noise and a single jump do not count. Steps without a value are left out; half of the window
    must have one.
    """
    if len(values) < window_steps:
        return None
    points = [(x, y) for x, y in enumerate(values[-window_steps:]) if y is not None]
    if len(points) < max(4, window_steps / 2):
        return None
    xs, ys = zip(*points, strict=True)
    if len(set(ys)) == 1 or correlation(xs, ys) >= -STEADINESS:
        return None
    slope, start = linear_regression(xs, ys)
    end = start + slope * (window_steps - 1)
    if start - end < min_drop * start:
        return None
    return Decline(start=start, end=max(0.0, end), steps_to_half=math.ceil(max(0.0, end) / 2 / -slope))


def find_latest_decline(
    diversities: Sequence[float | None], *, watch: DiversityWatch, breaks: Collection[int] = ()
) -> Decline | None:
    """Return the steady decline at the last step, if any; only steps since the temperature's last jump count."""
    start = max((step - 1 for step in breaks if step <= len(diversities)), default=0)
    return find_decline(diversities[start:], window_steps=watch.window_steps, min_drop=watch.min_drop)


ValueT = TypeVar("ValueT", int, float)


def staged_value(stages: Sequence[tuple[int, ValueT]], *, step: int) -> ValueT:
    """Return the value of the last stage that starts at or before `step`."""
    return [value for first_step, value in stages if first_step <= step][-1]


def order_problems(num_problems: int, *, num_steps: int, train_batch_size: int, seed: int) -> list[int]:
    """Return the problems of all steps, in order: `num_steps * train_batch_size` indices.

    Each pass over the problems is a fresh permutation, cut to whole steps, so no problem appears twice in a step. A
    pure function of its arguments: a resumed run samples the same problems. Raises ValueError if a step is larger
    than the problem set.
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


def scheduled_temperature(schedule: TemperatureSchedule, *, step: int, chosen: float | None = None) -> float:
    """Return the temperature of a step; `chosen` is the probe's, which a schedule of kind `diversity` needs."""
    if isinstance(schedule, ConstantTemperature):
        return schedule.value
    if isinstance(schedule, StagedTemperature):
        return staged_value([(stage.from_step, stage.value) for stage in schedule.stages], step=step)
    if isinstance(schedule, AblationRamp):
        share = min(1.0, (step - 1) / (schedule.num_steps - 1))
        return schedule.start + share * (schedule.end - schedule.start)
    if chosen is None:
        raise ValueError("the temperature schedule needs a probe, and there is none")
    return chosen


def transitions(schedule: TemperatureSchedule) -> list[int]:
    """Return the steps at which the schedule jumps: a trend is not read across them."""
    return [stage.from_step for stage in schedule.stages[1:]] if isinstance(schedule, StagedTemperature) else []
