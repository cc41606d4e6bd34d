"""A process in which a program runs on several inputs, one after the other.

`SharedProcess` is one such process; `SharedInSandbox` runs all tests of a program, in as many of
them as it takes: a process that has used a tenth of a second begins no other test.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager

from microcoder.judge.core.types import Repeat
from microcoder.judge.run.executor import Excuse, Observation, Run, Usage
from microcoder.judge.run.supervisor import Sandbox, SandboxDied, TestTask
from microcoder.judge.run.timing import Limits
from microcoder.judge.sandbox.batch import ENDED, HEAD_BYTES, pack_inputs, unpack_frames
from microcoder.judge.sandbox.protocol import Expiry, Result

_MOST_TESTS = 512
"""Most tests of one process."""
_MOST_BYTES = 4 << 20
"""Most bytes of input of the tests of one process."""

Frame = tuple[int, bytes]
"""Status and output of a test that ended."""


class SharedProcess:
    """A process that runs a program on several inputs."""

    def __init__(
        self, sandbox: Sandbox, task: TestTask, inputs: Sequence[bytes], limits: Limits
    ) -> None:
        """Describe the process; it starts when its tests are taken.

        Args:
            sandbox: runs it.
            task: what is run, whatever its stdin.
            inputs: stdin of each test.
            limits: of all tests together.
        """
        self._sandbox = sandbox
        self._task = task
        self._inputs = inputs
        self._limits = limits
        self.result: Result | None = None
        """What the process took, once it has ended."""
        self.has_ended_itself = False
        """Whether the process ended between two tests, and not during one."""
        self._num_frames = 0
        self._position = 0
        """Bytes of the frames that were read."""

    def __iter__(self) -> Generator[Frame, None, None]:
        """Yield what is seen of each test that ended; to stop taking them ends the process.

        Raises:
            SandboxDied: the fork server is gone or does not answer.
        """
        with contextlib.ExitStack() as opened:
            ours, theirs = socket.socketpair()
            opened.callback(ours.close)
            frames = _open_file(opened, "frames")
            inputs = _open_file(opened, "inputs")
            os.pwrite(inputs, pack_inputs(self._inputs), 0)
            files = [_open_file(opened, "stdin"), inputs, frames, theirs.detach()]
            opened.callback(os.close, files[-1])
            conversation = self._sandbox.share(self._task, self._limits, files, ours)
            try:
                while True:
                    # Until the process asks whether to go on, or has ended.
                    self.result = _advance(conversation)
                    yield from self._read_frames(frames)
                    if self.result is not None:
                        return
            finally:
                # Whoever left has seen enough: told so, the process ends.
                if self.result is None:
                    conversation.close()

    def _read_frames(self, frames: int) -> Generator[Frame, None, None]:
        """Yield the frames that are new."""
        content = os.pread(frames, os.fstat(frames).st_size - self._position, self._position)
        for status, output in unpack_frames(content):
            self._position += HEAD_BYTES + len(output)
            if status == ENDED:
                self.has_ended_itself = True
            # The process writes the frames, and may write more of them than it has tests.
            if self.has_ended_itself or self._num_frames == len(self._inputs):
                return
            self._num_frames += 1
            yield status, output


def _open_file(opened: contextlib.ExitStack, name: str) -> int:
    """Return a new file in memory that is closed with the rest."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    opened.callback(os.close, descriptor)
    return descriptor


def _advance(conversation: Generator[None, None, Result]) -> Result | None:
    """Let a process go on until it asks whether it may; return how it ended, if it did."""
    try:
        next(conversation)
    except StopIteration as end:
        return end.value
    return None


class SharedInSandbox:
    """The runs of a program's tests in processes that they share (see `executor.SharedRuns`)."""

    def __init__(
        self,
        find: Callable[[], AbstractContextManager[Sandbox]],
        task: TestTask,
        inputs: Sequence[bytes],
        limits: Limits,
    ) -> None:
        """Describe the runs; they are made as they are taken.

        Args:
            find: enters a sandbox that can run the program.
            task: what is run, whatever its stdin.
            inputs: stdin of each test.
            limits: of one process.
        """
        self._find = find
        self._task = task
        self._inputs = inputs
        self._limits = limits
        self.usage = Usage()

    def __iter__(self) -> Generator[Observation, None, None]:
        """Yield what is seen of each test; one without a run is the last."""
        num_done = 0
        try:
            while num_done < len(self._inputs):
                with self._find() as sandbox:
                    inputs = _choose_inputs(self._inputs[num_done:])
                    process = SharedProcess(sandbox, self._task, inputs, self._limits)
                    with contextlib.closing(iter(process)) as frames:
                        for status, output in frames:
                            num_done += 1
                            yield Observation(self._as_run(status, output))
                self._add_usage(process.result)
                # It ended during a test, at a limit or by itself: nobody knows what that test did.
                if not process.has_ended_itself:
                    yield _lost(Repeat.SHARED_LOST)
                    return
        except (SandboxDied, OSError):
            yield _lost(Repeat.SANDBOX_DIED)

    def _as_run(self, status: int, output: bytes) -> Run:
        """Return a test's frame as a run whose times are not known."""
        result = Result(status, 0, 0, 0, 0, Expiry.FINISHED)
        if self._task.options.get("fn_name"):
            return Run(result, b"", 0, "", 0, output)
        return Run(result, output, len(output), "", 0, None)

    def _add_usage(self, result: Result | None) -> None:
        if result is None:
            return
        so_far = self.usage
        self.usage = Usage(
            so_far.cpu_seconds + result.cpu_us / 1e6,
            so_far.wall_seconds + result.wall_us / 1e6,
            max(so_far.memory_mib, result.memory_kib / 1024),
        )


def _lost(reason: Repeat) -> Observation:
    """Return what is seen of a test whose shared process is gone."""
    return Observation(None, (Excuse(reason, may_help=True),))


def _choose_inputs(inputs: Sequence[bytes]) -> Sequence[bytes]:
    """Return the first inputs, as many as one process takes: at least one."""
    num_bytes = 0
    for number, stdin in enumerate(inputs[:_MOST_TESTS]):
        num_bytes += len(stdin)
        if number and num_bytes > _MOST_BYTES:
            return inputs[:number]
    return inputs[:_MOST_TESTS]
