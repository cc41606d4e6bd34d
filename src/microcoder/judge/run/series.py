"""The judge's side of tests that share a process: its files, its questions, and the frames that hold its outputs."""

import contextlib
import os
import select
import socket
from collections.abc import Callable, Sequence

from microcoder.judge.sandbox.batch import CLEAN, ENDED, GO_ON, HEAD_BYTES, pack_inputs, unpack_frames
from microcoder.judge.sandbox.protocol import CPU_EXPIRED, FINISHED, Result

_ALL_SEALS = 0xF
_MOST_QUESTIONS = 64
"""Maximum number of questions: one whenever there are four times as many tests."""


def make_memory_file(data: bytes) -> int:
    """Return the descriptor of an anonymous file with this content, sealed: nobody can change it any more."""
    import fcntl  # Not there on Windows, where this module can be imported all the same.

    descriptor = os.memfd_create("data", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    _write_all(descriptor, data)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _ALL_SEALS)
    return descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    """Write a file from its start; its position stays."""
    num_written = os.pwrite(descriptor, data, 0)
    while num_written < len(data):
        num_written += os.pwrite(descriptor, memoryview(data)[num_written:], num_written)


class Series:
    """Tests that run in one process, in order. The first is run like any other test until it has ended.

    If the sandbox dies, the series may be run again from the beginning: then `is_right` judges the first test again.
    """

    def __init__(
        self,
        later_inputs: Sequence[bytes],
        cpu_seconds: float,
        is_right: Callable[[int, int, bytes], bool],
        *,
        binds_constants: bool = False,
    ) -> None:
        """Open nothing yet.

        Args:
            later_inputs: stdin of all tests but the first.
            cpu_seconds: CPU limit of these together, above 0.
            is_right: judges a test by its number in the series, status and output.
            binds_constants: the program is a function's, and its module need not be made anew (see `screen`).
        """
        self.cpu_seconds = cpu_seconds
        self.binds_constants = binds_constants
        self._later_inputs = later_inputs
        self._is_right = is_right
        self._files: list[int] = []
        self._stdout = -1
        self._asked: socket.socket | None = None
        self._begin()

    def _begin(self) -> None:
        self.first: tuple[int, bytes] | None = None
        """Status and output of the first test, if it ended."""
        self.num_ended = 0
        """Tests judged so far: all that ended, up to the first that is not right."""
        self.result: Result | None = None
        """How the process ended, all of its tests together."""
        self.has_wrong = False
        """Whether the last one that was looked at is not right."""
        self.has_ended = False
        """Whether the process ended by itself, between two tests."""
        self._num_clean = self._position = self._num_questions = 0

    @property
    def num_counting(self) -> int:
        """Number of tests whose results count: the library was unchanged when each began, or at a check after it."""
        return min(self.num_ended, self._num_clean + 1)

    @property
    def has_lost(self) -> bool:
        """Whether the process ended during a test behind the first, which then has no result."""
        return self.num_ended > 0 and not self.has_wrong and not self.has_ended

    @property
    def is_out_of_time(self) -> bool:
        """Whether the process was ended at its CPU limit."""
        return self.result is not None and self.result.expired == CPU_EXPIRED

    def open(self, stdout: int) -> list[int]:
        """Return new descriptors for the process: later stdin, inputs, frames, questions.

        The first test's output is in `stdout`, or in its frame if that is -1.
        """
        self._begin()
        self._asked, theirs = socket.socketpair()
        self._stdout = stdout
        self._files = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("stdin", "inputs", "frames")]
        self._files.append(theirs.detach())
        return self._files

    def attend(self, control: socket.socket, seconds: float) -> None:
        """Answer the process's questions until the fork server sends a message on `control`, or the time is over."""
        poll = select.poll()
        poll.register(control, select.POLLIN)
        while self._asked is not None and self._num_questions < _MOST_QUESTIONS:
            poll.register(self._asked, select.POLLIN)
            ready = [descriptor for descriptor, _ in poll.poll(seconds * 1000)]
            if control.fileno() in ready or not ready:
                return
            self._answer(self._asked)

    def finish(self, result: Result) -> Result:
        """Judge the tests that ended; return the first's result, with the mean time per test."""
        self.result = result
        self._look()
        self.close()
        if self.first is None:
            return result
        return result._replace(
            exit_code=self.first[0],
            signal=0,
            expired=FINISHED,
            cpu_us=result.cpu_us // self.num_ended,
            wall_us=result.wall_us // self.num_ended,
        )

    def close(self) -> None:
        """Free what `open` made; a process that waits for an answer then ends."""
        if self._asked is not None:
            self._asked.close()
            self._asked = None
        while self._files:
            os.close(self._files.pop())

    def _answer(self, asked: socket.socket) -> None:
        self._num_questions += 1
        with contextlib.suppress(OSError):
            asked.recv(1)
            self._look()
            if self._num_questions == 1 and not self.has_wrong:
                _write_all(self._files[1], pack_inputs(self._later_inputs))
            asked.send(b"-" if self.has_wrong else GO_ON)

    def _look(self) -> None:
        """Judge the new frames, up to the first that is not right."""
        frames = self._files[2]
        content = os.pread(frames, os.fstat(frames).st_size - self._position, self._position)
        for status, output in unpack_frames(content):
            self._position += HEAD_BYTES + len(output)
            if self.has_ended:
                return
            if status & CLEAN:
                self._num_clean = self.num_ended
            self.has_ended = status | CLEAN == ENDED | CLEAN
            if self.has_ended or self.has_wrong or self.num_ended > len(self._later_inputs):
                continue
            if not self.num_ended:
                if self._stdout >= 0:
                    output = os.pread(self._stdout, os.fstat(self._stdout).st_size, 0)
                self.first = status & ~CLEAN, output
            self.has_wrong = not self._is_right(self.num_ended, status & ~CLEAN, output)
            self.num_ended += 1
