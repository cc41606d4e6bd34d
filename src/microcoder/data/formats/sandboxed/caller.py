"""Runs an answer and makes the calls that stdin lists; only the returned values are written, never a verdict.

Its last line, `main(answer)`, is added for each answer, and `PREAMBLE`, if code must run before the answer.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import types
from typing import Any

PREAMBLE = ""
MARK = "\x1eresults "
STUB_MARK = "\x1estub "
MAX_DEPTH = 100
MAX_ITEMS = 1_000_000
LAZY = (
    map,
    filter,
    zip,
    range,
    enumerate,
    reversed,
    types.GeneratorType,
    type({}.keys()),
    type({}.values()),
)


def main(answer: str) -> None:
    """Run the answer's code, make the calls, and print their values as a line of JSON."""
    asked = json.loads(sys.stdin.read())
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    names = module.__dict__
    names.update(inf=float("inf"), nan=float("nan"))
    exec(compile(PREAMBLE, "prompt.py", "exec"), names)
    stubs = dict(names)
    exec(compile(answer, "solution.py", "exec"), names)
    setup = compile_whole(asked.get("setup", ""), "setup.py", "exec")
    exec(setup, names)
    if "replay" in asked:
        results = record(asked["replay"], PREAMBLE, names[asked["entry"]])
    else:
        calls = [compile_whole(source, "test.py", "eval") for source in asked["calls"]]
        results = [encode(eval(call, names)) for call in calls]
    sys.stdout.flush()
    stub = find_stub(stubs, names, [asked["entry"]] if "entry" in asked else asked["calls"])
    line = f"\n{STUB_MARK}{stub}\n{MARK}{json.dumps(results)}\n".encode()
    while line:
        line = line[os.write(1, line) :]


def compile_whole(source: str, name: str, mode: str) -> types.CodeType:
    """Return the code of a test, also of one with integers of more digits than Python reads by default."""
    most_digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return compile(source, name, mode)
    finally:
        sys.set_int_max_str_digits(most_digits)


def find_stub(stubs: dict[str, Any], names: dict[str, Any], calls: list[str]) -> str:
    """Return the function of the prompt that was called as it stands there; empty if the answer defines what is."""
    called = [
        name
        for name, value in stubs.items()
        if isinstance(value, types.FunctionType)
        and any(re.search(rf"\b{name}\b", call) for call in calls)
    ]
    if any(names.get(name) is not stubs[name] for name in called):
        return ""
    return called[-1] if called else ""


def record(test: str, preamble: str, function: Any) -> list[Any]:
    """Run a whole test and return the encoded values of its calls up to an error of the test, which is ignored."""
    results: list[Any] = []
    raised = []

    def candidate(*arguments: Any, **options: Any) -> Any:
        state = random.getstate()
        try:
            value = function(*arguments, **options)
        except BaseException:
            raised.append(True)
            raise
        random.setstate(state)
        results.append(encode(value))
        return value

    names: dict[str, Any] = {"__name__": "test"}
    exec(compile(preamble, "prompt.py", "exec"), names)
    random.seed(0)
    exec(compile_whole(test, "test.py", "exec"), names)
    try:
        names["check"](candidate)
    except Exception:
        if raised:
            raise
    return results


def encode(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON with a tag for what JSON lacks; a subclass becomes what it is derived from."""
    if depth > MAX_DEPTH:
        raise ValueError("the returned value is nested too deeply")
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if issubclass(kind, int):
        return {"int": hex(int.__add__(value, 0))}
    if issubclass(kind, float):
        return {"float": float.hex(value)}
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, complex):
        return {"complex": [float.hex(value.real), float.hex(value.imag)]}
    if issubclass(kind, (bytes, bytearray)):
        return {"bytes": bytes(value).hex()}
    if issubclass(kind, dict):
        return {
            "dict": [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in dict.items(value)]
        }
    for name, base in (("list", list), ("tuple", tuple), ("set", set), ("frozenset", frozenset)):
        if issubclass(kind, base):
            return {name: [encode(item, depth + 1) for item in base.__iter__(value)]}
    if issubclass(kind, LAZY):
        return {
            "lazy": [
                encode(item, depth + 1) for item, _ in zip(value, range(MAX_ITEMS), strict=False)
            ]
        }
    if kind.__module__ == "numpy" and hasattr(kind, "item") and not hasattr(kind, "__len__"):
        return encode(value.item(), depth + 1)
    return {"other": kind.__name__}
