"""Examples of statements that can be read in one way only."""

from collections import deque

import pytest

from microcoder.data.clean.examples import is_same, read_examples
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.types import Checker, TestCase

STARTER = "def rises(numbers, least):\n    "
READ = (
    ">>> rises([1, 2], 1)\n1",
    "    >>> rises([1, 2], least=1)\n    1",
    "rises([1, 2], 1) == 1",
    "rises([1, 2], 1) ➞ 1",
    "* rises([1, 2], 1) -> 1.",
    "- `rises([1, 2], 1)` returns `1`",
    "rises([1, 2], 1) ==> 1 # one pair",
    "For example: rises([1, 2], 1) => 1",
    "assert rises([1, 2], 1) == 1",
    "rises([1, 2], 1) should return 1",
    "## Example 1\n\nInput:\n\n```\nnumbers = [1, 2], least = 1\n```\n\nOutput:\n\n```\n1\n```\n",
    "## Example 1\n\nInput:\n\n```\nnumbers = [1, 2]\nleast = 1\n```\n\nOutput:\n\n```\n1\n```\n",
)
"""Examples that say: of [1, 2] and 1 it is 1."""
LEFT = (
    "rises([1, 2], 1) = 1",
    "rises([1, 2], 1) == 1 + 0 = 1",
    "rises([1, 2], n) == 1",
    "rises([1, 2], 1) == ...",
    "rises([1, 2], 1) == (1)",
    "rises([1, 2], 1) == 1 or 2",
    "rises([1, 2], 1) == one",
    "Say that rises([1, 2], 1) == 1",
    "rises([1, 2], 1)\n1",
    ">>> rises([1, 2], 1)\n",
    ">>> rises([1, 2], 1)\n1 since 2 is larger",
    "other.rises([1, 2], 1) == 1",
    "rises([1, 2]) == 1",
    "This is wrong:\nrises([1, 2], 1) == 1",
    "Before the fix:\n>>> rises([1, 2], 1)\n1",
    "## Example 1\n\nInput:\n\n```\nvalues = [1, 2], least = 1\n```\n\nOutput:\n\n```\n1\n```\n",
    "## Example 1\n\nInput:\n\n```\nnumbers = [1, ...], least = 1\n```\n\nOutput:\n\n```\n1\n```\n",
)
"""What may be read in several ways, or in none."""


def row(statement: str, **fields: object) -> Candidate:
    defaults: dict[str, object] = {"fn_name": "rises", "starter_code": STARTER}
    defaults["tests"] = [{"input": "[3]\n1", "output": "0"}]
    known = {"id": "a", "dataset": "d", "statement": f"Count them.\n\n{statement}"}
    return Candidate.model_validate({**known, **defaults, **fields})


@pytest.mark.parametrize("statement", READ)
def test_an_example_with_one_meaning_is_a_test(statement: str) -> None:
    assert read_examples(row(statement)).tests == (TestCase(input="[1, 2]\n1", output="1"),)


@pytest.mark.parametrize("statement", LEFT)
def test_other_examples_are_left(statement: str) -> None:
    assert read_examples(row(statement)).tests == ()


def test_an_example_among_the_tests_is_not_run_again() -> None:
    known = [{"input": "[1,2]\n1", "output": "1"}]
    assert read_examples(row(READ[0], tests=known)).tests == ()


def test_where_several_answers_are_right_an_example_says_nothing() -> None:
    assert read_examples(row(READ[0], flags=["many_answers"])).tests == ()


def test_digits_that_an_example_leaves_out_are_forgiven() -> None:
    shown = read_examples(row(">>> rises([1], 2)\n0.33"))
    assert shown.checker == Checker(type="float", absolute=0.01)


PRINTED = "## Example 1\n\nInput:\n\n```\n{}\n```\n\nOutput:\n\n```\n{}\n```\n"


def test_a_printed_example_has_the_form_of_the_tests() -> None:
    fields = {"fn_name": None, "starter_code": None, "tests": [{"input": "1 2\n", "output": "3\n"}]}
    shown = read_examples(row(PRINTED.format("2 2", "4"), **fields))
    assert shown.tests == (TestCase(input="2 2\n", output="4\n"),)
    for given, printed in (("2 2", "4\n2 and 2"), ("2 ...", "4"), ("2 2", "This is the sum")):
        assert read_examples(row(PRINTED.format(given, printed), **fields)).tests == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [((1, 2), [1, 2]), ([3, 1], {1, 3}), (0.3333, 0.33), ([(1, 0.5)], [[1, 0.5]]), (None, [1])],
)
def test_what_an_example_shows_is_the_same_up_to_its_form(value: object, expected: object) -> None:
    assert is_same(value, expected)


@pytest.mark.parametrize(("value", "expected"), [([2, 1], [1, 2]), (8.0, 15.0), ("a", "b"), (1, 2)])
def test_another_value_is_not_the_same(value: object, expected: object) -> None:
    assert not is_same(value, expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (range(2), [0, 1]),
        (iter([0, 1]), [0, 1]),
        (deque([0, 1]), [0, 1]),
        ({"a": 1 / 3}, {"a": 0.33}),
        (4.0000000001, 4),
    ],
)
def test_a_value_that_is_written_otherwise_contradicts_nothing(
    value: object, expected: object
) -> None:
    assert is_same(value, expected)


@pytest.mark.parametrize(("value", "expected"), [({1: 2}, {1: 3}), ({1: 2}, {2: 2}), (4.5, 4)])
def test_another_value_of_its_kind_contradicts(value: object, expected: object) -> None:
    assert not is_same(value, expected)
