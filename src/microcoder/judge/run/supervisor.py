"""The trusted side of one sandbox: starts the fork server, hands it tests, kills it if silent.

A `Sandbox` belongs to the thread that made it: the kernel ends the fork server when that thread
ends.

`Watchdog` answers the fork server's questions while a test runs, by the kernel's counts of its
process; what follows from these is decided in `timing`.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import memory_mib_of, pid_of, read_process, require_linux
from microcoder.judge.languages.definition import STANDARD_PRELOAD, current_interpreter
from microcoder.judge.run import isolation, timing
from microcoder.judge.run.counts import WorkerRecord
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.sharing import ProcessBatch, write_all
from microcoder.judge.run.slots import Slot
from microcoder.judge.run.timing import Limits
from microcoder.judge.run.verdicts import Run
from microcoder.judge.sandbox import protocol
from microcoder.judge.sandbox.protocol import (
    NO_RUNTIME,
    Layer,
    Request,
    Result,
    pack_seconds,
    unpack_seconds,
)

QUESTIONS = (protocol.STILL, protocol.SLICE)
"""Kinds of messages that ask how long a running test may go on."""
_START_SECONDS = 60.0
"""Time for a fork server to start."""
_GRACE_SECONDS = 60.0
"""Time beyond a test's limits to wait for the fork server's answer.

A busy machine may give it no processor.
"""
_STDERR_TAIL = 4096
"""Bytes at the end of stderr that are kept."""
_ALL_SEALS = 0xF
"""F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE."""


def make_memory_file(data: bytes) -> int:
    """Return the descriptor of an anonymous file, sealed: nobody can change its content."""
    import fcntl  # Not there on Windows, where this module can be imported all the same.

    descriptor = os.memfd_create("data", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    write_all(descriptor, data)
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
        while self.numbers:
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
    """Of a conversation (see `conversations`): the pipe that it reads, and the one it writes to."""
    run_in: Callable[[Sandbox, Limits], Run] | None = None
    """Runs it in a sandbox together with another process, where it cannot run by itself."""


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
        **options: Any,
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
class Owner:
    """Slot and record of the worker that a sandbox belongs to."""

    slot: Slot = field(default_factory=Slot)
    """Given back while a test lets others go first."""
    record: WorkerRecord = field(default_factory=WorkerRecord)
    """Gets the decisions about the time of tests."""


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

    def run(
        self,
        task: TestTask,
        limits: Limits,
        batch: ProcessBatch | None = None,
    ) -> Run:
        """Run one test, or a batch that shares one process, of which the first is returned.

        Args:
            task: what to run.
            limits: of the test.
            batch: receives the results of the other tests; its task must not have
                `has_named_streams`.

        Raises:
            SandboxDied: the fork server is gone or does not answer.
        """
        is_function = bool(task.options.get("fn_name"))
        is_test = task.options.get("role") == protocol.ASKS
        # Those of a batch come in its frames.
        has_wire = (is_function and batch is None) or self._builds or is_test
        opened: list[int] = []
        try:
            streams = _open_streams(task.stdin, opened, has_wire=has_wire)
            shared: list[int] = []
            if batch is not None:
                shared = batch.open(-1 if is_function else streams.stdout)
            contents = [content for content in task.files.values() if content is not None]
            files = [make_memory_file(content) for content in contents]
            # In the order in which the fork server expects them.
            standard = streams.listed()
            pipes = task.pipes.numbers
            further = [*standard[:3], *pipes, *standard[3:], *shared, *files]
            descriptors = [task.source, task.cache, *further]
            opened += files
            request = Request(
                limits.cpu_seconds,
                limits.wall_seconds,
                limits.memory_bytes,
                # A byte more than allowed, so that a stream which is too long is seen to be.
                limits.output_bytes + 1,
                files=tuple(task.files),
                shared_cpu_seconds=0.0 if batch is None else batch.cpu_seconds,
                binds_constants=batch is not None and batch.binds_constants,
                **task.options,
            )
            watchdog = Watchdog(limits, self._owner.slot, self._owner.record)
            result = self._exchange(request, descriptors, watchdog, batch, task.pipes)
            return _read_run(streams, result, batch, is_function=is_function)
        finally:
            for descriptor in opened:
                os.close(descriptor)
            task.pipes.close()
            if batch is not None:
                batch.close()

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
        request: Request,
        descriptors: Sequence[int],
        watchdog: Watchdog,
        batch: ProcessBatch | None,
        pipes: PassedOn,
    ) -> Result:
        """Send a request, answer what the fork server asks, and return the result."""
        patience_seconds = request.wall_seconds + _GRACE_SECONDS
        try:
            self._send(request.pack(), descriptors)
            # Each side of a conversation sees the other's end by its pipe.
            pipes.close()
            answer, received = self._receive(patience_seconds, batch)
            while answer[:1] in QUESTIONS and len(received) == 1:
                seconds = watchdog.reply(answer, received[0])
                self._send(pack_seconds(protocol.GO_ON, seconds))
                answer, received = self._receive(patience_seconds, batch)
            if answer[:1] != protocol.RESULT:
                raise SandboxDied(f"unexpected answer {answer[:200]!r}")
            result = Result.unpack(answer)
            if result.expired == protocol.Expiry.FILE_SYSTEM:
                raise DiskFull(self._full_disk)
            return watchdog.conclude(result)
        except BaseException:
            # The answer may come yet, and the next test would take it for its own.
            self._kill()
            raise

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

    def _receive(
        self, seconds: float, batch: ProcessBatch | None = None
    ) -> tuple[bytes, list[int]]:
        """Return the next message and the descriptors beside it.

        What the process of a batch asks is answered until then.
        """
        if batch is not None:
            batch.answer_questions(self._socket, seconds)
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


def _open_streams(
    stdin: bytes,
    opened: list[int],
    *,
    has_wire: bool,
) -> _Streams:
    """Return the streams of a run, and add their descriptors to those that are to be closed.

    Each test has files of its own. What a program does to one (mode, times, flags, locks) would be
    there for the next, could it be used again.
    """
    opened.append(make_memory_file(stdin))
    for name in ("stdout", "stderr"):
        opened.append(os.memfd_create(name, os.MFD_CLOEXEC))
    wire = None
    if has_wire:
        wire = os.memfd_create("wire", os.MFD_CLOEXEC)
        opened.append(wire)
    return _Streams(opened[0], opened[1], opened[2], wire)


def _read_run(
    streams: _Streams, result: Result, batch: ProcessBatch | None, *, is_function: bool
) -> Run:
    """Return the run of a test that ended, or of the first one of a batch."""
    stdout_bytes = os.fstat(streams.stdout).st_size
    stderr_bytes = os.fstat(streams.stderr).st_size
    output = b"" if is_function else _read_all(streams.stdout, stdout_bytes)
    value = None
    if streams.wire is not None:
        value = _read_all(streams.wire, os.fstat(streams.wire).st_size)
    if batch is not None:
        result = batch.finish(result)
        _, first_output = batch.first or (0, b"")
        if is_function:
            value = first_output
        elif batch.first:
            output = first_output
            stdout_bytes = len(output)
    tail = os.pread(streams.stderr, _STDERR_TAIL, max(0, stderr_bytes - _STDERR_TAIL))
    return Run(
        result=result,
        stdout=output,
        stdout_bytes=stdout_bytes,
        stderr=tail.decode("utf-8", "replace"),
        stderr_bytes=stderr_bytes,
        wire=value,
    )


def _read_all(descriptor: int, size: int) -> bytes:
    return os.pread(descriptor, size, 0) if size else b""


class Watchdog:
    """Decides what a running test is allowed: answers the fork server's questions about it."""

    def __init__(
        self,
        limits: Limits,
        slot: Slot,
        record: WorkerRecord,
    ) -> None:
        """Start the clock of a test; decisions about its time are written into the record."""
        self._limits = limits
        self._slot = slot
        self._record = record
        self._started = time.monotonic()
        self._paused_seconds = 0.0
        self._cpu_seconds = 0.0

    def reply(self, question: bytes, descriptor: int) -> float:
        """Return the answer, in seconds, to a question about a process, and close its pidfd."""
        asked = time.monotonic()
        pid = pid_of(descriptor)
        os.close(descriptor)
        seconds = unpack_seconds(question)
        if question[:1] == protocol.STILL:
            real_seconds = asked - self._started - self._paused_seconds
            return self._extend(pid, seconds, real_seconds)
        memory_mib = memory_mib_of(pid)
        self._slot.give_way(memory_mib)
        # Time in which it let others go first is not its own.
        self._paused_seconds += time.monotonic() - asked
        return timing.limit_now(self._limits, seconds, memory_mib)

    def conclude(self, result: Result) -> Result:
        """Return the test's result; one whose CPU time was used up is no wall time-out."""
        is_out_of_time = self._cpu_seconds > self._limits.cpu_seconds
        if result.expired == protocol.Expiry.WALL and is_out_of_time:
            # A compiler's own children count: the watch sees the CPU time of one process.
            cpu_us = int(self._cpu_seconds * 1e6)
            return result._replace(expired=protocol.Expiry.CPU, cpu_us=cpu_us)
        return result

    def _extend(
        self,
        pid: int,
        counted_seconds: float,
        real_seconds: float,
    ) -> float:
        """Return how much longer a test may take whose wall time is spent; 0 to end it."""
        if pid < 0:  # It has ended.
            return timing.SHORTEST_EXTENSION_SECONDS
        # 0 where the kernel does not tell: then there are no counts either.
        reading = read_process(pid) if pid else None
        more, why = timing.extend(
            reading,
            limit_seconds=self._limits.wall_seconds,
            counted_seconds=counted_seconds,
            real_seconds=real_seconds,
        )
        if reading is not None:
            self._cpu_seconds = reading.cpu_seconds
            # Its CPU time is used up: no waiting excuses that.
            if self._cpu_seconds > self._limits.cpu_seconds:
                return 0.0
        if more > 0:
            self._record.extended += reading is not None
            self._record.blind += reading is None
            self._record.reasons.append(
                f"wall time was spent after {counted_seconds:.2f} s, and it went on: {why}"
            )
        return more
