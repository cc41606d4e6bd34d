"""Several tests of one program in one process, each with a state as fresh as possible.

Only for programs that the judge's screen lets pass (`judge/run/screen.py`): they name nothing that
could reach another test. What they could still change is the attributes of library objects; these
are compared with what they were before the first test, and a process in which they differ runs no
other test. That is done after every test, but for programs that name nothing by which they could
change one. There it is done after 16, 64 ... tests and after the last, and a test counts once a
later check has found no change. Such a program's own module is made afresh for each test only if it
binds more than functions, classes and constants (`judge/run/screen.py`).

The first test is run to its end like one in a process of its own. The others are passed by two
memory files: their inputs, and a frame for every test that ended. After 1, 4, 16 ... tests the
process asks whether to go on: it never learns what a right output is, and a wrong one ends it.

    inputs   count, then the length of each input (64 bits each), then the inputs; there once the
             first test was right
    frames   for each test: its status (16 bits), the length of its output (64 bits), its output;
             what the first test wrote to stdout stays there until it has been asked about. One
             without output, and with a status that no test has, means that no test was running when
             the process ended. One bit of a status means that the library was checked since the
             frame before, and was unchanged
"""

from __future__ import annotations

import _io
import _thread
import builtins
import copy
import functools
import gc
import importlib
import marshal
import opcode
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from itertools import chain, count
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from microcoder.judge.sandbox import nodes
from microcoder.judge.sandbox.protocol import Request
from microcoder.judge.sandbox.runner import Loaded

MODULES_TEXT = """
array bisect cmath collections collections.abc copy dataclasses decimal fractions functools heapq io
itertools json math numbers operator queue random re statistics string textwrap time typing
"""
"""`MODULES` as a text."""
MODULES = tuple(MODULES_TEXT.split())
"""Modules that a program of a shared process may import, besides `PACKAGES` and parts of `sys`."""
PACKAGES = ("sortedcontainers",)
"""Third-party packages that a program of a shared process may import, if they are installed."""

_NUMBER = struct.Struct("<Q")
"""Layout of a count or a length."""
_FRAME = struct.Struct("<HQ")
"""Layout of a frame before its output: status, length."""
HEAD_BYTES = _FRAME.size
"""Length of a frame before its output."""
_STORING = (opcode.opmap["STORE_ATTR"], opcode.opmap["DELETE_ATTR"])
"""Instructions that set or delete an attribute."""
CLEAN = 0x8000
"""Flag in a frame's status: a check since the frame before found the library unchanged."""
ENDED = 0x7FFF
"""Status (without `CLEAN`) of the last frame of a process that ends by itself.

It says that no test was cut off. Processes that die during a test leave none.
"""
GO_ON = b"+"
"""The judge's answer that lets a process begin further tests.

After any other, or none, the process ends.
"""
_ENOUGH_CPU_SECONDS = 0.1
"""CPU time after which a process begins no further test.

A wrong one would cost a repetition of its work.
"""
_RARELY_CHECKED_TEXT = """
sys math inf pi sqrt isqrt ceil floor gcd lcm comb perm factorial log log2 hypot dist prod
List Dict Set Tuple Optional Union Any TreeNode ListNode
Counter OrderedDict defaultdict deque heapify heappop heappush heappushpop heapreplace nlargest
nsmallest bisect bisect_left bisect_right insort accumulate chain combinations count cycle groupby
pairwise permutations product zip_longest cache lru_cache cmp_to_key reduce add index mul sub xor
ascii_lowercase ascii_uppercase digits
"""
_RARELY_CHECKED = frozenset(_RARELY_CHECKED_TEXT.split())
"""Library names by which a program that sets no attribute cannot change the library.

None sets an attribute of its arguments, or is a container. Those of `re`, `random` and `decimal`
are not here: `Library.reset` resets their state.
"""
_STREAMING_TEXT = """
print input sys stdin stdout stderr exit quit
"""
_STREAMING = frozenset(_STREAMING_TEXT.split())
"""Names of the library by which a program that may share a process can reach its streams."""
_FIRST_LOOK = 16
"""Tests before the first check of the library if a program can hardly change it.

Most have fewer, and one check.
"""
_MOST_STDERR_BYTES = 1 << 16
"""Largest output on stderr after which another test may follow in the process."""
_IMMUTABLE_CLASS = 1 << 8
"""Flag of classes whose attributes cannot be set."""
_INNER_NAMES = ("fget", "fset", "fdel", "func", "__func__", "__wrapped__", "__self__")
"""Attributes by which properties, methods and their like hold functions."""


class Files(NamedTuple):
    """The descriptors of a batch, besides the standard ones."""

    stdin: int
    """Standard input of all tests but the first; writable."""
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


class Library:
    """The objects of the standard library and of `PACKAGES` that programs can reach.

    They are noted as they were before any test. A program changes an object by an attribute that
    its source names, or by handing it to a function of the library, which adds attributes. So the
    number of attributes of every object is compared, and the identity of those that the program
    names if it stores any, and no more: looking at all of them would cost more than a small test
    does. Never by equality, which a program can define.
    """

    def __init__(self, prelude: dict[str, Any]) -> None:
        self._spaces: list[Mapping[str, Any]] = []
        self._lists: list[Any] = []
        """Lists and sets that are not public: their number of items is compared."""
        self._containers: list[Any] = []
        self._seen: set[int] = set()
        # They fill as programs run, and what they hold is lost if nothing refers to it but they.
        self._caches = [
            member for member in gc.get_objects() if type(member) is functools._lru_cache_wrapper
        ]
        regular = sys.modules["re"]
        filling = (getattr(regular, name, None) for name in ("_cache", "_cache2"))
        self._seen.update(id(cache) for cache in filling if cache is not None)
        for node_class in nodes.GIVEN_NAMES.values():
            # Copying leaves a note on the class: now, so that no test does.
            copy.copy(node_class())
        packages = [sys.modules[name] for name in PACKAGES if name in sys.modules]
        for module in [*map(importlib.import_module, MODULES), *packages, nodes, builtins]:
            for name in getattr(module, "__all__", ()):
                # Some are made when they are first asked for, as `typing.Match` since 3.13.
                getattr(module, name)
            self._spaces.append(vars(module))
            self._note_all(vars(module))
        self._spaces.append(prelude)
        # The lists and dictionaries of `sys` among these are not for programs that share a process.
        self._note_all(
            {name: member for name, member in prelude.items() if type(member) not in (dict, list)}
        )
        # A name may also stand for something of the program; then it is only looked at more often.
        self._suspicious = {*MODULES, *PACKAGES, *prelude} - {*vars(builtins), *_RARELY_CHECKED}
        self._by_name: dict[str, list[tuple[Mapping[str, Any], str, Any]]] = {}
        for space in self._spaces:
            for name, value in space.items() if space is not prelude else ():
                self._by_name.setdefault(name, []).append((space, name, value))
        self._filled = _pack([_contents_of(cached) for cached in self._caches])
        self._views = [
            view
            for box in self._containers
            for view in ((box.keys(), box.values()) if type(box) is dict else (box,))
        ]
        self._sized = [*_pack(self._spaces), *self._lists, *self._views]
        self._lengths = [*map(len, self._sized)]
        # Held here, no other object can come to have such an address.
        self._held = [*chain.from_iterable(self._views)]
        self._addresses = [*map(id, self._held)]
        self.styles = [_Style.of(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)]
        """Settings of the interpreter's own streams."""
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
        """Record one object; return the objects that it refers to, by name."""
        if isinstance(member, type):
            if not member.__flags__ & _IMMUTABLE_CLASS:
                self._spaces.append(vars(member))
            return {
                **vars(member),
                "type": type(member),
                **{base.__qualname__: base for base in member.__bases__},
            }
        if type(member) in (dict, list, set, frozenset, tuple):
            if is_public and type(member) in (dict, list):
                self._containers.append(member)
            elif type(member) is dict:
                self._spaces.append(member)
            elif type(member) in (list, set):
                self._lists.append(member)
            return dict(enumerate(member.values() if type(member) is dict else member))
        reached = {name: getattr(member, name, None) for name in ("__class__", *_INNER_NAMES)}
        space = getattr(member, "__dict__", None)
        if type(space) is not dict:
            return reached
        self._spaces.append(space)
        return {**reached, **space}

    def read(self, code: CodeType) -> _Reach:
        """Return what a program could change or use, by the names in its code."""
        names: set[str] = set()
        stored: set[str] = set()
        pending = [code]
        while pending:
            part = pending.pop()
            operations = part.co_code[::2]
            names.update(part.co_names)
            if any(number in operations for number in _STORING):
                stored.update(part.co_names)
            pending += [constant for constant in part.co_consts if isinstance(constant, CodeType)]
        named = [known for name in stored for known in self._by_name.get(name, ())]
        is_rare = not stored and self._suspicious.isdisjoint(names)
        return _Reach(named, is_rare, _STREAMING.isdisjoint(names))

    def is_changed(self, reach: _Reach) -> bool:
        """Whether the library differs from before any test.

        That is in sizes, items of containers, or members `reach.named`.
        """
        if [*map(len, self._sized)] != self._lengths:
            return True
        if [*map(id, chain.from_iterable(self._views))] != self._addresses:
            return True
        return any(space.get(name) is not value for space, name, value in reach.named)

    def reset(self, *, is_rare: bool = False) -> None:
        """Empty caches, and restore the decimal context and the state of shared random numbers.

        Caches come first: what they held may run code when it is freed. With `is_rare` only these
        and the count of threads are reset.
        """
        if any(self._filled):
            for cached in self._caches:
                cached.cache_clear()
        # By which a thread is named: the first has the first number.
        sys.modules["threading"]._counter = count(1).__next__  # pyrefly: ignore[missing-attribute]
        if is_rare:
            return
        self._purge()
        # A warning that a test was given is given to the next one, too.
        sys.modules["warnings"]._filters_mutated()  # pyrefly: ignore[missing-attribute]
        decimal = sys.modules["decimal"]
        decimal.setcontext(decimal.DefaultContext.copy())  # pyrefly: ignore[missing-attribute]
        sys.modules["random"].setstate(self._random)  # pyrefly: ignore[missing-attribute]


def _pack(spaces: Sequence[Mapping[Any, Any]]) -> list[KeysView[Any]]:
    """Return a keys view of each mapping.

    The views lie side by side in memory, and `len` of one writes to no other. A process pays for
    each page that it writes first, and merely using an object writes to it (its reference count).
    """
    # The first ones fill the gaps that the heap has.
    gaps = [space.keys() for space in spaces]
    packed = [space.keys() for space in spaces]
    del gaps
    return packed


def _contents_of(cached: Any) -> dict[Any, Any]:
    """Return the emptied dictionary behind a function's cache.

    It is a non-empty one if it cannot be found.
    """
    cached.cache_clear()
    contents = [
        held
        for held in gc.get_referents(cached)
        if type(held) is dict and held is not cached.__dict__
    ]
    return contents[0] if len(contents) == 1 else {None: None}


class _Reach(NamedTuple):
    """Library members and streams that a program can touch."""

    named: list[tuple[Mapping[str, Any], str, Any]]
    """Library members that share a name with an attribute the program sets.

    Each is (namespace, name, member).
    """
    is_rare: bool
    """The program names nothing by which it could change the library.

    So a check now and then suffices.
    """
    is_silent: bool
    """The program names nothing by which it could read or write.

    So its streams stay as they are.
    """


class Batch:
    """Iterates over the tests of one process: reads their inputs, and writes a frame for each.

    Each iteration begins a test, whose result is passed to `end`. The caller loops, so that a
    program runs with as many calls above it as in a process of its own.
    """

    def __init__(
        self,
        files: Files,
        library: Library,
        request: Request,
        packed: bytes,
        renew_modules: Callable[[], None],
    ) -> None:
        """Begin with the first test's streams and modules in place.

        Later tests get new ones as far as needed.

        Args:
            files: the descriptors.
            library: its state before any test.
            request: the first test's.
            packed: the program, as `runner.pack_code` returns it.
            renew_modules: puts fresh modules in place.
        """
        self._files = files
        self._library = library
        self._packed = packed
        self._renew_modules = renew_modules
        # A function finds its standard input read.
        self._stdin_start = os.SEEK_END if request.fn_name else os.SEEK_SET
        self._binds_constants = request.binds_constants
        self._longest_until = time.monotonic() + _ENOUGH_CPU_SECONDS - time.process_time()
        """Monotonic time before which no thread can have used `_ENOUGH_CPU_SECONDS`.

        It is cheap to read.
        """
        self._num_young = -1
        """Collections of young garbage since the last full one; -1 if that is not known."""
        self._limits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
        self._num_done = 0
        self._is_over = False
        self._clean_flag = 0
        """`CLEAN` if a check since the last frame found nothing changed."""

    def __iter__(self) -> Iterator[tuple[Loaded | None, bytes | None]]:
        """Yield program and input of each test.

        It ends when a test fails, leaves a change, or has a wrong output.

        A program is unpacked again for each test, since using its constants may leave traces; the
        caller must drop it before the next. A program of None: call again what the first test
        defined. An input of None, that of the first test: it is on stdin.
        """
        yield marshal.loads(self._packed), None
        if not self._is_over and self._may_go_on():
            self._reach = self._library.read(marshal.loads(self._packed)[0])
            self._is_defined_once = self._binds_constants and self._reach.is_rare
            os.dup2(self._files.stdin, 0)
            for content in self._inputs():
                is_clean = self._is_clean(is_last=False)
                # What left something changed is the last of its process, as is what wrote too much.
                if not is_clean or (
                    not self._reach.is_silent and os.fstat(2).st_size > _MOST_STDERR_BYTES
                ):
                    break
                self._make_new(content)
                yield (None if self._is_defined_once else marshal.loads(self._packed)), content
                if self._is_over or not self._may_go_on():
                    break
            if self._reach.is_rare and not self._clean_flag:
                self._is_clean(is_last=True)
        self._write(ENDED, b"")

    def _is_clean(self, *, is_last: bool) -> bool:
        """Discard what a test left; return whether the library is unchanged.

        True if no check is due.
        """
        self._throw_away()
        if (
            self._reach.is_rare
            and not is_last
            and not (self._num_done >= _FIRST_LOOK and self._is_fourfold())
        ):
            return True
        self._clean_flag = 0 if self._library.is_changed(self._reach) else CLEAN
        return bool(self._clean_flag)

    def _is_fourfold(self) -> bool:
        """Whether 1, 4, 16 ... tests are done."""
        return not self._num_done & (self._num_done - 1) and bool(self._num_done.bit_length() & 1)

    def end(self, status: int, output: bytes) -> None:
        """Write the frame of a test that ended."""
        self._write(status, output)
        self._num_done += 1
        self._is_over = bool(status)

    def _write(self, status: int, output: bytes) -> None:
        frame = pack_frame(status | self._clean_flag, output)
        self._clean_flag = 0
        while frame:
            frame = frame[os.write(self._files.frames, frame) :]

    def read_stdout(self) -> bytes:
        """Return what a test wrote to stdout; empty for the first, whose output stays there."""
        return os.pread(1, os.fstat(1).st_size, 0) if self._num_done else b""

    def _may_go_on(self) -> bool:
        """Whether to begin another test.

        It asks the judge after 1, 4, 16 ... tests; False after `_ENOUGH_CPU_SECONDS`.
        """
        if time.monotonic() > self._longest_until and time.process_time() > _ENOUGH_CPU_SECONDS:
            return False
        if not self._is_fourfold():
            return True
        os.write(self._files.questions, GO_ON)
        return os.read(self._files.questions, 1) == GO_ON

    def _inputs(self) -> Iterator[bytes]:
        packed = os.pread(self._files.inputs, os.fstat(self._files.inputs).st_size, 0)
        (count,) = _NUMBER.unpack_from(packed)
        position = (count + 1) * _NUMBER.size
        for (length,) in _NUMBER.iter_unpack(packed[_NUMBER.size : position]):
            yield packed[position : position + length]
            position += length

    def _throw_away(self) -> None:
        """Discard all that a test left, which may run code when it is freed."""
        if not self._reach.is_silent:
            sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = (
                sys.__stderr__
            ) = None
        if not self._is_defined_once:
            for name in ("__main__", "solution"):
                sys.modules.pop(name, None)
        self._collect()
        self._library.reset(is_rare=self._reach.is_rare)

    def _collect(self) -> None:
        """Free what a test left in cycles.

        All of it is young, unless the interpreter collected in the meantime. Only young objects are
        collected for programs that can reach nothing older.
        """
        if self._reach.is_rare and self._reach.is_silent and gc.get_count()[1] == self._num_young:
            gc.collect(0)
            self._num_young += 1
        else:
            gc.collect()
            self._num_young = 0

    def _make_new(self, content: bytes) -> None:
        if not self._reach.is_silent:
            # Written before it is cut: the kernel would free a page, and find and clear another.
            os.pwrite(0, content, 0)
            os.ftruncate(0, len(content))
            os.lseek(0, 0, self._stdin_start)
            for descriptor in (1, 2):
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
            stdin, stdout, stderr = self._library.styles
            sys.stdin = sys.__stdin__ = stdin.open(0, "r", _io.BufferedReader)
            sys.stdout = sys.__stdout__ = stdout.open(1, "w", _io.BufferedWriter)
            sys.stderr = sys.__stderr__ = stderr.open(2, "w", _io.BufferedWriter)
        sys.setrecursionlimit(self._limits[0])
        sys.set_int_max_str_digits(self._limits[1])
        _thread.stack_size(0)
        if not self._is_defined_once:
            self._renew_modules()


class _Style(NamedTuple):
    """The settings of a standard stream of the interpreter, to open one like it."""

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
