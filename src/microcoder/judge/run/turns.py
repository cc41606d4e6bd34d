"""Which programs run when: a limited number of places, and locks to run beside others or alone.

A place is the right to run a program. A thread gets a program together with a place, and holds it until the program is
judged. One that has had a slice of CPU time while others wait that had none pauses: it gives its place to another
thread and waits for one again. So nobody waits for the end of an endless program.

Two file locks are common to all processes of a judge. The thread of a running program holds the lock `room`, shared.
One whose program is to run alone takes the lock `door`, so that no other can begin, and waits until all have released
`room`. The kernel releases the locks of a process that ends.
"""

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
"""A paused program that waits for longer goes before new programs: a stream of those must not starve it."""
_ASIDE_PER_PLACE, _MOST_ASIDE = 6, 128
_MOST_MEMORY_ASIDE_MIB = 64
"""A program that holds more memory does not pause: paused programs must not fill the machine."""

Job = Callable[[Any], None]
"""Work on one program, called with its thread's session, which has warm sandboxes."""


def most_workers(places: int) -> int:
    """Return how many programs may be in progress for so many places: those that run, and those that pause."""
    return places + min(_ASIDE_PER_PLACE * places, _MOST_ASIDE)


def make_lock_files() -> list[int]:
    """Return descriptors of two new files for the locks `door` and `room`; in memory, so nothing is left of them."""
    return [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("door", "room")]


def _try(file: int, operation: int) -> bool:
    """Lock or unlock a file without waiting; return whether it was done.

    Unlike `fcntl` this does not release the interpreter's lock (GIL): to get it back beside busy threads takes longer
    than a small test.
    """
    return _FLOCK(file, operation | fcntl.LOCK_NB) == 0


def _lock(file: int, operation: int) -> None:
    if not _try(file, operation):
        fcntl.flock(file, operation)


class Places:
    """Gives free places to new programs and to paused ones."""

    def __init__(
        self, size: int = 1, start: Callable[[SimpleQueue[Job | None]], None] = lambda post: None
    ) -> None:
        """Make `size` places; `start` starts a thread, which receives its first work through the queue it is given."""
        self._start = start
        self._lock = threading.Lock()
        self._num_free = size
        self._num_startable = most_workers(size)
        self._has_thread = False
        self._resting: list[SimpleQueue[Job | None]] = []
        """Threads without a program; the one that worked last works next, so that few have sandboxes."""
        self._new: deque[Job] = deque()
        self._aside: deque[tuple[threading.Event, float]] = deque()
        """Paused programs: what wakes each, and since when it waits."""
        self._is_closed = False

    def put(self, job: Job) -> None:
        """Queue work on a program; it is begun in the order in which it came."""
        with self._lock:
            self._new.append(job)
            self._admit()

    def next(self, post: SimpleQueue[Job | None]) -> Job | None:
        """Free a thread's place, and wait for its next program, which comes with a place; None: end."""
        with self._lock:
            self._num_free += 1
            self._resting.append(post)
            self._admit()
        return post.get()

    def pause(self) -> None:
        """Free a place, and wait for one again."""
        called = threading.Event()
        with self._lock:
            self._num_free += 1
            self._aside.append((called, time.monotonic()))
            self._admit()
        called.wait()

    def is_wanted(self) -> bool:
        """Whether a program waits that has not begun."""
        with self._lock:
            return self._can_begin()

    def close(self) -> None:
        """Begin no more programs, and end each thread once it has none."""
        with self._lock:
            self._is_closed = True
            self._admit()

    def _can_begin(self) -> bool:
        return (
            bool(self._new)
            and not self._is_closed
            and (bool(self._resting) or self._num_startable > 0)
        )

    def _admit(self) -> None:
        """Give free places to the programs that are next; with the lock held."""
        while self._is_closed and self._resting:
            self._resting.pop().put(None)
        while self._num_free > 0:
            is_overdue = (
                bool(self._aside) and time.monotonic() - self._aside[0][1] > _PATIENCE_SECONDS
            )
            if self._can_begin() and not is_overdue:
                if not self._resting:
                    post: SimpleQueue[Job | None] = SimpleQueue()
                    try:
                        self._start(post)
                    except RuntimeError:
                        # The machine gives us no more threads.
                        self._num_startable = 0
                        if not self._has_thread:
                            raise
                        continue
                    self._has_thread = True
                    self._num_startable -= 1
                    self._resting.append(post)
                self._resting.pop().put(self._new.popleft())
            elif self._aside:
                self._aside.popleft()[0].set()
            else:
                return
            self._num_free -= 1


class Turn:
    """One thread's place and locks, with which its programs run beside others or alone."""

    def __init__(self, places: Places | None = None, lock_files: Sequence[int] = ()) -> None:
        """Start without locks; by default the thread is the only one.

        Args:
            places: those that the threads of this process share.
            lock_files: those of `make_lock_files` that all threads share.
        """
        self._places = places or Places()
        self._lock_files = lock_files
        self._locks: list[int] = []
        """`door` and `room`, opened on first use by each thread for itself: a lock belongs to the open file."""
        self._is_inside = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Run the block beside others: with `room` locked shared."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run the block while no other program of the judge runs, in any of its processes."""
        door, room = self._open_locks()
        _lock(door, fcntl.LOCK_EX)
        _lock(room, fcntl.LOCK_EX)
        try:
            yield
        finally:
            _lock(room, fcntl.LOCK_UN)
            _lock(door, fcntl.LOCK_UN)

    def give_way(self, memory_mib: float) -> None:
        """Pause if a program waits that has not begun or is to run alone; not if this one runs alone, or is large."""
        if self._is_inside and memory_mib <= _MOST_MEMORY_ASIDE_MIB and self.is_wanted():
            self._leave()
            self._places.pause()
            self._enter()

    def is_wanted(self) -> bool:
        """Whether a program waits here that has not begun, or in any process one that is to run alone."""
        if self._places.is_wanted():
            return True
        door, _ = self._open_locks()
        if not _try(door, fcntl.LOCK_SH):
            return True
        _lock(door, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        """Close the lock files, which releases the locks."""
        while self._locks:
            os.close(self._locks.pop())

    def _open_locks(self) -> list[int]:
        if not self._locks:
            shared, flags = self._lock_files, os.O_RDONLY | os.O_CLOEXEC
            self._locks = (
                [os.open(f"/proc/self/fd/{file}", flags) for file in shared]
                if shared
                else make_lock_files()
            )
        return self._locks

    def _enter(self) -> None:
        door, room = self._open_locks()
        # After those who already wait to run alone: they would starve otherwise.
        _lock(door, fcntl.LOCK_SH)
        _lock(room, fcntl.LOCK_SH)
        _lock(door, fcntl.LOCK_UN)
        self._is_inside = True

    def _leave(self) -> None:
        self._is_inside = False
        _lock(self._open_locks()[1], fcntl.LOCK_UN)
