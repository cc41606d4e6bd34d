"""Values of function-call problems: what a program returned, and whether it is the expected value.

Decoding rebuilds plain Python values from a typed JSON text, so a lying `__eq__` or `__str__` stays
behind in the sandbox. The text itself is untrusted: anything malformed is an error of the program.

The expected value is JSON. Lists are compared in order, or in any order; with a tolerance
`find_unpaired` then pairs items with expected ones, the smallest first. Start with
`find_difference`.
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
"""Most characters of a value that a message shows."""
_MAX_DEPTH = 256
"""Deepest nesting of a value.

It is more than the sandbox encodes, and few enough levels to walk it by recursion.
"""
_DIGITS_PYTHON_READS = 4300
"""Most digits of an integer that Python writes as text without leave."""


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
    """A returned fraction that is no integer, though the float nearest to it is one.

    An example is a fraction of 20 digits.
    """

    __slots__ = ()
    # A class that defines `__eq__` has no hash unless it names one.
    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        """Whether a float is the nearest one to this fraction; an integer never is."""
        return not isinstance(other, int) and float.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        """The opposite of `__eq__`, which would otherwise be answered by float's own method."""
        return not self == other

    def __repr__(self) -> str:
        """Say that it is no integer: a message would read "expected 7, got 7.0"."""
        return f"a fraction near {float.__repr__(self)}"

    def is_integer(self) -> bool:
        """Return False, so that comparison without order does not take it for an integer."""
        return False


class _Beginning(reprlib.Repr):
    """Shortens the text of a value to what fits into a message."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = 40
        self.maxtuple = 40
        self.maxdict = 20
        self.maxstring = 2 * _MAX_SHOWN
        self.maxlong = 2 * _MAX_SHOWN
        self.maxother = 2 * _MAX_SHOWN

    def repr_ReturnedDict(self, value: ReturnedDict, level: int) -> str:
        return f"dict({self.repr_list(value.pairs, level)})"

    def repr_ReturnedSet(self, value: ReturnedSet, level: int) -> str:
        return f"set({self.repr_list(value.items, level)})"


_BEGINNING = _Beginning()
"""Its only instance."""


class MalformedWire(ValueError):
    """The program wrote something other than an encoded value."""


def decode_value(wire: bytes) -> object:
    """Return the value that a program returned, from its encoded form.

    Raises:
        MalformedWire: the text is no encoded value, or one nested too deeply.
    """
    try:
        value = json.loads(wire, object_hook=_untag)
        # Checked once here, so that every later walk of the value may use recursion.
        _check_depth(value)
    # Whatever a hostile text provokes is the program's fault and must not look like ours.
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise MalformedWire(f"{type(error).__name__} in the returned value") from None
    return value


def _untag_dict(body: Iterable[object]) -> ReturnedDict:
    return ReturnedDict([(key, item) for key, item in map(_check_list, body)])


_UNTAG: Mapping[str, Callable[[Any], object]] = {
    # In hexadecimal: Python refuses decimal text of more than 4,300 digits.
    "int": lambda body: int(body, 16),
    "float": float.fromhex,
    "fraction": lambda body: ReturnedFraction(float.fromhex(body)),
    "tuple": lambda body: tuple(_check_list(body)),
    "set": lambda body: ReturnedSet(_check_list(body)),
    "dict": _untag_dict,
}
"""Tag -> how the value is rebuilt; sandbox/functions.py writes the tags."""


def _untag(wire: dict[str, Any]) -> object:
    """Return the value of a tagged JSON object, such as a tuple or a set.

    The values inside are rebuilt already.
    """
    # Fails unless there is exactly one member: the sandbox writes no other objects.
    ((tag, body),) = wire.items()
    return _UNTAG[tag](body)


def _check_list(body: object) -> list[Any]:
    # Not `isinstance`: a rebuilt tuple or set is no list of the wire.
    if type(body) is not list:
        raise TypeError("a tag without a list")
    return body


def _check_depth(value: object) -> None:
    """Raise ValueError if a value is nested so deeply that a recursive walk of it would fail."""
    level: list[Any] = [value]
    for _ in range(_MAX_DEPTH + 1):
        level = list(chain.from_iterable(map(_items_of, level)))
        if not level:
            return
    raise ValueError("nested too deeply")


def _items_of(value: object) -> Iterable[Any]:
    """Return the values inside a container; nothing of another value."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, ReturnedDict):
        return chain.from_iterable(value.pairs)
    if isinstance(value, ReturnedSet):
        return value.items
    return ()


def write_json(value: object) -> str:
    """Return a decoded value as JSON.

    Tuples and sets are written as lists, keys as text, integers of any length.
    """
    if isinstance(value, ReturnedDict):
        members = []
        for key, item in value.pairs:
            name = key if isinstance(key, str) else write_json(key)
            members.append(f"{json.dumps(name)}: {write_json(item)}")
        return "{" + ", ".join(members) + "}"
    if isinstance(value, ReturnedSet):
        return write_json(value.items)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(write_json, value)) + "]"
    # A decimal digit takes more than three bits; a Decimal writes more digits than an integer may.
    if isinstance(value, int) and value.bit_length() > 3 * _DIGITS_PYTHON_READS:
        return str(Decimal(value))
    return json.dumps(value)


def name_of(key: object) -> str:
    """Return the key of a returned dict as JSON writes it: all keys are strings.

    An integer becomes its digits.
    """
    if isinstance(key, str):
        return key
    try:
        if key is None or isinstance(key, bool):
            return json.dumps(key)
        return repr(key)
    # Python does not write an integer of so many digits.
    except ValueError:
        return show(key)


def show(value: object) -> str:
    """Return a short text for a message, whatever the value and however large."""
    try:
        text = _BEGINNING.repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to print"
    if len(text) <= _MAX_SHOWN:
        return text
    return text[: _MAX_SHOWN - 3] + "..."


TOLERANCE = 1e-5
"""LeetCode's tolerance, absolute or relative; applies only if the expected number is real."""
_BY_DEFAULT = Tolerance(TOLERANCE, TOLERANCE)
"""The tolerance of returned numbers where the problem states none."""


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

    def for_items(self) -> Self:
        """Return the rules for the items inside a list or dict."""
        if self.is_unordered == self.is_nested:
            return self
        return replace(self, is_unordered=self.is_nested)


def stated_tolerance(checker: Checker) -> Tolerance | None:
    """Return the tolerance that a checker states; None if it states none."""
    if checker.absolute is not None or checker.relative is not None:
        return Tolerance(checker.absolute or 0.0, checker.relative or 0.0, is_stated=True)
    if checker.tolerance is not None:
        return Tolerance(checker.tolerance, checker.tolerance, is_stated=True)
    return None


def rules_for(checker: Checker) -> ValueRules:
    """Return the rules by which a checker compares returned values."""
    tolerance = stated_tolerance(checker) or _BY_DEFAULT
    match checker.type:
        case "float":
            return ValueRules(tolerance)
        case "exact":
            return ValueRules(Tolerance(0.0, 0.0, is_stated=True), is_strict=True)
        case "unordered":
            return ValueRules(
                tolerance,
                is_unordered=checker.lists != "inner",
                is_nested=checker.lists != "outermost",
            )
    return ValueRules()


def find_difference(value: object, expected: object, rules: ValueRules) -> str:
    """Return a message about the first difference from the expected value; empty if there is none.

    The message says where the difference is. Lists and tuples are the same; bools equal 0 and 1 as
    in Python. Where either value is an integer, both must be exactly equal. JSON has string keys
    only, so an integer key equals its digits.
    """
    difference = _difference(value, expected, rules)
    return f"value{difference}" if difference else ""


def _difference(value: object, expected: object, rules: ValueRules) -> str:
    """Return where and how a value differs, as the end of a message; empty if it does not."""
    if isinstance(expected, list):
        if rules.is_unordered:
            return _difference_in_any_order(value, expected, rules)
        return _list_difference(value, expected, rules)
    if isinstance(expected, dict):
        return _dict_difference(value, expected, rules)
    if _is_equal(value, expected, rules):
        return ""
    return f": expected {show(expected)}, got {show(value)}"


def _is_equal(value: object, expected: object, rules: ValueRules) -> bool:
    """Whether a value is an expected number, string, bool or null."""
    if isinstance(value, (int, float)) and not rules.is_strict:
        if isinstance(expected, float):
            return values_agree(value, expected, rules.tolerance)
        if isinstance(expected, int):
            return value == expected
    # The types count: by `==` alone, true would be 1 in strict rules, too.
    return type(value) is type(expected) and value == expected


def _list_difference(value: object, expected: list[Any], rules: ValueRules) -> str:
    if not isinstance(value, (list, tuple)):
        return f": expected a list, got {show(value)}"
    if not rules.is_strict and not rules.is_nested and value == expected:
        return ""  # What Python calls equal is; most long values end here, at no cost.
    inner = rules.for_items()
    for index, (mine, theirs) in enumerate(zip(value, expected, strict=False)):
        difference = _difference(mine, theirs, inner)
        if difference:
            return f"[{index}]{difference}"
    if len(value) != len(expected):
        return f": expected {len(expected)} items, got {len(value)}"
    return ""


def _dict_difference(
    value: object,
    expected: dict[str, Any],
    rules: ValueRules,
) -> str:
    if not isinstance(value, ReturnedDict):
        return f": expected a dict, got {show(value)}"
    # Before names are made: keys that share a name would hide each other.
    if len(value.pairs) != len(expected):
        return f": expected {len(expected)} keys, got {len(value.pairs)}"
    members = {name_of(key): item for key, item in value.pairs}
    if members.keys() != expected.keys():
        return f": expected keys {show(list(expected))}, got {show(list(members))}"
    inner = rules.for_items()
    for key, theirs in expected.items():
        difference = _difference(members[key], theirs, inner)
        if difference:
            return f"[{key!r}]{difference}"
    return ""


def _difference_in_any_order(
    value: object,
    expected: list[Any],
    rules: ValueRules,
) -> str:
    """Compare lists without regard to order; return a message about an item that has no partner.

    A returned set counts as a list.
    """
    items = value.items if isinstance(value, ReturnedSet) else value
    if not isinstance(items, (list, tuple)):
        return f": expected a list, got {show(value)}"
    if len(items) != len(expected):
        return f", in any order: expected {len(expected)} items, got {len(items)}"
    # Counted by key, since comparing each item with each takes quadratic time.
    left = Counter(_key(item, rules.is_nested) for item in expected)
    for item in items:
        key = _key(item, rules.is_nested)
        if not left[key]:
            # No equal item is left; one within the tolerance may be.
            if rules.tolerance.is_stated or _has_real(expected):
                return _difference_within_tolerance(items, expected, rules.for_items())
            return f", in any order: unexpected {show(item)}"
        left[key] -= 1
    return ""


def _difference_within_tolerance(
    items: Sequence[object],
    expected: Sequence[object],
    inner: ValueRules,
) -> str:
    def order(value: object) -> float:
        return _total(value, is_nested=inner.is_nested)

    def agree(item: object, wanted: object) -> bool:
        return not _difference(item, wanted, inner)

    # Sorted, items that agree are near each other, so that few pairs are compared.
    by_size = sorted(items, key=order)
    unpaired = find_unpaired(by_size, sorted(expected, key=order), agree)
    if unpaired is None:
        return ""
    return f", in any order: unexpected {show(by_size[unpaired])}"


_LARGEST = 1e150
"""Larger numbers are left out of the sum, which might overflow."""
_GOLDEN = 0.6180339887498949
"""The golden ratio's fraction: its multiples modulo 1 are spread evenly, and none are the same."""
_MOST_OF_A_TEXT = 1_000_003
"""What a text adds to the sum is less than this: a prime, so that remainders are spread."""


def _total(value: object, *, is_nested: bool) -> float:
    """Return a number by which values that nearly agree are sorted next to each other.

    It is a weighted sum. Items of a list are weighted by index where order matters, so that
    permutations have different sums.
    """
    if isinstance(value, (list, tuple, ReturnedSet)):
        return _total_of_items(value, is_nested=is_nested)
    if isinstance(value, str):
        # Not `hash`, which differs from process to process: a verdict must not.
        return float(crc32(value.encode("utf-8", "surrogatepass")) % _MOST_OF_A_TEXT)
    if isinstance(value, (int, float)) and abs(value) <= _LARGEST:
        return float(value)
    return 0.0


def _total_of_items(box: Sequence[object] | ReturnedSet, *, is_nested: bool) -> float:
    items = box.items if isinstance(box, ReturnedSet) else box
    is_ordered = not is_nested and not isinstance(box, ReturnedSet)
    terms = []
    for index, item in enumerate(items):
        weight = 1.0
        if is_ordered:
            weight = 1 + (index * _GOLDEN) % 1
        terms.append(weight * _total(item, is_nested=is_nested))
    return sum(terms)


def _has_real(value: object) -> bool:
    """Whether an expected value is a real number, or has one inside."""
    if isinstance(value, dict):
        return any(map(_has_real, value.values()))
    if isinstance(value, list):
        return any(map(_has_real, value))
    return isinstance(value, float)


def _key(value: object, is_nested: bool) -> str:
    """Return a text that is the same for equal values, and differs for others; free order is
    ignored."""
    # Hexadecimal takes linear time at any length, and gives True the key of 1, its equal.
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, ReturnedDict):
        return _key_of_pairs(value.pairs, is_nested)
    if isinstance(value, dict):
        return _key_of_pairs(value.items(), is_nested)
    if isinstance(value, ReturnedSet):
        joined = _join_keys(value.items, is_nested)
        # Where order is free inside, a returned set counts as a list.
        return f"[{joined}]" if is_nested else f"set[{joined}]"
    if isinstance(value, (list, tuple)):
        return f"[{_join_keys(value, is_nested)}]"
    # Numbers that are equal need one key: 3.0 and 3.
    if isinstance(value, float) and value.is_integer():
        return hex(int(value))
    return repr(value)


def _key_of_pairs(pairs: Iterable[tuple[object, object]], is_nested: bool) -> str:
    members = [f"{name_of(name)!r}:{_key(item, is_nested)}" for name, item in pairs]
    return "{" + ",".join(sorted(members)) + "}"


def _join_keys(items: Iterable[object], is_nested: bool) -> str:
    keys = [_key(item, is_nested) for item in items]
    if is_nested:
        keys.sort()
    return ",".join(keys)


Item = TypeVar("Item")
"""What is paired: values, or nodes of literals."""

_MOST_CHECKS = 100_000
"""Maximum number of compared pairs; an output that needs more is rejected."""


def find_unpaired(
    items: Sequence[Item],
    wanted: Sequence[Item],
    agree: Callable[[Item, Item], bool],
) -> int | None:
    """Pair items with the wanted ones that they agree with; return the index of the first item left
    over.

    None if all pair. Each item takes the first wanted item that is still free. This always pairs
    sorted numbers that can be paired. Lists may be left over where two expected lists differ by no
    more than the tolerance in every place.
    """
    left = list(wanted)
    num_checks = 0
    for index, item in enumerate(items):
        for position, other in enumerate(left):
            num_checks += 1
            # The number of pairs grows as the square of the length.
            if num_checks > _MOST_CHECKS:
                return index
            if agree(item, other):
                del left[position]
                break
        else:
            return index
    return None
