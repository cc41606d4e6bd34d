"""Tests that share a process: how many, how they reach it, and how their results are judged."""

import contextlib
import math
import os
import select
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple

from microcoder.judge.core.types import Outcome, Repeat, TestResult
from microcoder.judge.run.constant_modules import binds_constants
from microcoder.judge.run.screen import find_obstacle
from microcoder.judge.run.verdicts import PreparedProblem, PreparedTest, Run
from microcoder.judge.sandbox.batch import (
    CLEAN,
    ENDED,
    GO_ON,
    HEAD_BYTES,
    pack_inputs,
    unpack_frames,
)
from microcoder.judge.sandbox.protocol import PLAIN, Expiry, Result


class DiscardedRun(NamedTuple):
    """Why a run of a test does not count."""

    reason: Repeat
    cpu_seconds: float = math.inf
    """An accepted repetition that takes at least this raises no doubt.

    It is the time at which the run was cut off, 0 if the program could not have caused that, and
    infinite otherwise.
    """


_LEAST_TESTS = 2
"""Fewer tests gain nothing by one process."""
_MOST_TESTS = 512
"""Most tests of one process."""
_MOST_BYTES = 4 << 20
"""Most bytes of input and expected output of the tests of one process."""
_MOST_CPU_SECONDS = 0.5
"""CPU time of all later tests of a process together: an endless one among them costs at most
this."""


def choose_batch(
    code: str, prepared: PreparedProblem, num_done: int, end: int
) -> Sequence[PreparedTest]:
    """Return the next tests that are to share a process; none if they may not, or it does not pay.

    Args:
        code: the program.
        prepared: its problem.
        num_done: how many tests have a result.
        end: index of the first test that is not to be among them.
    """
    num_chosen = _count_tests(prepared.tests[num_done : min(end, num_done + _MOST_TESTS)])
    if num_chosen < _LEAST_TESTS:
        return ()
    problem = prepared.problem
    if problem.checker.type == "program" or problem.dialect != PLAIN:
        return ()
    # Last, as it takes longer than the other questions.
    if find_obstacle(code, is_function=problem.fn_name is not None):
        return ()
    return prepared.tests[num_done : num_done + num_chosen]


def _count_tests(tests: Sequence[PreparedTest]) -> int:
    """Return how many of the first tests stay within `_MOST_BYTES` together."""
    num_bytes = 0
    for number, test in enumerate(tests):
        num_bytes += len(test.stdin) + test.expected_bytes
        if num_bytes > _MOST_BYTES:
            return number
    return len(tests)


_RIGHT_TEXT = TestResult(Outcome.ACCEPTED, 0.0, 0.0, 0.0, "exact", "")
"""Result of a test whose output is the expected text, byte for byte."""
_RIGHT_VALUE = TestResult(Outcome.ACCEPTED, 0.0, 0.0, 0.0, "value", "")
"""Result of a test whose returned value is encoded as the expected one is."""
_MOST_QUESTIONS = 64
"""Maximum number of questions that a process may ask: it asks after 1, 4, 16 ... tests."""


def write_all(descriptor: int, data: bytes) -> None:
    """Write all data at the start of a file, without moving its offset."""
    num_written = os.pwrite(descriptor, data, 0)
    while num_written < len(data):
        num_written += os.pwrite(descriptor, memoryview(data)[num_written:], num_written)


class ProcessBatch:
    """Tests that run in one process, in order. The first is run like any other until it has ended.

    If the sandbox dies, the batch may be run again from the beginning: then `is_right` judges the
    first test again.
    """

    def __init__(
        self,
        later_inputs: Sequence[bytes],
        cpu_seconds: float,
        is_right: Callable[[int, int, bytes], bool],
        *,
        binds_constants: bool = False,
    ) -> None:
        """Describe a batch; `open` makes its descriptors.

        Args:
            later_inputs: stdin of all tests but the first.
            cpu_seconds: CPU limit of these together, above 0.
            is_right: judges a test by its number in the batch, status and output.
            binds_constants: the program is a function's, and its module need not be made again for
                each test (see `screen`).
        """
        self.cpu_seconds = cpu_seconds
        self.binds_constants = binds_constants
        self._later_inputs = later_inputs
        self._is_right = is_right
        self._files: list[int] = []
        self._stdout = -1
        self._questions: socket.socket | None = None
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
        self._num_clean = 0
        """Tests that had ended when the library was last found unchanged."""
        self._position = 0
        """Bytes of the frames that were read."""
        self._num_questions = 0

    @property
    def num_counting(self) -> int:
        """Number of tests whose results count.

        The library was unchanged when each of them began, or at a check after it.
        """
        return min(self.num_ended, self._num_clean + 1)

    @property
    def has_lost(self) -> bool:
        """Whether the process ended during a test behind the first, which then has no result."""
        return self.num_ended > 0 and not (self.has_wrong or self.has_ended)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the process was ended at its CPU limit."""
        return self.result is not None and self.result.expired == Expiry.CPU

    def open(self, stdout: int) -> list[int]:
        """Return new descriptors for the process: later stdin, inputs, frames, questions.

        The first test's output is in `stdout`, or in its frame if that is -1.
        """
        self._begin()
        self._questions, theirs = socket.socketpair()
        self._stdout = stdout
        names = ("stdin", "inputs", "frames")
        self._files = [os.memfd_create(name, os.MFD_CLOEXEC) for name in names]
        self._files.append(theirs.detach())
        return self._files

    def answer_questions(
        self,
        control: socket.socket,
        seconds: float,
    ) -> None:
        """Answer the process until a message comes on `control`, or the time is over."""
        poll = select.poll()
        poll.register(control, select.POLLIN)
        # A process that asks on and on is not answered any more.
        while self._questions is not None and self._num_questions < _MOST_QUESTIONS:
            poll.register(self._questions, select.POLLIN)
            ready = [descriptor for descriptor, _ in poll.poll(seconds * 1000)]
            if control.fileno() in ready or not ready:
                return
            self._answer(self._questions)

    def finish(self, result: Result) -> Result:
        """Judge the tests that ended; return the first's result, with the mean time per test."""
        self.result = result
        self._look()
        self.close()
        if self.first is None:
            return result
        status, _ = self.first
        # Of the tests of one process the kernel counts only the sum.
        return result._replace(
            exit_code=status,
            signal=0,
            expired=Expiry.FINISHED,
            cpu_us=result.cpu_us // self.num_ended,
            wall_us=result.wall_us // self.num_ended,
        )

    def close(self) -> None:
        """Free what `open` made; a process that waits for an answer then ends."""
        if self._questions is not None:
            self._questions.close()
            self._questions = None
        while self._files:
            os.close(self._files.pop())

    def _answer(self, questions: socket.socket) -> None:
        """Read one question; answer whether the process goes on."""
        self._num_questions += 1
        with contextlib.suppress(OSError):
            questions.recv(1)
            self._look()
            if self._num_questions == 1 and not self.has_wrong:
                # Only now: during the first test, the process must not hold the inputs of others.
                _, inputs, *_ = self._files
                write_all(inputs, pack_inputs(self._later_inputs))
            questions.send(b"-" if self.has_wrong else GO_ON)

    def _look(self) -> None:
        """Judge the tests whose frames are new, up to the first that is not right."""
        frames = self._files[2]
        content = os.pread(
            frames,
            os.fstat(frames).st_size - self._position,
            self._position,
        )
        for status, output in unpack_frames(content):
            self._position += HEAD_BYTES + len(output)
            if self.has_ended:
                return
            if status & CLEAN:
                self._num_clean = self.num_ended
            self.has_ended = status | CLEAN == ENDED | CLEAN
            # The process writes the frames, and may write more of them than it has tests.
            is_surplus = self.num_ended > len(self._later_inputs)
            if not (self.has_ended or self.has_wrong or is_surplus):
                self._judge_frame(status & ~CLEAN, output)

    def _judge_frame(self, status: int, output: bytes) -> None:
        """Judge the next test by its status and output."""
        if not self.num_ended:
            if self._stdout >= 0:
                output = os.pread(self._stdout, os.fstat(self._stdout).st_size, 0)
            self.first = status, output
        self.has_wrong = not self._is_right(self.num_ended, status, output)
        self.num_ended += 1


class JudgedBatch(ProcessBatch):
    """Tests of one process, judged as they end.

    A test is accepted if its output is right and the process stayed within the limits of one test
    by the kernel's accounts. The first is judged like one in a process of its own; another that is
    not accepted is run again elsewhere.
    """

    def __init__(
        self,
        code: str,
        problem: PreparedProblem,
        tests: Sequence[PreparedTest],
    ) -> None:
        """Prepare a batch of these tests of a program; nothing is started."""
        self._problem = problem
        self._tests = tests
        self._judged: list[TestResult] = []
        cpu_seconds = min(problem.limits.cpu_seconds, _MOST_CPU_SECONDS)
        # A program that prints runs its whole module for each test.
        is_fixed = problem.problem.fn_name is not None and binds_constants(code)
        inputs = [test.stdin for test in tests[1:]]
        super().__init__(inputs, cpu_seconds, self._judge, binds_constants=is_fixed)

    @property
    def discarded(self) -> DiscardedRun | None:
        """Why a later test that began was not accepted, and must be run in another process.

        None if there is no such test.
        """
        if self.has_wrong and self.num_ended > 1:
            return DiscardedRun(Repeat.SHARED_WRONG)
        if not self.has_lost or self.num_ended == len(self._tests):
            return None
        if self.is_out_of_time:
            # What earlier tests had used of the shared time is not known: it counts as having had
            # all.
            return DiscardedRun(Repeat.SHARED_LOST, self.cpu_seconds)
        return DiscardedRun(Repeat.SHARED_LOST)

    @property
    def num_unchecked(self) -> int:
        """Number of accepted tests that do not count.

        No check after them found the library unchanged.
        """
        num_accepted = self.num_ended - self.has_wrong
        return max(0, num_accepted - self.num_counting)

    def is_over(self, run: Run) -> bool:
        """Whether the process exceeded one test's limit on memory or stderr, in an unknown test."""
        if self.num_ended <= 1:
            return False
        memory_kib = 0 if self.result is None else self.result.memory_kib
        if memory_kib > self._problem.problem.memory_limit_mib << 10:
            return True
        return run.stderr_bytes > self._problem.limits.output_bytes

    def accepted_after(self, run: Run) -> list[TestResult]:
        """Return the results of accepted tests behind the first that count.

        `run` is that of the first.
        """
        memory_mib = round(run.result.memory_kib / 1024, 3)
        wall_seconds = run.result.wall_us / 1e6
        # One for all that are alike: making them takes as long as judging them.
        alike: dict[tuple[str, str], TestResult] = {}
        accepted = []
        for judged in self._judged[1 : self.num_counting]:
            if judged.verdict is not Outcome.ACCEPTED:
                continue
            key = judged.method, judged.detail
            if key not in alike:
                alike[key] = TestResult(
                    Outcome.ACCEPTED, run.cpu_seconds, wall_seconds, memory_mib, *key
                )
            accepted.append(alike[key])
        return accepted

    def _judge(
        self,
        number: int,
        status: int,
        output: bytes,
    ) -> bool:
        """Note the result of the test with this number; return whether it is accepted."""
        is_function = self._problem.problem.fn_name is not None
        # A test is judged again if the sandbox died: its result and later ones are then replaced.
        if not status and output.removesuffix(b"\n") == self._tests[number].exact:
            self._judged[number:] = [_RIGHT_VALUE if is_function else _RIGHT_TEXT]
            return True
        run = Run(
            result=Result(
                exit_code=status,
                signal=0,
                cpu_us=0,
                wall_us=0,
                memory_kib=0,
                expired=Expiry.FINISHED,
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
