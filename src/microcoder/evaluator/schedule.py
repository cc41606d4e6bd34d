"""When programs run: many at a time, or one alone; and how many may wait."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager


class Gate:
    """Many may hold it at a time, or one alone; whoever waits to be alone goes before newcomers."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._holders = 0
        self._waiting_alone = 0
        self._is_alone = False
        self._shared = _Shared(self.enter, self.leave)

    def shared(self) -> AbstractContextManager[None]:
        """Run beside others."""
        return self._shared

    def enter(self) -> None:
        """Begin to hold it beside others; every test does that."""
        with self._changed:
            while self._is_alone or self._waiting_alone:
                self._changed.wait()
            self._holders += 1

    def leave(self) -> None:
        """End that. Only somebody who waits to be alone is woken, by the last to leave."""
        with self._changed:
            self._holders -= 1
            if self._waiting_alone and not self._holders:
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Run while nobody else does."""
        with self._changed:
            self._waiting_alone += 1
            try:
                self._changed.wait_for(lambda: not self._is_alone and not self._holders)
                self._is_alone = True
            finally:
                self._waiting_alone -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._is_alone = False
                self._changed.notify_all()


class _Shared(AbstractContextManager[None]):
    """Holds a gate beside others; one object for all, since it remembers nothing."""

    def __init__(self, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self._enter = enter
        self._leave = leave

    def __enter__(self) -> None:
        self._enter()

    def __exit__(self, *_: object) -> None:
        self._leave()


class Room:
    """A bounded number of places; whoever finds none waits, threads and coroutines alike, in turn."""

    def __init__(self, size: int) -> None:
        self._lock = threading.Lock()
        self._free = size
        self._waiting: deque[Future[None]] = deque()

    def enter(self) -> Future[None]:
        """Return a future that is done once a place was given."""
        future: Future[None] = Future()
        with self._lock:
            if self._free:
                self._free -= 1
                future.set_result(None)
            else:
                self._waiting.append(future)
        return future

    def leave(self) -> None:
        """Give a place back."""
        with self._lock:
            while self._waiting:
                future = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    future.set_result(None)
                    return
            self._free += 1

    async def enter_async(self) -> None:
        """Wait for a place without blocking the event loop."""
        import asyncio  # only callers that have an event loop pay for it

        future = self.enter()
        try:
            await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancel():
                self.leave()
            raise
