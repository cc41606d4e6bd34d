from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.data.filter.contamination import (
    example_keys,
    gram_hashes,
    literal_hashes,
    literals,
    signature,
    source_keys,
    title_key,
    words,
)
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.types import TestCase


def candidate(**fields: object) -> Candidate:
    return Candidate(**{"id": "set/1", "dataset": "set", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://leetcode.com/problems/two-sum/", "leetcode:two-sum"),
        ("https://leetcode.cn/contest/weekly-contest-1/problems/two-sum", "leetcode:two-sum"),
        ("https://codeforces.com/contest/1234/problem/C1", "codeforces:1234c1"),
        ("https://codeforces.com/problemset/problem/1234/C1", "codeforces:1234c1"),
        ("https://atcoder.jp/contests/abc301/tasks/abc301_a", "atcoder:abc301_a"),
        ("https://open.kattis.com/problems/hello", "kattis:hello"),
        ("https://www.codechef.com/START01/problems/FLOW001", "codechef:flow001"),
    ],
)
def test_one_problem_has_one_key_whatever_its_address(url: str, key: str) -> None:
    assert source_keys(candidate(url=url)) == {key}


def test_a_platform_s_own_id_is_a_key_too() -> None:
    assert source_keys(candidate(id="lcb/abc301_a", platform="atcoder")) == {"atcoder:abc301_a"}
    assert source_keys(candidate(id="lcb/1873_A", platform="codeforces")) == {"codeforces:1873a"}
    assert source_keys(candidate(id="x/2727", platform="leetcode", title="sum-in-a-matrix")) == {
        "leetcode:sum-in-a-matrix"
    }
    assert source_keys(candidate(id="apps/1873", platform="codeforces")) == frozenset()


@pytest.mark.parametrize("title", ["1. Two Sum", "A. Two sum", "two-sum", "B1. Two  Sum!", "１. Two Sum"])
def test_one_title_has_one_key(title: str) -> None:
    assert title_key(title) == "two sum"


def test_formulae_are_words_like_plain_text() -> None:
    assert words("$1 \\leq n$") == words("1 <= n") == ["1", "<", "=", "n"]
    assert words("返回和") == ["返", "回", "和"]


def test_literals_are_what_a_translation_leaves() -> None:
    english, chinese = 'Given "abc" and -3, return 1.5.', '给你 "abc" 和 -3 ，返回 1.5 。'  # fmt: skip
    assert literals(english) == literals(chinese) == ["abc", "-3", "1.5"]


def test_runs_that_say_nothing_are_left_out() -> None:
    assert len(literal_hashes([str(number) for number in range(1, 40)], 8)) == 0
    assert len(literal_hashes(["0", "1"] * 20, 8)) == 0
    assert len(literal_hashes(["17", "4", "23", "42", "8", "29", "31", "16"], 8)) == 1
    assert len(literal_hashes(["17"], 8)) == 0


@given(st.lists(st.sampled_from("abcdefg"), max_size=30), st.integers(1, 6))
def test_equal_runs_and_only_those_have_equal_hashes(tokens: list[str], length: int) -> None:
    runs = {tuple(tokens[start : start + length]) for start in range(len(tokens) - length + 1)}
    found = gram_hashes(tokens, length)
    assert len(found) == len(runs)
    assert np.array_equal(found, np.unique(found))


def test_hashes_are_the_same_on_every_machine() -> None:
    assert [int(value) for value in gram_hashes(["a", "b", "c"], 2)] == [17600707327312217048, 18286342825509049308]


def test_an_example_is_the_same_in_every_notation() -> None:
    shown = candidate(statement="Add.\n\nExample 1:\n\nInput: nums = [1, 2], k = 3\nOutput: [4, 5]\n")
    tested = candidate(tests=(TestCase(input="[1,2]\n3", output="[4,5]"),))
    printed = candidate(tests=(TestCase(input="1 2\n3\n", output="4 5\n"),))
    (key,) = example_keys(shown)
    assert key.weight == 5
    assert example_keys(tested) == example_keys(printed) == {key}
    assert example_keys(candidate(tests=(TestCase(input="1 2 3", output="4 6"),))) != {key}
    assert example_keys(candidate(tests=(TestCase(input="1 2 3", output=""),))) == frozenset()


def test_a_signature_is_the_function_s_name_and_parameters() -> None:
    code = "class Solution:\n    def add(self, a: int, b: int = 2) -> int:\n        "
    assert signature(candidate(starter_code=code)) == "add(a,b)"
    assert signature(candidate(fn_name="add", solutions=(Solution(code=code),))) == "add(a,b)"
    assert signature(candidate(solutions=(Solution(code=code),))) == ""
    assert signature(candidate(fn_name="other", starter_code=code)) == ""
