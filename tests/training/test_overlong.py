"""DAPO's overlong soft penalty (its equation 13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.training.overlong import penalise_length


@pytest.mark.parametrize(
    ("num_tokens", "penalty"), [(0, 0.0), (16384, 0.0), (16385, -1 / 4096), (18432, -0.5), (20480, -1.0)]
)
def test_the_values_of_the_dapo_paper(num_tokens: int, penalty: float) -> None:
    assert penalise_length(num_tokens, max_response_tokens=20480, window_tokens=4096) == penalty


@given(st.integers(1, 500), st.data())
def test_it_is_the_equation_and_falls_with_length(limit: int, data: st.DataObject) -> None:
    window, length = data.draw(st.integers(1, limit)), data.draw(st.integers(0, limit))
    expected = 0.0 if length <= limit - window else ((limit - window) - length) / window
    penalty = penalise_length(length, max_response_tokens=limit, window_tokens=window)
    assert penalty == pytest.approx(expected, abs=1e-12)
    assert -1 <= penalty <= 0
