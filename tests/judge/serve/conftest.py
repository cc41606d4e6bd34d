"""Real servers on free ports, in threads of this process; and what their clients need."""

import asyncio
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, Verdict
from microcoder.judge.fleet.judge import BaseJudge
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
http = httpx.Client(
    verify=False,
    timeout=PATIENCE_SECONDS,
    limits=httpx.Limits(max_keepalive_connections=0),
)
"""A new connection for each request, without the certificates of the machine,
which take longer to read than to ask.
"""


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
def serving(
    judge: Judge,
    *,
    tokens: tuple[str, ...] = (),
    port: int = 0,
    kind: type[Service] = Service,
    **settings: object,
) -> Iterator[Running]:
    """Serve a judge until the block ends."""
    service = kind(judge, ServiceSettings.model_validate(settings))
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
def serve(*options: str, **started: Any) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `microcoder serve`, a process started with these arguments; yield its address and it."""
    command = [sys.executable, "-m", "microcoder", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **started)
    try:
        assert process.stderr is not None
        found = re.search(r"serving on (https?://\S+),", process.stderr.readline())
        assert found, process.stderr.read()
        yield found[1], process
    except Exception as error:
        ended = process.poll()
        process.kill()
        error.add_note(f"the service had ended with {ended}, and said: {process.communicate()[1]}")
        raise
    finally:
        process.kill()
        process.wait()


@contextmanager
def stub_judge(
    judge: Judge, behave: Callable[[int, list[Verdict]], list[Verdict | None]]
) -> Iterator[tuple[str, list[int]]]:
    """Serve the verdicts of a judge as a function changes them,
    which gets the number of the request.

    Where it gives None in the place of a verdict, the answer goes on saying that it is there.
    Yields the address and, for each request, how many programs it had.
    """
    asked: list[int] = []

    class Stub(Service):
        async def judge_each(
            self, programs: Sequence[Program], problems: Sequence[Problem]
        ) -> AsyncGenerator[tuple[int, Verdict] | None]:
            asked.append(len(programs))
            number = len(asked)
            yield None
            told = behave(number, await asyncio.to_thread(self.judge.judge, programs, problems))
            for index, verdict in enumerate(told):
                yield None if verdict is None else (index, verdict)
            while None in told and not self.is_draining:
                await asyncio.sleep(0.05)
                yield None

    with serving(judge, kind=Stub, grace_seconds=0) as running:
        yield running.url, asked


def judge_alternating(
    judge: BaseJudge,
    what: str,
    number: int,
    at_the_tenth: Callable[[], object] = lambda: None,
) -> None:
    """Judge programs, each its own: right, wrong, right, ...; each has its verdict, told once."""
    told: list[int] = []

    def note(index: int, verdict: Verdict) -> None:
        told.append(index)
        if len(told) == 10:
            at_the_tenth()

    programs = []
    for n in range(number):
        programs.append(Program(ADD.replace("a + b", f"a + b + {n % 2}") + f"  # {what} {n}"))
    verdicts = judge.judge(programs, [PROBLEM] * number, on_verdict=note)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.ACCEPTED, Outcome.WRONG_ANSWER] * (
        number // 2
    )
    assert sorted(told) == list(range(number))


@pytest.fixture(scope="package")
def judge() -> Iterator[Judge]:
    with Judge(workers=2, time_scale=1.0) as judging:
        yield judging


@pytest.fixture(scope="package")
def running(judge: Judge) -> Iterator[Running]:
    """One service for all tests that do not change it."""
    settings = {"max_total_tests": 100, "max_body_mib": 1, "max_batch": 64, "grace_seconds": 0}
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
