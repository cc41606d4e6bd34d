"""Comparison of returned values, in order and in any, and how they come over the wire."""

import json
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from random import Random

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.judge import compare_output, compare_value
from microcoder.judge.compare.values import MalformedWire, ReturnedDict, ReturnedSet, decode_value
from microcoder.judge.core.types import Checker
from microcoder.judge.sandbox.functions import encode
from tests.judge.output_pairs import DEFAULT, EXACT, FLOAT, UNORDERED, read_decisions

NESTED = Checker(type="unordered", lists="all")
INNER = Checker(type="unordered", lists="inner")
NEARLY = Checker(type="unordered", absolute=0.01)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner),
)


def _returned(value: object) -> object:
    """A value as it comes out of the sandbox."""
    return decode_value(json.dumps(encode(value)).encode())


def test_the_table_of_values_in_the_documentation_is_true() -> None:
    decisions = read_decisions("Returned values")
    assert len(decisions) > 25
    for value, expected, is_right, _ in decisions:
        comparison = compare_value(
            _returned(eval(value, {"Fraction": Fraction, "Decimal": Decimal})), json.loads(expected)
        )
        assert comparison.accepted is is_right, (value, expected, comparison)


_TINY = Fraction(1, 10**400)
_HUGE = Fraction(10**400 * 3 + 1, 3)
_LONG = numpy.nextafter(numpy.longdouble(7), numpy.longdouble(8))
_IS_LONG = pytest.mark.skipif(float(_LONG) != 7, reason="long doubles are doubles here")


@pytest.mark.parametrize(
    ("value", "expected", "accepted"),
    [
        (Fraction(7 * 10**30 + 1, 10**30), 7, False),
        (Fraction(7 * 10**30 + 1, 10**30), 7.0, True),
        (Fraction(14, 2), 7, True),
        (Fraction(2**60 * 3 + 1, 3), 2**60, False),
        (Decimal("7.0000000000000000001"), 7, False),
        (Decimal("6.9999999999999999999"), 7, False),
        (Decimal("7.000"), 7, True),
        (Decimal("7.5"), 7.5, True),
        (Decimal("-0.0"), 0, True),
        (Decimal("1e400"), 10**400, True),
        (Decimal("1e400") + Decimal("0.5"), 10**400, True),  # Of 28 digits: it is 1e400 again.
        (Decimal("1e999999"), 10**400, False),
        (Decimal("1e-999999"), 0, False),
        (Decimal("1e-999999"), 0.0, True),
        (Decimal("NaN"), 7, False),
        (Decimal("sNaN"), 7, False),
        (Decimal("NaN"), float("nan"), True),
        (Decimal("sNaN"), float("nan"), True),
        (Decimal("Infinity"), float("inf"), True),
        (Decimal("-Infinity"), float("inf"), False),
        (Decimal("-Infinity"), float("-inf"), True),
        (_TINY, 0, False),
        (_TINY, 0.0, True),
        (_HUGE, 10**400, False),
        (_HUGE, 7.0, False),
        (-_HUGE, 7, False),
        (complex(7, 0), 7, True),
        (complex(7.5, 0), 7, False),
        (numpy.complex128(7), 7, True),
        (numpy.clongdouble(7), 7, True),
        pytest.param(_LONG, 7, False, marks=_IS_LONG),
        (_LONG, 7.0, True),
        (numpy.longdouble(7), 7, True),
        (numpy.longdouble("inf"), float("inf"), True),
        (numpy.longdouble("nan"), float("nan"), True),
        (numpy.float32(0.5), 0.5, True),
        (numpy.float64(7), 7, True),
        ([Fraction(7 * 10**30 + 1, 10**30)], [7], False),
        ((1, Decimal("2.0000000000000000001")), [1, 2], False),
        pytest.param([[_LONG]], [[7]], False, marks=_IS_LONG),
        pytest.param(numpy.array([_LONG]), [7], False, marks=_IS_LONG),
        ({"a": [Decimal("2.0000000000000000001")]}, {"a": [2]}, False),
        ({"a": Fraction(4, 2)}, {"a": 2}, True),
    ],
)
def test_exact_numbers_equal_an_integer_only_if_they_are_it(
    value: object,
    expected: object,
    accepted: bool,
) -> None:
    assert compare_value(_returned(value), expected).accepted is accepted


def test_a_fraction_near_an_integer_is_none_in_any_order() -> None:
    near = _returned([Fraction(7 * 10**30 + 1, 10**30), 1])
    assert not compare_value(near, [1, 7], UNORDERED).accepted
    assert compare_value(near, [1, 7.0], UNORDERED).accepted
    assert compare_value(near, [7, 1]).detail == "value[0]: expected 7, got a fraction near 7.0"
    assert json.dumps(near) == "[7.0, 1]"


def test_a_complex_number_with_an_imaginary_part_is_refused() -> None:
    with pytest.raises(TypeError, match="complex"):
        encode(complex(7, 1))


@given(_JSON)
def test_any_value_equals_itself(value: object) -> None:
    assert compare_value(value, value).accepted


@given(_JSON, _JSON)
def test_values_are_equal_only_where_python_or_the_tolerance_says_so(
    value: object, expected: object
) -> None:
    if value == expected:
        assert compare_value(value, expected).accepted
    elif "." not in repr(expected) and "e" not in repr(expected) and "inf" not in repr(expected):
        assert not compare_value(value, expected).accepted


@pytest.mark.parametrize(
    ("checker", "value", "expected", "accepted"),
    [
        (UNORDERED, [[3, 4], (1, 2)], [[1, 2], [3, 4]], True),
        (UNORDERED, [[2, 1]], [[1, 2]], False),
        (UNORDERED, [1, 1, 2], [1, 2, 2], False),
        (UNORDERED, ReturnedSet([2, 1]), [1, 2], True),
        (UNORDERED, 3, [3], False),
        (FLOAT, 1.00002, 1.0, False),
        (Checker(type="float", absolute=0.1), 1.05, 1.0, True),
        (DEFAULT, 1.000001, 1.0, True),
        (EXACT, 1, 1.0, False),
        (EXACT, True, 1, False),
        (EXACT, [1, "a"], [1, "a"], True),
        (NESTED, [["b", "a"], ["c"]], [["c"], ["a", "b"]], True),
        (NESTED, [["a", "a"], ["c"]], [["c"], ["a", "b"]], False),
        (NESTED, [[["x"], ["y", "z"]], []], [[], [["z", "y"], ["x"]]], True),
        (NESTED, [ReturnedSet([2, 1]), ReturnedSet([3])], [[3], [1, 2]], True),
        (NESTED, ReturnedDict([("a", [2, 1])]), {"a": [1, 2]}, True),
        (EXACT, ReturnedDict([(True, 1), (None, 2), (3, 4)]), {"true": 1, "null": 2, "3": 4}, True),
        (NESTED, [ReturnedDict([("a", [2, 1])])], [{"a": [1, 2]}], True),
        (NESTED, "ab", "ba", False),
        (NESTED, [[3], ReturnedSet([2, 1])], [[1, 2], [3]], True),
        (NESTED, [[3], [2, 1, 1]], [[1, 2], [3]], False),
        (INNER, [[2, 1], [3]], [[1, 2], [3]], True),
        (INNER, [[3], [2, 1]], [[1, 2], [3]], False),
        (INNER, [[2, 1], [3], []], [[1, 2], [3]], False),
        (NESTED, [1, 2], [[1, 2]], False),
        (NESTED, [[0.30000000000000004, 0.1], [0.5]], [[0.5], [0.1, 0.3]], True),
        (UNORDERED, [0.30000000000000004, 0.1], [0.1, 0.3], True),
        (UNORDERED, [[0.1, 0.30000000000000004], [2]], [[2], [0.1, 0.3]], True),
        (UNORDERED, [2, 50000], [50000.5, 2], False),
        (UNORDERED, [1.0, True], [1, 1], True),
        (UNORDERED, [float("nan"), 1], [1.0, float("nan")], True),
        (UNORDERED, [10**400, 0.5], [0.5, 10**400], True),
        (UNORDERED, [10**400 + 1, 0.5], [0.5, 10**400], False),
        (UNORDERED, [ReturnedSet([1])], [{"set": [1]}], False),
        (UNORDERED, [ReturnedSet([1]), 0.5], [{"set": [1]}, 0.5], False),
        (UNORDERED, [ReturnedDict([]), 0.5], [[], 0.5], False),
        (EXACT, [ReturnedDict([])], [[]], False),
        # Taking the first that agrees would leave 1.02 without a partner.
        (NEARLY, [1.01, 1.0, 1.02], [1.02, 1.01, 1.0], True),
        (NEARLY, [[0.5, "a"], [0.5, "b"]], [[0.505, "b"], [0.495, "a"]], True),
        (NEARLY, [[0.5, "a"], [0.5, "a"]], [[0.505, "b"], [0.495, "a"]], False),
    ],
)
def test_checkers_of_values(
    checker: Checker,
    value: object,
    expected: object,
    accepted: bool,
) -> None:
    comparison = compare_value(value, expected, checker)
    assert comparison.accepted is accepted, comparison.detail


@given(
    st.lists(st.lists(st.floats(-10, 10).map(lambda real: round(real, 5)), max_size=3), max_size=6),
    st.randoms(use_true_random=False),
)
def test_shuffled_values_with_noise_are_right(expected: list[list[float]], random: Random) -> None:
    value = []
    for row in expected:
        value.append([item + random.uniform(-9e-6, 9e-6) for item in random.sample(row, len(row))])
    random.shuffle(value)
    assert compare_value(value, expected, NESTED).accepted


@given(
    st.lists(st.integers(0, 12), max_size=6).flatmap(
        lambda row: st.tuples(
            st.just(row), st.lists(st.integers(0, 12), min_size=len(row), max_size=len(row))
        )
    )
)
def test_any_order_within_a_tolerance_is_a_perfect_pairing(
    rows: tuple[list[int], list[int]],
) -> None:
    value, expected = rows
    pairs = any(
        all(abs(a - b) <= 1 for a, b in zip(value, row, strict=True))
        for row in permutations(expected)
    )
    checker = Checker(type="unordered", absolute=0.1)
    assert (
        compare_value([v / 10 for v in value], [e / 10 for e in expected], checker).accepted
        is pairs
    )
    lines = []
    for row in (value, expected):
        lines.append("\n".join(str(item / 10) for item in row))
    assert compare_output(lines[0], lines[1], checker).accepted is pairs


def test_permutations_of_real_numbers_in_any_order_are_right() -> None:
    """All have one sum: by it alone each could be any other,
    and the work would end before they are paired.
    """
    expected = []
    for row in permutations(range(1, 8)):
        expected.append([item / 10 for item in row])
    value = []
    for row in reversed(expected):
        value.append([item + 1e-9 for item in row])
    assert compare_value(value, expected, UNORDERED).accepted


def test_many_alike_items_in_any_order_are_refused_after_bounded_work() -> None:
    value = [[1.0, float(i)] for i in range(2000)]
    expected = [[1.0, i + 0.5] for i in range(2000)]
    assert not compare_value(value, expected, Checker(type="unordered", absolute=0.4)).accepted
    assert compare_value(value, expected, Checker(type="unordered", absolute=0.6)).accepted


def test_what_is_no_returned_value_is_said_to_be_none() -> None:
    objects = (
        b'{"int": 5}',
        b'{"set": {"set": [1]}}',
        b'{"dict": [[1]]}',
        b'{"tuple": "ab"}',
        b'{"list": []}',
        b"{}",
    )
    deep = (b"[" * 500 + b"]" * 500, b"[" * 100_000, b'{"tuple":[' * 300 + b"]}" * 300)
    for wire in (*objects, *deep, b'{"int": "1", "float": "1"}', b"9" * 5000, b"\xff"):
        with pytest.raises(MalformedWire):
            decode_value(wire)


def test_returned_values_survive_the_wire() -> None:
    value = [1, 2.5, (True, None), ReturnedSet(["a"]), ReturnedDict([(1, [10**30]), ((1, 2), "b")])]
    plain = [1, 2.5, (True, None), {"a"}, {1: [10**30], (1, 2): "b"}]
    assert _returned(plain) == value
    deep: object = 1
    for _ in range(150):
        deep = {"a": deep}
    assert isinstance(_returned(deep), ReturnedDict)


def test_a_message_about_a_huge_value_is_short() -> None:
    for value in (
        [[["x" * 10**6] * 1000] * 1000],
        "x" * 10**7,
        ReturnedDict([(10**5000, 10**5000)]),
        10**5000,
    ):
        assert len(compare_value(value, 3).detail) <= 200
