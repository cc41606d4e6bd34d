"""The judges that need no other project: ours, your own function, and two that everybody writes.

Standard library and the judge itself, no more. Each takes what is behind the `=` and returns a function from a case
(`cases.Case` as plain values) to True, False, or None if the judge says that it could not tell; and a text about the
judge's version. Those of other projects are written alike, in files such as `examples/judges/peers.py`.
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
"""What this module is called where adapters run."""
REFERENCE = "module:attribute or file.py:function"
JUDGES = {"microcoder": "", "subprocess": "", "function": REFERENCE, "lcb": REFERENCE, "http-v1": "its address"}
"""Name of a judge, a function here -> what it takes behind the `=`; empty: nothing."""
_ALL = ["function", "packages", "structures", "checker", "cpp"]
ABILITIES = {"microcoder": _ALL, "http_v1": _ALL, "subprocess": ["packages"]}
"""What cases may need of a judge, where it is not functions and packages."""
SERVICES = ["http_v1"]
"""They run programs where they are: there is nothing to contain here."""


def make_judge(settings: dict[str, Any]) -> tuple[Ask, str]:
    """Return the judge that the settings name: one of `JUDGES`, or a function of a file of adapters."""
    name, path = settings["judge"], settings["path"]
    return (globals()[name.replace("-", "_")] if name in JUDGES else load_function(name))(path)


def microcoder(path: str) -> tuple[Ask, str]:
    """This package's judge."""
    import microcoder
    from microcoder.judge import Judge

    judge = Judge(workers=1, cache_size=0)
    return _ask_ours(judge), f"microcoder {microcoder.__version__}, isolation {judge.isolation.level}"


def http_v1(url: str) -> tuple[Ask, str]:
    """A `microcoder serve`."""
    from microcoder.judge.fleet.http import JudgeClient

    return _ask_ours(JudgeClient(url)), url


def _ask_ours(judge: Any) -> Ask:
    from microcoder.judge.core.types import Problem, Program

    def ask(case: dict[str, Any]) -> bool | None:
        tests = [{"input": given, "output": expected} for given, expected in case["tests"]]
        limits = {"time_limit_seconds": case["time_limit_seconds"]}
        problem = Problem.model_validate(
            {"id": case["id"], "tests": tests, "fn_name": case.get("fn_name"), **limits, **case["problem"]}
        )
        (verdict,) = judge.judge([Program(case["code"], problem.language)], [problem])
        return verdict.is_accepted if verdict.is_scorable else None

    return ask


def subprocess(path: str) -> tuple[Ask, str]:
    """`python -c` a test, exit code 0, equal stripped output."""

    def is_right(case: dict[str, Any], given: str, expected: str) -> bool:
        command, seconds = [sys.executable, "-c", case["code"]], case["time_limit_seconds"]
        try:
            done = processes.run(command, input=given, capture_output=True, text=True, timeout=seconds, check=False)
        except (processes.TimeoutExpired, ValueError, UnicodeError):
            return False
        return done.returncode == 0 and done.stdout.strip() == expected.strip()

    def ask(case: dict[str, Any]) -> bool:
        return all(is_right(case, given, expected) for given, expected in case["tests"])

    return ask, f"Python {sys.version.split()[0]}"


def lcb(reference: str) -> tuple[Ask, str]:
    """Your own function with LiveCodeBench's signature."""
    return by_its_signature(load_function(reference)), reference


def by_its_signature(check: Callable[..., Any]) -> Ask:
    """Return how to ask a function with LiveCodeBench's signature."""

    def ask(case: dict[str, Any]) -> bool:
        seconds = math.ceil(case["time_limit_seconds"])
        results, _ = check({"input_output": json.dumps(list_tests(case))}, case["code"], timeout=seconds, debug=False)
        return bool(results) and all(one is True or (one == 1 and one is not False) for one in map(plain, results))

    return ask


def plain(result: Any) -> Any:
    """Return a result as LiveCodeBench reads it: numpy's booleans come out of it too."""
    return result.item() if hasattr(result, "item") else result


def function(reference: str) -> tuple[Ask, str]:
    """Your own function."""
    judge = load_function(reference)
    # `judge(code, tests, time_limit)`, or `judge(case)` with all there is to know.
    if set(inspect.signature(judge).parameters) >= {"code", "tests", "time_limit"}:
        return lambda case: judge(case["code"], list_tests(case), case["time_limit_seconds"]), reference
    return judge, reference


def load_function(reference: str) -> Callable[..., Any]:
    """Return what `package.module:attribute` or `path/file.py:function` names."""
    where, _, name = reference.rpartition(":")
    return getattr(import_file(where) if where.endswith(".py") else importlib.import_module(where), name)


def import_file(path: str) -> types.ModuleType:
    """Import a file by its path."""
    location = importlib.util.spec_from_file_location(os.path.basename(path).removesuffix(".py"), path)
    if not location or not location.loader:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(location)
    sys.modules[location.name] = module
    location.loader.exec_module(module)
    return module


def list_tests(case: dict[str, Any]) -> dict[str, Any]:
    """Return the tests as LiveCodeBench, APPS and PRIME write them."""
    inputs, outputs = ([test[side] for test in case["tests"]] for side in (0, 1))
    return {"inputs": inputs, "outputs": outputs, **({"fn_name": case["fn_name"]} if case.get("fn_name") else {})}
