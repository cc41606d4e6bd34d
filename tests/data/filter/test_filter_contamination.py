from __future__ import annotations

import pickle

import pytest
from decontamination import arranged, known_copies, measure
from real_texts import ALL, deepseek, livecodebench

from microcoder.data.filter import ContaminationIndex, build_index, find_hits
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.types import TestCase

STORY = (
    "There are n cities on a line and each of them sells bread at its own price. A baker walks from the first city to "
    "the last one, may carry at most k loaves, and eats one loaf in every city that he enters. Find the least that he "
    "pays to reach the last city.\n\n## Example 1\n\nInput:\n\n```\n5 3\n17 4 23 42 8\n```\n\nOutput:\n\n```\n29\n```\n"
    "\n## Example 2\n\nInput:\n\n```\n4 2\n31 16 55 91\n```\n\nOutput:\n\n```\n78\n```\n\n## Example 3\n\n"
    "Input:\n\n```\n6 1\n12 9 77 81 64 10\n```\n\nOutput:\n\n```\n243\n```\n"
)
OTHER = (
    "A gardener plants flowers in a circle of m beds so that no two neighbours have one colour, and waters them each "
    "day with as little water as the weather allows. Count the plantings that differ in at least one bed, and print "
    "the count modulo the prime that is given on the last line of the input.\n"
)
BENCHMARK = Candidate(
    id="bench/bread-for-the-road",
    dataset="bench",
    platform="leetcode",
    url="https://leetcode.com/problems/bread-for-the-road/",
    title="2999. Bread for the Road",
    statement=STORY,
    starter_code="class Solution:\n    def leastCost(self, prices: List[int], k: int) -> int:\n        ",
)
INDEX = build_index([BENCHMARK])


def row(statement: str = OTHER, **fields: object) -> Candidate:
    return Candidate(id="set/7", dataset="set", statement=statement, **fields)  # type: ignore[arg-type]


def evidence(candidate: Candidate, index: ContaminationIndex = INDEX) -> list[str]:
    return [hit.by for hit in find_hits(candidate, index)]


TRANSLATED = (
    "面包师从第一座城市走到最后一座城市，求最少花费。\n\n示例 1：\n\n"
    "输入：n = 5, k = 3, 价格 = [17,4,23,42,8]\n输出：29\n\n"
    "示例 2：\n\n输入：n = 4, k = 2, 价格 = [31,16,55,91]\n输出：78\n\n示例 3：\n\n"
    "输入：n = 6, k = 1, 价格 = [12,9,77,81,64,10]\n输出：243\n"
)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (row(), []),
        (row(title="Flowers", url="https://leetcode.com/problems/flowers/"), []),
        # The address is enough in every country.
        (row(url="https://leetcode.cn/problems/bread-for-the-road/description/"), ["source"]),
        (row(f"{OTHER}Find the least that he pays to reach the last city.\n"), []),
        (row(TRANSLATED), ["literals"]),
        # The original is compared beside its translation.
        (row(OTHER, statement_found=STORY), ["words"]),
    ],
    ids=["nothing in common", "another title", "address", "one sentence", "numbers", "original"],
)
def test_what_two_problems_have_in_common_is_found(one: Candidate, expected: list[str]) -> None:
    assert evidence(one) == expected


def test_a_long_title_is_enough_and_a_short_one_is_not() -> None:
    assert evidence(row(title="Bread for the road")) == ["title"]
    short = build_index([BENCHMARK.model_copy(update={"title": "Bread"})])
    assert evidence(row(title="Bread"), short) == []
    sample = (TestCase(input="5 3\n17 4 23 42 8\n", output="29\n"),)
    assert evidence(row(title="Bread", tests=sample), short) == ["title"]


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
        "The input consists of an integer n followed by n integers. Output a single integer, the answer.",
        "The first line contains an integer n (2 <= n <= 100). The second line contains n integers, each between 1 "
        "and 1000, separated by spaces. Print a single integer on a line of its own.",
        "Each test contains multiple test cases. The first line contains the number of test cases t (1 <= t <= 10^4). "
        "The first line of each test case contains an integer n (1 <= n <= 10^5), the second line n integers. It is "
        "guaranteed that the sum of n over all test cases does not exceed 10^5. For each of them print one integer.",
    ],
)
def test_how_input_and_output_are_laid_out_says_nothing(layout: str) -> None:
    benchmark, *others = (row(f"{story} {layout}") for story in SHORT_STORIES)
    index = build_index([benchmark])
    assert evidence(benchmark, index) == ["words"]
    assert [evidence(one, index) for one in others] == [[]] * len(others)


def test_what_many_benchmark_problems_have_says_nothing() -> None:
    node = "Definition of a binary tree node: class TreeNode with val, left and right, where both children may be None "
    node += "and every val is a whole number."
    problems = [
        Candidate(id=f"bench/{number}", dataset="bench", statement=f"{node} {story}")
        for number, story in enumerate(SHORT_STORIES)
    ]
    asked = row(f"{node} Count the leaves.")
    assert evidence(asked, build_index(problems[:2])) == ["words", "words"]
    assert evidence(asked, build_index(problems)) == []
    # One problem that several benchmarks list is no boilerplate.
    copies = [problems[0].model_copy(update={"id": f"copy{number}/0"}) for number in range(5)]
    assert evidence(problems[0], build_index(copies)) == ["words"] * 5


def test_tests_are_compared_with_the_examples() -> None:
    tests = (
        TestCase(input="5 3\n17 4 23 42 8\n", output="29\n"),
        TestCase(input="k = 2, prices = [4, 31, 16, 55, 91]", output="78"),
        TestCase(input="[6,1]\n[12,9,77,81,64,10]", output="243"),
    )
    assert evidence(row(tests=tests)) == ["examples"]
    assert evidence(row(tests=tests[:1])) == []


def test_a_signature_needs_something_else_in_common() -> None:
    code = "class Solution:\n    def leastCost(self, prices, k):\n        "
    assert evidence(row(starter_code=code)) == []
    sample = (TestCase(input="5 3\n17 4 23 42 8\n", output="29\n"),)
    assert evidence(row(starter_code=code, tests=sample)) == ["signature"]


def test_each_problem_is_named_once() -> None:
    twin = BENCHMARK.model_copy(update={"id": "bench/twin", "url": "", "title": "", "platform": ""})
    hits = find_hits(BENCHMARK, build_index([twin, BENCHMARK]))
    assert [(hit.problem_id, hit.by) for hit in hits] == [
        ("bench/bread-for-the-road", "source"),
        ("bench/twin", "words"),
    ]


def test_the_index_travels_to_workers_and_does_not_depend_on_the_order() -> None:
    problems = livecodebench()[:20]
    index = build_index(problems)
    sent = pickle.loads(pickle.dumps(index))
    reversed_index = build_index(problems[::-1])
    for problem in problems[::7]:
        assert find_hits(problem, index) == find_hits(problem, sent) == find_hits(problem, reversed_index) != []


@pytest.fixture(scope="module")
def index() -> ContaminationIndex:
    return build_index(livecodebench())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_copies_of_livecodebench_are_found_by_their_texts_alone(index: ContaminationIndex, language: str) -> None:
    rows = [arranged(one) for one in deepseek(language)]
    figures = measure(rows, index, known_copies(rows, livecodebench()), text_only=True)
    assert figures.num_copies == 128
    assert figures.num_found >= 126, figures.missed


@pytest.mark.parametrize("name", ["kodsport", "codecontests"])
def test_other_sets_are_clean(index: ContaminationIndex, name: str) -> None:
    rows = ALL[name]()[:55]
    figures = measure(rows, index, {})
    assert len(rows) >= 35
    assert len(figures.other_hits) <= 0.01 * len(rows), figures.other_hits
