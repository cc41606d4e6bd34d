"""A long run of things in pieces, so that memory holds one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def cut_pieces(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Return the items in order, `size` at a time; for Python 3.11, which has no `itertools.batched`."""
    iterator = iter(items)
    while piece := list(islice(iterator, size)):
        yield piece
