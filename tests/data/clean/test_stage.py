"""The stage as a whole, and tests in one form."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.data.clean.normal_tests import normalise_tests
from microcoder.data.clean.sections import split
from microcoder.data.clean.stage import process
from microcoder.data.formats.candidates import Candidate, Rejection, Solution
from microcoder.data.formats.statements import find_order
from microcoder.judge.core.types import Call, Checker, Interactor, TestCase
from tests.data.clean.real_texts import ALL

RAW = Candidate(
    id="set/1",
    dataset="set",
    title="A &amp; B",
    statement_found=(
        "<p>Print the sum of <b>two</b> numbers, each at most "
        "10<sup>9</sup>.</p><h3>Input</h3><p>Two numbers a and b "
        "(1 &le; a, b &le; 10<sup>9</sup>).</p><h3>Output</h3><p>One number.</p><h3>Sample "
        "Input</h3><pre>1 2</pre>"
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
        "Print the sum of **two** numbers, each at most 10^9.\n\n"
        "## Input\n\n"
        "Two numbers a and b (1 ≤ a, b ≤ 10^9).\n\n"
        "## Output\n\n"
        "One number.\n\n"
        "## Example 1\n\n"
        "Input:\n\n"
        "```\n"
        "1 2\n"
        "```\n\n"
        "Output:\n\n"
        "```\n"
        "3\n"
        "```\n"
    )
    assert done.statement_found == RAW.statement_found
    assert done.title == "A & B"
    assert done.natural_language == "en"
    assert done.flags == ()
    assert [test.input for test in done.tests] == ["1 2\n", "5 5\n"]
    assert {line.step for line in done.lineage} == {
        "clean/2",
        "arrange_sections/1",
        "normalise_tests/2",
        "identify_language/1",
    }
    assert process(done) == done


def test_tags_that_the_tests_hold_are_what_the_statement_speaks_of() -> None:
    asked = (
        "Wrap each word of the text that is among the given words in a pair of tags, "
        "<b> and </b>, and return the text that you get, of 1 &lt;= n letters."
    )
    tagged = TestCase(input='"abc"\n["abc"]', output='"<b>abc</b>"')
    row = Candidate(
        id="a", dataset="d", statement_found=asked, fn_name="f", starter_code="def f(s):"
    )
    done = process(row.model_copy(update={"tests": (tagged,)}))
    assert isinstance(done, Candidate)
    assert "<b> and </b>" in done.statement
    # Written as entities they are no less what it speaks of.
    assert "1 <= n" in done.statement
    escaped = asked.replace("<", "&lt;").replace(">", "&gt;")
    decoded = process(row.model_copy(update={"tests": (tagged,), "statement_found": escaped}))
    assert isinstance(decoded, Candidate)
    assert decoded.statement == done.statement
    # A page whose tests have no tags is bold there.
    plain = TestCase(input='"abc"\n["abc"]', output='"abc"')
    bold = process(row.model_copy(update={"tests": (plain,)}))
    assert isinstance(bold, Candidate)
    assert "<b>" not in bold.statement


def test_what_cannot_go_on_is_turned_away_with_its_reason() -> None:
    reasons = {
        "no_statement": RAW.model_copy(update={"statement_found": "<nav>Home</nav><p> </p>"}),
        "too_long": RAW.model_copy(update={"statement_found": "Print the sum. " * 7000}),
        "conflicting_tests": RAW.model_copy(
            update={"tests": (*RAW.tests, TestCase(input="1 2", output="4"))}
        ),
        "broken_tests": RAW.model_copy(update={"fn_name": "f"}),
        "no_signature": RAW.model_copy(
            update={"fn_name": "f", "tests": (TestCase(input="1", output="2"),)}
        ),
    }
    for reason, candidate in reasons.items():
        done = process(candidate)
        assert isinstance(done, Rejection)
        assert done.reason == reason
        assert done.stage == "process"
        assert done.candidate is not None


def test_an_interactors_inputs_may_be_equal() -> None:
    tests = (*RAW.tests, TestCase(input="1 2", output="4"))
    changes = {"tests": tests, "interactor": Interactor(code="pass")}
    done = process(RAW.model_copy(update=changes))
    assert isinstance(done, Candidate)
    assert [test.output for test in done.tests] == ["3\n", "10\n", "4\n"]


CALLED = RAW.model_copy(
    update={
        "fn_name": "count_vowels",
        "starter_code": "def get_count(text):\n    ",
        "tests": (TestCase(input='"ab"', output="1"),),
    }
)


def test_a_starter_that_names_another_function_is_turned_away() -> None:
    done = process(CALLED)
    assert isinstance(done, Rejection)
    assert done.reason == "other_function"


def test_a_solutions_head_replaces_a_starter_that_names_another_function() -> None:
    solution = Solution(code="def count_vowels(text):\n    return 1\n")
    done = process(CALLED.model_copy(update={"solutions": (solution,)}))
    assert isinstance(done, Candidate)
    assert done.starter_code == "def count_vowels(text):\n    "


def test_a_design_whose_class_is_called_solution_stays() -> None:
    methods = ("def __init__(self, nums):\n        pass", "def reset(self):\n        ")
    starter = "\n    ".join(("class Solution:", *methods))
    design = {
        "fn_name": "Solution",
        "call": Call(style="design"),
        "starter_code": starter,
        "tests": (TestCase(input='["Solution", "reset"]\n[[[1]], []]', output="[null, [1]]"),),
    }
    done = process(RAW.model_copy(update=design))
    assert isinstance(done, Candidate)
    assert done.starter_code == starter


@pytest.mark.parametrize(
    "starter",
    [
        "class Solution:\n    def count_vowels(self, text):\n        ",
        "import math\n",
        "class Node:\n    pass\n\ndef count_vowels(text):\n    ",
    ],
)
def test_a_starter_with_the_function_stays(starter: str) -> None:
    done = process(CALLED.model_copy(update={"starter_code": starter}))
    assert isinstance(done, Candidate)
    assert done.starter_code == starter


def pairs(*written: tuple[str, str]) -> tuple[TestCase, ...]:
    return tuple(TestCase(input=given, output=printed) for given, printed in written)


DECIDES = Checker(type="program", code="exit(42)", protocol="kattis")


def normalised(*written: tuple[str, str], **fields: Any) -> Candidate | Rejection:
    return normalise_tests(Candidate(id="a/1", dataset="a", tests=pairs(*written), **fields))


def test_one_encoding_one_newline_each_test_once_with_its_group() -> None:
    grouped = normalised(
        ("\ufeff1 2\r\n", "3"),
        ("1 2\n\n", "3 \n\n"),
        (" 4 5", "9 \n"),
        groups=("sample/", "a", "b"),
    )
    # Two outputs for one input are kept where a program decides;
    # an empty last line of an input stays.
    two = normalised(("1", "2"), ("1\n", "3"), checker=DECIDES)
    empty = normalised(("1 500\r\n\r\n", "0\n\n"), ("\n", "0"))
    # Arguments are JSON, written in one way.
    called = normalised(('[1,2]\n"a"', "true"), ("[1,", "3"), fn_name="f")
    for found, said, *left in (
        (grouped, "1 repeated", ("1 2\n", "3\n"), (" 4 5\n", "9 \n")),
        (empty, "", ("1 500\n\n", "0\n"), ("\n", "0\n")),
        (two, "1 conflicting", ("1\n", "2\n"), ("1\n", "3\n")),
        (called, "1 broken", (('[1, 2]\n"a"'), "true")),
    ):
        assert isinstance(found, Candidate)
        assert found.tests == pairs(*left)
        assert found.lineage[-1].detail == said
        assert found.groups == (("sample", "b") if found is grouped else ())


NUMBERS = " ".join(map(str, range(1000, 1080)))


def test_a_test_of_which_a_site_shows_the_beginning_is_dropped_alone() -> None:
    dots = "...\n" * 60 + "#...\n"
    done = normalised(
        (f"80\n{NUMBERS}...", "5"),
        ("1\n7", f"{NUMBERS}..."),
        ("1\n8", "8"),
        (dots, "3"),
        ("a...", "b"),
        ("100000\n4 1 3...", "8"),
        ("100000\n4 1 3 \u2026", "8"),
        ("3", "3 2 1..."),
    )
    assert isinstance(done, Candidate)
    left = (("1\n8\n", "8\n"), (dots, "3\n"), ("a...\n", "b\n"), ("3\n", "3 2 1...\n"))
    assert done.tests == pairs(*left)
    assert done.lineage[-1].detail == "4 truncated"
    assert done.flags == ("tests_dropped",)


@given(st.lists(st.tuples(st.text(), st.text()), max_size=6))
def test_normalising_twice_changes_nothing(written: list[tuple[str, str]]) -> None:
    once = normalised(*written, checker=DECIDES)
    assert isinstance(once, Candidate)
    assert normalise_tests(once) == once


def candidate(statement: str, output: str, **fields: object) -> Candidate:
    row = {
        "id": "a",
        "dataset": "d",
        "statement": statement,
        "fn_name": "f",
        "tests": pairs(("1", output)),
    }
    return Candidate.model_validate(row | fields)


@pytest.mark.parametrize(
    ("statement", "output", "lists"),
    [
        ("You may return the answer in any order.", "[[1, 2], [3]]", "outermost"),
        (
            "Return an array of size two containing the two numbers (in any order).",
            "[3, 4]",
            "outermost",
        ),
        (
            "Note that the integers in the lists may be returned in any order.",
            "[[1, 3], [4, 6]]",
            "inner",
        ),
        ("Return the answer in any arbitrary order.", "[1, 2]", "outermost"),
        ("Return the list in arbitrary order.", "[1, 2]", "outermost"),
        ("The order of the output does not matter.", "[1, 2]", "outermost"),
        ("The order that the days are returned in does not matter.", "[1, 2]", "outermost"),
        ("The order of elements in the result doesn't matter.", "[1, 2]", "outermost"),
        (
            "The order of the output and the order of the triplets does not matter.",
            "[[1, 2]]",
            "all",
        ),
        ("The order of a and b does not matter.", "[1, 2]", None),
        ("The deck is in the order [17, 13] (this order does not matter).", "[1, 2]", None),
        ("Operate in any arbitrary order. Return the array.", "[1, 2]", None),
        ("Return the list of days regardless of the order of transactions.", "[1, 2]", None),
        ("You can order the deck in any order you want. Return the ordering.", "[2, 13]", None),
        ("Pairs can appear in any order. Return the original array.", "[1, 2]", None),
        ("Return the sorted list.", "[1, 2]", None),
    ],
)
def test_what_may_come_in_any_order(statement: str, output: str, lists: str | None) -> None:
    found = find_order(candidate(statement, output))
    assert found == (
        Checker.model_validate({"type": "unordered", "lists": lists}) if lists else None
    )


def test_what_has_an_order_or_a_checker_is_left_alone() -> None:
    said = "You may return the answer in any order."
    kinds = (Call(style="design"), Call(returns="TreeNode"))
    for fields in (
        {"fn_name": None},
        {"checker": Checker(type="exact")},
        *({"call": kind} for kind in kinds),
    ):
        assert find_order(candidate(said, "[1]", **fields)) is None


def test_every_real_package_shows_all_of_its_samples() -> None:
    english = []
    for one in ALL["kodsport"]():
        if one.natural_language == "en" and one.tests:
            english.append(one)
    problems = english[::4]
    assert len(problems) >= 2
    for problem in problems:
        found = process(problem.model_copy(update={"groups": ("sample",) * len(problem.tests)}))
        assert isinstance(found, Candidate), found
        shown = set()
        for one in split(found.statement).examples:
            shown.add((one.input.split().__repr__(), one.output.split().__repr__()))
        wanted = {(repr(t.input.split()), repr(t.output.split())) for t in found.tests}
        assert getattr(process(found), "statement", None) == found.statement
        assert wanted <= shown or "samples_not_shown" in found.flags, problem.id
