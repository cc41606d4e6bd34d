"""4-gram diversity over the responses of a problem."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from microcoder.training.diversity import measure_diversity, measure_group_diversity

responses = st.lists(st.lists(st.integers(0, 5), max_size=12), min_size=1, max_size=8)


def test_counts_by_hand() -> None:
    # 1234 2345 | 1234 2349: four 4-grams, three of them different
    assert measure_group_diversity([[1, 2, 3, 4, 5], [1, 2, 3, 4, 9]]) == 3 / 4
    assert measure_group_diversity([[1, 1, 1, 1, 1, 1]]) == 1 / 3


def test_short_responses_have_no_ratio() -> None:
    assert measure_group_diversity([[1, 2, 3], []]) is None
    assert measure_diversity([[[1, 2]], [[1, 2, 3, 4]]]) == 1.0
    assert measure_diversity([[[1]]]) is None


@given(responses)
def test_a_ratio_in_range_that_copies_can_only_lower(group: list[list[int]]) -> None:
    diversity = measure_group_diversity(group)
    doubled = measure_group_diversity(group + group)
    if diversity is None:
        assert doubled is None
    else:
        assert doubled is not None
        assert 0 < diversity <= 1
        assert doubled == diversity / 2


@given(responses)
def test_order_of_responses_does_not_matter(group: list[list[int]]) -> None:
    assert measure_group_diversity(group) == measure_group_diversity(group[::-1])
