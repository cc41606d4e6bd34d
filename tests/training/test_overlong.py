"""The penalties of the truncation family: DAPO's equation 13, and ProRL v2's for not stopping."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.training.algorithm.overlong import penalise_length, penalise_truncation
from microcoder.types import Rollout


def rollout(num_tokens: int, *, is_truncated: bool = False) -> Rollout:
    return Rollout("p", "prompt", "text", (0,) * num_tokens, is_truncated)


@pytest.mark.parametrize(
    ("num_tokens", "penalty"), [(0, 0.0), (16384, 0.0), (16385, -1 / 4096), (18432, -0.5), (20480, -1.0)]
)
def test_the_values_of_the_dapo_paper(num_tokens: int, penalty: float) -> None:
    given = rollout(num_tokens)
    assert penalise_length(given, 1.0, max_response_tokens=20480, window_tokens=4096) == penalty


@given(st.integers(1, 500), st.data())
def test_it_is_the_equation_and_falls_with_length(limit: int, data: st.DataObject) -> None:
    window, length = data.draw(st.integers(1, limit)), data.draw(st.integers(0, limit))
    expected = 0.0 if length <= limit - window else ((limit - window) - length) / window
    penalty = penalise_length(rollout(length), 0.0, max_response_tokens=limit, window_tokens=window)
    assert penalty == pytest.approx(expected, abs=1e-12)
    assert -1 <= penalty <= 0


@pytest.mark.parametrize(
    ("reward", "factor", "penalty", "left"),
    [(1.0, 0.0, 0.0, 0.0), (1.0, 0.5, 0.0, 0.5), (0.0, 0.5, 0.25, -0.25), (1.0, 1.0, 0.5, 0.5), (-0.5, 0.0, 0.0, -0.5)],
)
def test_stopping_properly_keeps_the_reward(reward: float, factor: float, penalty: float, left: float) -> None:
    cut, whole = rollout(5, is_truncated=True), rollout(5)
    assert reward + penalise_truncation(cut, reward, factor=factor, penalty=penalty) == left
    assert penalise_truncation(whole, reward, factor=factor, penalty=penalty) == 0.0
