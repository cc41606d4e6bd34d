from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from microcoder.data.clean.tests import normalise_tests
from microcoder.judge.core.types import TestCase


def pairs(*written: tuple[str, str]) -> tuple[TestCase, ...]:
    return tuple(TestCase(input=given, output=printed) for given, printed in written)


def test_one_encoding_one_newline_each_test_once_with_its_group() -> None:
    tests = pairs(("\ufeff1 2\r\n", "3"), ("1 2\n\n", "3\n\n"), (" 4 5", "9 \n"))
    found = normalise_tests(tests, ("sample/", "a", "b"), is_function=False)
    assert found.tests == pairs(("1 2\n", "3\n"), (" 4 5\n", "9 \n"))
    assert found.groups == ("sample", "b")
    assert (found.num_repeated, found.num_conflicting, found.num_broken) == (1, 0, 0)


def test_an_empty_last_line_of_an_input_stays() -> None:
    tests = pairs(("1 500\r\n\r\n", "0\n\n"), ("2 500\n7", "1"), ("\n", "0"))
    found = normalise_tests(tests, (), is_function=False).tests
    assert [test.input for test in found] == ["1 500\n\n", "2 500\n7\n", "\n"]
    assert [test.output for test in found] == ["0\n", "1\n", "0\n"]


def test_two_outputs_for_one_input_are_counted_and_kept() -> None:
    found = normalise_tests(pairs(("1", "2"), ("1\n", "3")), (), is_function=False)
    assert found.num_conflicting == 1
    assert len(found.tests) == 2


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
