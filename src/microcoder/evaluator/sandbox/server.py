"""The fork server: one process per test, forked from an interpreter that is warm and already closed in."""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
from typing import NamedTuple, NoReturn

from microcoder.evaluator.sandbox import functions, layers, mounts, runner, seccomp, setup
from microcoder.evaluator.sandbox.limits import LimitSetter
from microcoder.evaluator.sandbox.protocol import CONFIG, FAILED, MAX_MESSAGE, READY, WIRE_FD, Request
from microcoder.evaluator.sandbox.syscalls import SeccompFilter
from microcoder.evaluator.sandbox.watch import wait_with_limits

_MAX_PASSED_FDS = 8
_HIGHEST_FD = 4096


class Test(NamedTuple):
    """What a forked child is to run."""

    request: Request
    source: int
    cache: int
    standard: list[int]
    """stdin, stdout, stderr, and the wire of a function-call program."""


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
            base_bytes, self._base_kib = setup.finish(self._setup, config)
            self._limits = LimitSetter(base_bytes, owns_uid=self._setup.owns_uid)
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
            pid = os.fork()
            if pid == 0:
                return Test(request, descriptors[0], descriptors[1], descriptors[2:])
            for number in descriptors:
                os.close(number)
            result = wait_with_limits(pid, request, self._control.fileno(), self._base_kib)
            self._clear_namespace()
            self._control.send(result.pack())
            if self._setup.scratch:
                mounts.empty_folder(self._setup.scratch)

    def run(self, test: Test) -> NoReturn:
        """Be one test: take its limits and descriptors, drop the rest, run the program, end."""
        status = 1
        try:
            if self._setup.has(layers.RESOURCE_LIMITS):
                self._limits.apply(test.request)
            for target, number in enumerate(test.standard[:3]):
                os.dup2(number, target)
            code = runner.load_code(test.source, test.cache)
            is_function = bool(test.request.fn_name)
            if is_function:
                os.dup2(test.standard[3], WIRE_FD)
            os.closerange(WIRE_FD + is_function, _HIGHEST_FD)
            runner.restore_signals()
            if self._setup.has(layers.SECCOMP):
                (self._setup.per_test_filter or SeccompFilter(seccomp.per_test(os.getpid()))).install()
            if is_function:
                status = functions.run_function(code, test.request.fn_name, self._prelude)
            else:
                status = runner.run_program(code)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        os._exit(status)

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

    def _clear_namespace(self) -> None:
        """Kill and reap whatever a test left running; only ever done as process 1 of a namespace of our own."""
        if not self._setup.is_init or os.getpid() != 1:
            return
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(-1, signal.SIGKILL)
            while True:
                os.waitpid(-1, 0)
