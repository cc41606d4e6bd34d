"""Function-call problems: call the program's function, or its class, and write the result to the wire.

The wire is a file for the encoded result: JSON with tags for the types that JSON lacks. Subclasses are read by the
methods of their base class, and the judge rebuilds plain values only, so what a result's class claims about itself
never matters.
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
import itertools
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from microcoder.judge.sandbox import nodes
from microcoder.judge.sandbox.runner import Loaded, enter_dialect, guarded

_EXACT_IN_JSON = 1 << 53
_MAX_DEPTH = 200
_MOST_ITEMS = 1 << 22
"""Most items taken from an iterator; a list may be longer."""

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


def encode(value: Any, depth: int = 0) -> Encoded:
    """Return a value in the wire's form, JSON with tags; TypeError if it cannot be compared."""
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
    if issubclass(kind, decimal.Decimal):
        return _encode_decimal(value)
    if issubclass(kind, fractions.Fraction):
        return _encode_ratio(*fractions.Fraction.as_integer_ratio(value))
    if issubclass(kind, complex) and not complex.imag.__get__(value):
        return encode(complex.real.__get__(value), depth + 1)
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return encode(numpy.ndarray.tolist(value), depth + 1)
    if numpy is not None and issubclass(kind, numpy.complexfloating) and not value.imag:
        return encode(value.real, depth + 1)
    if numpy is not None and issubclass(kind, numpy.floating):
        return _encode_numpy(value)
    if numpy is not None and issubclass(kind, numpy.generic):
        return encode(value.item(), depth + 1)
    if issubclass(kind, collections.abc.Sequence) and not issubclass(kind, _NOT_LISTS):
        return [encode(item, depth + 1) for item in value]
    if issubclass(kind, collections.abc.Iterator):
        items = [encode(item, depth + 1) for item in itertools.islice(value, _MOST_ITEMS + 1)]
        if len(items) > _MOST_ITEMS:
            raise TypeError(f"the returned iterator does not end within {_MOST_ITEMS} items")
        return items
    raise TypeError(f"the returned value is of type {kind.__name__}, which cannot be compared")


_LARGEST_EXPONENT = 100_000
"""Decimal exponent up to which a decimal is made a ratio of integers: beyond it they would fill the memory."""


def _encode_decimal(value: Any) -> Encoded:
    decimal_type = decimal.Decimal
    sign = "-" if decimal_type.is_signed(value) else ""
    if decimal_type.is_nan(value):
        return {"float": "nan"}
    if decimal_type.is_infinite(value):
        return {"float": f"{sign}inf"}
    exponent = 0 if decimal_type.is_zero(value) else decimal_type.adjusted(value)
    if exponent > _LARGEST_EXPONENT:
        return {"fraction": f"{sign}inf"}
    if exponent < -_LARGEST_EXPONENT:
        return {"fraction": f"{sign}0x0p+0"}
    return _encode_ratio(*decimal_type.as_integer_ratio(value))


def _encode_numpy(value: Any) -> Encoded:
    """Encode a real number of numpy: exactly if it is of more digits than a float has."""
    with contextlib.suppress(OverflowError, ValueError):
        # They say of infinities and nan that they are no ratio.
        ratio = value.as_integer_ratio()
        if (nearest := _nearest(*ratio)).as_integer_ratio() != ratio:
            return _encode_ratio(*ratio)
        return {"float": nearest.hex()}
    return {"float": float.hex(float(value))}


def _encode_ratio(numerator: int, denominator: int) -> Encoded:
    """Encode an integral value as that integer, any other as a float.

    One whose nearest float is an integer, or infinite, gets a tag of its own: it equals no integer.
    """
    if denominator == 1:
        return encode(numerator)
    nearest = _nearest(numerator, denominator)
    is_near_an_integer = math.isinf(nearest) or nearest.is_integer()
    return {"fraction" if is_near_an_integer else "float": nearest.hex()}


def _nearest(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return -math.inf if numerator < 0 else math.inf


MODULE_NAME = "solution"
_RECURSION_LIMIT = 50_000
"""Recursion limit of functions: their problems expect recursion as deep as the input, and programs do not set it."""

_MODULE_NAMES = (
    "array bisect collections copy datetime decimal fractions functools heapq io itertools json math operator os "
    "random re statistics string sys time typing"
)
_STARRED_NAMES = (
    "typing string re datetime collections heapq bisect copy math random statistics itertools functools operator "
    "io sys json"
)
"""Modules whose public names a LeetCode program may use without importing them; later ones win."""

_scan_json = json.JSONDecoder().scan_once  # pyrefly: ignore[missing-attribute]
_encode_json = json.JSONEncoder(separators=(",", ":")).encode

Signature = Mapping[str, Any]
"""Kinds of the parameters and of the result of a call or a method; a kind that is left out is plain JSON."""


def build_prelude() -> dict[str, Any]:
    """Return the builtins of a function-call program: the usual LeetCode names behind Python's own.

    Names found here are the last to be looked up, so they hide nothing that a program defines or imports.
    """
    names: dict[str, Any] = {}
    for name, (module, public) in prelude_names().items():
        if module != "nodes":
            loaded = sys.modules.get(module) or importlib.import_module(module)
            names[name] = getattr(loaded, public) if public else loaded
    with contextlib.suppress(ImportError):
        sorted_ones = importlib.import_module("sortedcontainers")
        names.update(
            {name: getattr(sorted_ones, name) for name in ("SortedList", "SortedDict", "SortedSet")}
        )
    return {**names, **nodes.GIVEN_NAMES, **vars(builtins)}


def prelude_names() -> dict[str, tuple[str, str]]:
    """Return name -> (module, name in it) for the prelude; the second is empty if the name is the module itself."""
    names: dict[str, tuple[str, str]] = {}
    for module in _STARRED_NAMES.split():
        names.update({name: (module, name) for name in public_names(module)})
    modules = {module: (module, "") for module in _MODULE_NAMES.split()}
    return {**names, **modules, **{name: ("nodes", name) for name in nodes.GIVEN_NAMES}}


def public_names(module: str) -> list[str]:
    """Return the names that `from module import *` binds."""
    loaded = importlib.import_module(module)
    return getattr(loaded, "__all__", None) or [
        name for name in vars(loaded) if not name.startswith("_")
    ]


def send_result(wire: bytes, descriptor: int) -> None:
    """Write an encoded result to the wire's descriptor, replacing its content."""
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    while wire:
        wire = wire[os.write(descriptor, wire) :]


def run_function(
    program: Loaded | None,
    fn_name: str,
    call: Signature | None,
    module: ModuleType,
    names: dict[str, Any] | None,
    given: bytes | None = None,
) -> tuple[int, bytes]:
    """Define the program and call its function; return the exit code and the encoded result.

    Args:
        program: the program, which defines the function; None if `module` has it already.
        fn_name: the function, or the class of a design.
        call: kinds of its parameters and of its result.
        module: takes the program's names.
        names: names that its dialect adds, if it has one.
        given: the arguments, a line each; None: they are on stdin.
    """
    arguments = _read_arguments(given)
    sys.modules[MODULE_NAME] = module
    namespace = module.__dict__
    sys.setrecursionlimit(_RECURSION_LIMIT)
    if names is not None:
        enter_dialect(namespace, names)
    returned: list[bytes] = []
    status = guarded(_run, program, namespace, fn_name, call or {}, arguments, returned)
    try:  # noqa: SIM105 - `suppress` would cost every test page faults
        sys.stderr.flush()
    except BaseException:
        pass
    return status, b"".join(returned)


def _read_arguments(given: bytes | None) -> list[Any]:
    if given is None:
        given = os.pread(0, os.lseek(0, 0, os.SEEK_END), 0)  # the program finds them read
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    text = given.decode()
    arguments = []
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped:
            # The inside of `json.loads`, which touches more than most programs do.
            value, end = _scan_json(stripped, 0)
            arguments.append(value if end == len(stripped) else json.loads(stripped))
    sys.set_int_max_str_digits(limit)
    return arguments


def _run(
    program: Loaded | None,
    namespace: dict[str, Any],
    fn_name: str,
    call: Signature,
    arguments: list[Any],
    returned: list[bytes],
) -> None:
    if program is not None:
        exec(program[0], namespace)
    result = (_operate if call.get("style") == "design" else _call)(
        namespace, fn_name, call, arguments
    )
    returned.append(
        int.__repr__(result).encode() if type(result) is int else _encode_json(result).encode()
    )


def _call(
    namespace: dict[str, Any], fn_name: str, call: Signature, arguments: list[Any]
) -> Encoded:
    solution = namespace.get("Solution")
    if solution is not None and hasattr(solution, fn_name):
        function = getattr(solution(), fn_name)
    elif fn_name in namespace:
        function = namespace[fn_name]
    else:
        raise NameError(f"the program defines neither Solution.{fn_name} nor a function {fn_name}")
    if not call:
        return encode(function(*arguments))
    return _apply(function, call, arguments, namespace)


def _apply(
    function: Any, signature: Signature, values: Sequence[Any], namespace: Mapping[str, Any]
) -> Encoded:
    """Call a function with arguments built by kind from JSON values; return the flattened, encoded result."""
    kinds = [*signature.get("parameters", ()), *["json"] * len(values)]
    arguments = [
        nodes.build(kind, value, namespace) for kind, value in zip(kinds, values, strict=False)
    ]
    result = function(*arguments)
    kind = signature.get("returns", "json")
    if "result" in signature:
        place = signature["result"]
        result, kind = arguments[place], kind if kind != "json" else kinds[place]
    return encode(nodes.flatten(kind, result))


def _operate(namespace: dict[str, Any], fn_name: str, call: Signature, given: list[Any]) -> Encoded:
    """Make an object of a design class, call its methods in order, encode each result before the next call."""
    if fn_name not in namespace:
        raise NameError(f"the program defines no class {fn_name}")
    signatures = {method["name"]: method for method in call.get("methods", ())}
    operations, values = given
    kinds = [*signatures.get("__init__", {}).get("parameters", ()), *["json"] * len(values[0])]
    arguments = [
        nodes.build(kind, value, namespace) for kind, value in zip(kinds, values[0], strict=False)
    ]
    made = namespace[fn_name](*arguments)
    results: list[Encoded] = [None]
    for name, inner in zip(operations[1:], values[1:], strict=True):
        results.append(_apply(getattr(made, name), signatures.get(name, {}), inner, namespace))
    return results
