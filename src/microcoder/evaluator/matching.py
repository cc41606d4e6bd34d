"""Pairing items with the expected ones when they come in any order: exactly, within bounded work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

MOST_CHECKS = 100_000
"""Maximum number of compared pairs; an output that needs more is rejected."""
_MOST_STEPS = 1_000_000


def match_all(
    found: Sequence[Item],
    wanted: Sequence[Item],
    agree: Callable[[Item, Item], bool],
    near: Callable[[int], Iterable[int]] | None = None,
) -> int | None:
    """Pair every item found with a wanted one of its own that it agrees with.

    Agreement within a tolerance is not transitive, so neither sorting nor taking the first that agrees is enough:
    these are augmenting paths in a bipartite graph.

    Args:
        found: as many items as wanted.
        wanted: the items to be found.
        agree: whether an item agrees with a wanted one.
        near: the wanted indexes that an item can agree with at all; every one if none is given.

    Returns:
        The index of the first item found that cannot be paired, or None if all are.
    """
    pairing = _Pairing(found, wanted, agree, near or (lambda _: range(len(wanted))))
    return next((index for index in range(len(found)) if not pairing.add(index)), None)


class _Pairing:
    """The items paired so far."""

    def __init__(
        self,
        found: Sequence[Item],
        wanted: Sequence[Item],
        agree: Callable[[Item, Item], bool],
        near: Callable[[int], Iterable[int]],
    ) -> None:
        self._agree: Callable[[int, int], bool] = lambda mine, theirs: agree(found[mine], wanted[theirs])
        self._near = near
        self._known: dict[tuple[int, int], bool] = {}
        self._found_of: dict[int, int] = {}
        self._wanted_of: dict[int, int] = {}
        self._num_steps = 0

    def add(self, start: int) -> bool:
        """Pair one more item, moving others if needed; False if that is impossible or takes too long."""
        for theirs in self._near(start):
            if theirs not in self._found_of and self._agrees(start, theirs):
                self._pair(start, theirs)
                return True
        came_from: dict[int, int] = {}
        queue = [start]
        for mine in queue:
            for theirs in self._near(mine):
                if theirs in came_from or not self._agrees(mine, theirs):
                    continue
                came_from[theirs] = mine
                if theirs not in self._found_of:
                    self._flip(theirs, came_from, start)
                    return True
                queue.append(self._found_of[theirs])
        return False

    def _agrees(self, mine: int, theirs: int) -> bool:
        self._num_steps += 1
        if (mine, theirs) not in self._known:
            if len(self._known) >= MOST_CHECKS:
                return False
            self._known[mine, theirs] = self._agree(mine, theirs)
        return self._num_steps <= _MOST_STEPS and self._known[mine, theirs]

    def _flip(self, theirs: int, came_from: dict[int, int], start: int) -> None:
        while True:
            mine = came_from[theirs]
            before = self._wanted_of.get(mine)
            self._pair(mine, theirs)
            if mine == start or before is None:
                return
            theirs = before

    def _pair(self, mine: int, theirs: int) -> None:
        self._found_of[theirs], self._wanted_of[mine] = mine, theirs
