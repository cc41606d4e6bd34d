"""The cache class of the judge: for builds, problems, verdicts and what a process was sent."""

import sys
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

ValueT = TypeVar("ValueT", bound=Any)


class LruCache(Generic[ValueT]):
    """The most recently used values by key, up to a number and a sum of bytes; not thread-safe."""

    def __init__(
        self,
        most: int = sys.maxsize,
        most_bytes: int = sys.maxsize,
    ) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._entries: OrderedDict[Any, tuple[ValueT, int]] = OrderedDict()
        """Key -> value and its bytes; the least recently used entry comes first."""
        self._num_bytes = 0

    def find(self, key: Hashable) -> ValueT | None:
        """Return a value, and mark it as used; None if there is none."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def add(
        self,
        key: Hashable,
        value: ValueT,
        num_bytes: int = 0,
    ) -> None:
        """Add a value under a new key; nothing is dropped before `trim`."""
        self._entries[key] = value, num_bytes
        self._num_bytes += num_bytes

    def trim(self) -> list[Any]:
        """Drop the least recently used values beyond the limits; return their keys.

        The last value is never dropped for its bytes.
        """
        dropped: list[Any] = []
        while self._is_over():
            # The first is the one that was not used for longest.
            key, (_, num_bytes) = self._entries.popitem(last=False)
            self._num_bytes -= num_bytes
            dropped.append(key)
        return dropped

    def _is_over(self) -> bool:
        if len(self._entries) > self._most:
            return True
        # One value alone may be larger than the limit: it is in use.
        return self._num_bytes > self._most_bytes and len(self._entries) > 1
