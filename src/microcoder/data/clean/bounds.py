"""The ranges in a statement, and powers whose exponent lost its superscript, `n <= 105` for 10^5.

Lost powers are put back if there is evidence for them:

| seen | why it is enough |
|---|---|
| `2 * 104` at the end of a range, `109 + 7`, `220 - 1`, `within 10-5` | nobody writes these so |
| the set is known to have lost all of them (`LOST_IN`) | counted over all of its rows |
| `-228 <= x <= 228`, `[-231, 2^31 - 1]` | nobody writes these so |
| `x < 216`, `1 <= x <= 231` in a set that has lost all | ranges end below powers of two, and at a machine's integers |
| a further end such as `x <= 230` beside one of these | the same text |
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

_LESS = r"(?:<=?|≤|⩽|>=?|≥|⩾|\\[lg]eq?(?:slant)?(?![a-z])|&[lg]t;=?)"
_LOST = re.compile(
    r"(?<![\w.^*\\])(?P<sign>-?)(?P<factor>\d[ ]?(?:\*|×|⋅|·|x|\\times|\\cdot)[ `]{0,3})?"
    r"10(?P<power>[2-9]|1[0-8]|100)(?![\w.^]|,\d)"
)
_GAP = r"[ `*$]{0,6}"
_BEHIND = re.compile(
    rf"{_LESS}{_GAP}$|[\[(]{_GAP}-?[\d^*, ]{{1,20}}?,{_GAP}$|\b(?:between|from)\b[^.\n]{{1,40}} (?:and|to){_GAP}$"
    rf"|\b(?:[Aa]t most|no more than|exceeds?|less than|up to|maximum of){_GAP}$"
    rf"|\bmin\([^()\n]{{1,30}},{_GAP}$"
)
_AHEAD = re.compile(rf"{_GAP}{_LESS}|{_GAP},{_GAP}-?[\d^*(][^\])\n]{{0,20}}[\])]")
_MODULUS = re.compile(r"(?<![\w.^*])10(?P<power>9)(?=[ ]*\+[ ]*[79]\b)")
_MACHINE = re.compile(r"(?<![\w.^*])2(?P<power>31|32|63|64|(?:(?<=[<=] 2)|(?<=exceed 2))[1-6]\d)(?=[ ]*-[ ]*1\b)")
_MACHINE_LOW = re.compile(rf"(?<=-)2(?P<power>31|63)(?={_GAP}{_LESS})")
_TOLERANCE = re.compile(
    r"(?P<before>\b(?:within|errors?\b[^.\n]{0,40}?|precision\b[^.\n]{0,20}?|tolerance\b[^.\n]{0,20}?"
    r"|difference\b[^.\n]{0,12}? less than)[ ]*`?)"
    r"10-(?P<power>[1-9]|1[0-2])(?!\d)(?=[^\n]{0,40}\b(?:of|answer|error|accept|relative|absolute)|`?[.)\n])"
)
_MACHINE_END = re.compile(r"(?<![\w.^*])-2(?P<power>31|63)(?![\w^])")
_OF_TWO = re.compile(r"(?<![\w.^*\\])(?P<sign>-?)2(?P<power>[5-9]|[1-5]\d|6[0-4])(?![\w.^]|,\d)")
_HAS_POWER = re.compile(r"(?<![\w.])(?:10|2)[ }]?(?:\^|\*\*)[ ]?\{?\d|(?<![\w.])(?:10|2)[⁰¹²³⁴-⁹]")
LOST_IN = frozenset({"leetcodedataset", "deepseek_leetcode"})
"""Formats whose published rows have lost every superscript: 1,278 of their 2,298 statements end a range in `105` or
alike, and the 38 with a power were written as `10^5` by their author."""
_WINDOW = 60


class Restored(NamedTuple):
    """A text with its powers put back."""

    text: str
    why: tuple[str, ...]
    """Evidence for the change; empty where nothing was changed."""


def restore_powers(text: str, *, has_lost_all: bool = False) -> Restored:
    """Return the text with lost powers as `10^5`.

    Args:
        text: a statement without its examples.
        has_lost_all: the set that it comes from has no power of ten in any of its rows (`LOST_IN`).
    """
    had_powers = _HAS_POWER.search(text) is not None
    why: list[str] = []
    for pattern, reason in (
        (_MODULUS, "a modulus"), (_MACHINE, "a machine's integer"), (_MACHINE_LOW, "a machine's integer"),
    ):  # fmt: skip
        text = _sub(pattern, _lift, text, why, reason)
    text = _sub(_TOLERANCE, lambda found: f"{found['before']}10^-{found['power']}", text, why, "a tolerance")
    ends = [found for found in _LOST.finditer(text) if _ends_a_range(text, found)]
    if ends and (has_lost_all or (why and not had_powers)):
        why += ["its set has lost all powers"] * has_lost_all
        text = _lift_at(_LOST, ends, text)
    if has_lost_all or not had_powers:
        text = _restore_powers_of_two(text, why, has_lost_all=has_lost_all)
    return Restored(text, tuple(dict.fromkeys(why)))


def _restore_powers_of_two(text: str, why: list[str], *, has_lost_all: bool) -> str:
    if "2^" in text:
        text = _sub(_MACHINE_END, _lift, text, why, "a machine's integer")
    ends = [found for found in _OF_TWO.finditer(text) if _ends_a_range(text, found)]
    if not ends:
        return text
    written = {found[0] for found in ends}

    def is_shown(found: re.Match[str]) -> bool:
        power = int(found["power"])
        is_below = re.search(r"(?:<|less than)[ `$]{0,4}$", text[max(0, found.start() - 14) : found.start()])
        is_symmetric = power > 10 and power % 5 > 0 and {f"2{power}", f"-2{power}"} <= written
        return bool(is_symmetric or (has_lost_all and power >= 10 and (is_below or power in (31, 32, 63, 64))))

    shown = [found for found in ends if is_shown(found)]
    if not shown:
        return text
    why.append("a range ends in a power of two")
    further = [found for found in ends if found not in shown and int(found["power"]) % 50 and len(found["power"]) > 1]
    return _lift_at(_OF_TWO, shown + further, text)


def _lift_at(pattern: re.Pattern[str], places: Iterable[re.Match[str]], text: str) -> str:
    at = {found.start() for found in places}
    return pattern.sub(lambda found: _lift(found) if found.start() in at else found[0], text)


def restore_moduli(text: str) -> str:
    """Return the text with `109 + 7` as `10^9 + 7`."""
    return _MODULUS.sub(_lift, text)


def _ends_a_range(text: str, found: re.Match[str]) -> bool:
    before, after = text[max(0, found.start() - _WINDOW) : found.start()], text[found.end() : found.end() + _WINDOW]
    return _BEHIND.search(before) is not None or _AHEAD.match(after) is not None


def _lift(found: re.Match[str]) -> str:
    return f"{found[0].removesuffix(found['power'])}^{found['power']}"


def _sub(pattern: re.Pattern[str], lift: Callable[[re.Match[str]], str], text: str, why: list[str], reason: str) -> str:
    changed, count = pattern.subn(lift, text)
    why += [reason] * bool(count)
    return changed


# A number begins where its digits begin, and has no more than nine groups: tried anywhere else, a long run of digits
# would cost its square.
_WRITTEN_BOUND = r"-?(?<!\d)(?:\d{1,3}(?:[ ,_]\d{3}){1,9}\b|\d++(?:\.\d++)?)(?:[ ]*[*x][ ]*\d++)?(?:\^[ ]*\(?\d++\)?)?"
_BOUND = re.compile(
    rf"(?P<low>{_WRITTEN_BOUND})\s*<=?\s*"
    r"(?P<names>\|?[^\W\d][^<>=\n]{0,60}?(?:\s*(?:<=?|==)\s*\|?[^\W\d][\w.|()\[\]]{0,40}){0,3})\s*<=?\s*"
    rf"(?P<high>{_WRITTEN_BOUND}|[^\W\d]\w*)"
)
# `n,m <= 500`: a bound, but no range. A name's last letter is enough: to try all of a long word takes its square.
UPPER = re.compile(rf"[^\W\d]\d*\|?\s*<=?\s*{_WRITTEN_BOUND}")
# What "less" can be written with; most texts without a bound have none of these.
_SIGNS = ("<", "≤", "⩽", "&le;", "\\")


class Bound(NamedTuple):
    """A stated range of one name, by its two numbers as they are written: `< 1000` is kept as 1000."""

    name: str
    low: float
    high: float


def parse_bounds(text: str) -> tuple[Bound, ...]:
    """Return the ranges in a statement, such as `1 <= n <= 10^5`; those that end at another name are left out.

    In a chain such as `1 <= k <= n <= 100` each name has the chain's ends.
    """
    if not any(mark in text for mark in _SIGNS):
        return ()
    plain = plain_formulae(text)
    bounds: dict[str, Bound] = {}
    for found in _BOUND.finditer(plain):
        low, high = read_number(found["low"]), read_number(found["high"])
        if low is None or high is None or low > high:
            continue
        for name in re.split(r"\s*(?:[,;]|<=?|==)\s*|\s+and\s+", found["names"]):
            name = name.strip("` $|")
            if name and len(name) <= 40:
                bounds.setdefault(name, Bound(name, low, high))
    return tuple(bounds.values())


def plain_formulae(text: str) -> str:
    """Return a text with its formulae in ASCII: `<=`, `*`, `^`, no `$`."""
    text = re.sub(r"\\leq?(?:slant)?(?![a-zA-Z])|≤|⩽|&le;", "<=", text)
    text = re.sub(r"\\(?:cdot|times)(?![a-zA-Z])|⋅|×|·", "*", text)
    # A bold name is a name, `10**5` a power.
    text = re.sub(r"(?<![\w*)])\*\*(?=[^\s*])([^*\n]{1,60}?)(?<=[^\s*])\*\*(?![\w*])", r"\1", text).replace("**", "^")
    text = re.sub(r"\\[,;!: ]|\{,\}|\\text\w*|\\mathrm", "", text)
    text = re.sub(r"(?<![ \t])[ \t]*\^[ \t]*", "^", text)
    text = re.sub(r"\^\{(-?\d+)\}", r"^\1", text).replace("{", "").replace("}", "")
    return text.replace("$", "").replace("`", "").replace("<=<=", "<=").replace("\\lt", "<")


def read_number(text: str) -> float | None:
    """Return the value of a number that is written as in a bound, such as `2 * 10^5`; None if it is not a number."""
    text = re.sub(r"[ ,_](?=\d{3}\b)", "", text.strip(" .,")).replace(" ", "")
    found = re.fullmatch(r"(-?\d{1,30}(?:\.\d{1,30})?)(?:[*x](\d{1,30}))?(?:\^\(?(\d{1,2})\)?)?", text)
    if not found:
        return None
    factor, power = found[2], found[3]
    if factor and not power and re.fullmatch(r"10[1-9]\d?", factor):
        # 2 * 10^5 that lost its superscript on the way: of two copies of a problem one may have lost it.
        factor, power = "10", factor[2:]
    base, exponent = float(found[1]), int(power or 1)
    if exponent > 30:
        return None
    try:
        # -10^9 is minus ten to the nine.
        number = base * float(factor) ** exponent if factor else (-1 if base < 0 else 1) * abs(base) ** exponent
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
