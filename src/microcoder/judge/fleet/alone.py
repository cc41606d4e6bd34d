"""A test alone on the machine, if the workers of a judge are spread over several processes.

A process whose test is to run alone asks. The judge pauses every process; each says so once none of its tests runs.
Then who asked first is granted its turn, says when it is over, the next one follows, and at last all are resumed.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from microcoder.judge.run.turns import Gate


class SharedGate(Gate):
    """The gate of one of several processes: alone is alone among all of them."""

    def __init__(self, *, ask: Callable[[], None], paused: Callable[[int], None], over: Callable[[], None]) -> None:
        """Keep the callbacks: a test asks to run alone, no test runs, the test has run."""
        super().__init__()
        self._ask = ask
        self._say_paused = paused
        self._say_over = over
        self._turn = threading.Lock()
        self._granted = threading.Semaphore(0)
        self._resumed = threading.Event()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run alone, over all processes."""
        with self._turn:
            self._ask()
            self._granted.acquire()
            try:
                yield
            finally:
                self._say_over()

    def pause(self, number: int) -> None:
        """Start no more tests, and report the number of this pause once none runs."""
        resumed = self._resumed = threading.Event()
        threading.Thread(target=self._hold, args=(number, resumed), name="judge-pause", daemon=True).start()

    def grant(self) -> None:
        """Let the test that asked to be alone run."""
        self._granted.release()

    def resume(self) -> None:
        """Let tests start again."""
        self._resumed.set()

    def _hold(self, number: int, resumed: threading.Event) -> None:
        with super().alone():
            if not resumed.is_set():
                self._say_paused(number)
                resumed.wait()


class Member(Protocol):
    """A process, as the judge sees it."""

    def pause(self, number: int) -> None:
        """Have it start no test, and report this number once none runs."""
        ...

    def grant(self) -> None:
        """Let it run the test that it asked for."""
        ...

    def resume(self) -> None:
        """Let it begin tests again."""
        ...


class Turns:
    """Which of several processes may have a test run alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: set[Member] = set()
        self._asking: deque[Member] = deque()
        self._paused: set[Member] = set()
        self._round = 0
        """The number of the latest pause."""
        self._current: Member | None = None
        self._is_granted = False

    def join(self, member: Member) -> None:
        """Note a process that will run tests, but runs none yet."""
        with self._lock:
            self._members.add(member)
            if self._current is not None:
                member.pause(self._round)

    def leave(self, member: Member) -> None:
        """Forget a process that has ended."""
        with self._lock:
            self._members.discard(member)
            self._paused.discard(member)
            self._asking = deque(asking for asking in self._asking if asking is not member)
            if self._current is member:
                self._end_turn()
            else:
                self._grant_if_paused()

    def ask(self, member: Member) -> None:
        """Give a process its turn once no test runs anywhere."""
        with self._lock:
            self._asking.append(member)
            if self._current is None:
                self._current = self._asking.popleft()
                self._round += 1
                for each in self._members:
                    each.pause(self._round)

    def note_paused(self, member: Member, number: int) -> None:
        """Note that no test runs in a process since it was paused by this number."""
        with self._lock:
            if number == self._round and member in self._members:
                self._paused.add(member)
                self._grant_if_paused()

    def end(self, member: Member) -> None:
        """Note that a process has had its turn."""
        with self._lock:
            if self._current is member:
                self._end_turn()

    def _grant_if_paused(self) -> None:
        if self._current is not None and not self._is_granted and self._paused == self._members:
            self._is_granted = True
            self._current.grant()

    def _end_turn(self) -> None:
        self._is_granted = False
        self._current = self._asking.popleft() if self._asking else None
        if self._current is not None:
            self._grant_if_paused()
            return
        self._paused.clear()
        self._round += 1
        for member in self._members:
            member.resume()
