"""Reads values from untrusted texts, never executed: JSON, Python literals, YAML, time and memory limits."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from microcoder.judge.core.syntax import evaluate_literal, parse_source

MAX_LITERAL, MAX_YAML = 50_000_000, 100_000
_SECONDS = re.compile(r"(\d*\.?\d+)\s*(m?s|seconds?)?", re.I)
_MEBIBYTES = re.compile(r"(\d*\.?\d+)\s*(bytes|b|kib|kb|kilobytes|mib|mb|megabytes|gib|gb|gigabytes)?", re.I)
_MOST_SECONDS = 1e6
"""A larger time limit is taken for a mistake."""
_NOTHING_SAID = r"|unknown|none|null|n/?a|-|not (?:stated|specified|known|available)|unspecified"
_MIB_OF = {"b": 1 / (1 << 20), "k": 1 / 1024, "m": 1.0, "g": 1024.0}
_PYTHON2_GRAMMAR = re.compile(
    r"^[^#\n]*\b(print\s+[^\s(=]|print\s*$|print\s*>>|exec\s+['\"]|raise\s+\w+\s*,|except\s+[\w.]+\s*,|0[0-7]+\b|\d+L\b)"
    r"|<>|`|\bprint\b.*%",
    re.MULTILINE,
)
"""Signs of Python 2 that Python 3 does not parse."""
_PYTHON2_NAME = re.compile(r"\b(raw_input|xrange)[ \t]*\(")
_PYTHON2_DEFINED = re.compile(
    r"\b(raw_input|xrange)[ \t]*=|def[ \t]+(raw_input|xrange)\b|^[ \t]*(try:[ \t]*)?(from|import)\b.*\bxrange\b", re.M
)


def text_of(completion: str | Sequence[Mapping[str, Any]] | None) -> str:
    """Return a completion's text: itself, or the content of the last message of a chat."""
    content: Any = completion if isinstance(completion, str) or not completion else completion[-1].get("content")
    if isinstance(content, list | tuple):
        return "".join(part.get("text") or "" for part in content)
    return content or ""


def read_json(text: str) -> Any:
    """Return the value of a JSON text (NaN and Infinity allowed); ValueError if it is invalid or repeats a key."""
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def write_json(value: object) -> str:
    """Return a value as JSON on one line, all ASCII; ValueError if JSON has no form for it."""
    try:
        return json.dumps(value)
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
    if len(text) > MAX_LITERAL:
        raise ValueError(f"not JSON ({not_json}), and too long to be read as a Python literal")
    try:
        return evaluate_literal(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError(f"neither JSON ({not_json}) nor a Python literal") from None


def read_yaml(text: str) -> Any:
    """Return the value of a small YAML document; ValueError if it is invalid, too long, or has aliases."""
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
    # PyYAML does not check what stands after a tag such as !!int, so its own errors are of every kind.
    except (yaml.YAMLError, ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError) as error:
        raise ValueError(f"no YAML ({shorten(' '.join(str(error).split()))})") from None


def parse_python(source: str) -> ast.Module | None:
    """Return a program's syntax tree; None if it is not valid Python 3."""
    try:
        return parse_source(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def is_python2(source: str) -> bool:
    """Whether a program is written in Python 2: syntax that Python 3 refuses, or functions that it lacks."""
    if _PYTHON2_GRAMMAR.search(source) and parse_python(source) is None:
        return True
    return bool(_PYTHON2_NAME.search(source)) and not _PYTHON2_DEFINED.search(source)


def is_json_value(value: object, *, is_expected: bool = False) -> bool:
    """Whether a value comes back the same from JSON; with `is_expected` also tuples, which equal lists, and
    integer keys."""
    if isinstance(value, (list, tuple) if is_expected else list):
        return all(is_json_value(item, is_expected=is_expected) for item in value)
    if isinstance(value, dict):
        keys = (str, int) if is_expected else (str,)
        return all(type(key) in keys and is_json_value(one, is_expected=is_expected) for key, one in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def read_seconds(text: str) -> float | None:
    """Return the seconds in `2.0 seconds`, `500 ms`, `[1, 2]`, ...; None without a positive number."""
    found = _SECONDS.search(text)
    seconds = float(found[1]) if found else 0.0
    if found and (found[2] or "").lower() == "ms":
        seconds /= 1000
    return seconds if 0 < seconds < _MOST_SECONDS else None


def read_mebibytes(text: str) -> int | None:
    """Return the MiB in `256.0 megabytes`, `268435456 bytes`, ...; None without a number from 1 MiB to 1 TiB."""
    found = _MEBIBYTES.search(text)
    if not found:
        return None
    unit = (found[2] or "").lower()[:1]
    number = float(found[1])
    mebibytes = number * (_MIB_OF[unit] if unit else 1.0 if number < 1 << 16 else _MIB_OF["b"])
    return round(mebibytes) if 1 <= mebibytes <= 1 << 20 else None


def read_licence(value: object) -> str:
    """Return what a source says of its licence: a text, a list of texts, or another value as text; empty if nothing."""
    listed = value if isinstance(value, list) else [value if isinstance(value, str) else shorten(value or "", 1000)]
    text = " AND ".join(f"({one})" if len(listed) > 1 else str(one) for one in listed)
    return "" if re.fullmatch(_NOTHING_SAID, text.strip(), re.I) else text


def shorten(value: object, length: int = 80) -> str:
    """Return any value as text of at most `length` characters, for a message."""
    try:
        text = value if isinstance(value, str) else _spell(value)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__} too large to print"
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
            return f"{{{', '.join(f'{_spell(key)}: {_spell(held)}' for key, held in value.items())}}}"
        case set() if value:
            return f"{{{', '.join(sorted(map(_spell, value)))}}}"
    return repr(value)


def _read_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"duplicate key {shorten(twice)!r}")
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_read_pairs)
