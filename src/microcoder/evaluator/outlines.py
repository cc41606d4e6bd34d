"""What two returned values must share to agree within a tolerance: their shape, and nearly a weighted sum of numbers.

A cheap filter for items that may be the same, whatever the order inside; the comparison decides whether they are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from microcoder.evaluator.numbers import Tolerance, allowed_error
from microcoder.evaluator.values import ReturnedDict, ReturnedSet, name_of, show

_LARGEST = 1e150
"""Beyond it, sums may overflow: the number is left out of the sum."""
_SLACK = 1e-9
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Outline:
    """A value's shape and the sum of its numbers."""

    shape: str
    total: float
    error: float
    """By how much the totals of two values that agree may differ."""


def outline(value: object, tolerance: Tolerance, is_nested: bool) -> Outline:
    """Return the outline of a returned or expected value.

    Args:
        value: either.
        tolerance: of a real number.
        is_nested: whether lists inside may come in any order; otherwise numbers are weighted by their place.
    """
    if isinstance(value, (int, float)):
        return _of_number(value, tolerance)
    if isinstance(value, ReturnedSet):
        return outline(value.items if is_nested else show(value), tolerance, is_nested)
    if isinstance(value, (ReturnedDict, dict)):
        pairs = value.pairs if isinstance(value, ReturnedDict) else value.items()
        named = sorted(((name_of(key), item) for key, item in pairs), key=lambda pair: pair[0])
        return _join([outline(item, tolerance, is_nested) for _, item in named], repr([n for n, _ in named]), True)
    if isinstance(value, (list, tuple)):
        return _join([outline(item, tolerance, is_nested) for item in value], "", not is_nested)
    return Outline(repr(value), 0.0, 0.0)


def windows(found: Sequence[Outline], wanted: Sequence[Outline]) -> Callable[[int], list[int]]:
    """Return which wanted ones each one found can agree with."""
    groups: dict[str, list[tuple[float, int]]] = {}
    for index, other in enumerate(wanted):
        groups.setdefault(other.shape, []).append((other.total, index))
    for group in groups.values():
        group.sort()

    def near(index: int) -> list[int]:
        mine = found[index]
        group = groups.get(mine.shape, [])
        start = bisect_left(group, (mine.total - mine.error, -1))
        end = bisect_left(group, (mine.total + mine.error, len(wanted)))
        return [number for _, number in group[start:end]]

    return near


def _of_number(value: float, tolerance: Tolerance) -> Outline:
    try:
        number = float(value)
    except OverflowError:
        return Outline("#", 0.0, 0.0)
    if not math.isfinite(number):
        return Outline(repr(number), 0.0, 0.0)
    if abs(number) > _LARGEST:
        return Outline("#", 0.0, 0.0)
    # The tolerance is of the expected number, which may be larger than the one found.
    error = allowed_error(number / (1 - tolerance.relative), tolerance)
    return Outline("#", number, error * (1 + tolerance.relative) + _SLACK * abs(number))


def _join(parts: list[Outline], names: str, is_ordered: bool) -> Outline:
    weights = [1 + (index * _GOLDEN) % 1 if is_ordered else 1.0 for index in range(len(parts))]
    shapes = [part.shape for part in parts]
    return Outline(
        f"{names}[{','.join(shapes if is_ordered else sorted(shapes))}]",
        sum(weight * part.total for weight, part in zip(weights, parts, strict=True)),
        sum(weight * part.error for weight, part in zip(weights, parts, strict=True)),
    )
