"""Tests of a function: arguments and expected value as JSON, in the order of its signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from microcoder.formats.text import is_comparable, is_json_value, read_json, shorten, write_json
from microcoder.signatures import find_head
from microcoder.types import TestCase


class NotACall(ValueError):
    """A test cannot be written as JSON arguments and a JSON value."""


def arrange(parameters: Sequence[str], positional: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Return arguments in the order of a function's parameters.

    Raises:
        NotACall: a name is unknown, or an argument before the last one given is missing.
    """
    left = dict(named)
    arguments = list(positional)
    for name in parameters[len(arguments) :]:
        if name not in left:
            break
        arguments.append(left.pop(name))
    if left:
        raise NotACall(f"argument {next(iter(left))!r} has no place among {', '.join(parameters) or 'none'}")
    return arguments


def read_parameters(source: str, name: str) -> tuple[str, ...]:
    """Return what a function or method takes by position, from code that may be cut off after its head."""
    function = find_head(source, name)
    if function is None:
        return ()
    names = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
    return tuple(names[1:] if names[:1] in (["self"], ["cls"]) else names)


def write_call(arguments: Sequence[Any], expected: Any) -> TestCase:
    """Return the test of a call.

    Raises:
        NotACall: JSON would change an argument (a tuple, a set, keys that are no text) or cannot hold a value.
    """
    for number, argument in enumerate(arguments, 1):
        if not is_json_value(argument):
            raise NotACall(f"argument {number} is no JSON value: {shorten(argument, 40)}")
    if not is_comparable(expected):
        raise NotACall(f"the expected value is no JSON value: {shorten(expected, 40)}")
    try:
        return TestCase(input="\n".join(map(write_json, arguments)), output=write_json(expected))
    except ValueError as error:
        raise NotACall(str(error)) from None


def check_call(text: str, expected: str) -> TestCase:
    """Return a test that is JSON already: one argument a line, and a value.

    Raises:
        NotACall: it is not.
    """
    try:
        for line in text.split("\n"):
            if line.strip():
                read_json(line)
        read_json(expected)
    except ValueError as error:
        raise NotACall(f"not one JSON argument a line and a JSON value ({error}): {shorten(text, 40)}") from None
    return TestCase(input=text, output=expected)
