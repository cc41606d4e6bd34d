"""Connections that ask nothing, ask slowly, or are too many: the service answers everybody else."""

import contextlib
import resource
import socket
import time

import httpx
import pytest

from microcoder.judge import Judge
from microcoder.judge.serve import app
from tests.judge.serve.conftest import PATIENCE_SECONDS, http, read_to_end, serve, serving

HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)


def test_heads_that_do_not_come_and_idle_connections_are_closed(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_HEAD_SECONDS", 0.3)
    monkeypatch.setattr(app, "_IDLE_SECONDS", 1)
    with serving(judge) as running, contextlib.ExitStack() as opened:
        silent, slow, dripping, idle, second = (
            opened.enter_context(connect(running.server.port)) for _ in range(5)
        )
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
        assert [read_to_end(each) for each in (silent, slow, dripping, idle, second)] == [b""] * 5
        with connect(running.server.port) as pieces:
            for piece in (
                b"GET /heal",
                b"thz HTTP/1.1\r\nHo",
                b"st: x\r\nConnection: close\r\n\r\n",
            ):
                pieces.sendall(piece)
            assert b"200 OK" in read_to_end(pieces)


def test_more_idle_connections_than_descriptors() -> None:
    """The service has 400 descriptors, a client opens 600 connections and says nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 800:
        pytest.skip("this process may not open 800 files")
    limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))}
    options = ("--workers", "1", "--time-scale", "1", "--no-self-test")
    with serve(*options, **limited) as (url, _), contextlib.ExitStack() as opened:
        for _ in range(600):
            opened.enter_context(connect(int(url.rpartition(":")[2])))
        status = 503
        until = time.monotonic() + PATIENCE_SECONDS
        while status == 503 and time.monotonic() < until:
            time.sleep(0.1)
            with contextlib.suppress(httpx.RequestError):
                status = http.get(f"{url}/healthz").status_code
        assert status == 200
        problem = {"id": "p", "tests": [{"input": "", "output": "1"}]}
        asked = {"problems": [problem], "programs": [{"code": "print(1)", "problem": 0}]}
        assert (
            http.post(f"{url}/v1/judge", json=asked).json()["verdicts"][0]["outcome"] == "accepted"
        )
