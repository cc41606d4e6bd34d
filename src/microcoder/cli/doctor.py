"""`microcoder doctor`: this machine's isolation, speed and languages, and the sandbox's self-test."""

import json as json_module
import os
import platform
import sys
from typing import Annotated, Any

from cyclopts import Parameter

import microcoder
from microcoder.cli.display import Json
from microcoder.cli.judge_options import SandboxFlags
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import count_processors, require_linux
from microcoder.judge.fleet.judge import run_probes
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.languages.definition import current_interpreter
from microcoder.judge.run.isolation import DEGRADED_MEANS
from microcoder.judge.sandbox.protocol import LAYERS
from microcoder.train.run.manifest import read_packages

_DEFAULTS = SandboxFlags()
_TRAINING = ("torch", "transformers", "trl", "peft", "vllm", "verl")


def doctor(*, json: Json = False, options: Annotated[SandboxFlags, Parameter(name="*")] = _DEFAULTS) -> None:
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
            name: language.find_problem() or language.find_compiler() or current_interpreter().executable
            for name, language in LANGUAGES.items()
        },
        "training": {name: versions.get(name) for name in _TRAINING},
    }
    try:
        with options.open(workers=1) as judge:
            findings = run_probes(judge)
            found |= {"isolation": judge.isolation.as_record(), "time_scale": judge.time_scale}
            found["environment"] = judge.environment.as_record()
            found["self_test"] = [{"name": f.name, "ok": f.is_ok, "detail": f.detail} for f in findings]
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
        lines.append(f"CPU limits: x {found['time_scale']:g} (this machine against the reference, never below 1)")
    else:
        lines.append(f"isolation: none. {found['fault']}")
    lines += ["", "languages:"]
    lines += [f"  {name}: {where}" for name, where in found["languages"].items()]
    if "environment" in found:
        packages = found["environment"]["packages"]
        pins, profile = ", ".join(packages["pins"]) or "none", f"{packages['profile']} {packages['digest']}"
        lines.append(f"packages programs may import: {pins} (profile {profile})")
        lines += [f"  MISSING: {packages['missing']}"] if packages["missing"] else []
        lines += [f"call stack: {problem}" for problem in [found["environment"]["call_stack"]] if problem]
    versions = [f"{name} {version or 'not installed'}" for name, version in found["training"].items()]
    lines.append(f"training: {', '.join(versions)}")
    lines.append("")
    for row in found.get("self_test", ()):
        lines.append(f"  ok    {row['name']}" if row["ok"] else f"  FAIL  {row['name']}: got {row['detail']}")
    lines.append("all is well" if found["ok"] else "programs cannot be judged safely here")
    return lines
