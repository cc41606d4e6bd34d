"""Scheduling of programs: as many in parallel as there are places, or one alone; idle and long ones yield.

A place is held while a program runs, not while it sleeps: one that is idle takes a place again when it wakes. After
each slice of CPU time a program lets those go first that have had none yet, so that nobody waits for the end of an
endless one. Who stands aside keeps its worker; `Workers` then puts another to work.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

_PATIENCE_SECONDS = 5.0
"""A long program that waited so long goes before short ones: a stream of those must not stop it."""
_LOOK_AGAIN_SECONDS = 0.1
_ASIDE_PER_PLACE, _MOST_ASIDE = 6, 128
_MOST_MEMORY_ASIDE_MIB = 64
"""A program that holds more keeps its place until it ends: those that stand aside must not fill the machine."""


def most_workers(places: int) -> int:
    """Return how many programs may be under way for so many places: those that run, and those that stand aside."""
    return places + min(_ASIDE_PER_PLACE * places, _MOST_ASIDE)


class Gate:
    """Places for programs, or for one program alone, which goes before newcomers."""

    def __init__(self, places: int = 1) -> None:
        """Open it for so many programs at a time."""
        self.places = places
        self.num_aside = 0
        """Programs under way that hold no place: idle ones, and long ones that wait for their next slice."""
        self.times_aside = 0
        """Times that a program gave its place back."""
        self._on_aside: Callable[[], None] = lambda: None
        self._is_work_waiting: Callable[[], bool] = lambda: False
        self._lock = threading.Lock()
        self._holders = 0
        self._is_alone = False
        self._is_dismissed = False
        self._active = 0
        self._alone: deque[threading.Event] = deque()
        self._waiting: deque[threading.Event] = deque()
        self._long: deque[tuple[threading.Event, float]] = deque()
        """With the time since which each waits."""
        self._spare: list[threading.Event] = []

    def open(self, places: int, on_aside: Callable[[], None], is_work_waiting: Callable[[], bool]) -> None:
        """Tie it to a pool of so many workers.

        Args:
            places: programs that run at a time.
            on_aside: called after a program gave its place back.
            is_work_waiting: whether there are programs that no worker has begun.
        """
        self.places = places
        self._on_aside = on_aside
        self._is_work_waiting = is_work_waiting

    def enter(self) -> None:
        """Wait for a place."""
        self._wait_in(self._waiting)

    def enter_again(self) -> None:
        """Wait for a place after a slice: until nobody waits who has had none, or for `_PATIENCE_SECONDS`."""
        called = threading.Event()
        with self._lock:
            self._long.append((called, time.monotonic()))
            self._admit()
        # Looked at again now and then: how long one has waited, and whether work is waiting, changes without a word.
        while not called.wait(_LOOK_AGAIN_SECONDS):
            with self._lock:
                self._admit()

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

    def is_wanted(self) -> bool:
        """Whether a program waits that has had no slice, or one that is to run alone."""
        with self._lock:
            return bool(self._alone or self._waiting) or self._is_newcomer_due()

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
            called = threading.Event()
            self._spare.append(called)
        called.wait()

    def call_up(self) -> bool:
        """Put one worker that stands by to work; return whether no other is needed."""
        with self._lock:
            if self._active >= self.places:
                return True
            if not self._spare:
                return False
            self._active += 1
            self._spare.pop().set()
            return True

    def dismiss(self) -> None:
        """Release all waiting workers for good."""
        with self._lock:
            self._is_dismissed = True
            while self._spare:
                self._active += 1
                self._spare.pop().set()

    def _wait_in(self, queue: deque[threading.Event]) -> None:
        called = threading.Event()
        with self._lock:
            queue.append(called)
            self._admit()
        called.wait()

    def _admit(self) -> None:
        """Give free places to the next in line; with the lock held."""
        while self._alone and not (self._is_alone or self._holders):
            self._is_alone = True
            self._alone.popleft().set()
        while not (self._is_alone or self._alone) and self._holders < self.places:
            is_overdue = bool(self._long) and time.monotonic() - self._long[0][1] > _PATIENCE_SECONDS
            if self._waiting and not is_overdue:
                called = self._waiting.popleft()
            elif self._long and (is_overdue or not self._is_newcomer_due()):
                called, _ = self._long.popleft()
            else:
                return
            self._holders += 1
            called.set()

    def _is_newcomer_due(self) -> bool:
        """Whether a program waits that some worker could begin now; with the lock held."""
        num_able = most_workers(self.places) - self.num_aside - self._holders
        return num_able > 0 and self._is_work_waiting()


class WorkerTurn:
    """One worker's place, taken and given back as its program runs and idles."""

    def __init__(self, gate: Gate | None = None) -> None:
        """Start without a place."""
        self._gate = gate or Gate()
        self._is_held = False
        self._is_aside = False

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Run beside others."""
        self._gate.enter()
        self._is_held = True
        try:
            yield
        finally:
            if self._is_held:
                self._gate.leave()
            elif self._is_aside:
                self._gate.step_back()
            self._is_held = self._is_aside = False

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Run alone."""
        return self._gate.alone()

    def give_way(self, memory_mib: float) -> None:
        """Let others go first that had no slice yet, or are to run alone, unless the program holds much memory."""
        if self._is_held and memory_mib <= _MOST_MEMORY_ASIDE_MIB and self._gate.is_wanted():
            self._gate.step_aside()
            self._gate.enter_again()
            self._gate.step_back()

    def rest(self) -> None:
        """Give the place back, as the program is idle; nothing if it is alone."""
        if self._is_held:
            self._is_held, self._is_aside = False, True
            self._gate.step_aside()

    def go_on(self) -> None:
        """Take a place again, if it was given back."""
        if self._is_aside:
            self._gate.enter()
            self._gate.step_back()
            self._is_held, self._is_aside = True, False
