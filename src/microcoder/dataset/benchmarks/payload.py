"""LiveCodeBench's hidden tests: JSON text, as it is or inside a pickle inside zlib inside base64.

A pickle is a program, so none is run: its instructions are listed, and where they are those of one text, that text is
taken. An unpickler that finds no class would not do, as `LONG_BINPUT` alone makes it fill all memory. No more than
`MAX_BYTES` are ever unpacked.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from typing import Any

MAX_BYTES = 1 << 30


_TEXTS = frozenset({"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"})
_AROUND = frozenset({"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"})


def decode_tests(text: str) -> list[Any]:
    """Return the tests of a `private_test_cases` field; nothing of it is executed.

    Raises:
        ValueError: what is wrong with it.
    """
    try:
        value = json.loads(text)
    except ValueError:
        value = _unpack(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, list):
        raise ValueError(f"it holds {type(value).__name__}, not a list of tests")
    return value


def _unpack(text: str) -> object:
    try:
        packed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is neither JSON nor base64") from None
    unpacker = zlib.decompressobj()
    try:
        body = unpacker.decompress(packed, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"it is base64, but not of zlib data ({error})") from None
    if unpacker.unconsumed_tail:
        raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("its zlib data is cut off")
    try:
        value = _read_pickled_text(body)
    except Exception as error:  # a broken pickle fails in every way there is
        raise ValueError(f"its pickle is not read: {str(error)[:200] or type(error).__name__}") from None
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its pickled text is not JSON ({error})") from None


def _read_pickled_text(body: bytes) -> str:
    """Return the text that a pickle holds, without running it."""
    texts: list[str] = []
    for instruction, argument, _ in pickletools.genops(body):
        if instruction.name in _TEXTS and isinstance(argument, str):
            texts.append(argument)
        elif instruction.name not in _AROUND:
            asked = f"{instruction.name} {argument or ''}".strip()
            raise ValueError(f"it asks for {asked}; only plain data is read, one text")
    if len(texts) != 1:
        raise ValueError(f"it holds {len(texts)} texts, not one")
    return texts[0]
