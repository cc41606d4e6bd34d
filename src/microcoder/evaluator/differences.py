"""Returned values against the expected JSON value: kept in order, or in any order with a tolerance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from microcoder.evaluator.matching import match_all
from microcoder.evaluator.numbers import Tolerance, values_agree
from microcoder.evaluator.outlines import outline, windows
from microcoder.evaluator.values import ReturnedDict, ReturnedSet, name_of, show
from microcoder.types import Checker

TOLERANCE = 1e-5
"""LeetCode's: absolute or relative, only if the expected number is real."""
_BY_DEFAULT = Tolerance(TOLERANCE, TOLERANCE)


@dataclass(frozen=True, slots=True)
class ValueRules:
    """How returned values are compared."""

    tolerance: Tolerance = _BY_DEFAULT
    """Only an expected real number has it, unless it is stated."""
    is_strict: bool = False
    """An integer is no real number and no bool."""
    is_unordered: bool = False
    """The items of the outermost list may come in any order."""
    is_nested: bool = False
    """Those of every list inside may."""

    def inside(self) -> ValueRules:
        """Return the rules for what is inside a list or a dict."""
        return self if self.is_unordered == self.is_nested else replace(self, is_unordered=self.is_nested)


_ORDER = {
    "outermost": {"is_unordered": True},
    "inner": {"is_nested": True},
    "all": {"is_unordered": True, "is_nested": True},
}


def stated_tolerance(checker: Checker) -> Tolerance | None:
    """Return the tolerance that a checker names, None if it names none."""
    if checker.absolute is not None or checker.relative is not None:
        return Tolerance(checker.absolute or 0.0, checker.relative or 0.0, is_stated=True)
    return Tolerance(checker.tolerance, checker.tolerance, is_stated=True) if checker.tolerance is not None else None


def rules_for(checker: Checker) -> ValueRules:
    """Return the rules that a checker means for values."""
    tolerance = stated_tolerance(checker) or _BY_DEFAULT
    match checker.type:
        case "float":
            return ValueRules(tolerance)
        case "exact":
            return ValueRules(Tolerance(0.0, 0.0, is_stated=True), is_strict=True)
        case "unordered":
            return ValueRules(tolerance, **_ORDER[checker.lists])
    return ValueRules()


def find_difference(value: object, expected: object, rules: ValueRules) -> str:
    """Return where a value first differs from the expected one, or an empty string where it does not.

    Lists and tuples are one kind; bools equal 0 and 1 as in Python; integers are exact, also against a real number,
    and so is a real number against an expected integer. JSON has string keys only, so an integer key equals its digits.
    """
    difference = _difference(value, expected, rules)
    return f"value{difference}" if difference else ""


def _difference(value: object, expected: object, rules: ValueRules) -> str:
    if isinstance(expected, list):
        if rules.is_unordered:
            return _difference_in_any_order(value, expected, rules)
        return _list_difference(value, expected, rules)
    if isinstance(expected, dict):
        return _dict_difference(value, expected, rules)
    if rules.is_strict:
        is_equal = type(value) is type(expected) and value == expected
    elif isinstance(expected, float) and isinstance(value, (int, float)):
        is_equal = values_agree(value, expected, rules.tolerance)
    elif isinstance(expected, (int, float)):
        is_equal = isinstance(value, (int, float)) and value == expected
    else:
        is_equal = type(value) is type(expected) and value == expected
    return "" if is_equal else f": expected {show(expected)}, got {show(value)}"


def _list_difference(value: object, expected: list[Any], rules: ValueRules) -> str:
    if not isinstance(value, (list, tuple)):
        return f": expected a list, got {show(value)}"
    if not rules.is_strict and not rules.is_nested and value == expected:
        return ""  # What Python calls equal is; most long values end here, at no cost.
    inner = rules.inside()
    for index, (mine, theirs) in enumerate(zip(value, expected, strict=False)):
        difference = _difference(mine, theirs, inner)
        if difference:
            return f"[{index}]{difference}"
    if len(value) != len(expected):
        return f": expected {len(expected)} items, got {len(value)}"
    return ""


def _dict_difference(value: object, expected: dict[str, Any], rules: ValueRules) -> str:
    if not isinstance(value, ReturnedDict):
        return f": expected a dict, got {show(value)}"
    if len(value.pairs) != len(expected):
        return f": expected {len(expected)} keys, got {len(value.pairs)}"
    found = {name_of(key): item for key, item in value.pairs}
    if found.keys() != expected.keys():
        return f": expected keys {show(list(expected))}, got {show(list(found))}"
    inner = rules.inside()
    for key, theirs in expected.items():
        difference = _difference(found[key], theirs, inner)
        if difference:
            return f"[{key!r}]{difference}"
    return ""


def _difference_in_any_order(value: object, expected: list[Any], rules: ValueRules) -> str:
    """Compare the items as often as they come, whatever their order; a returned set is as good as a list."""
    items = value.items if isinstance(value, ReturnedSet) else value
    if not isinstance(items, (list, tuple)):
        return f": expected a list, got {show(value)}"
    if len(items) != len(expected):
        return f", in any order: expected {len(expected)} items, got {len(items)}"
    inner = rules.inside()
    left = Counter(_key(item, rules.is_nested) for item in expected)
    for item in items:
        key = _key(item, rules.is_nested)
        if not left[key]:
            if any(map(_has_real, expected)) or rules.tolerance.is_stated:
                return _difference_within_tolerance(items, expected, inner)
            return f", in any order: unexpected {show(item)}"
        left[key] -= 1
    return ""


def _difference_within_tolerance(items: Sequence[object], expected: Sequence[object], inner: ValueRules) -> str:
    def agree(mine: object, theirs: object) -> bool:
        return not _difference(mine, theirs, inner)

    outlines = [outline(item, inner.tolerance, inner.is_nested) for item in items]
    near = windows(outlines, [outline(item, inner.tolerance, inner.is_nested) for item in expected])
    unpaired = match_all(items, expected, agree, near)
    return "" if unpaired is None else f", in any order: unexpected {show(items[unpaired])}"


def _has_real(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_real, value.values()))
    return any(map(_has_real, value)) if isinstance(value, list) else isinstance(value, float)


def _key(value: object, is_nested: bool) -> str:
    """Return a text that values share only if they are equal, up to order where it is free."""
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, str):
        return repr(value)

    def join(items: Iterable[object]) -> str:
        keys = [_key(item, is_nested) for item in items]
        return ",".join(sorted(keys) if is_nested else keys)

    if isinstance(value, (ReturnedDict, dict)):
        named = value.pairs if isinstance(value, ReturnedDict) else value.items()
        return "{" + ",".join(sorted(f"{name_of(name)!r}:{_key(item, is_nested)}" for name, item in named)) + "}"
    if isinstance(value, ReturnedSet):
        return f"[{join(value.items)}]" if is_nested else f"set[{join(value.items)}]"
    if isinstance(value, (list, tuple)):
        return f"[{join(value)}]"
    if isinstance(value, float) and value.is_integer():
        return hex(int(value))
    return repr(value)
