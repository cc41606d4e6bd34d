"""Reads untrusted texts as values, and never executes them.

JSON, Python literals, YAML, limits with their units, licences; also programs, as syntax trees only.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from microcoder.judge.core.digits import dump_json, parse_json
from microcoder.judge.core.syntax import evaluate_literal, parse_source

MAX_LITERAL = 50_000_000
"""Most characters of a text that is read as a Python literal."""
MAX_YAML = 100_000
"""Most characters of a YAML document."""
_LONGEST_LICENCE = 1000
"""Characters of a licence that is no text but some other value."""
_SECONDS = re.compile(r"(\d*\.?\d+)\s*(m?s|seconds?)?", re.I)
_MEBIBYTES = re.compile(
    r"(\d*\.?\d+)\s*(bytes|b|kib|kb|kilobytes|mib|mb|megabytes|gib|gb|gigabytes)?", re.I
)
_MOST_SECONDS = 1e6
"""A larger time limit is taken for a mistake and ignored."""
_MOST_MEBIBYTES = 1 << 20
"""A larger memory limit, of over 1 TiB, is taken for a mistake and ignored."""
_LEAST_BYTES = 1 << 16
"""A memory limit without a unit is in bytes from this number on, else in MiB."""
_MEBIBYTES_OF = {
    "b": 1 / (1 << 20),
    "k": 1 / 1024,
    "m": 1.0,
    "g": 1024.0,
}
"""MiB of a unit, by its first letter."""
_NOTHING_SAID = r"|unknown|none|null|n/?a|-|not (?:stated|specified|known|available)|unspecified"
"""Licences that say nothing; the first alternative is the empty text."""
_PYTHON2_GRAMMAR = re.compile(
    r"^[^#\n]*\b(print\s+[^\s(=]|print\s*$|print\s*>>|exec\s+['\"]|raise\s+\w+\s*,"
    r"|except\s+[\w.]+\s*,|0[0-7]+\b|\d+L\b)"
    r"|<>|`|\bprint\b.*%",
    re.MULTILINE,
)
"""Signs of Python 2 that Python 3 does not parse."""
_PYTHON2_NAME = re.compile(r"\b(raw_input|xrange)[ \t]*\(")
_PYTHON2_DEFINED = re.compile(
    r"\b(raw_input|xrange)[ \t]*=|def[ \t]+(raw_input|xrange)\b"
    r"|^[ \t]*(try:[ \t]*)?(from|import)\b.*\bxrange\b",
    re.M,
)
"""Signs that a program defines Python 2's functions itself, as some do to run on both."""


def text_of(completion: str | Sequence[Mapping[str, Any]] | None) -> str:
    """Return a completion's text: itself, or the content of the last message of a chat."""
    content: Any = completion
    if completion and not isinstance(completion, str):
        content = completion[-1].get("content")
    if isinstance(content, list | tuple):
        return "".join(part.get("text") or "" for part in content)
    return content or ""


def read_json(text: str) -> Any:
    """Return the value of a JSON text (NaN and Infinity allowed); ValueError if it is invalid."""
    return parse_json(text)


def write_json(value: object) -> str:
    """Return a value as JSON on one line, all ASCII; ValueError if JSON has no form for it."""
    try:
        return dump_json(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except TypeError as error:
        raise ValueError(f"JSON has no form for it ({error})") from None


def read_literal(text: str) -> Any:
    """Return the value of a JSON text, or else of a Python literal; ValueError if it is neither."""
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        not_json = error
    # Its syntax tree takes many times the memory of the text.
    if len(text) > MAX_LITERAL:
        raise ValueError(f"not JSON ({not_json}), and too long to be read as a Python literal")
    try:
        return evaluate_literal(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError(f"neither JSON ({not_json}) nor a Python literal") from None


def read_yaml(text: str) -> Any:
    """Return the value of a small YAML document; ValueError if invalid, too long, or with aliases.

    Aliases can make a document without bound.
    """
    # PyYAML comes with the data extra; rows that are no folders do without.
    import yaml

    if len(text) > MAX_YAML:
        raise ValueError(f"{len(text):,} characters of YAML; at most {MAX_YAML:,} are read")
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise ValueError("an alias")
        return yaml.safe_load(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    # PyYAML does not check what stands after a tag such as !!int: its own errors are of every kind.
    except (
        yaml.YAMLError,
        ValueError,
        IndexError,
        KeyError,
        AttributeError,
        TypeError,
        OverflowError,
    ) as error:
        raise ValueError(f"no YAML ({shorten(' '.join(str(error).split()))})") from None


def parse_python(source: str) -> ast.Module | None:
    """Return a program's syntax tree; None if it is not valid Python 3."""
    try:
        return parse_source(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def is_python2(source: str) -> bool:
    """Whether a program is in Python 2: syntax that Python 3 refuses, or functions it lacks."""
    # Comments and texts can look like Python 2: only what Python 3 refuses counts.
    if _PYTHON2_GRAMMAR.search(source) and parse_python(source) is None:
        return True
    return bool(_PYTHON2_NAME.search(source)) and not _PYTHON2_DEFINED.search(source)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is an int or a float, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_json_value(value: object, *, is_expected: bool = False) -> bool:
    """Whether a value survives JSON unchanged.

    Args:
        is_expected: also allow tuples (as equal lists) and integer keys.
    """
    sequences = (list, tuple) if is_expected else list
    if isinstance(value, sequences):
        return all(is_json_value(item, is_expected=is_expected) for item in value)
    if isinstance(value, dict):
        key_types = (str, int) if is_expected else (str,)
        for key, held in value.items():
            # Not `isinstance`: a bool is an int, but JSON writes it as `true`.
            if type(key) not in key_types or not is_json_value(held, is_expected=is_expected):
                return False
        return True
    return value is None or isinstance(value, bool | int | float | str)


def read_seconds(text: str) -> float | None:
    """Return the seconds in `2.0 seconds`, `500 ms`, `[1, 2]`; None without a positive number."""
    match = _SECONDS.search(text)
    # The pattern has no sign: it would find the number behind one.
    if match is None or text.lstrip().startswith("-"):
        return None
    seconds = float(match[1])
    if (match[2] or "").lower() == "ms":
        seconds /= 1000
    return seconds if 0 < seconds < _MOST_SECONDS else None


def read_mebibytes(text: str) -> int | None:
    """Return the MiB in `256.0 megabytes` or `268435456 bytes`.

    Without a unit, numbers from 65536 on are bytes. None without a number from 1 MiB to 1 TiB.
    """
    match = _MEBIBYTES.search(text)
    if match is None or text.lstrip().startswith("-"):
        return None
    number = float(match[1])
    unit = (match[2] or "").lower()[:1]
    if not unit:
        unit = "m" if number < _LEAST_BYTES else "b"
    mebibytes = number * _MEBIBYTES_OF[unit]
    return round(mebibytes) if 1 <= mebibytes <= _MOST_MEBIBYTES else None


def read_licence(value: object) -> str:
    """Return a licence field as one text; empty if it is not set or says nothing.

    A text is itself, the texts of a list are joined by AND, another value is shown.
    """
    if isinstance(value, list):
        licences = value
    elif isinstance(value, str):
        licences = [value]
    else:
        licences = [shorten(value or "", _LONGEST_LICENCE)]
    if len(licences) > 1:
        # In brackets, since each may be a choice itself.
        text = " AND ".join(f"({licence})" for licence in licences)
    else:
        text = "".join(str(licence) for licence in licences)
    if re.fullmatch(_NOTHING_SAID, text.strip(), re.I):
        return ""
    return text


def shorten(value: object, length: int = 80) -> str:
    """Return any value as text of at most `length` characters, for a message."""
    try:
        text = value if isinstance(value, str) else _spell(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to print"
    # Lone surrogates can be in any text, but not in UTF-8.
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= length else text[: length - 3] + "..."


def _spell(value: object) -> str:
    """Return the `repr` of a value, with sets sorted, so that it is the same in every process."""
    match value:
        case list():
            return f"[{', '.join(map(_spell, value))}]"
        case tuple() if len(value) > 1:
            return f"({', '.join(map(_spell, value))})"
        case dict():
            pairs = [f"{_spell(key)}: {_spell(held)}" for key, held in value.items()]
            return f"{{{', '.join(pairs)}}}"
        case set() if value:
            return f"{{{', '.join(sorted(map(_spell, value)))}}}"
    return repr(value)
