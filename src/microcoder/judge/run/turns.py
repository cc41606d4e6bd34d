"""Whose turn it is: a place for each program that runs, one room for those that run beside others or alone.

A thread is given a program together with a place, and holds the place until the program is judged. One that idles, or
has had a slice of CPU time while others wait that had none, gives its place to another thread and waits for one again:
nobody waits for the end of an endless program. Its thread and its sandbox stay as they are meanwhile.

Whoever runs holds the room, shared. Whoever is to run alone closes the door behind those inside, and waits until they
have left. Both are locks of the kernel, so that alone is alone among the threads of all processes of a judge; a process
that ends, however it does, has left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any

with contextlib.suppress(ImportError):  # On Windows, where clients of other judges import this.
    import fcntl

    _FLOCK = ctypes.PyDLL(None).flock

_PATIENCE_SECONDS = 5.0
"""Who stands aside for so long goes before programs that nobody has begun: a stream of those must not stop it."""
_ASIDE_PER_PLACE, _MOST_ASIDE = 6, 128
_MOST_MEMORY_ASIDE_MIB = 64
"""A program that holds more keeps its place until it ends: those that stand aside must not fill the machine."""

Job = Callable[[Any], None]
"""Work on one program, called with what its thread has for that: sandboxes, warm."""


def most_workers(places: int) -> int:
    """Return how many programs may be under way for so many places: those that run, and those that stand aside."""
    return places + min(_ASIDE_PER_PLACE * places, _MOST_ASIDE)


def make_lock_files() -> list[int]:
    """Return two new files for the locks of a judge; in memory, so that nothing is left of them after its processes."""
    return [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("door", "room")]


def _try(file: int, operation: int) -> bool:
    """Lock or unlock a file unless that must wait.

    Without letting go of the interpreter, as `fcntl` does: to have it back beside threads that are busy takes longer
    than a small test.
    """
    return _FLOCK(file, operation | fcntl.LOCK_NB) == 0


def _lock(file: int, operation: int) -> None:
    if not _try(file, operation):
        fcntl.flock(file, operation)


class Places:
    """Gives programs that wait, and those that stood aside, the places that are free."""

    def __init__(self, size: int = 1, start: Callable[[SimpleQueue[Job | None]], None] = lambda post: None) -> None:
        """Open so many places; `start` makes a thread, which finds its first work where it is given."""
        self.times_given_back = 0
        """Times that a program gave its place back before its end."""
        self._start = start
        self._lock = threading.Lock()
        self._num_free = size
        self._num_startable = most_workers(size)
        self._resting: list[SimpleQueue[Job | None]] = []
        """Threads without a program; the one that worked last works next, so that few have sandboxes."""
        self._new: deque[Job] = deque()
        self._aside: deque[tuple[threading.Event, float, bool]] = deque()
        """With the time since which each waits, and whether it has had a slice."""
        self._is_closed = False

    def put(self, job: Job) -> None:
        """Take work on a program, which is begun in the order in which it came."""
        with self._lock:
            self._new.append(job)
            self._admit()

    def next(self, post: SimpleQueue[Job | None], *, has_place: bool) -> Job | None:
        """Wait, as a thread between two programs, for the next one, which comes with a place; None at the end."""
        with self._lock:
            self._num_free += has_place
            self._resting.append(post)
            self._admit()
        return post.get()

    def take(self, *, is_long: bool) -> None:
        """Wait for a place, with a program that stood aside."""
        called = threading.Event()
        with self._lock:
            self._aside.append((called, time.monotonic(), is_long))
            self._admit()
        called.wait()

    def give_back(self) -> None:
        """Give a place back while a program stays under way."""
        with self._lock:
            self.times_given_back += 1
            self._num_free += 1
            self._admit()

    def is_wanted(self) -> bool:
        """Whether a program waits for a place that has had no slice."""
        with self._lock:
            return self._can_begin() or not all(is_long for _, _, is_long in self._aside)

    def close(self) -> None:
        """Begin nothing more, and end the threads as they come to rest."""
        with self._lock:
            self._is_closed = True
            self._admit()

    def _can_begin(self) -> bool:
        return bool(self._new) and not self._is_closed and (bool(self._resting) or self._num_startable > 0)

    def _admit(self) -> None:
        """Give free places to the next in line; with the lock held."""
        while self._is_closed and self._resting:
            self._resting.pop().put(None)
        while self._num_free > 0:
            is_overdue = bool(self._aside) and time.monotonic() - self._aside[0][1] > _PATIENCE_SECONDS
            if self._can_begin() and not is_overdue:
                if not self._resting:
                    self._num_startable -= 1
                    self._resting.append(SimpleQueue())
                    self._start(self._resting[0])
                self._resting.pop().put(self._new.popleft())
            elif self._aside:
                self._aside.popleft()[0].set()
            else:
                return
            self._num_free -= 1


class Turn:
    """One thread's place, and its key to the room."""

    def __init__(self, places: Places | None = None, lock_files: Sequence[int] = ()) -> None:
        """Start outside; by default the thread is the only one.

        Args:
            places: where the thread has its place from.
            lock_files: those of `make_lock_files` that all threads share.
        """
        self.has_place = False
        self._places = places or Places()
        self._lock_files = lock_files
        self._locks: list[int] = []
        """Door and room: locks belong to a file as it was opened, which is done when the thread first needs them."""
        self._is_shared = self._is_inside = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Run beside others."""
        self._is_shared = True
        try:
            self.go_on()
            yield
        finally:
            self._leave()
            self._is_shared = False

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run alone."""
        door, room = self._open_locks()
        _lock(door, fcntl.LOCK_EX)
        _lock(room, fcntl.LOCK_EX)
        try:
            yield
        finally:
            _lock(room, fcntl.LOCK_UN)
            _lock(door, fcntl.LOCK_UN)

    def go_on(self, *, is_long: bool = False) -> None:
        """Be in the room, with a place, also after the program stood aside; nothing if it is alone."""
        if not self._is_shared or self._is_inside:
            return
        if not self.has_place:
            self._places.take(is_long=is_long)
            self.has_place = True
        door, room = self._open_locks()
        # After those who already wait to run alone: they would starve otherwise.
        _lock(door, fcntl.LOCK_SH)
        _lock(room, fcntl.LOCK_SH)
        _lock(door, fcntl.LOCK_UN)
        self._is_inside = True

    def rest(self) -> None:
        """Give the place back, as the program is idle; nothing if it is alone."""
        if self._is_inside:
            self._leave()
            self.has_place = False
            self._places.give_back()

    def give_way(self, memory_mib: float) -> None:
        """Let others go first that had no slice yet, or are to run alone, unless the program holds much memory."""
        if self._is_inside and memory_mib <= _MOST_MEMORY_ASIDE_MIB and self.is_wanted():
            self.rest()
            self.go_on(is_long=True)

    def is_wanted(self) -> bool:
        """Whether a program waits that has had no slice, or anywhere one that is to run alone."""
        if self._places.is_wanted():
            return True
        door, _ = self._open_locks()
        if not _try(door, fcntl.LOCK_SH):
            return True
        _lock(door, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        """Free the locks."""
        while self._locks:
            os.close(self._locks.pop())

    def _open_locks(self) -> list[int]:
        if not self._locks:
            shared, flags = self._lock_files, os.O_RDONLY | os.O_CLOEXEC
            self._locks = [os.open(f"/proc/self/fd/{file}", flags) for file in shared] if shared else make_lock_files()
        return self._locks

    def _leave(self) -> None:
        if self._is_inside:
            self._is_inside = False
            _lock(self._open_locks()[1], fcntl.LOCK_UN)
