from __future__ import annotations

import pytest
from real_texts import ALL

from microcoder.data.clean import process
from microcoder.data.formats.candidates import Candidate, Rejection, Solution
from microcoder.judge.core.types import TestCase

RAW = Candidate(
    id="set/1",
    dataset="set",
    title="A &amp; B",
    statement_found=(
        "<p>Print the sum of <b>two</b> numbers, each at most 10<sup>9</sup>.</p><h3>Input</h3><p>Two numbers a and b "
        "(1 &le; a, b &le; 10<sup>9</sup>).</p><h3>Output</h3><p>One number.</p><h3>Sample Input</h3><pre>1 2</pre>"
        "<h3>Sample Output</h3><pre>3</pre>"
    ),
    tests=(
        TestCase(input="1 2\r\n", output="3"),
        TestCase(input="1 2", output="3"),
        TestCase(input="5 5", output="10"),
    ),
)


def test_a_raw_page_becomes_a_statement_in_the_one_layout() -> None:
    done = process(RAW)
    assert isinstance(done, Candidate)
    assert done.statement == (
        "Print the sum of **two** numbers, each at most 10^9.\n\n## Input\n\nTwo numbers a and b (1 ≤ a, b ≤ 10^9).\n\n"
        "## Output\n\nOne number.\n\n## Example 1\n\nInput:\n\n```\n1 2\n```\n\nOutput:\n\n```\n3\n```\n"
    )
    assert done.statement_found == RAW.statement_found
    assert (done.title, done.natural_language, done.flags) == ("A & B", "en", ())
    assert [test.input for test in done.tests] == ["1 2\n", "5 5\n"]
    assert {line.step for line in done.lineage} == {
        "clean/2", "arrange_sections/1", "normalise_tests/2", "identify_language/1"
    }  # fmt: skip
    assert process(done) == done


def test_what_cannot_go_on_is_turned_away_with_its_reason() -> None:
    reasons = {
        "no_statement": RAW.model_copy(update={"statement_found": "<nav>Home</nav><p> </p>"}),
        "conflicting_tests": RAW.model_copy(update={"tests": (*RAW.tests, TestCase(input="1 2", output="4"))}),
        "broken_tests": RAW.model_copy(update={"fn_name": "f"}),
        "no_signature": RAW.model_copy(update={"fn_name": "f", "tests": (TestCase(input="1", output="2"),)}),
    }
    for reason, candidate in reasons.items():
        done = process(candidate)
        assert isinstance(done, Rejection)
        assert (done.reason, done.stage) == (reason, "process")
        assert done.candidate is not None


def test_a_function_gets_its_signature_from_a_solution() -> None:
    solution = Solution(code="def f(x):\n    return x + 1\n")
    tests = (TestCase(input="1", output="2"),)
    done = process(RAW.model_copy(update={"fn_name": "f", "tests": tests, "solutions": (solution,)}))
    assert isinstance(done, Candidate)
    assert done.starter_code == "def f(x):\n    "


def test_real_english_problems_pass_and_chinese_ones_are_kept_apart() -> None:
    for name in ("deepseek_en", "livecodebench"):
        for problem in ALL[name]()[::20]:
            done = process(problem)
            assert isinstance(done, Candidate), done
            assert process(done).statement == done.statement  # type: ignore[union-attr]
    for problem in ALL["deepseek_zh"]()[::20]:
        done = process(problem)
        assert isinstance(done, Rejection)
        assert done.reason == "not_english"


@pytest.mark.parametrize("default", ["+".join("1" * 1500), "-" * 20_000 + "1"])
def test_a_signature_too_deep_to_read_is_none(default: str) -> None:
    given = Candidate(id="a/1", dataset="a", statement_found="Return the sum.", fn_name="f",
                      solutions=(Solution(code=f"def f(a={default}):\n    return a\n"),))  # fmt: skip
    found = process(given)
    assert isinstance(found, Rejection)
    assert found.reason in ("no_signature", "not_english")


def test_a_dropped_test_is_flagged() -> None:
    tests = (TestCase(input="[1]", output="1"), TestCase(input="[1", output="1"))
    given = Candidate(id="a/1", dataset="a", statement_found="Return the sum of the numbers in the list that is given.",
                      fn_name="f", starter_code="def f(a):\n", tests=tests)  # fmt: skip
    found = process(given)
    assert isinstance(found, Candidate)
    assert "tests_dropped" in found.flags
