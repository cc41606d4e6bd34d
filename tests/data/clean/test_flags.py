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
    "If there are several answers, all of them are accepted.",
    "Find any perfect coloring and cut, or report that there are none.",
    "Any answer which has the same similarity as the best answer will be accepted.",
    "Return any [i, j] with i + 1 < j, such that the parts are equal.",
    "Return any duplicated substring that has the longest possible length.",
    "Find any peak element mat[i][j] and return the length 2 array [i,j].",
    "Return the size of any such subarray. If there is none, return -1.",
    "Any output that satisfies the conditions in the statement will be considered correct.",
    "If multiple schedules meet the conditions, return **any** one of them.",
    "**Return any grid** such that there is exactly one valid path.",
    "Any valid answer is accepted, so yours may differ from the sample.",
    "Any shortest route is fine. Any correct order is accepted, within the rules above.",
    "You need to print any valid colouring.",
    "It is enough to output one of the optimal arrangements.",
    "Any of the possible answers may be printed.",
    "You can output the answer in any of the valid ways.",
    "In the case of ties, any of them may be returned.",
    "Print k integers, an example of such a set.",
    "Output a possible assignment of colours.",
    "If there are several options, you may choose any.",
    "You can return the indices of any peak.",
    "Note that there may be multiple valid orders; you only need to produce one.",
    "Print the vertices of one such cycle.",
    "Your output does not have to match the sample as long as it is valid.",
    "Solutions are checked by a special judge.",
    "Return any two indices whose numbers add up to 0.",
    "Return any indices i and j whose numbers add up to 0.",
    "Print any valid pairs.",
    "Output any solutions.",
    "Return any substring of s that has all letters.",
    "Print any basis that spans them.",
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
    "If the lock displays any of these codes, the wheels stop turning.",
    "If several letters have the same occurrence, return all of them.",
    "Any answer within 10^-5 of the actual value is accepted.",
    "Any answer with a calculation error less than 10^-5 will be accepted.",
    "Your program must not print any additional text.",
    "Solve it without printing any prompt.",
    "Find any two adjacent numbers that are non-coprime and replace them by their lcm.",
    "You don't need to print any value.",
    "You do not have to return any array: change the given one.",
    "In that case your program shouldn\u2019t print any line.",
    "There is no need to output any string.",
    "If many people vote for it, return either true or false.",
    "Any answer is accepted if it differs from ours by at most one.",
    "Any answer within 0.01 of ours will be accepted.",
    "In one move you may choose any element and increase it. Print the minimum number of moves.",
    "You may rearrange the letters in any order. Output the largest number that can be formed.",
    "If any of the requirements is broken print Invalid.",
    "Print one line for each of the possible values from 1 to n.",
    "Three moves are given; any of them may be used. Print the fewest moves.",
    "If the output does not match the sample, print WRONG.",
    "Find the least cost over visits in any of the possible orders.",
    "Print the sum of one of the rows, which the input names.",
    "Return any numbers greater than 5.",
    "Return any duplicates.",
    "Print any words that begin with a vowel.",
    "Output any negative numbers that it holds.",
    "Find any missing numbers and return them in a sorted list.",
    "List any repeated letters.",
    "If there are multiple spaces, do not print any.",
    "If there are several errors, print each one of them.",
    "Return True if any string in the list is accepted.",
    "Determine if any is valid and print it.",
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


def test_a_sentence_without_end_is_read_in_passing() -> None:
    # What follows each "any answer" must not be read to the end of the text.
    assert flags_of("any answer " * 9000) == ()


def test_what_compares_several_answers_needs_no_flag() -> None:
    assert flags_of(SEVERAL[0], Checker(type="unordered")) == ()


EXPLAINED = (
    "\n\n## Example 1\n\nInput:\n\n```\n1\n```\n\nOutput:\n\n```\n2\n```\n\nExplanation:\n\n{}\n"
)


@pytest.mark.parametrize(
    ("explanation", "flags"),
    [
        ("[1, 6, 2] is also accepted.", ("many_answers",)),
        (
            "Please notice that another valid answer is [5, 2], and it's also accepted.",
            ("many_answers",),
        ),
        ("9155 would also be considered correct.", ("many_answers",)),
        ("Another correct solution is to remove the subarray [3, 10].", ()),
        ("[2, 3] is also a valid sequence, but [3, 2] is the largest.", ()),
        ("The subsequence of indices 1 and 2 is also valid.", ()),
    ],
)
def test_an_example_may_have_another_right_answer(explanation: str, flags: tuple[str, ...]) -> None:
    assert flags_of(EXPLAINED.format(explanation)) == flags
