"""The cache class of the judge: for builds, problems, verdicts, and the problems that a judge process was sent."""

import sys
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

ValueT = TypeVar("ValueT", bound=Any)


class Recent(Generic[ValueT]):
    """The most recently used values by key, up to a number and a sum of bytes; not thread-safe."""

    def __init__(self, most: int = sys.maxsize, most_bytes: int = sys.maxsize) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[Any, tuple[ValueT, int]] = OrderedDict()
        self._num_bytes = 0

    def find(self, key: Hashable) -> ValueT | None:
        """Return a value, and mark it as used; None if there is none."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def add(self, key: Hashable, value: ValueT, num_bytes: int = 0) -> None:
        """Add a value under a new key; nothing is dropped before `trim`."""
        self._kept[key] = value, num_bytes
        self._num_bytes += num_bytes

    def trim(self) -> list[Any]:
        """Drop the least recently used values beyond the limits, never the last one for its bytes; return keys."""
        dropped: list[Any] = []
        while len(self._kept) > self._most or (
            self._num_bytes > self._most_bytes and len(self._kept) > 1
        ):
            key, (_, num_bytes) = self._kept.popitem(last=False)
            self._num_bytes -= num_bytes
            dropped.append(key)
        return dropped
