"""What a step asks and how: problems in order, schedules, the probe's choice,
and a declining diversity.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.train.algorithm.sampling import (
    AblationRamp,
    ConstantTemperature,
    DiversityTemperature,
    LengthStage,
    RolloutConfig,
    StagedTemperature,
    TemperatureStage,
    find_limit,
)
from microcoder.train.run.alarms import find_decline
from microcoder.train.run.probe import ProbePoint, choose_temperature
from microcoder.train.run.tasks import order_problems

PROBED = DiversityTemperature(kind="diversity")
FALLING = [0.6 - 0.01 * step for step in range(40)]


def point(temperature: float, accuracy: float | None, diversity: float | None) -> ProbePoint:
    return ProbePoint(temperature, accuracy, diversity, 100.0, 0.0, 8, 64)


# As the paper's figures draw them for the 4B model.
PAPER = [
    point(0.6, 0.35, 0.58),
    point(0.9, 0.36, 0.65),
    point(1.2, 0.35, 0.72),
    point(1.5, 0.33, 0.84),
]
DRASTIC = [point(1.8, 0.24, 0.97), point(2.1, 0.02, 0.99)]


@given(
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(1, 40),
    st.integers(0, 3),
    st.integers(1, 9),
)
def test_no_problem_is_asked_twice_in_a_pass_and_a_longer_run_begins_like_a_shorter_one(
    num_problems: int,
    num_steps: int,
    batch: int,
    seed: int,
    more: int,
) -> None:
    batch = min(batch, num_problems)
    order = order_problems(num_problems, num_steps=num_steps, train_batch_size=batch, seed=seed)
    assert len(order) == num_steps * batch
    # Problems that do not fill a batch are left out of a pass.
    pass_length = num_problems // batch * batch
    for start in range(0, len(order), pass_length):
        assert max(Counter(order[start : start + pass_length]).values()) == 1
    longer = order_problems(
        num_problems,
        num_steps=num_steps + more,
        train_batch_size=batch,
        seed=seed,
    )
    assert longer[: len(order)] == order


def test_schedules() -> None:
    constant = ConstantTemperature(value=0.7)
    assert [constant.at(step) for step in (1, 500)] == [0.7, 0.7]
    stages = (TemperatureStage(from_step=1, value=0.6), TemperatureStage(from_step=140, value=1.2))
    staged = StagedTemperature(kind="staged", stages=stages)
    assert [staged.at(step) for step in (1, 139, 140, 900)] == [0.6, 0.6, 1.2, 1.2]
    ramp = AblationRamp(kind="ablation_ramp", start=0.6, end=1.6, num_steps=11)
    assert [ramp.at(step) for step in (1, 6, 11, 50)] == pytest.approx([0.6, 1.1, 1.6, 1.6])
    lengths = (LengthStage(from_step=5, max_response_tokens=4096),)
    assert (
        RolloutConfig(max_response_tokens=2048, length_stages=lengths).longest_response_tokens
        == 4096
    )
    assert [find_limit(2048, lengths, step=step) for step in (1, 4, 5, 9)] == [
        2048,
        2048,
        4096,
        4096,
    ]


@pytest.mark.parametrize(
    ("points", "chosen", "reasons"),
    [
        # 0.72 is the first diversity that is not below the converged one, and 1.8 loses accuracy.
        ([*PAPER, *DRASTIC], 1.2, ["too low", "too low", "fits", "fits", "unstable", "unstable"]),
        (PAPER[:2], 0.9, ["the highest stable one"]),
        (DRASTIC, 1.8, ["every temperature is unstable"]),
        # At 1.2 the accuracy has fallen by two fifths.
        ([point(0.6, 0.5, 0.6), point(1.2, 0.3, 0.75)], 0.6, ["the highest stable one"]),
        ([point(1.0, None, None), point(1.2, 0.0, 0.75)], 1.2, ["accuracy does not show"]),
    ],
)
def test_the_probe_chooses_the_papers_temperature_or_says_why_none_fits(
    points: list[ProbePoint],
    chosen: float,
    reasons: list[str],
) -> None:
    choice = choose_temperature(points, PROBED)
    assert choice.temperature == chosen
    told = iter(choice.reasons)
    for reason in reasons:
        assert any(reason in line for line in told), choice.reasons


def test_a_steady_fall_is_a_decline_and_noise_or_a_jump_is_none() -> None:
    noise = np.random.default_rng(0).normal(0, 0.02, 40)
    falls = (np.linspace(0.7, 0.6, 40) + noise / 4).tolist()
    decline = find_decline(falls, window_steps=20)
    # The last 20 of 40 steps are the second half of the fall.
    assert decline == pytest.approx((0.65, 0.6), abs=0.01)
    steady = (
        (0.7 + noise).tolist(),
        np.linspace(0.6, 0.7, 40).tolist(),
        [0.7] * 39 + [0.3],
        [0.7] * 40,
    )
    # 19 values are fewer than the window of 20.
    for values in (*steady, FALLING[:19], [None] * 40):
        assert find_decline(values, window_steps=20) is None  # type: ignore[arg-type]


@given(st.lists(st.floats(0.1, 1.0), min_size=12, max_size=12))
def test_a_decline_lies_on_the_least_squares_line(values: list[float]) -> None:
    decline = find_decline(values, window_steps=12)
    if decline is not None:
        slope, level = np.polyfit(np.arange(12), values, 1)
        assert decline == pytest.approx((level, level + 11 * slope), abs=1e-9)
        assert np.corrcoef(np.arange(12), values)[0, 1] < -0.7
