"""Statements: their parts, lost powers, what is missing, prompts that sources bake in."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_texts import ALL, kodsport, livecodebench

from microcoder.data.clean.bounds import parse_bounds, restore_powers
from microcoder.data.clean.sections import Example, find_starter_code, normalise, render, split, strip_instruction
from microcoder.data.clean.tests import find_flags
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.judge.core.prompts import format_instruction
from microcoder.judge.core.types import Checker, TestCase

LAYOUTS = {
    "leetcode": (
        "Add two numbers.\n\nExample 1:\n\nInput: a = 1, b = 2\nOutput: 3\nExplanation: 1 + 2 is 3.\n\n"
        "Example 2:\n\nInput: a = 0, b = 0\nOutput: 0\n\nConstraints:\n\n0 <= a, b <= 9\n"
    ),
    "apps": (
        "Add two numbers.\n\n-----Input-----\n\nTwo numbers.\n\n-----Output-----\n\nTheir sum.\n\n-----Examples-----\n"
        "Input\n1 2\n\nOutput\n3\n\nInput\n0 0\n\nOutput\n0\n\n-----Note-----\nEasy.\n"
    ),
    "atcoder": (
        "Add two numbers.\n\nConstraints\n\n- 0 <= a, b <= 9\n\nInput\n\nTwo numbers.\n\nOutput\n\nTheir sum.\n\n"
        "Sample Input 1\n\n1 2\n\nSample Output 1\n\n3\n\nThe sum of one and two is three.\n\n"
        "Sample Input 2\n\n0 0\n\nSample Output 2\n\n0\n"
    ),
    "markdown": (
        "Add two numbers.\n\n### Input Format\nTwo numbers.\n\n### Output Format\nTheir sum.\n\n**Sample Input**\n"
        "```\n1 2\n```\n**Sample Output**\n```\n3\n```\n**Sample Input**\n"
        "```\n0 0\n```\n**Sample Output**\n```\n0\n```\n"
    ),
    "chinese": (
        "求和。\n\n示例 1：\n\n输入：a = 1, b = 2\n输出：3\n解释：一加二。\n\n"
        "示例 2：\n\n输入：a = 0, b = 0\n输出：0\n\n提示：\n\n0 <= a, b <= 9\n"
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_examples(layout: str) -> None:
    examples = split(LAYOUTS[layout]).examples
    values = [(*re.findall(r"\d", one.input), one.output.strip()) for one in examples]
    assert values == [("1", "2", "3"), ("0", "0", "0")]
    normal = normalise(LAYOUTS[layout])
    assert "## Example 1\n\nInput:\n\n```\n" in normal
    assert normalise(normal) == normal


def test_the_parts_are_told_apart() -> None:
    sections = split(LAYOUTS["atcoder"])
    assert sections.statement == "Add two numbers."
    assert sections.input == "Two numbers."
    assert sections.output == "Their sum."
    assert sections.constraints == "- 0 <= a, b <= 9"
    assert sections.examples[0] == Example("1 2", "3", "The sum of one and two is three.")


def test_a_statement_without_parts_stays_as_it_is() -> None:
    text = "Return the sum of a and b.\n\n>>> add(1, 2)\n3\n"
    assert normalise(text) == text


@pytest.mark.parametrize("name", ALL)
def test_real_statements_keep_their_words_and_have_one_layout(name: str) -> None:
    problems = ALL[name]()
    num_examples = 0
    for problem in problems[::2]:
        sections = split(problem.statement)
        normal = render(sections)
        num_examples += bool(sections.examples)
        assert render(split(normal)) == normal
        before, after = (Counter(re.findall(r"\w{4,}|\d+", text)) for text in (problem.statement, normal))
        labels = {"Example", "Examples", "Sample", "Input", "Output", "Explanation", "Constraints", "Note", "Format"}
        lost = {word for word in before - after if word.title() not in labels and word.isascii() and not word.isdigit()}
        assert len(lost) <= 6, (problem.id, lost)
    if name not in ("kodsport", "codecontests"):  # whose statements show none
        assert num_examples >= 0.98 * len(problems[::2])


def test_a_sentence_over_two_lines_opens_no_example() -> None:
    text = "Build fences.\n\n## Note\n\nIt shows one way of building the fences for\nSample Case #3:\n\n![](a.png)"
    assert split(text).note.endswith("for\nSample Case #3:\n\n![](a.png)")
    assert split("Add.\n\nSample Case #3:\n\nInput: 1\nOutput: 2").examples[0].output == "2"


def test_a_label_without_an_input_stays_where_it_explains() -> None:
    text = (
        "Go.\n\n## Input\n\nA maze.\n\n## Example 1\n\nInput:\n\n```\n1\n```\n\nOutput:\n\n```\n2\n```\n\n"
        "Explanation:\n\nShortest programs:\n\n- Sample Case #1:\n\n  ```\n  1: W\n  ```\n"
        "- Sample Case #2:\n\n  Any will do.\n"
    )
    (example,) = split(text).examples
    assert example.explanation.endswith(
        "- Sample Case #1:\n\n  ```\n  1: W\n  ```\n- Sample Case #2:\n\n  Any will do."
    )
    assert normalise(text) == text


def test_an_example_that_is_told_stays_in_the_story() -> None:
    text = "Rules.\n\n### Example\n\nWith 2 of them, 3 die.\n\nHow many are left?\n\n## Input\n\nA number.\n"
    assert split(text).statement.endswith("### Example\n\nWith 2 of them, 3 die.\n\nHow many are left?")


def test_what_stands_above_an_input_is_the_examples_own() -> None:
    text = (
        "Sum.\n\n## Input\n\nTwo.\n\nSample Input\n\n1 2\n\nSample Output\n\n3\n\nEasy.\n\n"
        "### Additional Sample - Test Set 2\n\n*It fits Test Set 2.*\n\nSample Input\n\n9 9\n\nSample Output\n\n18\n"
    )
    first, second = split(text).examples
    assert (first.intro, second.intro) == ("", "Additional Sample - Test Set 2\n\n*It fits Test Set 2.*")
    normal = normalise(text)
    assert "## Example 2\n\nAdditional Sample - Test Set 2\n\n*It fits Test Set 2.*\n\nInput:\n\n```\n9 9\n" in normal
    assert normalise(normal) == normal
    assert split(normal).examples == (first, second)
    pictured = (
        "Draw.\n\nExample 1:\n\n![](one.png)\n\nInput: n = 1\nOutput: 2\n\nExample 2:\n\nInput: n = 2\nOutput: 4\n"
    )
    assert [one.intro for one in split(pictured).examples] == ["![](one.png)", ""]


def test_a_long_line_behind_a_label_is_read() -> None:
    numbers, words = ", ".join(["12"] * 200), "The sum is right. " * 30
    text = f"Sum.\n\nExample 1:\n\nInput: nums = [{numbers}]\nOutput: 2400\nExplanation: {words}\n"
    (example,) = split(text).examples
    assert (example.input, example.output) == (f"nums = [{numbers}]", "2400")
    assert example.explanation == words.strip()


@pytest.mark.parametrize(
    ("lost", "restored"),
    [
        ("1 <= n <= 104, modulo 109 + 7", "1 <= n <= 10^4, modulo 10^9 + 7"),
        ("modulo 109 + 7", "modulo 10^9 + 7"),
        ("`-231 <= x <= 231 - 1`", "`-2^31 <= x <= 2^31 - 1`"),
        ("1 <= nums[i] <= 220 - 1", "1 <= nums[i] <= 2^20 - 1"),
        ("-228 <= nums[i] <= 228", "-2^28 <= nums[i] <= 2^28"),
        ("in the range [-231, 231 - 1]", "in the range [-2^31, 2^31 - 1]"),
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


BOUNDS = "1 <= n <= 9.\n"


def flags_of(statement: str, **fields: object) -> tuple[str, ...]:
    return find_flags(Candidate(id="a/1", dataset="a", statement=BOUNDS + statement, **fields))  # type: ignore[arg-type]


KATTIS = Checker(type="program", code="exit(42)", protocol="kattis")


@pytest.mark.parametrize(
    ("text", "fields", "flags"),
    [
        ("This is an interactive problem. Flush the output after each query.", {}, ("interactive",)),
        ("If there are multiple solutions, print any of them.", {}, ("many_answers",)),
        ("You may return the answer in any order.", {}, ("many_answers",)),
        # A checker decides on many answers.
        ("If there are several solutions, print any of them.", {"checker": KATTIS}, ()),
        (
            "![a squirrel](squirrel.png)\n" + "A squirrel lives in a tree with nodes and edges and collects nuts. " * 4,
            {},
            ("has_image",),
        ),
        ("If there are multiple rectangles with the longest diagonal, return the area of the largest.", {}, ()),
        ("Choose any index i and increase nums[i]. Print the sum of the file sizes.", {}, ()),
        (
            "If there is more than one unhappy person in the restaurant, any one of them may buy something first.",
            {},
            (),
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_stands_in_the_way_is_flagged(text: str, fields: dict[str, Any], flags: tuple[str, ...]) -> None:
    assert flags_of(text, **fields) == flags


@pytest.mark.parametrize(
    ("text", "is_flagged"),
    [("Two non-negative integers $n$ and $m$ ($n,m \\le 500$).", False), ("Two integers n and m. Good luck.", True)],
)
def test_a_bound_without_a_lower_end_is_a_constraint(text: str, is_flagged: bool) -> None:
    flags = find_flags(Candidate(id="a/1", dataset="a", statement=text))
    assert ("no_constraints" in flags) == is_flagged


def test_samples_are_looked_for_in_the_tests() -> None:
    text = "Add.\n\nExample 1:\n\nInput: a = [1, 2]\nOutput: 3\n"
    assert flags_of(text, tests=(TestCase(input="[1,2]", output="3"),)) == ()
    assert flags_of(text, tests=(TestCase(input="[2,2]", output="4"),)) == ("samples_missing",)
    assert flags_of(text, tests=(TestCase(input="[1,2]", output="4"),)) == ("samples_differ",)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        (
            "$1 \\leq n, m \\leq 2 \\cdot 10^5$, `-10^9 <= a_i <= 10^9`, 0 ≤ |s| < 1000, $1 \\le k \\le n$, "
            "1 <= q <= 200 000",
            {"n": (1, 2e5), "m": (1, 2e5), "a_i": (-1e9, 1e9), "s": (0, 1000), "q": (1, 200000)},
        ),
        ("1 ≤ **N** ≤ 100, 2 ≤ **K_i** < 2**20", {"N": (1, 100), "K_i": (2, 2**20)}),
        # A bound beyond every number is ignored.
        ("1 <= n <= 1000000000000^30\n1 <= k <= 10^5\n", {"k": (1, 1e5)}),
        (f"1 <= n <= 10^{'9' * 5000}\n1 <= k <= 10^5\n", {"k": (1, 1e5)}),
        ("$2\\leq N\\leq100$", {"N": (2, 100)}),
        ("1 <= K<= N <= 2\\times 10 ^ 5", {"K": (1, 2e5), "N": (1, 2e5)}),
        ("2 <= n == possible.length <= 10^5", {"n": (2, 1e5), "possible.length": (2, 1e5)}),
        ("1 <= n <= 2 * 105, 1 <= m <= 3 * 100", {"n": (1, 2e5), "m": (1, 300)}),
        (" * 3 <= n <= 50\n * 1 <= m <= 10\n", {"n": (3, 50), "m": (1, 10)}),
        ("1 <= i <= H and 1 <= j <= 9", {"j": (1, 9)}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bounds_are_read_as_they_are_written(text: str, bounds: dict[str, tuple[float, float]]) -> None:
    assert {bound.name: (bound.low, bound.high) for bound in parse_bounds(text)} == bounds


def test_real_statements_state_bounds() -> None:
    for problems, least in ((livecodebench(), 0.9), (kodsport(), 0.6)):
        assert sum(bool(parse_bounds(one.statement)) for one in problems) >= least * len(problems)


def test_prompts_that_sources_bake_in_go() -> None:
    found = (
        "Solve the following coding problem using the programming language python:\n\nAdd two numbers.\n\n"
        "The input will be stdin and you should print your solution to stdout\n\n\n"
        "Now solve the problem and return the code."
    )
    assert strip_instruction(found) == "Add two numbers.\n"
    nemotron = (
        "You are a helpful and harmless assistant. You should think step-by-step before responding to the instruction "
        "below.\n\nPlease use python programming language only.\n\nYou must use ```python for just the final solution "
        "code block with the following format:\n```python\n# Your code here\n```\n\nAdd two numbers.\n"
    )
    assert strip_instruction(nemotron) == "Add two numbers.\n"


def test_starter_code_at_the_end_goes_only_where_the_record_has_it() -> None:
    text = "Add.\n\nPlease complete the following python code precisely:\n```python\ndef add(a, b):\n    \n```\n"
    assert strip_instruction(text, "def add(a, b):\n") == "Add.\n"
    assert "def add" in strip_instruction(text, "def other(a):\n")


def test_each_style_is_asked_in_its_own_words() -> None:
    assert "standard input" in format_instruction("python", fn_name=None, starter_code=None)
    function = format_instruction("python", fn_name="add", starter_code="def add(a, b):\n    ")
    assert "`add`" in function
    assert "def add(a, b):" in function
    assert "C++" in format_instruction("cpp", fn_name=None, starter_code=None)


def test_a_signature_is_found_in_an_accepted_solution() -> None:
    wrong = Solution(code="def add(x): return 1", known="wrong_answer")
    right = Solution(code="class Solution:\n    def add(self, a: int, b=2) -> int:\n        return a + b\n")
    candidate = Candidate(id="a/1", dataset="a", fn_name="add", solutions=(wrong, right))
    assert find_starter_code(candidate) == "class Solution:\n    def add(self, a: int, b=2) -> int:\n        "
    assert find_starter_code(candidate.model_copy(update={"solutions": (wrong,)})) is None
