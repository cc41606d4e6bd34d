"""Early warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from microcoder.judge.core.types import Repeat
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.algorithm.sampling import DiversityWatch
from microcoder.train.metrics import StepMetrics
from microcoder.train.run.alarms import IDLE_STEPS, find_alarms
from microcoder.train.run.checkpoints import best_step

HEALTHY = StepMetrics(
    step=3,
    reward_mean=0.4,
    accuracy_by_tier={"easy": 0.5},
    length_mean=900.0,
    length_max=4096,
    diversity=0.7,
    temperature=1.2,
    max_response_tokens=4096,
    truncated_share=0.1,
    masked_share=0.0,
    no_code_share=0.05,
    unscored_share=0.01,
    zero_variance_share=0.3,
    outcomes={"accepted": 2},
    methods={},
    masked={},
    optimizer={"loss": 0.1},
    seconds={"total": 2.0},
    sampled_accuracy=0.4,
)


def names(metrics: StepMetrics, diversities: tuple[float, ...] = (0.7,)) -> list[str]:
    *before, last = diversities
    history = [replace(metrics, diversity=value).as_row() for value in before]
    alarms = find_alarms(replace(metrics, diversity=last), history=history, watch=DiversityWatch(window_steps=10))
    assert all(alarm.cause and alarm.fix for alarm in alarms)
    return [alarm.name for alarm in alarms]


def test_each_alarm_by_what_it_is_for() -> None:
    assert names(HEALTHY) == []
    assert names(replace(HEALTHY, truncated_share=0.95)) == ["everything_truncated"]
    assert names(replace(HEALTHY, no_code_share=0.6)) == ["no_code"]
    assert names(replace(HEALTHY, zero_variance_share=1.0)) == ["all_groups_flat"]
    assert names(replace(HEALTHY, unscored_share=0.02)) == ["sandbox_faults"]
    for reason in (Repeat.SHARED_WRONG, Repeat.KILLED):
        assert names(replace(HEALTHY, uncounted={str(reason): 0.001})) == ["rewards_do_not_repeat"]
    assert names(replace(HEALTHY, unrepeated_share=0.1)) == ["rewards_do_not_repeat"]
    # Clocks, neighbours and memory explain these, also where the program was judged anew.
    explained = {Repeat.SHARED_LOST, Repeat.SHARED_OVER, Repeat.NEIGHBOURS, Repeat.SANDBOX_DIED, Repeat.JUDGED_ANEW}
    assert names(replace(HEALTHY, anew_share=0.1, uncounted=dict.fromkeys(map(str, explained), 0.1))) == []
    seen = {"logp_difference": 0.01, "ratio": 1.0, "ratio_max": 1.4, "weight": 1.0, "dropped_share": 0.0}
    assert names(replace(HEALTHY, mismatch=seen)) == []
    assert names(replace(HEALTHY, mismatch={**seen, "weight": 0.6})) == ["sampler_differs"]
    assert names(replace(HEALTHY, mismatch={**seen, "dropped_share": 0.2})) == ["sampler_differs"]
    assert names(HEALTHY, tuple(0.7 - 0.01 * step for step in range(12))) == ["diversity_falling"]


@pytest.mark.parametrize(
    ("changes", "idle"),
    [
        ({"doses": {"mask_positive": 0.01}, "optimizer": {"clip_high_share": 1e-5}}, ""),
        (
            {"doses": {"mask_positive": 0.01}, "optimizer": {"clip_high_share": 0.0, "clip_low_share": 0.1}},
            "the clip of",
        ),
        ({"doses": {"mismatch_positive": 0.1}, "optimizer": {"clip_share": 0.1}}, "the mask of"),
        ({"doses": {}, "optimizer": {"clip_share": 0.0}}, "the clip and the mask of"),
        ({"doses": {"mask_negative": 0.01}, "optimizer": {}}, ""),  # an engine that counts no clip
    ],
)
def test_an_idea_without_an_effect_is_idle_after_some_steps(changes: dict[str, Any], idle: str) -> None:
    assert AlgorithmConfig().ideas == ("clip", "mask")
    row = replace(HEALTHY, **changes)
    for steps, rings in ((IDLE_STEPS - 2, False), (IDLE_STEPS - 1, bool(idle))):
        found = find_alarms(row, history=[row.as_row()] * steps, watch=DiversityWatch(), ideas=AlgorithmConfig().ideas)
        assert [alarm.name for alarm in found] == ["idle"] * rings
        assert not rings or idle in found[0].cause


def test_a_short_run_whose_diversity_collapses_rings() -> None:
    """The demo's: from 0.56 to 0.21 in 24 steps."""
    rows = [replace(HEALTHY, diversity=0.56 - 0.015 * step).as_row() for step in range(24)]
    last = replace(HEALTHY, diversity=0.2)
    (alarm,) = find_alarms(last, history=rows[:12], watch=DiversityWatch(), num_steps=24)
    assert (alarm.name, "in 8 steps" in alarm.cause) == ("diversity_falling", True)
    assert find_alarms(last, history=rows[:12], watch=DiversityWatch(), num_steps=300) == []


def test_flat_groups_are_distinguished_by_their_cause() -> None:
    flat = replace(HEALTHY, zero_variance_share=1.0)
    for accuracy, fix in ((0.99, "harder problems"), (0.01, "easier problems"), (None, "easier problems")):
        (alarm,) = find_alarms(replace(flat, sampled_accuracy=accuracy), watch=DiversityWatch(window_steps=10))
        assert fix in str(alarm)


def test_the_best_step_is_a_trained_one_and_the_earliest_of_equals() -> None:
    rows = [{"step": step, "accuracy": accuracy} for step, accuracy in ((0, 0.9), (2, 0.4), (4, 0.5), (6, 0.5))]
    assert best_step(rows) == 4
    assert best_step(rows[:1]) is None
