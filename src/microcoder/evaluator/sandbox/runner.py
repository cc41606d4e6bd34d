"""Inside a test's own process: load the program, run it as the interpreter would, end without teardown."""

from __future__ import annotations

import _io
import _signal  # pyrefly: ignore[missing-import] - the wrappers in `signal` touch 36 more pages
import atexit
import contextlib
import gc
import marshal
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType, TracebackType
from typing import Any

from microcoder.evaluator.sandbox import dialects
from microcoder.evaluator.sandbox.frames import CallStack
from microcoder.evaluator.sandbox.protocol import COMPILED, REJECTED

FILE_NAME = "main.py"
_FLUSH_FAILED = 120

_NAMES_ITSELF = re.compile(rb"__file__|argv|inspect|traceback|linecache|doctest|numba")
_NEEDS_TEARDOWN = re.compile(rb"__del__|open|Wrapper|Buffered|FileIO|IOBase|detach|finally|contextmanager|ExitStack")
_BUFFERED = (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom)


Loaded = tuple[CodeType, bool, bool]
"""A program that is ready to run, as it is kept: its code; whether its source names something that acts when it is
thrown away (a buffered file, `__del__`, a generator's `finally`: throwing everything away costs what the program's data
costs, so other programs are spared it); whether it names its own file."""


def pack_code(source: int, cache: int) -> bytes:
    """Return the program marshalled (see `Loaded`): compiled by the first test, found by the later ones.

    A source that does not compile leaves its message in the cache and ends the process; nothing of the program
    has run by then, so the cache cannot be forged.
    """
    if os.pread(cache, 1, 0) == COMPILED:
        # Nothing that a program does reaches the cache: each test's process closes it before it runs the program.
        return os.pread(cache, os.lseek(cache, 0, os.SEEK_END), 1)
    text = _read_all(source)
    names_itself, needs_teardown = bool(_NAMES_ITSELF.search(text)), bool(_NEEDS_TEARDOWN.search(text))
    try:
        # As text: programs are text here, so a coding cookie names an encoding that is gone.
        code = compile(text.decode("utf-8-sig"), FILE_NAME, "exec", dont_inherit=True)
    except BaseException as error:
        _store(cache, REJECTED, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:2000])
        os._exit(1)
    packed = marshal.dumps((code, needs_teardown, names_itself))
    with contextlib.suppress(OSError):
        _store(cache, COMPILED, packed)
    return packed


def load_code(source: int, cache: int) -> Loaded:
    """Return the program, ready to run; one that names its own file finds it."""
    loaded = marshal.loads(pack_code(source, cache))
    if loaded[2]:
        _write_source(_read_all(source))
    return loaded


def _read_all(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _write_source(text: bytes) -> None:
    """Let a program that asks for its own file find it, if there is a folder to write in."""
    with contextlib.suppress(OSError), open(FILE_NAME, "xb") as file:
        file.write(text)


def _store(cache: int, state: bytes, body: bytes) -> None:
    """Write the body before the state: a cut-off write is then no state at all."""
    if os.pwrite(cache, body, 1) == len(body):
        os.pwrite(cache, state, 0)


def restore_signals() -> None:
    """Give the program the signal handlers of a fresh interpreter; writing too much ends it."""
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)


def new_main_module(name: str, builtins: object) -> ModuleType:
    """Return a fresh module for a program."""
    module = ModuleType(name)
    module.__dict__.update(__annotations__={}, __builtins__=builtins, __file__=FILE_NAME, __cached__=None)
    return module


def renew_main() -> None:
    """Put a fresh `__main__` in place, and nothing on its command line."""
    sys.modules["__main__"] = new_main_module("__main__", sys.modules["builtins"])
    sys.argv = [FILE_NAME]


def run_program(program: Loaded, stack: CallStack, arguments: Sequence[str], names: dict[str, Any] | None) -> int:
    """Run a program as the `__main__` that is there, fresh; return the exit code the interpreter would end with.

    Args:
        program: what to run.
        stack: where its calls are noted.
        arguments: what it finds in sys.argv after its name.
        names: those of its dialect if it has one.
    """
    code, needs_teardown, _ = program
    namespace = sys.modules["__main__"].__dict__
    if arguments:
        sys.argv += arguments
    if names is not None:
        dialects.enter(namespace, names)
    status = guarded(stack.execute, code, namespace)
    del namespace
    return finish(status, needs_teardown)


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
        number = int.__add__(code, 0)  # pyrefly: ignore[bad-argument-type] - not what its class makes of it
        return number & 0xFF if -(1 << 63) <= number < 1 << 63 else 0xFF
    with contextlib.suppress(BaseException):
        print(code, file=sys.stderr)
    return 1


def finish(status: int, needs_teardown: bool) -> int:
    """Do what the interpreter does last: join threads, run exit functions, flush, throw away."""
    # Not by `suppress`: its calls, and what they touch, would cost every test ten page faults.
    try:
        if len(threading._active) > 1 or threading._threading_atexits:  # pyrefly: ignore[missing-attribute]
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
    """Free the program's globals, so that what acts on being freed does.

    Files are flushed first: in a reference cycle the order of being freed is luck, and a file may lose its text.
    """
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    _flush_all(gc.get_objects())
    sys.modules.pop("__main__", None)
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            _flush(stream)


def prepare_standard_library() -> None:
    """Undo what -S left out: exit(), quit() and their like."""
    import site

    site.setquit()
    site.setcopyright()
    site.sethelper()
