"""Packed tests: JSON text, as it is, or in base64 and zlib, with or without a pickle around it.

LiveCodeBench pickles one JSON text, Dolci the list of tests itself, NeMo-Gym leaves the pickle out. A pickle is a
program, so none is run: its instructions are listed, and those of plain data (texts, numbers, lists, dicts) are
followed here. An unpickler that finds no class would not do, as `LONG_BINPUT` alone makes it fill all memory. No more
than `MAX_BYTES` are ever unpacked, and nothing but a text or a number is taken from the pickle's memory twice.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from typing import Any

MAX_BYTES = 1 << 30

_AROUND = frozenset({"PROTO", "FRAME", "STOP"})
_KEEPS = frozenset({"MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"})
_RECALLS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_VALUES = frozenset(
    {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
    | {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"}
)
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_MARK = object()


def decode_packed(text: str) -> Any:
    """Return what a packed text holds; nothing of it is executed.

    Raises:
        ValueError: what is wrong with it.
    """
    try:
        return json.loads(text)
    except ValueError:
        return _unpack(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


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
    if body[:1] in (b"[", b"{"):
        return _parse(body, "text")
    try:
        value = _Pickle().read(body)
    except Exception as error:  # a broken pickle fails in every way there is
        raise ValueError(f"its pickle is not read: {str(error)[:200] or type(error).__name__}") from None
    return _parse(value, "pickled text") if isinstance(value, str) else value


def _parse(text: str | bytes, what: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its {what} is not JSON ({error})") from None


class _Pickle:
    """Follows the instructions of a pickle of plain data."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._num_recalled = 0

    def read(self, body: bytes) -> Any:
        """Return the value that a pickle holds, without running it.

        Raises:
            ValueError: it asks for something else than plain data.
        """
        for instruction, argument, _ in pickletools.genops(body):
            self._follow(instruction.name, argument)
        if len(self._stack) != 1 or self._stack[0] is _MARK:
            raise ValueError(f"it holds {len(self._stack)} values, not one")
        return self._stack[0]

    def _follow(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _KEEPS:
            self._memo[len(self._memo) if name == "MEMOIZE" else int(argument)] = stack[-1]
        elif name in _RECALLS:
            stack.append(self._recall(int(argument)))
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("EMPTY_LIST", "EMPTY_DICT"):
            stack.append([] if name == "EMPTY_LIST" else {})
        elif name in ("APPEND", "APPENDS"):
            items = [stack.pop()] if name == "APPEND" else self._pop_mark()
            _of(stack[-1], list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(-2), stack.pop()] if name == "SETITEM" else self._pop_mark()
            _of(stack[-1], dict).update(zip(items[::2], items[1::2], strict=True))
        elif name not in _AROUND:
            asked = f"{name} {argument or ''}".strip()
            raise ValueError(f"it asks for {asked}; only plain data is read")

    def _pop_mark(self) -> list[Any]:
        place = len(self._stack) - 1
        while self._stack[place] is not _MARK:
            place -= 1
        items = self._stack[place + 1 :]
        del self._stack[place:]
        return items

    def _recall(self, key: int) -> Any:
        """Return a text or a number again; lists that hold themselves, or each other many times, have no bound."""
        value = self._memo[key]
        if not isinstance(value, str | int | float | None):
            raise ValueError(f"it holds one {type(value).__name__} twice; only plain data is read")
        self._num_recalled += len(value) if isinstance(value, str) else 1
        if self._num_recalled > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES >> 20} MiB")
        return value


def _of(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ValueError(f"it adds to a {type(value).__name__}, not to a {kind.__name__}")
    return value
