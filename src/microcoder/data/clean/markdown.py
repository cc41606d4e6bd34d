"""Takes a statement apart into prose and the rest: code blocks, code in a line, formulae."""

import re
from collections.abc import Callable, Iterator

# Line by line and with bounds: what is opened over and over and never closed must not cost its
# square.
FENCE = (
    r"(?P<fence>^(?P<ticks>`{3,60}|~{3,60})[^\n]*+\n"
    r"(?:(?!(?P=ticks)[ \t]*$)[^\n]*+\n)*+(?P=ticks)[ \t]*$)"
)
"""A code block."""
INLINE_CODE = r"(?P<code>(?<!`)(?P<quotes>`{1,2})(?!`)[^\n]+?(?<!`)(?P=quotes)(?!`))"
"""Code in a line."""
MATH = r"(?P<math>\$\$.+?\$\$|(?<![\\$])\$(?=\S)[^$\n]{1,300}?(?<=\S)\$(?!\d))"
"""A formula."""
CODE = re.compile(f"{FENCE}|{INLINE_CODE}", re.DOTALL | re.MULTILINE)
"""Code of either kind."""
CODE_OR_MATH = re.compile(f"{FENCE}|{INLINE_CODE}|{MATH}", re.DOTALL | re.MULTILINE)
"""Code or a formula."""
_ADDRESS = re.compile(r"https?://\S+|!?\[[^\]\n]{0,500}\]\([^)\n]{0,2000}\)")
"""A web address, or a link in Markdown."""
_LEAST_TICKS = 3
"""Backticks of the shortest fence."""


def parts(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a text in order, each with whether it is a match of the pattern."""
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        yield match[0], True
        end = match.end()
    if end < len(text):
        yield text[end:], False


def outside(
    text: str,
    change: Callable[[str], str],
    *,
    pattern: re.Pattern[str] = CODE,
) -> str:
    """Return the text with `change` applied to every piece that the pattern does not match."""
    changed = []
    for piece, matched in parts(text, pattern):
        changed.append(piece if matched else change(piece))
    return "".join(changed)


def prose(text: str) -> str:
    """Return the statement without code, formulae and web addresses: its natural language."""
    kept = []
    for piece, matched in parts(text, CODE_OR_MATH):
        # A space, so that the words on both sides stay two.
        kept.append(" " if matched else piece)
    return _ADDRESS.sub(" ", "".join(kept))


def write_fence(code: str) -> str:
    """Return code as a Markdown code block whose fence is longer than any fence inside it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=_LEAST_TICKS - 1)
    ticks = "`" * (longest + 1)
    return f"{ticks}\n{code}\n{ticks}"


def replace_between(text: str, opening: str, closing: str, into: str = "") -> str:
    """Return the text with everything from an opening to the next closing replaced.

    An opening without a closing stays. Case is ignored. The time is linear in the text, however
    many openings there are.
    """
    openings = re.compile(re.escape(opening), re.IGNORECASE)
    closings = re.compile(re.escape(closing), re.IGNORECASE)
    kept: list[str] = []
    position = 0
    while start := openings.search(text, position):
        end = closings.search(text, start.end())
        if end is None:
            break
        kept += [text[position : start.start()], into]
        position = end.end()
    kept.append(text[position:])
    return "".join(kept)
