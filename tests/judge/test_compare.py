"""Comparison of outputs: lenient about layout, never gullible."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.judge import compare_output, compare_value
from microcoder.judge.core.types import Checker
from tests.judge.output_pairs import (
    DEFAULT,
    EXACT,
    FLOAT,
    PAIRS,
    TOKENS,
    UNORDERED,
    read_decisions,
    unescape,
)


def test_the_table_of_outputs_in_the_documentation_is_true() -> None:
    decisions = read_decisions("Outputs")
    assert len(decisions) > 90
    for output, expected, is_right, method in decisions:
        comparison = compare_output(unescape(output), unescape(expected))
        assert comparison.accepted == is_right, (
            output,
            expected,
            comparison,
        )
        assert comparison.method == method, (
            output,
            expected,
            comparison,
        )


def test_pairs_get_the_verdict_of_a_careful_judge() -> None:
    for checker, is_right, output, expected in PAIRS:
        comparison = compare_output(output, expected, checker)
        assert comparison.accepted is is_right, (output, expected, checker)
        assert bool(comparison.method) is is_right
        assert checker == DEFAULT or comparison.method in ("", checker.type)
        assert bool(comparison.detail) is not is_right
        assert len(comparison.detail) <= 200
        assert "\n" not in comparison.detail


@pytest.mark.parametrize(
    ("output", "expected", "detail"),
    [
        ("1\n5\n3", "1\n2\n3", 'line 2: expected "2", got "5"'),
        ("1 5 3", "1 2 3", 'line 1: token 2: expected "2", got "5"'),
        ("1", "1\n2", 'line 2: expected "2", the output ends (1 lines)'),
        ("1\n2", "1", 'line 2: expected the end (1 lines), got "2"'),
        ("1 2", "1 2 3", "line 1: expected 3 tokens, got 2"),
        ("\n", "3", 'no output, expected "3"'),
        ("a\x00b", "ab", 'line 1: expected "ab", got "a\\x00b"'),
        ("true story", "True story", 'line 1: token 1: expected "True", got "true"'),
    ],
)
def test_detail_names_the_first_difference(output: str, expected: str, detail: str) -> None:
    assert compare_output(output, expected, DEFAULT).detail == detail


@given(st.text(), st.sampled_from([DEFAULT, TOKENS, EXACT, FLOAT, UNORDERED]))
def test_any_output_equals_itself(output: str, checker: Checker) -> None:
    assert compare_output(output, output, checker).accepted


@given(st.text(), st.text(), st.sampled_from([DEFAULT, TOKENS, EXACT, FLOAT, UNORDERED]))
def test_detail_is_one_short_printable_line_or_nothing(
    output: str,
    expected: str,
    checker: Checker,
) -> None:
    comparison = compare_output(output, expected, checker)
    assert bool(comparison.detail) is not comparison.accepted
    assert bool(comparison.method) is comparison.accepted
    assert len(comparison.detail) <= 200
    comparison.detail.encode()


@given(st.lists(st.integers().map(str), min_size=2, unique=True), st.randoms(use_true_random=False))
def test_permuted_lines_are_refused(lines: list[str], random: object) -> None:
    shuffled = lines[1:] + lines[:1]
    assert not compare_output("\n".join(shuffled), "\n".join(lines), DEFAULT).accepted
    assert not compare_output(repr(shuffled), repr(lines), DEFAULT).accepted


@given(st.integers(), st.sampled_from([-1, 1]), st.sampled_from([DEFAULT, TOKENS, EXACT]))
def test_integers_off_by_one_are_refused(number: int, step: int, checker: Checker) -> None:
    assert not compare_output(str(number + step), str(number), checker).accepted
    assert not compare_output(f"{number + step}.0", str(number), checker).accepted
    assert not compare_value(number + step, number).accepted


@given(st.lists(st.text("abc01", min_size=1), min_size=1), st.integers(0))
def test_extra_and_missing_tokens_are_refused(tokens: list[str], position: int) -> None:
    expected = " ".join(tokens)
    position %= len(tokens)
    assert not compare_output(" ".join([*tokens, "x"]), expected, DEFAULT).accepted
    assert not compare_output(
        " ".join(tokens[:position] + tokens[position + 1 :]),
        expected,
        DEFAULT,
    ).accepted


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0.01, 1e6))
def test_reals_far_apart_are_refused(number: float, factor: float) -> None:
    other = number + factor * max(1.0, abs(number))
    assert not compare_output(repr(other), repr(number), DEFAULT).accepted
    assert not compare_output(repr(other), repr(number), FLOAT).accepted


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)
    )
)
def test_a_printed_container_equals_its_json(value: object) -> None:
    if isinstance(value, list) and "\\" not in json.dumps(value) + repr(value):
        comparison = compare_output(repr(value), json.dumps(value), DEFAULT)
        assert comparison.accepted, comparison.detail


@given(st.text("[](){},:'\"1a. \n\\"), st.text("[](){},:'\"1a. \n\\"))
def test_nearly_literals_never_crash_and_equal_what_they_are(output: str, expected: str) -> None:
    compare_output(output, expected, DEFAULT)
    assert compare_output(expected, expected, DEFAULT).accepted


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_unordered_means_equal_as_often(output: list[int], expected: list[int]) -> None:
    comparison = compare_output(
        "\n".join(map(str, output)),
        "\n".join(map(str, expected)),
        UNORDERED,
    )
    assert comparison.accepted is (sorted(output) == sorted(expected))
    assert compare_value(output, expected, UNORDERED).accepted is (
        sorted(output) == sorted(expected)
    )


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("[" * 100_000, "[" * 99_999 + "]"),
        ("[" * 200_000 + "1" + "]" * 200_000, "[" * 200_000 + " 2" + "]" * 200_000),
        ("1e999999999", "1.0"),
        ("[" + "1," * 300_000 + "]", "[" + "1, " * 300_000 + "2]"),
        ("9" * 2_000_000, "9" * 1_000_000 + ".5"),
        ("1" + "\r" * 2_000_000 + "1", "1\n" * 300_000),
        ("\U0001f600" * 500_000, "1\n" * 300_000),
        ("[" + ", " * 1_000_000 + "]", "[" + "1, " * 300_000 + "1]"),
    ],
)
def test_huge_outputs_are_refused_in_time(output: str, expected: str) -> None:
    assert not compare_output(output, expected, DEFAULT).accepted


def test_output_far_longer_than_expected_is_wrong_unread() -> None:
    assert compare_output("3" + " " * 10**6, "3").accepted
    refused = compare_output("3" + " " * 2 * 10**6, "3")
    assert not refused.accepted
    assert refused.detail == "the output is 2000001 characters long, the expected one 1"


def test_large_right_outputs_in_another_spelling_are_right() -> None:
    numbers = [number * 7919 % 1_000_003 for number in range(10_000)]
    table = {str(number): number / 7 for number in range(7_000)}
    backwards = dict(reversed(table.items()))
    for output, expected, method in (
        (str(numbers).replace(" ", ""), str(numbers), "value"),
        (
            str([(n, n) for n in range(30_000)]),
            json.dumps([[n, n] for n in range(30_000)]),
            "value",
        ),
        (str(table), json.dumps(table), "value"),
        (str(backwards), json.dumps(table), "value"),
        ("[1,2]\n" * 10_000, "[1, 2]\n" * 10_000, "value_lines"),
        ("(true,2)\n" * 10_000, "[True, 2]\n" * 10_000, "value_lines"),
        ("Yes\n" * 10_000, "YES\n" * 10_000, "words"),
        ("0.50\n" * 10_000, "0.5\n" * 10_000, "numeric"),
    ):
        comparison = compare_output(output, expected)
        assert comparison.accepted is True, comparison.detail
        assert comparison.method == method, comparison.detail
