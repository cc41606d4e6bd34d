"""Duplicates: fingerprints, groups, one record of many."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_texts import deepseek, doocs, livecodebench

from microcoder.data.filter import DuplicateGroup, describe, find_duplicates
from microcoder.data.filter.contamination import (
    example_keys,
    gram_hashes,
    literals,
    signature,
    source_keys,
    title_key,
    words,
)
from microcoder.data.filter.duplicates import (
    are_duplicated,
    band_keys,
    candidate_pairs,
    merge,
    sign,
    similarity,
)
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.types import Checker, TestCase

STORY = (
    "A baker walks from the first of n cities to the last one and buys bread on the way wherever it is cheap. He may "
    "carry at most k loaves and eats one of them in every city that he enters, the last one too. Each city sells as "
    "many loaves as he likes at a price of its own, which is known before he leaves. Find the least that he pays for a "
    "walk on which he never goes hungry, and print it on a line of its own."
)
OTHER = (
    "A gardener plants flowers in a circle of m beds so that no two neighbours have one colour. Count the plantings "
    "that differ in at least one bed, and print the count modulo the prime on the last line of the input."
)


def row(name: str, statement: str = STORY, **fields: object) -> Candidate:
    return Candidate(id=name, dataset=name.partition("/")[0], statement=statement, **fields)  # type: ignore[arg-type]


def groups_of(*rows: Candidate) -> list[DuplicateGroup]:
    return find_duplicates(describe(rows))


def merged(*rows: Candidate) -> list[tuple[str, ...]]:
    return [(group.kept, *group.dropped) for group in groups_of(*rows)]


CONTEST, PROBLEMSET = "https://codeforces.com/contest/12/problem", "https://codeforces.com/problemset/problem/12/A"


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ({}, {"statement": OTHER}, None),
        ({}, {"statement": f"**{STORY.upper()}**\n"}, "text"),
        ({}, {"statement": STORY.replace("Find the least", "Compute the least")}, "similarity 0."),
        # One source is one problem in any words.
        ({"url": f"{CONTEST}/A"}, {"statement": OTHER, "url": PROBLEMSET}, "source"),
        # Two problems told alike stay apart.
        ({"url": f"{CONTEST}/A"}, {"url": f"{CONTEST}/B"}, None),
        ({"statement": f"{STORY} 1 <= n <= 100"}, {"statement": f"{STORY} 1 <= n <= 100000"}, None),
        ({"tests": (TestCase(input="1\n", output="2\n"),)}, {"tests": (TestCase(input="1", output="3"),)}, None),
        # Short statements are compared by source only.
        ({"statement": "See the picture."}, {"statement": "See the picture."}, None),
    ],
)
def test_what_makes_two_records_one_problem(one: dict[str, Any], other: dict[str, Any], why: str | None) -> None:
    found = groups_of(row("a/1", **one), row("b/1", **other))
    assert len(found) == (why is not None)
    for group in found:
        assert group.dropped in (("a/1",), ("b/1",))
        assert group.why[group.dropped[0]].startswith(str(why))


def test_a_third_record_does_not_join_what_is_told_apart() -> None:
    easy = row("a/1", f"{STORY} 1 <= n <= 100", licence="MIT")
    hard = row("b/1", f"{STORY} 1 <= n <= 100000")
    silent = row("c/1")
    (group,) = groups_of(easy, hard, silent)
    assert {group.kept, *group.dropped} in ({"a/1", "c/1"}, {"b/1", "c/1"})


def test_the_best_record_is_kept() -> None:
    tests = (TestCase(input="1", output="2"),)
    worst_first = [
        row("a/1"),
        row("a/2", tests=tests, flags=("no_constraints",)),
        row("a/3", tests=tests),
        row("a/4", tests=tests, solutions=(Solution(code="print(2)"),)),
        row("a/5", tests=tests, solutions=(Solution(code="print(2)"),), licence="MIT"),
        row("a/6", tests=(*tests, TestCase(input="2", output="2")), solutions=(Solution(code=""),), licence="MIT"),
    ]
    for worse, better in pairwise(worst_first):
        assert merged(worse, better) == [(better.id, worse.id)]
    assert merged(*worst_first) == [("a/6", "a/1", "a/2", "a/3", "a/4", "a/5")]


VARIANTS = st.tuples(
    st.sampled_from([STORY, OTHER]),
    st.lists(st.integers(0, 30), max_size=3),
    st.sampled_from(["", " 1 <= n <= 100", " 1 <= n <= 200"]),
    st.sampled_from(["", "https://codeforces.com/contest/1/problem/A", "https://codeforces.com/contest/1/problem/B"]),
    st.sampled_from(["", "1", "2"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(VARIANTS, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order(
    variants: list[tuple[str, list[int], str, str, str]], chance: random.Random
) -> None:
    rows = []
    for number, (base, changed, bound, url, output) in enumerate(variants):
        said = [("thing" if place in changed else word) for place, word in enumerate(base.split())]
        tests = (TestCase(input="7", output=output),) if output else ()
        rows.append(row(f"a/{number}", " ".join(said) + bound, url=url, tests=tests))
    shuffled = chance.sample(rows, len(rows))
    found = groups_of(*rows)
    assert groups_of(*shuffled) == found
    named = [name for group in found for name in (group.kept, *group.dropped)]
    assert len(named) == len(set(named))
    assert all(sorted(group.why) == list(group.dropped) for group in found)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(words(STORY)), min_size=5, max_size=60), st.integers(0, 4))
def test_similarity_estimates_what_texts_share(said: list[str], num_changed: int) -> None:
    other = ["changed"] * num_changed + said[num_changed:]
    runs = [{tuple(text[i : i + 5]) for i in range(len(text) - 4)} for text in (said, other)]
    true = len(runs[0] & runs[1]) / len(runs[0] | runs[1])
    one, two = sign([said, other], num_permutations=500, gram_length=5, seed=1)
    assert abs(similarity(one, two) - true) <= 0.13  # six standard errors


def test_the_same_problems_in_two_real_sets_are_found() -> None:
    """Without their addresses, one of them with superscripts lost (105 for 10^5)."""
    slugs = {one.title for one in livecodebench() if one.platform == "leetcode"}
    left = [one.model_copy(update={"url": "", "title": ""}) for one in deepseek("en")]
    right = [one.model_copy(update={"title": "", "id": f"lcb/{number}"}) for number, one in enumerate(livecodebench())]
    found = groups_of(*left, *right)
    across = [group for group in found if len({name.partition("/")[0] for name in (group.kept, *group.dropped)}) == 2]
    shared = sum(one.title in slugs for one in deepseek("en"))
    assert len(across) >= 0.85 * shared
    within = [group for group in found if group not in across]
    assert len(within) <= 3, within


def test_two_languages_are_one_problem_by_their_source() -> None:
    english, chinese = doocs("en"), doocs("zh")
    found = groups_of(*english, *chinese)
    assert len(found) >= 0.95 * len(english)
    assert all(set(group.why.values()) == {"source"} for group in found)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(2, 60))
def test_rows_of_a_pair_have_company_in_a_band(seed: int, num: int) -> None:
    signatures = np.random.default_rng(seed).integers(0, 3, (num, 20), dtype=np.uint32)
    keys = band_keys(signatures, num_bands=5)
    has_company = np.any([are_duplicated(keys[:, band]) for band in range(5)], axis=0)
    assert {number for pair in candidate_pairs(signatures, num_bands=5) for number in pair} == set(
        np.flatnonzero(has_company).tolist()
    )


CHECKER = Checker(type="program", code="exit(42)", protocol="kattis")


def record(name: str, *pairs: tuple[str, str], **fields: object) -> Candidate:
    tests = tuple(TestCase(input=given, output=printed) for given, printed in pairs)
    return Candidate(id=name, dataset="set", tests=tests, **fields)  # type: ignore[arg-type]


ROWS = st.builds(
    lambda name, pairs, fn_name: record(name, *pairs, fn_name=fn_name),
    st.sampled_from(["set/a", "set/b", "set/c"]),
    st.lists(st.tuples(st.sampled_from("12345"), st.sampled_from("67")), max_size=4, unique_by=lambda pair: pair[0]),
    st.sampled_from([None, "f"]),
)


@given(ROWS, st.lists(ROWS, max_size=4, unique_by=lambda one: one.id))
def test_every_input_is_kept_once_and_the_kept_record_s_tests_come_first(
    kept: Candidate, others: list[Candidate]
) -> None:
    done = merge(kept, others)
    alike = [other for other in others if other.fn_name == kept.fn_name]
    inputs = [test.input for test in done.tests]
    assert done.tests[: len(kept.tests)] == kept.tests
    assert len(inputs) == len(set(inputs))
    assert set(inputs) == {test.input for one in (kept, *alike) for test in one.tests}
    assert merge(kept, others[::-1]) == done


def test_what_the_kept_record_did_not_know_is_filled_in() -> None:
    other = record("b/1", url="u", date="2024", title="T", platform="p", platform_difficulty="hard", licence="MIT",
                time_limit_seconds=2.0, memory_limit_mib=256, tags=("dp", "graphs"), pass_rates=("m=0.5",))  # fmt: skip
    done = merge(record("a/1", title="Mine", tags=("dp",)), [other])
    assert (done.title, done.url, done.date, done.platform) == ("Mine", "u", "2024", "p")
    assert (done.time_limit_seconds, done.memory_limit_mib, done.platform_difficulty) == (2.0, 256, "hard")
    assert (done.tags, done.pass_rates) == (("dp", "graphs"), ("m=0.5",))
    assert done.licence == ""


def test_solutions_and_merged_ids_are_kept_once() -> None:
    shared, new = Solution(code="print(1)"), Solution(code="print(2)", known="wrong_answer")
    other = record("b/1", solutions=(shared, new), merged=("d/1",))
    called = record("c/1", fn_name="f", solutions=(Solution(code="x"),))
    done = merge(record("a/1", solutions=(shared,)), [called, other])
    assert done.solutions == (shared, new)
    assert done.merged == ("b/1", "d/1", "c/1")
    # A checker comes with the tests, where the kept record has none.
    checked = record("b/1", ("1", "2"), checker=CHECKER)
    own = (record("a/1"), record("a/1", checker=Checker(type="tokens")), record("a/1", fn_name="f"))
    assert [merge(kept, [checked]).checker for kept in own] == [CHECKER, Checker(type="tokens"), Checker()]


def candidate(**fields: object) -> Candidate:
    return Candidate(**{"id": "set/1", "dataset": "set", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"url": "https://leetcode.com/problems/two-sum/"}, "leetcode:two-sum"),
        ({"url": "https://leetcode.cn/contest/weekly-contest-1/problems/two-sum"}, "leetcode:two-sum"),
        ({"url": "https://codeforces.com/contest/1234/problem/C1"}, "codeforces:1234c1"),
        ({"url": "https://codeforces.com/problemset/problem/1234/C1"}, "codeforces:1234c1"),
        ({"url": "https://atcoder.jp/contests/abc301/tasks/abc301_a"}, "atcoder:abc301_a"),
        ({"url": "https://open.kattis.com/problems/hello"}, "kattis:hello"),
        ({"url": "https://www.codechef.com/START01/problems/FLOW001"}, "codechef:flow001"),
        # A platform's own id is a key, too.
        ({"id": "lcb/abc301_a", "platform": "atcoder"}, "atcoder:abc301_a"),
        ({"id": "lcb/1873_A", "platform": "codeforces"}, "codeforces:1873a"),
        ({"id": "x/2727", "platform": "leetcode", "title": "sum-in-a-matrix"}, "leetcode:sum-in-a-matrix"),
    ],
)
def test_one_problem_has_one_key_whatever_its_address(fields: dict[str, str], key: str) -> None:
    assert source_keys(candidate(**fields)) == {key}


def test_titles_words_and_literals_are_the_same_in_every_dress() -> None:
    titles = ("1. Two Sum", "A. Two sum", "two-sum", "B1. Two  Sum!", "１. Two Sum")
    assert {title_key(title) for title in titles} == {"two sum"}
    assert words("$1 \\leq n$") == words("1 <= n") == ["1", "<", "=", "n"]
    assert words("返回和") == ["返", "回", "和"]
    english, chinese = 'Given "abc" and -3, return 1.5.', '给你 "abc" 和 -3 ，返回 1.5 。'  # fmt: skip
    assert literals(english) == literals(chinese) == ["abc", "-3", "1.5"]


@given(st.lists(st.sampled_from("abcdefg"), max_size=30), st.integers(1, 6))
def test_equal_runs_and_only_those_have_equal_hashes(tokens: list[str], length: int) -> None:
    runs = {tuple(tokens[start : start + length]) for start in range(len(tokens) - length + 1)}
    found = gram_hashes(tokens, length)
    assert len(found) == len(runs)
    assert np.array_equal(found, np.unique(found))


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
