"""Our own API; who is let in; and what hostile requests get."""

import json
import random
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.serve.app import ValueCounter, bound_connections
from microcoder.judge.serve.settings import ServiceSettings, read_tokens
from tests.judge.processes import wait_until
from tests.judge.serve.conftest import ADD, TOKEN, Running, http, read_to_end, serving

SUM = {"id": "sum", "tests": [{"input": "1 2", "output": "3"}]}
WRONG_TOKENS = ("Bearer wrong", f"Basic {TOKEN}", "x", b"Bearer \xe9")


def asking(code: str | None = ADD, **problem: object) -> dict[str, Any]:
    return {"problems": [{**SUM, **problem}], "programs": [{"problem": 0, "code": code}]}


def test_our_own_api_judges_and_describes_itself(running: Running) -> None:
    request = {
        "problems": [SUM],
        "programs": [{"problem": 0, "code": code} for code in (ADD, "print(4)", None)],
    }
    verdicts = running.post("/v1/judge", request).json()["verdicts"]
    assert [(verdict["outcome"], verdict["detail"]) for verdict in verdicts] == [
        ("accepted", ""),
        ("wrong_answer", 'test 1: line 1: expected "3", got "4"'),
        ("no_code", ""),
    ]
    assert verdicts[0]["tests"][0]["verdict"] == "accepted"
    about, schema = (
        http.get(f"{running.url}/{name}").json() for name in ("v1/about", "openapi.json")
    )
    assert about["isolation"]["level"] == running.judge.isolation.level
    assert {"/v1/judge", "/v1/judge/stream"} <= schema["paths"].keys()
    metrics = http.get(f"{running.url}/metrics").text
    assert 'microcoder_requests_total{route="/v1/judge",status="200"}' in metrics
    assert "microcoder_judge_judged_total" in metrics


def asking_call(
    given: str,
    expected: str,
    fn_name: str = "f",
    call: object = None,
) -> dict[str, Any]:
    return asking(fn_name=fn_name, call=call, tests=[{"input": given, "output": expected}])


ONE_PROGRAM = {"problem": 0, "code": "x"}
MANY_PROBLEMS = {
    "problems": [SUM] * 300,
    "programs": [{"problem": n % 300, "code": "x"} for n in range(50)],
}
MANY_PROGRAMS = {"problems": [SUM], "programs": [ONE_PROGRAM] * 10_000}
NOT_THERE, BELOW_ALL = (
    {"problems": [SUM], "programs": [{**ONE_PROGRAM, "problem": n}]} for n in (1, -1)
)
TREES = asking_call('"SECRET"', '"SECRET"', call={"parameters": ["TreeNode"]})
LONG_CHECKER = {"type": "program", "code": "1", "arguments": ["x" * 100_000]}
NO_VALUE = "problem 0, test 1: its input or output is not what"
JUDGE = "/v1/judge"
HOSTILE: dict[str, tuple[str, Any, int, str]] = {
    "malformed": (JUDGE, b"{", 422, "JSON"),
    "nested": (JUDGE, b"[" * 10_000, 422, ""),
    "many values": (
        JUDGE,
        b"[1" + b",1" * 400_000,
        413,
        "values in one request; send at most 64 programs",
    ),
    "many problems": (JUDGE, MANY_PROBLEMS, 422, "problem 50 is named by no program"),
    "values in a function's test": (
        JUDGE,
        asking_call("1", "[" + "," * 1_000_000),
        413,
        "1000001 values in a function's test",
    ),
    "secret outputs": (JUDGE, asking_call("1", "SECRET"), 422, NO_VALUE),
    "secret arguments": (JUDGE, asking_call("1\nSECRET", "1"), 422, NO_VALUE),
    "secret trees": (JUDGE, TREES, 422, NO_VALUE),
    "not json": (JUDGE, b"\xff\xfe\x00", 422, ""),
    "no fields": (JUDGE, {}, 422, "problems"),
    "no tests": (JUDGE, asking(tests=[]), 422, "tests: Tuple should have at least 1 item"),
    "false test": (
        JUDGE,
        asking(tests=[{"in": "1", "output": ""}]),
        422,
        "tests.0.in: Extra inputs are not",
    ),
    "unknown key": (JUDGE, {**asking(), "tests": 1}, 422, "not permitted"),
    "no character": (JUDGE, {**asking(), "\ud800": 1}, 422, "escape"),
    "1,000 tests": (
        JUDGE,
        asking(tests=SUM["tests"] * 1000),
        413,
        "1000 tests in one request; send at most 100",
    ),
    "10,000 programs": (JUDGE, MANY_PROGRAMS, 413, "send at most 64"),
    "no such problem": (JUDGE, NOT_THERE, 422, "count from"),
    "negative problem": (JUDGE, BELOW_ALL, 422, "problem"),
    "oversized": (JUDGE, asking("#" * (2 << 20)), 413, "at most 1 MiB"),
    "unknown language": (JUDGE, asking(language="cobol"), 422, "language = 'cobol'"),
    "endless limit": (JUDGE, asking(time_limit_seconds=600), 422, "time limit of 600 s"),
    "infinite limit": (JUDGE, asking(time_limit_seconds="@"), 422, "time_limit_seconds"),
    "no number": (JUDGE, asking(time_limit_seconds=float("nan")), 422, ""),
    "huge memory": (JUDGE, asking(memory_limit_mib=1 << 16), 422, "memory limit of 65536 MiB"),
    "no such route": ("/v1/../../etc/passwd", {}, 404, "Not Found"),
    "long arguments of a checker": (
        JUDGE,
        asking(checker=LONG_CHECKER),
        422,
        "checker.arguments: 100004 bytes",
    ),
    "long function name": (
        JUDGE,
        asking_call("1", "1", fn_name="f" * 100_000),
        422,
        "fn_name has 100000 characters",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests_are_refused_in_words(
    running: Running,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, message, status, words = HOSTILE[name]
    if isinstance(message, bytes):
        content = message
    else:
        content = json.dumps(message).replace('"@"', "1e400").encode()
    # A folder of this test's own: judges of other tests make theirs in the usual one at the same
    # time.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    answer = http.post(
        running.url + path,
        content=content,
        headers={"Content-Type": "application/json"},
    )
    text = answer.json().get("detail") or answer.json().get("message")
    assert answer.status_code in (status, 400 if status == 422 else status), text
    assert words in text
    assert len(text) < 2000
    for word in ("Traceback", "SECRET"):
        assert word not in text
    assert text.count("at least 1 item") == (name == "no tests")
    assert not list(tmp_path.iterdir())
    assert http.get(f"{running.url}/readyz").status_code == 200
    assert running.service.metrics.queued._value.get() == 0


def test_a_body_that_grows_without_a_stated_size_is_cut_off(running: Running) -> None:
    answer = http.post(f"{running.url}/v1/judge", content=(b" " * 65536 for _ in range(40)))
    assert answer.status_code == 413
    assert answer.json()["detail"] == "the request is too large; send at most 1 MiB"
    answer = http.post(f"{running.url}/v1/judge", data={"a": "b"})
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.text


def test_a_body_that_does_not_arrive_and_rubbish_end_in_4xx(judge: Judge) -> None:
    with serving(judge, body_seconds=0.2, grace_seconds=0) as running:
        for sent, status in (
            (b"POST /v1/judge HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", b"408"),
            (b"POST /v1/judge HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", b"400"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        ):
            with socket.create_connection(("127.0.0.1", running.server.port), 30) as connection:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR) if status == b"400" else None
                assert connection.recv(1000).split()[1] == status


SMUGGLED = b"5\r\n{...}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def say(running: Running, sent: bytes) -> bytes:
    """Return all that comes back until the service closes, which it must."""
    with socket.create_connection(("127.0.0.1", running.server.port), 30) as connection:
        connection.sendall(sent)
        return read_to_end(connection)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /v1/judge HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", b"400"),
        (b"POST /v1/judge HTTP/1.1\r\ntransfer-encoding: Chunked\r\ncontent-length: 0", b"400"),
        (b"POST /healthz HTTP/1.0\r\nTransfer-Encoding: chunked", b"400"),
        (b"POST /v1/judge HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6", b"400"),
        (b"POST /v1/judge HTTP/1.1\r\nTransfer-Encoding: chunked, identity", b"501"),
        (b"GET /healthz HTTP/9.9", b"505"),
        (b"GET /healthz HTTP/2.0", b"505"),
    ],
)
def test_a_request_that_a_proxy_may_read_otherwise_is_refused_and_nothing_behind_it_is_served(
    running: Running,
    head: bytes,
    status: bytes,
) -> None:
    answer = say(running, head + b"\r\nHost: x\r\n\r\n" + SMUGGLED)
    assert answer.split()[1] in (status, b"400")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_strangers_write_no_line_into_the_log(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    upgrade = (
        b"GET /healthz HTTP/1.1\r\n"
        b"Host: x\r\n"
        b"Connection: Upgrade, close\r\n"
        b"Upgrade: websocket\r\n"
        b"\r\n"
    )
    assert [say(running, sent).split()[1] for sent in (upgrade, b"no request\r\n\r\n")] == [
        b"200",
        b"400",
    ]
    assert caplog.records == []


def test_an_address_that_shows_many_wrong_tokens_has_to_wait(judge: Judge) -> None:
    with serving(judge, tokens=(TOKEN, TOKEN + "2"), grace_seconds=0) as running:

        def show(token: str) -> httpx.Response:
            return http.get(f"{running.url}/v1/about", headers={"Authorization": f"Bearer {token}"})

        assert show(TOKEN).status_code == 200
        assert [show(f"wrong {number}").status_code for number in range(12)] == [401] * 10 + [
            429
        ] * 2
        # A right token that is new here learns nothing either; one that was right before goes on.
        refused = show(TOKEN + "2")
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert show(TOKEN).status_code == 200
        with httpx.Client(
            transport=httpx.HTTPTransport(local_address="127.0.0.2", verify=False)
        ) as elsewhere:
            answer = elsewhere.get(
                f"{running.url}/v1/about", headers={"Authorization": f"Bearer {TOKEN}2"}
            )
            assert answer.status_code == 200


@settings(max_examples=25)
@given(
    st.recursive(st.text('a"\\,[{\U0001f600', max_size=8) | st.integers(), st.lists), st.randoms()
)
def test_values_are_counted_the_same_however_a_body_is_cut(
    value: object, chance: random.Random
) -> None:
    def num_values(inner: object) -> int:
        # An opening bracket, and the commas between its items.
        return sum(map(num_values, inner)) + max(1, len(inner)) if isinstance(inner, list) else 0

    content = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode()
    counter = ValueCounter(ServiceSettings())
    while content:
        size = chance.randint(1, 5)
        counter.add(content[:size])
        content = content[size:]
    assert counter.num_values == num_values(value)


def test_what_a_request_holds_in_memory_is_counted_by_its_values(judge: Judge) -> None:
    problem = {"id": "sum", "tests": SUM["tests"] * 1000}
    with serving(judge, max_total_body_mib=4, grace_seconds=0) as running:
        for num, status in ((9, 429), (3, 200)):
            programs = [{"problem": n, "code": "x("} for n in range(num)]
            answer = running.post("/v1/judge", {"problems": [problem] * num, "programs": programs})
            assert answer.status_code == status
            while (
                running.service.metrics.body_bytes._value.get()
            ):  # given back once the answer is sent
                time.sleep(0.01)


def test_only_those_with_a_token_are_let_in(judge: Judge, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# for tests\n\n{TOKEN}\n")
    with serving(judge, tokens=tuple(read_tokens(file)), grace_seconds=0) as running:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert http.get(f"{running.url}/healthz").status_code == 200
        assert running.post("/v1/judge", asking(), headers=bearer).status_code == 200
        paths = ("/v1/judge", "/metrics", "/openapi.json", "/nowhere")
        shown = (*((None, path) for path in paths), *((wrong, paths[0]) for wrong in WRONG_TOKENS))
        for number, (header, path) in enumerate(shown):
            headers: Any = {"Authorization": header} if header else {}
            # From another address each time: wrong tokens make the next ones wait.
            transport = httpx.HTTPTransport(local_address=f"127.0.0.{number + 2}", verify=False)
            with httpx.Client(transport=transport) as stranger:
                answer = stranger.post(running.url + path, json=asking(), headers=headers)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_more_connections_than_there_may_be_are_answered_503(judge: Judge) -> None:
    with serving(judge, max_connections=3) as running:
        address = ("127.0.0.1", running.server.port)
        with socket.create_connection(address), socket.create_connection(address):
            assert http.get(f"{running.url}/healthz").status_code == 503
        assert wait_until(lambda: http.get(f"{running.url}/healthz").status_code == 200)
    assert bound_connections(ServiceSettings(max_connections=1), 1) == 1
    with pytest.raises(
        ConfigError, match=r"open files are allowed, 400000000 workers .*`ulimit -n"
    ):
        bound_connections(ServiceSettings(), 400_000_000)


def test_a_client_that_reads_no_answer_is_cut_off(judge: Judge) -> None:
    with serving(judge, body_seconds=0.3, grace_seconds=0) as running, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", running.server.port))
        deaf.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
        assert wait_until(lambda: bool(running.server.server_state.connections))
        assert wait_until(lambda: not running.server.server_state.connections)
