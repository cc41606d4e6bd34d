"""Function-call problems: call the program's function and send its result over a typed wire.

The wire is JSON with tags for what JSON lacks. The parent rebuilds plain values only, so what a result's class
claims about itself never matters.
"""

from __future__ import annotations

import array
import builtins
import collections
import collections.abc
import contextlib
import decimal
import fractions
import importlib
import json
import os
import sys
from typing import Any

from microcoder.evaluator.sandbox import dialects
from microcoder.evaluator.sandbox.protocol import WIRE_FD
from microcoder.evaluator.sandbox.runner import Loaded, guarded, new_main_module

MODULE_NAME = "solution"
_EXACT_IN_JSON = 1 << 53
_MAX_DEPTH = 200
_RECURSION_LIMIT = 50_000
"""Such problems expect recursion as deep as their input, and their programs do not set the limit."""

_MODULE_NAMES = (
    "array bisect collections copy datetime decimal fractions functools heapq io itertools json math operator os "
    "random re statistics string sys time typing"
)
_STARRED_NAMES = (
    "typing string re datetime collections heapq bisect copy math random statistics itertools functools operator "
    "io sys json"
)
"""Modules whose public names a LeetCode program may use without importing them; later ones win."""

_SEQUENCES = (
    list,
    range,
    collections.deque,
    array.array,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)
_NOT_LISTS = (bytes, bytearray, memoryview)

Encoded = bool | int | str | list[Any] | dict[str, Any] | None


def build_prelude() -> dict[str, Any]:
    """Return the builtins of a function-call program: the usual LeetCode names behind Python's own.

    Names found here are the last to be looked up, so they hide nothing that a program defines or imports.
    """
    names: dict[str, Any] = {}
    for module in _STARRED_NAMES.split():
        loaded = importlib.import_module(module)
        public = getattr(loaded, "__all__", None) or [name for name in vars(loaded) if not name.startswith("_")]
        names.update({name: getattr(loaded, name) for name in public})
    names.update({module: importlib.import_module(module) for module in _MODULE_NAMES.split()})
    with contextlib.suppress(ImportError):
        sorted_ones = importlib.import_module("sortedcontainers")
        names.update({name: getattr(sorted_ones, name) for name in ("SortedList", "SortedDict", "SortedSet")})
    return {**names, **vars(builtins)}


def run_function(program: Loaded, fn_name: str, prelude: dict[str, Any], names: dict[str, Any] | None) -> int:
    """Define the program, call its function with stdin's arguments, write the result to the wire.

    Args:
        program: what to define.
        fn_name: what to call.
        prelude: its builtins.
        names: those of its dialect, where it has one.
    """
    arguments = _read_arguments()
    namespace = new_main_module(MODULE_NAME, prelude)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    if names is not None:
        dialects.enter(namespace, names)
    status = guarded(_call, program, namespace, fn_name, arguments)
    with contextlib.suppress(BaseException):
        sys.stderr.flush()
    return status


def _read_arguments() -> list[Any]:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    text = os.pread(0, os.fstat(0).st_size, 0).decode()
    arguments = [json.loads(line) for line in text.split("\n") if line.strip()]
    sys.set_int_max_str_digits(limit)
    os.lseek(0, 0, os.SEEK_END)
    return arguments


def _call(program: Loaded, namespace: dict[str, Any], fn_name: str, arguments: list[Any]) -> None:
    exec(program.code, namespace)
    solution = namespace.get("Solution")
    if solution is not None and hasattr(solution, fn_name):
        function = getattr(solution(), fn_name)
    elif fn_name in namespace:
        function = namespace[fn_name]
    else:
        raise NameError(f"the program defines neither Solution.{fn_name} nor a function {fn_name}")
    result = function(*arguments)
    wire = json.dumps(encode(result), separators=(",", ":")).encode()
    os.ftruncate(WIRE_FD, 0)
    os.lseek(WIRE_FD, 0, os.SEEK_SET)
    while wire:
        wire = wire[os.write(WIRE_FD, wire) :]


def encode(value: Any, depth: int = 0) -> Encoded:
    """Return a value's wire form; subclasses are flattened by the methods of their base class.

    Raises:
        TypeError: the value is of no kind that an expected result could have.
    """
    if depth > _MAX_DEPTH:
        raise TypeError("the returned value is nested too deeply to be compared")
    kind = type(value)
    if value is None or kind is bool:
        return value
    if issubclass(kind, int):
        number = int.__add__(value, 0)
        return number if abs(number) < _EXACT_IN_JSON else {"int": hex(number)}
    if issubclass(kind, float):
        return {"float": float.hex(value)}
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, tuple):
        return {"tuple": [encode(item, depth + 1) for item in tuple.__iter__(value)]}
    if issubclass(kind, dict):
        pairs = dict.items(value)
        return {"dict": [[encode(key, depth + 1), encode(item, depth + 1)] for key, item in pairs]}
    for sequence in _SEQUENCES:
        if issubclass(kind, sequence):
            items = sequence.__iter__(value)
            return [encode(item, depth + 1) for item in items]
    if issubclass(kind, (set, frozenset)):
        base = set if issubclass(kind, set) else frozenset
        return {"set": [encode(item, depth + 1) for item in base.__iter__(value)]}
    if issubclass(kind, (decimal.Decimal, fractions.Fraction)):
        return _encode_rational(value, decimal.Decimal if issubclass(kind, decimal.Decimal) else fractions.Fraction)
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return encode(numpy.ndarray.tolist(value), depth + 1)
    if numpy is not None and issubclass(kind, numpy.floating):
        return {"float": float.hex(float(value))}
    if numpy is not None and issubclass(kind, numpy.generic):
        return encode(value.item(), depth + 1)
    if issubclass(kind, collections.abc.Sequence) and not issubclass(kind, _NOT_LISTS):
        return [encode(item, depth + 1) for item in value]
    raise TypeError(f"the returned value is of type {kind.__name__}, which cannot be compared")


def _encode_rational(value: Any, base: type) -> Encoded:
    """An integer stays exact, anything else is a real number as JSON has them."""
    try:
        numerator, denominator = base.as_integer_ratio(value)
    except (OverflowError, ValueError):
        return {"float": float.hex(float(value))}
    return encode(numerator) if denominator == 1 else {"float": float.hex(numerator / denominator)}
