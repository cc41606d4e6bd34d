"""The trusted side of one sandbox: starts the fork server, hands it tests, kills it when it does not answer.

A `Sandbox` belongs to the thread that made it: the kernel ends the fork server when that thread ends.

`Attendance` answers the fork server's questions while a test runs, by the kernel's counts of its process; what follows
from these is decided in `timing`.
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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import memory_mib_of, pid_of, read_process, require_linux
from microcoder.judge.languages.definition import STANDARD_PRELOAD, current_interpreter
from microcoder.judge.run import isolation, timing
from microcoder.judge.run.counts import WorkerRecord
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.sharing import Series, write_all
from microcoder.judge.run.timing import Limits
from microcoder.judge.run.turns import Turn
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
_START_SECONDS = 60.0
_GRACE_SECONDS = 60.0
"""Time beyond a test's limits to wait for the fork server's answer, as a busy machine may give it no processor."""
_STDERR_TAIL = 4096
_ALL_SEALS = 0xF


def make_memory_file(data: bytes) -> int:
    """Return the descriptor of an anonymous file with this content, sealed: nobody can change it any more."""
    import fcntl  # Not there on Windows, where this module can be imported all the same.

    descriptor = os.memfd_create("data", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    write_all(descriptor, data)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _ALL_SEALS)
    return descriptor


class SandboxDied(EvaluatorFault):
    """The fork server is gone or does not answer; another may do better."""


class RoomLacked(SandboxDied):
    """The disk was full before a test had written what it may; without mounts a program can fill it."""


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


class Loaded:
    """A program ready to be run; it owns its descriptors."""

    def __init__(
        self,
        source: int,
        cache: int,
        command: tuple[str, ...] = (),
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """Take over two descriptors; `command` starts a binary, `files` are added to those of each run."""
        self.source, self.cache = source, cache
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
        return TestTask(self.source, self.cache, stdin, {**(files or {}), **self._files}, options)

    def rejection(self) -> str | None:
        """Return the compiler's message if the source does not compile; None for what was built."""
        if self.cache == self.source or os.pread(self.cache, 1, 0) != protocol.REJECTED:
            return None
        return os.pread(self.cache, protocol.MAX_MESSAGE, 1).decode("utf-8", "replace")

    def close(self) -> None:
        """Close the descriptors, which frees source and cache."""
        for descriptor in {self.source, self.cache}:
            os.close(descriptor)


class LoadedProgram(Loaded):
    """A Python program: source and bytecode in anonymous memory."""

    def __init__(self, code: str) -> None:
        source = make_memory_file(code.encode("utf-8", "surrogatepass"))
        super().__init__(source, os.memfd_create("cache", os.MFD_CLOEXEC))


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
        record: WorkerRecord | None = None,
        turn: Turn | None = None,
        nice: int = 0,
    ) -> None:
        """Start the fork server; EvaluatorFault if it does not start.

        Args:
            packages: folder of the third-party packages that programs may import; empty for none.
            preload: packages to import besides the standard library's.
            layers: the layers of isolation to put on.
            toolchain: paths that compilers need to read; such a sandbox builds programs and runs none.
            runtime: what a language's runtime needs, from `builds.find_room`.
            scratch_mib: how much a test may write to its folder.
            record: gets the decisions about the time of tests.
            turn: its worker's place, given back while a test lets others go first.
            nice: niceness of programs, 0 to 19; never less than the calling process's.
        """
        require_linux()
        if packages and not os.path.isdir(packages):
            raise EvaluatorFault(
                f"{packages} with the packages that programs may import is gone; "
                "type `microcoder packages standard`, and start again"
            )
        self._record = record or WorkerRecord()
        self._turn = turn or Turn()
        self._builds = toolchain is not None
        self._log = os.memfd_create("log", os.MFD_CLOEXEC)
        self.nothing = self._log
        """A descriptor to pass as a task's source or cache if it has none."""
        interpreter = current_interpreter()
        self._folder, self._scratch_mib = isolation.reserve_name(), scratch_mib
        where = os.path.dirname(self._folder)
        self._full_disk = (
            f"the file system of {where} was full before a test had written what it may"
        )
        try:
            self._process, self._socket = isolation.start_fork_server(
                interpreter.executable, self._log
            )
        except OSError as error:
            os.close(self._log)
            raise SandboxDied(f"cannot start {interpreter.executable}: {error}") from error
        config = {
            "layers": [layer for layer in protocol.LAYERS if layer in layers],
            "libraries": [
                *interpreter.libraries,
                *filter(os.path.exists, (*(toolchain or ()), *runtime["readable"])),
            ],
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
        try:
            self._send(protocol.CONFIG + json.dumps(config).encode())
            answer, _ = self._receive(_START_SECONDS)
        except SandboxDied as died:
            said = (
                _read_all(self._log, os.fstat(self._log).st_size)
                .decode("utf-8", "replace")
                .strip()[-500:]
            )
            message = (
                f"the sandbox did not start: {died}; it said{f': {said}' if said else ' nothing'}"
            )
            self.close()
            raise SandboxDied(message) from None
        if answer[:1] == protocol.FAILED:
            self.close()
            raise EvaluatorFault(
                f"the sandbox could not be set up: {answer[1:].decode('utf-8', 'replace')}"
            )
        report = json.loads(answer.removeprefix(protocol.READY))
        missing = report["missing"]
        enforced = tuple(layer for layer in protocol.LAYERS if layer not in missing)
        self.isolation = Isolation(enforced, missing, str(report["call_stack"]))
        if Layer.MOUNT_NAMESPACE in missing:
            isolation.sweep(os.path.dirname(self._folder))

    @property
    def pid(self) -> int:
        """Process id of the fork server, as seen from here."""
        return self._process.pid

    def run(self, task: TestTask, limits: Limits, series: Series | None = None) -> Run:
        """Run one test, or a series that shares one process, of which the first is returned; raises SandboxDied.

        Args:
            task: what to run.
            limits: of the test.
            series: receives the results of the other tests; its task must not have `has_named_streams`.
        """
        is_function = bool(task.options.get("fn_name"))
        has_wire = (is_function and series is None) or self._builds
        names = ("stdout", "stderr", "wire") if has_wire else ("stdout", "stderr")
        # Files of its own for each test: what a program does to one (mode, times, flags, locks) would be there for the
        # next, could it be used again.
        opened: list[int] = []
        try:
            opened.append(make_memory_file(task.stdin))
            for name in names:
                opened.append(os.memfd_create(name, os.MFD_CLOEXEC))
            stdout, stderr, wire = opened[1], opened[2], opened[3] if has_wire else None
            given = [] if series is None else series.open(-1 if is_function else stdout)
            files = [
                make_memory_file(content) for content in task.files.values() if content is not None
            ]
            request = Request(
                limits.cpu_seconds,
                limits.wall_seconds,
                limits.memory_bytes,
                limits.output_bytes + 1,
                files=tuple(task.files),
                shared_cpu_seconds=0.0 if series is None else series.cpu_seconds,
                binds_constants=series is not None and series.binds_constants,
                **task.options,
            )
            descriptors = [task.source, task.cache, *opened, *given, *files]
            opened += files
            attendance = Attendance(limits, self._turn, self._record)
            result = self._exchange(request, descriptors, attendance, series)
            stdout_bytes, stderr_bytes = os.fstat(stdout).st_size, os.fstat(stderr).st_size
            output = b"" if is_function else _read_all(stdout, stdout_bytes)
            value = None if wire is None else _read_all(wire, os.fstat(wire).st_size)
            if series is not None:
                result = series.finish(result)
                if is_function:
                    value = series.first[1] if series.first else b""
                elif series.first:
                    output = series.first[1]
                    stdout_bytes = len(output)
            return Run(
                result=result,
                stdout=output,
                stdout_bytes=stdout_bytes,
                stderr=os.pread(stderr, _STDERR_TAIL, max(0, stderr_bytes - _STDERR_TAIL)).decode(
                    "utf-8", "replace"
                ),
                stderr_bytes=stderr_bytes,
                wire=value,
            )
        finally:
            for descriptor in opened:
                os.close(descriptor)
            if series is not None:
                series.close()

    def check_room(self) -> None:
        """Raise RoomLacked if the sandbox writes to the machine's disk and that has less free space than it may use."""
        is_on_disk = Layer.MOUNT_NAMESPACE in self.isolation.missing
        if (
            is_on_disk
            and shutil.disk_usage(os.path.dirname(self._folder)).free < self._scratch_mib << 20
        ):
            raise RoomLacked(self._full_disk)

    def _exchange(
        self,
        request: Request,
        descriptors: Sequence[int],
        attendance: Attendance,
        series: Series | None,
    ) -> Result:
        try:
            self._send(request.pack(), descriptors)
            answer, given = self._receive(request.wall_seconds + _GRACE_SECONDS, series)
            while answer[:1] in QUESTIONS and len(given) == 1:
                self._send(pack_seconds(protocol.GO_ON, attendance.reply(answer, given[0])))
                answer, given = self._receive(request.wall_seconds + _GRACE_SECONDS, series)
            if answer[:1] != protocol.RESULT:
                raise SandboxDied(f"unexpected answer {answer[:200]!r}")
            result = Result.unpack(answer)
            if result.expired == protocol.ROOM_LACKED:
                raise RoomLacked(self._full_disk)
            return attendance.conclude(result)
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
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _kill(self) -> None:
        self.interrupt()
        self._process.wait()
        self._socket.close()
        isolation.remove(self._folder)

    def _send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        rights = (
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
            if descriptors
            else []
        )
        try:
            self._socket.sendmsg([message], rights)
        except OSError as error:
            raise SandboxDied(f"it hung up ({error.strerror})") from None

    def _receive(self, seconds: float, series: Series | None = None) -> tuple[bytes, list[int]]:
        """Return the next message and the descriptors beside it; answer what a series asks until then."""
        if series is not None:
            series.attend(self._socket, seconds)
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


def _read_all(descriptor: int, size: int) -> bytes:
    return os.pread(descriptor, size, 0) if size else b""


class Attendance:
    """Decides what one running test is allowed: answers the fork server's questions from its start to its end."""

    def __init__(self, limits: Limits, turn: Turn, record: WorkerRecord) -> None:
        """Start the clock of a test; decisions about its time are written into the record."""
        self._limits = limits
        self._turn = turn
        self._record = record
        self._started = time.monotonic()
        self._stood_seconds = 0.0
        self._cpu_seconds = 0.0

    def reply(self, question: bytes, descriptor: int) -> float:
        """Return the answer, in seconds, to a question about the process of a pidfd; closes the pidfd."""
        asked = time.monotonic()
        pid = pid_of(descriptor)
        os.close(descriptor)
        kind, seconds = question[:1], unpack_seconds(question)
        if kind == protocol.STILL:
            return self._extend(pid, seconds, asked - self._started - self._stood_seconds)
        memory_mib = memory_mib_of(pid)
        self._turn.give_way(memory_mib)
        self._stood_seconds += time.monotonic() - asked
        return timing.limit_now(self._limits, seconds, memory_mib)

    def conclude(self, result: Result) -> Result:
        """Return the test's result, as a CPU time-out if it hit the wall limit but had used up its CPU time."""
        if result.expired == protocol.WALL_EXPIRED and self._cpu_seconds > self._limits.cpu_seconds:
            # A compiler's own children count: the watch sees the CPU time of one process.
            return result._replace(
                expired=protocol.CPU_EXPIRED, cpu_us=int(self._cpu_seconds * 1e6)
            )
        return result

    def _extend(self, pid: int, counted: float, real: float) -> float:
        """Return how much longer a test may take whose wall time is spent; 0 to end it."""
        if pid < 0:  # It has ended.
            return timing.SHORTEST_EXTENSION_SECONDS
        reading = read_process(pid) if pid else None
        limit = self._limits.wall_seconds
        more, why = timing.extend(
            reading, limit_seconds=limit, counted_seconds=counted, real_seconds=real
        )
        if reading is not None:
            self._cpu_seconds = reading.cpu_seconds
            if self._cpu_seconds > self._limits.cpu_seconds:
                return 0.0
        if more > 0:
            self._record.extended += reading is not None
            self._record.blind += reading is None
            self._record.reasons.append(
                f"wall time was spent after {counted:.2f} s, and it went on: {why}"
            )
        return more
