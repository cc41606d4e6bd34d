from __future__ import annotations

import pytest
from real_texts import kodsport, livecodebench

from microcoder.data.clean.bounds import parse_bounds
from microcoder.data.clean.tests import find_flags
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.types import Checker, TestCase

BOUNDS = "1 <= n <= 9.\n"


def flags_of(statement: str, **fields: object) -> tuple[str, ...]:
    return find_flags(Candidate(id="a/1", dataset="a", statement=BOUNDS + statement, **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("This is an interactive problem. Flush the output after each query.", "interactive"),
        ("If there are multiple solutions, print any of them.", "many_answers"),
        ("You may return the answer in any order.", "many_answers"),
    ],
)
def test_what_stands_in_the_way_is_flagged(text: str, flag: str) -> None:
    assert tuple(found for found in flags_of(text) if found != "has_image") == (flag,)


@pytest.mark.parametrize(
    "text",
    [
        "![a squirrel](squirrel.png)\n" + "A squirrel lives in a tree with nodes and edges and collects nuts. " * 4,
        "If there are multiple rectangles with the longest diagonal, return the area of the largest.",
        "Choose any index i and increase nums[i]. Print the sum of the file sizes.",
        "If there is more than one unhappy person in the restaurant, any one of them may buy something first.",
    ],
)
def test_what_does_not_is_not(text: str) -> None:
    assert tuple(found for found in flags_of(text) if found != "has_image") == ()


@pytest.mark.parametrize(
    ("text", "is_flagged"),
    [("Two non-negative integers $n$ and $m$ ($n,m \\le 500$).", False), ("Two integers n and m. Good luck.", True)],
)
def test_a_bound_without_a_lower_end_is_a_constraint(text: str, is_flagged: bool) -> None:
    flags = find_flags(Candidate(id="a/1", dataset="a", statement=text))
    assert ("no_constraints" in flags) == is_flagged


def test_bold_names_have_bounds() -> None:
    assert [bound.name for bound in parse_bounds("1 ≤ **N** ≤ 100, 2 ≤ **K_i** < 2**20")] == ["N", "K_i"]


def test_a_checker_decides_on_many_answers() -> None:
    checker = Checker(type="program", code="exit(42)", protocol="kattis")
    assert flags_of("If there are several solutions, print any of them.", checker=checker) == ()


def test_samples_are_looked_for_in_the_tests() -> None:
    text = "Add.\n\nExample 1:\n\nInput: a = [1, 2]\nOutput: 3\n"
    assert flags_of(text, tests=(TestCase(input="[1,2]", output="3"),)) == ()
    assert flags_of(text, tests=(TestCase(input="[2,2]", output="4"),)) == ("samples_missing",)
    assert flags_of(text, tests=(TestCase(input="[1,2]", output="4"),)) == ("samples_differ",)


def test_bounds_are_read_as_they_are_written() -> None:
    text = (
        "$1 \\leq n, m \\leq 2 \\cdot 10^5$, `-10^9 <= a_i <= 10^9`, 0 ≤ |s| < 1000, $1 \\le k \\le n$, "
        "1 <= q <= 200 000"
    )
    bounds = {bound.name: (bound.low, bound.high) for bound in parse_bounds(text)}
    assert bounds == {"n": (1, 2e5), "m": (1, 2e5), "a_i": (-1e9, 1e9), "s": (0, 1000), "q": (1, 200000)}


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("$2\\leq N\\leq100$", {"N": (2, 100)}),
        ("1 <= K<= N <= 2\\times 10 ^ 5", {"K": (1, 2e5), "N": (1, 2e5)}),
        ("2 <= n == possible.length <= 10^5", {"n": (2, 1e5), "possible.length": (2, 1e5)}),
        ("1 <= n <= 2 * 105, 1 <= m <= 3 * 100", {"n": (1, 2e5), "m": (1, 300)}),
        (" * 3 <= n <= 50\n * 1 <= m <= 10\n", {"n": (3, 50), "m": (1, 10)}),
        ("1 <= i <= H and 1 <= j <= 9", {"j": (1, 9)}),
    ],
)
def test_chains_give_each_name_their_ends(text: str, bounds: dict[str, tuple[float, float]]) -> None:
    assert {bound.name: (bound.low, bound.high) for bound in parse_bounds(text)} == bounds


def test_real_statements_state_bounds() -> None:
    for problems, least in ((livecodebench(), 0.9), (kodsport(), 0.6)):
        assert sum(bool(parse_bounds(one.statement)) for one in problems) >= least * len(problems)


@pytest.mark.parametrize("bound", ["1 <= n <= 1000000000000^30", f"1 <= n <= 10^{'9' * 5000}"])
def test_a_bound_beyond_every_number_is_ignored(bound: str) -> None:
    assert [one.name for one in parse_bounds(f"{bound}\n1 <= k <= 10^5\n")] == ["k"]
