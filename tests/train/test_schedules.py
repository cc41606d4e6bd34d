"""Staged values, and the order in which problems are asked."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.train.algorithm.schedules import order_problems


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 40), st.integers(0, 3))
def test_no_problem_twice_in_a_pass(num_problems: int, num_steps: int, batch: int, seed: int) -> None:
    batch = min(batch, num_problems)
    order = order_problems(num_problems, num_steps=num_steps, train_batch_size=batch, seed=seed)
    assert len(order) == num_steps * batch
    pass_length = num_problems // batch * batch
    for start in range(0, len(order), pass_length):
        assert max(Counter(order[start : start + pass_length]).values()) == 1


@given(st.integers(1, 10), st.integers(1, 10))
def test_a_longer_run_begins_like_a_shorter_one(num_steps: int, more: int) -> None:
    short = order_problems(10, num_steps=num_steps, train_batch_size=3, seed=1)
    assert order_problems(10, num_steps=num_steps + more, train_batch_size=3, seed=1)[: len(short)] == short


def test_a_step_larger_than_the_problem_set_is_refused() -> None:
    with pytest.raises(ValueError, match="train_batch_size=5 is more than the 4 problems"):
        order_problems(4, num_steps=1, train_batch_size=5, seed=0)
