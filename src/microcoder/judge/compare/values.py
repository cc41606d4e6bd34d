"""Values of function-call problems: decode what a program returned, compare it with the expected JSON value.

Decoding rebuilds plain Python values from a typed JSON text, so a lying `__eq__` or `__str__` stays behind in the
sandbox. The text itself is untrusted: anything malformed is an error of the program.

Lists are compared in order, or in any order; with a tolerance `find_unpaired` then pairs items with expected ones, the
smallest first.
"""

import json
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import Any, Self, TypeVar
from zlib import crc32

from microcoder.judge.compare.text import Tolerance, values_agree
from microcoder.judge.core.types import Checker

_MAX_SHOWN = 80
_MAX_DEPTH = 256
"""Deepest nesting of a value: more than the sandbox encodes, and few enough levels to walk it by recursion."""
_DIGITS_PYTHON_READS = 4300


@dataclass(frozen=True, slots=True)
class ReturnedDict:
    """A returned dict: equal to no list and to no expected JSON, whatever it holds."""

    pairs: list[tuple[object, object]]
    """Pairs of key and value in the program's order; keys of any type."""


@dataclass(frozen=True, slots=True)
class ReturnedSet:
    """A returned set: equal to no list and to no expected JSON, whatever it holds."""

    items: list[object]


class ReturnedFraction(float):
    """A returned fraction that equals no integer, though the float nearest to it is one: of 20 digits, for example."""

    __slots__ = ()
    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        """Whether a real number is this one, as far as a float tells; never true of an integer."""
        return not isinstance(other, int) and float.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        """The opposite: a float would answer by itself."""
        return not self == other

    def __repr__(self) -> str:
        """Say that it is no integer: a message would read "expected 7, got 7.0"."""
        return f"a fraction near {float.__repr__(self)}"

    def is_integer(self) -> bool:
        """Return False, by which lists in any order tell it from an integer."""
        return False


class _Beginning(reprlib.Repr):
    """Shortens the text of a value to what fits into a message."""

    def repr_ReturnedDict(self, value: ReturnedDict, level: int) -> str:
        return f"dict({self.repr_list(value.pairs, level)})"

    def repr_ReturnedSet(self, value: ReturnedSet, level: int) -> str:
        return f"set({self.repr_list(value.items, level)})"


_BEGINNING = _Beginning()
_BEGINNING.maxlevel, _BEGINNING.maxlist, _BEGINNING.maxtuple, _BEGINNING.maxdict = 3, 40, 40, 20
_BEGINNING.maxstring = _BEGINNING.maxlong = _BEGINNING.maxother = 2 * _MAX_SHOWN


class MalformedWire(ValueError):
    """The program wrote something other than an encoded value."""


def decode_value(wire: bytes) -> object:
    """Return the value that a program returned, from its encoded form; raises MalformedWire."""
    try:
        value = json.loads(wire, object_hook=_untag)
        _check_depth(value)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise MalformedWire(f"{type(error).__name__} in the returned value") from None
    return value


_UNTAG: Mapping[str, Callable[[Any], object]] = {
    "int": lambda body: int(body, 16),
    "float": float.fromhex,
    "fraction": lambda body: ReturnedFraction(float.fromhex(body)),
    "tuple": lambda body: tuple(_listed(body)),
    "set": lambda body: ReturnedSet(_listed(body)),
    "dict": lambda body: ReturnedDict([(key, item) for key, item in map(_listed, body)]),
}


def _untag(wire: dict[str, Any]) -> object:
    """Return the value of a tagged JSON object, such as a tuple or a set; the values inside are rebuilt already."""
    ((tag, body),) = wire.items()
    return _UNTAG[tag](body)


def _listed(body: object) -> list[Any]:
    if type(body) is not list:
        raise TypeError("a tag without a list")
    return body


def _check_depth(value: object) -> None:
    """Raise ValueError if a value is nested so deeply that a recursive walk of it would fail."""
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH + 1):
        level = [item for box in level for item in _inside(box)]
        if not level:
            return
    raise ValueError("nested too deeply")


def _inside(box: Any) -> Iterable[Any]:
    if isinstance(box, (list, tuple)):
        return box
    if isinstance(box, ReturnedDict):
        return chain.from_iterable(box.pairs)
    return box.items if isinstance(box, ReturnedSet) else ()


def write_json(value: object) -> str:
    """Return a decoded value as JSON: tuples and sets as lists, keys as text, integers of any length."""
    if isinstance(value, ReturnedDict):
        pairs = (
            (key if isinstance(key, str) else write_json(key), item) for key, item in value.pairs
        )
        return (
            "{" + ", ".join(f"{json.dumps(key)}: {write_json(item)}" for key, item in pairs) + "}"
        )
    if isinstance(value, ReturnedSet):
        return write_json(value.items)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(write_json, value)) + "]"
    if isinstance(value, int) and value.bit_length() > 3 * _DIGITS_PYTHON_READS:
        return str(Decimal(value))
    return json.dumps(value)


def name_of(key: object) -> str:
    """Return the key of a returned dict as JSON writes it, where all keys are strings: an integer as its digits."""
    try:
        return (
            key
            if isinstance(key, str)
            else json.dumps(key)
            if key is None or isinstance(key, bool)
            else repr(key)
        )
    except ValueError:
        return show(key)


def show(value: object) -> str:
    """Return a short text for a message, whatever the value and however large."""
    try:
        text = _BEGINNING.repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to print"
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


TOLERANCE = 1e-5
"""LeetCode's tolerance, absolute or relative; applies only if the expected number is real."""
_BY_DEFAULT = Tolerance(TOLERANCE, TOLERANCE)


@dataclass(frozen=True, slots=True)
class ValueRules:
    """How returned values are compared."""

    tolerance: Tolerance = _BY_DEFAULT
    """Tolerance of numbers; unless the problem states it, only where a real number is expected."""
    is_strict: bool = False
    """Values of different types differ: 1, 1.0 and true."""
    is_unordered: bool = False
    """The items of the outermost list may come in any order."""
    is_nested: bool = False
    """The items of every list inside may come in any order."""

    def inside(self) -> Self:
        """Return the rules for what is inside a list or a dict."""
        return (
            self
            if self.is_unordered == self.is_nested
            else replace(self, is_unordered=self.is_nested)
        )


def stated_tolerance(checker: Checker) -> Tolerance | None:
    """Return the tolerance that a checker states; None if it states none."""
    if checker.absolute is not None or checker.relative is not None:
        return Tolerance(checker.absolute or 0.0, checker.relative or 0.0, is_stated=True)
    return (
        Tolerance(checker.tolerance, checker.tolerance, is_stated=True)
        if checker.tolerance is not None
        else None
    )


def rules_for(checker: Checker) -> ValueRules:
    """Return the rules by which a checker compares returned values."""
    tolerance = stated_tolerance(checker) or _BY_DEFAULT
    match checker.type:
        case "float":
            return ValueRules(tolerance)
        case "exact":
            return ValueRules(Tolerance(0.0, 0.0, is_stated=True), is_strict=True)
        case "unordered":
            lists = checker.lists
            return ValueRules(
                tolerance, is_unordered=lists != "inner", is_nested=lists != "outermost"
            )
    return ValueRules()


def find_difference(value: object, expected: object, rules: ValueRules) -> str:
    """Return a message about the first difference from the expected value, with its location; empty if there is none.

    Lists and tuples are the same; bools equal 0 and 1 as in Python; integers are exact, also against a real number,
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
    if isinstance(expected, float) and isinstance(value, (int, float)) and not rules.is_strict:
        is_equal = values_agree(value, expected, rules.tolerance)
    else:
        are_numbers = (
            isinstance(expected, int) and isinstance(value, (int, float)) and not rules.is_strict
        )
        is_equal = (are_numbers or type(value) is type(expected)) and value == expected
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
    """Return a message about an item that is unexpected or missing, in any order; a returned set counts as a list."""
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


def _difference_within_tolerance(
    items: Sequence[object], expected: Sequence[object], inner: ValueRules
) -> str:
    def order(value: object) -> float:
        return _total(value, is_nested=inner.is_nested)

    by_size, wanted = sorted(items, key=order), sorted(expected, key=order)
    unpaired = find_unpaired(
        by_size, wanted, lambda mine, theirs: not _difference(mine, theirs, inner)
    )
    return "" if unpaired is None else f", in any order: unexpected {show(by_size[unpaired])}"


_LARGEST = 1e150
"""Larger numbers are left out of the sum, which might overflow."""
_GOLDEN = 0.6180339887498949
_MOST_OF_A_TEXT = 1_000_003


def _total(value: object, *, is_nested: bool) -> float:
    """Return a weighted sum over a value, by which those that nearly agree stand beside each other once sorted.

    Items of a list are weighted by index where order matters, so that permutations have different sums.
    """
    if isinstance(value, (list, tuple, ReturnedSet)):
        is_ordered = not (is_nested or isinstance(value, ReturnedSet))
        items = value.items if isinstance(value, ReturnedSet) else value
        weights = (1 + (index * _GOLDEN) % 1 if is_ordered else 1.0 for index in range(len(items)))
        return sum(
            weight * _total(item, is_nested=is_nested)
            for weight, item in zip(weights, items, strict=True)
        )
    if isinstance(value, str):
        return float(crc32(value.encode("utf-8", "surrogatepass")) % _MOST_OF_A_TEXT)
    return float(value) if isinstance(value, (int, float)) and abs(value) <= _LARGEST else 0.0


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
        return (
            "{"
            + ",".join(sorted(f"{name_of(name)!r}:{_key(item, is_nested)}" for name, item in named))
            + "}"
        )
    if isinstance(value, ReturnedSet):
        return f"[{join(value.items)}]" if is_nested else f"set[{join(value.items)}]"
    if isinstance(value, (list, tuple)):
        return f"[{join(value)}]"
    if isinstance(value, float) and value.is_integer():
        return hex(int(value))
    return repr(value)


Item = TypeVar("Item")

_MOST_CHECKS = 100_000
"""Maximum number of compared pairs; an output that needs more is rejected."""


def find_unpaired(
    found: Sequence[Item], wanted: Sequence[Item], agree: Callable[[Item, Item], bool]
) -> int | None:
    """Return the index of the first item found that agrees with no wanted one that is left; None if all are paired.

    Greedy: each item takes the first wanted one left with which it agrees. That pairs sorted numbers whenever they can
    be paired; lists may stay unpaired where two expected ones differ by no more than the tolerance in every place.
    """
    left, num_checks = list(wanted), 0
    for index, mine in enumerate(found):
        for place, theirs in enumerate(left):
            num_checks += 1
            if num_checks > _MOST_CHECKS:
                return index
            if agree(mine, theirs):
                del left[place]
                break
        else:
            return index
    return None
