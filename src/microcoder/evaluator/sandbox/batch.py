"""Several tests of one program in one process, each as new as can be.

Only for programs that the trusted side found nothing against (`evaluator/batching.py`): they name nothing that could
reach another test. What they could still change is the members of library modules and classes; that is compared with
what it was before the first test, after every one, and a process in which it differs runs no other test.

What goes in and out are two memory files: all inputs, and a frame for every test that ended.

    inputs   count, then the length of each input (64 bits each), then the inputs
    frames   for each test: its status (16 bits), the length of its output (64 bits), its output
"""

from __future__ import annotations

import _io
import importlib
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from microcoder.evaluator.sandbox import nodes

MODULES_TEXT = """
array bisect cmath collections collections.abc copy dataclasses datetime decimal enum fractions functools heapq io
itertools json math numbers operator queue random re statistics string time typing
"""
MODULES = tuple(MODULES_TEXT.split())
"""What a program that shares a process may import, besides `sys` and `os`, of which it may name a part."""

_NUMBER = struct.Struct("<Q")
_FRAME = struct.Struct("<HQ")
DIRTY = 256
"""The status of a test that ended well and left something changed; it counts, and is the last of its process."""
_MUTABLE_CLASS = 1 << 9
_IMMUTABLE_CLASS = 1 << 8


class Files(NamedTuple):
    """The descriptors of a batch, besides the standard ones."""

    inputs: int
    frames: int


def pack_inputs(inputs: list[bytes]) -> bytes:
    """Return the file of inputs."""
    numbers = [len(inputs), *map(len, inputs)]
    return b"".join([*(_NUMBER.pack(number) for number in numbers), *inputs])


def unpack_frames(frames: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield status and output of each test that ended; what a process that was killed left unfinished is left out."""
    position = 0
    while position + _FRAME.size <= len(frames):
        status, length = _FRAME.unpack_from(frames, position)
        position += _FRAME.size + length
        if position > len(frames):
            return
        yield status, frames[position - length : position]


class Library:
    """The members of the modules that a program may import, and of their classes, as they were before any test."""

    def __init__(self) -> None:
        modules = [*map(importlib.import_module, MODULES), nodes]
        self._spaces: list[tuple[Mapping[str, Any], dict[str, Any]]] = []
        seen: set[int] = set()
        for module in modules:
            self._spaces.append((vars(module), dict(vars(module))))
            for member in vars(module).values():
                self._note(member, seen)
        self._random = sys.modules["random"].getstate()  # pyrefly: ignore[missing-attribute]

    def _note(self, member: object, seen: set[int]) -> None:
        if id(member) in seen or isinstance(member, ModuleType):
            return
        seen.add(id(member))
        if isinstance(member, FunctionType):
            self._spaces.append((member.__dict__, dict(member.__dict__)))
        elif isinstance(member, type) and member.__flags__ & _MUTABLE_CLASS and not member.__flags__ & _IMMUTABLE_CLASS:
            self._spaces.append((vars(member), dict(vars(member))))
            for inner in vars(member).values():
                self._note(inner, seen)

    def is_unchanged(self) -> bool:
        """Whether every name means what it meant; identity is compared first, so this is quick."""
        return all(space == before for space, before in self._spaces)

    def reset(self) -> None:
        """Have shared random numbers begin again, and decimal numbers follow their first rules."""
        sys.modules["random"].setstate(self._random)  # pyrefly: ignore[missing-attribute]
        decimal = sys.modules["decimal"]
        decimal.setcontext(decimal.DefaultContext.copy())  # pyrefly: ignore[missing-attribute]


class Batch:
    """One process's tests, from the file of inputs to the file of frames."""

    def __init__(self, files: Files, library: Library) -> None:
        self._files = files
        self._library = library
        self._limits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
        self._styles = [(stream.encoding, stream.errors) for stream in (sys.stdin, sys.stdout)]

    def run(self, run_one: Callable[[], tuple[int, bytes]]) -> None:
        """Run test after test until one ends otherwise than well, or leaves something changed."""
        for content in self._inputs():
            self._make_new(content)
            status, output = run_one()
            is_unchanged = self._library.is_unchanged()
            self._write(DIRTY if not status and not is_unchanged else status, output)
            if status or not is_unchanged:
                return

    def read_stdout(self) -> bytes:
        """Return what a test wrote."""
        return os.pread(1, os.fstat(1).st_size, 0)

    def _inputs(self) -> Iterator[bytes]:
        source = self._files.inputs
        (count,) = _NUMBER.unpack(os.pread(source, _NUMBER.size, 0))
        table = os.pread(source, count * _NUMBER.size, _NUMBER.size)
        position = (count + 1) * _NUMBER.size
        for (length,) in _NUMBER.iter_unpack(table):
            yield os.pread(source, length, position)
            position += length

    def _make_new(self, content: bytes) -> None:
        for descriptor in (0, 1):
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
        os.pwrite(0, content, 0)
        (encoding, errors), (out_encoding, out_errors) = self._styles
        reader = _io.BufferedReader(_io.FileIO(0, "r", closefd=False))
        writer = _io.BufferedWriter(_io.FileIO(1, "w", closefd=False))
        sys.stdin = sys.__stdin__ = _io.TextIOWrapper(reader, encoding=encoding, errors=errors)
        sys.stdout = sys.__stdout__ = _io.TextIOWrapper(writer, encoding=out_encoding, errors=out_errors)
        sys.setrecursionlimit(self._limits[0])
        sys.set_int_max_str_digits(self._limits[1])
        self._library.reset()

    def _write(self, status: int, output: bytes) -> None:
        frame = memoryview(_FRAME.pack(status, len(output)) + output)
        while frame:
            frame = frame[os.write(self._files.frames, frame) :]
