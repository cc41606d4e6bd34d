"""Parts of a statement that are no prose: code, formulae. Changes to prose leave them alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

# Line by line and with bounds: what is opened over and over and never closed must not cost its square.
FENCE = r"(?P<fence>^(?P<ticks>`{3,60}|~{3,60})[^\n]*+\n(?:(?!(?P=ticks)[ \t]*$)[^\n]*+\n)*+(?P=ticks)[ \t]*$)"
INLINE_CODE = r"(?P<code>(?<!`)(?P<quotes>`{1,2})(?!`)[^\n]+?(?<!`)(?P=quotes)(?!`))"
MATH = r"(?P<math>\$\$.+?\$\$|(?<![\\$])\$(?=\S)[^$\n]{1,300}?(?<=\S)\$(?!\d))"
CODE = re.compile(f"{FENCE}|{INLINE_CODE}", re.DOTALL | re.MULTILINE)
CODE_OR_MATH = re.compile(f"{FENCE}|{INLINE_CODE}|{MATH}", re.DOTALL | re.MULTILINE)


def parts(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield the text in order as pieces and whether each matched the pattern."""
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        yield match[0], True
        end = match.end()
    if end < len(text):
        yield text[end:], False


def outside(text: str, change: Callable[[str], str], *, pattern: re.Pattern[str] = CODE) -> str:
    """Apply a change to everything that the pattern does not match."""
    return "".join(piece if matched else change(piece) for piece, matched in parts(text, pattern))


def prose(text: str) -> str:
    """Return the statement without code, formulae and web addresses: what a reader would call language."""
    words = outside(text, lambda piece: piece, pattern=CODE_OR_MATH)
    kept = "".join(" " if matched else piece for piece, matched in parts(words, CODE_OR_MATH))
    return re.sub(r"https?://\S+|!?\[[^\]\n]{0,500}\]\([^)\n]{0,2000}\)", " ", kept)


def write_fence(code: str) -> str:
    """Return text as a block of code, its fence longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}\n{code}\n{ticks}"


def replace_between(text: str, opening: str, closing: str, into: str = "") -> str:
    """Return the text with everything from each opening to the closing after it replaced; what is not closed stays.

    In time linear in the text, however often it is opened. Case of letters does not matter.
    """
    starts, ends = (re.compile(re.escape(mark), re.IGNORECASE) for mark in (opening, closing))
    kept, at = [], 0
    while (start := starts.search(text, at)) and (end := ends.search(text, start.end())):
        kept += [text[at : start.start()], into]
        at = end.end()
    return "".join(kept) + text[at:]
