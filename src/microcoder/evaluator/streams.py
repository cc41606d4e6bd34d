"""Texts of any size as streams of tokens and lines, and two streams compared step by step.

A program may write 16 MiB to make its judge slow or large. So a text is cut window by window, only a few thousand
pieces are in memory at once, and a comparison ends at the first difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

WHITE_SPACE = " \t\n\r\v\f"
"""What separates tokens: ASCII white space; `\\x1c` to `\\x1f`, which `str.split` splits at as well, is text."""

_WINDOW = 1 << 16
_STEP = 1 << 11
_SPACE = re.compile(f"[{WHITE_SPACE}]")
_TOKEN = re.compile(f"[^{WHITE_SPACE}]+")
_LINE = re.compile(f"[^{WHITE_SPACE}][^\\n]*")
_TRAILING = re.compile("(?<![ \t\v\f])[ \t\v\f]++(?=\n)")
_SPLIT_ELSEWHERE = re.compile("[\x1c-\x1f]")

Agree = Callable[[str, str], bool]
"""Whether a piece agrees with the expected one, if the two differ as text."""


def tokens(text: str) -> Iterator[str]:
    """Return what lies between white space."""
    return chain.from_iterable(_token_windows(text))


def split(line: str) -> list[str]:
    """Return the tokens of a text that is known to be short."""
    return line.split() if line.isascii() and not _SPLIT_ELSEWHERE.search(line) else _TOKEN.findall(line)


def count_tokens(text: str) -> int:
    """Return how many tokens a text has."""
    return sum(map(len, _token_windows(text)))


def lines(text: str) -> Iterator[str]:
    """Return lines that are not blank, from their first character on; of a normal text (see `normalise`)."""
    return chain.from_iterable(map(_LINE.findall, _windows(text, "\n")))


def all_lines(text: str) -> Iterator[str]:
    """Return lines as they are, blank ones too."""
    return (
        chain.from_iterable(window.removeprefix("\n").split("\n") for window in _windows(text, "\n"))
        if text
        else iter(())
    )


def normalise(text: str) -> str:
    r"""Return a text with `\n` as its only line end, without a byte order mark and blank lines around."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.rstrip(WHITE_SPACE)
    if not text or text[0] not in WHITE_SPACE:
        return text
    num_spaces = len(text) - len(text.lstrip(WHITE_SPACE))
    return text[text.rfind("\n", 0, num_spaces) + 1 :]


def same_lines(text: str, wanted: str) -> bool:
    """Whether two normal texts differ in white space at the ends of lines alone."""
    if text == wanted:
        return True
    if text.count("\n") != wanted.count("\n"):
        return False
    return _without_trailing(text) == _without_trailing(wanted)


def agree_in_step(found: Iterable[str], wanted: Iterable[str], agree: Agree) -> bool:
    """Whether two streams are equally long and agree piece by piece."""
    mine, theirs = iter(found), iter(wanted)
    while True:
        some, others = list(islice(mine, _STEP)), list(islice(theirs, _STEP))
        if some != others:
            if len(some) != len(others):
                return False
            if not all(a == b or agree(a, b) for a, b in zip(some, others, strict=True)):
                return False
        if len(others) < _STEP:
            return True


def tokens_agree(text: str, wanted: str, agree: Agree) -> bool:
    """Whether two texts have equally many tokens, which agree one by one."""
    if len(text) > _WINDOW or len(wanted) > _WINDOW:
        return agree_in_step(tokens(text), tokens(wanted), agree)
    some, others = split(text), split(wanted)
    return len(some) == len(others) and all(a == b or agree(a, b) for a, b in zip(some, others, strict=True))


def never(token: str, wanted: str) -> bool:
    """Agree with nothing but the same text."""
    return False


def _token_windows(text: str) -> Iterator[list[str]]:
    is_plain = text.isascii() and not _SPLIT_ELSEWHERE.search(text)
    position = 0
    while position < len(text):
        found = _SPACE.search(text, position + _WINDOW)
        end = found.start() if found else len(text)
        window = text[position:end]
        yield window.split() if is_plain else _TOKEN.findall(window)
        position = end


def _windows(text: str, separator: str) -> Iterator[str]:
    """Cut a text into windows that begin with a separator, except the first."""
    position = 0
    while position < len(text):
        found = text.find(separator, position + _WINDOW)
        end = found if found >= 0 else len(text)
        yield text[position:end]
        position = end


def _without_trailing(text: str) -> str:
    return _TRAILING.sub("", text) if any(f"{space}\n" in text for space in " \t\v\f") else text
