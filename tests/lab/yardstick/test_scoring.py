"""The interval of a share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.lab.yardstick.report import wilson_interval


@pytest.mark.parametrize(
    ("misses", "asked", "expected"),
    [(0, 10, (0.0, 0.2775)), (5, 10, (0.2366, 0.7634)), (1, 100, (0.0018, 0.0545)), (10, 10, (0.7225, 1.0))],
)
def test_wilson_gives_the_published_bounds(misses: int, asked: int, expected: tuple[float, float]) -> None:
    assert wilson_interval(misses, asked) == pytest.approx(expected, abs=5e-5)


@given(st.integers(1, 10_000).flatmap(lambda asked: st.tuples(st.integers(0, asked), st.just(asked))))
def test_the_share_lies_in_its_interval_which_mirrors(counts: tuple[int, int]) -> None:
    misses, asked = counts
    low, high = wilson_interval(misses, asked)
    assert 0 <= low <= misses / asked + 1e-12
    assert misses / asked - 1e-12 <= high <= 1
    assert wilson_interval(asked - misses, asked) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_nothing_asked_says_nothing() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
