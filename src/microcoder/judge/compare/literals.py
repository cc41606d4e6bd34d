"""Whether two texts write the same Python or JSON value: a list, tuple, set, dict or string.

The texts are untrusted: they are read, never evaluated. They are compared lexeme by lexeme up to
the first difference. Values are built only if order does not matter (sets, dicts), or if there may
be an extra trailing comma. Start with `same_literal`.
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

# It bounds the recursion of everything that walks a value, whatever a hostile text nests.
MAX_DEPTH = 100
"""Deepest nesting of a value that is read."""
QUOTES = ("'", '"')
"""What begins and ends a string."""
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
"""Opening bracket -> closing one."""
_MARKS = frozenset("[](){},:")
"""Lexemes that are no values."""
_CLASSES: dict[str, str] = {mark: mark for mark in _MARKS}
"""Lexeme -> its class, of those that are not `_WORD`."""
_WORD = "w"
"""The class of lexemes that are values: numbers, strings, constants."""
_SHORT = 200
"""Texts of fewer characters are cut without windows; shapes of fewer lexemes are cached."""
_SINGLE_LEXEME = (
    r"(?:[\[\](){},:]"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'(?:[^'\\\n]|\\.)*+'"
    rf"""|[^{WHITE_SPACE}\[\](){{}},:"']++)"""
)
"""A mark, a string in either quotes, or a word. Possessive: a hostile text takes linear time."""
_LEXEME = re.compile(_SINGLE_LEXEME)
"""One lexeme."""
_WINDOW = re.compile(rf"(?:[{WHITE_SPACE}]*+{_SINGLE_LEXEME}){{1,2048}}+[{WHITE_SPACE}]*+")
"""As many lexemes as are cut at a time."""
_SPELLINGS = {
    "(": "[",
    ")": "]",
    "true": "True",
    "false": "False",
    "null": "None",
}
"""Lexeme -> how it is compared: tuples as lists, JSON's constants as Python's."""
_ITEMS = "(?:w(?:,w)*+,?)?"
"""The inside of a list, tuple or set, in classes of lexemes."""
_PAIRS = "w:w(?:,w:w)*+,?"
"""The inside of a dict that is not empty, in classes of lexemes."""
_FLAT = re.compile(rf"\[{_ITEMS}\]|\({_ITEMS}\)|\{{(?:{_PAIRS}|{_ITEMS})\}}")
"""A container that holds no other, in classes of lexemes."""


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
    """Yield brackets, commas, colons, quoted strings and words.

    Tuples are spelled as lists, `true` and `null` as Python's constants.
    """
    # `map` with two iterables is `_SPELLINGS.get(lexeme, lexeme)` of each, at the speed of C.
    return chain.from_iterable(map(_SPELLINGS.get, window, window) for window in _windows(text))


def is_value(text: str) -> bool:
    """Whether a text writes exactly one value, judged by its brackets, commas and colons."""
    found: Iterator[str] = map(_CLASSES.get, chain.from_iterable(_windows(text)), repeat(_WORD))
    classes = "".join(found)
    if len(classes) < _SHORT:
        return _is_value_remembered(classes)
    return _is_value(classes)


def _is_value(classes: str) -> bool:
    """Whether classes of lexemes are one value: flat containers become words, again and again."""
    # By substitution instead of recursion: each round removes the innermost level.
    for _ in range(MAX_DEPTH):
        shorter = _FLAT.sub(_WORD, classes)
        if shorter == classes:
            break
        classes = shorter
    return classes == _WORD


_is_value_remembered = lru_cache(maxsize=4096)(_is_value)
"""`_is_value` with a cache, since the values of successive lines often have the same shape."""


class _Reader:
    """Parses the value that a text writes, up to a number of lexemes."""

    def __init__(self, text: str, most_lexemes: int) -> None:
        self._lexemes = chain.from_iterable(_windows(text))
        # One more: the lexeme behind a value tells that the text goes on.
        self._num_left = most_lexemes + 1

    def next_lexeme(self) -> str:
        """Return the next lexeme, empty at the end of the text."""
        lexeme = next(self._lexemes, "")
        if lexeme:
            if not self._num_left:
                raise Unreadable("too long")
            self._num_left -= 1
        return lexeme

    def read_value(self, lexeme: str, depth: int) -> Node:
        """Return the value that begins with a lexeme; the recursion is bounded by MAX_DEPTH."""
        closer = _CLOSERS.get(lexeme)
        is_no_value = not lexeme or (closer is None and lexeme in _MARKS)
        if depth >= MAX_DEPTH or is_no_value:
            raise Unreadable("nested too deeply, or no value where one begins")
        if closer is None:
            return _SPELLINGS.get(lexeme, lexeme)
        return self._read_container(closer, depth)

    def _read_container(self, closer: str, depth: int) -> Node:
        """Return the container that ends with a closing bracket; its opening one is read."""
        items: list[Node] = []
        keys: list[Node] = []
        lexeme = self.next_lexeme()
        while lexeme != closer:
            item = self.read_value(lexeme, depth + 1)
            lexeme = self.next_lexeme()
            if lexeme == ":" and closer == "}":
                keys.append(item)
                item = self.read_value(self.next_lexeme(), depth + 1)
                lexeme = self.next_lexeme()
            items.append(item)
            # `{1: 2, 3}` must be neither a dict nor a set.
            has_lone_key = len(keys) not in (0, len(items))
            if has_lone_key or lexeme not in (",", closer):
                raise Unreadable(
                    "a dict without a key or a value, or a bracket that closes another"
                )
            # The closing bracket may come next: Python allows a comma behind the last item.
            if lexeme == ",":
                lexeme = self.next_lexeme()
        if closer == "}":
            return Braces(items, keys)
        return items


def read(text: str, most_lexemes: int) -> Node:
    """Parse the one value that a text writes.

    Raises:
        Unreadable: it writes none, several or one of too many lexemes.
    """
    reader = _Reader(text, most_lexemes)
    value = reader.read_value(reader.next_lexeme(), 0)
    if reader.next_lexeme():
        raise Unreadable("more than one value")
    return value


def unquote(quoted: str) -> str:
    """Return the content of a string literal; if its escapes are not JSON's, the escaped text."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body
    # Rewritten for JSON's parser, which knows neither an escaped apostrophe nor a bare quotation
    # mark.
    if quoted[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    # JSON's escapes and Python's agree for what programs print.
    try:
        return json.loads(f'"{body}"')
    except ValueError:
        return body


def _windows(text: str) -> Iterator[list[str]]:
    """Yield the lexemes of a text, a few thousand at a time."""
    # Without quotation marks, every text is lexemes and white space: nothing to check.
    if len(text) < _SHORT and "'" not in text and '"' not in text:
        yield _LEXEME.findall(text)
        return
    position = 0
    while position < len(text):
        window = _WINDOW.match(text, position)
        if window is None:
            raise Unreadable("a string that does not end")
        yield _LEXEME.findall(text, position, window.end())
        position = window.end()


_MAX_CHARACTERS = 1 << 22
"""Maximum length of a text that must be parsed into a value; a longer one does not agree."""
_MOST_TIMES_ESCAPED = 12
"""A longer string literal, in characters per expected one, differs.

A character takes at most two escapes of six.
"""
_TUPLE = re.compile(r"[()]")
"""A sign of a tuple, or of a string that holds a parenthesis."""
_LAST_COMMA = re.compile(rf",[{WHITE_SPACE}]*+[\])}}]")
"""A comma before a closing bracket."""


def same_literal(text: str, expected: str, numbers_agree: Agree) -> bool:
    """Whether two texts write the same value.

    False if the expected one is neither a container nor a quoted string.
    """
    text = text.strip(WHITE_SPACE)
    expected = expected.strip(WHITE_SPACE)
    if len(expected) < 2:
        return False
    if expected[0] in QUOTES and expected[-1] == expected[0]:
        return _same_string(text, expected)
    if not _is_in_brackets(expected) or not _is_in_brackets(text):
        return False
    try:
        # The fast way, which decides nearly always; only what follows builds values.
        if _same_lexemes(text, expected, numbers_agree):
            return True
        # The judge's text alone decides what is a set, never the program's.
        is_order_free = "{" in expected
        may_differ = is_order_free or _LAST_COMMA.search(expected) or _LAST_COMMA.search(text)
        if not may_differ or max(len(text), len(expected)) > _MAX_CHARACTERS:
            return False
        # A comma before each closing bracket is all that a right output may have more.
        value = read(text, 2 * len(expected))
        wanted = read(expected, len(expected))
        return _same(value, wanted, numbers_agree)
    except Unreadable:
        return False


def _is_in_brackets(text: str) -> bool:
    return bool(text) and _CLOSERS.get(text[0]) == text[-1]


def _same_lexemes(text: str, expected: str, numbers_agree: Agree) -> bool:
    """Whether two texts write one value with lexemes that agree one by one."""

    def agree(lexeme: str, wanted: str) -> bool:
        return _leaves_agree(lexeme, wanted, numbers_agree)

    if not agree_in_step(lexemes(text), lexemes(expected), agree):
        return False
    # Lexemes may agree where no single value is written, as in `[1] [2]`.
    if not is_value(expected):
        return False
    # Tuples are read as lists: what opens as a tuple must end as one.
    return not _TUPLE.search(text) or is_value(text)


def _same_string(text: str, expected: str) -> bool:
    """Whether a text is an expected string, with quotation marks of either kind or without."""
    try:
        # One lexeme at most: `"a" "b"` begins and ends like a string, but is none.
        wanted = read(expected, 1)
    except Unreadable:
        return False
    content = unquote(wanted) if isinstance(wanted, str) else ""
    if text == content:
        return True
    # A hostile text is not unquoted at any length.
    if len(text) > _MOST_TIMES_ESCAPED * len(content) + 2:
        return False
    try:
        value = read(text, 1)
    except Unreadable:
        return False
    return isinstance(value, str) and value[0] in QUOTES and unquote(value) == content


def _leaves_agree(lexeme: str, wanted: str, numbers_agree: Agree) -> bool:
    """Whether two lexemes agree: marks as they are, strings by content, numbers as given."""
    if lexeme == wanted:
        return True
    if lexeme in _MARKS or wanted in _MARKS:
        return False
    is_quoted = lexeme[0] in QUOTES
    # The string "1" is not the number 1.
    if is_quoted != (wanted[0] in QUOTES):
        return False
    if is_quoted:
        return unquote(lexeme) == unquote(wanted)
    return numbers_agree(lexeme, wanted)


def _same(value: Node, wanted: Node, numbers_agree: Agree) -> bool:
    """Whether two values are the same.

    The recursion is bounded, since `read` refuses more than MAX_DEPTH levels.
    """
    if isinstance(value, str) and isinstance(wanted, str):
        return _leaves_agree(value, wanted, numbers_agree)
    if isinstance(value, list) and isinstance(wanted, list):
        return _same_items(value, wanted, numbers_agree)
    if not isinstance(value, Braces) or not isinstance(wanted, Braces):
        return False
    if len(value.keys) != len(wanted.keys):
        return False
    if wanted.keys:
        return _same_dict(value, wanted, numbers_agree)
    return _same_set(value, wanted, numbers_agree)


def _same_items(value: list[Node], wanted: list[Node], numbers_agree: Agree) -> bool:
    if len(value) != len(wanted):
        return False
    pairs = zip(value, wanted, strict=True)
    return all(_same(item, other, numbers_agree) for item, other in pairs)


def _same_dict(value: Braces, wanted: Braces, numbers_agree: Agree) -> bool:
    mine = dict(zip(map(_canonical, value.keys), value.items, strict=True))
    theirs = dict(zip(map(_canonical, wanted.keys), wanted.items, strict=True))
    if mine.keys() != theirs.keys():
        return False
    return all(_same(mine[key], theirs[key], numbers_agree) for key in theirs)


def _same_set(value: Braces, wanted: Braces, numbers_agree: Agree) -> bool:
    """Whether two sets are equal, as far as numbers agree.

    Members that only one of them has must agree with members of the other.
    """
    mine = {_canonical(item): item for item in value.items}
    theirs = {_canonical(item): item for item in wanted.items}
    # Sorted: pairing is greedy, and the order of a Python set differs from process to process.
    only_mine = sorted(mine.keys() - theirs.keys())
    only_theirs = sorted(theirs.keys() - mine.keys())
    if len(only_mine) != len(only_theirs):
        return False

    def agree(item: Node, other: Node) -> bool:
        return _same(item, other, numbers_agree)

    extra = [mine[key] for key in only_mine]
    missing = [theirs[key] for key in only_theirs]
    return find_unpaired(extra, missing, agree) is None


def _canonical(value: Node) -> str:
    """Return a text that is the same for equal values.

    It matches items of sets and keys of dicts in any order.
    """
    if isinstance(value, str):
        if value[0] in QUOTES:
            # Quoted again, to keep the string "1" apart from the number 1.
            return json.dumps(unquote(value))
        return without_zero_fraction(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    items = map(_canonical, value.items)
    if value.keys:
        keys = map(_canonical, value.keys)
        pairs = [f"{key}:{item}" for key, item in zip(keys, items, strict=True)]
        return "{" + ",".join(sorted(pairs)) + "}"
    # A set holds an item once, however often the text repeats it.
    return "{" + ",".join(sorted(set(items))) + "}"
