"""Tests that share a process: how many, how inputs and outputs reach it and the judge, and how results are judged."""

import contextlib
import math
import os
import select
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple

from microcoder.judge.core.types import Outcome, Repeat, TestResult
from microcoder.judge.run.screen import binds_constants, find_obstacle
from microcoder.judge.run.verdicts import PreparedProblem, PreparedTest, Run
from microcoder.judge.sandbox.batch import (
    CLEAN,
    ENDED,
    GO_ON,
    HEAD_BYTES,
    pack_inputs,
    unpack_frames,
)
from microcoder.judge.sandbox.protocol import CPU_EXPIRED, FINISHED, PLAIN, Result


class Loss(NamedTuple):
    """Why a run of a test does not count."""

    reason: Repeat
    cpu_seconds: float = math.inf
    """An accepted repetition that takes at least this raises no doubt: the time at which the run was cut off, 0 if the
    program could not have caused the loss, infinite otherwise."""


_LEAST_TESTS, _MOST_TESTS, _MOST_BYTES = 2, 512, 4 << 20
_MOST_CPU_SECONDS = 0.5
"""CPU time of all later tests of a process together: an endless one among them costs at most this."""


def choose_together(
    code: str, problem: PreparedProblem, num_done: int, end: int
) -> Sequence[PreparedTest]:
    """Return the next tests that are to share a process; none if they may not, or if that does not pay."""
    chosen = num_bytes = 0
    for test in problem.tests[num_done : min(end, num_done + _MOST_TESTS)]:
        num_bytes += len(test.stdin) + test.expected_bytes
        if num_bytes > _MOST_BYTES:
            break
        chosen += 1
    of = problem.problem
    is_odd = of.checker.type == "program" or of.dialect != PLAIN
    if chosen < _LEAST_TESTS or is_odd or find_obstacle(code, is_function=of.fn_name is not None):
        return ()
    return problem.tests[num_done : num_done + chosen]


_RIGHT_TEXT = TestResult(Outcome.ACCEPTED, 0.0, 0.0, 0.0, "exact", "")
_RIGHT_VALUE = TestResult(Outcome.ACCEPTED, 0.0, 0.0, 0.0, "value", "")
_MOST_QUESTIONS = 64
"""Maximum number of questions that a process may ask: it asks after 1, 4, 16 ... tests."""


def write_all(descriptor: int, data: bytes) -> None:
    """Write all data at the start of a file, without moving its offset."""
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
        """Describe a series; `open` makes its descriptors.

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
        """Whether the last test judged is not right."""
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
        self._files = [
            os.memfd_create(name, os.MFD_CLOEXEC) for name in ("stdin", "inputs", "frames")
        ]
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
                write_all(self._files[1], pack_inputs(self._later_inputs))
            asked.send(b"-" if self.has_wrong else GO_ON)

    def _look(self) -> None:
        """Judge the tests whose frames are new, up to the first that is not right."""
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


class Together(Series):
    """Tests of one process, judged as they end.

    A test is accepted if its output is right and the process stayed within the limits of one test by the kernel's
    accounts. The first is judged like one in a process of its own; another that is not accepted is run again elsewhere.
    """

    def __init__(self, code: str, problem: PreparedProblem, tests: Sequence[PreparedTest]) -> None:
        """Prepare a series of these tests of a program; nothing is started."""
        self._problem = problem
        self._tests = tests
        self._judged: list[TestResult] = []
        cpu_seconds = min(problem.limits.cpu_seconds, _MOST_CPU_SECONDS)
        is_fixed = problem.problem.fn_name is not None and binds_constants(code)
        inputs = [test.stdin for test in tests[1:]]
        super().__init__(inputs, cpu_seconds, self._judge, binds_constants=is_fixed)

    @property
    def loss(self) -> Loss | None:
        """Why a later test that began was not accepted, and must be run in another process; None if there is none."""
        if self.has_wrong and self.num_ended > 1:
            return Loss(Repeat.SHARED_WRONG)
        if not self.has_lost or self.num_ended == len(self._tests):
            return None
        return Loss(Repeat.SHARED_LOST, self.cpu_seconds if self.is_out_of_time else math.inf)

    @property
    def num_unchecked(self) -> int:
        """Number of accepted tests that do not count, as no check after them found the library unchanged."""
        return max(0, self.num_ended - self.has_wrong - self.num_counting)

    def is_over(self, run: Run) -> bool:
        """Whether the process exceeded one test's limit on memory or stderr, in a test that is not known."""
        memory_kib = 0 if self.result is None else self.result.memory_kib
        is_over = memory_kib > self._problem.problem.memory_limit_mib << 10
        return self.num_ended > 1 and (
            is_over or run.stderr_bytes > self._problem.limits.output_bytes
        )

    def accepted_after(self, run: Run) -> list[TestResult]:
        """Return the results of accepted tests behind the first that count; `run` is that of the first."""
        measured = run.cpu_seconds, run.result.wall_us / 1e6, round(run.result.memory_kib / 1024, 3)
        accepted = [
            one for one in self._judged[1 : self.num_counting] if one.verdict is Outcome.ACCEPTED
        ]
        # One for all that are alike: making them takes as long as judging them.
        alike = {
            (method, detail): TestResult(Outcome.ACCEPTED, *measured, method, detail)
            for method, detail in {(one.method, one.detail) for one in accepted}
        }
        return [alike[one.method, one.detail] for one in accepted]

    def _judge(self, number: int, status: int, output: bytes) -> bool:
        is_function = self._problem.problem.fn_name is not None
        if not status and output.removesuffix(b"\n") == self._tests[number].exact:
            self._judged[number:] = [_RIGHT_VALUE if is_function else _RIGHT_TEXT]
            return True
        run = Run(
            result=Result(
                exit_code=status, signal=0, cpu_us=0, wall_us=0, memory_kib=0, expired=FINISHED
            ),
            stdout=b"" if is_function else output,
            stdout_bytes=0 if is_function else len(output),
            stderr="",
            stderr_bytes=0,
            wire=output if is_function else None,
        )
        judged = self._problem.judge(run, self._tests[number])
        self._judged[number:] = [judged]
        return judged.verdict is Outcome.ACCEPTED
