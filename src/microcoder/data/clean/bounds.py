"""Reads the ranges that a statement promises, and the numbers in it."""

import math
import re
from typing import NamedTuple

# A number begins where its digits begin, and has no more than nine groups: tried anywhere else, a
# long run of digits would cost its square.
_WRITTEN_BOUND = (
    r"-?(?<!\d)(?:\d{1,3}(?:[ ,_]\d{3}){1,9}\b|\d++(?:\.\d++)?)"
    r"(?:[ ]*[*x][ ]*\d++)?(?:\^[ ]*\(?\d++\)?)?"
)
"""A number as a statement writes it: `200000`, `200 000`, `2*10^5`."""
_BOUND = re.compile(
    rf"(?P<low>{_WRITTEN_BOUND})\s*<=?\s*"
    r"(?P<names>\|?[^\W\d][^<>=\n]{0,60}?"
    r"(?:\s*(?:<=?|==)\s*\|?[^\W\d][\w.|()\[\]]{0,40}){0,3})\s*<=?\s*"
    rf"(?P<high>{_WRITTEN_BOUND}(?![\w^]|[ ]?[*/][ ]?[\w(])|[^\W\d]\w*)"
)
"""A range: a number, the names between, and a number or a name."""
_WORDED_BOUND = re.compile(
    r"(?<![\w^\\])(?P<name>[A-Za-z](?:_?[a-z0-9])?)(?![\w(])[ ]*(?:,|\(| is| which is)?[ ]*"
    rf"(?:between (?P<low>{_WRITTEN_BOUND}) and (?P<high>{_WRITTEN_BOUND})(?![\w^*/])"
    r"|(?:<=|at most|no more than|not exceeding|not (?:greater|more) than|does not exceed|up to)"
    rf"[ ]*(?P<most>{_WRITTEN_BOUND})(?![ ]?[*/^<+-]|\w))"
)
"""A range in words: "n, at most 100"; "n between 1 and 100"; "n (n <= 100)"."""
SHORT_WORDS = frozenset(
    {
        "a",
        "an",
        "as",
        "at",
        "be",
        "by",
        "do",
        "go",
        "he",
        "if",
        "in",
        "is",
        "it",
        "me",
        "my",
        "no",
        "of",
        "on",
        "or",
        "so",
        "to",
        "up",
        "us",
        "we",
    }
)
"""Words that are as short as the names of numbers."""
_BETWEEN_NAMES = re.compile(r"\s*(?:[,;]|<=?|==)\s*|\s+and\s+")
_LONGEST_NAME = 40
"""Characters of a name."""
# What "less" can be written with; most texts without a bound have none of these.
_SIGNS = ("<", "≤", "⩽", "&le;", "\\")
_NUMBER = re.compile(r"(-?\d{1,30}(?:\.\d{1,30})?)(?:[*x](\d{1,30}))?(?:\^\(?(\d{1,2})\)?)?")
"""A number without gaps: base or factor, what is multiplied by it, exponent."""
_MOST_EXPONENT = 30
"""A larger exponent is no bound."""
_LOST_POWER = re.compile(r"10[1-9]\d?")
"""A power of ten that lost its superscript on the way: of two copies of a problem one may have."""


class Bound(NamedTuple):
    """A stated range of one name. Its ends are numbers as they are written: `< 1000` is kept as
    1000."""

    name: str
    low: float
    high: float


def parse_bounds(text: str) -> tuple[Bound, ...]:
    """Return the ranges in a statement, such as `1 <= n <= 10^5`.

    Ranges that end at another name are left out. In a chain such as `1 <= k <= n <= 100` each name
    has the chain's ends.
    """
    bounds: dict[str, Bound] = {}
    for bound in list_bounds(text):
        bounds.setdefault(bound.name, bound)
    return tuple(bounds.values())


def list_bounds(text: str) -> tuple[Bound, ...]:
    """Return all ranges as `parse_bounds` does, which returns the first of each name."""
    if not any(sign in text for sign in _SIGNS):
        return ()
    bounds = []
    for stated in _BOUND.finditer(plain_formulae(text)):
        low = read_number(stated["low"])
        high = read_number(stated["high"])
        if low is None or high is None or low > high:
            continue
        for name in _BETWEEN_NAMES.split(stated["names"]):
            name = name.strip("` $|")
            if name and len(name) <= _LONGEST_NAME:
                bounds.append(Bound(name, low, high))
    return tuple(bounds)


def list_worded_bounds(text: str) -> tuple[Bound, ...]:
    """Return the ranges of short names that a statement gives in words, or from one side only."""
    bounds = []
    for stated in _WORDED_BOUND.finditer(plain_formulae(text)):
        high = read_number(stated["high"] or stated["most"])
        low = -math.inf
        if stated["low"] is not None:
            low = read_number(stated["low"]) or 0
        if high is not None and low <= high and stated["name"].lower() not in SHORT_WORDS:
            bounds.append(Bound(stated["name"], low, high))
    return tuple(bounds)


def plain_formulae(text: str) -> str:
    """Return a text with its formulae in ASCII: `<=`, `*`, `^`, no `$`."""
    # Not where letters follow: these commands begin as `\left` and others do.
    text = re.sub(r"\\leq?(?:slant)?(?![a-zA-Z])|≤|⩽|&le;", "<=", text)
    text = re.sub(r"\\(?:cdot|times)(?![a-zA-Z])|⋅|×|·", "*", text)
    # A bold name is a name, `10**5` a power.
    bold = r"(?<![\w*)])\*\*(?=[^\s*])([^*\n]{1,60}?)(?<=[^\s*])\*\*(?![\w*])"
    text = re.sub(bold, r"\1", text).replace("**", "^")
    text = re.sub(r"\\[,;!: ]|\{,\}|\\text\w*|\\mathrm", "", text)
    # From the first space of a run on: anywhere else, a long run would cost its square.
    text = re.sub(r"(?<![ \t])[ \t]*\^[ \t]*", "^", text)
    text = re.sub(r"\^\{(-?\d+)\}", r"^\1", text)
    text = text.replace("{", "").replace("}", "")
    text = text.replace("$", "").replace("`", "")
    return text.replace("<=<=", "<=").replace("\\lt", "<")


def find_numbers(text: str) -> list[int]:
    """Return the whole numbers in a text that fit 64 bits, such as 200000 for `2 * 10^5`."""
    numbers = []
    for written in re.findall(_WRITTEN_BOUND, plain_formulae(text)):
        number = read_number(written)
        if number is None or number % 1 != 0:
            continue
        if abs(number) < 1 << 63:
            numbers.append(int(number))
    return numbers


def read_number(text: str) -> float | None:
    """Return the value of a number that is written as in a bound, such as `2 * 10^5`.

    None if it is not a number.
    """
    text = text.strip(" .,")
    text = re.sub(r"[ ,_](?=\d{3}\b)", "", text)
    text = text.replace(" ", "")
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    first = float(match[1])
    factor = match[2]
    power = match[3]
    if factor and not power and _LOST_POWER.fullmatch(factor):
        power = factor.removeprefix("10")
        factor = "10"
    exponent = int(power or 1)
    if exponent > _MOST_EXPONENT:
        return None
    try:
        if factor:
            number = first * float(factor) ** exponent
        else:
            # -10^9 is minus ten to the nine.
            sign = -1 if first < 0 else 1
            number = sign * abs(first) ** exponent
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
