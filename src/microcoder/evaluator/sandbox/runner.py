"""Inside a test's own process: load the program, run it as the interpreter would, end without teardown."""

from __future__ import annotations

import _io
import _signal  # pyrefly: ignore[missing-import] - the wrappers in `signal` touch 36 more pages
import atexit
import contextlib
import marshal
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType
from typing import Any

from microcoder.evaluator.sandbox.protocol import COMPILED, REJECTED

FILE_NAME = "main.py"
_FLUSH_FAILED = 120


def load_code(source: int, cache: int) -> CodeType:
    """Return the program's bytecode: compiled by the first test, loaded by the later ones.

    A source that does not compile leaves its message in the cache and ends the process; nothing of the program
    has run by then, so the cache cannot be forged.
    """
    if os.pread(cache, 1, 0) == COMPILED:
        return marshal.loads(os.pread(cache, os.fstat(cache).st_size, 1))
    text = os.pread(source, os.fstat(source).st_size, 0)
    try:
        code = compile(text, FILE_NAME, "exec", dont_inherit=True)
    except BaseException as error:
        _store(cache, REJECTED, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:2000])
        os._exit(1)
    with contextlib.suppress(OSError, ValueError):
        _store(cache, COMPILED, marshal.dumps(code))
    return code


def _store(cache: int, state: bytes, body: bytes) -> None:
    """Write the body before the state: a cut-off write is then no state at all."""
    if os.pwrite(cache, body, 1) == len(body):
        os.pwrite(cache, state, 0)


def restore_signals() -> None:
    """Give the program the signal handlers of a fresh interpreter; writing too much ends it."""
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)


def new_main_module(name: str, builtins: object) -> dict[str, Any]:
    """Return the namespace of a fresh main module."""
    module = ModuleType(name)
    sys.modules[name] = module
    sys.argv = [FILE_NAME]
    namespace = module.__dict__
    namespace.update(__builtins__=builtins, __file__=FILE_NAME)
    return namespace


def run_program(code: CodeType, arguments: Sequence[str] = ()) -> int:
    """Run a program as `__main__` and return the exit code the interpreter would end with."""
    namespace = new_main_module("__main__", sys.modules["builtins"])
    sys.argv += arguments
    status = guarded(exec, code, namespace)
    return finish(status, namespace)


def guarded(function: Callable[..., object], *arguments: object) -> int:
    """Call a function, report what it raises as the interpreter does, and return the exit code."""
    try:
        function(*arguments)
    except SystemExit as error:
        return _exit_code(error.code)
    except BaseException as error:
        program_frames = error.__traceback__ and error.__traceback__.tb_next
        with contextlib.suppress(BaseException):
            sys.excepthook(type(error), error, program_frames)
        return 1
    return 0


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    with contextlib.suppress(BaseException):
        print(code, file=sys.stderr)
    return 1


def finish(status: int, namespace: dict[str, Any]) -> int:
    """Do what the interpreter does last: join threads, run exit functions, flush."""
    try:
        if len(threading._active) > 1 or threading._threading_atexits:  # pyrefly: ignore[missing-attribute]
            threading._shutdown()  # pyrefly: ignore[missing-attribute]
        atexit._run_exitfuncs()
    except BaseException:
        status = status or 1
    for stream in _open_streams(namespace):
        try:
            stream.flush()
        except BaseException as error:
            status = status or _FLUSH_FAILED
            with contextlib.suppress(BaseException):
                print(f"{type(error).__name__}: {error}", file=sys.stderr)
    with contextlib.suppress(BaseException):
        sys.stderr.flush()
    return status


def _open_streams(namespace: dict[str, Any]) -> list[Any]:
    """Return the streams that teardown would flush: the standard ones and those held by the program's globals."""
    standard = dict.fromkeys((getattr(sys, "stdout", None), getattr(sys, "__stdout__", None)))
    streams = [stream for stream in standard if stream is not None and not getattr(stream, "closed", False)]
    for value in list(namespace.values()):
        held = (value, *_attributes(value)) if type(value).__module__ == "__main__" else (value,)
        streams += [s for s in held if isinstance(s, _io._IOBase) and not s.closed and s.writable()]
    return streams


def _attributes(value: object) -> list[object]:
    try:
        return list(vars(value).values())
    except TypeError:
        return []


def prepare_standard_library() -> None:
    """Undo what -S left out: exit(), quit() and their like."""
    import site

    site.setquit()
    site.setcopyright()
    site.sethelper()
