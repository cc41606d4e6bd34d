"""`microcoder doctor`: this machine's isolation, speed and languages, and the sandbox's self-test."""

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
_TRAINING = ("torch", "transformers", "trl", "peft", "vllm", "verl")


def doctor(
    *, json: Json = False, options: Annotated[SandboxFlags, Parameter(name="*")] = _DEFAULTS
) -> None:
    """Show this machine's sandbox isolation, speed and languages, and run the sandbox's self-test.

    Exits with code 1 if programs cannot be judged safely or a self-test fails.
    """
    require_linux()
    options.add_languages()
    found = examine(options)
    print(json_module.dumps(found) if json else "\n".join(describe(found)))
    if not found["ok"]:
        sys.exit(1)


def examine(options: SandboxFlags = _DEFAULTS) -> dict[str, Any]:
    """Return versions, languages, isolation and self-test of this machine as JSON values; `ok` if all is well."""
    versions = read_packages()
    found: dict[str, Any] = {
        "microcoder": microcoder.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": count_processors(),
        "user": "root" if os.geteuid() == 0 else f"user id {os.geteuid()}",
        "languages": {
            name: language.find_problem()
            or language.find_compiler()
            or current_interpreter().executable
            for name, language in LANGUAGES.items()
        },
        "training": {name: versions.get(name) for name in _TRAINING},
    }
    try:
        with options.open(workers=1) as judge:
            findings = run_probes(judge)
            found |= {"isolation": judge.isolation.as_record(), "time_scale": judge.time_scale}
            found["environment"] = judge.environment.as_record()
            found["self_test"] = [
                {"name": f.name, "ok": f.is_ok, "detail": f.detail} for f in findings
            ]
            found["ok"] = all(finding.is_ok for finding in findings)
    except EvaluatorFault as fault:
        found |= {"ok": False, "fault": str(fault)}
    return found


def describe(found: dict[str, Any]) -> list[str]:
    """Return the result of `examine` as lines of text."""
    lines = [
        f"microcoder {found['microcoder']}, Python {found['python']}, {found['system']}, "
        f"{found['processors']} processors, {found['user']}",
        "",
    ]
    if "isolation" in found:
        isolation = found["isolation"]
        means = f": {DEGRADED_MEANS}" if isolation["level"] == "degraded" else ""
        lines.append(f"isolation: {isolation['level']}{means}")
        lines += [
            f"  {'no ' if layer in isolation['missing'] else 'yes'}  {layer.replace('_', ' ')}"
            + (f" ({isolation['missing'][layer]})" if layer in isolation["missing"] else "")
            for layer in LAYERS
        ]
        lines.append(
            f"CPU limits: x {found['time_scale']:g} (this machine against the reference, never below 1)"
        )
    else:
        lines.append(f"isolation: none. {found['fault']}")
    lines += ["", "languages:"]
    lines += [f"  {name}: {where}" for name, where in found["languages"].items()]
    if "environment" in found:
        packages = found["environment"]["packages"]
        pins, profile = (
            ", ".join(packages["pins"]) or "none",
            f"{packages['profile']} {packages['digest']}",
        )
        lines.append(f"packages programs may import: {pins} (profile {profile})")
        lines += [f"  MISSING: {packages['missing']}"] if packages["missing"] else []
        lines += [
            f"call stack: {problem}" for problem in [found["environment"]["call_stack"]] if problem
        ]
    versions = [
        f"{name} {version or 'not installed'}" for name, version in found["training"].items()
    ]
    lines.append(f"training: {', '.join(versions)}")
    lines.append("")
    for row in found.get("self_test", ()):
        lines.append(
            f"  ok    {row['name']}" if row["ok"] else f"  FAIL  {row['name']}: got {row['detail']}"
        )
    lines.append("all is well" if found["ok"] else "programs cannot be judged safely here")
    return lines


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
