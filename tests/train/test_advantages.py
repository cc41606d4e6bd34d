"""Group-normalised advantages (equation 2, first factor)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.judge.core.errors import TrainingError
from microcoder.train.algorithm.advantages import ADVANTAGES, weigh_by_mean
from microcoder.train.rollouts import has_signal

shaped_rewards = st.lists(st.one_of(st.none(), st.floats(-1, 1).map(lambda r: round(r, 3))), min_size=1, max_size=16)


def by_hand(name: str, scored: np.ndarray, index: int) -> float:
    """The equation of one member, in float64."""
    reward, mean = scored[index], scored.sum() / scored.size
    if name == "rloo":
        return reward - np.delete(scored, index).mean()
    divisor = {
        "grpo": math.sqrt(((scored - mean) ** 2).sum() / (scored.size - 1)) + 1e-6,
        "dr_grpo": 1.0,
        "maxrl": mean,
    }[name]
    return (reward - mean) / divisor


@given(shaped_rewards, st.sampled_from(sorted(ADVANTAGES)))
def test_each_equals_its_equation_in_float64_of_the_scored(group: list[float | None], name: str) -> None:
    if name == "maxrl":
        group = [None if reward is None else abs(reward) for reward in group]
    places = [place for place, reward in enumerate(group) if reward is not None]
    scored = np.array([group[place] for place in places], dtype=np.float64)
    advantages = ADVANTAGES[name](group)
    assert all(advantages[place] == 0.0 for place, reward in enumerate(group) if reward is None)
    for index, place in enumerate(places):
        expected = by_hand(name, scored, index) if len(set(scored.tolist())) > 1 else 0.0
        assert advantages[place] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert has_signal(group) == any(advantages)


def test_maxrl_refuses_a_mean_below_zero() -> None:
    with pytest.raises(TrainingError, match=r"has -0\.5; use rewards that are 0 or more"):
        weigh_by_mean([-1.0, 0.0])
