"""Scheduling of programs: as many in parallel as there are places, or one alone; an idle one gives its place back.

A place is held while a program runs, not while it sleeps: one that is idle takes a place again when it wakes. Meanwhile
it keeps its worker; `Workers` then puts another to work. After each slice of CPU time a program lets go first who is to
run alone, so that nobody waits for the end of an endless one.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator

_ASIDE_PER_PLACE, _MOST_ASIDE = 6, 128


def most_workers(places: int) -> int:
    """Return how many programs may be under way for so many places: those that run, and those that are idle."""
    return places + min(_ASIDE_PER_PLACE * places, _MOST_ASIDE)


class Gate:
    """Places for programs, or for one program alone, which goes before newcomers."""

    def __init__(self, places: int = 1) -> None:
        """Open it for so many programs at a time."""
        self.places = places
        self.num_aside = 0
        """Idle programs, which hold no place."""
        self.times_aside = 0
        """Times that a program gave its place back."""
        self._on_aside: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._holders = 0
        self._is_alone = False
        self._is_dismissed = False
        self._active = 0
        self._alone: deque[threading.Event] = deque()
        self._waiting: deque[threading.Event] = deque()
        self._spare: list[threading.Event] = []

    def open(self, places: int, on_aside: Callable[[], None]) -> None:
        """Tie it to a pool of so many workers; `on_aside` is called after a program gave its place back."""
        self.places = places
        self._on_aside = on_aside

    def enter(self) -> None:
        """Wait for a place."""
        self._wait_in(self._waiting)

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

    def is_wanted_alone(self) -> bool:
        """Whether a program waits to run alone."""
        return bool(self._alone)

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
        while self._waiting and not (self._is_alone or self._alone) and self._holders < self.places:
            self._holders += 1
            self._waiting.popleft().set()


class WorkerTurn:
    """One worker's place, taken and given back as its program runs and idles."""

    def __init__(self, gate: Gate | None = None) -> None:
        """Hold none yet."""
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

    def give_way(self) -> None:
        """Let go first who is to run alone."""
        if self._is_held and self._gate.is_wanted_alone():
            self._gate.leave()
            self._gate.enter()

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
