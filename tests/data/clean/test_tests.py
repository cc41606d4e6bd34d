"""Tests in one form, lists in any order, samples in the statement."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_texts import ALL

from microcoder.data.clean import process
from microcoder.data.clean.sections import split
from microcoder.data.clean.tests import check_checker, find_order, normalise_tests
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.types import Call, Checker, TestCase


def pairs(*written: tuple[str, str]) -> tuple[TestCase, ...]:
    return tuple(TestCase(input=given, output=printed) for given, printed in written)


def test_one_encoding_one_newline_each_test_once_with_its_group() -> None:
    tests = pairs(("\ufeff1 2\r\n", "3"), ("1 2\n\n", "3\n\n"), (" 4 5", "9 \n"))
    found = normalise_tests(tests, ("sample/", "a", "b"), is_function=False)
    assert found.tests == pairs(("1 2\n", "3\n"), (" 4 5\n", "9 \n"))
    assert found.groups == ("sample", "b")
    assert (found.num_repeated, found.num_conflicting, found.num_broken) == (1, 0, 0)
    # Two outputs for one input are counted and kept.
    found = normalise_tests(pairs(("1", "2"), ("1\n", "3")), (), is_function=False)
    assert (len(found.tests), found.num_conflicting) == (2, 1)


def test_an_empty_last_line_of_an_input_stays() -> None:
    tests = pairs(("1 500\r\n\r\n", "0\n\n"), ("2 500\n7", "1"), ("\n", "0"))
    found = normalise_tests(tests, (), is_function=False).tests
    assert [test.input for test in found] == ["1 500\n\n", "2 500\n7\n", "\n"]
    assert [test.output for test in found] == ["0\n", "1\n", "0\n"]


def test_arguments_are_json_written_in_one_way() -> None:
    found = normalise_tests(pairs(('[1,2]\n"a"', "true"), ("[1,", "3")), (), is_function=True)
    assert found.tests == pairs(('[1, 2]\n"a"', "true"))
    assert found.num_broken == 1


@given(st.lists(st.tuples(st.text(), st.text()), max_size=6))
def test_normalising_twice_changes_nothing(written: list[tuple[str, str]]) -> None:
    once = normalise_tests(pairs(*written), (), is_function=False)
    assert normalise_tests(once.tests, once.groups, is_function=False).tests == once.tests


@given(st.lists(st.integers() | st.text(max_size=5) | st.lists(st.integers()), min_size=1, max_size=4))
def test_values_survive(values: list[object]) -> None:
    given_text = "\n".join(json.dumps(value) for value in values)
    (test,) = normalise_tests(pairs((given_text, "null")), (), is_function=True).tests
    assert [json.loads(line) for line in test.input.split("\n")] == values


def test_half_a_surrogate_pair_stays_escaped_and_a_long_integer_is_broken() -> None:
    digits = "7" * 5000
    found = normalise_tests(pairs(('"\\ud83d é"', "1"), (digits, "2")), (), is_function=True)
    assert [test.input for test in found.tests] == ['"\\ud83d \\u00e9"']
    assert found.num_broken == 1
    assert all(test.model_dump_json() for test in found.tests)


def candidate(statement: str, output: str, **fields: object) -> Candidate:
    tests = (TestCase(input="1", output=output),)
    return Candidate.model_validate(
        {
            "id": "a",
            "dataset": "d",
            "statement_found": statement,
            "statement": statement,
            "fn_name": "f",
            "tests": tests,
        }
        | fields
    )


@pytest.mark.parametrize(
    ("statement", "output", "lists"),
    [
        ("You may return the answer in any order.", "[1, 2]", "outermost"),
        ("You may return the answer in any order.", "[[1, 2], [3]]", "outermost"),
        ("Given a tree, return all root-to-leaf paths in any order.", '["1->2"]', "outermost"),
        ("The combinations may be returned in any order.", "[[1, 2]]", "outermost"),
        ("Return an array of size two containing the two numbers (in any order).", "[3, 4]", "outermost"),
        ("Note that the integers in the lists may be returned in any order.", "[[1, 3], [4, 6]]", "inner"),
        ("Note that you can return the indices of the edges in any order.", "[[0, 1], [2, 3]]", "inner"),
        ("You can order the deck in any order you want. Return the ordering.", "[2, 13]", None),
        ("Pairs can appear in any order. Return the original array.", "[1, 2]", None),
        ("You may return the answer in any order.", "3", None),
        ("Return the sorted list.", "[1, 2]", None),
    ],
)  # fmt: skip
def test_what_may_come_in_any_order(statement: str, output: str, lists: str | None) -> None:
    found = find_order(candidate(statement, output))
    assert found == (Checker.model_validate({"type": "unordered", "lists": lists}) if lists else None)


def test_what_has_an_order_or_a_checker_is_left_alone() -> None:
    said = "You may return the answer in any order."
    assert find_order(candidate(said, "[1]", fn_name=None)) is None
    assert find_order(candidate(said, "[1]", checker=Checker(type="exact"))) is None
    assert find_order(candidate(said, "[1]", call=Call(style="design"))) is None
    assert find_order(candidate(said, "[1]", call=Call(returns="TreeNode"))) is None


TESTS = tuple(TestCase(input=f"{a} {b}\n", output=f"{a + b}\n") for a, b in ((1, 2), (5, 5), (9, 9)))
GROUPS = ("sample", "sample", "secret")
STORY = "Print the sum of two numbers that are given on one line.\n\n"


def make(statement: str, **fields: object) -> Candidate:
    given = Candidate(id="a/1", dataset="a", statement_found=STORY + statement, tests=TESTS, groups=GROUPS)
    return given.model_copy(update=fields)


def done(candidate: Candidate) -> Candidate:
    found = process(candidate)
    assert isinstance(found, Candidate), found
    again = process(found)
    assert isinstance(again, Candidate)
    assert (again.statement, again.flags, again.checker) == (found.statement, found.flags, found.checker)
    return found


def test_samples_of_a_package_are_shown_in_order_and_the_secret_ones_are_not() -> None:
    shown = split(done(make("## Input\n\nTwo numbers.\n\n## Explanation of sample 2\n\nFive twice.\n")).statement)
    assert [(one.input, one.output) for one in shown.examples] == [("1 2", "3"), ("5 5", "10")]
    assert shown.other == (("Explanation of sample 2", "Five twice."),)


def test_what_the_statement_shows_itself_is_not_shown_twice_and_explains_as_before() -> None:
    text = "## Sample Input 1\n\n```\n5 5\n```\n\n## Sample Output 1\n\n```\n10\n```\n\nExplanation: twice five.\n"
    shown = split(done(make(text)).statement).examples
    assert [(one.input, one.explanation) for one in shown] == [("1 2", ""), ("5 5", "twice five.")]


def test_a_sample_that_is_too_long_is_left_out_and_said_to_be() -> None:
    long = TestCase(input="1 " * 5000, output="3\n")
    found = done(make("## Input\n\nNumbers.\n").model_copy(update={"tests": (long, *TESTS[1:])}))
    assert len(split(found.statement).examples) == 1
    assert "samples_not_shown" in found.flags


def test_an_empty_title_is_the_packages() -> None:
    found = done(
        make("").model_copy(update={"statement_found": "\\problemname{\\problemyamlname}\n" + STORY, "title": "Sum"})
    )
    assert found.statement.startswith("# Sum\n\nPrint")


def test_a_checker_that_is_no_python_3_is_flagged() -> None:
    python2, python3 = (
        Candidate(id="a/1", dataset="a", checker=Checker(type="program", code=code, protocol="testlib"))
        for code in ("print 1", "print(1)")
    )
    assert check_checker(python2).flags == ("needs_checker",)
    assert check_checker(python3) == python3


def test_every_real_package_shows_all_of_its_samples() -> None:
    for problem in ALL["kodsport"]()[::15]:
        if problem.natural_language != "en" or not problem.tests:
            continue
        found = process(problem.model_copy(update={"groups": ("sample",) * len(problem.tests)}))
        assert isinstance(found, Candidate), found
        shown = {
            (one.input.split().__repr__(), one.output.split().__repr__()) for one in split(found.statement).examples
        }
        wanted = {(repr(t.input.split()), repr(t.output.split())) for t in found.tests}
        assert wanted <= shown or "samples_not_shown" in found.flags, problem.id
