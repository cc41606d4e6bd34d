"""Group-normalised advantages (equation 2, first factor)."""

from __future__ import annotations

import math
from statistics import fmean

from hypothesis import given
from hypothesis import strategies as st

from microcoder.training.advantages import has_signal, normalise_group

rewards = st.lists(st.sampled_from([0.0, 1.0, None]), min_size=1, max_size=16)


def test_one_right_answer_of_four_gets_all_the_credit() -> None:
    # mean 1/4, sample variance (9/16 + 3/16) / 3 = 1/4, std 1/2
    right, *wrong = normalise_group([1.0, 0.0, 0.0, 0.0])
    assert math.isclose(right, 0.75 / 0.5, rel_tol=1e-5)
    assert all(math.isclose(w, -0.25 / 0.5, rel_tol=1e-5) for w in wrong)


def test_unscored_members_get_zero_and_move_nobody() -> None:
    with_fault = normalise_group([1.0, None, 0.0, 0.0, None])
    assert [with_fault[0], with_fault[2], with_fault[3]] == normalise_group([1.0, 0.0, 0.0])
    assert with_fault[1] == with_fault[4] == 0.0


@given(rewards)
def test_advantages_sum_to_zero_and_keep_the_order(group: list[float | None]) -> None:
    advantages = normalise_group(group)
    assert len(advantages) == len(group)
    scored = [(r, a) for r, a in zip(group, advantages, strict=True) if r is not None]
    if scored:
        assert math.isclose(fmean(a for _, a in scored), 0.0, abs_tol=1e-9)
    assert all(a1 > a0 for r1, a1 in scored for r0, a0 in scored if r1 > r0)
    assert has_signal(group) == any(a != 0 for a in advantages)


@given(st.lists(st.sampled_from([1.0, None]), min_size=1, max_size=8))
def test_equal_rewards_carry_no_signal(group: list[float | None]) -> None:
    assert normalise_group(group) == [0.0] * len(group)
