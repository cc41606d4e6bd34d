"""Real servers on free ports, in threads of this process; and what their clients need."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from microcoder.judge import Judge
from microcoder.judge.core.types import Problem, Program, TestCase, Verdict
from microcoder.judge.fleet.remote import JudgeRequest, Landed, Load
from microcoder.judge.serve.app import JudgeServer
from microcoder.judge.serve.service import Service
from microcoder.judge.serve.settings import ServiceSettings

ADD = "a, b = map(int, input().split())\nprint(a + b)"
PROBLEM = Problem(
    id="sum",
    tests=(TestCase(input="1 2\n", output="3\n"), TestCase(input="4 5\n", output="9\n")),
    time_limit_seconds=5.0,
    memory_limit_mib=256,
)
TOKEN = "a-token-for-tests-only"
PATIENCE_SECONDS = 60.0
http = httpx.Client(verify=False, timeout=PATIENCE_SECONDS, limits=httpx.Limits(max_keepalive_connections=0))
"""A new connection for each request, without the certificates of the machine, which take longer to read than to ask."""


@dataclass(frozen=True)
class Running:
    """A server that runs, and how to reach it."""

    service: Service
    server: JudgeServer
    thread: threading.Thread

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    @property
    def judge(self) -> Judge:
        return self.service.judge

    def post(self, path: str, message: object, **options: object) -> httpx.Response:
        return http.post(self.url + path, json=message, **options)  # type: ignore[arg-type]


@contextmanager
def serving(judge: Judge, *, tokens: tuple[str, ...] = (), port: int = 0, **settings: object) -> Iterator[Running]:
    """Serve a judge until the block ends."""
    service = Service(judge, ServiceSettings.model_validate(settings))
    server = JudgeServer(service, tokens=tokens, host="127.0.0.1", port=port)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Running(service, server, thread)
    finally:
        server.handle_exit(15, None)
        thread.join(30)


@contextmanager
def stub_judge(
    judge: Judge, behave: Callable[[int, list[Verdict]], list[Verdict | None]], **limits: float
) -> Iterator[tuple[str, list[int]]]:
    """Serve the verdicts of a judge as a function changes them, which gets the number of the request.

    Where it gives None in the place of a verdict, the answer goes on saying that it is there. Yields the address and,
    for each request, how many programs it had.
    """
    asked: list[int] = []
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            about = {"workers": 2, "limits": {"max_queued": 100, "request_seconds": 600} | limits}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(about).encode())

        def do_POST(self) -> None:
            request = JudgeRequest.model_validate_json(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(len(request.programs))
            number = len(asked)
            found = judge.judge(
                [Program(program.code) for program in request.programs],
                [request.problems[program.problem] for program in request.programs],
            )
            self.send_response(200)
            self.end_headers()
            told = behave(number, found)
            load = Load(workers=2, queued=len(found)).model_dump_json()
            with suppress(OSError):
                for index, verdict in enumerate(told):
                    line = load if verdict is None else Landed(index=index, verdict=verdict).model_dump_json()
                    self.wfile.write(f"{line}\n".encode())
                while None in told and not is_over.wait(0.05):
                    self.wfile.write(f"{load}\n".encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        is_over.set()
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="package")
def judge() -> Iterator[Judge]:
    with Judge(workers=2, time_scale=1.0) as judging:
        yield judging


@pytest.fixture(scope="package")
def running(judge: Judge) -> Iterator[Running]:
    """One service for all tests that do not change it."""
    settings = {"max_tests": 100, "max_body_mib": 1, "max_batch": 64, "grace_seconds": 0}
    with serving(judge, **settings) as server:
        yield server


def read_to_end(connection: socket.socket) -> bytes:
    """Return what comes until the server closes; that it does so is the point."""
    connection.settimeout(PATIENCE_SECONDS)
    content = b""
    with suppress(ConnectionResetError):
        while block := connection.recv(1 << 16):
            content += block
    return content
