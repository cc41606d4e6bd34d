"""Function-call problems: call the program's function, or its class, and write the result.

It is written to the wire, a file for the encoded result: JSON with tags for the types that JSON
lacks. Subclasses are read by the methods of their base class, and the judge rebuilds plain values
only, so what a result's class claims about itself never matters.
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
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from microcoder.judge.sandbox import nodes
from microcoder.judge.sandbox.runner import Loaded, enter_dialect, guarded

_EXACT_IN_JSON = 1 << 53
"""Integers below this are written as they are; readers of JSON may take larger ones for floats."""
_MAX_DEPTH = 200
"""Deepest nesting of a value that is encoded."""
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
"""Types that are encoded as lists."""
_NOT_LISTS = (bytes, bytearray, memoryview)
"""Sequences that are encoded as nothing."""

Encoded = bool | int | str | list[Any] | dict[str, Any] | None
"""A value in the wire's form."""


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
            return [encode(item, depth + 1) for item in sequence.__iter__(value)]
    # Rarer types are told apart elsewhere: few results hold one.
    return _encode_rare(value, kind, depth)


def _encode_rare(value: Any, kind: type, depth: int) -> Encoded:
    """Encode a set, a number of a library, an array, or another sequence or iterator."""
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
    if numpy is not None and issubclass(kind, (numpy.ndarray, numpy.generic)):
        return _encode_numpy(numpy, value, kind, depth)
    if issubclass(kind, collections.abc.Sequence) and not issubclass(kind, _NOT_LISTS):
        return [encode(item, depth + 1) for item in value]
    if issubclass(kind, collections.abc.Iterator):
        return _encode_iterator(value, depth)
    raise TypeError(f"the returned value is of type {kind.__name__}, which cannot be compared")


def _encode_numpy(numpy: Any, value: Any, kind: type, depth: int) -> Encoded:
    """Encode an array or a number of numpy as what it stands for."""
    if issubclass(kind, numpy.ndarray):
        return encode(numpy.ndarray.tolist(value), depth + 1)
    if issubclass(kind, numpy.complexfloating) and not value.imag:
        return encode(value.real, depth + 1)
    if issubclass(kind, numpy.floating):
        return _encode_numpy_real(value)
    return encode(value.item(), depth + 1)


def _encode_iterator(value: Any, depth: int) -> Encoded:
    items = [encode(item, depth + 1) for item in itertools.islice(value, _MOST_ITEMS + 1)]
    if len(items) > _MOST_ITEMS:
        raise TypeError(f"the returned iterator does not end within {_MOST_ITEMS} items")
    return items


_LARGEST_EXPONENT = 100_000
"""Decimal exponent up to which a decimal is made a ratio of integers.

Beyond it they would fill the memory.
"""


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


def _encode_numpy_real(value: Any) -> Encoded:
    """Encode a real number of numpy: exactly if it is of more digits than a float has."""
    with contextlib.suppress(OverflowError, ValueError):
        # They say of infinities and nan that they are no ratio.
        ratio = value.as_integer_ratio()
        nearest = _nearest(*ratio)
        if nearest.as_integer_ratio() != ratio:
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
"""Name of the module that a function's program is, as programs see it."""
_RECURSION_LIMIT = 50_000
"""Recursion limit of functions.

Their problems expect recursion as deep as the input, and programs do not set it.
"""

_MODULE_NAMES = (
    "array bisect collections copy datetime decimal fractions functools heapq io itertools json "
    "math operator os random re statistics string sys time typing"
)
"""Modules that a LeetCode program may use without importing them."""
_STARRED_NAMES = (
    "typing string re datetime collections heapq bisect copy math random statistics itertools "
    "functools operator io sys json"
)
"""Modules whose public names a LeetCode program may use without importing them; later ones win."""
_SORTED_NAMES = ("SortedList", "SortedDict", "SortedSet")
"""Names of the package sortedcontainers that such a program may use."""

_scan_json = json.JSONDecoder().scan_once  # pyrefly: ignore[missing-attribute]
_encode_json = json.JSONEncoder(separators=(",", ":")).encode

Signature = Mapping[str, Any]
"""Kinds of the parameters and of the result of a call or a method.

A kind that is left out is plain JSON.
"""


def build_prelude() -> dict[str, Any]:
    """Return the builtins of a function-call program: the usual LeetCode names behind Python's own.

    Names found here are the last to be looked up, so they hide nothing that a program defines or
    imports.
    """
    names: dict[str, Any] = {}
    for name, (module, public) in prelude_names().items():
        if module != "nodes":
            loaded = sys.modules.get(module) or importlib.import_module(module)
            names[name] = getattr(loaded, public) if public else loaded
    with contextlib.suppress(ImportError):
        package = importlib.import_module("sortedcontainers")
        for name in _SORTED_NAMES:
            names[name] = getattr(package, name)
    return {**names, **nodes.GIVEN_NAMES, **vars(builtins)}


def prelude_names() -> dict[str, tuple[str, str]]:
    """Return name -> (module, name in it) for the prelude.

    The second is empty if the name is the module itself.
    """
    names: dict[str, tuple[str, str]] = {}
    for module in _STARRED_NAMES.split():
        for name in public_names(module):
            names[name] = (module, name)
    for module in _MODULE_NAMES.split():
        names[module] = (module, "")
    for name in nodes.GIVEN_NAMES:
        names[name] = ("nodes", name)
    return names


def public_names(module: str) -> list[str]:
    """Return the names that `from module import *` binds."""
    loaded = importlib.import_module(module)
    listed = getattr(loaded, "__all__", None)
    if listed:
        return listed
    return [name for name in vars(loaded) if not name.startswith("_")]


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
    note_defined: Callable[[], None] | None = None,
) -> tuple[int, bytes]:
    """Define the program and call its function; return the exit code and the encoded result.

    Args:
        program: the program, which defines the function; None if `module` has it already.
        fn_name: the function, or the class of a design.
        call: kinds of its parameters and of its result.
        module: takes the program's names.
        names: names that its dialect adds, if it has one.
        given: the arguments, a line each; None: they are on stdin.
        note_defined: called once the program is defined, before its function is.
    """
    arguments = _read_arguments(given)
    sys.modules[MODULE_NAME] = module
    namespace = module.__dict__
    sys.setrecursionlimit(_RECURSION_LIMIT)
    if names is not None:
        enter_dialect(namespace, names)
    returned: list[bytes] = []
    status = guarded(
        _run, program, namespace, fn_name, call or {}, arguments, returned, note_defined
    )
    try:  # noqa: SIM105 - `suppress` would cost every test page faults
        sys.stderr.flush()
    except BaseException:
        pass
    return status, b"".join(returned)


def _read_arguments(given: bytes | None) -> list[Any]:
    """Return the arguments of a call: a JSON value a line."""
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
    note_defined: Callable[[], None] | None,
) -> None:
    """Define the program, call its function, and add the encoded result to `returned`."""
    if program is not None:
        exec(program[0], namespace)
    if note_defined is not None:
        note_defined()
    if call.get("style") == "design":
        result = _operate(namespace, fn_name, call, arguments)
    else:
        result = _call(namespace, fn_name, call, arguments)
    # The most frequent result, spelled without touching the encoder.
    if type(result) is int:
        returned.append(int.__repr__(result).encode())
    else:
        returned.append(_encode_json(result).encode())


def _call(
    namespace: dict[str, Any], fn_name: str, call: Signature, arguments: list[Any]
) -> Encoded:
    """Call a function, or a method of the class `Solution`; return its encoded result."""
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
    """Call a function with arguments built by kind from JSON values.

    Return the flattened, encoded result.
    """
    kinds = _kinds_of(signature, values)
    arguments = _build_arguments(kinds, values, namespace)
    result = function(*arguments)
    kind = signature.get("returns", "json")
    if "result" in signature:
        index = signature["result"]
        result = arguments[index]
        if kind == "json":
            kind = kinds[index]
    return encode(nodes.flatten(kind, result))


def _kinds_of(signature: Signature, values: Sequence[Any]) -> list[str]:
    """Return the kind of each argument; those that the signature leaves out are plain JSON."""
    return [*signature.get("parameters", ()), *["json"] * len(values)]


def _build_arguments(
    kinds: Sequence[str], values: Sequence[Any], namespace: Mapping[str, Any]
) -> list[Any]:
    """Return the arguments of a call; kinds without a value are left out."""
    pairs = zip(kinds, values, strict=False)
    return [nodes.build(kind, value, namespace) for kind, value in pairs]


def _operate(
    namespace: dict[str, Any], fn_name: str, call: Signature, arguments: list[Any]
) -> Encoded:
    """Make an object of a design class and call its methods in order.

    Each result is encoded before the next call, which may change it.

    Args:
        namespace: the program's names.
        fn_name: the class.
        call: signatures of its methods.
        arguments: the operations, and the arguments of each.
    """
    if fn_name not in namespace:
        raise NameError(f"the program defines no class {fn_name}")
    signatures = {method["name"]: method for method in call.get("methods", ())}
    operations, values = arguments
    kinds = _kinds_of(signatures.get("__init__", {}), values[0])
    instance = namespace[fn_name](*_build_arguments(kinds, values[0], namespace))
    results: list[Encoded] = [None]
    for name, own_values in zip(operations[1:], values[1:], strict=True):
        method = getattr(instance, name)
        results.append(_apply(method, signatures.get(name, {}), own_values, namespace))
    return results
