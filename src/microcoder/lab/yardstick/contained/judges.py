"""Adapters of judges that need no other project.

They are MicroCoder's own judge, a function of the user's, and a plain subprocess. They import only
the standard library and the judge. Each takes the text after the `=`. It returns a function from a
case (`cases.Case` as plain values) to True, False, or None if the judge could not tell; and a text
about the judge's version. The first paragraph of its docstring is shown on the page of an audit.
Adapters of other projects have the same form, in files such as `examples/judges/peers.py`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import json
import os
import subprocess as processes
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from microcoder.judge.fleet.http import JudgeClient
    from microcoder.judge.fleet.judge import Judge

Ask = Callable[[dict[str, Any]], "bool | None"]
"""A function from a case to whether its program is accepted; None if the judge could not tell."""

MODULE = "yardstick_judges"
"""Name under which adapters of other judges import this module."""

REFERENCE = "module:attribute or file.py:function"
"""What a judge takes that is a function of the user's."""

JUDGES = {
    "microcoder": "",
    "subprocess": "",
    "reward": REFERENCE,
    "command": "a command line",
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
"""Abilities that a case may need beyond stdin and stdout.

A judge gets only the cases that it supports.
"""

ABILITIES = {
    "microcoder": list(NEEDS),
    "http_v1": list(NEEDS),
    "subprocess": ["packages"],
}
"""Name of a judge's function -> its abilities.

Those not listed have `function` and `packages`.
"""

SERVICES = ["http_v1"]
"""Judges that run programs elsewhere, so that their process here needs no isolation."""


def make_judge(settings: dict[str, Any]) -> tuple[Ask, str]:
    """Return how to ask the settings' judge, and its version as text.

    The judge is one of `JUDGES` or a function of a file of adapters.
    """
    name = settings["judge"]
    if name in JUDGES:
        make = globals()[name.replace("-", "_")]
    else:
        make = load_function(name)
    return make(settings["path"])


def microcoder(path: str) -> tuple[Ask, str]:
    """Return MicroCoder's judge in this process, and its version with its isolation; `path` is not
    used."""
    import microcoder
    from microcoder.judge import Judge

    judge = Judge(workers=1, cache_size=0)
    version = f"microcoder {microcoder.__version__}, isolation {judge.isolation.level}"
    return _ask_ours(judge), version


def http_v1(url: str) -> tuple[Ask, str]:
    """Return the judge that `microcoder serve` offers at a URL, and the URL."""
    from microcoder.judge.fleet.http import JudgeClient

    return _ask_ours(JudgeClient(url)), url


def _ask_ours(judge: Judge | JudgeClient) -> Ask:
    from microcoder.judge.core.types import Problem, Program

    def ask(case: dict[str, Any]) -> bool | None:
        fields: dict[str, Any] = {
            "id": case["id"],
            "tests": [{"input": sent, "output": expected} for sent, expected in case["tests"]],
            "fn_name": case.get("fn_name"),
            "time_limit_seconds": case["time_limit_seconds"],
        }
        problem = Problem.model_validate({**fields, **case["problem"]})
        program = Program(case["code"], problem.language)
        (verdict,) = judge.judge([program], [problem])
        return verdict.is_accepted if verdict.is_scorable else None

    return ask


def subprocess(path: str) -> tuple[Ask, str]:
    """Return a judge that runs `python -c` per test and wants exit code 0 and the expected output,
    both stripped."""

    def is_right(case: dict[str, Any], text: str, expected: str) -> bool:
        try:
            done = processes.run(
                [sys.executable, "-c", case["code"]],
                input=text,
                capture_output=True,
                text=True,
                timeout=case["time_limit_seconds"],
                check=False,
            )
        except (processes.TimeoutExpired, ValueError, UnicodeError):
            return False
        if done.returncode != 0:
            return False
        return done.stdout.strip() == expected.strip()

    def ask(case: dict[str, Any]) -> bool:
        return all(is_right(case, text, expected) for text, expected in case["tests"])

    return ask, f"Python {sys.version.split()[0]}"


def lcb(reference: str) -> tuple[Ask, str]:
    """Return your own function with LiveCodeBench's signature as a judge, and its name."""
    return by_its_signature(load_function(reference)), reference


def by_its_signature(check: Callable[..., Any]) -> Ask:
    """Return a judge that calls `check`, which has LiveCodeBench's signature."""
    return _rewards().call_livecodebench(check)


def plain(result: object) -> object:
    """Return a result as Python's own value: LiveCodeBench's code also returns numpy's booleans."""
    return result.item() if hasattr(result, "item") else result


def reward(reference: str) -> tuple[Ask, str]:
    """Return your own reward function, called by the signature of TRL, verl or verifiers, or as a
    plain function of a program and its tests.

    The layout of completions and tests is tried out: see `rewards.py`.
    """
    fitted = _rewards().fit(load_function(reference))
    return fitted, f"{reference}, called {fitted.about}"


def command(line: str) -> tuple[Ask, str]:
    """Return a command that reads a case a line and writes whether its program is right."""
    process = processes.Popen(
        line, shell=True, text=True, stdin=processes.PIPE, stdout=processes.PIPE
    )

    def ask(case: str) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        # The pipe is broken where the command has ended, as its empty answer then says.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{case}\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        try:
            json.loads(answer)
        except ValueError:
            if is_begun:
                # Out of step: later answers would be those of earlier cases. Another is started.
                os._exit(1)
            if answer:
                raise OSError(
                    f"the command wrote {answer[:60]!r}, no line of JSON: {line}"
                ) from None
            raise OSError(f"the command ended with {process.wait()}: {line}") from None
        return answer

    is_begun = False
    fitted = _rewards().fit_command(ask)
    is_begun = True
    return fitted, line


@functools.cache
def _rewards() -> types.ModuleType:
    """Return the module `rewards`, which stands beside this one and is imported by its path."""
    folder = os.path.dirname(os.path.abspath(__file__))
    return import_file(os.path.join(folder, "rewards.py"), "yardstick_rewards")


def function(reference: str) -> tuple[Ask, str]:
    """Return your own function as a judge.

    It is called with (code, tests, time_limit) if it has these parameters, else with the whole
    case.
    """
    judge = load_function(reference)
    parameters = inspect.signature(judge).parameters
    if not set(parameters) >= {"code", "tests", "time_limit"}:
        return judge, reference

    def ask(case: dict[str, Any]) -> bool | None:
        return judge(case["code"], list_tests(case), case["time_limit_seconds"])

    return ask, reference


def load_function(reference: str) -> Callable[..., Any]:
    """Return the object that `package.module:attribute` or `path/file.py:function` names."""
    source, _, name = reference.rpartition(":")
    if source.endswith(".py"):
        module = import_file(source)
    else:
        module = importlib.import_module(source)
    return getattr(module, name)


def import_file(path: str, name: str = "") -> types.ModuleType:
    """Import a Python file by its path and return the module.

    Args:
        path: of the file.
        name: of the module; empty: the file's own name.

    Raises:
        ImportError: it is not a Python file.
    """
    module_name = name or os.path.basename(path).removesuffix(".py")
    spec = importlib.util.spec_from_file_location(module_name, path)
    if not spec or not spec.loader:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def list_tests(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case's tests in the layout of LiveCodeBench, APPS and PRIME.

    That is a dictionary of inputs, outputs and, for a function, fn_name.
    """
    return _rewards().lay_out_dict(case)
