"""Which programs run when: a limited number of slots, and locks to run beside others or alone.

A slot is the right to run a program. A thread gets a program together with a slot, and holds it
until the program is judged. Where programs wait that have not begun, one that has had a slice of
CPU time pauses: it gives its slot to another thread and waits for one again. So nobody waits for
the end of an endless program.

Two file locks are common to all processes of a judge. The thread of a running program holds the
lock `running`, shared. A program that is to run alone takes the lock `entry`, so that no other can
begin. It then waits until all have released `running`. The kernel releases the locks of a process
that ends.
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
"""A paused program that waits for longer goes before new ones: a stream of those must not starve
it."""
_PAUSED_PER_SLOT = 6
"""Programs that may be paused at a time, for each slot."""
_MOST_PAUSED = 128
"""Programs that may be paused at a time, however many slots there are."""
_MOST_PAUSED_MEMORY_MIB = 64
"""A program that holds more memory does not pause: paused programs must not fill the machine."""

Job = Callable[[Any], None]
"""Work on one program, called with its thread's session, which has warm sandboxes."""


def most_workers(num_slots: int) -> int:
    """Return how many programs may be in progress for so many slots: running and paused ones."""
    return num_slots + min(_PAUSED_PER_SLOT * num_slots, _MOST_PAUSED)


def make_lock_files() -> list[int]:
    """Return descriptors of two new files for the locks `entry` and `running`.

    They are in memory, so nothing is left of them.
    """
    return [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("entry", "running")]


def _try(file: int, operation: int) -> bool:
    """Lock or unlock a file without waiting; return whether it was done.

    Unlike `fcntl` this does not release the interpreter's lock (GIL): to get it back beside busy
    threads takes longer than a small test.
    """
    return _FLOCK(file, operation | fcntl.LOCK_NB) == 0


def _lock(file: int, operation: int) -> None:
    if not _try(file, operation):
        fcntl.flock(file, operation)


class Slots:
    """Gives free slots to new programs and to paused ones."""

    def __init__(
        self,
        size: int = 1,
        start: Callable[[SimpleQueue[Job | None]], None] = lambda inbox: None,
    ) -> None:
        """Make slots; no thread is started yet.

        Args:
            size: how many slots there are.
            start: starts a thread, which receives its first work through the queue it is given.
        """
        self._start = start
        self._lock = threading.Lock()
        self._num_free = size
        self._num_startable = most_workers(size)
        self._has_thread = False
        self._resting: list[SimpleQueue[Job | None]] = []
        """Threads without a program; the one that worked last is next, so that few have
        sandboxes."""
        self._new: deque[Job] = deque()
        self._paused: deque[tuple[threading.Event, float]] = deque()
        """Paused programs: what wakes each, and since when it waits."""
        self._is_closed = False

    def put(self, job: Job) -> None:
        """Queue work on a program; it is begun in the order in which it came."""
        with self._lock:
            self._new.append(job)
            self._admit()

    def next(self, inbox: SimpleQueue[Job | None]) -> Job | None:
        """Free a thread's slot, and wait for its next program and a slot; None: end."""
        with self._lock:
            self._num_free += 1
            self._resting.append(inbox)
            self._admit()
        return inbox.get()

    def pause(self) -> None:
        """Free a slot, and wait for one again."""
        called = threading.Event()
        with self._lock:
            self._num_free += 1
            self._paused.append((called, time.monotonic()))
            self._admit()
        # Without the lock: whoever frees a slot needs it.
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
        """Whether a new program waits, and a thread for it rests or can be started."""
        if self._is_closed or not self._new:
            return False
        return bool(self._resting) or self._num_startable > 0

    def _is_overdue(self) -> bool:
        """Whether the program that paused first has waited for too long."""
        if not self._paused:
            return False
        _, since = self._paused[0]
        return time.monotonic() - since > _PATIENCE_SECONDS

    def _admit(self) -> None:
        """Give free slots to the programs that are next; with the lock held."""
        while self._is_closed and self._resting:
            self._resting.pop().put(None)
        while self._num_free > 0:
            # New programs go before paused ones, as most of them are short.
            if self._can_begin() and not self._is_overdue():
                if not self._resting and not self._start_thread():
                    continue
                self._resting.pop().put(self._new.popleft())
            elif self._paused:
                called, _ = self._paused.popleft()
                called.set()
            else:
                return
            self._num_free -= 1

    def _start_thread(self) -> bool:
        """Start a thread that rests; return False if the machine gives us no more threads."""
        inbox: SimpleQueue[Job | None] = SimpleQueue()
        try:
            self._start(inbox)
        except RuntimeError:
            self._num_startable = 0
            if not self._has_thread:
                # Without any thread nothing would ever be judged.
                raise
            return False
        self._has_thread = True
        self._num_startable -= 1
        self._resting.append(inbox)
        return True


class Slot:
    """One thread's slot and locks, with which its programs run beside others or alone."""

    def __init__(
        self,
        slots: Slots | None = None,
        lock_files: Sequence[int] = (),
    ) -> None:
        """Start without locks; by default the thread is the only one.

        Args:
            slots: those that the threads of this process share.
            lock_files: those of `make_lock_files` that all threads share.
        """
        self._slots = slots or Slots()
        self._lock_files = lock_files
        self._locks: list[int] = []
        """`entry` and `running`, opened on first use by each thread: a lock is the open file's."""
        self._is_inside = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Run the block beside others: with `running` locked shared."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run the block while no other program of the judge runs, in any of its processes."""
        entry, running = self._open_locks()
        # In this order everywhere, so that no two threads wait for each other.
        _lock(entry, fcntl.LOCK_EX)
        _lock(running, fcntl.LOCK_EX)
        try:
            yield
        finally:
            _lock(running, fcntl.LOCK_UN)
            _lock(entry, fcntl.LOCK_UN)

    def give_way(self, memory_mib: float) -> None:
        """Pause if a program waits that has not begun or is to run alone.

        A program that runs alone does not pause, nor one that holds much memory.
        """
        if not self._is_inside or memory_mib > _MOST_PAUSED_MEMORY_MIB:
            return
        if self.is_wanted():
            # Also the shared lock: a program that is to run alone may wait for it.
            self._leave()
            self._slots.pause()
            self._enter()

    def is_wanted(self) -> bool:
        """Whether a program waits that has not begun here, or is to run alone in any process."""
        if self._slots.is_wanted():
            return True
        entry, _ = self._open_locks()
        if not _try(entry, fcntl.LOCK_SH):
            return True
        _lock(entry, fcntl.LOCK_UN)
        return False

    def close(self) -> None:
        """Close the lock files, which releases the locks."""
        while self._locks:
            os.close(self._locks.pop())

    def _open_locks(self) -> list[int]:
        if self._locks:
            return self._locks
        if self._lock_files:
            # Opened again: of one open file, two threads would hold the same lock.
            flags = os.O_RDONLY | os.O_CLOEXEC
            self._locks = [os.open(f"/proc/self/fd/{file}", flags) for file in self._lock_files]
        else:
            self._locks = make_lock_files()
        return self._locks

    def _enter(self) -> None:
        entry, running = self._open_locks()
        # After those who already wait to run alone: they would starve otherwise.
        _lock(entry, fcntl.LOCK_SH)
        _lock(running, fcntl.LOCK_SH)
        _lock(entry, fcntl.LOCK_UN)
        self._is_inside = True

    def _leave(self) -> None:
        self._is_inside = False
        _, running = self._open_locks()
        _lock(running, fcntl.LOCK_UN)
