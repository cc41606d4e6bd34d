"""Tests of a function: arguments and expected value as JSON, in the order of its signature."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.dataset.formats.text import is_comparable, is_json_value, parse_python, read_json, shorten, write_json
from microcoder.types import TestCase

_OPEN, _CLOSE = "([{", ")]}"


class NotACall(ValueError):
    """A test cannot be written as JSON arguments and a JSON value."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters that a function takes by position."""

    names: tuple[str, ...]

    def arrange(self, positional: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Return arguments in the order of the parameters.

        Raises:
            NotACall: a name is unknown, or an argument before the last one given is missing.
        """
        left = dict(named)
        arguments = list(positional)
        for name in self.names[len(arguments) :]:
            if name not in left:
                break
            arguments.append(left.pop(name))
        if left:
            raise NotACall(f"argument {next(iter(left))!r} has no place among {', '.join(self.names) or 'none'}")
        return arguments


def read_signature(source: str, name: str) -> Signature | None:
    """Find the parameters of a function or method in code that may be cut off after its head; None where it is not."""
    found = re.search(rf"\bdef[ \t]+{re.escape(name)}[ \t]*\(", source) if name.isidentifier() else None
    if found is None:
        return None
    depth, end = 0, found.end() - 1
    for end in range(found.end() - 1, len(source)):
        depth += (source[end] in _OPEN) - (source[end] in _CLOSE)
        if depth == 0:
            break
    tree = parse_python(f"def f{source[found.end() - 1 : end + 1]}: pass")
    function: Any = tree.body[0] if tree is not None and tree.body else None
    if function is None or not hasattr(function, "args"):
        return None
    names = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
    return Signature(tuple(names[1:] if names[:1] in (["self"], ["cls"]) else names))


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
