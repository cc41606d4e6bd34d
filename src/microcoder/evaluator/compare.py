"""Compare an output with the expected one: pure functions, no guessing.

| checker   | accepts                                                                                       |
|-----------|-----------------------------------------------------------------------------------------------|
| `exact`   | the same text, one newline at the end more or less                                             |
| `tokens`  | the same tokens between any white space                                                        |
| `float`   | token by token; two numbers within the tolerance (absolute or relative), other tokens equal    |
| `default` | the first of the five below that accepts; the verdict names it                                 |

| method    | what may differ from the expected output                                                       |
|-----------|-----------------------------------------------------------------------------------------------|
| `exact`   | one newline at the end                                                                         |
| `lines`   | a byte order mark, CRLF, white space at line ends, blank lines at the end                      |
| `tokens`  | any white space between tokens                                                                 |
| `numeric` | an expected real number (`0.5`, `1e3`) within 1e-6, absolute or relative, `nan` and `inf` in any |
|           | case; an expected integer may carry a fraction of zeros (`3.0` for `3`) and is exact otherwise |
| `literal` | on lines that are a list, tuple, dict or boolean: spacing, quotes, `True`/`true`, `None`/`null` |

Order and number of tokens always matter; letter case of words does (`YES` is not `Yes`); sets are not compared as
sets; extra output is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

from microcoder.evaluator.literals import same_literal
from microcoder.evaluator.values import find_difference, numbers_agree
from microcoder.types import Checker

_DEFAULT = Checker()
DEFAULT_TOLERANCE = 1e-6
_MAX_DETAIL = 200
_MAX_QUOTED = 60

_INTEGER = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_ZERO_FRACTION = re.compile(r"\.0+$")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether an output is right, and by which method."""

    accepted: bool
    method: str
    """The method that accepted, empty when none did."""
    detail: str
    """The first difference, for a human; may show the expected output, so it must not reach the program."""


def compare_output(output: str, expected: str, checker: Checker) -> Comparison:
    """Judge a program's stdout."""
    match checker.type:
        case "exact":
            is_same = _without_last_newline(output) == _without_last_newline(expected)
            return _conclude("exact" if is_same else "", output, expected, str.__eq__)
        case "tokens":
            return _conclude("tokens" if output.split() == expected.split() else "", output, expected, str.__eq__)
        case "float":
            tolerance = checker.tolerance or DEFAULT_TOLERANCE

            def agree(token: str, wanted: str) -> bool:
                return _float_tokens_agree(token, wanted, tolerance)

            method = "float" if _tokens_agree(output.split(), expected.split(), agree) else ""
            return _conclude(method, output, expected, agree)
    return _compare_by_default(output, expected)


def compare_value(value: object, expected: object, checker: Checker = _DEFAULT) -> Comparison:
    """Judge a returned value (see `values.find_difference` for the rules)."""
    difference = find_difference(value, expected)
    return Comparison(not difference, "" if difference else "value", _one_line(difference))


def _compare_by_default(output: str, expected: str) -> Comparison:
    if _without_last_newline(output) == _without_last_newline(expected):
        return Comparison(True, "exact", "")
    lines, wanted_lines = _normal_lines(output), _normal_lines(expected)
    if lines == wanted_lines:
        return Comparison(True, "lines", "")
    tokens = [token for line in lines for token in line.split()]
    wanted = [token for line in wanted_lines for token in line.split()]
    if tokens == wanted:
        return Comparison(True, "tokens", "")
    if _tokens_agree(tokens, wanted, _default_tokens_agree):
        return Comparison(True, "numeric", "")
    if _lines_are_same_literals(lines, wanted_lines):
        return Comparison(True, "literal", "")
    return _conclude("", output, expected, _default_tokens_agree)


def _without_last_newline(text: str) -> str:
    return text.removesuffix("\n")


def _normal_lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _tokens_agree(tokens: list[str], wanted: list[str], agree: Callable[[str, str], bool]) -> bool:
    return len(tokens) == len(wanted) and all(a == b or agree(a, b) for a, b in zip(tokens, wanted, strict=True))


def _default_tokens_agree(token: str, wanted: str) -> bool:
    if token == wanted:
        return True
    if _INTEGER.fullmatch(wanted):
        return bool(_ZERO_FRACTION.search(token)) and _ZERO_FRACTION.sub("", token) == wanted
    if _REAL.fullmatch(wanted):
        return _is_number(token) and _within(token, wanted, DEFAULT_TOLERANCE)
    return bool(_NOT_FINITE.fullmatch(wanted)) and _same_not_finite(token, wanted)


def _float_tokens_agree(token: str, wanted: str, tolerance: float) -> bool:
    if token == wanted:
        return True
    if _is_number(token) and _is_number(wanted):
        return _within(token, wanted, tolerance)
    return bool(_NOT_FINITE.fullmatch(wanted)) and _same_not_finite(token, wanted)


def _is_number(token: str) -> bool:
    return bool(_INTEGER.fullmatch(token) or _REAL.fullmatch(token))


def _within(token: str, wanted: str, tolerance: float) -> bool:
    value, expected = float(token), float(wanted)
    # A number too large for a float is only equal to itself, and equal texts never come here.
    return math.isfinite(value) and math.isfinite(expected) and numbers_agree(value, expected, tolerance)


def _same_not_finite(token: str, wanted: str) -> bool:
    if not _NOT_FINITE.fullmatch(token):
        return False
    value, expected = float(token), float(wanted)
    return value == expected or (math.isnan(value) and math.isnan(expected))


def _lines_are_same_literals(lines: list[str], wanted: list[str]) -> bool:
    lines, wanted = [line for line in lines if line], [line for line in wanted if line]
    return len(lines) == len(wanted) and all(
        line.split() == other.split() or same_literal(line, other, _default_tokens_agree)
        for line, other in zip(lines, wanted, strict=True)
    )


def _conclude(method: str, output: str, expected: str, agree: Callable[[str, str], bool]) -> Comparison:
    if method:
        return Comparison(True, method, "")
    return Comparison(False, "", _one_line(_first_difference(output, expected, agree)))


def _first_difference(output: str, expected: str, agree: Callable[[str, str], bool]) -> str:
    if not output.strip() and expected.strip():
        return f"no output, expected {_quote(expected.strip())}"
    lines, wanted_lines = _normal_lines(output), _normal_lines(expected)
    for number, (line, wanted) in enumerate(zip_longest(lines, wanted_lines), 1):
        if line is None:
            return f"line {number}: expected {_quote(wanted)}, the output ends ({len(lines)} lines)"
        if wanted is None:
            return f"line {number}: expected the end ({len(wanted_lines)} lines), got {_quote(line)}"
        if line != wanted and not _tokens_agree(line.split(), wanted.split(), agree):
            return f"line {number}: {_difference_in_line(line, wanted, agree)}"
    return "only white space differs"


def _difference_in_line(line: str, wanted: str, agree: Callable[[str, str], bool]) -> str:
    tokens, wanted_tokens = line.split(), wanted.split()
    for number, (token, other) in enumerate(zip(tokens, wanted_tokens, strict=False), 1):
        if token != other and not agree(token, other):
            where = f"token {number}: " if len(wanted_tokens) > 1 else ""
            return f"{where}expected {_quote(other)}, got {_quote(token)}"
    return f"expected {len(wanted_tokens)} tokens, got {len(tokens)}"


def _quote(text: str) -> str:
    shown = text if len(text) <= _MAX_QUOTED else text[: _MAX_QUOTED - 3] + "..."
    return '"' + shown.encode("unicode_escape", "backslashreplace").decode() + '"'


def _one_line(text: str) -> str:
    line = " ".join(text.split()).encode("utf-8", "backslashreplace").decode()
    return line if len(line) <= _MAX_DETAIL else line[: _MAX_DETAIL - 3] + "..."
