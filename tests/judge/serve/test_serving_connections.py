"""Connections that ask nothing, ask slowly, or are too many: the service answers everybody else."""

import contextlib
import os
import resource
import socket
import time
from collections.abc import Iterator

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.serve.app import bound_connections
from microcoder.judge.serve.settings import ServiceSettings

from ..processes import wait_until  # pyrefly: ignore[missing-import]
from .conftest import PATIENCE_SECONDS, Running, http, read_to_end, serve, serving  # pyrefly: ignore[missing-import]

HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


@contextlib.contextmanager
def connected(port: int, num: int = 1) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as opened:
        address = ("127.0.0.1", port)
        yield [opened.enter_context(socket.create_connection(address, PATIENCE_SECONDS)) for _ in range(num)]


def closed(running: Running, why: str) -> float:
    value = running.service.metrics.registry.get_sample_value("microcoder_connections_closed_total", {"why": why})
    return value or 0.0


def comes_to(running: Running, metric: str, value: int) -> bool:
    return wait_until(lambda: running.service.metrics.registry.get_sample_value(metric) == value)


def test_heads_that_do_not_come_and_idle_connections_are_closed(judge: Judge) -> None:
    settings = {"head_seconds": 0.3, "idle_seconds": 1}
    with serving(judge, **settings) as running, connected(running.server.port, 5) as connections:
        _, slow, dripping, idle, second = connections
        for connection in (idle, second):
            connection.sendall(HEALTHZ + b"\r\n")
            answer = b""
            while b'"ok"' not in answer:
                answer += connection.recv(1 << 16)
        slow.sendall(b"GET /healthz HT")
        second.sendall(b"GET /hea")
        dripping.sendall(b"GET /healthz HTTP/1.1\r\n")
        with contextlib.suppress(OSError):
            for number in range(100):  # More than the deadline allows, whatever the pace.
                dripping.sendall(b"X-%d: y\r\n" % number)
                time.sleep(0.02)
        assert [read_to_end(each) for each in connections] == [b""] * 5
        assert closed(running, "no_head") == 4
        assert comes_to(running, "microcoder_connections", 0)
        # The deadline of heads is none for answers.
        late = running.post("/v1/run", {"code": "import time\ntime.sleep(1)\nprint('late')"})
        assert late.json()["stdout"] == "late\n"


def test_a_head_in_pieces_and_a_second_request_are_answered(running: Running) -> None:
    with connected(running.server.port) as (connection,):
        for piece in (b"GET /heal", b"thz HTTP/1.1\r\nHo", b"st: x\r\n\r\n"):
            connection.sendall(piece)
            time.sleep(0.02)
        assert b"200 OK" in connection.recv(1 << 16)
        connection.sendall(HEALTHZ + b"Connection: close\r\n\r\n")
        assert b"200 OK" in read_to_end(connection)


def test_busy_connections_are_not_reset_for_new_ones(judge: Judge) -> None:
    with serving(judge, max_connections=2) as running, connected(running.server.port, 2) as working:
        for connection in working:
            body = b'{"code": "import time\\ntime.sleep(1)\\nprint(1)"}'
            head = b"POST /v1/run HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert comes_to(running, "microcoder_queued_programs", 2)
        with connected(running.server.port) as (third,):
            assert b"503 Service Unavailable" in read_to_end(third)
        assert all(b"200 OK" in read_to_end(connection) for connection in working)


def test_more_idle_connections_than_descriptors() -> None:
    """The service has 400 descriptors, a client opens 600 connections and says nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 800:
        pytest.skip("this process may not open 800 files")
    options = ("--workers", "1", "--time-scale", "1", "--no-self-test", "--head-seconds", "2")
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))}
    with serve(*options, **limited) as (url, _), connected(int(url.rpartition(":")[2]), 600):
        assert http.get(f"{url}/healthz").status_code == 200
        assert http.post(f"{url}/v1/run", json={"code": "print(1)"}).json()["stdout"] == "1\n"
        assert 'why="no_room"' in http.get(f"{url}/metrics").text


def test_too_few_descriptors_are_said_at_the_start() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    num_open = len(os.listdir("/proc/self/fd"))
    assert bound_connections(ServiceSettings(max_connections=1), 1) == 1
    with pytest.raises(ConfigError, match=rf"{soft} open files are allowed, 40000 workers .*`ulimit -n"):
        bound_connections(ServiceSettings(), 40_000)
    assert len(os.listdir("/proc/self/fd")) == num_open
