"""Rehearsing tests in the fork server itself, so that a test's own process has less to set up.

What a process touches first after a fork is copied page by page, and that is most of what a small test costs. Code that
has run often touches less: its call sites are specialised, and the names behind them need not be looked up any more.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence

from microcoder.judge.sandbox import batch

_PROGRAM = """
import sys
a, b = map(int, input().split())
for i in range(3):
    print(a + b, "x", [1.5, (2,)], {3: 4})
class A:
    def f(self):
        return sorted([3, 1, 2])
print(A().f(), *sys.stdin.readlines())
try:
    {}[1]
except KeyError as error:
    print(repr(error))
"""
_FUNCTION = """
class Solution:
    def f(self, a: int, b: List[str]) -> List[int]:
        return [a, *map(len, b)]
"""
_ROUNDS = 20
_SERIES_ROUNDS, _SERIES_LENGTH = 5, 3
_STREAMS = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")


RunTest = Callable[[int, int, int, str, Sequence[int]], object]
"""Runs a test in the fork server itself, on its descriptors 0 to 2: source, cache, wire, the function's name, and the
descriptors of further tests in the same process (`batch.Files`), none if there are none."""


def rehearse(run_test: RunTest) -> None:
    """Run a small program and a small function again and again, then leave everything as it was."""
    kept = {name: getattr(sys, name) for name in _STREAMS}
    limit, stdin_file = sys.getrecursionlimit(), os.dup(0)
    # Between tests of a series garbage is collected: not all that was imported, each time.
    gc.collect()
    gc.freeze()
    on_large_file = signal.getsignal(signal.SIGXFSZ)
    # What packages do at the end of a process is not to be done yet; this takes its place at the same cost.
    end_of_process, atexit._run_exitfuncs = atexit._run_exitfuncs, atexit._ncallbacks  # pyrefly: ignore
    for text, fn_name, stdin in ((_PROGRAM, "", b"1 2\nx\n"), (_FUNCTION, "f", b'1\n["ab", "c"]')):
        source, cache, wire = (
            os.memfd_create(name, os.MFD_CLOEXEC) for name in ("source", "cache", "wire")
        )
        os.write(source, text.encode())
        for number in range(_ROUNDS):
            _renew_streams(stdin)
            run_test(source, cache, wire, fn_name, ())
            if number >= _SERIES_ROUNDS:
                continue
            _renew_streams(stdin)
            series = _open_series(stdin)
            run_test(source, cache, wire, fn_name, series[:4])
            os.dup2(stdin_file, 0)
            for descriptor in series:
                os.close(descriptor)
        for descriptor in (source, cache, wire):
            os.close(descriptor)
    os.close(stdin_file)
    atexit._run_exitfuncs = end_of_process  # pyrefly: ignore
    for name, stream in kept.items():
        setattr(sys, name, stream)
    sys.setrecursionlimit(limit)
    signal.signal(signal.SIGXFSZ, on_large_file)
    _clear_streams()


def _open_series(stdin: bytes) -> list[int]:
    """Return the descriptors of a series whose questions are answered in advance, and the other end of its socket."""
    supervisor, questions = socket.socketpair()
    supervisor.send(batch.GO_ON * _SERIES_LENGTH)
    files = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("stdin", "inputs", "frames")]
    os.write(files[1], batch.pack_inputs([stdin] * _SERIES_LENGTH))
    return [*files, questions.detach(), supervisor.detach()]


def _renew_streams(stdin: bytes) -> None:
    _clear_streams()
    os.pwrite(0, stdin, 0)
    sys.stdin = io.TextIOWrapper(
        io.BufferedReader(io.FileIO(0, "r", closefd=False)), encoding="utf-8"
    )
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8"
    )


def _clear_streams() -> None:
    for descriptor in (0, 1):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
