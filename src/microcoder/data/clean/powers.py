"""Puts back powers whose exponent lost its superscript, `n <= 105` for 10^5.

That takes evidence:

| seen | why it is enough |
|---|---|
| `2 * 104` at the end of a range, `109 + 7`, `[-231, 231 - 1]`, `within 10-5` | nobody does it |
| `x < 216`, `-228 <= x <= 228` in a set that has lost all | ranges end below powers of two |
| the set is known to have lost all of them (`LOST_IN`) | counted over all of its rows |
"""

import re
from collections.abc import Callable
from typing import NamedTuple

_LESS = r"(?:<=?|≤|⩽|>=?|≥|⩾|\\[lg]eq?(?:slant)?(?![a-z])|&[lg]t;=?)"
"""A sign of comparison."""
_LOST = re.compile(
    r"(?<![\w.^*\\])(?P<sign>-?)(?P<factor>\d[ ]?(?:\*|×|⋅|·|x|\\times|\\cdot)[ `]{0,3})?"
    r"10(?P<power>[2-9]|1[0-8]|100)(?![\w.^]|,\d)"
)
"""A number that may be a power of ten."""
_GAP = r"[ `*$]{0,6}"
_BEHIND = re.compile(
    rf"{_LESS}{_GAP}$|[\[(]{_GAP}-?[\d^*, ]{{1,20}}?,{_GAP}$"
    rf"|\b(?:between|from)\b[^.\n]{{1,40}} (?:and|to){_GAP}$"
    rf"|\b(?:[Aa]t most|no more than|exceeds?|less than|up to|maximum of){_GAP}$"
    rf"|\bmin\([^()\n]{{1,30}},{_GAP}$"
)
"""Words before the end of a range."""
_AHEAD = re.compile(rf"{_GAP}{_LESS}|{_GAP},{_GAP}-?[\d^*(][^\])\n]{{0,20}}[\])]")
"""Words after the beginning of a range."""
_MODULUS = re.compile(r"(?<![\w.^*])10(?P<power>9)(?=[ ]*\+[ ]*[79]\b)")
_MACHINE = re.compile(
    r"(?<![\w.^*])2(?P<power>31|32|63|64|(?:(?<=[<=] 2)|(?<=exceed 2))[1-6]\d)(?=[ ]*-[ ]*1\b)"
)
"""The largest value of a machine's integer."""
_MACHINE_LOW = re.compile(rf"(?<=-)2(?P<power>31|63)(?={_GAP}{_LESS}|,[ ]2\^)")
"""Its smallest value."""
_TOLERANCE = re.compile(
    r"(?P<before>\b(?:within|errors?\b[^.\n]{0,40}?|precision\b[^.\n]{0,20}?"
    r"|tolerance\b[^.\n]{0,20}?|difference\b[^.\n]{0,12}? less than)[ ]*`?)"
    r"10-(?P<power>[1-9]|1[0-2])(?!\d)"
    r"(?=[^\n]{0,40}\b(?:of|answer|error|accept|relative|absolute)|`?[.)\n])"
)
_OF_TWO = re.compile(r"(?<![\w.^*\\])(?P<sign>-?)2(?P<power>[1-5]\d|6[0-4])(?![\w.^]|,\d)")
"""A number that may be a power of two."""
_BELOW = re.compile(r"(?:<|less than)[ `$]{0,4}$")
_LONGEST_BELOW = 14
"""Characters before a number in which `_BELOW` is looked for."""
_MACHINE_POWERS = ("31", "32", "63", "64")
_HAS_POWER = re.compile(r"(?<![\w.])(?:10|2)[ }]?(?:\^|\*\*)[ ]?\{?\d|(?<![\w.])(?:10|2)[⁰¹²³⁴-⁹]")
"""A power that is written as one."""
LOST_IN = frozenset({"leetcodedataset", "deepseek_leetcode"})
"""Formats whose published rows have lost every superscript.

1,278 of their 2,298 statements end a range in `105` or alike, and the 38 with a power were written
as `10^5` by their author.
"""
_WINDOW = 60
"""Characters around a number that say whether it ends a range."""
_SURE = (
    (_MODULUS, "a modulus"),
    (_MACHINE, "a machine's integer"),
    (_MACHINE_LOW, "a machine's integer"),
)
"""Numbers that nobody writes without meaning a power, and the evidence that they are."""


class RestoredText(NamedTuple):
    """A text with its lost powers restored."""

    text: str
    why: tuple[str, ...]
    """Evidence for the change; empty where nothing was changed."""


def restore_powers(text: str, *, has_lost_all: bool = False) -> RestoredText:
    """Return the text with powers whose superscript was lost, `105` for 10 to the 5th, as `10^5`.

    Args:
        text: a statement without its examples.
        has_lost_all: whether its data set has lost all superscripts (`LOST_IN`), so that less
            evidence is needed.
    """
    had_powers = _HAS_POWER.search(text) is not None
    why: list[str] = []
    # The sure ones first, since they are evidence for the others.
    for pattern, reason in _SURE:
        text = _substitute(pattern, _lift, text, why, reason)
    text = _substitute(_TOLERANCE, _lift_tolerance, text, why, "a tolerance")
    # After the sure ones, which move what stands behind them.
    ends = {match.start() for match in _LOST.finditer(text) if _ends_a_range(text, match)}
    # Where some powers were lost for sure and none was kept, all were.
    has_evidence = has_lost_all or (why and not had_powers)
    if ends and has_evidence:
        if has_lost_all:
            why.append("its set has lost all powers")
        text = _lift_at(ends, _LOST, text)
    if has_lost_all:
        text = _restore_powers_of_two(text, why)
    return RestoredText(text, tuple(dict.fromkeys(why)))


def _restore_powers_of_two(text: str, why: list[str]) -> str:
    """Return the text with lost powers of two restored where they end a range.

    Examples are `x < 216`, `-228 <= x <= 228`, and the ranges of a machine's integers.
    """
    ends = [match for match in _OF_TWO.finditer(text) if _ends_a_range(text, match)]
    written = {match[0] for match in ends}

    def is_power(match: re.Match[str]) -> bool:
        if match["power"] in _MACHINE_POWERS:
            return True
        start_of_words = max(0, match.start() - _LONGEST_BELOW)
        if _BELOW.search(text[start_of_words : match.start()]):
            return True
        number = match[0].removeprefix("-")
        is_symmetric = {number, f"-{number}"} <= written
        # 210 and 225 are round numbers, which people write as ends of a range.
        return is_symmetric and int(match["power"]) % 5 > 0

    powers = {match.start() for match in ends if is_power(match)}
    if powers:
        why.append("a range ends in a power of two")
    return _lift_at(powers, _OF_TWO, text)


def _ends_a_range(text: str, match: re.Match[str]) -> bool:
    """Whether a number is the end of a range, by the words around it."""
    # Not below zero, where a slice would count from the end.
    start_of_window = max(0, match.start() - _WINDOW)
    before = text[start_of_window : match.start()]
    after = text[match.end() : match.end() + _WINDOW]
    return _BEHIND.search(before) is not None or _AHEAD.match(after) is not None


def _lift(match: re.Match[str]) -> str:
    """Return a number as the power that it was before it lost its superscript."""
    return f"{match[0].removesuffix(match['power'])}^{match['power']}"


def _lift_tolerance(match: re.Match[str]) -> str:
    return f"{match['before']}10^-{match['power']}"


def _lift_at(starts: set[int], pattern: re.Pattern[str], text: str) -> str:
    """Return the text in which the numbers at these offsets are written as powers."""

    def lift(match: re.Match[str]) -> str:
        return _lift(match) if match.start() in starts else match[0]

    return pattern.sub(lift, text)


def _substitute(
    pattern: re.Pattern[str],
    lift: Callable[[re.Match[str]], str],
    text: str,
    why: list[str],
    reason: str,
) -> str:
    """Return the text with `lift` applied to all matches; if there are any, add the reason."""
    changed, count = pattern.subn(lift, text)
    if count:
        why.append(reason)
    return changed
