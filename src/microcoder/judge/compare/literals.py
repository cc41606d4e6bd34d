"""Whether two texts write the same Python or JSON value: a list, tuple, set, dict or string.

The texts are untrusted: they are read, never evaluated. They are compared lexeme by lexeme up to the first difference.
A value is built only where order is free (sets, dicts) or a trailing comma may be extra.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, repeat

from microcoder.judge.compare.text import WHITE_SPACE, Agree, agree_in_step, without_zero_fraction
from microcoder.judge.compare.values import find_unpaired

MAX_DEPTH = 100
QUOTES = ("'", '"')
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_MARKS = frozenset("[](){},:")
_CLASSES: dict[str, str] = {mark: mark for mark in _MARKS}
_SHORT = 200
_ONE = rf"""(?:[\[\](){{}},:]|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|[^{WHITE_SPACE}\[\](){{}},:"']++)"""
_LEXEME = re.compile(_ONE)
_WINDOW = re.compile(rf"(?:[{WHITE_SPACE}]*+{_ONE}){{1,2048}}+[{WHITE_SPACE}]*+")
_SPELLINGS = {"(": "[", ")": "]", "true": "True", "false": "False", "null": "None"}
_ITEMS, _PAIRS = "(?:w(?:,w)*+,?)?", "w:w(?:,w:w)*+,?"
_FLAT = re.compile(rf"\[{_ITEMS}\]|\({_ITEMS}\)|\{{(?:{_PAIRS}|{_ITEMS})\}}")


class Unreadable(ValueError):
    """The text is not exactly one value."""


@dataclass(slots=True)
class Braces:
    """A set; a dict if it has keys (one per item)."""

    items: list[Node] = field(default_factory=list)
    keys: list[Node] = field(default_factory=list)


Node = str | list["Node"] | Braces
"""A lexeme (number, string, constant), a list or tuple, a set or dict."""


def lexemes(text: str) -> Iterator[str]:
    """Yield brackets, commas, colons, quoted strings and words; tuples as lists, `true` and `null` as Python's."""
    return chain.from_iterable(map(_SPELLINGS.get, window, window) for window in _windows(text))


def is_value(text: str) -> bool:
    """Whether a text writes exactly one value, judged by its brackets, commas and colons."""
    found: Iterator[str] = map(_CLASSES.get, chain.from_iterable(_windows(text)), repeat("w"))
    classes = "".join(found)
    return _is_value_remembered(classes) if len(classes) < _SHORT else _is_value(classes)


def _is_value(classes: str) -> bool:
    for _ in range(MAX_DEPTH):
        shorter = _FLAT.sub("w", classes)
        if shorter == classes:
            break
        classes = shorter
    return classes == "w"


_is_value_remembered = lru_cache(maxsize=4096)(_is_value)
"""`_is_value` with a cache, since the values of successive lines often have the same shape."""


def read(text: str, most_lexemes: int) -> Node:
    """Parse the one value that a text writes; Unreadable if it writes none, several or one of too many lexemes."""
    found = chain.from_iterable(_windows(text))
    numbers = iter(range(most_lexemes + 1))

    def following() -> str:
        lexeme = next(found, "")
        if lexeme and next(numbers, None) is None:
            raise Unreadable("too long")
        return lexeme

    def read_value(lexeme: str, depth: int) -> Node:
        closer = _CLOSERS.get(lexeme)
        if depth >= MAX_DEPTH or not lexeme or (closer is None and lexeme in _MARKS):
            raise Unreadable("nested too deeply, or no value where one begins")
        if closer is None:
            return _SPELLINGS.get(lexeme, lexeme)
        items: list[Node] = []
        keys: list[Node] = []
        lexeme = following()
        while lexeme != closer:
            item, lexeme = read_value(lexeme, depth + 1), following()
            if lexeme == ":" and closer == "}":
                keys.append(item)
                item, lexeme = read_value(following(), depth + 1), following()
            items.append(item)
            if len(keys) not in (0, len(items)) or lexeme not in (",", closer):
                raise Unreadable(
                    "a dict without a key or a value, or a bracket that closes another"
                )
            lexeme = following() if lexeme == "," else lexeme
        return Braces(items, keys) if closer == "}" else items

    value = read_value(following(), 0)
    if following():
        raise Unreadable("more than one value")
    return value


def unquote(quoted: str) -> str:
    """Return the content of a string literal; if its escapes are not JSON's, the escaped text."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    if quoted[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    try:
        return json.loads(f'"{body}"')
    except ValueError:
        return body


def _windows(text: str) -> Iterator[list[str]]:
    position = 0
    if len(text) < _SHORT and "'" not in text and '"' not in text:
        yield _LEXEME.findall(text)
        return
    while position < len(text):
        found = _WINDOW.match(text, position)
        if found is None:
            raise Unreadable("a string that does not end")
        yield _LEXEME.findall(text, position, found.end())
        position = found.end()


_MAX_CHARACTERS = 1 << 22
"""Maximum length of a text that must be parsed into a value; a longer one does not agree."""
_MOST_TIMES_ESCAPED = 12
"""A longer string literal, in characters per expected one, differs: a character takes at most two escapes of six."""
_TUPLE = re.compile(r"[()]")
_LAST_COMMA = re.compile(rf",[{WHITE_SPACE}]*+[\])}}]")


def same_literal(text: str, expected: str, numbers_agree: Agree) -> bool:
    """Whether two texts write the same value; False if the expected one is neither a container nor a quoted string."""
    text, expected = text.strip(WHITE_SPACE), expected.strip(WHITE_SPACE)
    if len(expected) < 2:
        return False
    if expected[0] in QUOTES and expected[-1] == expected[0]:
        return _same_string(text, expected)
    if not text or _CLOSERS.get(expected[0]) != expected[-1] or _CLOSERS.get(text[0]) != text[-1]:
        return False
    try:
        # Tuples are read as lists: what opens as a tuple must end as one.
        if (
            agree_in_step(
                lexemes(text),
                lexemes(expected),
                lambda one, other: _leaves_agree(one, other, numbers_agree),
            )
            and is_value(expected)
            and (not _TUPLE.search(text) or is_value(text))
        ):
            return True
        may_differ = "{" in expected or _LAST_COMMA.search(expected) or _LAST_COMMA.search(text)
        if not may_differ or max(len(text), len(expected)) > _MAX_CHARACTERS:
            return False
        # A comma before each closing bracket is all that a right output may have more.
        return _same(read(text, 2 * len(expected)), read(expected, len(expected)), numbers_agree)
    except Unreadable:
        return False


def _same_string(text: str, expected: str) -> bool:
    try:
        wanted = read(expected, 1)
    except Unreadable:
        return False
    content = unquote(wanted) if isinstance(wanted, str) else ""
    if text == content:
        return True
    if len(text) > _MOST_TIMES_ESCAPED * len(content) + 2:
        return False
    try:
        value = read(text, 1)
    except Unreadable:
        return False
    return isinstance(value, str) and value[0] in QUOTES and unquote(value) == content


def _leaves_agree(lexeme: str, wanted: str, numbers_agree: Agree) -> bool:
    if lexeme == wanted:
        return True
    if lexeme in _MARKS or wanted in _MARKS:
        return False
    if lexeme[0] in QUOTES or wanted[0] in QUOTES:
        return lexeme[0] in QUOTES and wanted[0] in QUOTES and unquote(lexeme) == unquote(wanted)
    return numbers_agree(lexeme, wanted)


def _same(value: Node, wanted: Node, numbers_agree: Agree) -> bool:
    """Whether two values are the same; the recursion is bounded, since `read` refuses more than MAX_DEPTH levels."""
    if isinstance(value, str) or isinstance(wanted, str):
        return (
            isinstance(value, str)
            and isinstance(wanted, str)
            and _leaves_agree(value, wanted, numbers_agree)
        )
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(
            _same(mine, theirs, numbers_agree) for mine, theirs in zip(value, wanted, strict=True)
        )
    if not (isinstance(value, Braces) and isinstance(wanted, Braces)) or len(value.keys) != len(
        wanted.keys
    ):
        return False
    if wanted.keys:
        mine = dict(zip(map(_canonical, value.keys), value.items, strict=True))
        theirs = dict(zip(map(_canonical, wanted.keys), wanted.items, strict=True))
        return mine.keys() == theirs.keys() and all(
            _same(mine[key], theirs[key], numbers_agree) for key in theirs
        )
    mine = {_canonical(item): item for item in value.items}
    theirs = {_canonical(item): item for item in wanted.items}
    rest = [mine[key] for key in sorted(mine.keys() - theirs.keys())]
    missing = [theirs[key] for key in sorted(theirs.keys() - mine.keys())]
    is_paired = len(rest) == len(missing)
    return (
        is_paired
        and find_unpaired(rest, missing, lambda one, other: _same(one, other, numbers_agree))
        is None
    )


def _canonical(value: Node) -> str:
    """Return a text that is the same for equal values, to match items of sets and keys of dicts in any order."""
    if isinstance(value, str):
        return json.dumps(unquote(value)) if value[0] in QUOTES else without_zero_fraction(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if value.keys:
        pairs = zip(map(_canonical, value.keys), map(_canonical, value.items), strict=True)
        return "{" + ",".join(sorted(f"{key}:{item}" for key, item in pairs)) + "}"
    return "{" + ",".join(sorted(set(map(_canonical, value.items)))) + "}"
