"""`microcoder doctor`: this machine's isolation, speed and languages, and the self-test."""

import json as json_module
import os
import platform
import sys
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

import microcoder
from microcoder.cli.display import Json
from microcoder.cli.judge_options import SandboxFlags
from microcoder.judge import Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import count_processors, require_linux
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.languages.definition import current_interpreter
from microcoder.judge.run.isolation import DEGRADED_MEANS
from microcoder.judge.sandbox.protocol import LAYERS
from microcoder.train.run.manifest import read_packages

_DEFAULTS = SandboxFlags()
"""The options where the command line names none."""

_TRAINING = ("torch", "transformers", "trl", "peft", "vllm", "verl")
"""Packages for training whose versions are shown."""


def doctor(
    *, json: Json = False, options: Annotated[SandboxFlags, Parameter(name="*")] = _DEFAULTS
) -> None:
    """Show this machine's sandbox isolation, speed and languages, and run the sandbox's self-test.

    Exits with code 1 if programs cannot be judged safely or a self-test fails.
    """
    require_linux()
    options.add_languages()
    record = examine(options)
    if json:
        print(json_module.dumps(record))
    else:
        print("\n".join(describe(record)))
    # By the exit code a script sees that this machine is not ready.
    if not record["ok"]:
        sys.exit(1)


def examine(options: SandboxFlags = _DEFAULTS) -> dict[str, Any]:
    """Return versions, languages, isolation and self-test of this machine as JSON values.

    `ok` says whether all is well.
    """
    versions = read_packages()
    languages = {}
    for name, language in LANGUAGES.items():
        problem = language.find_problem()
        languages[name] = problem or language.find_compiler() or current_interpreter().executable
    record: dict[str, Any] = {
        "microcoder": microcoder.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": count_processors(),
        "user": "root" if os.geteuid() == 0 else f"user id {os.geteuid()}",
        "languages": languages,
        "training": {name: versions.get(name) for name in _TRAINING},
    }
    try:
        with options.open(workers=1) as judge:
            results = run_probes(judge)
            record["isolation"] = judge.isolation.as_record()
            record["time_scale"] = judge.time_scale
            record["environment"] = judge.environment.as_record()
    except EvaluatorFault as fault:
        record["ok"] = False
        # What is known without a sandbox is shown all the same.
        record["fault"] = str(fault)
        return record
    self_test = []
    for result in results:
        self_test.append({"name": result.name, "ok": result.is_ok, "detail": result.detail})
    record["self_test"] = self_test
    record["ok"] = all(result.is_ok for result in results)
    return record


def describe(record: dict[str, Any]) -> list[str]:
    """Return the result of `examine` as lines of text."""
    lines = [
        f"microcoder {record['microcoder']}, Python {record['python']}, {record['system']}, "
        f"{record['processors']} processors, {record['user']}",
        "",
    ]
    if "isolation" in record:
        lines += _describe_isolation(record["isolation"])
        lines.append(
            f"CPU limits: x {record['time_scale']:g} (this machine against the reference, never "
            "below 1)"
        )
    else:
        lines.append(f"isolation: none. {record['fault']}")
    lines += ["", "languages:"]
    lines += [f"  {name}: {place}" for name, place in record["languages"].items()]
    if "environment" in record:
        lines += _describe_environment(record["environment"])
    versions = []
    for name, version in record["training"].items():
        versions.append(f"{name} {version or 'not installed'}")
    lines.append(f"training: {', '.join(versions)}")
    lines.append("")
    for result in record.get("self_test", ()):
        if result["ok"]:
            lines.append(f"  ok    {result['name']}")
        else:
            lines.append(f"  FAIL  {result['name']}: got {result['detail']}")
    lines.append("all is well" if record["ok"] else "programs cannot be judged safely here")
    return lines


def _describe_isolation(isolation: dict[str, Any]) -> list[str]:
    """Return lines on the sandbox: its level, and whether it has each layer."""
    level = isolation["level"]
    if level == "degraded":
        level += f": {DEGRADED_MEANS}"
    lines = [f"isolation: {level}"]
    for layer in LAYERS:
        name = layer.replace("_", " ")
        if layer in isolation["missing"]:
            lines.append(f"  no   {name} ({isolation['missing'][layer]})")
        else:
            lines.append(f"  yes  {name}")
    return lines


def _describe_environment(environment: dict[str, Any]) -> list[str]:
    """Return lines on the packages that programs may import, and on their call stack."""
    packages = environment["packages"]
    pins = ", ".join(packages["pins"]) or "none"
    profile = f"{packages['profile']} {packages['digest']}"
    lines = [f"packages programs may import: {pins} (profile {profile})"]
    if packages["missing"]:
        lines.append(f"  MISSING: {packages['missing']}")
    if environment["call_stack"]:
        lines.append(f"call stack: {environment['call_stack']}")
    return lines


# ----- The self-test.

_STOPPED = (Outcome.RUNTIME_ERROR, Outcome.PROCESS_LIMIT)
"""Outcomes of a program that did what it may not do."""

_ADD = "print(sum(map(int, input().split())))"
"""A right program: it prints the sum of two numbers."""


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
    SelfTest(
        "no other process starts",
        "import os\nif not os.fork():\n    os._exit(0)\nos.wait()\n" + _ADD,
        _STOPPED,
    ),
    SelfTest("no other command runs", "import os\nos.execv('/bin/sh', ['sh'])\n", _STOPPED),
    SelfTest("users are not listed", "open('/etc/passwd').read()\n" + _ADD, _STOPPED),
    SelfTest(
        "no network",
        "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)\n" + _ADD,
        _STOPPED,
    ),
    SelfTest("the next program runs as ever", _ADD + "  # again", (Outcome.ACCEPTED,)),
    SelfTest(
        "C++ is compiled and runs",
        "#include <iostream>\n"
        "int main() { int a, b; std::cin >> a >> b; std::cout << a + b << std::endl; }",
        (Outcome.ACCEPTED,),
        "cpp",
    ),
)


def run_probes(judge: Judge) -> list[SelfTestResult]:
    """Run every self-test whose language is available here, one after the other.

    Returns:
        Their results in order.
    """
    results = []
    for probe in PROBES:
        # A language that is not installed is listed above, and is no failure.
        if LANGUAGES[probe.language].find_problem():
            continue
        # An endless program uses its limit up; the others may run on a slow machine.
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
        results.append(SelfTestResult(probe.name, verdict.outcome in probe.allowed, detail))
    return results
