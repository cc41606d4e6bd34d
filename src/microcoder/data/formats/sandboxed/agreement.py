"""EvalPlus's rule for a returned value, as the beginning of a test's program."""

from math import inf, nan  # noqa: F401 - of the inputs below

DEFAULT_TOLERANCE, RELATIVE_TOLERANCE = 1e-6, 1e-7


def agree(value, expected, tolerance):
    """Whether values agree by EvalPlus's rule: equal, or close if there is a tolerance or floats are expected."""
    if value == expected:
        return True
    if tolerance == 0 and (
        isinstance(expected, float)
        or (
            isinstance(expected, (list, tuple))
            and all(isinstance(item, float) for item in expected)
        )
    ):
        tolerance = DEFAULT_TOLERANCE
    return tolerance != 0 and is_close(value, expected, tolerance)


def is_close(value, expected, tolerance):
    """Whether numbers, or lists of them, are as close as numpy.testing.assert_allclose demands."""
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(expected)
            and all(
                is_close(mine, theirs, tolerance)
                for mine, theirs in zip(value, expected, strict=True)
            )
        )
    if not isinstance(value, (int, float, complex)) or not isinstance(
        expected, (int, float, complex)
    ):
        return False
    if value != value or expected != expected:
        return value != value and expected != expected
    return value == expected or abs(value - expected) <= tolerance + RELATIVE_TOLERANCE * abs(
        expected
    )
