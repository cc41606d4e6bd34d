"""The trusted side of one sandbox: starts the fork server, hands it tests, kills it if silent.

A `Sandbox` belongs to the thread that made it: the kernel ends the fork server when that thread
ends.

A `Watchdog` answers the fork server's questions while a test runs.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import shutil
import signal
import socket
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import require_linux
from microcoder.judge.languages.definition import STANDARD_PRELOAD, current_interpreter
from microcoder.judge.run import isolation
from microcoder.judge.run.executor import Run, Task
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.timing import Limits
from microcoder.judge.run.watchdog import Owner, Side, Watchdog
from microcoder.judge.sandbox import protocol
from microcoder.judge.sandbox.batch import GO_ON
from microcoder.judge.sandbox.protocol import (
    NO_RUNTIME,
    Layer,
    Request,
    Result,
    pack_seconds,
)

QUESTIONS = (protocol.STILL, protocol.SLICE)
"""Kinds of messages that ask how long a running test may go on."""
_START_SECONDS = 60.0
"""Time for a fork server to start."""
_GRACE_SECONDS = 60.0
"""Time beyond a test's limits to wait for the fork server's answer.

A busy machine may give it no processor.
"""
_MOST_QUESTIONS = 64
"""Most questions of a batch's process that are answered: it asks after 1, 4, 16 ... tests."""
_STDERR_TAIL = 4096
"""Bytes at the end of stderr that are kept."""
_ALL_SEALS = 0xF
"""F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE."""


def make_memory_file(data: bytes) -> int:
    """Return the descriptor of an anonymous file, sealed: nobody can change its content."""
    import fcntl  # Not there on Windows, where this module can be imported all the same.

    descriptor = os.memfd_create("data", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    num_written = 0
    while num_written < len(data):
        num_written += os.pwrite(descriptor, memoryview(data)[num_written:], num_written)
    # The program gets the descriptor, and must not change what later tests read.
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _ALL_SEALS)
    return descriptor


class SandboxDied(EvaluatorFault):
    """The fork server is gone or does not answer; another may do better."""


class DiskFull(SandboxDied):
    """The disk was full before a test had written what it may.

    Without mounts a program can fill it.
    """


class PassedOn:
    """Descriptors that a run is given and nobody else keeps: closed once they are sent."""

    def __init__(self, numbers: Sequence[int] = ()) -> None:
        self.numbers = list(numbers)

    def close(self) -> None:
        """Close those that are not closed yet."""
        # Two threads may do so at once.
        with contextlib.suppress(IndexError):
            while True:
                os.close(self.numbers.pop())


@dataclass(frozen=True, slots=True)
class TestTask:
    """A test to run; the caller closes the descriptors."""

    source: int
    """The program's source, or the binary."""
    cache: int
    """Memory file of a Python program's bytecode; the source again for a binary."""
    stdin: bytes
    files: Mapping[str, bytes | None]
    """Files for the scratch folder; None makes an empty folder."""
    options: Mapping[str, Any]
    """The fields of `Request` that say how to run the test, without limits."""
    pipes: PassedOn = field(default_factory=PassedOn)
    """Of a conversation (see `conversations`): the pipe that it reads, and the one it writes to. Of
    an interaction (see `interactions`) also what tells that the other side has ended."""


class Loaded:
    """A program ready to be run; it owns its descriptors."""

    def __init__(
        self,
        source: int,
        cache: int,
        command: tuple[str, ...] = (),
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """Take over two descriptors.

        Args:
            source: of the program's source, or the binary.
            cache: of a Python program's bytecode; the source again for a binary.
            command: starts a binary.
            files: added to those of each run.
        """
        self.source = source
        self.cache = cache
        self._command = command
        self._files = files or {}

    def task(
        self,
        stdin: bytes,
        *,
        arguments: Sequence[str] = (),
        files: Mapping[str, bytes | None] | None = None,
        **options: object,
    ) -> TestTask:
        """Return the task of one run of this program; `options` are fields of `Request`."""
        options["command" if self._command else "arguments"] = (*self._command, *arguments)
        # Its own files last: none of a run replaces what its runtime reads.
        return TestTask(
            self.source,
            self.cache,
            stdin,
            {**(files or {}), **self._files},
            options,
        )

    def task_of(
        self, task: Task, files: Mapping[str, bytes | None], *, has_named_streams: bool
    ) -> TestTask:
        """Return a task of an executor in the form that a sandbox takes.

        Args:
            task: what the program is run on.
            files: those of the run, in place of the task's own.
            has_named_streams: stdout and stderr are files that have names.
        """
        return self.task(
            task.stdin,
            arguments=task.arguments,
            files=files,
            fn_name=task.fn_name,
            call=task.call,
            dialect=task.dialect,
            int_digits=task.int_digits,
            collected=task.collected,
            has_named_streams=has_named_streams,
        )

    def rejection(self) -> str | None:
        """Return the compiler's message if the source does not compile; None for what was built."""
        if (
            self.cache == self.source
            or os.pread(
                self.cache,
                1,
                0,
            )
            != protocol.REJECTED
        ):
            return None
        return os.pread(self.cache, protocol.MAX_MESSAGE, 1).decode("utf-8", "replace")

    def close(self) -> None:
        """Close the descriptors, which frees source and cache."""
        # A set, as both may be one descriptor.
        for descriptor in {self.source, self.cache}:
            os.close(descriptor)


class LoadedProgram(Loaded):
    """A Python program: source and bytecode in anonymous memory."""

    def __init__(self, code: str) -> None:
        source = make_memory_file(code.encode("utf-8", "surrogatepass"))
        super().__init__(source, os.memfd_create("cache", os.MFD_CLOEXEC))


@dataclass(frozen=True, slots=True)
class _Streams:
    """The descriptors that one run is given for its streams."""

    stdin: int
    stdout: int
    stderr: int
    wire: int | None
    """For the value of a function or a binary; None for a run that writes none."""

    def listed(self) -> list[int]:
        """Return the descriptors in the order in which they are sent."""
        descriptors = [self.stdin, self.stdout, self.stderr]
        if self.wire is not None:
            descriptors.append(self.wire)
        return descriptors


class Sandbox:
    """One warm fork server, ready to run tests one after the other."""

    def __init__(
        self,
        *,
        packages: str = "",
        preload: Sequence[str] = (),
        layers: Collection[str] = protocol.LAYERS,
        toolchain: Sequence[str] | None = None,
        runtime: Mapping[str, Any] = NO_RUNTIME,
        scratch_mib: int = 16,
        nice: int = 0,
        owner: Owner | None = None,
    ) -> None:
        """Start the fork server; EvaluatorFault if it does not start.

        Args:
            packages: folder of the third-party packages that programs may import; empty for none.
            preload: packages to import besides the standard library's.
            layers: the layers of isolation to put on.
            toolchain: paths that compilers need to read; such a sandbox builds programs and runs
                none.
            runtime: what a language's runtime needs, from `builds.describe_runtime`.
            scratch_mib: how much a test may write to its folder.
            nice: niceness of programs, 0 to 19; never less than the calling process's.
            owner: its worker; by default there is no other.
        """
        require_linux()
        if packages and not os.path.isdir(packages):
            raise EvaluatorFault(
                f"{packages} with the packages that programs may import is gone; "
                "type `microcoder packages standard`, and start again"
            )
        self._owner = owner or Owner()
        self._builds = toolchain is not None
        self._log = os.memfd_create("log", os.MFD_CLOEXEC)
        self.nothing = self._log
        """A descriptor to pass as a task's source or cache if it has none."""
        # Only a name: the sandbox makes its folder itself, where it has put on its layers.
        self._folder = isolation.reserve_name()
        self._scratch_mib = scratch_mib
        parent = os.path.dirname(self._folder)
        self._full_disk = (
            f"the file system of {parent} was full before a test had written what it may"
        )
        interpreter = current_interpreter()
        try:
            self._process, self._socket = isolation.start_fork_server(
                interpreter.executable, self._log
            )
        except OSError as error:
            os.close(self._log)
            raise SandboxDied(f"cannot start {interpreter.executable}: {error}") from error
        config = {
            "layers": [layer for layer in protocol.LAYERS if layer in layers],
            "libraries": _list_readable(toolchain, runtime),
            "hidden": interpreter.hidden,
            "packages": packages,
            "stdlib": interpreter.stdlib,
            "preload": (*STANDARD_PRELOAD, *preload),
            "builds": self._builds,
            "runtime": runtime,
            "scratch_mib": scratch_mib,
            "folder": self._folder,
            "nice": nice,
        }
        report = self._configure(config)
        missing = report["missing"]
        enforced = tuple(layer for layer in protocol.LAYERS if layer not in missing)
        self.isolation = Isolation(enforced, missing, str(report["call_stack"]))
        if Layer.MOUNT_NAMESPACE in missing:
            isolation.sweep(parent)

    def _configure(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Send the fork server its configuration; return its report, or close and raise a fault."""
        try:
            self._send(protocol.CONFIG + json.dumps(config).encode())
            answer, _ = self._receive(_START_SECONDS)
        except SandboxDied as died:
            # What it wrote before it ended says more than that it ended.
            log = _read_all(self._log, os.fstat(self._log).st_size)
            last_words = log.decode("utf-8", "replace").strip()[-500:]
            self.close()
            words = f": {last_words}" if last_words else " nothing"
            raise SandboxDied(f"the sandbox did not start: {died}; it said{words}") from None
        if answer[:1] == protocol.FAILED:
            self.close()
            why = answer[1:].decode("utf-8", "replace")
            raise EvaluatorFault(f"the sandbox could not be set up: {why}")
        report: dict[str, Any] = json.loads(answer.removeprefix(protocol.READY))
        return report

    @property
    def pid(self) -> int:
        """Process id of the fork server, as seen from here."""
        return self._process.pid

    def run(self, task: TestTask, limits: Limits, side: Side | None = None) -> Run:
        """Run one test.

        Args:
            task: what is run.
            limits: of the test.
            side: which side of an interaction it is; None for any other run.

        Raises:
            SandboxDied: the fork server is gone or does not answer.
        """
        is_function = bool(task.options.get("fn_name"))
        role = task.options.get("role")
        with contextlib.ExitStack() as opened:
            opened.callback(task.pipes.close)
            has_wire = is_function or role == protocol.ASKS or self._builds
            has_wire = has_wire or bool(task.options.get("collected"))
            streams = _open_streams(opened, task.stdin, has_wire=has_wire)
            standard = streams.listed()
            pipes = list(task.pipes.numbers)
            if role == protocol.TALKS:
                standard[:2] = pipes[:2]
                pipes = pipes[2:]
            descriptors = [*standard[:3], *pipes, *standard[3:]]
            watchdog = Watchdog(limits, self._owner, side)
            exchange = self._exchange(opened, task, limits, descriptors, watchdog)
            try:
                next(exchange)
            except StopIteration as end:
                return _read_run(streams, end.value, tuple(watchdog.notes), is_function=is_function)
        raise AssertionError("a test alone asks nothing")

    def share(
        self, task: TestTask, limits: Limits, files: Sequence[int], questions: socket.socket
    ) -> Generator[None, None, Result]:
        """Run several tests in one process; yield whenever it asks whether to go on.

        Taking the next item lets it go on, closing the generator ends it.

        Args:
            task: what is run, whatever its stdin.
            limits: of the process.
            files: its descriptors of `batch.Files`.
            questions: our end of the socket among them.

        Returns:
            What the process took.

        Raises:
            SandboxDied: the fork server is gone or does not answer.
        """
        with contextlib.ExitStack() as opened:
            streams = _open_streams(opened, b"", has_wire=False)
            descriptors = [*streams.listed(), *files]
            watchdog = Watchdog(limits, self._owner)
            return (
                yield from self._exchange(opened, task, limits, descriptors, watchdog, questions)
            )

    def check_disk_space(self) -> None:
        """Raise DiskFull if a sandbox that writes to the machine's disk has too little space.

        It needs as much as a test may write.
        """
        # Otherwise its folder is a file system of its own, in memory.
        if Layer.MOUNT_NAMESPACE not in self.isolation.missing:
            return
        free_bytes = shutil.disk_usage(os.path.dirname(self._folder)).free
        if free_bytes < self._scratch_mib << 20:
            raise DiskFull(self._full_disk)

    def _exchange(
        self,
        opened: contextlib.ExitStack,
        task: TestTask,
        limits: Limits,
        descriptors: Sequence[int],
        watchdog: Watchdog,
        questions: socket.socket | None = None,
    ) -> Generator[None, None, Result]:
        """Send a request, answer what is asked, and return the result.

        Yield whenever the process itself asks, by `questions`, whether to go on.

        Args:
            opened: closes the files that are made here.
            task: what is run.
            limits: of the process.
            descriptors: its streams, and what else the fork server is to pass on.
            watchdog: answers the fork server's own questions.
            questions: our end of a batch's socket.
        """
        contents = [content for content in task.files.values() if content is not None]
        files = [make_memory_file(content) for content in contents]
        for file in files:
            opened.callback(os.close, file)
        request = Request(
            limits.cpu_seconds,
            watchdog.first_wall_seconds,
            limits.memory_bytes,
            # A byte more than allowed, so that a stream which is too long is seen to be.
            limits.output_bytes + 1,
            files=tuple(task.files),
            is_batch=questions is not None,
            **task.options,
        )
        patience_seconds = limits.wall_seconds + _GRACE_SECONDS
        num_questions = 0
        is_stopped = False
        try:
            # In the order in which the fork server expects them.
            self._send(request.pack(), [task.source, task.cache, *descriptors, *files])
            # Each side of a conversation sees the other's end by its pipe.
            task.pipes.close()
            while True:
                # A process that asks on and on is not answered any more.
                if num_questions < _MOST_QUESTIONS and self._is_asked(questions, patience_seconds):
                    num_questions += 1
                    # Whoever takes no more is still given the end of the process, which then comes.
                    if not is_stopped:
                        try:
                            yield
                        except GeneratorExit:
                            is_stopped = True
                    _answer(questions, goes_on=not is_stopped)
                    continue
                answer, received = self._receive(patience_seconds)
                if answer[:1] not in QUESTIONS or len(received) != 1:
                    break
                seconds = watchdog.reply(answer, received[0])
                self._send(pack_seconds(protocol.GO_ON, seconds))
            if answer[:1] != protocol.RESULT:
                raise SandboxDied(f"unexpected answer {answer[:200]!r}")
            result = Result.unpack(answer)
            if result.expired == protocol.Expiry.FILE_SYSTEM:
                raise DiskFull(self._full_disk)
            if result.expired == protocol.Expiry.WALL:
                return watchdog.conclude(result)
            return result
        except BaseException:
            # The answer may come yet, and the next test would take it for its own.
            self._kill()
            raise

    def _is_asked(self, questions: socket.socket | None, seconds: float) -> bool:
        """Wait for a message; return whether the process of a batch asks, and the fork server does
        not."""
        if questions is None:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.register(questions, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(seconds * 1000)]
        return questions.fileno() in ready and self._socket.fileno() not in ready

    def close(self) -> None:
        """End the fork server and everything in it."""
        self._kill()
        os.close(self._log)

    def interrupt(self) -> None:
        """End the fork server from another thread; the owner's `run` then raises `SandboxDied`."""
        if self._process.returncode is not None:
            return
        # It leads a process group, so one signal ends all that is in it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _kill(self) -> None:
        self.interrupt()
        # Before its folder is removed: until it has ended it may write there.
        self._process.wait()
        self._socket.close()
        isolation.remove(self._folder)

    def _send(
        self,
        message: bytes,
        descriptors: Sequence[int] = (),
    ) -> None:
        rights = []
        if descriptors:
            rights.append((socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors)))
        try:
            self._socket.sendmsg([message], rights)
        except OSError as error:
            raise SandboxDied(f"it hung up ({error.strerror})") from None

    def _receive(self, seconds: float) -> tuple[bytes, list[int]]:
        """Return the next message and the descriptors beside it."""
        self._socket.settimeout(seconds)
        try:
            # Of what the untrusted side sends: one message of bounded size, at most one descriptor.
            answer, descriptors, _, _ = socket.recv_fds(
                self._socket, protocol.MAX_MESSAGE, 1, socket.MSG_CMSG_CLOEXEC
            )
        except TimeoutError:
            raise SandboxDied(f"no answer within {seconds:.0f} s") from None
        except OSError as error:
            raise SandboxDied(f"it hung up ({error.strerror})") from None
        if not answer:
            raise SandboxDied("it ended")
        return answer, descriptors


def _list_readable(toolchain: Sequence[str] | None, runtime: Mapping[str, Any]) -> list[str]:
    """Return the paths that a sandbox may read: the interpreter's, and those of the rest that
    exist."""
    readable = list(current_interpreter().libraries)
    for path in (*(toolchain or ()), *runtime["readable"]):
        if os.path.exists(path):
            readable.append(path)
    return readable


def _answer(questions: socket.socket | None, *, goes_on: bool) -> None:
    """Read the question of a batch's process, and answer it."""
    assert questions is not None
    with contextlib.suppress(OSError):
        questions.recv(1)
        questions.send(GO_ON if goes_on else b"-")


def _open_streams(opened: contextlib.ExitStack, stdin: bytes, *, has_wire: bool) -> _Streams:
    """Return the streams of a run; `opened` closes them.

    Each test has files of its own. What a program does to one (mode, times, flags, locks) would be
    there for the next, could it be used again.
    """
    names = ["stdout", "stderr"]
    if has_wire:
        names.append("wire")
    descriptors = [make_memory_file(stdin)]
    descriptors += [os.memfd_create(name, os.MFD_CLOEXEC) for name in names]
    for descriptor in descriptors:
        opened.callback(os.close, descriptor)
    wire = descriptors[3] if has_wire else None
    return _Streams(descriptors[0], descriptors[1], descriptors[2], wire)


def _read_run(
    streams: _Streams, result: Result, notes: tuple[str, ...], *, is_function: bool
) -> Run:
    """Return the run of a test that ended."""
    stdout_bytes = os.fstat(streams.stdout).st_size
    stderr_bytes = os.fstat(streams.stderr).st_size
    value = None
    if streams.wire is not None:
        value = _read_all(streams.wire, os.fstat(streams.wire).st_size)
    tail = os.pread(streams.stderr, _STDERR_TAIL, max(0, stderr_bytes - _STDERR_TAIL))
    return Run(
        result=result,
        stdout=b"" if is_function else _read_all(streams.stdout, stdout_bytes),
        stdout_bytes=stdout_bytes,
        stderr=tail.decode("utf-8", "replace"),
        stderr_bytes=stderr_bytes,
        wire=value,
        notes=notes,
    )


def _read_all(descriptor: int, size: int) -> bytes:
    return os.pread(descriptor, size, 0) if size else b""
