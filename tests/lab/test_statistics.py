import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.lab.studies.accuracy import (
    estimate_accuracy,
    estimate_difference,
    pass_at_k,
    wilson_interval,
)

SAMPLES = st.lists(st.sampled_from([True, False, None]), max_size=5)
SOLVED = st.dictionaries(st.text(max_size=4), SAMPLES, max_size=12)


@given(SOLVED)
@settings(max_examples=40, deadline=None)
def test_an_accuracy_lies_in_its_interval_and_both_between_zero_and_one(
    solved: dict[str, list[bool | None]],
) -> None:
    estimate = estimate_accuracy(solved)
    scored = []
    for samples in solved.values():
        known = []
        for s in samples:
            if s is not None:
                known.append(s)
        scored.append(known)
    means = []
    for samples in scored:
        if samples:
            means.append(sum(samples) / len(samples))
    if not means:
        assert estimate is None
        return
    assert estimate is not None
    assert estimate.value == pytest.approx(sum(means) / len(means))
    assert -1e-12 <= estimate.low <= estimate.value <= estimate.high <= 1 + 1e-12
    assert estimate.num_problems == len(means)
    # Neither the order of problems nor unscored samples move it.
    assert estimate_accuracy({name: [*solved[name], None] for name in reversed(solved)}) == estimate


@given(SOLVED, SOLVED)
@settings(max_examples=40, deadline=None)
def test_a_difference_is_paired_bounded_and_turns_its_sign(
    before: dict[str, list[bool | None]], after: dict[str, list[bool | None]]
) -> None:
    forward = estimate_difference(before, after)
    backward = estimate_difference(after, before)
    if forward is None or backward is None:
        assert forward is backward is None
        return
    assert forward.value == pytest.approx(-backward.value)
    assert -1 - 1e-12 <= forward.low <= forward.value <= forward.high <= 1 + 1e-12
    assert forward.num_problems <= min(len(before), len(after))


def test_more_samples_of_the_same_problems_do_not_shrink_the_interval() -> None:
    few = {f"p{i}": [i % 2 == 0] for i in range(20)}
    many = {name: samples * 50 for name, samples in few.items()}
    assert estimate_accuracy(many) == estimate_accuracy(few)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    source = random.Random(5)
    covered = 0
    for _ in range(100):
        chances = [source.random() for _ in range(40)]
        solved = {}
        for i, chance in enumerate(chances):
            solved[f"p{i}"] = [source.random() < chance for _ in range(4)]
        estimate = estimate_accuracy(solved)
        assert estimate is not None
        covered += estimate.low <= 0.5 <= estimate.high
    assert 0.89 <= covered / 100 <= 0.99


def test_pairing_finds_what_the_spread_between_problems_would_hide() -> None:
    before = {f"p{i}": [i < 20] * 4 for i in range(40)}
    after = {name: [True, *samples[1:]] for name, samples in before.items()}
    gain = estimate_difference(before, after)
    old = estimate_accuracy(before)
    new = estimate_accuracy(after)
    assert gain is not None
    assert old is not None
    assert new is not None
    assert gain.excludes_zero
    assert new.low < old.high


@pytest.mark.parametrize(("is_solved", "value"), [(False, 0.0), (True, 1.0)])
def test_none_or_all_solved_is_not_certainty(is_solved: bool, value: float) -> None:
    five = estimate_accuracy({f"p{i}": [is_solved] * 4 for i in range(5)})
    assert five is not None
    # The exact binomial (Clopper-Pearson) bound for 0 of 5.
    assert five.value == value
    assert five.high - five.low == pytest.approx(0.5218, abs=1e-4)


@given(
    st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
@settings(deadline=None)
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_sample(
    case: tuple[int, int, int],
) -> None:
    num_samples, num_correct, k = case
    samples = [True] * num_correct + [False] * (num_samples - num_correct)
    subsets = [any(subset) for subset in itertools.combinations(samples, k)]
    assert pass_at_k(num_samples, num_correct, k) == pytest.approx(sum(subsets) / len(subsets))


@pytest.mark.parametrize("case", [(2, 3, 1), (2, -1, 1), (2, 1, 0), (2, 1, 3)])
def test_pass_at_k_refuses_what_has_no_answer(case: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="pass@"):
        pass_at_k(*case)


@pytest.mark.parametrize(
    ("misses", "asked", "expected"),
    [
        (0, 10, (0, 0.2775)),
        (5, 10, (0.2366, 0.7634)),
        (1, 100, (0.0018, 0.0545)),
        (10, 10, (0.7225, 1)),
        (0, 0, (0, 1)),
    ],
)
def test_wilson_gives_the_published_bounds(
    misses: int,
    asked: int,
    expected: tuple[float, float],
) -> None:
    assert wilson_interval(misses, asked) == pytest.approx(expected, abs=5e-5)
    low, high = wilson_interval(asked - misses, asked)
    assert 1 - high == pytest.approx(expected[0], abs=5e-5)
    assert 1 - low == pytest.approx(expected[1], abs=5e-5)
