"""Texts of any size as streams of tokens and lines, and two streams compared step by step.

A program may write 16 MiB to make its judge slow or large. So a text is cut window by window, only
a few thousand pieces are in memory at once, and a comparison ends at the first difference.

Numbers: spellings of the same integer agree. Without a tolerance of the problem, a real number may
be off by 1e-6 (a returned one 1e-5), absolute or relative, but:

- never by more than half a hundredth, so that neither a half nor a cent is lost however large the
  number;
- one expected in fixed-point notation with up to five decimals by no more than half its last place;
- one expected with an exponent only relatively: 0.0 is not 1e-9, unless both are a double's
  rounding of zero;
- an integer agrees with a real number only within 1e-6 absolutely and relatively: 3 for 3.0000001,
  never 0 for 5e-7.

Beyond what a double holds, two units in its last place are always allowed. So is 1e-12 of a number,
as long as it still rounds to the expected one. A tolerance that the problem states is taken as
stated.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

WHITE_SPACE = " \t\n\r\v\f"
"""Separators of tokens: ASCII white space; `\\x1c` to `\\x1f`, which `str.split` splits at as well,
is text."""

_WINDOW = 1 << 16
"""Characters of a text that are cut into pieces at a time."""
_STEP = 1 << 11
"""Pieces of two streams that are compared at a time."""
_SPACE = re.compile(f"[{WHITE_SPACE}]")
"""A separator of tokens, where a window may end."""
_TOKEN = re.compile(f"[^{WHITE_SPACE}]+")
"""A token."""
_LINE = re.compile(f"[^{WHITE_SPACE}][^\\n]*")
"""A line that is not blank, from its first character that is no white space."""
_TRAILING = re.compile("(?<![ \t\v\f])[ \t\v\f]++(?=\n)")
"""White space at the end of a line.

Possessive, and tried once a run: long runs take linear time.
"""
_SPACES_IN_LINES = " \t\v\f"
"""White space that ends no line."""
_SPLIT_ELSEWHERE = re.compile("[\x1c-\x1f]")
"""Characters at which `str.split` splits though they are text here."""

Agree = Callable[[str, str], bool]
"""(token or line, expected one) -> whether they agree; only called if the two differ as text."""


def tokens(text: str) -> Iterator[str]:
    """Yield the tokens of a text: what white space separates."""
    return chain.from_iterable(_token_windows(text))


def split(line: str) -> list[str]:
    """Return the tokens of a short text."""
    # Elsewhere `str.split` would also split at Unicode's spaces, which are text here.
    if line.isascii() and not _SPLIT_ELSEWHERE.search(line):
        return line.split()
    return _TOKEN.findall(line)


def count_tokens(text: str) -> int:
    """Return how many tokens a text has."""
    return sum(map(len, _token_windows(text)))


def lines(text: str) -> Iterator[str]:
    """Yield the lines of a normalised text that are not blank, without leading white space.

    For a normalised text see `normalise`.
    """
    return chain.from_iterable(map(_LINE.findall, _windows(text, "\n")))


def all_lines(text: str) -> Iterator[str]:
    """Yield the lines unchanged, blank ones included."""
    # Each window but the first begins with the line end that separates it from the one before.
    for window in _windows(text, "\n"):
        yield from window.removeprefix("\n").split("\n")


def normalise(text: str) -> str:
    r"""Return a text with `\n` line ends, without what stands around it.

    The byte order mark, leading blank lines and trailing white space go.
    """
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        # CRLF goes first: else each would become two line ends.
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.rstrip(WHITE_SPACE)
    if not text or text[0] not in WHITE_SPACE:
        return text
    num_spaces = len(text) - len(text.lstrip(WHITE_SPACE))
    # Blank lines go, but the first line keeps its indentation, which is part of the text.
    return text[text.rfind("\n", 0, num_spaces) + 1 :]


def same_lines(text: str, wanted: str) -> bool:
    """Whether two normalised texts are the same but for white space at line ends."""
    if text == wanted:
        return True
    # Counting is far faster than rewriting two texts of megabytes.
    if text.count("\n") != wanted.count("\n"):
        return False
    return _without_trailing(text) == _without_trailing(wanted)


def agree_in_step(pieces: Iterable[str], wanted: Iterable[str], agree: Agree) -> bool:
    """Whether two streams are equally long and agree piece by piece."""
    mine = iter(pieces)
    theirs = iter(wanted)
    while True:
        # Lists of strings are compared by C; only those that differ are walked piece by piece.
        my_step = list(islice(mine, _STEP))
        their_step = list(islice(theirs, _STEP))
        if my_step != their_step and not _lists_agree(my_step, their_step, agree):
            return False
        # Steps that agree are equally long, so a short one means that both streams have ended.
        if len(their_step) < _STEP:
            return True


def tokens_agree(text: str, wanted: str, agree: Agree) -> bool:
    """Whether two texts have equally many tokens, which agree one by one."""
    # Short texts, nearly all of them, are cut at once.
    if len(text) > _WINDOW or len(wanted) > _WINDOW:
        return agree_in_step(tokens(text), tokens(wanted), agree)
    return _lists_agree(split(text), split(wanted), agree)


def _lists_agree(mine: list[str], theirs: list[str], agree: Agree) -> bool:
    if len(mine) != len(theirs):
        return False
    for piece, wanted in zip(mine, theirs, strict=True):
        if piece == wanted:
            continue
        if not agree(piece, wanted):
            return False
    return True


def never(token: str, wanted: str) -> bool:
    """Return False: an `Agree` by which only equal texts agree."""
    return False


def _token_windows(text: str) -> Iterator[list[str]]:
    is_plain = text.isascii() and not _SPLIT_ELSEWHERE.search(text)
    position = 0
    while position < len(text):
        # A window ends at white space, so that no token is cut in two.
        space = _SPACE.search(text, position + _WINDOW)
        end = space.start() if space else len(text)
        window = text[position:end]
        # `str.split` is several times as fast as the expression.
        yield window.split() if is_plain else _TOKEN.findall(window)
        position = end


def _windows(text: str, separator: str) -> Iterator[str]:
    """Cut a text into windows that begin with a separator, except the first."""
    position = 0
    while position < len(text):
        end = text.find(separator, position + _WINDOW)
        if end < 0:
            end = len(text)
        yield text[position:end]
        position = end


def _without_trailing(text: str) -> str:
    # Looking is far faster than rewriting, and most texts have nothing to remove.
    for space in _SPACES_IN_LINES:
        if f"{space}\n" in text:
            return _TRAILING.sub("", text)
    return text


TOLERANCE = 1e-6
"""How far a real number may be off, absolutely or relatively, where the problem does not say."""
_INTEGERS_TOLERANCE = 1e-6
"""How far an integer may be from an expected real number, absolutely and relatively."""
_ZERO_TOLERANCE = 1e-9
"""How far an integer may be from a fixed-point number, however small: 0 for 0.0000000001."""
_FURTHEST = 0.005
"""Largest absolute error of a fixed-point number without a stated tolerance: half a hundredth."""
_FEW_DECIMALS = 5
"""With up to so many decimals, a fixed-point number may be off by half its last place at most."""
_NOISE = 1e-12
"""Relative error that calculating with doubles may bring, whatever the tolerance."""
_LEAST_ROUNDING = 2.0**-54
"""The least difference taken for a rounding error: half the spacing of doubles below 1."""
_MOST_ROUNDING = 1e-15
"""The largest difference taken for a rounding error of 0.

Numbers around 1 that cancel leave one, such as `0.1 + 0.2 - 0.3`.
"""

# Not `\d`, which takes the digits of every script.
_INTEGER = re.compile(r"[+-]?[0-9]++")
"""An integer as programs print it."""
_REAL = re.compile(r"[+-]?(?:[0-9]++\.([0-9]*+)|\.([0-9]++)|[0-9]++(?=[eE]))([eE][+-]?[0-9]++)?")
"""A real number: groups 1 and 2 are its decimals, with and without a whole part, 3 its exponent."""
# ASCII alone: otherwise ignoring case takes a dotless Turkish i for an i.
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)
"""A number that is not finite, as the usual languages print it."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a real number may be off."""

    absolute: float = TOLERANCE
    relative: float = TOLERANCE
    is_stated: bool = False
    """The problem states the tolerance: it applies to integers, too, and to numbers of any size."""


BY_DEFAULT = Tolerance()
"""The tolerance of printed numbers where the problem states none."""


def is_number(token: str) -> bool:
    """Whether a token is an integer or a real number, as programs print them."""
    return bool(_INTEGER.fullmatch(token) or _REAL.fullmatch(token))


def without_zero_fraction(token: str) -> str:
    """Return `3` for `3.`, `3.0` and `3`; other tokens as they are."""
    whole, point, fraction = token.partition(".")
    if point and not fraction.strip("0") and _INTEGER.fullmatch(whole):
        return whole
    return token


def numbers_agree(token: str, wanted: str) -> bool:
    """Whether a token is the expected number by the default tolerance.

    False if `wanted` is not a number.
    """
    if _INTEGER.fullmatch(wanted):
        whole = without_zero_fraction(token)
        # As text, for an integer of any length is exact; only zero has two spellings.
        return whole == wanted or (whole in ("0", "-0") and wanted in ("0", "-0"))
    real = _REAL.fullmatch(wanted)
    if real is None:
        return _both_not_finite(token, wanted)
    is_integer = bool(_INTEGER.fullmatch(token))
    if not is_integer and not _REAL.fullmatch(token):
        return False
    return _is_near(
        float(token),
        float(wanted),
        BY_DEFAULT,
        is_integer=is_integer,
        decimals=_count_decimals(real),
    )


def numbers_agree_within(token: str, wanted: str, tolerance: Tolerance) -> bool:
    """Whether a token is the expected number, integer or real, within a stated tolerance."""
    if is_number(token) and is_number(wanted):
        return _is_within(float(token), float(wanted), tolerance)
    return _both_not_finite(token, wanted)


def values_agree(value: float, expected: float, tolerance: Tolerance) -> bool:
    """Whether a returned number is the expected real number.

    Infinities and nan agree only with themselves.
    """
    # JSON of some data sets has NaN and Infinity.
    if not math.isfinite(expected):
        # Not `math.isnan(value)`, which raises for an integer beyond a double's range.
        return value == expected or (math.isnan(expected) and value != value)
    try:
        number = float(value)
    # An integer beyond a double's range is far from every finite number.
    except OverflowError:
        return False
    if tolerance.is_stated:
        return _is_within(number, expected, tolerance)
    return _is_near(
        number,
        expected,
        tolerance,
        is_integer=isinstance(value, int),
        decimals=_count_decimals_of_value(expected),
    )


def _count_decimals_of_value(expected: float) -> int | None:
    """Return the number of decimals with which a problem would write an expected value."""
    real = _REAL.fullmatch(repr(expected))
    decimals = _count_decimals(real) if real else None
    if decimals is not None:
        return decimals
    # Python writes LeetCode's 0.00003 with an exponent.
    if abs(expected) < 1 and round(expected, _FEW_DECIMALS) == expected:
        return _FEW_DECIMALS
    return None


def _count_decimals(real: re.Match[str]) -> int | None:
    """Return the decimals of a number in fixed-point notation, None for one with an exponent."""
    if real[3]:
        return None
    return len(real[1] or real[2] or "")


def _is_near(
    value: float,
    expected: float,
    tolerance: Tolerance,
    *,
    is_integer: bool,
    decimals: int | None,
) -> bool:
    """Whether a number is the expected one by a tolerance that the problem does not state.

    Args:
        value: the number.
        expected: the expected real number.
        tolerance: how far it may be off.
        is_integer: the number is an integer.
        decimals: decimals of the expected number; None if it is written with an exponent.
    """
    if value == expected:
        # Two numbers beyond a double's range are equal only as texts.
        return math.isfinite(value)
    error = abs(value - expected)
    size = abs(expected)
    has_exponent = decimals is None
    # Such an expected number is what cancelling left of zero: any rest as small is as right.
    if has_exponent and _LEAST_ROUNDING <= size <= _MOST_ROUNDING and abs(value) <= _MOST_ROUNDING:
        return True
    if is_integer:
        least = 0.0 if has_exponent else _ZERO_TOLERANCE
        # The smaller of both bounds: by the absolute one alone 0 would agree with 5e-7.
        bound = max(min(_INTEGERS_TOLERANCE, _INTEGERS_TOLERANCE * size), least)
        return error <= bound + math.ulp(size)
    near = tolerance.relative * size
    # An exponent is for small numbers, where an absolute bound would take 0.0 for 1e-9.
    if decimals is None:
        return error <= near + 2 * math.ulp(size)
    # A millionth of a large number is more than the half or the cent that may decide the problem.
    near = min(near, _FURTHEST)
    noise = _NOISE * size
    if decimals <= _FEW_DECIMALS:
        half_a_place = 0.5 * 10.0**-decimals
        # A problem that shows 0.3 as the answer rounded it, and 0.4 would be another answer.
        near = min(near, half_a_place)
        noise = min(noise, half_a_place)
    return error <= max(tolerance.absolute, near, noise) + 2 * math.ulp(size)


def _is_within(value: float, expected: float, tolerance: Tolerance) -> bool:
    if not (math.isfinite(value) and math.isfinite(expected)):
        return False
    size = abs(expected)
    bound = max(tolerance.absolute, tolerance.relative * size)
    return abs(value - expected) <= bound + 2 * math.ulp(size)


def _both_not_finite(token: str, wanted: str) -> bool:
    if not (_NOT_FINITE.fullmatch(wanted) and _NOT_FINITE.fullmatch(token)):
        return False
    value = float(token)
    expected = float(wanted)
    return value == expected or (math.isnan(value) and math.isnan(expected))
