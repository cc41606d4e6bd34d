"""Several tests of one program in one process, each with a state as fresh as a right program needs.

The judge takes from such a process that every test was right in it, or that one answer was wrong.
Any other program is judged again with a process a test (`judge/run/policy.py`). What honest
programs leave behind is put right here: streams, modules of their own, limits, random numbers, the
decimal context. A process that a test has changed in a way that is not put right (a module
imported, a thread left running) begins no other test.

The tests come in an order that only the judge knows (`judge/run/order.py`). Their inputs and what
they wrote are passed by two memory files. After 1, 4, 16 ... tests the process asks whether to go
on: it never learns what a right output is, and a wrong one ends it.

    inputs   count, then the length of each input (64 bits each), then the inputs
    frames   for each test: its status (16 bits), the length of its output (64 bits), its output.
             One with the status `ENDED` and without output means that no test was running when the
             process ended
"""

from __future__ import annotations

import _io
import _thread
import decimal
import gc
import marshal
import operator
import os
import random
import re
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import NamedTuple, TextIO

from microcoder.judge.sandbox.functions import MODULE_NAME
from microcoder.judge.sandbox.protocol import Request
from microcoder.judge.sandbox.runner import Loaded

_NUMBER = struct.Struct("<Q")
"""Layout of a count or a length."""
_FRAME = struct.Struct("<HQ")
"""Layout of a frame before its output: status, length."""
HEAD_BYTES = _FRAME.size
"""Length of a frame before its output."""
ENDED = 0x7FFF
"""Status of the last frame of a process that ends by itself, between two tests."""
GO_ON = b"+"
"""The judge's answer that lets a process begin further tests.

After any other, or none, the process ends.
"""
_ENOUGH_CPU_SECONDS = 0.1
"""CPU time after which a process begins no further test: a lost one would cost much again."""
_DRAWING = re.compile("|".join(["random", *random.__all__]).encode())
"""Names by which a program draws random numbers, in its bytecode."""
_FIXED_TYPES = (int, float, complex, str, bytes, bool, type(None), type(...), range)
"""Types of values that nothing can change."""
_SHARED_TYPES = (ModuleType, BuiltinFunctionType, GetSetDescriptorType, MemberDescriptorType)
"""Types of what a module may bind without being made again: it is not the program's own."""
_WRAPPING_TYPES = (staticmethod, classmethod)
"""Types of what a class binds around a function."""


class Files(NamedTuple):
    """The descriptors of a batch, besides the standard ones."""

    stdin: int
    """Standard input of the tests; writable."""
    inputs: int
    frames: int
    questions: int
    """A socket: a byte asks whether to go on, a byte answers."""


def pack_inputs(inputs: Sequence[bytes]) -> bytes:
    """Return the content of the file `inputs` (see the module)."""
    numbers = [len(inputs), *map(len, inputs)]
    return b"".join([*(_NUMBER.pack(number) for number in numbers), *inputs])


def pack_frame(status: int, output: bytes) -> bytes:
    """Return the frame of a test that ended (see the module)."""
    return _FRAME.pack(status, len(output)) + output


def unpack_frames(frames: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield status and output of each test that ended.

    The incomplete frame of a killed process is left out.
    """
    position = 0
    while position + _FRAME.size <= len(frames):
        status, length = _FRAME.unpack_from(frames, position)
        position += _FRAME.size + length
        if position > len(frames):
            return
        yield status, frames[position - length : position]


class Interpreter:
    """The state of the fork server's interpreter, which each test of a batch begins with."""

    def __init__(self) -> None:
        self._styles = [_Style.of(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)]
        self._random = random.getstate()
        self._most_calls = sys.getrecursionlimit()
        self._most_digits = sys.get_int_max_str_digits()

    def restore(self, *, draws: bool) -> None:
        """Put the limits back, and what a program may have set of the library.

        Args:
            draws: the program may have drawn random numbers.
        """
        sys.setrecursionlimit(self._most_calls)
        sys.set_int_max_str_digits(self._most_digits)
        _thread.stack_size(0)
        decimal.setcontext(decimal.DefaultContext.copy())
        if draws:
            random.setstate(self._random)

    def open_streams(self, stdin: bytes, start: int) -> None:
        """Open standard streams on files that hold nothing but a test's input.

        Args:
            stdin: the input.
            start: where reading starts, as `os.lseek` takes it.
        """
        # Written before it is cut: the kernel would free a page, and find and clear another.
        os.pwrite(0, stdin, 0)
        os.ftruncate(0, len(stdin))
        os.lseek(0, 0, start)
        for descriptor in (1, 2):
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
        style_in, style_out, style_err = self._styles
        sys.stdin = sys.__stdin__ = style_in.open(0, "r", _io.BufferedReader)
        sys.stdout = sys.__stdout__ = style_out.open(1, "w", _io.BufferedWriter)
        sys.stderr = sys.__stderr__ = style_err.open(2, "w", _io.BufferedWriter)


class Batch:
    """Iterates over the tests of one process: reads their inputs, and writes a frame for each.

    Each iteration begins a test, whose result is passed to `end`. The caller loops, so that a
    program runs with as many calls above it as in a process of its own.
    """

    def __init__(
        self,
        files: Files,
        interpreter: Interpreter,
        request: Request,
        packed: bytes,
        renew_modules: Callable[[], None],
    ) -> None:
        """Begin with the standard streams of any test, and fresh modules, in place.

        Args:
            files: the descriptors.
            interpreter: its state before any test.
            request: that of every test.
            packed: the program, as `runner.pack_code` returns it.
            renew_modules: puts fresh modules in place.
        """
        self._files = files
        self._interpreter = interpreter
        self._packed = packed
        self._renew_modules = renew_modules
        self._is_function = bool(request.fn_name)
        self._draws = _DRAWING.search(packed) is not None
        self._longest_until = time.monotonic() + _ENOUGH_CPU_SECONDS - time.process_time()
        """Monotonic time before which no thread can have used `_ENOUGH_CPU_SECONDS`.

        It is cheap to read.
        """
        # A function's own module is there once it was called.
        self._num_modules = len(sys.modules) + self._is_function
        self._num_done = 0
        self._is_over = False
        self._bound: _Bound | None = None
        """What a function's module binds before any call, if nothing in it can change."""

    def __iter__(self) -> Iterator[tuple[Loaded | None, bytes]]:
        """Yield program and input of each test, until one fails or the process is not to go on.

        A program is unpacked again for each test, since using its constants may leave traces; the
        caller must drop it before the next. A program of None: call again what the first test
        defined.
        """
        os.dup2(self._files.stdin, 0)
        for content in self._inputs():
            if self._num_done:
                self._prepare_next()
            program = None
            if self._bound is None:
                program = marshal.loads(self._packed)
            if not self._is_function:
                self._interpreter.open_streams(content, os.SEEK_SET)
            yield program, content
            if self._is_over or not self._may_go_on():
                break
        self._write(ENDED, b"")

    def note_defined(self) -> None:
        """Look at what a function's module binds before the first call of the process."""
        # Once: a module that is made again is made again each time.
        if self._num_done:
            return
        module = sys.modules.get(MODULE_NAME)
        if module is not None and _binds_fixed(vars(module)):
            self._bound = _Bound(vars(module))

    def end(self, status: int, output: bytes) -> None:
        """Write the frame of a test that ended."""
        self._write(status, output)
        self._num_done += 1
        self._is_over = bool(status)

    def read_stdout(self) -> bytes:
        """Return what a test wrote to stdout."""
        return os.pread(1, os.fstat(1).st_size, 0)

    def _write(self, status: int, output: bytes) -> None:
        frame = pack_frame(status, output)
        while frame:
            frame = frame[os.write(self._files.frames, frame) :]

    def _may_go_on(self) -> bool:
        """Whether to begin another test; the judge is asked after 1, 4, 16 ... tests."""
        if time.monotonic() > self._longest_until and time.process_time() > _ENOUGH_CPU_SECONDS:
            return False
        # The imported module would be there for the next test, the thread beside it.
        if len(sys.modules) != self._num_modules or len(threading._active) > 1:  # pyrefly: ignore
            return False
        if not self._is_fourfold():
            return True
        os.write(self._files.questions, GO_ON)
        return os.read(self._files.questions, 1) == GO_ON

    def _is_fourfold(self) -> bool:
        """Whether 1, 4, 16 ... tests are done."""
        is_power_of_two = not self._num_done & (self._num_done - 1)
        return is_power_of_two and self._num_done.bit_length() % 2 == 1

    def _inputs(self) -> Iterator[bytes]:
        packed = os.pread(self._files.inputs, os.fstat(self._files.inputs).st_size, 0)
        (count,) = _NUMBER.unpack_from(packed)
        position = (count + 1) * _NUMBER.size
        for (length,) in _NUMBER.iter_unpack(packed[_NUMBER.size : position]):
            yield packed[position : position + length]
            position += length

    def _prepare_next(self) -> None:
        """Put everything in place for another test."""
        self._interpreter.restore(draws=self._draws)
        if self._is_function and self._keep_module():
            return
        self._bound = None
        for name in ("__main__", MODULE_NAME):
            sys.modules.pop(name, None)
        if not self._is_function:
            sys.stdin = sys.stdout = sys.stderr = None  # pyrefly: ignore[bad-assignment]
            sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None  # pyrefly: ignore
        gc.collect()
        self._renew_modules()

    def _keep_module(self) -> bool:
        """Whether a function's module, as the last test left it, serves for the next as well."""
        return self._bound is not None and self._bound.is_unchanged()


class _Bound:
    """What a module and its classes bind at one time."""

    def __init__(self, namespace: dict[str, object]) -> None:
        self._spaces: list[Mapping[str, object]] = [namespace]
        for value in namespace.values():
            if _is_own_class(value):
                self._spaces.append(vars(value))
        self._values = [list(space.values()) for space in self._spaces]

    def is_unchanged(self) -> bool:
        """Whether every name still stands for the same object, and no other was added."""
        for space, values in zip(self._spaces, self._values, strict=True):
            if len(space) != len(values):
                return False
            # By identity: equality may be the program's own.
            if not all(map(operator.is_, space.values(), values)):
                return False
        return True


def _binds_fixed(namespace: Mapping[str, object]) -> bool:
    """Whether a module or a class binds only functions, classes, modules and constants."""
    for name, value in namespace.items():
        is_own = not (name.startswith("__") and name.endswith("__")) or type(value) is FunctionType
        if is_own and not _is_fixed(value):
            return False
    return True


def _is_fixed(value: object) -> bool:
    """Whether no call of a program's functions can change a value, short of its attributes."""
    kind = type(value)
    if kind in _FIXED_TYPES or kind in _SHARED_TYPES:
        return True
    if kind is tuple or kind is frozenset:
        return all(map(_is_fixed, value))  # pyrefly: ignore
    if kind is FunctionType:
        return _is_fixed_function(value)  # pyrefly: ignore
    if kind in _WRAPPING_TYPES:
        return _is_fixed(value.__func__)  # pyrefly: ignore
    if kind is property:
        accessors = (value.fget, value.fset, value.fdel)  # pyrefly: ignore
        return all(map(_is_fixed, accessors))
    if _is_own_class(value):
        return all(map(_is_fixed, value.__bases__)) and _binds_fixed(vars(value))  # pyrefly: ignore
    # A class of the library, or one of its annotations such as `List`.
    return isinstance(value, type) or kind.__module__ == "typing"


def _is_fixed_function(function: FunctionType) -> bool:
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    if function.__closure__ is not None or function.__dict__:
        return False
    return all(map(_is_fixed, defaults))


def _is_own_class(value: object) -> bool:
    """Whether a value is a class that the program defines."""
    return isinstance(value, type) and value.__module__ == MODULE_NAME


class _Style(NamedTuple):
    """The settings of a standard stream of the interpreter, to open one like it."""

    name: str
    encoding: str
    errors: str
    is_line_buffered: bool
    buffer_bytes: int

    @classmethod
    def of(cls, stream: TextIO) -> _Style:
        raw = stream.buffer.raw  # pyrefly: ignore
        return cls(
            stream.name,
            stream.encoding,
            stream.errors or "strict",
            bool(stream.line_buffering),
            getattr(raw, "_blksize", 0),
        )

    def open(
        self, descriptor: int, mode: str, kind: type[_io.BufferedReader] | type[_io.BufferedWriter]
    ) -> _io.TextIOWrapper:
        raw = _io.FileIO(descriptor, mode, closefd=False)
        raw.name = self.name  # pyrefly: ignore[missing-attribute]
        buffer = kind(raw, self.buffer_bytes or _io.DEFAULT_BUFFER_SIZE)
        # The interpreter's own do not translate what ends a line, either.
        stream = _io.TextIOWrapper(buffer, self.encoding, self.errors, "\n", self.is_line_buffered)
        stream.mode = mode  # pyrefly: ignore[read-only]
        return stream
