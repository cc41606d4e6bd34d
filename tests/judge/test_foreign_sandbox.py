"""The seam is real: our policy in a sandbox of somebody else's, a service of SandboxFusion's form.

The service is a stand-in that answers as SandboxFusion's `/run_code` does; programs here are ours.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from examples.foreign_sandbox import judge_abroad

from microcoder.judge.core.types import Checker, Outcome, Problem, Program
from microcoder.judge.run.reference import judge_by_reference
from tests.judge.conftest import make_problem

SUM = make_problem(("1 2", "3"), ("5 6", "11"), time_limit_seconds=2.0)
PROGRAMS = {
    "right": "print(sum(map(int, input().split())))",
    "wrong": "print(3)",
    "crashes": "1 / 0",
    "endless": "while True: pass",
    "no Python": "def f(:",
}


class StandIn(BaseHTTPRequestHandler):
    """Runs Python programs without any sandbox."""

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        asked = json.loads(self.rfile.read(length))
        if asked["code"] == "break":
            self._answer({"status": "SandboxError", "message": "no machine"})
            return
        started = time.monotonic()
        try:
            ended = subprocess.run(
                [sys.executable, "-c", asked["code"]],
                input=asked["stdin"],
                capture_output=True,
                text=True,
                timeout=asked["run_timeout"],
            )
        except subprocess.TimeoutExpired:
            late = {"status": "TimeLimitExceeded", "return_code": None, "stdout": "", "stderr": ""}
            self._answer({"status": "Failed", "run_result": late})
            return
        ran = {
            "status": "Error" if ended.returncode else "Finished",
            "execution_time": time.monotonic() - started,
            "return_code": ended.returncode,
            "stdout": ended.stdout,
            "stderr": ended.stderr,
        }
        self._answer({"status": "Success", "compile_result": None, "run_result": ran})

    def _answer(self, content: dict[str, object]) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, format: str, *values: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), StandIn) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("name", PROGRAMS)
def test_verdicts_are_those_of_the_reference_judge(url: str, name: str) -> None:
    program = Program(PROGRAMS[name])
    ours = judge_by_reference(program, SUM, stop="first_failure")
    abroad = judge_abroad(url, program, SUM)
    assert abroad.outcome is ours.outcome
    assert [test.verdict for test in abroad.tests] == [test.verdict for test in ours.tests]


def test_a_service_that_fails_scores_nothing(url: str) -> None:
    verdict = judge_abroad(url, Program("break"), SUM)
    assert verdict.outcome is Outcome.SANDBOX_FAULT
    assert "no machine" in verdict.detail
    nobody = judge_abroad("http://127.0.0.1:9", Program("print(3)"), SUM)
    assert nobody.outcome is Outcome.SANDBOX_FAULT
    assert "the sandbox at http://127.0.0.1:9 failed" in nobody.detail


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (make_problem(("1", "1"), fn_name="f"), "functions and checker programs do not run there"),
        (
            SUM.model_copy(update={"checker": Checker(type="program", code="pass")}),
            "functions and checker programs do not run there",
        ),
    ],
)
def test_what_does_not_run_there_is_said(url: str, problem: Problem, said: str) -> None:
    verdict = judge_abroad(url, Program("def f(a): return a"), problem)
    assert verdict.outcome is Outcome.SANDBOX_FAULT
    assert said in verdict.detail
