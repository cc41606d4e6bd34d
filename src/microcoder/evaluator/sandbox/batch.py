"""Several tests of one program in one process, each as new as can be.

Only for programs that the trusted side found nothing against (`evaluator/batching.py`): they name nothing that could
reach another test. What they could still change is the attributes of library objects; these are compared after every
test with what they were before the first, and a process in which they differ runs no other test.

What goes in and out are two memory files: all inputs, and a frame for every test that ended.

    inputs   count, then the length of each input (64 bits each), then the inputs
    frames   for each test: its status (16 bits), the length of its output (64 bits), its output
"""

from __future__ import annotations

import _io
import builtins
import copy
import functools
import gc
import importlib
import operator
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
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
_MOST_STDERR_BYTES = 1 << 16
"""What a test may leave there for another to follow it."""
_IMMUTABLE_CLASS = 1 << 8
_INNER_NAMES = ("fget", "fset", "fdel", "func", "__func__", "__wrapped__", "__self__")
"""Where properties, methods and their like keep the functions that they stand for."""


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
    """What a program may reach of the library, as it was before any test.

    A program changes an object by an attribute that its source names, or by handing it to a function of the library,
    which adds attributes. So the number of attributes of every object is compared, and the identity of those that the
    program names, and no more: looking at all of them would cost more than a small test does. Never by equality,
    which a program can define.
    """

    def __init__(self, prelude: dict[str, Any]) -> None:
        self._spaces: list[Mapping[str, Any]] = []
        self._empty: list[Mapping[str, Any]] = []
        """Of functions, most of which have no attributes."""
        self._containers: list[tuple[Any, list[Any]]] = []
        self._seen: set[int] = set()
        # They fill as programs run, and what they hold is lost where nothing refers to it but they.
        self._caches = [one for one in gc.get_objects() if type(one) is functools._lru_cache_wrapper]
        regular = sys.modules["re"]
        filling = (getattr(regular, name, None) for name in ("_cache", "_cache2"))
        self._seen.update(id(one) for one in filling if one is not None)
        for node_class in {*nodes.GIVEN_NAMES.values(), *nodes.NODES.values()}:
            # Copying leaves a note on the class: now, so that no test does.
            copy.copy(node_class())
        for module in [*map(importlib.import_module, MODULES), nodes, builtins]:
            self._spaces.append(vars(module))
            self._note_all(vars(module))
        self._spaces.append(prelude)
        # The lists and dictionaries of `sys` among these are not for programs that share a process.
        self._note_all({name: member for name, member in prelude.items() if type(member) not in (dict, list)})
        self._lengths = [*map(len, self._spaces)]
        self._by_name: dict[str, list[tuple[Mapping[str, Any], Any]]] = {}
        for space in self._spaces:
            for name, value in space.items() if isinstance(space, Mapping) and space is not prelude else ():
                self._by_name.setdefault(name, []).append((space, value))
        self._purge = regular.purge  # pyrefly: ignore[missing-attribute]
        self._random = sys.modules["random"].getstate()  # pyrefly: ignore[missing-attribute]

    def _note_all(self, members: Mapping[str, Any]) -> None:
        pending = [*members.items()]
        while pending:
            name, member = pending.pop()
            if id(member) not in self._seen and not isinstance(member, (ModuleType, CodeType)):
                self._seen.add(id(member))
                pending += self._note(member, is_public=not str(name).startswith("_")).items()

    def _note(self, member: Any, *, is_public: bool) -> Mapping[Any, Any]:
        """Take down one object; return what can be reached from it, by its names there."""
        if isinstance(member, type):
            if not member.__flags__ & _IMMUTABLE_CLASS:
                self._spaces.append(vars(member))
            return {**vars(member), "type": type(member), **{base.__qualname__: base for base in member.__bases__}}
        if type(member) in (dict, list, set, frozenset, tuple):
            inside = _values_of(member)
            if is_public:
                self._containers.append((member, inside))
            else:
                self._spaces.append(member)
            return dict(enumerate(inside))
        reached = {name: getattr(member, name, None) for name in ("__class__", *_INNER_NAMES)}
        space = getattr(member, "__dict__", None)
        if type(space) is not dict:
            return reached
        (self._spaces if space or not isinstance(member, FunctionType) else self._empty).append(space)
        return {**reached, **space}

    def watch(self, code: CodeType) -> Watch:
        """Return what tells whether a program has changed anything."""
        names: set[str] = set()
        pending = [code]
        while pending:
            one = pending.pop()
            names.update(one.co_names)
            pending += [constant for constant in one.co_consts if isinstance(constant, CodeType)]
        named = [(space, name, value) for name in names for space, value in self._by_name.get(name, ())]
        return Watch(self._spaces, self._lengths, self._empty, self._containers, named)

    def reset(self) -> None:
        """Have shared random numbers begin again, decimal numbers follow their first rules, and caches be empty."""
        sys.modules["random"].setstate(self._random)  # pyrefly: ignore[missing-attribute]
        decimal = sys.modules["decimal"]
        decimal.setcontext(decimal.DefaultContext.copy())  # pyrefly: ignore[missing-attribute]
        self._purge()
        for cached in self._caches:
            cached.cache_clear()


def _values_of(container: Any) -> list[Any]:
    return [*(container.values() if type(container) is dict else container)]


def _are_same(values: list[Any], others: list[Any]) -> bool:
    return len(values) == len(others) and all(map(operator.is_, values, others))


class Watch(NamedTuple):
    """What the library must still be after a test of one program."""

    spaces: list[Mapping[str, Any]]
    lengths: list[int]
    empty: list[Mapping[str, Any]]
    containers: list[tuple[Any, list[Any]]]
    named: list[tuple[Mapping[str, Any], str, Any]]

    def sees_change(self) -> bool:
        """Whether a name means something else, or there are more or fewer of them."""
        if any(self.empty) or [*map(len, self.spaces)] != self.lengths:
            return True
        if any(space.get(name) is not value for space, name, value in self.named):
            return True
        return not all(_are_same(_values_of(container), before) for container, before in self.containers)


class Batch:
    """One process's tests, from the file of inputs to the file of frames.

    Iterating begins a test, `end` is called with what it did; a loop, since a program runs with as many calls above it
    as in a process of its own.
    """

    def __init__(self, files: Files, library: Library, code: CodeType) -> None:
        self._files = files
        self._library = library
        self._watch = library.watch(code)
        self._limits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
        self._styles = [_Style.of(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)]
        self._is_over = False

    def __iter__(self) -> Iterator[None]:
        """Begin test after test until one ends otherwise than well, or leaves something changed."""
        for content in self._inputs():
            self._make_new(content)
            yield
            if self._is_over:
                return

    def end(self, status: int, output: bytes) -> None:
        """Take down what a test did, once all that it left is thrown away: that may act once more."""
        sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None
        for name in ("__main__", "solution"):
            sys.modules.pop(name, None)
        gc.collect()
        self._library.reset()
        is_changed = self._watch.sees_change() or os.fstat(2).st_size > _MOST_STDERR_BYTES
        self._write(DIRTY if not status and is_changed else status, output)
        self._is_over = bool(status) or is_changed

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
        for descriptor in (0, 1, 2):
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
        os.pwrite(0, content, 0)
        stdin, stdout, stderr = self._styles
        sys.stdin = sys.__stdin__ = stdin.open(0, "r", _io.BufferedReader)
        sys.stdout = sys.__stdout__ = stdout.open(1, "w", _io.BufferedWriter)
        sys.stderr = sys.__stderr__ = stderr.open(2, "w", _io.BufferedWriter)
        sys.setrecursionlimit(self._limits[0])
        sys.set_int_max_str_digits(self._limits[1])
        self._library.reset()

    def _write(self, status: int, output: bytes) -> None:
        frame = memoryview(_FRAME.pack(status, len(output)) + output)
        while frame:
            frame = frame[os.write(self._files.frames, frame) :]


class _Style(NamedTuple):
    """All that a standard stream of the interpreter says of itself."""

    name: str
    encoding: str
    errors: str
    is_line_buffered: bool
    buffer_bytes: int

    @classmethod
    def of(cls, stream: Any) -> _Style:
        return cls(
            stream.name,
            stream.encoding,
            stream.errors,
            stream.line_buffering,
            getattr(stream.buffer.raw, "_blksize", 0),
        )

    def open(self, descriptor: int, mode: str, kind: Any) -> Any:
        raw = _io.FileIO(descriptor, mode, closefd=False)
        raw.name = self.name  # pyrefly: ignore[missing-attribute]
        buffer = kind(raw, self.buffer_bytes or _io.DEFAULT_BUFFER_SIZE)
        # The interpreter's own do not translate what ends a line, either.
        stream = _io.TextIOWrapper(buffer, self.encoding, self.errors, "\n", self.is_line_buffered)
        stream.mode = mode  # pyrefly: ignore[read-only]
        return stream
