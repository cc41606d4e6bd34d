"""The typed wire that a result leaves by: JSON with tags for what JSON lacks.

Subclasses are flattened by the methods of their base class, and the judge rebuilds plain values only, so what a
result's class claims about itself never matters.
"""

from __future__ import annotations

import array
import collections
import collections.abc
import decimal
import fractions
import itertools
import sys
from typing import Any

_EXACT_IN_JSON = 1 << 53
_MAX_DEPTH = 200
_MOST_ITEMS = 1 << 22
"""Of an iterator; a list may be longer."""

_SEQUENCES = (
    list,
    range,
    collections.deque,
    array.array,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)
_NOT_LISTS = (bytes, bytearray, memoryview)

Encoded = bool | int | str | list[Any] | dict[str, Any] | None


def encode(value: Any, depth: int = 0) -> Encoded:
    """Return a value's wire form; subclasses are flattened by the methods of their base class.

    Raises:
        TypeError: the value is of no kind that an expected result could have.
    """
    if depth > _MAX_DEPTH:
        raise TypeError("the returned value is nested too deeply to be compared")
    kind = type(value)
    if value is None or kind is bool:
        return value
    if issubclass(kind, int):
        number = int.__add__(value, 0)
        return number if abs(number) < _EXACT_IN_JSON else {"int": hex(number)}
    if issubclass(kind, float):
        return {"float": float.hex(value)}
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, tuple):
        return {"tuple": [encode(item, depth + 1) for item in tuple.__iter__(value)]}
    if issubclass(kind, dict):
        pairs = dict.items(value)
        return {"dict": [[encode(key, depth + 1), encode(item, depth + 1)] for key, item in pairs]}
    for sequence in _SEQUENCES:
        if issubclass(kind, sequence):
            items = sequence.__iter__(value)
            return [encode(item, depth + 1) for item in items]
    if issubclass(kind, (set, frozenset)):
        base = set if issubclass(kind, set) else frozenset
        return {"set": [encode(item, depth + 1) for item in base.__iter__(value)]}
    if issubclass(kind, (decimal.Decimal, fractions.Fraction)):
        return _encode_rational(value, decimal.Decimal if issubclass(kind, decimal.Decimal) else fractions.Fraction)
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return encode(numpy.ndarray.tolist(value), depth + 1)
    if numpy is not None and issubclass(kind, numpy.floating):
        return {"float": float.hex(float(value))}
    if numpy is not None and issubclass(kind, numpy.generic):
        return encode(value.item(), depth + 1)
    if issubclass(kind, collections.abc.Sequence) and not issubclass(kind, _NOT_LISTS):
        return [encode(item, depth + 1) for item in value]
    if issubclass(kind, collections.abc.Iterator):
        items = [encode(item, depth + 1) for item in itertools.islice(value, _MOST_ITEMS + 1)]
        if len(items) > _MOST_ITEMS:
            raise TypeError(f"the returned iterator does not end within {_MOST_ITEMS} items")
        return items
    raise TypeError(f"the returned value is of type {kind.__name__}, which cannot be compared")


def _encode_rational(value: Any, base: type) -> Encoded:
    """An integer stays exact, anything else is a real number as JSON has them."""
    try:
        numerator, denominator = base.as_integer_ratio(value)
    except (OverflowError, ValueError):
        return {"float": float.hex(float(value))}
    return encode(numerator) if denominator == 1 else {"float": float.hex(numerator / denominator)}
