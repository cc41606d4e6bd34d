from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_texts import ALL

from microcoder.data.clean.bounds import restore_powers
from microcoder.data.clean.sections import split
from microcoder.judge.core.types import TestCase


@pytest.mark.parametrize(
    ("lost", "restored"),
    [
        ("1 <= n <= 104, modulo 109 + 7", "1 <= n <= 10^4, modulo 10^9 + 7"),
        ("modulo 109 + 7", "modulo 10^9 + 7"),
        ("`-231 <= x <= 231 - 1`", "`-2^31 <= x <= 2^31 - 1`"),
        ("1 <= nums[i] <= 220 - 1", "1 <= nums[i] <= 2^20 - 1"),
        ("if there is an integer x such that n == 3x.", "if there is an integer x such that n == 3^x."),
        ("Is there a solution in O(n2)?", "Is there a solution in O(n^2)?"),
        ("-228 <= nums[i] <= 228", "-2^28 <= nums[i] <= 2^28"),
        ("in the range [-231, 231 - 1]", "in the range [-2^31, 2^31 - 1]"),
        ("The matrix is n x n, and 1 <= k <= n2.", "The matrix is n x n, and 1 <= k <= n^2."),
        ("the distance is √(x1 - x2)2 + (y1 - y2)2", "the distance is √(x1 - x2)^2 + (y1 - y2)^2"),
        ("integers with a2 + b2 = c2", "integers with a^2 + b^2 = c^2"),
        (
            "Answers within 10-5 of the actual answer are accepted.",
            "Answers within 10^-5 of the actual answer are accepted.",
        ),
    ],
)
def test_powers_come_back_where_the_text_shows_them(lost: str, restored: str) -> None:
    found = restore_powers(lost)
    assert (found.text, found.is_unclear) == (restored, False)
    assert found.why


def test_without_evidence_nothing_is_guessed_and_the_range_is_flagged() -> None:
    assert restore_powers("1 <= n <= 105") == ("1 <= n <= 105", (), True)
    assert restore_powers("1 <= n <= 105", has_lost_all=True).text == "1 <= n <= 10^5"


def test_a_power_of_two_comes_back_where_tests_exceed_what_is_written() -> None:
    text = "2 <= nums.length <= 400\n1 <= nums[i] < 27"
    within, above, beyond = ([TestCase(input=f"[3, {value}]", output="1")] for value in (26, 127, 129))
    assert restore_powers(text, tests=above).text == text.replace("27", "2^7")
    assert [restore_powers(text, tests=tests).text for tests in (within, beyond)] == [text, text]
    explained = f"{text}\n1 <= k <= 500"
    assert restore_powers(explained, tests=above).text == explained
    assert restore_powers("0 <= part <= 255", tests=[TestCase(input="[900]", output="1")]).why == ()


def test_a_set_that_has_lost_all_powers_ends_below_a_power_of_two() -> None:
    lost = "1 <= nums[i] <= 230\n1 <= target < 231\n1 <= k <= 250"
    assert restore_powers(lost).text == lost
    found = restore_powers(lost, has_lost_all=True)
    assert found.text == "1 <= nums[i] <= 2^30\n1 <= target < 2^31\n1 <= k <= 250"


@pytest.mark.parametrize(
    "whole",
    [
        "1 <= n <= 105 and 1 <= m <= 10^9",
        "1 <= n <= 100",
        "There are 105 trees.",
        "1 <= k <= 20 - 1, in O(2n)",
        "n <= 1024",
        "x <= 105.5",
        "a105 <= b",
        "0 <= hour < 24, 0 <= part <= 255",
        "-225 <= x <= 225",
        "1 <= n1, n2 <= 20 for an n",
        "a1 + b1 = c1 and a2 + b2 = c2",
    ],
)
def test_what_lost_nothing_stays(whole: str) -> None:
    assert restore_powers(whole) == (whole, (), False)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="1025 <=≤n-*^+7.,\n`", max_size=40))
def test_restoring_twice_is_restoring_once(text: str) -> None:
    once = restore_powers(text).text
    assert restore_powers(once).text == once


def test_real_statements_that_lost_their_powers_get_the_same_ones_back() -> None:
    """LeetCode's own pages as doocs keeps them, their superscripts taken away."""
    wrong = right = 0
    for problem in ALL["doocs_en"]():
        text = split(problem.statement).constraints
        whole = re.sub(r"\^\(?(-?\d+)\)?", r"^\1", text)
        lost = re.sub(r"(?<=\d)\^(?=-?\d)", "", whole)
        found = restore_powers(lost, has_lost_all=True)
        assert restore_powers(whole).text == whole
        changed = zip(lost.split("\n"), found.text.split("\n"), whole.split("\n"), strict=True)
        wrong += any(mended not in (old, true) for old, mended, true in changed)
        right += found.text == whole != lost
    assert wrong == 0
    assert right > 60
