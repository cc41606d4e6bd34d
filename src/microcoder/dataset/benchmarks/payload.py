"""LiveCodeBench's hidden tests: JSON text, as it is or inside a pickle inside zlib inside base64.

A pickle is a program. This one is read by an unpickler that finds no class and no function, so it can only build
plain data; and no more than `MAX_BYTES` are ever unpacked.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import zlib
from typing import Any, NoReturn

MAX_BYTES = 1 << 30


class _PlainData(pickle.Unpickler):
    """An unpickler without names: strings, numbers, lists, dicts and nothing else."""

    def find_class(self, module_name: str, global_name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module_name}.{global_name}; only plain data is read")


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
        value = _PlainData(io.BytesIO(body)).load()
    except Exception as error:  # a broken pickle fails in every way there is
        raise ValueError(f"its pickle is not read: {error or type(error).__name__}") from None
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its pickled text is not JSON ({error})") from None
