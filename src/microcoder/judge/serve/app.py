"""The server: it bounds its connections, and ends without losing accepted requests.

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
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.serve.api import build_app
from microcoder.judge.serve.guard import Guard
from microcoder.judge.serve.service import Service, ServiceMetrics
from microcoder.judge.serve.settings import ServiceSettings

_KERNEL_QUEUE = 2048
_AFTER_GRACE_SECONDS = 5
_ACCEPTED_AT_ONCE = 32
"""Connections taken per turn of the event loop; each holds a descriptor before it can be refused."""
_TURNS_UNTIL_REFUSED = 4
_PER_WORKER, _SPARE = 32, 128
"""Descriptors for a worker's sandboxes and the test that runs there; for files, shared inputs and the log."""
_FEWEST = 16


def bound_connections(settings: ServiceSettings, workers: int) -> int:
    """Return the most connections: the setting, or fewer by the limit on open files; ConfigError if that is too low."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return settings.max_connections
    taken = len(os.listdir("/proc/self/fd")) + _SPARE + _PER_WORKER * workers + _ACCEPTED_AT_ONCE * _TURNS_UNTIL_REFUSED
    if soft - taken < _FEWEST:
        raise ConfigError(
            f"{soft} open files are allowed, {workers} workers and {_FEWEST} connections need {taken + _FEWEST}; "
            f"type `ulimit -n {max(1024, 2 * taken)}` first, or take fewer --workers"
        )
    return min(settings.max_connections, soft - taken)


class Connections:
    """All connections of one service; lives in the event loop."""

    def __init__(self, settings: ServiceSettings, metrics: ServiceMetrics, most: int) -> None:
        self._settings, self._metrics, self._most = settings, metrics, most
        self._open: dict[Connection, asyncio.TimerHandle | None] = {}
        """Connections, and what ends one if no request comes in time; None while one is under way. The one that waits
        for the longest comes first of those that wait."""

    def admit(self, connection: Connection) -> bool:
        """Add a connection, if need be in place of the longest waiting one; return whether there was room."""
        if len(self._open) >= self._most:
            waiting = next((one for one, end in self._open.items() if end is not None), None)
            if waiting is None:
                self._metrics.connections_closed.labels("no_room").inc()
                return False
            self._end(waiting, "no_room")
        self._open[connection] = None
        self.note(connection, self._settings.head_seconds)
        # What is not taken for so long is reset.
        not_read = (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * self._settings.body_seconds))
        connection.transport.get_extra_info("socket").setsockopt(*not_read)
        return True

    def note(self, connection: Connection, seconds: float | None) -> None:
        """Close an open connection unless the head of its next request is complete in so many seconds; None: never."""
        if connection in self._open:
            self.forget(connection)
            end = None if seconds is None else connection.loop.call_later(seconds, self._end, connection, "no_head")
            self._open[connection] = end
            self._metrics.connections.set(len(self._open))

    def forget(self, connection: Connection) -> None:
        """Remove a connection; no effect if it was not added, or was removed already."""
        if (end := self._open.pop(connection, None)) is not None:
            end.cancel()
        self._metrics.connections.set(len(self._open))

    def _end(self, connection: Connection, why: str) -> None:
        self._metrics.connections_closed.labels(why).inc()
        self.forget(connection)
        connection.transport.abort()


class Connection(H11Protocol):
    """A connection that `Connections` counts, or refuses."""

    def __init__(self, known: Connections, *, app_state: dict[str, Any], **of: Any) -> None:
        super().__init__(app_state={**app_state, "wait_for_next": partial(known.note, self)}, **of)
        self._known = known

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, or answer 503 and close it if there is no room."""
        super().connection_made(transport)
        if not self._known.admit(self):
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n")
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._known.forget(self)
        super().connection_lost(exc)


class JudgeServer(uvicorn.Server):
    """A server that on a signal finishes accepted requests, and answers 503 to what is left after the grace period."""

    def __init__(
        self,
        service: Service,
        *,
        tokens: Collection[str] = (),
        host: str,
        port: int,
        tls: tuple[Path, Path] | None = None,
        on_start: Callable[[int], None] = lambda port: None,
    ) -> None:
        """Serve at an address; port 0 takes a free one, which `on_start` receives; `tls` are certificate and key."""
        self._service = service
        self._on_start = on_start
        settings = service.settings
        known = Connections(settings, service.metrics, bound_connections(settings, service.judge.workers))
        config = uvicorn.Config(
            Guard(build_app(service), service=service, tokens=tokens),
            host=host,
            port=port,
            http=cast(type[asyncio.Protocol], partial(Connection, known)),
            ws="none",
            loop="asyncio",
            ssl_certfile=tls[0] if tls else None,
            ssl_keyfile=tls[1] if tls else None,
            # Errors alone: what uvicorn warns of are lines that strangers write.
            log_level="error",
            access_log=False,
            server_header=False,
            backlog=_ACCEPTED_AT_ONCE,
            timeout_keep_alive=settings.idle_seconds,
            timeout_graceful_shutdown=int(settings.grace_seconds) + _AFTER_GRACE_SECONDS,
        )
        super().__init__(config)

    @property
    def port(self) -> int:
        """The port that the server listens on, once it started."""
        return int(self.servers[0].sockets[0].getsockname()[1])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then call `on_start` with the port."""
        self._service.start()
        if self.config.is_ssl:
            # A connection is known to us once it has shaken hands.
            loop = asyncio.get_running_loop()
            seconds = self._service.settings.head_seconds
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=seconds)  # type: ignore[method-assign]
        await super().startup(sockets)
        if self.started:
            for listening in (listening for server in self.servers for listening in server.sockets):
                # Clients wait in the kernel: asyncio takes one number for that and for how many are taken per turn.
                with socket.socket(fileno=os.dup(listening.fileno())) as again:
                    again.listen(_KERNEL_QUEUE)
            self._on_start(self.port)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """On the first signal finish accepted requests, on a second one end at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._service.drain()
