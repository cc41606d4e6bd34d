"""Flags that a statement's words give a problem."""

import pytest

from microcoder.data.clean.flags import find_flags
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.types import Checker

SEVERAL = (
    "Output any.",
    "Print one such array.",
    "If the answer isn't unique, print any.",
    "Print the numbers in any order.",
    "If there are multiple answers, print any of them.",
    "You can print any of them.",
    "Any valid answer will be accepted.",
    "If there is more than one solution, output any of them.",
    "If several solutions exist, output whichever you like.",
    "Print any permutation that satisfies this.",
    "The answer is not necessarily unique.",
    "You may output any of the possible strings.",
    "All correct answers are accepted.",
    "Find any such sequence.",
    "Output one possible ordering.",
    "If there are many ways, print one of them.",
    "Construct any valid tree.",
    "The checker accepts any correct solution.",
    "It doesn't matter which one you print.",
    "print an arbitrary one",
    "In case of several optimal solutions print any.",
    "Output the edges in arbitrary order.",
    "If multiple solutions exist, you can return any of them.",
    "Note that the solution may not be unique.",
    "If there exist several such pairs, find any of them.",
    "If there's more than one such pair, any is fine.",
    "Return any of the longest ones.",
    "You are allowed to print any suitable coloring.",
    "If more than one answer is possible, output any one.",
    "If there are several possible answers you should output any.",
)
"""How statements say that several answers are right."""
ONE = (
    "Print the number of ways to choose any subset.",
    "Do not print any extra spaces.",
    "You may perform the operations in any order. Print the minimum number of operations.",
    "Output the number of ways to place rooks in any order.",
    "If there are multiple players, any of them can start.",
    "It is guaranteed that the answer is unique.",
    "Print the answer modulo 10^9+7.",
    "If there are several such strings, print the lexicographically smallest one.",
    "Any two cities are connected by a path.",
    "If there are multiple answers, print the smallest.",
    "Print one integer: the answer.",
    "Print one number.",
    "The list may contain any integers.",
    "Print YES if any of the numbers is even.",
    "Return true if any element is not unique.",
    "Print all the unique elements.",
    "He can choose any of the cards. Output the largest sum.",
    "For each test print one line.",
    "Find the sum of any two elements which is maximal.",
    "Output one line with the number of valid strings.",
    "There are several test cases. For any of them print the answer.",
    "elements are not unique",
    "Return the list of all such pairs in sorted order.",
    "If the lock displays any of these codes, its wheels stop turning.",
)
"""Sentences beside which nothing of that kind is said."""


def flags_of(sentence: str, checker: Checker | None = None) -> tuple[str, ...]:
    statement = f"You are given a list of numbers. {sentence}"
    checker = checker or Checker()
    return find_flags(Candidate(id="a", dataset="d", statement=statement, checker=checker))


@pytest.mark.parametrize("sentence", SEVERAL)
def test_several_right_answers_are_seen(sentence: str) -> None:
    assert flags_of(sentence) == ("many_answers",)


@pytest.mark.parametrize("sentence", ONE)
def test_one_right_answer_is_none_of_several(sentence: str) -> None:
    assert flags_of(sentence) == ()


def test_what_compares_several_answers_needs_no_flag() -> None:
    assert flags_of(SEVERAL[0], Checker(type="unordered")) == ()
