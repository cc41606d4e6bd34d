"""What is measured of a step and an evaluation, diversity among it, and the early warnings."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder import Outcome
from microcoder.judge.core.errors import TrainingError
from microcoder.judge.core.types import Repeat
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.algorithm.sampling import ConstantTemperature
from microcoder.train.metrics import (
    EvaluationMetrics,
    StepMetrics,
    list_numbers,
    summarise_accuracy,
    summarise_evaluation,
    summarise_step,
)
from microcoder.train.rollouts import ends_in_loop, measure_diversity, measure_group_diversity
from microcoder.train.run.alarms import IDLE_STEPS, find_alarms
from microcoder.train.run.recorder import Recorder
from microcoder.train.runs import RunDirectory, rollout_row
from tests.train.small_runs import scored

MIXED = [scored(), scored(Outcome.WRONG_ANSWER)]
HEALTHY = replace(
    summarise_step(
        [MIXED],
        step=3,
        temperature=1.2,
        max_response_tokens=4096,
        optimizer={"loss": 0.1},
        seconds={"total": 2.0},
    ),
    reward_mean=0.4,
    length_mean=900.0,
    diversity=0.7,
    truncated_share=0.1,
)
UNSCORED = [scored(), scored(Outcome.SANDBOX_FAULT)]
EVALUATION = replace(
    summarise_evaluation([UNSCORED], step=0, temperature=0.6, seconds=1.0), accuracy=0.5
)


def test_accuracy_leaves_unscored_samples_out_of_every_mean() -> None:
    samples = [*MIXED, scored(Outcome.SANDBOX_FAULT)]
    assert summarise_accuracy(samples) == (0.5, {"easy": 0.5})
    assert summarise_accuracy([scored(Outcome.SANDBOX_FAULT)]) == (None, {})


def test_rows_are_plain_json_and_hold_what_was_decided() -> None:
    unknown = replace(HEALTHY, reward_mean=None, diversity=None)
    assert StepMetrics(**json.loads(json.dumps(asdict(unknown)))) == unknown
    assert EVALUATION.solved == {"p1": [True, None]}
    assert EvaluationMetrics(**json.loads(json.dumps(asdict(EVALUATION)))) == EVALUATION
    row = rollout_row(scored(Outcome.WRONG_ANSWER), step=4, temperature=1.2)
    assert json.loads(json.dumps(row)) == row
    assert row["num_tokens"] == 3
    assert row["verdict"] == "wrong_answer"
    assert row["tests_passed"] == 0
    assert row["tests_total"] == 2
    assert row["tests"][0]["verdict"] == "wrong_answer"
    assert row["tests"][0]["detail"] == "2 is not 3"
    assert rollout_row(scored(Outcome.SANDBOX_FAULT), step=4, temperature=1.2)["reward"] is None


@given(st.lists(st.lists(st.integers(0, 5), max_size=12), min_size=1, max_size=8))
def test_diversity_is_the_share_of_places_whose_4_gram_was_not_seen_before(
    group: list[list[int]],
) -> None:
    seen: dict[str, int] = {}
    for tokens in group:
        for start in range(len(tokens) - 3):
            gram = ",".join(map(str, tokens[start : start + 4]))
            seen[gram] = seen.get(gram, 0) + 1
    assert measure_group_diversity(group) == (len(seen) / sum(seen.values()) if seen else None)


def test_a_problem_without_4_grams_is_in_no_mean() -> None:
    # One 4-gram in two places; two tokens have none.
    assert measure_diversity([[[1, 2]], [[1, 2, 3, 4], [1, 2, 3, 4]]]) == 0.5
    assert measure_diversity([[[1]]]) is None


def names(diversities: tuple[float, ...] = (0.7,), **changes: Any) -> list[str]:
    *before, last = diversities
    history = [replace(HEALTHY, diversity=value) for value in before]
    alarms = find_alarms(replace(HEALTHY, diversity=last, **changes), history=history, num_steps=30)
    for alarm in alarms:
        assert alarm.cause
        assert alarm.fix
    return [alarm.name for alarm in alarms]


def test_each_alarm_by_what_it_is_for() -> None:
    # Company, time and memory explain these repeats, also where the program was judged anew.
    explained = {
        Repeat.SHARED_WRONG,
        Repeat.SHARED_LOST,
        Repeat.SHARED_OVER,
        Repeat.NEIGHBOURS,
        Repeat.SANDBOX_DIED,
        Repeat.JUDGED_ANEW,
    }
    seen = {"logp_difference": 0.01, "weight": 1.0, "dropped_share": 0.0}
    # The values lie on both sides of each threshold, which alarms.py names.
    rings: list[tuple[dict[str, Any], list[str]]] = [
        ({"no_code_share": 0.05, "zero_variance_share": 0.3, "unscored_share": 0.01}, []),
        ({"truncated_share": 0.95}, ["everything_truncated"]),
        ({"no_code_share": 0.6}, ["no_code"]),
        # All of them may be truncated ones, which the limit explains.
        ({"no_code_share": 0.6, "truncated_share": 0.55}, []),
        ({"no_code_share": 0.8, "truncated_share": 0.55}, ["no_code"]),
        ({"no_code_share": 0.8, "truncated_share": 1.0}, ["everything_truncated"]),
        ({"zero_variance_share": 1.0}, ["all_groups_flat"]),
        ({"unscored_share": 0.02}, ["sandbox_faults"]),
        ({"unscored_share": 0.02, "unscored_by": {"sandbox": 0.02}}, ["sandbox_faults"]),
        ({"unscored_share": 0.3, "unscored_by": {"mine": 0.3}}, ["reward_is_none"]),
        (
            {"unscored_share": 0.32, "unscored_by": {"mine": 0.3, "sandbox": 0.02}},
            ["sandbox_faults", "reward_is_none"],
        ),
        ({"unscored_share": 0.01, "unscored_by": {"mine": 0.005, "sandbox": 0.005}}, []),
        ({"looping_share": 0.09}, []),
        ({"looping_share": 0.1}, ["responses_loop"]),
        ({"uncounted": {str(Repeat.KILLED): 0.001}}, ["rewards_do_not_repeat"]),
        ({"unrepeated_share": 0.1}, ["rewards_do_not_repeat"]),
        ({"uncounted": dict.fromkeys(map(str, explained), 0.1)}, []),
        ({"mismatch": seen}, []),
        ({"mismatch": {**seen, "weight": 0.6}}, ["sampler_differs"]),
        ({"mismatch": {**seen, "dropped_share": 0.2}}, ["sampler_differs"]),
    ]
    for changes, rung in rings:
        assert names(**changes) == rung
    # Straight down by 16 % of where it began.
    assert names(tuple(0.7 - 0.01 * step for step in range(12))) == ["diversity_falling"]


@pytest.mark.parametrize(
    ("doses", "optimizer", "idle"),
    [
        ({"mask_positive": 0.01}, {"clip_high_share": 1e-5}, ""),
        ({"mask_positive": 0.01}, {"clip_high_share": 0.0, "clip_low_share": 0.1}, "the clip of"),
        ({"mismatch_positive": 0.1}, {"clip_share": 0.1}, "the mask of"),
        ({}, {"clip_share": 0.0}, "the clip and the mask of"),
        ({"mask_negative": 0.01}, {}, ""),  # an engine that counts no clip
    ],
)
def test_an_idea_without_an_effect_is_idle_after_some_steps(
    doses: Any,
    optimizer: Any,
    idle: str,
) -> None:
    assert AlgorithmConfig().mechanisms == ("clip", "mask")
    row = replace(HEALTHY, doses=doses, optimizer=optimizer)
    for steps, rings in ((IDLE_STEPS - 2, False), (IDLE_STEPS - 1, bool(idle))):
        found = find_alarms(row, history=[row] * steps, mechanisms=AlgorithmConfig().mechanisms)
        assert [alarm.name for alarm in found] == ["idle"] * rings
        assert not rings or idle in found[0].cause


def test_a_short_run_whose_diversity_collapses_rings() -> None:
    """The demo's: from 0.56 to 0.21 in 24 steps."""
    rows = [replace(HEALTHY, diversity=0.56 - 0.015 * step) for step in range(24)]
    last = replace(HEALTHY, diversity=0.2)
    (alarm,) = find_alarms(last, history=rows[:12], num_steps=24)
    assert alarm.name == "diversity_falling"
    assert "in 8 steps" in alarm.cause
    # In a long run the window is longer than these 13 steps.
    assert find_alarms(last, history=rows[:12], num_steps=300) == []


def test_flat_groups_are_distinguished_by_their_cause() -> None:
    flat = replace(HEALTHY, zero_variance_share=1.0)
    for accuracy, fix in (
        (0.99, "harder problems"),
        (0.01, "easier problems"),
        (None, "easier problems"),
    ):
        (alarm,) = find_alarms(replace(flat, sampled_accuracy=accuracy), num_steps=30)
        assert fix in str(alarm)


def test_a_run_that_diverges_says_what_to_lower(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    recorder = Recorder(
        run=run,
        schedule=ConstantTemperature(),
        learning_rate=0.1,
        num_steps=9,
        mechanisms=(),
    )
    recorder.refuse_divergence({"loss": 1.0}, step=3)
    for name, value in (("loss", math.nan), ("grad_norm", math.inf)):
        with pytest.raises(
            TrainingError, match=rf"{name} is {value} in step 3; .* \(now 0\.1\) and start another"
        ):
            recorder.refuse_divergence({name: value}, step=3)


def test_the_alarm_of_a_reward_that_returns_none_names_it_and_not_the_sandbox() -> None:
    row = replace(HEALTHY, unscored_share=0.344, unscored_by={"my_reward": 0.344})
    (alarm,) = find_alarms(row)
    assert "my_reward for 34.4%" in alarm.cause
    assert "could not judge" not in alarm.cause


def entropies(*values: float | None, last: float) -> list[str]:
    """Return the alarms of a run with these entropies, whose window is eight steps."""
    history = []
    for value in values:
        history.append(replace(HEALTHY, optimizer={} if value is None else {"entropy": value}))
    row = replace(HEALTHY, optimizer={"entropy": last})
    return [alarm.name for alarm in find_alarms(row, history=history, num_steps=24)]


def test_entropy_that_rises_steadily_by_half_rings() -> None:
    assert entropies(0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, last=0.75) == ["entropy_rising"]


def test_entropy_that_rises_by_less_falls_or_jumps_once_does_not_ring() -> None:
    # By 17 % only; down; flat, and then one jump.
    assert entropies(0.40, 0.41, 0.42, 0.43, 0.44, 0.45, 0.46, last=0.47) == []
    assert entropies(0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, last=0.4) == []
    assert entropies(0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, last=0.9) == []


def test_an_engine_that_reports_no_entropy_rings_no_alarm_of_it() -> None:
    assert entropies(None, None, None, None, None, None, None, last=0.9) == []


LOOP = (7, 8, 9, 10, 11)


@pytest.mark.parametrize(
    ("tokens", "is_loop"),
    [
        ((1, 2, 3, *LOOP * 10), True),  # 50 tokens of period 5
        ((1, 2, 3, *LOOP * 9), False),  # 45 tokens: under 48
        ((*LOOP * 10, 99), False),  # it came out of the loop
        ((5,) * 48, True),
        ((5,) * 47, False),
        ((*range(100), *range(16), *range(16), *range(16)), True),  # three rounds of 16
        ((*range(100), *range(40), *range(40)), False),  # two rounds
        ((*range(200), *(*range(170),) * 3), True),
        ((*range(500),), False),
        ((), False),
    ],
)
def test_a_loop_is_the_same_tokens_three_times_at_the_end(
    tokens: tuple[int, ...], is_loop: bool
) -> None:
    assert ends_in_loop(tokens) is is_loop


@given(st.lists(st.integers(0, 2), max_size=80))
def test_loops_are_found_as_by_trying_every_period(tokens: list[int]) -> None:
    found = False
    for period in range(1, len(tokens) // 3 + 1):
        size = 0
        while size < len(tokens) and tokens[-1 - size] == tokens[-1 - size % period]:
            size += 1
        # What counts as a loop: 48 tokens at least, and three rounds of its period.
        if size >= 48 and size >= 3 * period:
            found = True
    assert ends_in_loop(tokens) is found


def test_loggers_get_the_step_beside_their_own_axis() -> None:
    assert list_numbers(HEALTHY, prefix="")["step"] == HEALTHY.step
    assert list_numbers(EVALUATION, prefix="eval_heldout/")["eval_heldout/step"] == EVALUATION.step
