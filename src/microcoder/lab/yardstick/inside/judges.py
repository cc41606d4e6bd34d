"""The judges that need no other project: ours, your own function, and two that everybody writes.

Standard library and the judge itself, no more. Each returns a function from a case (`cases.Case` as plain values) to
True, False, or None if the judge says that it could not tell; and a text about the judge's version. Those of other
projects are files beside the package, such as `examples/judges/peers.py`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import io
import json
import math
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

Ask = Callable[[dict[str, Any]], "bool | None"]
_TAKES_A_CASE = {"code", "tests", "time_limit"}


def make_judge(settings: dict[str, Any]) -> tuple[Ask, str]:
    """Return the judge that the settings name: one of `JUDGES`, or a function of a file of adapters."""
    name, path = settings["judge"], settings["path"]
    return (load_function(name) if name.partition(":")[0].endswith(".py") else JUDGES[name])(path)


def make_ours(path: str) -> tuple[Ask, str]:
    """Ours, in this process."""
    import microcoder
    from microcoder.judge import Judge

    judge = Judge(workers=1, cache_size=0)
    return _ask_ours(judge), f"microcoder {microcoder.__version__}, isolation {judge.isolation.level}"


def make_http_v1(url: str) -> tuple[Ask, str]:
    """Ours, over HTTP."""
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


def make_subprocess(path: str) -> tuple[Ask, str]:
    """`python -c` for each test, exit code 0 and equal stripped output: what is written most often."""

    def ask(case: dict[str, Any]) -> bool:
        return all(_run_plainly(case, given, expected) for given, expected in case["tests"])

    return ask, f"Python {sys.version.split()[0]}"


def _run_plainly(case: dict[str, Any], given: str, expected: str) -> bool:
    try:
        done = subprocess.run(
            [sys.executable, "-c", case["code"]], input=given, capture_output=True, text=True,
            timeout=case["time_limit_seconds"], check=False,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, ValueError, UnicodeError):
        return False
    return done.returncode == 0 and done.stdout.strip() == expected.strip()


def make_in_process(path: str) -> tuple[Ask, str]:
    """`exec` with stdin and stdout replaced and an alarm, in the process of the judge."""

    def ask(case: dict[str, Any]) -> bool:
        def stop(*_: object) -> None:
            raise TimeoutError

        signal.signal(signal.SIGALRM, stop)
        try:
            for given, expected in case["tests"]:
                signal.alarm(max(1, math.ceil(case["time_limit_seconds"])))
                if not _execute(case, given, expected):
                    return False
        except (Exception, SystemExit):
            return False
        finally:
            signal.alarm(0)
        return True

    return ask, f"Python {sys.version.split()[0]}"


def _execute(case: dict[str, Any], given: str, expected: str) -> bool:
    names: dict[str, Any] = {"__name__": "__main__"}
    if case.get("fn_name"):
        exec(case["code"], names)
        owner = names["Solution"]() if "Solution" in names else None
        function = getattr(owner, case["fn_name"]) if owner is not None else names[case["fn_name"]]
        return function(*map(json.loads, given.split("\n"))) == json.loads(expected)
    output, stdin = io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(given)
    try:
        with contextlib.redirect_stdout(output):
            exec(case["code"], names)
    finally:
        sys.stdin = stdin
    return output.getvalue().strip() == expected.strip()


def make_lcb_function(reference: str) -> tuple[Ask, str]:
    """Any function with LiveCodeBench's signature."""
    return _by_its_signature(load_function(reference)), reference


def _by_its_signature(check: Callable[..., Any]) -> Ask:
    def ask(case: dict[str, Any]) -> bool:
        seconds = math.ceil(case["time_limit_seconds"])
        results, _ = check({"input_output": json.dumps(_lists(case))}, case["code"], timeout=seconds, debug=False)
        return bool(results) and all(one is True or (one == 1 and one is not False) for one in map(_plain, results))

    return ask


def _plain(result: Any) -> Any:
    """Return a result as LiveCodeBench reads it: numpy's booleans come out of it too."""
    return result.item() if hasattr(result, "item") else result


def make_function(reference: str) -> tuple[Ask, str]:
    """The user's own: `judge(code, tests, time_limit)`, or `judge(case)` with all there is to know."""
    function = load_function(reference)
    if set(inspect.signature(function).parameters) >= _TAKES_A_CASE:
        return lambda case: function(case["code"], _lists(case), case["time_limit_seconds"]), reference
    return function, reference


def load_function(reference: str) -> Callable[..., Any]:
    """Return what `package.module:attribute` or `path/file.py:function` names."""
    where, _, name = reference.rpartition(":")
    module = _import_file(where) if where.endswith(".py") else importlib.import_module(where)
    return getattr(module, name)


def _import_file(path: str) -> types.ModuleType:
    location = importlib.util.spec_from_file_location(os.path.basename(path).removesuffix(".py"), path)
    if not location or not location.loader:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(location)
    sys.modules[location.name] = module
    location.loader.exec_module(module)
    return module


def _lists(case: dict[str, Any]) -> dict[str, Any]:
    """Return the tests as LiveCodeBench, APPS and PRIME write them."""
    tests: dict[str, Any] = {
        "inputs": [given for given, _ in case["tests"]],
        "outputs": [end for _, end in case["tests"]],
    }
    return {**tests, "fn_name": case["fn_name"]} if case.get("fn_name") else tests


JUDGES: dict[str, Callable[[str], tuple[Ask, str]]] = {
    "microcoder": make_ours,
    "subprocess": make_subprocess,
    "in-process": make_in_process,
    "http-v1": make_http_v1,
    "function": make_function,
    "lcb": make_lcb_function,
}
