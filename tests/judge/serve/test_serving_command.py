"""`microcoder serve` as its own process: what it says, how it starts and how it ends."""

import shutil
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from microcoder.cli import main
from microcoder.judge.core.types import Program
from microcoder.judge.fleet.http import JudgeClient
from tests.judge.processes import children_of
from tests.judge.serve.conftest import ADD, PROBLEM, serve

SLEEP = "import time\ntime.sleep({})\n" + ADD + "  # {}"


def ask(url: str, seconds: float, number: int) -> httpx.Response:
    programs = [{"problem": 0, "code": SLEEP.format(seconds, number)}]
    message = {"problems": [PROBLEM.model_dump(mode="json")], "programs": programs}
    return httpx.post(f"{url}/v1/judge", json=message, timeout=60)


def wait_for_queue(url: str, size: int) -> None:
    """Return once all were received; the programs must run longer than it takes to send them."""
    with httpx.Client() as client:
        while f"microcoder_queued_programs {size}.0" not in client.get(f"{url}/metrics").text:
            time.sleep(0.02)


def test_it_serves_over_tls_and_ends_with_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_tls = shutil.which("openssl") is not None
    cert = str(tmp_path / "cert.pem")
    key = str(tmp_path / "key.pem")
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        cert,
        "-days",
        "2",
    ]
    options = ("--workers", "2", "--time-scale", "1")
    if has_tls:
        made += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run(made, check=True, capture_output=True)
        monkeypatch.setenv("SSL_CERT_FILE", cert)
        options += ("--tls-cert", cert, "--tls-key", key)
    with serve(*options) as (url, process), ThreadPoolExecutor(8) as pool:
        assert url.startswith("https://") == has_tls
        assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}
        with JudgeClient(url) as client:
            assert client.judge([Program(ADD)], [PROBLEM])[0].is_accepted
        waiting = [pool.submit(ask, url, 1.5, number) for number in range(4)]
        wait_for_queue(url, 4)
        process.send_signal(signal.SIGTERM)
        answers = [future.result() for future in waiting]
        assert process.wait(20) == 0
        assert process.stderr is not None
        assert "the service has ended" in process.stderr.read()
        assert [answer.status_code for answer in answers] == [200] * 4
        for answer in answers:
            assert answer.json()["verdicts"][0]["outcome"] == "accepted"
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/healthz")


def test_what_is_left_after_the_grace_is_given_back() -> None:
    options = ("--workers", "1", "--no-self-test", "--time-scale", "1", "--grace-seconds", "0.5")
    with serve(*options) as (url, process), ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(ask, url, 2.0, number) for number in range(6)]
        wait_for_queue(url, 6)
        children = children_of(process.pid)
        process.send_signal(signal.SIGTERM)
        answers = [future.result() for future in waiting]
        assert process.wait(20) == 0
    assert {answer.status_code for answer in answers} <= {200, 503}
    given_back = []
    for answer in answers:
        if answer.status_code == 503:
            given_back.append(answer)
    assert len(given_back) >= 4
    for answer in given_back:
        assert "shutting down" in answer.json()["detail"]
        assert answer.headers["Retry-After"]
    assert children
    for pid in children:
        assert not Path(f"/proc/{pid}").exists()


def test_wrong_options_are_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = str(tmp_path / "tokens")
    empty = str(tmp_path / "empty")
    Path(tokens).write_text("short\n")
    Path(empty).write_text("")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for options, words in (
            (["--max-queued", "0"], "--max-queued 0: must be 1 or more."),
            (["--host", "0.0.0.0"], "--token-file"),
            (["--token-file", str(tmp_path / "none")], "cannot be read"),
            (["--token-file", empty], "holds no token"),
            (
                ["--token-file", tokens],
                "one that is too weak; write one a line, of 16 or more plain letters",
            ),
            (["--require", "cobol"], "cobol"),
            (["--tls-cert", tokens], "give both, or neither"),
            (["--tls-cert", tokens, "--tls-key", tokens], "cannot be used"),
            (["--grace-seconds", "inf"], "--grace-seconds inf: must be"),
            (["--port", port], f"cannot listen on 127.0.0.1:{port}"),
        ):
            with pytest.raises(SystemExit) as ended:
                main(["serve", *options])
            said = capsys.readouterr()
            assert ended.value.code == 2, options
            assert said.out == "", options
            assert words in said.err
            assert len(said.err.strip().splitlines()) == 1, said.err
