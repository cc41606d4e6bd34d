"""4-gram diversity over the responses of a problem."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from microcoder.train.algorithm.diversity import measure_diversity, measure_group_diversity

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
def test_it_is_the_share_of_places_whose_4_gram_was_not_seen_before(group: list[list[int]]) -> None:
    seen: dict[str, int] = {}
    for tokens in group:
        for start in range(len(tokens) - 3):
            gram = ",".join(map(str, tokens[start : start + 4]))
            seen[gram] = seen.get(gram, 0) + 1
    assert measure_group_diversity(group) == (len(seen) / sum(seen.values()) if seen else None)


def test_a_short_response_among_long_ones_changes_nothing() -> None:
    group = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4]]
    assert measure_group_diversity(group) == 3 / 4
    assert measure_group_diversity([*group, [4, 5, 6], []]) == 3 / 4
