"""4-gram diversity over the responses of a problem."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.train.algorithm.diversity import measure_diversity, measure_group_diversity

responses = st.lists(st.lists(st.integers(0, 5), max_size=12), min_size=1, max_size=8)
any_ids = st.lists(st.lists(st.sampled_from([0, 1, 2, 151_642, 2**31 - 1, 2**40]), max_size=30), min_size=1, max_size=8)


def count(group: list[list[int]]) -> float | None:
    grams = [tuple(tokens[start : start + 4]) for tokens in group for start in range(len(tokens) - 3)]
    return len(set(grams)) / len(grams) if grams else None


def test_counts_by_hand() -> None:
    # 1234 2345 | 1234 2349: four 4-grams, three of them different
    assert measure_group_diversity([[1, 2, 3, 4, 5], [1, 2, 3, 4, 9]]) == 3 / 4
    assert measure_group_diversity([[1, 1, 1, 1, 1, 1]]) == 1 / 3


def test_short_responses_have_no_ratio() -> None:
    assert measure_group_diversity([[1, 2, 3], []]) is None
    assert measure_diversity([[[1, 2]], [[1, 2, 3, 4]]]) == 1.0
    assert measure_diversity([[[1]]]) is None


@given(st.one_of(responses, any_ids))
def test_it_is_the_count_of_distinct_4_grams(group: list[list[int]]) -> None:
    assert measure_group_diversity(group) == count(group)


def test_a_short_response_among_long_ones_changes_nothing() -> None:
    group = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4]]
    assert measure_group_diversity(group) == 3 / 4
    assert measure_group_diversity([*group, [4, 5, 6], []]) == 3 / 4


@pytest.mark.parametrize("num_distinct", [65_536, 65_537, 90_000])
def test_it_stays_exact_beyond_what_four_ids_fit_into_one_number(num_distinct: int) -> None:
    chance = random.Random(0)
    everything = chance.sample(range(151_643), num_distinct)
    group = [everything, everything[: num_distinct // 2], chance.choices(everything, k=20_000)]
    assert measure_group_diversity(group) == count(group)
