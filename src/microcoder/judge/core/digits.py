"""JSON and Python literals with integers of any size.

Python refuses to read or write an integer of more than 4,300 digits as decimal text, since its way
takes quadratic time. Answers of problems have such integers. Here they are cut in halves, as newer
versions of Python do, which takes less time. The limit of the process stays as it is.
"""

import json
import re
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, Context, Decimal, Inexact, localcontext
from typing import Any

_DIGITS_PYTHON_READS = 4300
"""Python's own limit, which a process may change; shorter integers are left to Python."""
_LARGEST = 10**_DIGITS_PYTHON_READS
"""The least integer that Python does not write."""
_LONG = re.compile(
    r"(?P<text>'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\")"
    rf"|(?<![\w.])(?P<digits>\d{{{_DIGITS_PYTHON_READS},}}+)(?![\w.])",
    re.DOTALL,
)
"""A string, which is left as it is, or the digits of a long integer."""
_BITS_AT_ONCE = 200
"""Bits that are converted without being cut."""
_MARK = "\x00digits:"
"""What begins the text in place of a long integer; a text that begins so is written by nobody."""
_MARKED = re.compile(r'"\\u0000digits:(\d+)"')
"""Such a text as JSON."""


def parse_json(text: str | bytes) -> object:
    """Return the value of a JSON text; NaN and Infinity are allowed.

    Raises:
        ValueError: it is invalid or nested too deeply.
    """
    try:
        return json.loads(text, parse_int=parse_int)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dump_json(
    value: object,
    *,
    ensure_ascii: bool = True,
    default: Callable[[Any], Any] | None = None,
) -> str:
    """Return the JSON text of a value, with the options of `json.dumps`; raises its errors."""
    try:
        return json.dumps(value, ensure_ascii=ensure_ascii, default=default)
    except ValueError as error:
        # Python has no exception of its own for it: the message alone tells.
        if "digits" not in str(error):
            raise
    long: list[int] = []
    text = json.dumps(_replace_long(value, long), default=default)
    # The digits come last, as text: `json.dumps` refuses to write them.
    return _MARKED.sub(lambda mark: spell_int(long[int(mark[1])]), text)


def parse_int(digits: str) -> int:
    """Return the integer that decimal digits, perhaps with a sign, spell."""
    if len(digits) < _DIGITS_PYTHON_READS:
        return int(digits)
    if digits[0] in "+-":
        value = parse_int(digits[1:])
        return -value if digits[0] == "-" else value
    # Kept, since all halves of one length need the same power.
    powers: dict[int, int] = {}

    def read(start: int, end: int) -> int:
        if end - start < _DIGITS_PYTHON_READS:
            return int(digits[start:end])
        num_low = (end - start) >> 1
        if num_low not in powers:
            powers[num_low] = 5**num_low << num_low  # 10**num_low, computed faster
        high = read(start, end - num_low)
        low = read(end - num_low, end)
        return high * powers[num_low] + low

    return read(0, len(digits))


def is_long(value: int) -> bool:
    """Whether Python refuses to write an integer as decimal text."""
    return not -_LARGEST < value < _LARGEST


def spell_int(value: int) -> str:
    """Return the decimal digits of an integer."""
    if not is_long(value):
        return str(value)
    if value < 0:
        return f"-{spell_int(-value)}"
    powers: dict[int, Decimal] = {}

    def convert(part: int, num_bits: int) -> Decimal:
        if num_bits <= _BITS_AT_ONCE:
            return Decimal(part)
        num_low = num_bits >> 1
        if num_low not in powers:
            powers[num_low] = Decimal(2) ** num_low
        high = part >> num_low
        low = part - (high << num_low)
        return convert(high, num_bits - num_low) * powers[num_low] + convert(low, num_low)

    # Inexact is trapped: a rounded result would be an error, and never a wrong digit.
    with localcontext(Context(prec=MAX_PREC, Emax=MAX_EMAX, traps=[Inexact])):
        return str(convert(value, value.bit_length()))


def shorten_integers(source: str) -> str:
    """Return Python source with long integers outside strings in hexadecimal.

    Python reads hexadecimal at any length.
    """

    def write(match: re.Match[str]) -> str:
        digits = match["digits"]
        return match.group() if digits is None else hex(parse_int(digits))

    return _LONG.sub(write, source)


def _replace_long(value: object, long: list[int]) -> object:
    """Return a value with a mark in place of each long integer, which is added to `long`."""
    if isinstance(value, int) and is_long(value):
        long.append(value)
        return f"{_MARK}{len(long) - 1}"
    if isinstance(value, list | tuple):
        return [_replace_long(item, long) for item in value]
    if isinstance(value, dict):
        return {key: _replace_long(item, long) for key, item in value.items()}
    return value
