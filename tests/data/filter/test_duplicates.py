"""Duplicates and copies of benchmarks: fingerprints, groups, one record of many,
what two problems have in common.
"""

from itertools import pairwise
from typing import Any

import pytest
from decontamination import arranged, known_copies, measure

from microcoder.data.filter.contamination import ContaminationIndex, build_index, find_hits
from microcoder.data.filter.duplicates import describe, find_duplicates
from microcoder.data.filter.keys import example_keys, source_keys, title_key
from microcoder.data.filter.merging import merge
from microcoder.data.filter.texts import literals, words
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.types import Checker, TestCase
from tests.data.clean.real_texts import ALL, deepseek, livecodebench

STORY = (
    "A baker walks from the first of n cities to the last one and buys bread on the way "
    "wherever it is cheap. He may "
    "carry at most k loaves and eats one of them in every city that he enters, the last "
    "one too. Each city sells as "
    "many loaves as he likes at a price of its own, which is known before he leaves. Find "
    "the least that he pays for a "
    "walk on which he never goes hungry, and print it on a line of its own."
)
FLOWERS = (
    "A gardener plants flowers in a circle of m beds so that no two neighbours have one "
    "colour, and waters them each "
    "day with as little water as the weather allows. Count the plantings that differ in at "
    "least one bed, and print "
    "the count modulo the prime that is given on the last line of the input.\n"
)


def row(name: str = "set/1", statement: str = STORY, **fields: Any) -> Candidate:
    return Candidate(id=name, dataset=name.partition("/")[0], statement=statement, **fields)


def groups_of(*rows: Candidate) -> dict[str, dict[str, str]]:
    return find_duplicates(describe(rows))


def merged(*rows: Candidate) -> list[tuple[str, ...]]:
    return [(kept, *dropped) for kept, dropped in groups_of(*rows).items()]


CONTEST = "https://codeforces.com/contest/12/problem"
PROBLEMSET = "https://codeforces.com/problemset/problem/12/A"


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ({}, {"statement": FLOWERS}, None),
        ({}, {"statement": f"**{STORY.upper()}**\n"}, "text"),
        ({}, {"statement": STORY.replace("Find the least", "Compute the least")}, "similarity 0."),
        # One source is one problem in any words.
        ({"url": f"{CONTEST}/A"}, {"statement": FLOWERS, "url": PROBLEMSET}, "source"),
        # Two problems told alike stay apart.
        ({"url": f"{CONTEST}/A"}, {"url": f"{CONTEST}/B"}, None),
        ({"statement": f"{STORY} 1 <= n <= 100"}, {"statement": f"{STORY} 1 <= n <= 100000"}, None),
        (
            {"tests": (TestCase(input="1\n", output="2\n"),)},
            {"tests": (TestCase(input="1", output="3"),)},
            None,
        ),
        # Short statements are compared by source only.
        ({"statement": "See the picture."}, {"statement": "See the picture."}, None),
    ],
)
def test_what_makes_two_records_one_problem(
    one: dict[str, Any],
    other: dict[str, Any],
    why: str | None,
) -> None:
    found = groups_of(row("a/1", **one), row("b/1", **other))
    assert len(found) == (why is not None)
    for dropped in found.values():
        ((name, told),) = dropped.items()
        assert name in ("a/1", "b/1")
        assert told.startswith(str(why))


def test_a_third_record_does_not_join_what_is_told_apart() -> None:
    easy = row("a/1", f"{STORY} 1 <= n <= 100", licence="MIT")
    hard = row("b/1", f"{STORY} 1 <= n <= 100000")
    silent = row("c/1")
    # The third has no bounds, and so could be either: it joins one, and that keeps the other out.
    (group,) = merged(easy, hard, silent)
    assert set(group) in ({"a/1", "c/1"}, {"b/1", "c/1"})


def test_the_best_record_is_kept() -> None:
    tests = (TestCase(input="1", output="2"),)
    worst_first = [
        row("a/1"),
        row("a/2", tests=tests, flags=("has_image",)),
        row("a/3", tests=tests),
        row("a/4", tests=tests, solutions=(Solution(code="print(2)"),)),
        row("a/5", tests=tests, solutions=(Solution(code="print(2)"),), licence="MIT"),
        row(
            "a/6",
            tests=(*tests, TestCase(input="2", output="2")),
            solutions=(Solution(code=""),),
            licence="MIT",
        ),
    ]
    # Each has what the one before lacks: tests, whole statement, solution, licence, one more test.
    for worse, better in pairwise(worst_first):
        assert merged(worse, better) == [(better.id, worse.id)]
    assert merged(*worst_first) == [("a/6", "a/1", "a/2", "a/3", "a/4", "a/5")]


def test_the_same_problems_in_two_real_sets_are_found() -> None:
    """Without their addresses, one of them with superscripts lost (105 for 10^5)."""
    slugs = set()
    for one in livecodebench():
        if one.platform == "leetcode":
            slugs.add(one.title)
    left = [one.model_copy(update={"url": "", "title": ""}) for one in deepseek("en")]
    right = []
    for number, one in enumerate(livecodebench()):
        right.append(one.model_copy(update={"title": "", "id": f"lcb/{number}"}))
    found = merged(*left, *right)
    across = []
    for group in found:
        if len({name.partition("/")[0] for name in group}) == 2:
            across.append(group)
    shared = sum(one.title in slugs for one in deepseek("en"))
    # Lost superscripts change words, so a few pairs are less than similar enough.
    assert len(across) >= 0.85 * shared
    within = []
    for group in found:
        if group not in across:
            within.append(group)
    assert len(within) <= 3, within


CHECKER = Checker(type="program", code="exit(42)", protocol="kattis")


def record(name: str, *pairs: tuple[str, str], **fields: object) -> Candidate:
    tests = tuple(TestCase(input=given, output=printed) for given, printed in pairs)
    return row(name, "", tests=tests, **fields)


def test_what_the_kept_record_did_not_know_is_filled_in() -> None:
    other = record(
        "b/1",
        url="u",
        date="2024",
        title="T",
        platform="p",
        platform_difficulty="hard",
        licence="MIT",
        time_limit_seconds=2.0,
        memory_limit_mib=256,
        tags=("dp", "graphs"),
        pass_rates=("m=0.5",),
    )
    done = merge(record("a/1", title="Mine", tags=("dp",)), [other])
    assert done.title == "Mine"
    assert done.url == "u"
    assert done.date == "2024"
    assert done.platform == "p"
    assert done.time_limit_seconds == 2.0
    assert done.memory_limit_mib == 256
    assert done.platform_difficulty == "hard"
    assert done.tags == ("dp", "graphs")
    assert done.pass_rates == ("m=0.5",)
    assert done.licence == ""


def test_solutions_and_merged_ids_are_kept_once() -> None:
    shared = Solution(code="print(1)")
    new = Solution(code="print(2)", known="wrong_answer")
    other = record("b/1", solutions=(shared, new), merged=("d/1",))
    called = record("c/1", fn_name="f", solutions=(Solution(code="x"),))
    done = merge(record("a/1", solutions=(shared,)), [called, other])
    assert done.solutions == (shared, new)
    assert done.merged == ("b/1", "d/1", "c/1")
    # A checker comes with the tests, where the kept record has none.
    checked = record("b/1", ("1", "2"), checker=CHECKER)
    own = (record("a/1"), record("a/1", checker=Checker(type="tokens")), record("a/1", fn_name="f"))
    assert [merge(kept, [checked]).checker for kept in own] == [
        CHECKER,
        Checker(type="tokens"),
        Checker(),
    ]


def test_one_problem_has_one_key_whatever_its_address() -> None:
    for url, key in (
        ("https://leetcode.com/problems/two-sum/", "leetcode:two-sum"),
        ("https://leetcode.cn/contest/weekly-contest-1/problems/two-sum", "leetcode:two-sum"),
        ("https://codeforces.com/contest/1234/problem/C1", "codeforces:1234c1"),
        ("https://codeforces.com/problemset/problem/1234/C1", "codeforces:1234c1"),
        ("https://atcoder.jp/contests/abc301/tasks/abc301_a", "atcoder:abc301_a"),
        ("https://open.kattis.com/problems/hello", "kattis:hello"),
        ("https://www.codechef.com/START01/problems/FLOW001", "codechef:flow001"),
    ):
        assert source_keys(row(url=url)) == {key}
    # A platform's own id is a key, too.
    assert source_keys(row("lcb/abc301_a", platform="atcoder")) == {"atcoder:abc301_a"}
    assert source_keys(row("x/2727", platform="leetcode", title="two-sum")) == {"leetcode:two-sum"}


def test_titles_words_and_literals_are_the_same_in_every_dress() -> None:
    titles = ("1. Two Sum", "A. Two sum", "two-sum", "B1. Two  Sum!", "１. Two Sum")
    assert {title_key(title) for title in titles} == {"two sum"}
    assert words("$1 \\leq n$") == words("1 <= n") == ["1", "<", "=", "n"]
    assert words("返回和") == ["返", "回", "和"]
    english = 'Given "abc" and -3, return 1.5.'
    chinese = '给你 "abc" 和 -3 ，返回 1.5 。'
    assert literals(english) == literals(chinese) == ["abc", "-3", "1.5"]


def test_an_example_is_the_same_in_every_notation() -> None:
    shown = row(statement="Add.\n\nExample 1:\n\nInput: nums = [1, 2], k = 3\nOutput: [4, 5]\n")
    tested = row(tests=(TestCase(input="[1,2]\n3", output="[4,5]"),))
    printed = row(tests=(TestCase(input="1 2\n3\n", output="4 5\n"),))
    (key,) = example_keys(shown)
    assert key.weight == 5
    assert example_keys(tested) == example_keys(printed) == {key}
    assert example_keys(row(tests=(TestCase(input="1 2 3", output="4 6"),))) != {key}
    assert example_keys(row(tests=(TestCase(input="1 2 3", output=""),))) == frozenset()


BREAD = (
    "There are n cities on a line and each of them sells bread at its own price. A baker "
    "walks from the first city to "
    "the last one, may carry at most k loaves, and eats one loaf in every city that he "
    "enters. Find the least that he "
    "pays to reach the last city.\n\n"
    "## Example 1\n\n"
    "Input:\n\n"
    "```\n"
    "5 3\n"
    "17 4 23 42 8\n"
    "```\n\n"
    "Output:\n\n"
    "```\n"
    "29\n"
    "```\n"
    "\n"
    "## Example 2\n\n"
    "Input:\n\n"
    "```\n"
    "4 2\n"
    "31 16 55 91\n"
    "```\n\n"
    "Output:\n\n"
    "```\n"
    "78\n"
    "```\n\n"
    "## Example 3\n\n"
    "Input:\n\n"
    "```\n"
    "6 1\n"
    "12 9 77 81 64 10\n"
    "```\n\n"
    "Output:\n\n"
    "```\n"
    "243\n"
    "```\n"
)
BENCHMARK = Candidate(
    id="bench/bread-for-the-road",
    dataset="bench",
    platform="leetcode",
    url="https://leetcode.com/problems/bread-for-the-road/",
    title="2999. Bread for the Road",
    statement=BREAD,
    starter_code=(
        "class Solution:\n    def leastCost(self, prices: List[int], k: int) -> int:\n        "
    ),
)
INDEX = build_index([BENCHMARK])


def made(statement: str = FLOWERS, **fields: object) -> Candidate:
    return row("set/7", statement, **fields)


def evidence(candidate: Candidate, index: ContaminationIndex = INDEX) -> list[str]:
    return [hit.by for hit in find_hits(candidate, index)]


HEAD = "class Solution:\n    def leastCost(self, prices, k):\n        "
SAMPLES = (
    TestCase(input="5 3\n17 4 23 42 8\n", output="29\n"),
    TestCase(input="k = 2, prices = [4, 31, 16, 55, 91]", output="78"),
    TestCase(input="[6,1]\n[12,9,77,81,64,10]", output="243"),
)
TRANSLATED = (
    "面包师从第一座城市走到最后一座城市，求最少花费。\n\n示例 1：\n\n"
    "输入：n = 5, k = 3, 价格 = [17,4,23,42,8]\n输出：29\n\n"
    "示例 2：\n\n输入：n = 4, k = 2, 价格 = [31,16,55,91]\n输出：78\n\n示例 3：\n\n"
    "输入：n = 6, k = 1, 价格 = [12,9,77,81,64,10]\n输出：243\n"
)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (made(), []),
        (made(title="Flowers", url="https://leetcode.com/problems/flowers/"), []),
        # The address is enough in every country.
        (made(url="https://leetcode.cn/problems/bread-for-the-road/description/"), ["source"]),
        (made(f"{FLOWERS}Find the least that he pays to reach the last city.\n"), []),
        (made(TRANSLATED), ["literals"]),
        # The original is compared beside its translation.
        (made(FLOWERS, statement_found=BREAD), ["words"]),
        # Tests are compared with examples; a signature needs something else in common.
        (made(tests=SAMPLES), ["examples"]),
        (made(tests=SAMPLES[:1]), []),
        (made(starter_code=HEAD), []),
        (made(starter_code=HEAD, tests=SAMPLES[:1]), ["signature"]),
        # So does a short title.
        (made(title="Bread for the road"), ["title"]),
        (made(title="Bread"), []),
        (made(title="Bread", tests=SAMPLES[:1]), ["title"]),
    ],
)
def test_what_two_problems_have_in_common_is_found(one: Candidate, expected: list[str]) -> None:
    if one.title == "Bread":
        index = build_index([BENCHMARK.model_copy(update={"title": "Bread"})])
    else:
        index = INDEX
    assert evidence(one, index) == expected


SHORT_STORIES = (
    "A ferry takes all waiting cars on board. What is its load?",
    "Masons measure the height of every block that they have cut. How tall is the tallest?",
    "Every flower bed in the park has some tulips. For how many beds is their number even?",
    "A trader only buys the two cheapest crates on the market. How many coins does he need?",
    "People of all ages wait for ice cream. How many belong to the largest group of one age?",
)


@pytest.mark.parametrize(
    "layout",
    [
        (
            "The input consists of an integer n followed by n integers. Output a single "
            "integer, the answer."
        ),
        (
            "The first line contains an integer n (2 <= n <= 100). The second line contains n "
            "integers, each between 1 "
            "and 1000, separated by spaces. Print a single integer on a line of its own."
        ),
        (
            "Each test contains multiple test cases. The first line contains the number of "
            "test cases t (1 <= t <= 10^4). "
            "The first line of each test case contains an integer n (1 <= n <= 10^5), the "
            "second line n integers. It is "
            "guaranteed that the sum of n over all test cases does not exceed 10^5. For each "
            "of them print one integer."
        ),
    ],
)
def test_how_input_and_output_are_laid_out_says_nothing(layout: str) -> None:
    benchmark, *others = (made(f"{story} {layout}") for story in SHORT_STORIES)
    index = build_index([benchmark])
    assert evidence(benchmark, index) == ["words"]
    assert [evidence(one, index) for one in others] == [[]] * len(others)


def test_what_many_benchmark_problems_have_says_nothing() -> None:
    node = (
        "Definition of a binary tree node: class TreeNode with val, left and right, where both "
        "children may be None "
    )
    node += "and every val is a whole number."
    problems = []
    for number, story in enumerate(SHORT_STORIES):
        problems.append(row(f"bench/{number}", f"{node} {story}"))
    asked = made(f"{node} Count the leaves.")
    assert evidence(asked, build_index(problems[:2])) == ["words", "words"]
    assert evidence(asked, build_index(problems)) == []
    # One problem that several benchmarks list is no boilerplate.
    copies = [problems[0].model_copy(update={"id": f"copy{number}/0"}) for number in range(5)]
    assert evidence(problems[0], build_index(copies)) == ["words"] * 5


@pytest.fixture(scope="module")
def index() -> ContaminationIndex:
    return build_index(livecodebench())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_copies_of_livecodebench_are_found_by_their_texts_alone(
    index: ContaminationIndex, language: str
) -> None:
    rows = [arranged(one) for one in deepseek(language)]
    figures = measure(rows, index, known_copies(rows, livecodebench()), text_only=True)
    assert figures["num_copies"] == 128
    assert figures["num_found"] >= 126, figures["missed"]


@pytest.mark.parametrize("name", ["kodsport", "codecontests"])
def test_other_sets_are_clean(index: ContaminationIndex, name: str) -> None:
    rows = ALL[name]()[:55]
    figures = measure(rows, index, {})
    assert len(rows) >= 35
    assert len(figures["other_hits"]) <= 0.01 * len(rows), figures["other_hits"]
