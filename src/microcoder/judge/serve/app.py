"""The server: it bounds requests, and ends without losing accepted ones.

A request is admitted by its token, its size and the time that it takes to arrive. The JSON values
of a body are counted while it arrives, to bound how many objects exist at once. However short a
test is, it takes hundreds of bytes of memory and some microseconds. So a body that is bounded only
in bytes could stop the service for seconds. Text costs next to nothing, and is bounded in bytes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi.exception_handlers import http_exception_handler
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.run.lru_cache import LruCache
from microcoder.judge.serve.api import build_app
from microcoder.judge.serve.service import Refused, Service, shutting_down
from microcoder.judge.serve.settings import ServiceSettings

_AFTER_GRACE_SECONDS = 5
"""Time after the grace period in which uvicorn waits for what is being answered."""
_HEAD_SECONDS = 10
"""Time for a new connection's first request."""
_IDLE_SECONDS = 75
"""Time for the next request after an answer."""
_KERNEL_QUEUE = 2048
"""Clients that wait in the kernel."""
_ACCEPTED_AT_ONCE = 32
"""Clients taken per turn of the event loop: each holds a descriptor."""
_PER_WORKER = 32
"""File descriptors needed per worker: its sandboxes, a running test."""
_SPARE = 256
"""File descriptors needed for the rest: files, inputs, the log."""
_FEWEST = 16
"""A service that can have fewer connections does not start."""


def bound_connections(settings: ServiceSettings, workers: int) -> int:
    """Return the most connections: the setting, or fewer by the limit on open files.

    Raises:
        ConfigError: that limit is too low.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = _SPARE + _PER_WORKER * workers
    # Every connection holds a descriptor, and so does much of the judge.
    left = soft - taken
    if soft == resource.RLIM_INFINITY or left >= settings.max_connections:
        return settings.max_connections
    if left < _FEWEST:
        raise ConfigError(
            f"{soft} open files are allowed, {workers} workers and {_FEWEST} connections need "
            f"{taken + _FEWEST}; type `ulimit -n {max(1024, 2 * taken)}` first, or take fewer "
            "--workers"
        )
    return left


class _Connection(H11Protocol):
    """Closes connections that send no request in time.

    Idle sockets would use up all descriptors.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the first request.

        The connection is closed at once if there are too many.
        """
        super().connection_made(transport)
        self.loop.call_later(_HEAD_SECONDS, self._end_idle, None)
        if len(self.connections) > (self.limit_concurrency or 0):
            transport.abort()

    def _end_idle(self, answered: object) -> None:
        """Close the connection if no request came since `answered`; else check again later.

        Args:
            answered: the request that was answered at the last check; None before the first
                request, False if one was being answered.
        """
        if answered is self.cycle:
            self.transport.abort()
            return
        if self.transport.is_closing():
            return
        is_answered = self.cycle is not None and self.cycle.response_complete
        latest = self.cycle if is_answered else False
        self.loop.call_later(_IDLE_SECONDS, self._end_idle, latest)


_OPEN = ("/healthz", "/readyz")
"""Routes that need no token."""
_ALSO_WHILE_DRAINING = (*_OPEN, "/metrics")
"""Routes that are served until the end."""
_MOST_FAILURES = 10
"""Wrong tokens that an address may send within `_FAILURES_SECONDS`."""
_FAILURES_SECONDS = 60.0
"""An address with too many wrong tokens is refused until this time is over."""
_MOST_PEERS = 4096
"""Maximum number of client addresses remembered, each with its failures or its right tokens."""
_DISCARD_SECONDS = 10.0
"""How long a refused body is still read."""
_DISCARDED = 4
"""How much of a refused body is still read, in multiples of the largest request.

The client then sees the answer and not a connection reset.
"""
_BYTES_PER_VALUE = 256
"""Memory of one JSON value of a request, besides its text."""
_PER_TEST = 3
"""JSON values that a request may have for each of the most tests."""
_PER_PROGRAM = 30
"""JSON values that it may have for each of the most programs, with its problem."""
_FURTHER = 10_000
"""JSON values that it may have besides."""
_TEXT = bytes(set(range(256)) - set(b'"{[,'))
"""All bytes but those by which JSON values are counted."""


class Guard:
    """Wraps an application: checks token, size and the body's deadline.

    It cancels the requests of clients that leave.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        service: Service,
        tokens: Collection[str],
    ) -> None:
        """Guard an application; without tokens every client is let in."""
        self._app = app
        self._service = service
        self._settings = service.settings
        self._digests = [hashlib.sha256(token.encode()).digest() for token in tokens]
        self._held: Counter[Request] = Counter()
        """Bytes that are held for the body of each request."""
        self._failures: LruCache[tuple[float, int]] = LruCache(_MOST_PEERS)
        """When an address first showed a wrong token, and how many since."""
        self._welcome: LruCache[bool] = LruCache(_MOST_PEERS)
        """Addresses, and the digests of right tokens that they have shown."""

    async def __call__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve one request, and count it in the metrics."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # The status that proxies note for a client that left.
        status = 499

        async def note_and_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        request = Request(scope, receive)
        try:
            await self._serve(request, note_and_send)
        finally:
            del self._held[request]
            self._service.metrics.body_bytes.set(self._held.total())
            route = getattr(scope.get("route"), "path", "other")
            requests = self._service.metrics.requests
            requests.labels(route, str(status)).inc()

    async def _serve(self, request: Request, send: Send) -> None:
        scope = request.scope
        try:
            _check_framing(scope)
            self._check_token(request)
            if self._service.is_draining and scope["path"] not in _ALSO_WHILE_DRAINING:
                raise shutting_down()
            pieces = [await self._read(request)]
        except Refused as refused:
            await self._discard(request)
            answer = await http_exception_handler(request, refused)
            answer.headers["Connection"] = "close"
            await answer(scope, request.receive, send)
            return
        except ClientDisconnect:
            return

        async def give() -> Message:
            if pieces:
                return {"type": "http.request", "body": pieces.pop()}
            return await asyncio.Future[Message]()  # which never comes

        # Until it has answered, or the client is gone.
        answering = asyncio.ensure_future(self._app(scope, give, send))
        leaving = asyncio.ensure_future(_wait_until_gone(request.receive))
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            leaving.cancel()
            answering.cancel()

    def _check_token(self, request: Request) -> None:
        if not self._digests or request.scope["path"] in _OPEN:
            return
        peer = request.client.host if request.client else ""
        authorization = request.headers.get("authorization", "")
        scheme, _, token = authorization.partition(" ")
        credentials = token.strip().encode() if scheme.lower() == "bearer" else b""
        # Digests: of equal length, and what is remembered of a client holds no token.
        shown = hashlib.sha256(credentials).digest()
        # A client that has shown a right token is not slowed by its neighbours' wrong ones.
        if self._welcome.find((peer, shown)):
            return
        since, num_failures = self._failures.find(peer) or (0.0, 0)
        left = since + _FAILURES_SECONDS - time.monotonic()
        if num_failures >= _MOST_FAILURES and left > 0:
            # Before the token is looked at: a guess would learn nothing, were it right.
            why = (
                "too many wrong tokens from this address, perhaps a neighbour's; "
                "send it again later"
            )
            raise Refused(429, why, retry_after_seconds=left)
        # Every token is compared, so that the time taken says nothing.
        if sum(hmac.compare_digest(shown, digest) for digest in self._digests):
            self._welcome.add((peer, shown), True)
            self._welcome.trim()
            return
        if left <= 0:
            since = time.monotonic()
            num_failures = 0
        self._failures.add(peer, (since, num_failures + 1))
        self._failures.trim()
        raise Refused(401, "no valid token; send it as `Authorization: Bearer TOKEN`")

    def _hold(self, request: Request, num_bytes: int) -> None:
        """Count bytes that are held for a request's body until the request is over.

        Raises:
            Refused: they are more than the service may hold.
        """
        if self._held.total() + num_bytes > self._settings.max_total_body_mib << 20:
            raise Refused(429, "too much is on its way; send it again later", retry_after_seconds=2)
        self._held[request] += num_bytes
        self._service.metrics.body_bytes.set(self._held.total())

    async def _read(self, request: Request) -> bytes:
        """Return a whole body, whose bytes are counted until its request is over.

        Raises:
            Refused: it is too large, or too late.
        """
        limit = self._settings.max_body_mib << 20
        seconds = self._settings.body_seconds
        too_large = Refused(413, f"the request is too large; send at most {limit >> 20} MiB")
        stated = request.headers.get("content-length", "")
        if stated.isdigit() and int(stated) > limit:
            raise too_large
        counter = ValueCounter(self._settings)
        content = bytearray()
        try:
            async with asyncio.timeout(seconds):
                async for chunk in request.stream():
                    # Counted as it comes: the stated length may be wrong, or missing.
                    if len(content) + len(chunk) > limit:
                        raise too_large
                    num_values = counter.add(chunk)
                    self._hold(request, len(chunk) + _BYTES_PER_VALUE * num_values)
                    content += chunk
        except TimeoutError:
            raise Refused(408, f"the request did not arrive within {seconds:g} s") from None
        return bytes(content)

    async def _discard(self, request: Request) -> None:
        """Read and drop what still arrives, unless the client waits for `100 Continue`."""
        if "expect" in request.headers:
            return
        left = _DISCARDED * (self._settings.max_body_mib << 20)
        # RuntimeError: nothing is left, Starlette has read the last piece.
        with suppress(TimeoutError, ClientDisconnect, RuntimeError):
            async with asyncio.timeout(min(_DISCARD_SECONDS, self._settings.body_seconds)):
                async for chunk in request.stream():
                    left -= len(chunk)
                    if left <= 0:
                        break


class ValueCounter:
    """Counts the values of a JSON text that comes in pieces, without making objects of them.

    Counted are commas and opening brackets outside of strings. A text of 28 MiB takes 0.01 to 0.2
    s.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._most = (
            _PER_TEST * settings.max_total_tests + _PER_PROGRAM * settings.max_batch + _FURTHER
        )
        self._is_in_string = False
        self._begun = b""
        """A backslash at the end of the last piece, whose meaning the next one decides."""
        self.num_values = 0

    def add(self, piece: bytes) -> int:
        """Count a piece; return how many values it adds.

        Raises:
            Refused: the request has too many.
        """
        piece = self._begun + piece
        # A backslash at the end belongs to what comes next; so does each of a pair.
        num_backslashes = len(piece) - len(piece.rstrip(b"\\"))
        self._begun = b"\\" if num_backslashes % 2 else b""
        piece = piece[: len(piece) - len(self._begun)]
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.translate(None, _TEXT).split(b'"')
        # Every second part is inside a string.
        num_values = sum(map(len, parts[self._is_in_string :: 2]))
        self._is_in_string ^= (len(parts) - 1) % 2 == 1
        self.num_values += num_values
        if self.num_values > self._most:
            raise Refused(
                413,
                f"more than {self._most} values in one request; "
                f"send at most {self._settings.max_batch} programs "
                f"and {self._settings.max_total_tests} tests",
            )
        return num_values


async def _wait_until_gone(receive: Receive) -> None:
    """Return when the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _check_framing(scope: Scope) -> None:
    """Raise Refused for a request that a proxy may read in another way than we do (RFC 9112,
    6.1)."""
    if scope["http_version"] not in ("1.0", "1.1"):
        raise Refused(505, "use HTTP/1.1")
    names = [name for name, _ in scope["headers"]]
    # By one of them a proxy may see the end of this request elsewhere than we do.
    is_ambiguous = b"content-length" in names or scope["http_version"] == "1.0"
    if b"transfer-encoding" in names and is_ambiguous:
        raise Refused(
            400,
            "Transfer-Encoding with Content-Length, or in HTTP/1.0; send one of them, in HTTP/1.1",
        )


class JudgeServer(uvicorn.Server):
    """A server that finishes accepted requests on a signal.

    What is left after the grace period is answered 503.
    """

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
        """Prepare to serve at an address.

        Args:
            service: what is served.
            tokens: those of its clients; without any, every client is let in.
            host: the address.
            port: 0 takes a free one.
            tls: certificate and key; None for plain HTTP.
            on_start: receives the port.
        """
        self._service = service
        self._on_start = on_start
        settings = service.settings
        certificate = None
        key = None
        if tls is not None:
            certificate, key = tls
        config = uvicorn.Config(
            Guard(build_app(service), service=service, tokens=tokens),
            host=host,
            port=port,
            http=_Connection,
            limit_concurrency=bound_connections(settings, service.judge.workers),
            ws="none",
            loop="asyncio",
            ssl_certfile=certificate,
            ssl_keyfile=key,
            # Errors alone: what uvicorn warns of are lines that strangers write.
            log_level="error",
            access_log=False,
            server_header=False,
            backlog=_ACCEPTED_AT_ONCE,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=int(settings.grace_seconds) + _AFTER_GRACE_SECONDS,
        )
        super().__init__(config)

    @property
    def port(self) -> int:
        """The port that the server listens on, once it started."""
        listening = self.servers[0].sockets[0]
        return int(listening.getsockname()[1])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, then call `on_start` with the port."""
        self._service.start()
        if self.config.is_ssl:
            # A connection is known to us once it has shaken hands.
            loop = asyncio.get_running_loop()
            create = partial(loop.create_server, ssl_handshake_timeout=_HEAD_SECONDS)
            loop.create_server = create  # type: ignore[method-assign]
        await super().startup(sockets)
        if self.started:
            for server in self.servers:
                for listening in server.sockets:
                    self._tune(listening)
            self._on_start(self.port)

    def _tune(self, listening: socket.socket) -> None:
        """Set what asyncio has no option for."""
        # An answer that is not taken for so long is cut off by the kernel; connections inherit it.
        unread_ms = int(1000 * self._service.settings.body_seconds)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, unread_ms)
        # asyncio takes one number for the kernel's queue and for how many are taken per turn.
        with socket.socket(fileno=os.dup(listening.fileno())) as again:
            again.listen(_KERNEL_QUEUE)

    def handle_exit(
        self,
        sig: int,
        frame: FrameType | None,
    ) -> None:
        """On the first signal finish accepted requests, on a second one end at once."""
        # Set by the first signal, and so true at the second.
        self.force_exit = self.should_exit
        self.should_exit = True
        self._service.drain()
