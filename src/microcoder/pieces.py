"""Things in pieces, so that memory holds one at a time, and things of several groups by turns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def cut_pieces(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Return the items in order, `size` at a time; for Python 3.11, which has no `itertools.batched`."""
    iterator = iter(items)
    while piece := list(islice(iterator, size)):
        yield piece


def take_in_turn(groups: Collection[Sequence[T]]) -> list[T]:
    """Return the first item of each group, then the second of each that has one, and so on."""
    most = max(map(len, groups), default=0)
    return [group[place] for place in range(most) for group in groups if place < len(group)]
