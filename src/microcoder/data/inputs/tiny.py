"""Lists the smallest inputs of a model: wrong programs miss a case that is often a tiny one."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.models import InputModel, Shape
from microcoder.data.inputs.mutating import restate_lengths

_NUMBERS = (1, 2, 0, 3, -1, 4)
"""Numbers to try, the commonest first."""
_MOST_LENGTH = 3
"""Most items or letters of a tiny list or text."""
_MOST_ITEMS = 4
"""How many values an item or a letter of it takes."""
_MOST_VALUES = 40
"""How many values a list or text takes."""
_MOST_TRIED = 20_000
"""Combinations that are looked at."""


def list_tiny(model: InputModel, *, most: int) -> Iterator[Values]:
    """Yield up to `most` inputs of tiny values, those of the first values first.

    Bounds of known inputs are not kept, as they say nothing about tiny ones; facts of lists, and
    numbers that state lengths, are.
    """
    domains = [_values_of(shape) for shape in model.shapes]
    if not all(domains):
        return
    seen: set[str] = set()
    for chosen in itertools.islice(_by_sum(domains), _MOST_TRIED):
        values = list(chosen)
        restate_lengths(model, values)
        key = repr(values)
        if key not in seen:
            seen.add(key)
            yield tuple(values)
        if len(seen) == most:
            return


def _by_sum(domains: Sequence[Sequence[Any]]) -> Iterator[Values]:
    """Yield a value of each domain, those first whose indices have a small sum."""
    most_sum = sum(len(domain) - 1 for domain in domains)
    for total in range(most_sum + 1):
        for indices in _split(total, [len(domain) - 1 for domain in domains]):
            yield tuple(domain[index] for domain, index in zip(domains, indices, strict=True))


def _split(total: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write a sum as one number for each place, none above `most` there."""
    if len(most) == 1:
        if total <= most[0]:
            yield (total,)
        return
    rest = sum(most[1:])
    for first in range(max(0, total - rest), min(total, most[0]) + 1):
        for others in _split(total - first, most[1:]):
            yield (first, *others)


def _values_of(shape: Shape) -> list[Any]:
    """Return tiny values of a shape, the simplest first."""
    if shape.kind == "bool":
        return [False, True]
    if shape.kind == "int":
        return [number for number in _NUMBERS if number >= min(0, shape.low)]
    if shape.kind == "float":
        return [float(number) for number in _NUMBERS if number >= min(0, shape.low)]
    if shape.kind == "text":
        return _texts_of(shape)
    if shape.kind == "list":
        return _lists_of(shape)
    return []


def _texts_of(shape: Shape) -> list[str]:
    """Return short texts of few letters, or the known ones where no other may be one."""
    if shape.known:
        return sorted(shape.known, key=lambda text: (len(text), text))[:_MOST_ITEMS]
    letters = sorted(shape.letters)[:2]
    texts = []
    for length in _lengths_of(shape):
        written = itertools.islice(itertools.product(letters, repeat=length), _MOST_VALUES)
        texts += map("".join, written)
    return texts[:_MOST_VALUES]


def _lists_of(shape: Shape) -> list[list[Any]]:
    """Return short lists of tiny items that have the facts of the shape."""
    if shape.item is None:
        return [[]]
    items = _values_of(shape.item)[:_MOST_ITEMS]
    lists = []
    for length in _lengths_of(shape):
        written = itertools.product(items, repeat=length)
        for chosen in itertools.islice(written, _MOST_TRIED // 100):
            if shape.has_facts(list(chosen)):
                lists.append(list(chosen))
    return lists[:_MOST_VALUES]


def _lengths_of(shape: Shape) -> Sequence[int]:
    """Return the lengths that are tried: the known one if all known values have the same."""
    if shape.low == shape.high:
        return [int(shape.low)]
    return range(1, _MOST_LENGTH + 1)
