"""The application: all routes behind the guard, and the server that ends without losing accepted requests."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

import microcoder
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.serve.api import build_fusion_router, build_router
from microcoder.judge.serve.guard import ACCEPTED_AT_ONCE, Connection, Connections, Guard, bound_connections
from microcoder.judge.serve.reading import Refused, refusal_of
from microcoder.judge.serve.service import Service

_KERNEL_QUEUE = 2048
_AFTER_GRACE_SECONDS = 5
_LOG = logging.getLogger(__name__)


def build_app(service: Service, *, tokens: Collection[str] = ()) -> ASGIApp:
    """Return the application; without tokens anybody may use it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield

    app = FastAPI(
        title="MicroCoder judge",
        summary="Judges untrusted programs against tests, in a sandbox.",
        version=microcoder.__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(build_router(service))
    app.include_router(build_fusion_router(service))
    app.add_exception_handler(Exception, _answer_error)
    for kind in (Refused, DataError, EvaluatorFault, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _answer_error)
    return Guard(app, service=service, tokens=tokens)


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
        self._connections = Connections(
            build_app(service, tokens=tokens),
            settings=settings,
            metrics=service.metrics,
            most=bound_connections(settings, service.judge.workers),
        )
        config = uvicorn.Config(
            self._connections,
            host=host,
            port=port,
            http=cast(type[asyncio.Protocol], partial(Connection, self._connections)),
            ws="none",
            loop="asyncio",
            ssl_certfile=tls[0] if tls else None,
            ssl_keyfile=tls[1] if tls else None,
            # Errors alone: what uvicorn warns of are lines that strangers write.
            log_level="error",
            access_log=False,
            server_header=False,
            backlog=ACCEPTED_AT_ONCE,
            timeout_keep_alive=settings.idle_seconds,
            timeout_graceful_shutdown=int(settings.grace_seconds) + _AFTER_GRACE_SECONDS,
        )
        super().__init__(config)

    @property
    def port(self) -> int:
        """The port that is listened on, once it started."""
        return int(self.servers[0].sockets[0].getsockname()[1])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
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
        """End in order; asked again, end at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._service.drain()


async def _answer_error(request: Request, error: Exception) -> Response:
    refused = refusal_of(error)
    if refused.status == 500 and not isinstance(error, Refused):
        _LOG.error("%s failed", request.url.path, exc_info=error)
    return refused.answer()
