"""Whether two texts write the same Python or JSON value: a list, tuple, set, dict or string.

The texts are read, never evaluated. They are compared lexeme by lexeme, so that an output of any size is read no
further than it is right. Only where order is free (sets, dicts) or a comma may be too much is a value built.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from microcoder.evaluator.lexemes import MAX_DEPTH, QUOTES, Braces, Node, Unreadable, is_value, lexemes, read, unquote
from microcoder.evaluator.matching import match_all
from microcoder.evaluator.numbers import without_zero_fraction
from microcoder.evaluator.streams import WHITE_SPACE, Agree, agree_in_step

_MAX_CHARACTERS = 1 << 22
"""Of a value that has to be built."""
_MOST_TIMES_ESCAPED = 12
"""A character may be written as two escapes of six."""
_ENDS = {"[": "]", "(": ")", "{": "}"}
_LAST_COMMA = re.compile(rf",[{WHITE_SPACE}]*+[\])}}]")
_MARKS = frozenset("[](){},:")
_IN_BRACKETS = re.compile(r"(?:[\[({][^\n]*+(?<=[\])}])(?:\n++|\Z))++")
_CONSTANT = re.compile(r"(?<=[\[({,:])(?:true|false|null)(?=[\])},:])")
_CONSTANTS = {"true": "True", "false": "False", "null": "None"}
_SIDE_BY_SIDE = re.compile(rf"[{WHITE_SPACE.replace(chr(10), '')}]|[^\[({{,:\n][\[({{]|[\])}}][^\])}},:\n]")
_NO_BRACKETS = re.compile(r"[^\[\](){}\n]++")
_AS_LISTS = str.maketrans("()", "[]")
_BESIDE_MARKS = re.compile(r"(?<=[\[\](){},:])[ \t]++(?!\n)|(?<![ \t])[ \t]++(?=[\[\](){},:])")


def same_literal(text: str, expected: str, numbers_agree: Agree) -> bool:
    """Compare two texts as values; False if the expected one is neither a container nor a quoted string.

    Args:
        text: what a program printed.
        expected: what it should have printed.
        numbers_agree: decides about two words that differ.
    """
    text, expected = text.strip(WHITE_SPACE), expected.strip(WHITE_SPACE)
    if len(expected) < 2 or not text:
        return False
    if expected[0] in QUOTES and expected[-1] == expected[0]:
        return _same_string(text, expected)
    if _ENDS.get(expected[0]) != expected[-1] or _ENDS.get(text[0]) != text[-1]:
        return False
    try:
        if _same_in_step(text, expected, numbers_agree):
            return True
        may_differ = "{" in expected or _LAST_COMMA.search(expected) or _LAST_COMMA.search(text)
        return bool(may_differ) and _same_when_built(text, expected, numbers_agree)
    except Unreadable:
        return False


def same_compacted(text: str, expected: str) -> bool:
    """Whether two normal texts of values line by line, without strings, differ in spaces beside brackets and commas,
    in tuples and lists, and in how constants are spelled.

    It looks at the whole text at once, whereas `same_literal` takes a while for each of many lines.
    """
    if any(quote in text or quote in expected for quote in QUOTES) or not _IN_BRACKETS.fullmatch(expected):
        return False
    if any(sum(map(text.count, marks)) != sum(map(expected.count, marks)) for marks in ("\n", ",", "[(", "])")):
        return False  # So that there is no more to be cut out than what is expected allows.
    mine, theirs = _BESIDE_MARKS.sub("", text), _BESIDE_MARKS.sub("", expected)
    if mine == theirs:
        return True
    return _spell_alike(mine) == _spell_alike(theirs) and _are_values(mine) and _are_values(theirs)


def _spell_alike(text: str) -> str:
    if any(constant in text for constant in _CONSTANTS):
        text = _CONSTANT.sub(lambda found: _CONSTANTS[found[0]], text)
    return text.translate(_AS_LISTS)


def _are_values(text: str) -> bool:
    """Whether every line of a compacted text is a value by its brackets: `(1 2)(3)` is two, in another notation."""
    if _SIDE_BY_SIDE.search(text):
        return False
    brackets = _NO_BRACKETS.sub("", text)
    for _ in range(MAX_DEPTH):
        shorter = brackets.replace("[]", "").replace("()", "").replace("{}", "")
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    return not brackets.strip("\n")


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


def _same_in_step(text: str, expected: str, numbers_agree: Agree) -> bool:
    def agree(lexeme: str, wanted: str) -> bool:
        return _leaves_agree(lexeme, wanted, numbers_agree)

    if not agree_in_step(lexemes(text), lexemes(expected), agree) or not is_value(expected):
        return False
    # Tuples were read as lists: what opens as a tuple must end as one.
    return "(" not in text or is_value(text)


def _same_when_built(text: str, expected: str, numbers_agree: Agree) -> bool:
    if max(len(text), len(expected)) > _MAX_CHARACTERS:
        return False
    # A comma before each closing bracket is all that a right output may have more.
    return _same(read(text, 2 * len(expected)), read(expected, len(expected)), numbers_agree)


def _leaves_agree(lexeme: str, wanted: str, numbers_agree: Agree) -> bool:
    if lexeme == wanted:
        return True
    if lexeme in _MARKS or wanted in _MARKS:
        return False
    if lexeme[0] in QUOTES or wanted[0] in QUOTES:
        return lexeme[0] in QUOTES and wanted[0] in QUOTES and unquote(lexeme) == unquote(wanted)
    return numbers_agree(lexeme, wanted)


def _same(value: Node, wanted: Node, numbers_agree: Agree) -> bool:
    """Compare two values; no deeper than `lexemes.MAX_DEPTH`."""
    if isinstance(value, str) or isinstance(wanted, str):
        return isinstance(value, str) and isinstance(wanted, str) and _leaves_agree(value, wanted, numbers_agree)
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(
            _same(mine, theirs, numbers_agree) for mine, theirs in zip(value, wanted, strict=True)
        )
    if not (isinstance(value, Braces) and isinstance(wanted, Braces)) or len(value.keys) != len(wanted.keys):
        return False
    if wanted.keys:
        mine = dict(zip(map(_canonical, value.keys), value.items, strict=True))
        theirs = dict(zip(map(_canonical, wanted.keys), wanted.items, strict=True))
        return mine.keys() == theirs.keys() and all(_same(mine[key], theirs[key], numbers_agree) for key in theirs)
    return _same_set(value.items, wanted.items, lambda one, other: _same(one, other, numbers_agree))


def _same_set(items: list[Node], wanted: list[Node], agree: Callable[[Node, Node], bool]) -> bool:
    mine = {_canonical(item): item for item in items}
    theirs = {_canonical(item): item for item in wanted}
    rest = [mine[key] for key in mine.keys() - theirs.keys()]
    missing = [theirs[key] for key in theirs.keys() - mine.keys()]
    return len(rest) == len(missing) and match_all(rest, missing, agree) is None


def _canonical(value: Node) -> str:
    """Return a text that equal values share; for what may come in any order."""
    if isinstance(value, str):
        return json.dumps(unquote(value)) if value[0] in QUOTES else without_zero_fraction(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if value.keys:
        pairs = zip(map(_canonical, value.keys), map(_canonical, value.items), strict=True)
        return "{" + ",".join(sorted(f"{key}:{item}" for key, item in pairs)) + "}"
    return "{" + ",".join(sorted(set(map(_canonical, value.items)))) + "}"
