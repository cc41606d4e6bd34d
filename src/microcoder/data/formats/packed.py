"""Unpacks tests: JSON text, plain or in base64 and zlib, with or without a pickle around it.

LiveCodeBench pickles one JSON text, Dolci the list of tests itself, NeMo-Gym leaves the pickle out.

A pickle is a program, so its instructions are listed before it is read. All must be those of plain
data (texts, numbers, lists, dicts), and none may name a place that makes it fill memory. No more
than `MAX_BYTES` are ever unpacked, and nothing but a text or a number is taken from the pickle's
memory twice.
"""

import base64
import binascii
import pickle
import pickletools
import zlib
from typing import Any

from microcoder.judge.core.digits import parse_json

MAX_BYTES = 1 << 30
"""Most bytes that are unpacked."""
_TEXTS = frozenset({"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"})
"""Instructions of a pickle that put a text onto its stack."""
_NUMBERS = frozenset(
    {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"}
)
"""Instructions that put a number onto its stack."""
_VALUES = _TEXTS | _NUMBERS
_PLAIN = frozenset(
    {
        "PROTO",
        "FRAME",
        "STOP",
        "MARK",
        "NONE",
        "NEWTRUE",
        "NEWFALSE",
        "EMPTY_LIST",
        "EMPTY_DICT",
        "APPEND",
        "APPENDS",
        "SETITEM",
        "SETITEMS",
    }
)
"""Further instructions of plain data."""
_KEEPS = frozenset({"MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"})
"""Instructions that keep the value on top of the stack in the pickle's memory."""
_RECALLS = frozenset({"GET", "BINGET", "LONG_BINGET"})
"""Instructions that put a value from the pickle's memory onto the stack."""
_NO_VALUE = -1
"""Length of what is kept but is neither a text nor a number."""


def decode_packed(text: str) -> Any:
    """Return the value of JSON, or of base64 of zlib of JSON or a pickle of plain data.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        return parse_json(text)
    except ValueError as error:
        # It is JSON all the same: to try to unpack it would only hide what is wrong.
        if "deeply" in str(error):
            raise
    body = _decompress(text)
    # Without a pickle around it, as NeMo-Gym writes it.
    if body[:1] in (b"[", b"{"):
        return _parse(body, "text")
    try:
        _check_pickle(body)
        value = pickle.loads(body)
    except Exception as error:  # A broken pickle fails in every way there is.
        reason = str(error)[:200] or type(error).__name__
        raise ValueError(f"its pickle is not read: {reason}") from None
    # LiveCodeBench pickles the JSON text, Dolci the list itself.
    if isinstance(value, str):
        return _parse(value, "pickled text")
    return value


def _decompress(text: str) -> bytes:
    """Return the bytes in base64 of zlib data; ValueError if it is no such, or too long."""
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is neither JSON nor base64") from None
    unpacker = zlib.decompressobj()
    try:
        # Bounded: a few kilobytes of zeros can unpack to all of the memory.
        body = unpacker.decompress(packed, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"it is base64, but not of zlib data ({error})") from None
    if unpacker.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("its zlib data is cut off")
    return body


def _parse(text: str | bytes, what: str) -> object:
    try:
        return parse_json(text)
    except ValueError as error:
        raise ValueError(f"its {what} is not JSON ({error})") from None


def _check_pickle(body: bytes) -> None:
    """Raise ValueError for a pickle of more than plain data, or of more than `MAX_BYTES`."""
    num_kept = 0
    num_recalled = 0
    length = 0
    previous = ""
    length_of_kept: dict[int, int] = {}
    for instruction, argument, _ in pickletools.genops(body):
        name = instruction.name
        # MEMOIZE names no place: it takes the next one.
        place = argument if isinstance(argument, int) else num_kept
        if name in _VALUES:
            length = len(argument) if isinstance(argument, str) else 1
        elif name in _KEEPS:
            num_kept += 1
            # The memory is a list that grows to the largest place.
            if place > num_kept:
                raise ValueError(f"it asks for {name} {place}; only plain data is read")
            length_of_kept[place] = length if previous in _VALUES else _NO_VALUE
        elif name in _RECALLS:
            length = length_of_kept.get(place, _NO_VALUE)
            # Lists that hold themselves, or each other many times, have no bound.
            if length < 0:
                raise ValueError("it holds a list or an object twice; only plain data is read")
            num_recalled += length
            if num_recalled > MAX_BYTES:
                raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MiB")
        elif name not in _PLAIN:
            raise ValueError(f"it asks for {name} {argument or ''}; only plain data is read")
        # A FRAME stands between a long text and the instruction that keeps it.
        if name != "FRAME":
            previous = name
