"""Values of function-call problems: decode what came over the wire, compare it with the expected JSON value.

Decoding rebuilds plain Python values from a typed JSON text, so a lying `__eq__` or `__str__` stays behind in the
sandbox. The text itself is untrusted: anything malformed is an error of the program.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import chain
from typing import Any

from microcoder.errors import DataError

_MAX_SHOWN = 80
_MAX_DEPTH = 256
"""Beyond what the sandbox encodes, and far from Python's limit on recursion: whatever walks a value may recurse."""
_DIGITS_PYTHON_READS = 4300


@dataclass(frozen=True, slots=True)
class ReturnedDict:
    """A returned dict: equal to no list and to no expected JSON, whatever it holds."""

    pairs: list[tuple[object, object]]
    """Keys of any type, in the order of the program."""


@dataclass(frozen=True, slots=True)
class ReturnedSet:
    """A returned set: equal to no list and to no expected JSON, whatever it holds."""

    items: list[object]


class _Beginning(reprlib.Repr):
    """Shows no more of a value than a message has room for."""

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
    """Rebuild a returned value.

    Raises:
        MalformedWire: the bytes are no encoded value.
    """
    try:
        value = json.loads(wire, object_hook=_untag)
        _check_depth(value)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise MalformedWire(f"{type(error).__name__} in the returned value") from None
    return value


def _untag(wire: dict[str, Any]) -> object:
    """Rebuild what JSON lacks; what is inside has been rebuilt before."""
    ((tag, body),) = wire.items()
    match tag:
        case "int":
            return int(body, 16)
        case "float":
            return float.fromhex(body)
        case "tuple":
            return tuple(_listed(body))
        case "set":
            return ReturnedSet(_listed(body))
        case "dict":
            return ReturnedDict([(key, item) for key, item in map(_listed, body)])
    raise KeyError(tag)


def _listed(body: object) -> list[Any]:
    if type(body) is not list:
        raise TypeError("a tag of something else than a list")
    return body


def _check_depth(value: object) -> None:
    """Look level by level: whatever is deeper would end the recursion of whoever walks it."""
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
    if isinstance(value, ReturnedDict):
        pairs = ((key if isinstance(key, str) else write_json(key), item) for key, item in value.pairs)
        return "{" + ", ".join(f"{json.dumps(key)}: {write_json(item)}" for key, item in pairs) + "}"
    if isinstance(value, ReturnedSet):
        return write_json(value.items)
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


def name_of(key: object) -> str:
    """Return the name that a returned dict's key has in JSON, where names are strings: an integer's are its digits."""
    try:
        return key if isinstance(key, str) else repr(key)
    except ValueError:
        return show(key)


def show(value: object) -> str:
    """Return a short text for a message, whatever the value and however large."""
    try:
        text = _BEGINNING.repr(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to print"
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
