"""Scheduling of programs: as many in parallel as there are places, or one alone; idle and long ones yield.

A place is held while a program runs, not while it sleeps: one that is idle gives its place back and takes one again
when it wakes. After each slice of CPU time a program lets those go first that have had none yet, so that short ones
never wait for long ones. The programs that stand aside keep their worker; `Judge` then puts another to work.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from microcoder.judge.sandbox.protocol import SLICE_SECONDS

_PATIENCE_SECONDS = 5.0
"""A program that waited so long goes before short ones: a stream of those must not stop it."""
_LOOK_AGAIN_SECONDS = 0.1
_ASIDE_PER_PLACE, _MOST_ASIDE = 6, 128
_MOST_MEMORY_ASIDE_MIB = 64
"""A program that holds more keeps its place until it ends: those that stand aside must not fill the machine."""


def most_workers(places: int) -> int:
    """Return how many programs may be under way for so many places: those that run, and those that stand aside."""
    return places + min(_ASIDE_PER_PLACE * places, _MOST_ASIDE)


class _Waiter:
    """A thread that waits for a place."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.is_called = threading.Event()


class Gate:
    """Places for programs, or for one program alone, which goes before newcomers."""

    def __init__(self, places: int = 1) -> None:
        """Open it for so many programs at a time."""
        self.places = places
        self.num_aside = 0
        """Programs under way that hold no place: idle ones, and long ones that wait for their next slice."""
        self.times_aside = 0
        """Times that a program stood aside."""
        self._is_work_waiting: Callable[[], bool] = lambda: False
        self._on_aside: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._holders = 0
        self._is_alone = False
        self._is_dismissed = False
        self._active = 0
        self._alone: deque[_Waiter] = deque()
        self._short: deque[_Waiter] = deque()
        self._long: deque[_Waiter] = deque()
        self._spare: deque[_Waiter] = deque()

    def open(self, places: int, *, is_work_waiting: Callable[[], bool], on_aside: Callable[[], None]) -> None:
        """Tie it to a pool of workers.

        Args:
            places: programs that run at a time.
            is_work_waiting: whether there are programs that no worker has begun yet.
            on_aside: called without a lock after a program stood aside, so that another worker can be called up.
        """
        self.places = places
        self._is_work_waiting = is_work_waiting
        self._on_aside = on_aside

    def enter(self, *, is_long: bool = False) -> None:
        """Wait for a place; long programs come after short ones."""
        with self._lock:
            if self._take_free_place():
                return
        self._wait_in(self._long if is_long else self._short)

    def enter_late(self) -> None:
        """Wait for a place between two tests of a long program, which stands aside meanwhile.

        Otherwise its worker would wait for short programs, and they for a worker.
        """
        with self._lock:
            if self._take_free_place():
                return
            self._active -= 1
            self.num_aside += 1
        self._on_aside()
        self._wait_in(self._long)
        self.step_back()

    def leave(self) -> None:
        """Give a place back."""
        with self._lock:
            self._holders -= 1
            self._admit()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run alone."""
        self._wait_in(self._alone)
        try:
            yield
        finally:
            with self._lock:
                self._is_alone = False
                self._admit()

    def is_wanted_by_short(self) -> bool:
        """Whether a program without a slice so far waits for a place, or one waits to run alone."""
        with self._lock:
            return bool(self._short or self._alone) or self._is_newcomer_due()

    def step_aside(self) -> None:
        """Give a place back while a program stays under way."""
        with self._lock:
            self._holders -= 1
            self._active -= 1
            self.num_aside += 1
            self.times_aside += 1
            self._admit()
        self._on_aside()

    def step_back(self) -> None:
        """End standing aside."""
        with self._lock:
            self._active += 1
            self.num_aside -= 1

    def begin_work(self) -> None:
        """Count in a new worker."""
        with self._lock:
            self._active += 1

    def stand_by(self) -> None:
        """Wait, as a worker between two programs, while there are workers enough."""
        with self._lock:
            if self._active <= self.places or self._is_dismissed:
                return
            self._active -= 1
            waiter = _Waiter()
            self._spare.append(waiter)
        waiter.is_called.wait()

    def call_up(self) -> bool:
        """Put one worker that stands by to work; return whether no other is needed."""
        with self._lock:
            if self._active >= self.places:
                return True
            if not self._spare:
                return False
            self._active += 1
            self._spare.pop().is_called.set()
            return True

    def dismiss(self) -> None:
        """Release all waiting workers for good."""
        with self._lock:
            self._is_dismissed = True
            while self._spare:
                self._active += 1
                self._spare.pop().is_called.set()

    def _take_free_place(self) -> bool:
        """Take a place that nobody waits for, if there is one; with the lock held."""
        is_quiet = not (self._is_alone or self._alone or self._short or self._long)
        is_free = is_quiet and self._holders < self.places
        self._holders += is_free
        return is_free

    def _wait_in(self, queue: deque[_Waiter]) -> None:
        waiter = _Waiter()
        with self._lock:
            queue.append(waiter)
            self._admit()
        # Looked at again now and then: how long one has waited, and whether work is waiting, changes without a word.
        while not waiter.is_called.wait(_LOOK_AGAIN_SECONDS if queue is self._long else None):
            with self._lock:
                self._admit()

    def _admit(self) -> None:
        """Give free places to the next in line; with the lock held."""
        while not self._is_alone:
            if self._alone:
                if self._holders:
                    return
                self._is_alone = True
                self._alone.popleft().is_called.set()
                return
            queue = self._next_queue() if self._holders < self.places else None
            if queue is None:
                return
            self._holders += 1
            queue.popleft().is_called.set()

    def _next_queue(self) -> deque[_Waiter] | None:
        """Return whose turn it is; with the lock held."""
        if self._long and time.monotonic() - self._long[0].since > _PATIENCE_SECONDS:
            return self._long
        if self._short:
            return self._short
        return self._long if self._long and not self._is_newcomer_due() else None

    def _is_newcomer_due(self) -> bool:
        """Whether a program waits that some worker could begin now; with the lock held."""
        num_able = most_workers(self.places) - self.num_aside - self._holders
        return num_able > 0 and self._is_work_waiting()


class WorkerTurn:
    """One worker's place, taken and given back as its program runs and idles."""

    def __init__(self, gate: Gate | None = None) -> None:
        """Hold none yet."""
        self._gate = gate or Gate()
        self._is_held = False
        self._is_aside = False
        self._used_seconds = 0.0

    def begin_program(self) -> None:
        """Count CPU time from here."""
        self._used_seconds = 0.0

    def note_seconds(self, cpu_seconds: float) -> None:
        """Count in the CPU time of a test that ended."""
        self._used_seconds += cpu_seconds

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Run beside others."""
        if self._used_seconds < SLICE_SECONDS:
            self._gate.enter()
        else:
            self._gate.enter_late()
        self._is_held = True
        try:
            yield
        finally:
            if self._is_held:
                self._gate.leave()
            elif self._is_aside:
                self._gate.step_back()
            self._is_held = self._is_aside = False

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run alone."""
        with self._gate.alone():
            yield

    def rest(self) -> None:
        """Give the place back, as the program is idle; nothing if it is alone."""
        if self._is_held:
            self._is_held, self._is_aside = False, True
            self._gate.step_aside()

    def go_on(self, *, is_long: bool = False) -> None:
        """Take a place again, if it was given back."""
        if self._is_aside:
            self._gate.enter(is_long=is_long)
            self._gate.step_back()
            self._is_held, self._is_aside = True, False

    def give_way(self, memory_mib: float) -> None:
        """Let others go first that had no slice yet; a program that holds much memory stays.

        Args:
            memory_mib: what it holds.
        """
        if self._is_held and memory_mib <= _MOST_MEMORY_ASIDE_MIB and self._gate.is_wanted_by_short():
            self.rest()
            self.go_on(is_long=True)
