"""Copies under two addresses, behind a set's boilerplate, and in other words."""

from typing import Any, cast

import pytest

from microcoder.data.corpus.barriers import BoilerplateBarrier
from microcoder.data.filter.boilerplate import count_shared, edges_of, learn_shared
from microcoder.data.filter.duplicates import describe, find_duplicates
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.config import Config
from microcoder.judge.core.types import TestCase
from tests.data.filter.test_duplicates import FLOWERS, STORY, row
from tests.data.test_build import statement as other_story

CODEFORCES = "https://codeforces.com/contest"
ATCODER = "https://atcoder.jp/contests"
ABOVE = (
    "You are an expert programmer. Solve the task below in Python 3.\nThink step by step before "
    "you write, look at every limit that is given, and explain your idea in few words. Then write "
    "one program that needs no other file.\n\n### Task\n"
)
BELOW = "\n### Format\nRead from stdin and write to stdout.\n\n### Answer: write only code.\n"
PROGRAM = (
    "n, k = map(int, input().split())\nprices = list(map(int, input().split()))\n"
    "total = sum(min(prices[max(0, i - k + 1): i + 1]) for i in range(n))\nprint(total)\n"
)
LAID_OUT = "# Sliding minimum.\n" + PROGRAM.replace("(map(int, ", "(map( int , ")


def group_of(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return how two records were found to be one problem; empty if they are two."""
    found = find_duplicates(describe([row("a/1", **one), row("b/1", **other)]))
    ways = [how for group in found.values() for how in group.values()]
    return "".join(ways)


def sums(count: int, *, shift: int = 0) -> tuple[TestCase, ...]:
    return tuple(
        TestCase(input=f"{number} 1000\n", output=f"{number + shift}\n") for number in range(count)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{CODEFORCES}/1000/problem/A", f"{CODEFORCES}/1001/problem/C"),
        (f"{CODEFORCES}/1696/problem/D", f"{CODEFORCES}/1697/problem/B"),
        (f"{ATCODER}/arc100/tasks/arc100_a", f"{ATCODER}/abc102/tasks/abc102_c"),
    ],
)
def test_one_text_of_two_contests_is_one_problem(one: str, other: str) -> None:
    assert group_of({"url": one}, {"url": other}) == "text"
    changed = STORY.replace("on a line of its own", "on its own line")
    assert group_of({"url": one}, {"url": other, "statement": f"{changed} {changed}"}) == ""


def test_one_text_of_one_contest_is_two_problems() -> None:
    urls = [f"{CODEFORCES}/1000/problem/{letter}" for letter in "AB"]
    assert group_of({"url": urls[0]}, {"url": urls[1]}) == ""


def test_other_bounds_of_the_other_division_are_another_problem() -> None:
    one = {"url": f"{CODEFORCES}/1000/problem/A", "statement": f"{STORY} 1 <= n <= 10"}
    other = {"url": f"{CODEFORCES}/1001/problem/A", "statement": f"{STORY} 1 <= n <= 20000"}
    assert group_of(one, other) == ""


def prompted(count: int) -> list[Candidate]:
    """Return rows of a set with the same words around each statement; the first is STORY."""
    rows = [row("set/0", f"{ABOVE}{STORY}{BELOW}")]
    for number in range(1, count):
        rows.append(row(f"set/{number}", f"{ABOVE}{other_story(number)}{BELOW}"))
    return rows


def counted(rows: list[Candidate]) -> list[Candidate]:
    barrier = BoilerplateBarrier(Config())
    barrier.decide(barrier.look(rows))
    passed = [barrier.apply(item, {}) for item in rows]
    return cast(list[Candidate], passed)


def test_what_most_rows_begin_or_end_with_hides_no_copy() -> None:
    rows = [*prompted(12), row("other/1", STORY)]
    assert find_duplicates(describe(rows)) == {}
    (group,) = find_duplicates(describe(counted(rows))).values()
    assert list(group.values()) == ["text"]


def test_statements_are_not_changed() -> None:
    rows = prompted(12)
    for before, after in zip(rows, counted(rows), strict=True):
        assert after.statement == before.statement


def test_nothing_is_learnt_of_few_rows_or_of_what_few_share() -> None:
    assert counted(prompted(9)) == prompted(9)
    mixed = prompted(6)
    for number in range(6, 12):
        mixed.append(row(f"set/{number}", other_story(number)))
    assert counted(mixed) == mixed


def test_a_statement_is_not_cut_to_nothing() -> None:
    rows = [row(f"set/{number}", FLOWERS) for number in range(12)]
    assert count_shared(rows[0], learn_shared(map(edges_of, rows))) == (0, 0)


def test_the_same_program_is_the_same_problem_in_any_words() -> None:
    one = {"solutions": (Solution(code=PROGRAM),)}
    other = {"statement": FLOWERS, "solutions": (Solution(code=LAID_OUT),)}
    assert group_of(one, other) == "program"
    short = (Solution(code="print(sum(map(int, input().split())))"),)
    assert group_of({"solutions": short}, {**other, "solutions": short}) == ""


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (sums(8), sums(8), "tests"),
        (sums(8), (*sums(6), *sums(9, shift=0)[8:]), "tests"),
        # Too few, contradicting, and a small share.
        (sums(4), sums(4), ""),
        (sums(8), (*sums(7), *sums(8, shift=1)[7:]), ""),
        (sums(14), (*sums(5), *sums(30)[20:]), ""),
    ],
)
def test_equal_tests_are_one_problem_in_any_words(
    one: tuple[TestCase, ...], other: tuple[TestCase, ...], found: str
) -> None:
    assert group_of({"tests": one}, {"tests": other, "statement": FLOWERS}) == found


def test_equal_answers_of_two_kinds_tell_nothing() -> None:
    tests = tuple(
        TestCase(input=f"{number} 1000\n", output=f"{number % 2}\n") for number in range(8)
    )
    assert group_of({"tests": tests}, {"tests": tests, "statement": FLOWERS}) == ""
