"""Compare an output with the expected one: pure functions, no guessing. docs/comparison.md has the whole table.

| checker     | accepts                                                                                        |
|-------------|------------------------------------------------------------------------------------------------|
| `exact`     | the same text, one newline at the end more or less                                              |
| `tokens`    | the same tokens between any white space                                                         |
| `float`     | token by token; two numbers within the tolerance, other tokens equal                            |
| `unordered` | the same lines, or tokens, in any order, each as often as expected                              |
| `default`   | the first of the seven below that accepts; the verdict names it                                 |

| method        | what may differ from the expected output                                                      |
|---------------|-----------------------------------------------------------------------------------------------|
| `exact`       | one newline at the end                                                                        |
| `lines`       | a byte order mark, CRLF, white space at line ends, blank lines before and after               |
| `tokens`      | any white space between tokens                                                                |
| `numeric`     | an expected real number (`0.5`, `1e3`) within 1e-6, absolute or relative, `nan` and `inf` in any |
|               | spelling; an expected integer may carry a fraction of zeros (`3.0`) and is exact otherwise    |
| `words`       | the letter case of `yes`, `no`, `true`, `false`, on lines of such words and numbers alone     |
| `value`       | how one list, tuple, set, dict or string is written: spacing, line breaks, quotes, `None`/`null` |
| `value_lines` | the same, line by line                                                                        |

Order and number of tokens always matter; a set is a set only where the expected output is written as one; extra
output is wrong.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

from microcoder.evaluator.literals import same_literal
from microcoder.evaluator.values import find_difference, numbers_agree, rules_for, tolerances_of
from microcoder.types import Checker

_DEFAULT = Checker()
DEFAULT_TOLERANCE = 1e-6
_MAX_DETAIL = 200
_MAX_QUOTED = 60
_ALWAYS_READ, _MOST_TIMES_LONGER = 1 << 20, 64
"""Characters: an output beyond both is wrong unread. Reading 16 MiB of it takes the judge seconds and a gigabyte."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_ZERO_FRACTION = re.compile(r"(?<=[0-9])\.0*$")
_WORDS = frozenset(("yes", "no", "true", "false"))
_WHITE_SPACE = " \t\n\r\v\f"
_TOKEN = re.compile(rf"[^{_WHITE_SPACE}]+")

Agree = Callable[[str, str], bool]
"""Whether a token agrees with the expected one, where the two differ as text."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether an output is right, and by which method."""

    accepted: bool
    method: str
    """The method that accepted, empty when none did."""
    detail: str
    """The first difference, for a human; may show the expected output, so it must not reach the program."""


def compare_output(output: str, expected: str, checker: Checker = _DEFAULT) -> Comparison:
    """Judge a program's stdout.

    Raises:
        ValueError: the checker is a program, which only a sandbox can run.
    """
    if len(output) > _ALWAYS_READ + _MOST_TIMES_LONGER * len(expected):
        return Comparison(False, "", f"the output is {len(output)} characters long, the expected one {len(expected)}")
    match checker.type:
        case "default":
            return _compare_by_default(output, expected)
        case "exact":
            is_same = _without_last_newline(output) == _without_last_newline(expected)
            return _conclude("exact" if is_same else "", output, expected, _never)
        case "tokens":
            agree = _never if checker.case_sensitive else _same_word
            return _compare_tokens("tokens", output, expected, agree)
        case "float":
            return _compare_tokens("float", output, expected, _float_agreement(checker))
        case "unordered":
            return _compare_unordered(output, expected, checker)
    raise ValueError(f'checker type "{checker.type}" is run in the sandbox, see evaluator/checkers.py')


def compare_value(value: object, expected: object, checker: Checker = _DEFAULT) -> Comparison:
    """Judge a returned value (see `values.find_difference` for the rules)."""
    difference = find_difference(value, expected, rules_for(checker))
    return Comparison(not difference, "" if difference else "value", _one_line(difference))


def _compare_by_default(output: str, expected: str) -> Comparison:
    if _without_last_newline(output) == _without_last_newline(expected):
        return Comparison(True, "exact", "")
    lines, wanted_lines = _normal_lines(output), _normal_lines(expected)
    if lines == wanted_lines:
        return Comparison(True, "lines", "")
    tokens = [token for line in lines for token in _split(line)]
    wanted = [token for line in wanted_lines for token in _split(line)]
    if tokens == wanted:
        return Comparison(True, "tokens", "")
    if _tokens_agree(tokens, wanted, _numbers_agree):
        return Comparison(True, "numeric", "")
    if _lines_agree(lines, wanted_lines, _words_on_a_line_agree):
        return Comparison(True, "words", "")
    if same_literal("\n".join(lines), "\n".join(wanted_lines), _numbers_agree):
        return Comparison(True, "value", "")
    if _lines_agree(lines, wanted_lines, _values_on_a_line_agree):
        return Comparison(True, "value_lines", "")
    return _conclude("", output, expected, _numbers_or_words_agree)


def _compare_tokens(method: str, output: str, expected: str, agree: Agree) -> Comparison:
    is_right = _tokens_agree(_split(_plain(output)), _split(_plain(expected)), agree)
    return _conclude(method if is_right else "", output, expected, agree)


def _compare_unordered(output: str, expected: str, checker: Checker) -> Comparison:
    def units(text: str) -> Counter[tuple[str, ...]]:
        lines = [_split(line) for line in _normal_lines(text if checker.case_sensitive else text.casefold())]
        if checker.by == "tokens":
            return Counter((_canonical(token),) for line in lines for token in line)
        return Counter(tuple(_canonical(token) for token in line) for line in lines if line)

    found, wanted = units(output), units(expected)
    if found == wanted:
        return Comparison(True, "unordered", "")
    missing, extra = wanted - found, found - wanted
    parts = [
        f"{word} {_quote(' '.join(next(iter(rest))))}"
        for word, rest in (("missing", missing), ("unexpected", extra))
        if rest
    ]
    return Comparison(False, "", _one_line(f"in any order: {', '.join(parts)}"))


def _without_last_newline(text: str) -> str:
    return text.removesuffix("\n")


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff")


def _split(text: str) -> list[str]:
    # str.split also splits at white space beyond ASCII, which is part of a token.
    return text.split() if text.isascii() else _TOKEN.findall(text)


def _normal_lines(text: str) -> list[str]:
    """Return lines without white space at their ends, and without blank ones before and after."""
    plain = _plain(text)
    if "\r" in plain:
        plain = plain.replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip(_WHITE_SPACE) for line in plain.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    first = next((number for number, line in enumerate(lines) if line), 0)
    return lines[first:] if first else lines


def _tokens_agree(tokens: list[str], wanted: list[str], agree: Agree) -> bool:
    return len(tokens) == len(wanted) and all(a == b or agree(a, b) for a, b in zip(tokens, wanted, strict=True))


def _never(token: str, wanted: str) -> bool:
    return False


def _same_word(token: str, wanted: str) -> bool:
    return token.casefold() == wanted.casefold()


def _numbers_agree(token: str, wanted: str) -> bool:
    """The numeric rule of the chain: integers exactly, real numbers within the tolerance."""
    if _INTEGER.fullmatch(wanted):
        whole = _ZERO_FRACTION.sub("", token)
        return whole == wanted or (whole in ("0", "-0") and wanted in ("0", "-0"))
    if _REAL.fullmatch(wanted):
        return _is_number(token) and _within(token, wanted, DEFAULT_TOLERANCE, DEFAULT_TOLERANCE)
    return bool(_NOT_FINITE.fullmatch(wanted)) and _same_not_finite(token, wanted)


def _numbers_or_words_agree(token: str, wanted: str) -> bool:
    if wanted.lower() in _WORDS:
        return token.lower() == wanted.lower()
    return _numbers_agree(token, wanted)


def _float_agreement(checker: Checker) -> Agree:
    absolute, relative = tolerances_of(checker, DEFAULT_TOLERANCE)

    def agree(token: str, wanted: str) -> bool:
        if _is_number(token) and _is_number(wanted):
            return _within(token, wanted, absolute, relative)
        if _NOT_FINITE.fullmatch(wanted):
            return _same_not_finite(token, wanted)
        return not checker.case_sensitive and _same_word(token, wanted)

    return agree


def _canonical(token: str) -> str:
    """Return one spelling for all spellings of an integer that the chain takes for the same."""
    whole = _ZERO_FRACTION.sub("", token)
    return whole if _INTEGER.fullmatch(whole) else token


def _is_number(token: str) -> bool:
    return bool(_INTEGER.fullmatch(token) or _REAL.fullmatch(token))


def _within(token: str, wanted: str, absolute: float, relative: float) -> bool:
    value, expected = float(token), float(wanted)
    # A number too large for a float is only equal to itself, and equal texts never come here.
    return math.isfinite(value) and math.isfinite(expected) and numbers_agree(value, expected, absolute, relative)


def _same_not_finite(token: str, wanted: str) -> bool:
    if not _NOT_FINITE.fullmatch(token):
        return False
    value, expected = float(token), float(wanted)
    return value == expected or (math.isnan(value) and math.isnan(expected))


def _lines_agree(lines: list[str], wanted: list[str], agree: Agree) -> bool:
    lines, wanted = [line for line in lines if line], [line for line in wanted if line]
    return len(lines) == len(wanted) and all(a == b or agree(a, b) for a, b in zip(lines, wanted, strict=True))


def _words_on_a_line_agree(line: str, wanted: str) -> bool:
    """Let letter case differ only on lines that are nothing but such words and numbers: `True story` is text."""
    tokens = _split(wanted)
    is_answer = all(token.lower() in _WORDS or _is_number(token) for token in tokens)
    return _tokens_agree(_split(line), tokens, _numbers_or_words_agree if is_answer else _numbers_agree)


def _values_on_a_line_agree(line: str, wanted: str) -> bool:
    return _words_on_a_line_agree(line, wanted) or same_literal(line, wanted, _numbers_agree)


def _conclude(method: str, output: str, expected: str, agree: Agree) -> Comparison:
    if method:
        return Comparison(True, method, "")
    return Comparison(False, "", _one_line(_first_difference(output, expected, agree)))


def _first_difference(output: str, expected: str, agree: Agree) -> str:
    if not output.strip() and expected.strip():
        return f"no output, expected {_quote(expected.strip())}"
    lines, wanted_lines = _normal_lines(output), _normal_lines(expected)
    for number, (line, wanted) in enumerate(zip_longest(lines, wanted_lines), 1):
        if line is None:
            return f"line {number}: expected {_quote(wanted)}, the output ends ({len(lines)} lines)"
        if wanted is None:
            return f"line {number}: expected the end ({len(wanted_lines)} lines), got {_quote(line)}"
        if line != wanted and not _tokens_agree(_split(line), _split(wanted), agree):
            return f"line {number}: {_difference_in_line(line, wanted, agree)}"
    return "only white space differs"


def _difference_in_line(line: str, wanted: str, agree: Agree) -> str:
    tokens, wanted_tokens = _split(line), _split(wanted)
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
