"""Adapters of judges that need no other project: MicroCoder's, a function of your own, a plain subprocess.

They import only the standard library and the judge. Each takes the text after the `=` and returns a function from a
case (`cases.Case` as plain values) to True, False, or None if the judge could not tell; and a text about the judge's
version. Adapters of other projects have the same form, in files such as `examples/judges/peers.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import math
import os
import subprocess as processes
import sys
import types
from collections.abc import Callable
from typing import Any

Ask = Callable[[dict[str, Any]], "bool | None"]
MODULE = "yardstick_judges"
"""Name under which adapters of other judges import this module."""
REFERENCE = "module:attribute or file.py:function"
JUDGES = {
    "microcoder": "",
    "subprocess": "",
    "function": REFERENCE,
    "lcb": REFERENCE,
    "http-v1": "its address",
}
"""Name of a judge, a function below -> the text that it takes after the `=`; empty: none."""
NEEDS = {
    "function": "calls a function with JSON arguments and compares what it returns",
    "packages": "has numpy and sortedcontainers for programs",
    "structures": "passes linked lists, trees and design classes",
    "checker": "decides by a checker program or in any order",
    "cpp": "builds and runs C++",
}
"""Abilities that a case may need beyond stdin and stdout; a judge gets only the cases that it supports."""
ABILITIES = {"microcoder": list(NEEDS), "http_v1": list(NEEDS), "subprocess": ["packages"]}
"""Name of a judge's function -> its abilities; those not listed have `function` and `packages`."""
SERVICES = ["http_v1"]
"""Judges that run programs elsewhere, so that their process here needs no isolation."""


def make_judge(settings: dict[str, Any]) -> tuple[Ask, str]:
    """Return how to ask the settings' judge (one of `JUDGES` or of a file of adapters), and its version as text."""
    name, path = settings["judge"], settings["path"]
    return (globals()[name.replace("-", "_")] if name in JUDGES else load_function(name))(path)


def microcoder(path: str) -> tuple[Ask, str]:
    """Return MicroCoder's judge in this process, and its version with its isolation; `path` is not used."""
    import microcoder
    from microcoder.judge import Judge

    judge = Judge(workers=1, cache_size=0)
    return _ask_ours(
        judge
    ), f"microcoder {microcoder.__version__}, isolation {judge.isolation.level}"


def http_v1(url: str) -> tuple[Ask, str]:
    """Return the judge that `microcoder serve` offers at a URL, and the URL."""
    from microcoder.judge.fleet.http import JudgeClient

    return _ask_ours(JudgeClient(url)), url


def _ask_ours(judge: Any) -> Ask:
    from microcoder.judge.core.types import Problem, Program

    def ask(case: dict[str, Any]) -> bool | None:
        tests = [{"input": given, "output": expected} for given, expected in case["tests"]]
        limits = {"time_limit_seconds": case["time_limit_seconds"]}
        problem = Problem.model_validate(
            {
                "id": case["id"],
                "tests": tests,
                "fn_name": case.get("fn_name"),
                **limits,
                **case["problem"],
            }
        )
        (verdict,) = judge.judge([Program(case["code"], problem.language)], [problem])
        return verdict.is_accepted if verdict.is_scorable else None

    return ask


def subprocess(path: str) -> tuple[Ask, str]:
    """Return a judge that runs `python -c` per test and wants exit code 0 and the expected output, both stripped."""

    def is_right(case: dict[str, Any], given: str, expected: str) -> bool:
        command, seconds = [sys.executable, "-c", case["code"]], case["time_limit_seconds"]
        try:
            done = processes.run(
                command, input=given, capture_output=True, text=True, timeout=seconds, check=False
            )
        except (processes.TimeoutExpired, ValueError, UnicodeError):
            return False
        return done.returncode == 0 and done.stdout.strip() == expected.strip()

    def ask(case: dict[str, Any]) -> bool:
        return all(is_right(case, given, expected) for given, expected in case["tests"])

    return ask, f"Python {sys.version.split()[0]}"


def lcb(reference: str) -> tuple[Ask, str]:
    """Return your own function with LiveCodeBench's signature as a judge, and its name."""
    return by_its_signature(load_function(reference)), reference


def by_its_signature(check: Callable[..., Any]) -> Ask:
    """Return a function from a case to a verdict; it calls `check`, which has LiveCodeBench's signature."""

    def ask(case: dict[str, Any]) -> bool:
        seconds = math.ceil(case["time_limit_seconds"])
        results, _ = check(
            {"input_output": json.dumps(list_tests(case))},
            case["code"],
            timeout=seconds,
            debug=False,
        )
        return bool(results) and all(
            one is True or (one == 1 and one is not False) for one in map(plain, results)
        )

    return ask


def plain(result: Any) -> Any:
    """Return a result as Python's own value, since LiveCodeBench's code also returns numpy's booleans."""
    return result.item() if hasattr(result, "item") else result


def function(reference: str) -> tuple[Ask, str]:
    """Return your own function as a judge: called as (code, tests, time_limit) if it takes these, else with a case."""
    judge = load_function(reference)
    # `judge(code, tests, time_limit)`, or `judge(case)` with all there is to know.
    if set(inspect.signature(judge).parameters) >= {"code", "tests", "time_limit"}:
        return lambda case: judge(
            case["code"], list_tests(case), case["time_limit_seconds"]
        ), reference
    return judge, reference


def load_function(reference: str) -> Callable[..., Any]:
    """Return the object that `package.module:attribute` or `path/file.py:function` names."""
    where, _, name = reference.rpartition(":")
    return getattr(
        import_file(where) if where.endswith(".py") else importlib.import_module(where), name
    )


def import_file(path: str, name: str = "") -> types.ModuleType:
    """Import a Python file by its path, under its own name or another, and return the module; raises ImportError."""
    location = importlib.util.spec_from_file_location(
        name or os.path.basename(path).removesuffix(".py"), path
    )
    if not location or not location.loader:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(location)
    sys.modules[location.name] = module
    location.loader.exec_module(module)
    return module


def list_tests(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case's tests in the layout of LiveCodeBench, APPS and PRIME: inputs, outputs, fn_name."""
    inputs, outputs = ([test[side] for test in case["tests"]] for side in (0, 1))
    return {
        "inputs": inputs,
        "outputs": outputs,
        **({"fn_name": case["fn_name"]} if case.get("fn_name") else {}),
    }
