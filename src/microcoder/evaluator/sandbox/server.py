"""The fork server: one process per test, forked from an interpreter that is warm and already closed in."""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from microcoder.evaluator.sandbox import (
    batch,
    dialects,
    folders,
    functions,
    layers,
    native,
    redirection,
    runner,
    seccomp,
    setup,
)
from microcoder.evaluator.sandbox.frames import CallStack
from microcoder.evaluator.sandbox.limits import LimitSetter
from microcoder.evaluator.sandbox.protocol import (
    BUILT_FILE,
    CONFIG,
    FAILED,
    MAX_MESSAGE,
    READY,
    STDERR_FILE,
    STDOUT_FILE,
    WIRE_FD,
    Request,
)
from microcoder.evaluator.sandbox.quota import Quota
from microcoder.evaluator.sandbox.syscalls import PR_SET_PDEATHSIG, SeccompFilter, prctl
from microcoder.evaluator.sandbox.watch import wait_with_limits

_MAX_PASSED_FDS = 16
_HIGHEST_FD = 4096


class Test(NamedTuple):
    """What a forked child is to run."""

    request: Request
    source: int
    cache: int
    standard: list[int]
    """stdin, stdout, stderr."""
    wire: int
    """Where a function's result goes; -1 for any other test."""
    batch: tuple[int, int] | None
    """Inputs and frames of several tests."""
    quota: Quota | None
    """What counts what it takes, where nothing else does."""


class ForkServer:
    """Closes itself in, reports how well, then forks a child for every request.

    Its attributes are never freed in a child: freeing them there would touch memory, which costs time.
    """

    def __init__(self, descriptor: int) -> None:
        self._control = socket.socket(fileno=os.dup(descriptor))
        os.close(descriptor)
        try:
            config = json.loads(self._receive()[0].removeprefix(CONFIG))
            self._setup = setup.isolate(config, self._control)
            self._prelude = functions.build_prelude()
            self._library = batch.Library(self._prelude)
            self._dialect_names = dialects.build_names()
            self._stack = CallStack()
            base_bytes, self._base_kib = setup.finish(self._setup, config, self._stack)
            self._limits = LimitSetter(
                base_bytes,
                owns_uid=self._setup.owns_uid,
                is_raising_filtered=self._setup.has(layers.SECCOMP) and not config["builds"],
            )
            self._builds = bool(config["builds"])
            self._scratch_bytes = config["scratch_mib"] << 20
            self._redirects = self._setup.scratch != redirection.USUAL
        except Exception as error:
            self._control.send(FAILED + f"{type(error).__name__}: {error}".encode()[:2000])
            os._exit(1)
        self._report = {"missing": self._setup.report()}
        self._control.send(READY + json.dumps(self._report).encode())

    def next_test(self) -> Test:
        """Serve requests; returns only in a forked child, so that a program starts low on the stack."""
        while True:
            message, descriptors = self._receive()
            if not message:
                os._exit(0)
            request = Request.unpack(message)
            source, cache, *standard = descriptors[:5]
            extra = descriptors[5:]
            shared = (extra.pop(0), extra.pop(0)) if request.is_batch else None
            has_wire = (request.fn_name and not shared) or (self._builds and request.command)
            wire = extra.pop(0) if has_wire else -1
            problem = self._lay_out(request.files, extra)
            if problem:
                self._control.send(FAILED + problem.encode()[:2000])
                os._exit(1)
            if self._setup.has(layers.RESOURCE_LIMITS):
                self._limits.lend(request)
            named = self._name_streams(request)
            quota = None
            if self._setup.asks:
                quota = Quota(self._setup.scratch, self._scratch_bytes, has_files=bool(request.files))
            pid = os.fork()
            if pid == 0:
                streams = [standard[0], *(named or standard[1:])]
                return Test(request, source, cache, streams, wire, shared, quota)
            # A binary starts with memory of its own, not with the fork server's.
            inherited_kib = 0 if request.command else self._base_kib
            result = wait_with_limits(pid, request, self._control, inherited_kib, quota)
            has_left_processes = self._clear_processes()
            if self._builds and request.command:
                self._limits.lift()
                _copy(BUILT_FILE, wire)
            for file, target in zip(named, standard[1:], strict=False):
                _pour(file, target)
            for number in (*descriptors, *named):
                os.close(number)
            self._control.send(result.pack())
            if has_left_processes:
                # They are in our process group, which nothing leaves; what comes next starts another fork server.
                os.killpg(0, signal.SIGKILL)
            folders.empty_folder(self._setup.scratch, self._setup.scratch_mode)

    def _lay_out(self, names: Sequence[str], descriptors: Sequence[int]) -> str:
        """Put files into the scratch folder; return what went wrong."""
        if not names:
            return ""
        self._limits.lift()
        if sum(os.fstat(content).st_size for content in descriptors) > self._scratch_bytes:
            return f"files for a test take more than {self._scratch_bytes >> 20} MiB"
        contents = iter(descriptors)
        try:
            for name in names:
                path = f"{self._setup.scratch}/{name}"
                if name.endswith("/"):
                    os.mkdir(path)
                    continue
                with open(path, "wb") as file:
                    content = next(contents)
                    file.write(os.pread(content, os.fstat(content).st_size, 0))
        except (OSError, StopIteration) as error:
            return f"a file for a test could not be written: {error}"
        return ""

    def _name_streams(self, request: Request) -> list[int]:
        """Return files for stdout and stderr that have names; elsewhere than in a private root they have some."""
        if not (request.has_named_streams and self._setup.has(layers.MOUNT_NAMESPACE)):
            return []
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return [os.open(f"{self._setup.scratch}/{name}", flags, 0o666) for name in (STDOUT_FILE, STDERR_FILE)]

    def run(self, test: Test) -> NoReturn:
        """Be one test: take its limits and descriptors, drop the rest, run the program, end."""
        status = 1
        try:
            if self._setup.has(layers.RESOURCE_LIMITS):
                self._limits.apply(test.request)
            for target, number in enumerate(test.standard):
                os.dup2(number, target)
            if test.request.command:
                self._become_binary(test)
            if any(name.endswith(".py") for name in test.request.files):
                # As beside any script: what came with a program can be imported by it.
                sys.path.insert(0, self._setup.scratch)
            if self._redirects and redirection.is_needed(test.source):
                redirection.lead_to(self._setup.scratch)
            if test.request.int_digits is not None:
                sys.set_int_max_str_digits(test.request.int_digits)
            code = runner.load_code(test.source, test.cache)
            is_function = bool(test.request.fn_name)
            names = None if test.request.dialect == dialects.PLAIN else self._dialect_names
            own = test.batch or ((test.wire,) if is_function else ())
            # Moved out of each other's way first: one may have the number that another is to have.
            for number, moved in enumerate([os.dup(descriptor) for descriptor in own], WIRE_FD):
                os.dup2(moved, number)
            self._close_in(test, WIRE_FD + len(own))
            runner.restore_signals()
            if test.batch:
                tests = batch.Batch(batch.Files(WIRE_FD, WIRE_FD + 1), self._library, code.code)
                for _ in tests:
                    if is_function:
                        done = functions.run_function(
                            code, test.request.fn_name, test.request.call, self._prelude, names
                        )
                    else:
                        done = runner.run_program(code, self._stack, (), names), tests.read_stdout()
                    tests.end(*done)
                status = 0
            elif is_function:
                status, returned = functions.run_function(
                    code, test.request.fn_name, test.request.call, self._prelude, names
                )
                functions.send_result(returned)
            else:
                status = runner.run_program(code, self._stack, test.request.arguments, names)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        os._exit(status)

    def _become_binary(self, test: Test) -> NoReturn:
        """Run the built program, or the compiler where this fork server builds."""
        # Python ignores these, and what is ignored stays so across an exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if self._builds:
            os.closerange(WIRE_FD, _HIGHEST_FD)
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if self._setup.has(layers.SECCOMP):
                rules = seccomp.per_build(has_own_processes=self._setup.is_init, files=self._setup.file_rules)
                SeccompFilter(rules).install()
            native.run_compiler(test.request.command)
        os.dup2(test.source, WIRE_FD, inheritable=False)
        self._close_in(test, WIRE_FD + 1)
        native.run_binary(WIRE_FD, test.request.command)

    def _close_in(self, test: Test, first_descriptor: int) -> None:
        """Close every descriptor from there on, and install the filter of one test."""
        if test.quota is None:
            os.closerange(first_descriptor, _HIGHEST_FD)
        else:
            os.closerange(first_descriptor, test.quota.test_end)
            os.closerange(test.quota.test_end + 1, _HIGHEST_FD)
        if not self._setup.has(layers.SECCOMP):
            return
        rules = self._setup.per_test_filter(is_binary=bool(test.request.command))
        if test.quota is None:
            rules.install()
        else:
            test.quota.hand_over(rules)

    def _receive(self) -> tuple[bytes, list[int]]:
        try:
            message, ancillary, _, _ = self._control.recvmsg(MAX_MESSAGE, socket.CMSG_SPACE(_MAX_PASSED_FDS * 4))
        except ConnectionResetError:
            return b"", []
        descriptors = array.array("i")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        return message, list(descriptors)

    def _clear_processes(self) -> bool:
        """Kill and reap whatever a test left running; return whether something is left all the same."""
        if self._setup.is_init and os.getpid() == 1:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(-1, signal.SIGKILL)
                while True:
                    os.waitpid(-1, 0)
            return False
        if not self._builds:
            return False
        # Without a namespace only a compiler may start processes, and what loses its parent becomes our child.
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return False
        return True


def _copy(name: str, target: int) -> None:
    """Copy a file of the current folder, where there is one."""
    with contextlib.suppress(OSError), open(name, "rb") as file:
        if not os.path.islink(name):
            for block in iter(lambda: file.read(1 << 20), b""):
                os.write(target, block)


def _pour(source: int, target: int) -> None:
    """Copy a file that a test wrote, however long, to where the supervisor reads it."""
    offset = 0
    while block := os.pread(source, 1 << 20, offset):
        offset += os.pwrite(target, block, offset)
