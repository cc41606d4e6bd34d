"""Whether two lines spell the same Python or JSON literal: spacing, quotes and the spelling of constants aside.

The lines are read as lexemes and never evaluated: no recursion, so no output can exhaust the judge.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

_MAX_CHARACTERS = 1 << 20
_CONSTANTS = {"true": "True", "false": "False", "null": "None"}
_SPELLINGS = {*_CONSTANTS, *_CONSTANTS.values()}
_BOOLEANS = {"true", "True", "false", "False"}
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_LEXEME = re.compile(
    r"""\s*(?:(?P<mark>[\[\](){},:])
          |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
          |(?P<word>[^\s\[\](){},:"']+))""",
    re.VERBOSE,
)


def same_literal(text: str, expected: str, numbers_agree: Callable[[str, str], bool]) -> bool:
    """Compare two lines as literals; False where the expected one is neither a container nor a boolean.

    Args:
        text: what a program printed.
        expected: what it should have printed.
        numbers_agree: decides about two words that differ.
    """
    text, expected = text.strip(), expected.strip()
    if expected in _BOOLEANS:
        return _CONSTANTS.get(text, text) == _CONSTANTS.get(expected, expected)
    if max(len(text), len(expected)) > _MAX_CHARACTERS or _BRACKETS.get(expected[:1]) != expected[-1:]:
        return False
    lexemes, wanted = _read(text), _read(expected)
    if lexemes is None or wanted is None or len(lexemes) != len(wanted):
        return False
    return all(
        kind == other_kind and (value == other or (kind == "word" and _words_agree(value, other, numbers_agree)))
        for (kind, value), (other_kind, other) in zip(lexemes, wanted, strict=True)
    )


def _words_agree(word: str, wanted: str, numbers_agree: Callable[[str, str], bool]) -> bool:
    if word in _SPELLINGS and wanted in _SPELLINGS:
        return _CONSTANTS.get(word, word) == _CONSTANTS.get(wanted, wanted)
    return numbers_agree(word, wanted)


def _read(text: str) -> list[tuple[str, str]] | None:
    lexemes = []
    position = 0
    while position < len(text):
        found = _LEXEME.match(text, position)
        if found is None:
            return None
        kind = found.lastgroup or ""
        value = found[kind]
        lexemes.append((kind, _unquote(value) if kind == "string" else value))
        position = found.end()
    return lexemes


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
