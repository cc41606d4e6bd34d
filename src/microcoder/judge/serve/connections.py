"""Limits on connections: how long they may take to send a request, and how many there may be.

| a connection                                   | what happens to it                                 |
|------------------------------------------------|----------------------------------------------------|
| sends no whole request head in time            | closed                                             |
| is kept open after an answer and asks nothing  | closed after the idle time, by uvicorn             |
| does not read its answer                       | reset, by the kernel                               |
| is one more than there may be                  | the longest waiting one makes room; with none: 503 |

Without these, a thousand sockets that never send a byte hold every descriptor, and the service answers nobody.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.serve.service import ServiceMetrics
from microcoder.judge.serve.settings import ServiceSettings

ACCEPTED_AT_ONCE = 32
"""Connections taken per turn of the event loop; each holds a descriptor before it can be refused."""
_TURNS_UNTIL_REFUSED = 4
_PER_WORKER, _SPARE = 32, 128
"""Descriptors for a worker's sandboxes and the test that runs there; for files, shared inputs and the log."""
_FEWEST = 16


def bound_connections(settings: ServiceSettings, workers: int) -> int:
    """Return how many connections there may be: what is set, or as many as the limit on open files leaves room for.

    Raises:
        ConfigError: that limit leaves room for hardly any.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return settings.max_connections
    taken = len(os.listdir("/proc/self/fd")) + _SPARE + _PER_WORKER * workers + ACCEPTED_AT_ONCE * _TURNS_UNTIL_REFUSED
    if soft - taken < _FEWEST:
        raise ConfigError(
            f"{soft} open files are allowed, {workers} workers and {_FEWEST} connections need {taken + _FEWEST}; "
            f"type `ulimit -n {max(1024, 2 * taken)}` first, or take fewer --workers"
        )
    return min(settings.max_connections, soft - taken)


class Connections:
    """All connections of one service, around its application; lives in the event loop."""

    def __init__(self, app: ASGIApp, *, settings: ServiceSettings, metrics: ServiceMetrics, most: int) -> None:
        self._app, self._metrics, self._most = app, metrics, most
        self._settings = settings
        self._waiting: dict[Connection, float] = {}
        """Connections without a request under way and until when one has to come; the longest waiting first."""
        self._busy: set[Connection] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; its connection is busy meanwhile."""
        connection: Connection | None = scope.get("state", {}).get("connection")
        if connection is None:
            await self._app(scope, receive, send)
            return

        async def note_and_send(message: Message) -> None:
            # Before it is sent: the next request may come before this call is over.
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self.note_waiting(connection, self._settings.idle_seconds + self._settings.head_seconds)
            await send(message)

        self.forget(connection)
        if not connection.transport.is_closing():
            self._busy.add(connection)
        await self._app(scope, receive, note_and_send)

    async def watch(self) -> None:
        """End connections that wait for too long; one that trickles in has no more time than one that does not come."""
        while True:
            await asyncio.sleep(self._settings.head_seconds / 10)
            for connection in [one for one, give_up in self._waiting.items() if give_up < time.monotonic()]:
                self._end(connection, "no_head")

    def admit(self, connection: Connection) -> bool:
        """Take a connection, if need be in place of the longest waiting one; return whether there was room."""
        is_full = len(self._waiting) + len(self._busy) >= self._most
        if is_full and self._waiting:
            self._end(next(iter(self._waiting)), "no_room")
        elif is_full:
            self._metrics.connections_closed.labels("no_room").inc()
            return False
        self.note_waiting(connection, self._settings.head_seconds)
        # What is not taken for so long is reset.
        not_read = (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * self._settings.body_seconds))
        connection.transport.get_extra_info("socket").setsockopt(*not_read)
        return True

    def note_waiting(self, connection: Connection, seconds: float) -> None:
        """Wait for a request of a connection that is open."""
        self.forget(connection)
        if not connection.transport.is_closing():
            self._waiting[connection] = time.monotonic() + seconds
            self._metrics.connections.set(len(self._waiting) + len(self._busy))

    def forget(self, connection: Connection) -> None:
        """Count a connection out; one that was not taken, or was counted out already, changes nothing."""
        self._waiting.pop(connection, None)
        self._busy.discard(connection)
        self._metrics.connections.set(len(self._waiting) + len(self._busy))

    def _end(self, connection: Connection, why: str) -> None:
        self._metrics.connections_closed.labels(why).inc()
        self.forget(connection)
        connection.transport.abort()


class Connection(H11Protocol):
    """A connection that is counted; HTTP is read by uvicorn."""

    def __init__(self, known: Connections, *, app_state: dict[str, Any], **options: Any) -> None:
        super().__init__(app_state={**app_state, "connection": self}, **options)
        self._known = known

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is room."""
        super().connection_made(transport)
        if not self._known.admit(self):
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n")
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._known.forget(self)
        super().connection_lost(exc)
