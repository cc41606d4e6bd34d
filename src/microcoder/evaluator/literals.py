"""Whether two texts write the same Python or JSON value: a list, tuple, set, dict or string.

The texts are read, never evaluated, in linear time and only to a certain depth: they are hostile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

_MAX_CHARACTERS = 1 << 22
_MAX_DEPTH = 100
_CONSTANTS = {"true": "True", "false": "False", "null": "None", "True": "True", "False": "False", "None": "None"}
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_QUOTES = ("'", '"')
_LEXEME = re.compile(
    r"""\s*(?:(?P<mark>[\[\](){},:])
          |(?P<string>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')
          |(?P<word>[^\s\[\](){},:"']++))""",
    re.VERBOSE,
)


@dataclass(slots=True)
class _Value:
    """A value as it was read."""

    kind: str
    """`sequence` (list or tuple), `braces` (set or dict), `string`, `constant` or `word` (numbers, too)."""
    text: str = ""
    items: list[_Value] = field(default_factory=list)
    keys: list[_Value] = field(default_factory=list)
    """Of a dict: as many as its items."""


def same_literal(text: str, expected: str, numbers_agree: Callable[[str, str], bool]) -> bool:
    """Compare two texts as values; False where the expected one is neither a container nor a quoted string.

    Args:
        text: what a program printed.
        expected: what it should have printed.
        numbers_agree: decides about two words that differ.
    """
    text, expected = text.strip(), expected.strip()
    is_container = len(expected) > 1 and _BRACKETS.get(expected[0]) == expected[-1]
    is_string = len(expected) > 1 and expected[0] in _QUOTES and expected[0] == expected[-1]
    if not (is_container or is_string) or max(len(text), len(expected)) > _MAX_CHARACTERS:
        return False
    wanted = _read(expected)
    if wanted is None:
        return False
    if wanted.kind == "string" and text == wanted.text:
        return True
    value = _read(text)
    return value is not None and _same(value, wanted, numbers_agree)


def _same(value: _Value, wanted: _Value, numbers_agree: Callable[[str, str], bool]) -> bool:
    """Compare two values; no deeper than `_MAX_DEPTH`."""
    if value.kind != wanted.kind:
        return False
    if wanted.kind == "word":
        return value.text == wanted.text or numbers_agree(value.text, wanted.text)
    if wanted.kind != "sequence" and wanted.kind != "braces":
        return value.text == wanted.text
    if len(value.keys) != len(wanted.keys):
        return False
    if wanted.keys:
        mine = dict(zip(map(_canonical, value.keys), value.items, strict=True))
        theirs = dict(zip(map(_canonical, wanted.keys), wanted.items, strict=True))
        return mine.keys() == theirs.keys() and all(_same(mine[key], theirs[key], numbers_agree) for key in theirs)
    if wanted.kind == "braces":
        return set(map(_canonical, value.items)) == set(map(_canonical, wanted.items))
    return len(value.items) == len(wanted.items) and all(
        _same(mine, theirs, numbers_agree) for mine, theirs in zip(value.items, wanted.items, strict=True)
    )


def _canonical(value: _Value) -> str:
    """Return a text that equal values share; for what may come in any order."""
    if value.kind == "word":
        return re.sub(r"(?<=[0-9])\.0*$", "", value.text)
    if value.keys:
        pairs = zip(map(_canonical, value.keys), map(_canonical, value.items), strict=True)
        return "{" + ",".join(sorted(f"{key}:{item}" for key, item in pairs)) + "}"
    if value.kind == "braces":
        return "{" + ",".join(sorted(set(map(_canonical, value.items)))) + "}"
    if value.kind == "sequence":
        return "[" + ",".join(map(_canonical, value.items)) + "]"
    return json.dumps(value.text) if value.kind == "string" else value.text


def _read(text: str) -> _Value | None:
    """Return the one value that a text writes, or None where it writes none or more."""
    root = _Value("sequence")
    open_values, closers = [root], [""]
    may_start, position = True, 0
    while position < len(text):
        found = _LEXEME.match(text, position)
        if found is None:
            return None
        position = found.end()
        kind, lexeme = found.lastgroup or "", found[found.lastgroup or 0]
        current = open_values[-1]
        if kind != "mark" or lexeme in _BRACKETS:
            if not may_start or len(open_values) > _MAX_DEPTH:
                return None
            value = _leaf(kind, lexeme) if kind != "mark" else _Value("braces" if lexeme == "{" else "sequence")
            current.items.append(value)
            may_start = kind == "mark"
            if kind == "mark":
                open_values.append(value)
                closers.append(_BRACKETS[lexeme])
        elif lexeme == ",":
            if may_start or len(open_values) == 1 or (current.keys and len(current.keys) != len(current.items)):
                return None
            may_start = True
        elif lexeme == ":":
            # What was read as an item was a key; in a dict, every item has one.
            if may_start or current.kind != "braces" or len(current.keys) != len(current.items) - 1:
                return None
            current.keys.append(current.items.pop())
            may_start = True
        else:
            if lexeme != closers[-1] or (current.keys and len(current.keys) != len(current.items)):
                return None
            open_values.pop()
            closers.pop()
            may_start = False
    return root.items[0] if len(open_values) == 1 and len(root.items) == 1 else None


def _leaf(kind: str, lexeme: str) -> _Value:
    if kind == "string":
        return _Value("string", _unquote(lexeme))
    return _Value("constant", _CONSTANTS[lexeme]) if lexeme in _CONSTANTS else _Value("word", lexeme)


def _unquote(quoted: str) -> str:
    """Return the content of a string literal; where its escapes are not JSON's, the escaped text."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    if quoted[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        return json.loads(f'"{body}"')
    except ValueError:
        return body
