"""The fork server: one process per test, forked from an interpreter that is warm and already isolated.

It waits for each test from outside, with limits that nothing inside can undo (`wait_with_limits`).
"""

from __future__ import annotations

import array
import contextlib
import errno
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from microcoder.judge.sandbox import batch, folders, functions, isolation, protocol, runner, seccomp
from microcoder.judge.sandbox.kernel import (
    PR_SET_PDEATHSIG,
    SeccompFilter,
    kill_everything,
    prctl,
    run_binary,
    run_compiler,
)
from microcoder.judge.sandbox.limits import LimitSetter
from microcoder.judge.sandbox.protocol import NO_LIMITS, PLAIN, WIRE_FD, Layer, Request, Result
from microcoder.judge.sandbox.quota import POLL_SECONDS, Quota, cpu_clock
from microcoder.judge.sandbox.runner import CallStack

_MAX_PASSED_FDS = 16
_ANCILLARY_BYTES = socket.CMSG_SPACE(_MAX_PASSED_FDS * 4)
_HIGHEST_FD = 4096
_REHEARSED_FD = 128
"""First descriptor of rehearsals, in place of `WIRE_FD`, which the fork server itself uses."""
_OVERSLEPT_SECONDS, _SHORTEST_SECONDS = 0.1, 0.002


class Test(NamedTuple):
    """A test to run in a forked child, with its descriptors."""

    request: Request
    source: int
    cache: int
    standard: list[int]
    """stdin, stdout, stderr."""
    wire: int
    """Descriptor for a function's result; -1 for any other test."""
    batch: Sequence[int]
    """Later stdin, inputs, frames and questions of several tests; empty for one."""
    quota: Quota | None
    """Accounting of threads and space, if the kernel does none."""


class ForkServer:
    """Isolates itself, reports which layers hold, then forks a child for every request.

    Its attributes are never freed in a child: freeing them there would touch memory, which costs time.
    """

    def __init__(self, descriptor: int) -> None:
        self._control = socket.socket(fileno=os.dup(descriptor))
        self._buffers = [memoryview(bytearray(protocol.MAX_MESSAGE))]
        os.close(descriptor)
        try:
            config = json.loads(self._receive()[0].removeprefix(protocol.CONFIG))
            self._setup = isolation.isolate(config, self._control)
            self._prelude = functions.build_prelude()
            self._library = batch.Library(self._prelude)
            self._dialect_names = runner.build_dialect_names()
            self._stack = CallStack()
            self._builds = bool(config["builds"])
            self._scratch_bytes = config["scratch_mib"] << 20
            self._redirects = self._setup.scratch != folders.USUAL
            self._has_limits = self._setup.has(Layer.RESOURCE_LIMITS)
            runtime = config["runtime"]
            self._environment = runtime["environment"]
            self._limits = LimitSetter(
                owns_uid=self._setup.owns_uid,
                address_space_bytes=runtime["address_space_bytes"],
                reserved_bytes=runtime["reserved_bytes"],
            )
            self._has_filter, self._first_own = True, _REHEARSED_FD
            base_bytes, self._base_kib = isolation.finish(self._setup, config, self._rehearse)
            # After the heap was settled: what is in a program's module must be seen by the garbage collector.
            self._renew_modules()
            self._has_filter, self._first_own = self._setup.has(Layer.SECCOMP), WIRE_FD
            self._limits.settle(
                base_bytes, is_raising_filtered=self._has_filter and not self._builds
            )
        except Exception as error:
            self._control.send(protocol.FAILED + f"{type(error).__name__}: {error}".encode()[:2000])
            os._exit(1)
        self._latest_message, self._latest_request = b"", NO_LIMITS
        self._report = {"missing": self._setup.report(), "call_stack": self._stack.problem}
        self._control.send(protocol.READY + json.dumps(self._report).encode())

    def serve(self) -> NoReturn:
        """Serve requests until the supervisor closes the socket.

        A test's process never returns from here: giving up what this function holds would cost it 20 page faults.
        """
        while True:
            message, descriptors = self._receive()
            if not message:
                os._exit(0)
            if message != self._latest_message:
                self._latest_message, self._latest_request = message, Request.unpack(message)
            request = self._latest_request
            source, cache, *standard = descriptors[:5]
            extra = descriptors[5:]
            num_shared = len(batch.Files._fields) if request.shared_cpu_seconds else 0
            shared, extra = extra[:num_shared], extra[num_shared:]
            has_wire = (request.fn_name and not shared) or (self._builds and request.command)
            wire = extra.pop(0) if has_wire else -1
            if request.files:
                self._lay_out(request.files, extra)
            if self._has_limits:
                self._limits.lend(request)
            named = self._name_streams() if request.has_named_streams else []
            quota = None
            if self._setup.asks:
                quota = Quota(
                    self._setup.scratch, self._scratch_bytes, has_files=bool(request.files)
                )
            streams = [standard[0], *named] if named else standard
            test = Test(request, source, cache, streams, wire, shared, quota)
            # All of a test happens in this child; limits, accounting and the answer to the supervisor stay in the
            # parent, which it can neither signal nor write to.
            pid = os.fork()
            if pid == 0:
                self.run(test)
            # A binary starts with memory of its own, not with the fork server's.
            inherited_kib = 0 if request.command else self._base_kib
            # A compiler has children, which a signal to it would not stop.
            is_shared = not (self._builds and request.command)
            frames = shared[2] if shared else -1
            result = wait_with_limits(
                pid,
                request,
                self._control,
                inherited_kib,
                quota,
                is_shared=is_shared,
                frames=frames,
            )
            has_left_processes = self._clear_processes()
            if self._builds and request.command:
                self._limits.lift()
                _copy(protocol.BUILT_FILE, wire)
            if named:
                _copy_content(named[0], standard[1])
                _copy_content(named[1], standard[2])
            for number in (*descriptors, *named):
                os.close(number)
            self._control.send(result.pack())
            if has_left_processes:
                # They are in our process group, which nothing leaves; what comes next starts another fork server.
                os.killpg(0, signal.SIGKILL)
            folders.empty_folder(self._setup.scratch, self._setup.scratch_mode)

    def _lay_out(self, names: Sequence[str], descriptors: Sequence[int]) -> None:
        """Write files into the scratch folder, or report why not and exit."""
        self._limits.lift()
        contents = iter(descriptors)
        try:
            if sum(os.fstat(content).st_size for content in descriptors) > self._scratch_bytes:
                raise OSError(f"all of them take more than {self._scratch_bytes >> 20} MiB")
            # No test runs now and the folder was emptied after the last one, so no link can lead these writes
            # elsewhere.
            for name in names:
                path = f"{self._setup.scratch}/{name}"
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if name.endswith("/"):
                    continue
                with open(path, "wb") as file:
                    content = next(contents)
                    file.write(os.pread(content, os.fstat(content).st_size, 0))
        except (OSError, StopIteration) as error:
            self._control.send(
                protocol.FAILED + f"a file for a test could not be written: {error}".encode()[:2000]
            )
            os._exit(1)

    def _name_streams(self) -> list[int]:
        """Return new named files for stdout and stderr; none without a private root, where streams have names."""
        if not self._setup.has(Layer.MOUNT_NAMESPACE):
            return []
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return [
            os.open(f"{self._setup.scratch}/{name}", flags, 0o666)
            for name in (protocol.STDOUT_FILE, protocol.STDERR_FILE)
        ]

    def run(self, test: Test) -> NoReturn:
        """Run one test in this forked process, and end it."""
        status = 1
        try:
            status = self._run_test(test)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        os._exit(status)

    def _run_test(self, test: Test) -> int:
        """Take a test's limits and descriptors, drop the rest, run the program; return its exit code.

        Every object that this touches costs a page fault or two, so it makes and looks up as little as it can.
        """
        request, source, cache, (stdin, stdout, stderr), wire, shared, quota = test
        if self._has_limits:
            self._limits.apply(request)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        (_, _, _, _, fn_name, command, arguments, files, dialect, _, _, int_digits, _, _) = request
        if command:
            self._become_binary(test)
        if files and any(name.endswith(".py") for name in files):
            # As beside any script: what came with a program can be imported by it.
            sys.path.insert(0, self._setup.scratch)
        if self._redirects and folders.is_needed(source):
            folders.redirect_to(self._setup.scratch)
        if int_digits is not None:
            sys.set_int_max_str_digits(int_digits)
        # Before the descriptors are closed, since it needs two of them: compiling runs nothing of the program.
        packed, code = (
            (runner.pack_code(source, cache), None)
            if shared
            else (b"", runner.load_code(source, cache))
        )
        names = None if dialect == PLAIN else self._dialect_names
        first_own = self._first_own
        if shared:
            # Moved out of each other's way first: one may have the number that another is to have.
            for number, moved in enumerate(
                [os.dup(descriptor) for descriptor in shared], first_own
            ):
                os.dup2(moved, number)
                os.close(moved)
            self._close_in(request, quota, first_own + len(shared))
        elif fn_name:
            os.dup2(wire, first_own)
            self._close_in(request, quota, first_own + 1)
        else:
            self._close_in(request, quota, first_own)
        runner.restore_signals()
        if code is None:
            self._run_batch(packed, request, names)
            return 0
        if fn_name:
            return self._run_function(code, request, names)
        return runner.run_program(code, self._stack, arguments, names)

    def _rehearse(
        self, source: int, cache: int, wire: int, fn_name: str, series: Sequence[int]
    ) -> None:
        """Run a test in the fork server itself, on descriptors that nothing else uses."""
        self._renew_modules()
        request = NO_LIMITS._replace(fn_name=fn_name)
        self._run_test(Test(request, source, cache, [0, 1, 2], wire, series, None))
        os.closerange(_REHEARSED_FD, _REHEARSED_FD + len(series) + 1)
        # What later tests of a process find empty is not filled here either: emptying it costs them 600 page faults.
        self._library.reset()

    def _renew_modules(self) -> None:
        """Make a fresh module for each kind of program; made in the fork server, it costs a test nothing."""
        runner.renew_main()
        sys.modules.pop(functions.MODULE_NAME, None)
        self._solution = runner.new_main_module(functions.MODULE_NAME, self._prelude)

    def _run_function(
        self, code: runner.Loaded, request: Request, names: dict[str, object] | None
    ) -> int:
        """Run a function's only test, at the call depth of a batch: a program must not tell the two apart."""
        status, returned = functions.run_function(
            code, request.fn_name, request.call, self._solution, names
        )
        functions.send_result(returned, self._first_own)
        return status

    def _run_batch(self, packed: bytes, request: Request, names: dict[str, object] | None) -> None:
        """Run the tests of a batch, up to the first that does not end well."""
        own = self._first_own
        files = batch.Files(own, own + 1, own + 2, own + 3)
        tests = batch.Batch(files, self._library, request, packed, self._renew_modules)
        for program, given in tests:
            if program is None or request.fn_name:
                done = functions.run_function(
                    program, request.fn_name, request.call, self._solution, names, given
                )
            else:
                status = runner.run_program(program, self._stack, (), names, is_shared=True)
                done = status, tests.read_stdout()
            tests.end(*done)
            # Gone before the next is unpacked.
            del program

    def _become_binary(self, test: Test) -> NoReturn:
        """Run the built program, or the compiler if this fork server builds."""
        # Python ignores these, and what is ignored stays so across an exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if self._builds:
            os.closerange(WIRE_FD, _HIGHEST_FD)
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if self._has_filter:
                rules = seccomp.per_build(
                    has_own_processes=self._setup.is_init, files=self._setup.file_rules
                )
                SeccompFilter(rules).install()
            run_compiler(test.request.command)
        os.dup2(test.source, WIRE_FD, inheritable=False)
        self._close_in(test.request, test.quota, WIRE_FD + 1)
        run_binary(WIRE_FD, test.request.command, self._environment)

    def _close_in(self, request: Request, quota: Quota | None, first_descriptor: int) -> None:
        """Close all descriptors from `first_descriptor` on, except the quota's, and install the test's filter."""
        # Among them are the control socket, over which a test could answer for itself, and the program's cache, in
        # which it could leave other bytecode for its next test. Open descriptors are reached whatever Landlock and the
        # root say.
        if quota is None:
            os.closerange(first_descriptor, _HIGHEST_FD)
        else:
            os.closerange(first_descriptor, quota.test_end)
            os.closerange(quota.test_end + 1, _HIGHEST_FD)
        if not self._has_filter:
            return
        rules = self._setup.per_test_filter(is_binary=bool(request.command))
        if quota is None:
            rules.install()
        else:
            quota.hand_over(rules)

    def _receive(self) -> tuple[bytes, list[int]]:
        try:
            size, ancillary, _, _ = self._control.recvmsg_into(self._buffers, _ANCILLARY_BYTES)
        except ConnectionResetError:
            return b"", []
        descriptors = array.array("i")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        return bytes(self._buffers[0][:size]), list(descriptors)

    def _clear_processes(self) -> bool:
        """Kill and reap whatever a test left running; return whether something is left all the same."""
        if self._setup.is_init:
            if kill_everything():
                with contextlib.suppress(ChildProcessError):
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
    """Copy a file (no link), if any, to a descriptor."""
    # A link of that name gains nothing: this process is confined as the compiler was, and reads no more than it could.
    with contextlib.suppress(OSError), open(name, "rb") as file:
        if not os.path.islink(name):
            _copy_content(file.fileno(), target)


def _copy_content(source: int, target: int) -> None:
    """Copy all of a file, from one descriptor to another."""
    offset = 0
    while block := os.pread(source, 1 << 20, offset):
        offset += os.pwrite(target, block, offset)


def wait_with_limits(
    pid: int,
    request: Request,
    control: socket.socket,
    base_kib: int,
    quota: Quota | None,
    *,
    is_shared: bool = True,
    frames: int = -1,
) -> Result:
    """Wait for a child, kill it at its CPU, wall time or file limit, and account for it.

    Args:
        pid: the child.
        request: its limits.
        control: the supervisor's socket, asked before a test is ended for its wall time; if it hangs up, the fork
            server and everything with it end.
        base_kib: resident memory the child inherited.
        quota: counts the child's threads and files, where the kernel does not.
        is_shared: whether the child is paused after each slice of CPU time, for other tests to run.
        frames: descriptor of a batch's frames (see `batch`), or -1; after its first test the shared limit holds.
    """
    watch = _Watch(pid, request, control, is_shared=is_shared, frames=frames)
    expired = watch.wait(quota)
    if expired != protocol.FINISHED:
        # It is not reaped before `wait4`, so until then its number cannot be another process's.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os.close(watch.descriptor)
    _, status, usage = os.wait4(pid, 0)
    if quota is not None:
        if expired == protocol.FINISHED and quota.has_files and quota.is_exceeded(is_final=True):
            expired = protocol.FOLDER_EXPIRED
        if expired == protocol.FINISHED and quota.lacks_room:
            expired = protocol.ROOM_LACKED
        quota.close()
    cpu_seconds = usage.ru_utime + usage.ru_stime
    if expired == protocol.FINISHED and cpu_seconds > request.cpu_seconds:
        expired = protocol.CPU_EXPIRED
    return Result(
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        cpu_us=int(cpu_seconds * 1e6),
        wall_us=int((time.monotonic() - watch.started - watch.stood_seconds) * 1e6),
        memory_kib=max(0, usage.ru_maxrss - base_kib),
        expired=expired,
    )


class _Watch:
    """Waits for one test, and watches its CPU time, wall time and quota."""

    def __init__(
        self, pid: int, request: Request, control: socket.socket, *, is_shared: bool, frames: int
    ) -> None:
        self.started = time.monotonic()
        self.descriptor = os.pidfd_open(pid)
        self._pid, self._request, self._control = pid, request, control
        self._is_shared, self._frames = is_shared, frames
        self._lost = 0.0
        self._cpu_limit = request.cpu_seconds
        self._wall_left = request.wall_seconds
        self._slice_end = protocol.SLICE_SECONDS
        self.stood_seconds = 0.0
        """Seconds that the test was stopped."""

    def wait(self, quota: Quota | None) -> int:
        """Wait for the test; return FINISHED, or the limit at which it must be ended."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        poll.register(self._control, select.POLLHUP | select.POLLERR)
        channel = -1 if quota is None else quota.begin(self._pid)
        if quota is not None:
            poll.register(channel, select.POLLIN)
        cpu_seconds, cpu_left = 0.0, self._cpu_limit
        while True:
            now = time.monotonic()
            asked = min(cpu_left, self._wall_left)
            if self._is_shared:
                asked = min(asked, max(self._slice_end - cpu_seconds, _SHORTEST_SECONDS))
            if quota is not None and quota.has_files:
                asked = min(asked, POLL_SECONDS)
            # By a descriptor, not by SIGCHLD or a timer: nothing that a test does can delay or take either.
            for ready, _ in poll.poll(int(asked * 1000) + 1):
                if ready == self._control.fileno():
                    os._exit(1)
                if ready == self.descriptor or quota is None:
                    return protocol.FINISHED
                if ready == channel:
                    poll.unregister(channel)
                    listener = quota.accept()
                    if listener >= 0:
                        poll.register(listener, select.POLLIN)
                else:
                    quota.answer()
            if quota is not None and quota.has_files and quota.is_exceeded():
                return protocol.FOLDER_EXPIRED
            self._count_wall(time.monotonic() - now, asked)
            if self._frames >= 0 and os.fstat(self._frames).st_size:
                self._limit_later_tests()
            cpu_seconds = cpu_clock(self._pid)
            if self._is_shared and self._slice_end <= cpu_seconds < self._cpu_limit:
                self._share(cpu_seconds)
            cpu_left = self._cpu_limit - cpu_seconds
            if cpu_left <= 0:
                return protocol.CPU_EXPIRED
            cpu_left = max(cpu_left, _SHORTEST_SECONDS)
            if self._wall_left <= 0:
                self._wall_left = self._ask(
                    protocol.STILL, time.monotonic() - self.started - self._lost
                )
                if self._wall_left <= 0:
                    return protocol.WALL_EXPIRED

    def _limit_later_tests(self) -> None:
        """Limit later tests to their common CPU time: an endless one among them must not cost a whole limit."""
        limits, self._frames = self._request, -1
        share = limits.shared_cpu_seconds / limits.cpu_seconds
        self._cpu_limit = min(self._cpu_limit, limits.shared_cpu_seconds)
        self._wall_left = min(self._wall_left, share * limits.wall_seconds)

    def _count_wall(self, passed: float, asked: float) -> None:
        if passed - asked > _OVERSLEPT_SECONDS:
            # The watch itself was stopped, or given no processor: that time says nothing about the test.
            self._lost, passed = self._lost + passed - asked, asked
        self._wall_left -= passed

    def _share(self, cpu_seconds: float) -> None:
        """Let other tests go first after a slice of CPU time; the time in which it is stopped is not the test's."""
        since = time.monotonic()
        self._signal(signal.SIGSTOP)
        limit = self._ask(protocol.SLICE, cpu_seconds)
        self._signal(signal.SIGCONT)
        stood = time.monotonic() - since
        self._lost += stood
        self.stood_seconds += stood
        self._slice_end = cpu_seconds + protocol.SLICE_SECONDS
        self._cpu_limit = min(self._cpu_limit, limit or self._cpu_limit)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _ask(self, kind: bytes, seconds: float) -> float:
        """Ask the supervisor, which sees more of a test; return its answer in seconds, 0 if the test blocks that."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.descriptor]))]
        # The kernel counts what all processes of a user have on the way in sockets, and compares it with the sender's
        # limit, which is the one that tests inherit from here: a test that keeps as many on the way as it may would
        # leave no room for this one.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            self._control.sendmsg([protocol.pack_seconds(kind, seconds)], rights)
        except OSError as error:
            if error.errno == errno.ETOOMANYREFS:
                return 0.0
            raise
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        answer = self._control.recv(64)
        if not answer:
            os._exit(1)
        return protocol.unpack_seconds(answer)
