"""Inside a test's own process: load the program, run it as the interpreter would.

It ends without teardown, unless the program needs one. `run_program` runs a program; `load_code`
loads it.

`CallStack` runs a program at the bottom of the call stack, as `python main.py` does. A forked test
stands on the fork server's own calls. They would count against the recursion limit (an accepted
program may need every frame it leaves) and be seen by `inspect`. Python has no call that takes them
away, so two words of the interpreter's thread state are written: how many calls are left, and which
frame is the innermost. An interpreter that keeps them elsewhere runs programs on top of our calls,
a few frames shallower, and the judge reports that.

A dialect is the environment of another harness, for figures that compare with its own.
LiveCodeBench's checker (`lcb_runner/evaluation`) puts star imports and imports before every
program, and allows recursion to 50,000 calls and integers of 50,000 digits.
"""

from __future__ import annotations

import _io

# The wrappers in `signal` touch 36 more pages.
import _signal  # pyrefly: ignore[missing-import]
import atexit
import contextlib
import ctypes
import gc
import marshal
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType, TracebackType
from typing import Any

from microcoder.judge.sandbox.protocol import COMPILED, REJECTED

_NUM_WORDS = 40
"""Words of the thread state that are searched: the fields stand at its beginning."""
_WORD_BYTES = 8
"""Bytes of a word, on the 64-bit machines that the sandbox is for."""
_FRAME_OF_FRAME_OBJECT = 24
"""Offset of the interpreter's frame in a frame object."""
_CFRAME_OF_THREAD_STATE = 56
"""Offset of the pointer, before 3.13, to what points to the innermost frame."""
_STACK_BYTES = 1 << 18
"""Distance on the C stack, up and down, within which the innermost frame is searched."""
_UNUSUAL_LIMIT = 4321
"""A recursion limit by which its place is found: no other word is likely to be the same."""
_KNOWN = ((3, 11), (3, 12), (3, 13))
"""Versions whose thread state is known: in others it may not be written to."""
_KNOWN_NAMES = "CPython 3.11 to 3.13"
"""Those versions, for messages."""
_MOST_CALLS_OF_OURS = 2
"""Most calls that count against the limit at the bottom: `exec`, and the look itself."""


class _Unknown(Exception):
    """What could not be found in the interpreter's thread state.

    Its layout is not that of a known version.
    """


class CallStack:
    """Runs programs at the bottom of the interpreter's call stack.

    There they see no calls of ours and recurse as deep. The place is found once, for all tests.
    Memory is accessed by views: ctypes would cost each test 20 page faults.
    """

    def __init__(self) -> None:
        """Locate the counter of calls and the innermost frame; if that fails, `problem` says so."""
        self.problem = ""
        """Why programs run on top of our calls; empty if they do not."""
        try:
            self._find()
        except _Unknown as unknown:
            version = sys.version.split()[0]
            self.problem = (
                f"Python {version} keeps {unknown} elsewhere than {_KNOWN_NAMES}, so programs "
                "recurse a few calls less deep than under plain python, and see ours"
            )

    def _find(self) -> None:
        """Find both words; raises _Unknown."""
        if sys.version_info[:2] not in _KNOWN or sys.implementation.name != "cpython":
            raise _Unknown("its calls")
        get_state = ctypes.pythonapi.PyThreadState_Get
        get_state.restype = ctypes.c_void_p
        state: int = get_state()
        self._numbers = _view(state, _WORD_BYTES * _NUM_WORDS, "i")
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(_UNUSUAL_LIMIT)
        places = self._find_limit()
        sys.setrecursionlimit(usual)
        # Found twice is not found: a write to the wrong word would break the interpreter.
        if len(places) != 1:
            raise _Unknown("its recursion limit")
        self._calls_left = places[0] - 1
        self._find_frame(_view(state, _WORD_BYTES * _NUM_WORDS, "L"), state)
        self._own_calls = 0
        names: dict[str, Any] = {"numbers": self._numbers, "place": self._calls_left}
        # Tried here, in the fork server, where a crash is a sandbox that does not start and not a
        # wrong verdict.
        look = compile(
            "import sys\nleft, below = numbers[place], sys._getframe().f_back", "", "exec"
        )
        self._execute_at_the_bottom(look, names)
        own_calls = usual - 1 - names["left"]
        if names["below"] is not None or not 0 <= own_calls <= _MOST_CALLS_OF_OURS:
            raise _Unknown("its frames")
        # Before 3.12 the call of `exec` counts as one.
        self._own_calls = own_calls

    def _find_limit(self) -> list[int]:
        """Return where the recursion limit may be: right behind the calls that are left."""
        places = []
        for place, number in enumerate(self._numbers):
            calls_left = self._numbers[place - 1]
            if number == _UNUSUAL_LIMIT and 0 < calls_left < _UNUSUAL_LIMIT:
                places.append(place)
        return places

    def _find_frame(self, state_words: memoryview[int], state: int) -> None:
        """Note where the innermost frame is.

        It is in the thread state, or (before 3.13) in what that points to.
        """
        frame = ctypes.c_void_p.from_address(id(sys._getframe()) + _FRAME_OF_FRAME_OBJECT).value
        self._state_words = state_words
        if sys.version_info >= (3, 13):
            places = [number for number in range(_NUM_WORDS) if state_words[number] == frame]
            if not places:
                raise _Unknown("its innermost frame")
            self._memory = state_words
            self._memory_start = state
            self._offset = _WORD_BYTES * places[0]
            return
        cframe = state_words[_CFRAME_OF_THREAD_STATE // _WORD_BYTES]
        self._memory_start = cframe - _STACK_BYTES
        self._memory = _view(self._memory_start, 2 * _STACK_BYTES, "L")
        self._offset = 0 if sys.version_info >= (3, 12) else _WORD_BYTES
        place = (cframe + self._offset - self._memory_start) // _WORD_BYTES
        if self._memory[place] != frame:
            raise _Unknown("its innermost frame")

    def execute(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Run a module's code at the bottom of the call stack.

        It runs on top of our calls if there is a `problem`.
        """
        if self.problem:
            exec(code, namespace)
        else:
            self._execute_at_the_bottom(code, namespace)

    def _execute_at_the_bottom(self, code: CodeType, namespace: dict[str, Any]) -> None:
        holder = self._memory_start
        if sys.version_info < (3, 13):
            holder = self._state_words[_CFRAME_OF_THREAD_STATE // _WORD_BYTES]
        memory = self._memory
        place = (holder + self._offset - self._memory_start) // _WORD_BYTES
        ours = memory[place]
        arguments = (code, namespace)
        self._numbers[self._calls_left] = sys.getrecursionlimit() + self._own_calls
        # From here to the end nothing of ours may call: a call in Python would note our frame
        # again.
        memory[place] = 0
        try:
            # With a star: a plain call counts or not, by whether the interpreter has specialised it
            # by then.
            exec(*arguments)
        finally:
            memory[place] = ours


def _view(address: int, num_bytes: int, kind: str) -> memoryview[int]:
    """Return memory of this process as numbers."""
    memory = (ctypes.c_char * num_bytes).from_address(address)
    return memoryview(memory).cast("B").cast(kind)  # pyrefly: ignore


_LIVECODEBENCH = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools "
    "operator io sys json builtins typing"
)
"""Modules that LiveCodeBench star-imports, in its order.

Later names win, so builtins replace those of math.
"""
_NOT_NAMED = ("builtins", "typing")
"""Of these, modules that it does not import by name."""
_DIALECT_LIMIT = 50_000
"""Calls, and digits of an integer, that it allows."""


def build_dialect_names() -> dict[str, Any]:
    """Return the names that a program finds in LiveCodeBench without importing them."""
    starred = _LIVECODEBENCH.split()
    lines = [f"from {name} import *" for name in starred]
    lines += [f"import {name}" for name in starred if name not in _NOT_NAMED]
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    del names["__builtins__"]
    return names


def enter_dialect(namespace: dict[str, Any], names: dict[str, Any]) -> None:
    """Set LiveCodeBench's limits (calls, digits), and add its names to a program's namespace."""
    namespace.update(names)
    sys.setrecursionlimit(_DIALECT_LIMIT)
    sys.set_int_max_str_digits(_DIALECT_LIMIT)


FILE_NAME = "main.py"
"""Name of a program's file, as it sees it."""
_FLUSH_FAILED = 120
"""Exit code of an interpreter that could not write the rest of its output."""
_MOST_SHOWN_BYTES = 2000
"""Longest message of a program that does not compile."""

_NAMES_ITSELF = re.compile(rb"__file__|argv|inspect|traceback|linecache|doctest|numba")
"""Words of a program that may read its own file."""
_NEEDS_TEARDOWN = re.compile(
    rb"__del__|open|Wrapper|Buffered|FileIO|IOBase|detach|finally|contextmanager|ExitStack"
)
"""Words of a program with something that acts when it is thrown away."""
_BUFFERED = (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom)
"""Files that may hold text that is not written yet."""


Loaded = tuple[CodeType, bool, bool]
"""A program that is ready to run, as it is kept.

It is its code, whether it is torn down at its end, and whether it names itself. It is torn down if
its source names something that acts when it is thrown away: a buffered file, `__del__`, a
generator's `finally`. Throwing everything away costs what the program's data costs, so other
programs are spared it. It names itself if its source names its own file.
"""


def pack_code(source: int, cache: int) -> bytes:
    """Return the program marshalled (see `Loaded`).

    It is compiled by the first test, and read from `cache` by later ones. A source that does not
    compile leaves its message in the cache and ends the process; nothing of the program has run by
    then, so the cache cannot be forged.
    """
    if os.pread(cache, 1, 0) == COMPILED:
        # Nothing that a program does reaches the cache: each test's process closes it before it
        # runs the program.
        return os.pread(cache, os.lseek(cache, 0, os.SEEK_END), 1)
    text = _read_all(source)
    names_itself = _NAMES_ITSELF.search(text) is not None
    needs_teardown = _NEEDS_TEARDOWN.search(text) is not None
    try:
        # As text: programs are text here, so a coding cookie names an encoding that is gone.
        code = compile(text.decode("utf-8-sig"), FILE_NAME, "exec", dont_inherit=True)
    except BaseException as error:
        message = f"{type(error).__name__}: {error}".encode("utf-8", "replace")
        _store(cache, REJECTED, message[:_MOST_SHOWN_BYTES])
        os._exit(1)
    packed = marshal.dumps((code, needs_teardown, names_itself))
    with contextlib.suppress(OSError):
        _store(cache, COMPILED, packed)
    return packed


def load_code(source: int, cache: int) -> Loaded:
    """Return a program from its open files (descriptors).

    Its source is written to main.py if it names its own file.
    """
    loaded = marshal.loads(pack_code(source, cache))
    names_itself = loaded[2]
    if names_itself:
        _write_source(_read_all(source))
    return loaded


def _read_all(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _write_source(text: bytes) -> None:
    """Write the source to its file, if possible, for programs that read their own file."""
    with contextlib.suppress(OSError), open(FILE_NAME, "xb") as file:
        file.write(text)


def _store(cache: int, state: bytes, body: bytes) -> None:
    """Write a cache's body, then the byte that says what it is: `COMPILED`, `REJECTED`.

    So a partial write is void.
    """
    if os.pwrite(cache, body, 1) == len(body):
        os.pwrite(cache, state, 0)


def restore_signals() -> None:
    """Give the program the signal handlers of a fresh interpreter.

    But a file beyond its size limit ends it.
    """
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)


def new_main_module(name: str, builtins: object) -> ModuleType:
    """Return a fresh module for a program, with these builtins."""
    module = ModuleType(name)
    module.__dict__.update(
        __annotations__={}, __builtins__=builtins, __file__=FILE_NAME, __cached__=None
    )
    return module


def renew_main() -> None:
    """Put a fresh `__main__` in place, and reset `sys.argv` to the program's name."""
    sys.modules["__main__"] = new_main_module("__main__", sys.modules["builtins"])
    sys.argv = [FILE_NAME]


def run_program(
    program: Loaded,
    stack: CallStack,
    arguments: Sequence[str],
    names: dict[str, Any] | None,
    *,
    is_shared: bool = False,
) -> int:
    """Run a program in the fresh `__main__`; return the exit code the interpreter would end with.

    Args:
        program: what to run.
        stack: runs it at the bottom of the call stack.
        arguments: sys.argv after the program's name.
        names: names that its dialect adds, if it has one.
        is_shared: other tests follow in this process: its threads are joined without shutting down
            `threading`.
    """
    code, needs_teardown, _ = program
    namespace = sys.modules["__main__"].__dict__
    if arguments:
        sys.argv += arguments
    if names is not None:
        enter_dialect(namespace, names)
    status = guarded(stack.execute, code, namespace)
    del namespace
    if is_shared and _has_threads():
        _join_threads()
    return finish(status, needs_teardown)


def _join_threads() -> None:
    """Wait for the program's threads, as the interpreter does at its end; not for daemons."""
    while _has_threads():
        waited_for = [thread for thread in threading.enumerate()[1:] if not thread.daemon]
        if not waited_for:
            return
        for thread in waited_for:
            thread.join()


def guarded(function: Callable[..., object], *arguments: object) -> int:
    """Call a function, report what it raises as the interpreter does, and return the exit code."""
    try:
        function(*arguments)
    except SystemExit as error:
        return _exit_code(error.code)
    except BaseException as error:
        error.__traceback__ = _skip_ourselves(error.__traceback__)
        return _report(error)
    return 0


def _skip_ourselves(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename != FILE_NAME:
        trace = trace.tb_next
    return trace


def _report(error: BaseException) -> int:
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as ending:
        return _exit_code(ending.code)
    except BaseException:
        with contextlib.suppress(BaseException):
            sys.__excepthook__(type(error), error, error.__traceback__)
    return 1


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if issubclass(type(code), int):
        # Not what its class makes of it.
        number = int.__add__(code, 0)  # pyrefly: ignore[bad-argument-type]
        is_of_64_bits = -(1 << 63) <= number < 1 << 63
        return number & 0xFF if is_of_64_bits else 0xFF
    with contextlib.suppress(BaseException):
        print(code, file=sys.stderr)
    return 1


def finish(status: int, needs_teardown: bool) -> int:
    """End as the interpreter does: join threads, run exit functions, flush, free.

    Return the exit code.
    """
    # Not by `suppress`: its calls, and what they touch, would cost every test ten page faults.
    try:
        if _has_threads() or threading._threading_atexits:  # pyrefly: ignore[missing-attribute]
            threading._shutdown()  # pyrefly: ignore[missing-attribute]
    except BaseException:
        pass
    try:  # noqa: SIM105
        atexit._run_exitfuncs()
    except BaseException:
        pass
    flushed: object = None
    for stream in _standard_streams():
        try:
            if stream is not flushed:
                flushed = stream
                _flush(stream)
        except BaseException as error:
            status = status or _FLUSH_FAILED
            with contextlib.suppress(BaseException):
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
    if needs_teardown:
        with contextlib.suppress(BaseException):
            _throw_away_main()
    return status


def _has_threads() -> bool:
    """Whether other threads exist, also ones that are still starting.

    Those are on the way from `_limbo` to `_active`.
    """
    return len(threading._active) + len(threading._limbo) > 1  # pyrefly: ignore[missing-attribute]


def _standard_streams() -> tuple[object, ...]:
    try:
        return sys.stdout, sys.__stdout__, sys.stderr
    except AttributeError:
        return tuple(getattr(sys, name, None) for name in ("stdout", "__stdout__", "stderr"))


def _flush(stream: object) -> None:
    try:
        if stream is None or stream.closed:  # pyrefly: ignore[missing-attribute]
            return
    except Exception:
        pass
    stream.flush()  # pyrefly: ignore[missing-attribute]


def _flush_all(objects: list[object]) -> None:
    for value in objects:
        if type(value) in _BUFFERED:
            with contextlib.suppress(Exception):
                _flush(value)


def _throw_away_main() -> None:
    """Free the program's globals, so that finalisers run (`__del__`, generators, open files).

    Files are flushed first: in a reference cycle the order of being freed is luck, and a file may
    lose its text.
    """
    sys.stdin = sys.__stdin__
    sys.stdout = sys.__stdout__
    sys.stderr = sys.__stderr__
    _flush_all(gc.get_objects())
    sys.modules.pop("__main__", None)
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            _flush(stream)
