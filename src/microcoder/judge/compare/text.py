"""Texts of any size as streams of tokens and lines, and two streams compared step by step.

A program may write 16 MiB to make its judge slow or large. So a text is cut window by window, only a few thousand
pieces are in memory at once, and a comparison ends at the first difference.

Numbers: spellings of the same integer agree. Without a tolerance of the problem, a real number may be off by 1e-6 (a
returned one 1e-5), absolute or relative, but:

- never by more than half a hundredth, so that neither a half nor a cent is lost however large the number;
- one expected in fixed-point notation with up to five decimals by no more than half its last place;
- one expected with an exponent only relatively: 0.0 is not 1e-9, unless both are a double's rounding of zero;
- an integer agrees with a real number only within 1e-6 absolutely and relatively: 3 for 3.0000001, never 0 for 5e-7.

Beyond what a double holds, two units in its last place are always allowed, and 1e-12 of a number as long as it still
rounds to the one expected. A tolerance that the problem states is taken as stated.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

WHITE_SPACE = " \t\n\r\v\f"
"""Separators of tokens: ASCII white space; `\\x1c` to `\\x1f`, which `str.split` splits at as well, is text."""

_WINDOW = 1 << 16
_STEP = 1 << 11
_SPACE = re.compile(f"[{WHITE_SPACE}]")
_TOKEN = re.compile(f"[^{WHITE_SPACE}]+")
_LINE = re.compile(f"[^{WHITE_SPACE}][^\\n]*")
_TRAILING = re.compile("(?<![ \t\v\f])[ \t\v\f]++(?=\n)")
_SPLIT_ELSEWHERE = re.compile("[\x1c-\x1f]")

Agree = Callable[[str, str], bool]
"""(token or line, expected one) -> whether they agree; only called if the two differ as text."""


def tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a text: what white space separates."""
    return chain.from_iterable(_token_windows(text))


def split(line: str) -> list[str]:
    """Return the tokens of a short text."""
    return (
        line.split()
        if line.isascii() and not _SPLIT_ELSEWHERE.search(line)
        else _TOKEN.findall(line)
    )


def count_tokens(text: str) -> int:
    """Return how many tokens a text has."""
    return sum(map(len, _token_windows(text)))


def lines(text: str) -> Iterator[str]:
    """Yield the lines of a normalised text (see `normalise`) that are not blank, without leading white space."""
    return chain.from_iterable(map(_LINE.findall, _windows(text, "\n")))


def all_lines(text: str) -> Iterator[str]:
    """Yield the lines unchanged, blank ones included."""
    return (
        chain.from_iterable(
            window.removeprefix("\n").split("\n") for window in _windows(text, "\n")
        )
        if text
        else iter(())
    )


def normalise(text: str) -> str:
    r"""Return a text with `\n` line ends, without byte order mark, leading blank lines and trailing white space."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.rstrip(WHITE_SPACE)
    if not text or text[0] not in WHITE_SPACE:
        return text
    num_spaces = len(text) - len(text.lstrip(WHITE_SPACE))
    return text[text.rfind("\n", 0, num_spaces) + 1 :]


def same_lines(text: str, wanted: str) -> bool:
    """Whether two normalised texts are the same but for white space at line ends."""
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
    return len(some) == len(others) and all(
        a == b or agree(a, b) for a, b in zip(some, others, strict=True)
    )


def never(token: str, wanted: str) -> bool:
    """Return False: an `Agree` by which only equal texts agree."""
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


TOLERANCE = 1e-6
_INTEGERS_TOLERANCE = 1e-6
_ZERO_TOLERANCE = 1e-9
_FURTHEST = 0.005
"""Largest absolute error of a fixed-point number without a stated tolerance: half a hundredth."""
_FEW_DECIMALS = 5
_NOISE = 1e-12
_LEAST_ROUNDING, _MOST_ROUNDING = 2.0**-54, 1e-15
"""Range of rounding errors taken for 0: those of numbers around 1 that cancel, such as `0.1 + 0.2 - 0.3`."""

_INTEGER = re.compile(r"[+-]?[0-9]++")
_REAL = re.compile(r"[+-]?(?:[0-9]++\.([0-9]*+)|\.([0-9]++)|[0-9]++(?=[eE]))([eE][+-]?[0-9]++)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a real number may be off."""

    absolute: float = TOLERANCE
    relative: float = TOLERANCE
    is_stated: bool = False
    """Whether the problem states the tolerance: then it applies to integers, too, and to numbers of any size."""


BY_DEFAULT = Tolerance()


def is_number(token: str) -> bool:
    """Whether a token is an integer or a real number, as programs print them."""
    return bool(_INTEGER.fullmatch(token) or _REAL.fullmatch(token))


def without_zero_fraction(token: str) -> str:
    """Return `3` for `3.`, `3.0` and `3`; other tokens as they are."""
    whole, point, fraction = token.partition(".")
    return whole if point and not fraction.strip("0") and _INTEGER.fullmatch(whole) else token


def numbers_agree(token: str, wanted: str) -> bool:
    """Whether a token is the expected number by the default tolerance; False if `wanted` is not a number."""
    if _INTEGER.fullmatch(wanted):
        whole = without_zero_fraction(token)
        return whole == wanted or (whole in ("0", "-0") and wanted in ("0", "-0"))
    found = _REAL.fullmatch(wanted)
    if found is None:
        return _both_not_finite(token, wanted)
    is_integer = bool(_INTEGER.fullmatch(token))
    if not is_integer and not _REAL.fullmatch(token):
        return False
    value, expected = float(token), float(wanted)
    return _is_near(
        value, expected, BY_DEFAULT, is_integer=is_integer, decimals=_count_decimals(found)
    )


def numbers_agree_within(token: str, wanted: str, tolerance: Tolerance) -> bool:
    """Whether a token is the expected number, integer or real, within a stated tolerance."""
    if is_number(token) and is_number(wanted):
        return _is_within(float(token), float(wanted), tolerance)
    return _both_not_finite(token, wanted)


def values_agree(value: float, expected: float, tolerance: Tolerance) -> bool:
    """Whether a returned number is the expected real number; infinities and nan agree only with themselves."""
    if not math.isfinite(expected):
        return value == expected or (math.isnan(expected) and value != value)
    try:
        number = float(value)
    except OverflowError:
        return False
    if tolerance.is_stated:
        return _is_within(number, expected, tolerance)
    found = _REAL.fullmatch(repr(expected))
    decimals = _count_decimals(found) if found else None
    if decimals is None and round(expected, _FEW_DECIMALS) == expected:
        decimals = (
            _FEW_DECIMALS if abs(expected) < 1 else None
        )  # Python writes LeetCode's 0.00003 with an exponent.
    return _is_near(
        number, expected, tolerance, is_integer=isinstance(value, int), decimals=decimals
    )


def _count_decimals(real: re.Match[str]) -> int | None:
    """Return the decimals of a number in fixed-point notation, None for one with an exponent."""
    return None if real[3] else len(real[1] or real[2] or "")


def _is_near(
    value: float, expected: float, tolerance: Tolerance, *, is_integer: bool, decimals: int | None
) -> bool:
    if value == expected:
        return math.isfinite(value)  # Two numbers beyond a double's range are equal only as texts.
    off, size = abs(value - expected), abs(expected)
    has_exponent = decimals is None
    if has_exponent and _LEAST_ROUNDING <= size <= _MOST_ROUNDING and abs(value) <= _MOST_ROUNDING:
        return True
    if is_integer:
        least = 0.0 if has_exponent else _ZERO_TOLERANCE
        return off <= max(min(_INTEGERS_TOLERANCE, _INTEGERS_TOLERANCE * size), least) + math.ulp(
            size
        )
    near = tolerance.relative * size
    if decimals is None:
        return off <= near + 2 * math.ulp(size)
    near, noise = min(near, _FURTHEST), _NOISE * size
    if decimals <= _FEW_DECIMALS:
        half_a_place = 0.5 * 10.0**-decimals
        near, noise = min(near, half_a_place), min(noise, half_a_place)
    return off <= max(tolerance.absolute, near, noise) + 2 * math.ulp(size)


def _is_within(value: float, expected: float, tolerance: Tolerance) -> bool:
    if not (math.isfinite(value) and math.isfinite(expected)):
        return False
    size = abs(expected)
    return abs(value - expected) <= max(
        tolerance.absolute, tolerance.relative * size
    ) + 2 * math.ulp(size)


def _both_not_finite(token: str, wanted: str) -> bool:
    if not (_NOT_FINITE.fullmatch(wanted) and _NOT_FINITE.fullmatch(token)):
        return False
    value, expected = float(token), float(wanted)
    return value == expected or (math.isnan(value) and math.isnan(expected))
