"""Limits on connections: how long they may take to send a request, and how many there may be.

| a connection                                                  | what happens to it                                 |
|---------------------------------------------------------------|----------------------------------------------------|
| sends no whole request head in time                           | closed; 408 if it had begun to                     |
| is kept open after an answer and asks nothing                 | closed after the idle time                         |
| does not read its answer                                      | reset                                              |
| is one more than its address may have, or than there may be   | the longest idle one makes room; with none: 503    |

Without these, a thousand sockets that never send a byte hold every descriptor, and the service answers nobody.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
from collections import OrderedDict
from typing import Any

import h11
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
LOG = logging.getLogger("uvicorn.error.connections")
"""Errors alone, no warnings: what uvicorn says of requests are lines that strangers write, and is counted."""


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
    """All connections of one service, and which of them wait for their next request; lives in the event loop."""

    def __init__(self, *, settings: ServiceSettings, metrics: ServiceMetrics, most: int) -> None:
        self.settings = settings
        self._metrics = metrics
        self._most = most
        self._by_client: dict[str, set[Connection]] = {}
        self._idle: dict[str, OrderedDict[Connection, None]] = {}
        self._num_open = 0

    def admit(self, connection: Connection) -> bool:
        """Accept a connection, if need be in place of an idle one; return whether there was room."""
        client = connection.address
        if len(self._by_client.get(client, ())) >= self.settings.max_connections_per_client:
            is_room = self._close_idle(client, "client_limit")
        elif self._num_open >= self._most:
            # Whoever holds the most loses one: many from one address cannot push out the few of others.
            busiest = max(self._idle, key=lambda name: len(self._idle[name]), default="")
            is_room = self._close_idle(busiest, "total_limit")
        else:
            is_room = True
        if is_room:
            self._by_client.setdefault(client, set()).add(connection)
            self._num_open += 1
            self._metrics.connections.set(self._num_open)
            self.note_idle(connection)
        return is_room

    def forget(self, connection: Connection) -> None:
        """Count a connection out; one that was not taken in, or was counted out already, changes nothing."""
        mine = self._by_client.get(connection.address, set())
        if connection not in mine:
            return
        self.note_busy(connection)
        mine.discard(connection)
        if not mine:
            del self._by_client[connection.address]
        self._num_open -= 1
        self._metrics.connections.set(self._num_open)

    def note_idle(self, connection: Connection) -> None:
        """Note that a connection waits for a request; one that did already keeps its place."""
        if connection in self._by_client.get(connection.address, ()):
            self._idle.setdefault(connection.address, OrderedDict()).setdefault(connection)

    def note_busy(self, connection: Connection) -> None:
        """Note that a connection has asked for something."""
        waiting = self._idle.get(connection.address)
        if waiting is not None:
            waiting.pop(connection, None)
            if not waiting:
                del self._idle[connection.address]

    def count_closed(self, why: str) -> None:
        """Count a connection that the service ended."""
        self._metrics.connections_closed.labels(why).inc()

    def _close_idle(self, client: str, why: str) -> bool:
        """Reset a client's longest idle connection; return whether there was one."""
        self.count_closed(why)
        waiting = self._idle.get(client)
        if not waiting:
            return False
        oldest = next(iter(waiting))
        self.forget(oldest)
        oldest.transport.abort()
        return True


class Connection(H11Protocol):
    """One connection, with deadlines that uvicorn has none for."""

    def __init__(self, *, known: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._known = known
        self._head_deadline: asyncio.TimerHandle | None = None
        self._reading_deadline: asyncio.TimerHandle | None = None
        self.address = ""
        self.logger = LOG

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, if there is room."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if self._known.admit(self):
            self._start_head_deadline()
        else:
            self._end("503 Service Unavailable", "too many connections; send it again later", "Retry-After: 1\r\n")

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, and end."""
        self._known.count_closed("malformed")
        super().send_400_response(msg)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_head_deadline()
        self.resume_writing()
        self._known.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        super().data_received(data)
        if self._waits_for_head():
            self._start_head_deadline()
        else:
            self._stop_head_deadline()
            self._known.note_busy(self)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self._waits_for_head():
            self._known.note_idle(self)

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        super().pause_writing()
        self._reading_deadline = self.loop.call_later(self._known.settings.body_seconds, self._give_up_on_reader)

    def resume_writing(self) -> None:
        """Resume writing."""
        super().resume_writing()
        if self._reading_deadline is not None:
            self._reading_deadline.cancel()
            self._reading_deadline = None

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which nothing was asked again."""
        if not self.transport.is_closing():
            self._known.count_closed("idle")
        super().timeout_keep_alive_handler()

    def _waits_for_head(self) -> bool:
        return self.conn.their_state is h11.IDLE and self.conn.our_state is h11.IDLE

    def _start_head_deadline(self) -> None:
        # Not begun anew by further bytes: a head that trickles in has no more time than one that does not come.
        if self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self._known.settings.head_seconds, self._give_up_on_head)

    def _stop_head_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _give_up_on_head(self) -> None:
        if self.transport.is_closing():
            return
        self._known.count_closed("no_head")
        has_begun = bool(self.conn.trailing_data[0])
        if has_begun:
            self._end("408 Request Timeout", f"no request head within {self._known.settings.head_seconds:g} s")
        else:
            self.transport.close()

    def _give_up_on_reader(self) -> None:
        self._known.count_closed("not_read")
        self.transport.abort()

    def _end(self, status: str, why: str, headers: str = "") -> None:
        body = f"{why}\n"
        self.transport.write(
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
            f"{headers}Connection: close\r\n\r\n{body}".encode()
        )
        self.transport.close()
