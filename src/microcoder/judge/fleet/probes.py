"""Self-tests of the evaluator: small programs with known verdicts."""

from __future__ import annotations

from typing import NamedTuple

from microcoder.judge.core.types import Outcome, Problem, Program, TestCase
from microcoder.judge.fleet.judge import Judge
from microcoder.judge.languages import LANGUAGES

_STOPPED = (Outcome.RUNTIME_ERROR, Outcome.PROCESS_LIMIT)
_ADD = "print(sum(map(int, input().split())))"


class SelfTest(NamedTuple):
    """A program with its expected verdicts."""

    name: str
    code: str
    allowed: tuple[Outcome, ...]
    language: str = "python"


class SelfTestResult(NamedTuple):
    """The result of a self-test."""

    name: str
    is_ok: bool
    detail: str


PROBES = (
    SelfTest("a right program is accepted", _ADD, (Outcome.ACCEPTED,)),
    SelfTest("a wrong program is rejected", "print(4)", (Outcome.WRONG_ANSWER,)),
    SelfTest("an endless program is stopped", "while True: pass", (Outcome.TIME_LIMIT,)),
    SelfTest("memory is limited", "x = bytearray(1 << 30)\nprint(len(x))", (Outcome.MEMORY_LIMIT,)),
    SelfTest("output is limited", "while True: print('x' * 65536)", (Outcome.OUTPUT_LIMIT,)),
    SelfTest("no other process starts", "import os\nif not os.fork():\n    os._exit(0)\nos.wait()\n" + _ADD, _STOPPED),
    SelfTest("no other command runs", "import os\nos.execv('/bin/sh', ['sh'])\n", _STOPPED),
    SelfTest("users are not listed", "open('/etc/passwd').read()\n" + _ADD, _STOPPED),
    SelfTest("no network", "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)\n" + _ADD, _STOPPED),
    SelfTest("the next program runs as ever", _ADD + "  # again", (Outcome.ACCEPTED,)),
    SelfTest(
        "C++ is compiled and runs",
        "#include <iostream>\nint main() { int a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }",
        (Outcome.ACCEPTED,),
        "cpp",
    ),
)


def run_probes(judge: Judge) -> list[SelfTestResult]:
    """Run every self-test whose language is available here, one after the other; return their results in order."""
    found = []
    for probe in PROBES:
        if LANGUAGES[probe.language].find_problem():
            continue
        limit_seconds = 1.0 if Outcome.TIME_LIMIT in probe.allowed else 10.0
        problem = Problem(
            id="probe",
            language=probe.language,
            tests=(TestCase(input="1 2\n", output="3\n"),),
            time_limit_seconds=limit_seconds,
            memory_limit_mib=128,
        )
        (verdict,) = judge.judge([Program(probe.code, probe.language)], [problem])
        detail = f"{verdict.outcome}: {verdict.detail}".rstrip(": ")
        found.append(SelfTestResult(probe.name, verdict.outcome in probe.allowed, detail))
    return found
