"""Limits on connections: how long they may take to send a request, and how many there may be.

| a connection                                                  | what happens to it                                 |
|---------------------------------------------------------------|----------------------------------------------------|
| sends no whole request head in time                           | closed; 408 if it had begun to                     |
| is kept open after an answer and asks nothing                 | closed after the idle time                         |
| does not read its answer                                      | reset                                              |
| is one more than there may be                                 | the longest idle one makes room; with none: 503    |

Without these, a thousand sockets that never send a byte hold every descriptor, and the service answers nobody.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.serve.metrics import ServiceMetrics
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
        self.settings = settings
        self._open: set[Connection] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; its connection is busy meanwhile."""
        connection = scope.get("state", {}).get("connection")
        if connection is None:
            await self._app(scope, receive, send)
            return

        async def note_and_send(message: Message) -> None:
            # Before it is sent: the next request may come before this call is over.
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                connection.wait_for("idle")
            await send(message)

        connection.wait_for(None)
        await self._app(scope, receive, note_and_send)

    def admit(self, connection: Connection) -> bool:
        """Accept a connection, if need be in place of the longest idle one; return whether there was room."""
        if len(self._open) >= self._most:
            self.count_closed("no_room")
            oldest = min((each for each in self._open if each.waits_for), key=lambda each: each.since, default=None)
            if oldest is None:
                return False
            self.forget(oldest)
            oldest.transport.abort()
        self._open.add(connection)
        self._metrics.connections.set(len(self._open))
        return True

    def forget(self, connection: Connection) -> None:
        """Count a connection out; one that was not accepted, or was counted out already, changes nothing."""
        self._open.discard(connection)
        self._metrics.connections.set(len(self._open))

    def count_closed(self, why: str) -> None:
        """Count a connection that the service ended."""
        self._metrics.connections_closed.labels(why).inc()


class Connection(asyncio.Protocol):
    """The deadlines of one connection; HTTP itself is read by uvicorn's protocol, which gets all that comes."""

    def __init__(self, known: Connections, *, app_state: dict[str, Any], **options: Any) -> None:
        self._http = H11Protocol(app_state={**app_state, "connection": self}, **options)
        self._known = known
        self._deadline: asyncio.TimerHandle | None = None
        self._reading_deadline: asyncio.TimerHandle | None = None
        self._has_begun = False
        self.waits_for: str | None = "head"
        """The head of its first request, or "idle" for the next one; None while a request is answered."""
        self.since = time.monotonic()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is room."""
        self.transport = transport
        self._http.connection_made(transport)
        if self._known.admit(self):
            self.wait_for("head")
        else:
            self._end("503 Service Unavailable", "too many connections; send it again later", "Retry-After: 1\r\n")

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        self._has_begun = True
        # Not begun anew by further bytes: a head that trickles in has no more time than one that does not come.
        if self.waits_for == "idle":
            self.wait_for("head", has_begun=True)
        self._http.data_received(data)

    def eof_received(self) -> None:
        """Take the end of what the client sends."""
        self._http.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.wait_for(None)
        self.resume_writing()
        self._known.forget(self)
        self._http.connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        self._http.pause_writing()
        self._reading_deadline = asyncio.get_running_loop().call_later(
            self._known.settings.body_seconds, self._give_up, "not_read"
        )

    def resume_writing(self) -> None:
        """Send on."""
        self._http.resume_writing()
        if self._reading_deadline is not None:
            self._reading_deadline.cancel()
            self._reading_deadline = None

    def wait_for(self, what: str | None, *, has_begun: bool = False) -> None:
        """Wait for a request's head, or idle, from now on and for as long as that may take; for None answer one."""
        self.waits_for, self.since, self._has_begun = what, time.monotonic(), has_begun
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if what is not None and not self.transport.is_closing():
            settings = self._known.settings
            seconds, why = (settings.head_seconds, "no_head") if what == "head" else (settings.idle_seconds, "idle")
            self._deadline = asyncio.get_running_loop().call_later(seconds, self._give_up, why)

    def _give_up(self, why: str) -> None:
        if self.transport.is_closing():
            return
        self._known.count_closed(why)
        if why == "not_read":
            self.transport.abort()
        elif self._has_begun:
            self._end("408 Request Timeout", f"no request head within {self._known.settings.head_seconds:g} s")
        else:
            self.transport.close()

    def _end(self, status: str, why: str, headers: str = "") -> None:
        body = f"{why}\n"
        self.transport.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
            f"{headers}Connection: close\r\n\r\n{body}".encode()
        )
        self.transport.close()
