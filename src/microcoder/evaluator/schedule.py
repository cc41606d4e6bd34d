"""A bounded number of queue places, for threads and coroutines."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future


class Slots:
    """A fair semaphore for threads and coroutines."""

    def __init__(self, size: int) -> None:
        self._lock = threading.Lock()
        self._free = size
        self._waiting: deque[Future[None]] = deque()

    def enter(self) -> Future[None]:
        """Return a future that is done once a place is free for it."""
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
