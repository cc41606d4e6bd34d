"""Real servers on free ports, in threads of this process; and what their clients need."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from microcoder.evaluator import Judge
from microcoder.serving.app import JudgeServer
from microcoder.serving.service import Service
from microcoder.serving.settings import ServiceSettings
from microcoder.types import Problem, TestCase

ADD = "a, b = map(int, input().split())\nprint(a + b)"
PROBLEM = Problem(
    id="sum",
    tests=(TestCase(input="1 2\n", output="3\n"), TestCase(input="4 5\n", output="9\n")),
    time_limit_seconds=5.0,
    memory_limit_mib=256,
)
TOKEN = "a-token-for-tests-only"


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
        return httpx.post(self.url + path, json=message, timeout=60, **options)  # type: ignore[arg-type]


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
