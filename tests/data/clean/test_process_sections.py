from __future__ import annotations

import re
from collections import Counter

import pytest
from real_texts import ALL

from microcoder.data.clean.sections import Example, normalise, render, split

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
