"""A printed Python or JSON value as a stream of lexemes, and the value they write. The text is hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, repeat

from microcoder.evaluator.streams import WHITE_SPACE

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
    """A set, or a dict if it has keys: then as many as items."""

    items: list[Node] = field(default_factory=list)
    keys: list[Node] = field(default_factory=list)


Node = str | list["Node"] | Braces
"""A lexeme (number, string, constant), a list or tuple, a set or dict."""


def lexemes(text: str) -> Iterator[str]:
    """Return brackets, commas, colons, quoted strings and words; tuples as lists and constants as Python's.

    Raises:
        Unreadable: if the iteration comes to something else.
    """
    return chain.from_iterable(map(_respell, _windows(text)))


def is_value(text: str) -> bool:
    """Whether a text writes one value, by its brackets, commas and colons.

    Raises:
        Unreadable: a string does not end.
    """
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
"""Line after line, values are often of one shape."""


def read(text: str, most_lexemes: int) -> Node:
    """Return the one value that a text writes.

    Raises:
        Unreadable: it writes none, more than one, or one of more lexemes than that.
    """
    root: list[Node] = []
    nodes: list[list[Node] | Braces] = [root]
    closers = [""]
    items, may_start = root, True
    for number, lexeme in enumerate(chain.from_iterable(_windows(text))):
        if number > most_lexemes:
            raise Unreadable("too long")
        if lexeme not in _MARKS or lexeme in _CLOSERS:
            if not may_start or len(nodes) > MAX_DEPTH:
                raise Unreadable("nested too deeply, or two values side by side")
            may_start = lexeme in _CLOSERS
            if not may_start:
                items.append(_SPELLINGS.get(lexeme, lexeme))
                continue
            node: list[Node] | Braces = Braces() if lexeme == "{" else []
            items.append(node)
            nodes.append(node)
            closers.append(_CLOSERS[lexeme])
            items = node.items if isinstance(node, Braces) else node
            continue
        node = nodes[-1]
        lacks_items = isinstance(node, Braces) and bool(node.keys) and len(node.keys) != len(node.items)
        if lexeme == ",":
            if may_start or len(nodes) == 1 or lacks_items:
                raise Unreadable("a comma after nothing")
            may_start = True
        elif lexeme == ":":
            # What was read as an item was a key; in a dict, every item has one.
            if may_start or not isinstance(node, Braces) or len(node.keys) != len(node.items) - 1:
                raise Unreadable("a colon outside a dict")
            node.keys.append(node.items.pop())
            may_start = True
        else:
            if lexeme != closers[-1] or lacks_items:
                raise Unreadable("a bracket that closes another")
            nodes.pop()
            closers.pop()
            node = nodes[-1]
            items = node.items if isinstance(node, Braces) else node
            may_start = False
    if len(nodes) != 1 or len(root) != 1:
        raise Unreadable("no value, or more than one")
    return root[0]


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


def _respell(window: list[str]) -> Iterable[str]:
    return map(_SPELLINGS.get, window, window)
