"""The part of pytest that published tests of functions use: `raises`, `approx`, `parametrize`.

pytest itself is none of the packages that programs may import. `main` runs what pytest would
collect in the test's own module.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType, TracebackType
from typing import Any, NoReturn

_RELATIVE = 1e-6
"""Relative tolerance of `approx` where none is given."""
_ABSOLUTE = 1e-12
"""Absolute tolerance of `approx` where none is given."""


class Approximation:
    """What `approx` returns: equal to numbers that are close to its own, also inside containers."""

    __hash__ = None  # type: ignore[assignment]
    # An array of numpy leaves the comparison to this.
    __array_ufunc__ = None
    __array_priority__ = 100

    def __init__(self, expected: Any, relative: Any, absolute: Any, *, is_nan_equal: bool) -> None:
        self._expected = expected
        self._options = (relative, absolute, is_nan_equal)

    def __eq__(self, other: object) -> bool:
        return self._agrees(other, self._expected)

    def __repr__(self) -> str:
        return f"approx({self._expected!r})"

    def _agrees(self, value: Any, expected: Any) -> bool:
        if hasattr(expected, "tolist"):
            expected = expected.tolist()
        if hasattr(value, "tolist"):
            value = value.tolist()
        if isinstance(expected, Mapping):
            if not isinstance(value, Mapping) or value.keys() != expected.keys():
                return False
            return all(self._agrees(value[key], expected[key]) for key in expected)
        if isinstance(expected, (list, tuple)):
            if not isinstance(value, (list, tuple)) or len(value) != len(expected):
                return False
            pairs = zip(value, expected, strict=True)
            return all(self._agrees(mine, theirs) for mine, theirs in pairs)
        return self._is_close(value, expected)

    def _is_close(self, value: Any, expected: Any) -> bool:
        relative, absolute, is_nan_equal = self._options
        if value == expected:
            return True
        try:
            if math.isnan(abs(expected)):
                return is_nan_equal and math.isnan(abs(value))
            if math.isinf(abs(expected)) or isinstance(expected, bool):
                return False
            within = _ABSOLUTE if absolute is None else absolute
            if relative is not None or absolute is None:
                share = _RELATIVE if relative is None else relative
                within = max(within, share * abs(expected))
            return bool(abs(expected - value) <= within)
        except TypeError:
            return False


def approx(expected: Any, rel: Any = None, abs: Any = None, nan_ok: bool = False) -> Approximation:
    """Return what is equal to numbers close to these."""
    return Approximation(expected, rel, abs, is_nan_equal=nan_ok)


class Raises:
    """What `raises` returns: takes an exception of these types, and fails without one."""

    def __init__(self, expected: Any, match: str | None) -> None:
        self._expected = expected
        self._match = match
        self.value: BaseException | None = None
        """The exception."""
        self.type: type[BaseException] | None = None

    def __enter__(self) -> Raises:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None:
            raise AssertionError(f"DID NOT RAISE {self._expected!r}")
        if not isinstance(error, self._expected):
            return False
        self.value = error
        self.type = kind
        if self._match is not None and not re.search(self._match, str(error)):
            raise AssertionError(f"{self._match!r} does not match {str(error)!r}")
        return True

    def match(self, pattern: str) -> bool:
        """Check the exception's text."""
        assert re.search(pattern, str(self.value)), f"{pattern!r} does not match"
        return True


def raises(expected: Any, *arguments: Any, match: str | None = None, **named: Any) -> Raises:
    """Return a block in which an exception must be raised, or call a function that must raise."""
    expectation = Raises(expected, match)
    if arguments:
        function, *rest = arguments
        with expectation:
            function(*rest, **named)
    return expectation


def parametrize(names: str | Sequence[str], values: Sequence[Any], **_: Any) -> Callable[..., Any]:
    """Have a test called with each of several arguments."""
    parts = list(names)
    if isinstance(names, str):
        parts = [part.strip() for part in names.split(",")]

    def mark(function: Any) -> Any:
        cases = []
        for value in values:
            held = value.values if isinstance(value, _Case) else value
            if len(parts) == 1:
                held = _one(value)
            case = zip(parts, held, strict=True)
            cases.append(dict(case))
        function.cases = _combine(getattr(function, "cases", [{}]), cases)
        return function

    return mark


def _one(value: Any) -> Sequence[Any]:
    return value.values if isinstance(value, _Case) else (value,)


def _combine(
    outer: Sequence[dict[str, Any]], inner: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    combined = []
    for first in inner:
        combined += [{**first, **second} for second in outer]
    return combined


class _Case:
    """What `pytest.param` returns."""

    def __init__(self, *values: Any, **_: Any) -> None:
        self.values = values


def fail(reason: str = "", **_: Any) -> NoReturn:
    """Fail the test."""
    raise AssertionError(reason)


def main(*_: Any) -> NoReturn:
    """Run the tests of the test's module, and end it."""
    names = sys.modules["__main__"].__dict__
    num_run = 0
    for function in list(_collect(names)):
        for case in getattr(function, "cases", [{}]):
            function(**case)
            num_run += 1
    if not num_run:
        raise RuntimeError("the test defines no test function")
    raise SystemExit(0)


def _collect(names: Mapping[str, Any]) -> Iterator[Callable[..., Any]]:
    """Yield the test functions of a module, and the test methods of its classes."""
    for name, value in list(names.items()):
        if inspect.isfunction(value) and name.startswith("test") and value.__module__ == "__main__":
            yield value
        elif inspect.isclass(value) and name.startswith("Test") and value.__module__ == "__main__":
            yield from _collect_methods(value)


def _collect_methods(kind: type) -> Iterator[Callable[..., Any]]:
    for name in list(vars(kind)):
        if not name.startswith("test"):
            continue
        instance: Any = kind()
        for prepare in ("setup_method", "setUp"):
            method = getattr(instance, prepare, None)
            if method is not None:
                # pytest gives the test method to one that takes an argument.
                method(*[getattr(instance, name)] * len(inspect.signature(method).parameters))
        yield getattr(instance, name)


def offer() -> None:
    """Have `import pytest` find what is here."""
    module = ModuleType("pytest")
    mark = ModuleType("mark")
    mark.__dict__.update(parametrize=parametrize)
    module.__dict__.update(
        approx=approx, raises=raises, fail=fail, main=main, mark=mark, param=_Case
    )
    sys.modules["pytest"] = module
