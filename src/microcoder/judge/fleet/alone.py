"""A test alone on the machine, if the workers of a judge are spread over several processes: two locks of the kernel.

Whoever runs holds the room, shared; whoever is to run alone closes the door behind those inside, and waits until they
have left. A process that ends, however it does, has left: the kernel frees its locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from microcoder.judge.run.turns import Gate


def make_lock_files() -> list[BinaryIO]:
    """Return two new files for the locks of a judge; in memory, so that nothing is left of them after its processes."""
    return [os.fdopen(os.memfd_create(name, os.MFD_CLOEXEC), "rb") for name in ("door", "room")]


class _Key:
    """The two locks as one holder of a place has them: they belong to a file as it was opened."""

    def __init__(self, lock_files: Sequence[int]) -> None:
        self._door, self._room = (os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC) for file in lock_files)

    def join(self) -> None:
        """Run beside others, after those who already wait to run alone: they would starve otherwise."""
        fcntl.flock(self._door, fcntl.LOCK_SH)
        fcntl.flock(self._room, fcntl.LOCK_SH)
        fcntl.flock(self._door, fcntl.LOCK_UN)

    def leave(self) -> None:
        fcntl.flock(self._room, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._room, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def is_door_closed(self) -> bool:
        """Whether anyone runs alone, or waits for those inside to leave."""
        try:
            fcntl.flock(self._door, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._door, fcntl.LOCK_UN)
        return False


class SharedGate(Gate):
    """The gate of one of several processes: alone is alone among all of them."""

    def __init__(self, lock_files: Sequence[int]) -> None:
        """Open it; the files are those of `make_lock_files`, as descriptors of this process."""
        super().__init__()
        self._lock_files = lock_files
        self._mine = _Key(lock_files)
        """For who runs alone, beside whom no place is taken; or for those with a place, who look at the door."""
        self._held: list[_Key] = []
        """One for each place that is taken; any of them is as good as another."""
        self._keys: list[_Key] = []
        """Those that are not in use."""

    def enter(self) -> None:
        """Wait for a place."""
        super().enter()
        self._join()

    def enter_again(self) -> None:
        """Wait for a place after a slice."""
        super().enter_again()
        self._join()

    def leave(self) -> None:
        """Give a place back."""
        self._leave()
        super().leave()

    def step_aside(self) -> None:
        """Give a place back while a program stays under way."""
        self._leave()
        super().step_aside()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run alone, over all processes."""
        with super().alone(), self._mine.alone():
            yield

    def is_wanted(self) -> bool:
        """Whether a program waits that has had no slice, or anywhere one that is to run alone."""
        return super().is_wanted() or self._mine.is_door_closed()

    def _join(self) -> None:
        try:
            key = self._keys.pop()
        except IndexError:
            key = _Key(self._lock_files)
        key.join()
        self._held.append(key)

    def _leave(self) -> None:
        key = self._held.pop()
        key.leave()
        self._keys.append(key)
