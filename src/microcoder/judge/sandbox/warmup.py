"""Rehearsing tests in the fork server itself, so that a test's own process has less to set up.

What a process touches first after a fork is copied page by page, and that is most of what a small
test costs. Code that has run often touches less: its call sites are specialised, and the names
behind them need not be looked up any more.
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
"""A program that does what many do: read, loop, print, define a class, raise and catch."""
_FUNCTION = """
class Solution:
    def f(self, a: int, b: List[str]) -> List[int]:
        return [a, *map(len, b)]
"""
"""A program of a function-call problem."""
_REHEARSALS = (
    (_PROGRAM, "", b"1 2\nx\n"),
    (_FUNCTION, "f", b'1\n["ab", "c"]'),
)
"""Source, name of the function, and stdin of each program."""
_ROUNDS = 20
"""How often each is run: more specialises nothing more."""
_BATCH_ROUNDS = 5
"""How often each is run as a batch."""
_BATCH_LENGTH = 3
"""Tests of a batch."""
_STREAMS = ("stdin", "stdout", "stderr", "__stdin__", "__stdout__", "__stderr__")
"""Names of the standard streams in `sys`."""


RunTest = Callable[[int, int, int, str, Sequence[int]], object]
"""Runs a test in the fork server itself, on its descriptors 0 to 2.

It takes source, cache, wire, the function's name, and the descriptors of further tests in the same
process (`batch.Files`), none if there are none.
"""


def rehearse(run_test: RunTest) -> None:
    """Run a small program and a small function repeatedly, then leave everything as it was."""
    streams = {name: getattr(sys, name) for name in _STREAMS}
    limit = sys.getrecursionlimit()
    stdin_file = os.dup(0)
    # Between tests of a batch garbage is collected: not all that was imported, each time.
    gc.collect()
    gc.freeze()
    on_large_file = signal.getsignal(signal.SIGXFSZ)
    # What packages do at the end of a process is not to be done yet; this takes its place at the
    # same cost.
    end_of_process = atexit._run_exitfuncs
    atexit._run_exitfuncs = atexit._ncallbacks  # pyrefly: ignore
    for text, fn_name, stdin in _REHEARSALS:
        _rehearse_program(run_test, text, fn_name, stdin, stdin_file)
    os.close(stdin_file)
    atexit._run_exitfuncs = end_of_process  # pyrefly: ignore
    for name, stream in streams.items():
        setattr(sys, name, stream)
    sys.setrecursionlimit(limit)
    signal.signal(signal.SIGXFSZ, on_large_file)
    _clear_streams()


def _rehearse_program(
    run_test: RunTest, text: str, fn_name: str, stdin: bytes, stdin_file: int
) -> None:
    """Run one program repeatedly, by itself and as a batch.

    Args:
        run_test: runs it.
        text: its source.
        fn_name: its function; empty for a program of its own.
        stdin: what it reads.
        stdin_file: the fork server's own standard input.
    """
    source = os.memfd_create("source", os.MFD_CLOEXEC)
    cache = os.memfd_create("cache", os.MFD_CLOEXEC)
    wire = os.memfd_create("wire", os.MFD_CLOEXEC)
    os.write(source, text.encode())
    for number in range(_ROUNDS):
        _renew_streams(stdin)
        run_test(source, cache, wire, fn_name, ())
        if number >= _BATCH_ROUNDS:
            continue
        _renew_streams(stdin)
        files, supervisor = _open_batch(stdin)
        run_test(source, cache, wire, fn_name, files)
        # A batch has put its own file in place.
        os.dup2(stdin_file, 0)
        for descriptor in (*files, supervisor):
            os.close(descriptor)
    for descriptor in (source, cache, wire):
        os.close(descriptor)


def _open_batch(stdin: bytes) -> tuple[batch.Files, int]:
    """Return the descriptors of a batch, and the other end of its socket.

    Its questions are answered in advance.
    """
    supervisor, questions = socket.socketpair()
    supervisor.send(batch.GO_ON * _BATCH_LENGTH)
    files = batch.Files(
        stdin=os.memfd_create("stdin", os.MFD_CLOEXEC),
        inputs=os.memfd_create("inputs", os.MFD_CLOEXEC),
        frames=os.memfd_create("frames", os.MFD_CLOEXEC),
        questions=questions.detach(),
    )
    os.write(files.inputs, batch.pack_inputs([stdin] * _BATCH_LENGTH))
    return files, supervisor.detach()


def _renew_streams(stdin: bytes) -> None:
    """Make fresh standard streams, as those of a test's own process are."""
    _clear_streams()
    os.pwrite(0, stdin, 0)
    reader = io.BufferedReader(io.FileIO(0, "r", closefd=False))
    sys.stdin = io.TextIOWrapper(reader, encoding="utf-8")
    writer = io.BufferedWriter(io.FileIO(1, "w", closefd=False))
    sys.stdout = io.TextIOWrapper(writer, encoding="utf-8")


def _clear_streams() -> None:
    """Empty the files of stdin and stdout."""
    for descriptor in (0, 1):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
