"""Values of function-call problems: decode what came over the wire, compare it with the expected JSON value.

Decoding rebuilds plain Python values from a typed JSON text, so a lying `__eq__` or `__str__` stays behind in the
sandbox. The text itself is untrusted: anything malformed is an error of the program.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Literal

from microcoder.errors import DataError
from microcoder.types import Checker

TOLERANCE = 1e-5
"""LeetCode's: absolute or relative, only where the expected number is real."""

_MAX_SHOWN = 80
_MAX_DEPTH = 256
"""Beyond what the sandbox encodes, and far from Python's limit on recursion: whatever walks a value may recurse."""
_DIGITS_PYTHON_READS = 4300


class MalformedWire(ValueError):
    """The program wrote something else than an encoded value."""


def decode_value(wire: bytes) -> object:
    """Rebuild a returned value.

    Raises:
        MalformedWire: the bytes are no encoded value.
    """
    try:
        return _plain(json.loads(wire))
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise MalformedWire(f"{type(error).__name__} in the returned value") from None


def _plain(wire: Any, depth: int = 0) -> object:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    if isinstance(wire, list):
        return [_plain(item, depth + 1) for item in wire]
    if not isinstance(wire, dict):
        return wire
    ((tag, body),) = wire.items()
    match tag:
        case "int":
            return int(body, 16)
        case "float":
            return float.fromhex(body)
        case "tuple":
            return tuple(_plain(item, depth + 1) for item in body)
        case "set":
            return {"set": [_plain(item, depth + 1) for item in body]}
        case "dict":
            return Pairs([(_plain(key, depth + 1), _plain(item, depth + 1)) for key, item in body])
    raise KeyError(tag)


class Pairs(list[tuple[object, object]]):
    """A returned dict: keys of any type, in the order of the program."""


def read_json(text: str) -> object:
    """Read JSON without the limit on the digits of an integer.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return json.loads(text, parse_int=_parse_int)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _parse_int(digits: str) -> int:
    if len(digits) < _DIGITS_PYTHON_READS:
        return int(digits)
    return int(Decimal(digits, Context(prec=len(digits))))


def write_json(value: object) -> str:
    """Return a decoded value as JSON: tuples and sets as lists, keys as text, integers of any length."""
    if isinstance(value, Pairs):
        pairs = ((key if isinstance(key, str) else write_json(key), item) for key, item in value)
        return "{" + ", ".join(f"{json.dumps(key)}: {write_json(item)}" for key, item in pairs) + "}"
    if isinstance(value, dict):
        return write_json(value["set"])
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(write_json, value)) + "]"
    if isinstance(value, int) and value.bit_length() > 3 * _DIGITS_PYTHON_READS:
        return str(Decimal(value))
    return json.dumps(value)


def read_arguments(text: str, *, problem_id: str, test: int) -> list[object]:
    """Read a test's input: one JSON argument per line, blank lines left out.

    Raises:
        DataError: a line is not JSON.
    """
    arguments = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                arguments.append(read_json(line))
            except ValueError as error:
                raise DataError(
                    f"problem {problem_id}, test {test}, input line {number} is not a JSON argument ({error}): "
                    f"{line[:_MAX_SHOWN]!r}; a function-call problem takes one JSON value per line"
                ) from None
    return arguments


def read_expected(text: str, *, problem_id: str, test: int) -> object:
    """Read a test's expected value.

    Raises:
        DataError: it is not JSON.
    """
    try:
        return read_json(text)
    except ValueError as error:
        raise DataError(
            f"problem {problem_id}, test {test}: the expected output is not JSON ({error}): {text[:_MAX_SHOWN]!r}; "
            "a function-call problem expects one JSON value"
        ) from None


@dataclass(frozen=True, slots=True)
class ValueRules:
    """How returned values are compared."""

    absolute: float = TOLERANCE
    relative: float = TOLERANCE
    """Only an expected real number has a tolerance."""
    is_strict: bool = False
    """An integer is no real number and no bool."""
    is_unordered: bool = False
    """The items of lists may come in any order: of those that `lists` names."""
    lists: Literal["outermost", "inner", "all"] = "outermost"


def tolerances_of(checker: Checker, default: float) -> tuple[float, float]:
    """Return a checker's absolute and relative tolerance."""
    if checker.absolute is not None or checker.relative is not None:
        return checker.absolute or 0.0, checker.relative or 0.0
    tolerance = checker.tolerance or default
    return tolerance, tolerance


def rules_for(checker: Checker) -> ValueRules:
    """Return the rules that a checker means for values."""
    match checker.type:
        case "float":
            return ValueRules(*tolerances_of(checker, TOLERANCE))
        case "exact":
            return ValueRules(0.0, 0.0, is_strict=True)
        case "unordered":
            return ValueRules(is_unordered=True, lists=checker.lists)
    return ValueRules()


def find_difference(value: object, expected: object, rules: ValueRules, path: str = "value") -> str:
    """Return where a value first differs from the expected one, or an empty string where it does not.

    Lists and tuples are one kind; bools equal 0 and 1 as in Python; integers are exact, also against a real number;
    only an expected real number has a tolerance. JSON has string keys only, so an integer key equals its digits.
    """
    if rules.is_unordered and path == "value" and isinstance(expected, list):
        return _unordered_difference(value, expected, rules.lists)
    if isinstance(expected, list):
        return _list_difference(value, expected, rules, path)
    if isinstance(expected, dict):
        return _dict_difference(value, expected, rules, path)
    if rules.is_strict:
        is_equal = type(value) is type(expected) and value == expected
    elif isinstance(expected, float) and isinstance(value, (int, float)):
        is_equal = numbers_agree(value, expected, rules.absolute, rules.relative)
    elif isinstance(expected, (int, float)):
        is_equal = isinstance(value, (int, float)) and value == expected
    else:
        is_equal = type(value) is type(expected) and value == expected
    return "" if is_equal else f"{path}: expected {show(expected)}, got {show(value)}"


def _unordered_difference(value: object, expected: list[Any], lists: str) -> str:
    """Compare the items as often as they come, whatever their order; a returned set is as good as a list."""
    items = value["set"] if isinstance(value, dict) else value
    if not isinstance(items, (list, tuple)) or isinstance(items, Pairs):
        return f"value: expected a list, got {show(value)}"
    is_inner = lists != "outermost"
    keys, wanted_keys = ([_key(item, is_sorted=is_inner) for item in side] for side in (items, expected))
    if lists == "inner":
        place = next((n for n, (a, b) in enumerate(zip(keys, wanted_keys, strict=False)) if a != b), None)
        if place is None and len(keys) == len(wanted_keys):
            return ""
        if place is None:
            return f"value: expected {len(expected)} items, got {len(items)}"
        return f"value[{place}], in any order: expected {show(expected[place])}, got {show(items[place])}"
    found, wanted = Counter(keys), Counter(wanted_keys)
    if found == wanted:
        return ""
    missing, extra = next(iter(wanted - found), None), next(iter(found - wanted), None)
    return f"value, in any order: missing {missing}, unexpected {extra}"


def _key(value: object, *, is_sorted: bool) -> str:
    """Return a text that equal values share; `is_sorted` where the items of lists may come in any order."""
    if isinstance(value, Pairs):
        names = [(key if isinstance(key, str) else show(key), item) for key, item in value]
        return "{" + ",".join(sorted(f"{name!r}:{_key(item, is_sorted=is_sorted)}" for name, item in names)) + "}"
    if isinstance(value, dict) and value.keys() == {"set"} and is_sorted:
        value = value["set"]
    if isinstance(value, dict):
        pairs = value.items()
        return "{" + ",".join(sorted(f"{name!r}:{_key(item, is_sorted=is_sorted)}" for name, item in pairs)) + "}"
    if isinstance(value, (list, tuple)):
        keys = [_key(item, is_sorted=is_sorted) for item in value]
        return "[" + ",".join(sorted(keys) if is_sorted else keys) + "]"
    if isinstance(value, float) and value.is_integer():
        return hex(int(value))
    if isinstance(value, int):
        return hex(value)
    return repr(value)


def _list_difference(value: object, expected: list[Any], rules: ValueRules, path: str) -> str:
    if not isinstance(value, (list, tuple)) or isinstance(value, Pairs):
        return f"{path}: expected a list, got {show(value)}"
    for index, (mine, theirs) in enumerate(zip(value, expected, strict=False)):
        difference = find_difference(mine, theirs, rules, f"{path}[{index}]")
        if difference:
            return difference
    if len(value) != len(expected):
        return f"{path}: expected {len(expected)} items, got {len(value)}"
    return ""


def _dict_difference(value: object, expected: dict[str, Any], rules: ValueRules, path: str) -> str:
    if not isinstance(value, Pairs):
        return f"{path}: expected a dict, got {show(value)}"
    found = {key if isinstance(key, str) else show(key): item for key, item in value}
    if found.keys() != expected.keys() or len(found) != len(value):
        return f"{path}: expected keys {show(list(expected))}, got {show(list(found))}"
    for key, theirs in expected.items():
        difference = find_difference(found[key], theirs, rules, f"{path}[{key!r}]")
        if difference:
            return difference
    return ""


def numbers_agree(value: float, expected: float, absolute: float, relative: float) -> bool:
    """Whether two numbers agree absolutely or relatively; infinities and nan only with themselves."""
    if not math.isfinite(expected):
        return value == expected or (math.isnan(expected) and value != value)
    try:
        return abs(float(value) - expected) <= max(absolute, relative * abs(expected))
    except OverflowError:
        return False


def show(value: object) -> str:
    """Return a short text for a message, whatever the value."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to print"
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
