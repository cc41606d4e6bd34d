"""T(D): the sampling temperature of a step, from the schedule, the probe's choice and the trend of diversity.

Pure functions of recorded values, so that a resumed run, another engine and another number of processes come to the
same temperature. The paper knows a constant temperature chosen before training and staged transitions (section 3.2);
a continuous ramp damages diversity for good and is here for ablation only.
"""

from __future__ import annotations

from collections.abc import Sequence

from microcoder.training.algorithm.schedules import staged_value
from microcoder.training.algorithm.trend import follow_trend
from microcoder.training.sampling_config import (
    AblationRamp,
    ConstantTemperature,
    DiversityWatch,
    StagedTemperature,
    TemperatureSchedule,
)


def scheduled_temperature(schedule: TemperatureSchedule, *, step: int, chosen: float | None = None) -> float:
    """Return the temperature that the schedule alone gives a step.

    Args:
        schedule: the recipe's.
        step: training step, from 1.
        chosen: what the probe chose, for a schedule that leaves it to the probe.

    Raises:
        ValueError: the schedule needs a probe and there is no choice.
    """
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


def step_temperature(
    schedule: TemperatureSchedule,
    watch: DiversityWatch,
    *,
    step: int,
    diversities: Sequence[float | None],
    chosen: float | None = None,
) -> float:
    """Return the temperature of a step: the schedule's, or a higher one that answers a decline of diversity.

    Args:
        schedule: the recipe's.
        watch: how a decline is detected and answered.
        step: training step, from 1.
        diversities: of the steps before, in order.
        chosen: what the probe chose.
    """
    scheduled = scheduled_temperature(schedule, step=step, chosen=chosen)
    answered = follow_trend(diversities[: step - 1], watch=watch, breaks=transitions(schedule)).num_answered
    return max(scheduled, watch.answers[answered - 1]) if answered else scheduled


def transitions(schedule: TemperatureSchedule) -> list[int]:
    """Return the steps at which the schedule jumps: a trend is not read across them."""
    return [stage.from_step for stage in schedule.stages[1:]] if isinstance(schedule, StagedTemperature) else []
