"""The fork server: one process per test, forked from a warm and already isolated interpreter.

It waits for each test from outside, with limits that nothing inside can undo (`watch`).
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from microcoder.judge.sandbox import (
    answering,
    asking,
    batch,
    folders,
    functions,
    isolation,
    protocol,
    runner,
    seccomp,
)
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
from microcoder.judge.sandbox.quota import Quota
from microcoder.judge.sandbox.runner import CallStack
from microcoder.judge.sandbox.watch import wait_with_limits

_MAX_PASSED_FDS = 16
"""Most descriptors that the supervisor passes with a message."""
_ANCILLARY_BYTES = socket.CMSG_SPACE(_MAX_PASSED_FDS * 4)
"""Space for them: four bytes each."""
_NUM_STANDARD = 5
"""Descriptors that come with every test: source, cache, stdin, stdout, stderr."""
_NUM_PIPES = {protocol.ASKS: 3, protocol.ANSWERS: 2, protocol.TALKS: 1}
"""Further descriptors of one of two that talk, by its role."""
_HAS_PARTNER = (protocol.ANSWERS, protocol.TALKS)
"""Roles that end with the writer of their first pipe."""
_HIGHEST_FD = 4096
"""End of the descriptors that are closed: more than any sandbox has."""
_REHEARSED_FD = 128
"""First descriptor of rehearsals, in place of `WIRE_FD`, which the fork server itself uses."""
_MOST_SHOWN_BYTES = 2000
"""Longest message of an error that is reported to the supervisor."""


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
    """stdin, inputs, frames and questions of several tests; empty for one."""
    quota: Quota | None
    """Accounting of threads and space, if the kernel does none."""
    copies: Sequence[tuple[int, int]] = ()
    """Named files in place of stdout and stderr, each with the descriptor that it is copied to."""
    pipes: Sequence[int] = ()
    """What a side of a conversation reads and writes, and for a test the wire of its report; of an
    interaction what tells that the other side has ended."""


class ForkServer:
    """Isolates itself, reports which layers hold, then forks a child for every request.

    Its attributes are never freed in a child: freeing them there would touch memory, which costs
    time.
    """

    def __init__(self, descriptor: int) -> None:
        self._control = socket.socket(fileno=os.dup(descriptor))
        self._buffers = [memoryview(bytearray(protocol.MAX_MESSAGE))]
        os.close(descriptor)
        try:
            message, _ = self._receive()
            self._set_up(json.loads(message.removeprefix(protocol.CONFIG)))
        except Exception as error:
            self._give_up(f"{type(error).__name__}: {error}")
        self._latest_message = b""
        self._latest_request = NO_LIMITS
        self._report = {"missing": self._setup.report(), "call_stack": self._stack.problem}
        self._control.send(protocol.READY + json.dumps(self._report).encode())

    def _set_up(self, config: dict[str, Any]) -> None:
        """Isolate this process, and make what tests need, so that they find it made."""
        self._setup = isolation.isolate(config, self._control)
        self._prelude = functions.build_prelude()
        self._interpreter = batch.Interpreter()
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
        # As for a rehearsal, which is the first that runs.
        self._has_filter = True
        self._first_own = _REHEARSED_FD
        base_bytes, self._base_kib = isolation.finish(self._setup, config, self._rehearse)
        # After the heap was settled: what is in a program's module must be seen by the garbage
        # collector.
        self._renew_modules()
        self._has_filter = self._setup.has(Layer.SECCOMP)
        self._first_own = WIRE_FD
        self._limits.settle(base_bytes, is_raising_filtered=self._has_filter and not self._builds)

    def _give_up(self, reason: str) -> NoReturn:
        """Report why the fork server cannot go on, and end it."""
        self._control.send(protocol.FAILED + reason.encode()[:_MOST_SHOWN_BYTES])
        os._exit(1)

    def serve(self) -> NoReturn:
        """Serve requests until the supervisor closes the socket.

        A test's process never returns from here: giving up what this function holds would cost it
        20 page faults.
        """
        while True:
            message, descriptors = self._receive()
            if not message:
                os._exit(0)
            test = self._open_test(message, descriptors)
            # All of a test happens in this child; limits, accounting and the answer to the
            # supervisor stay in the parent, which it can neither signal nor write to.
            pid = os.fork()
            if pid == 0:
                self.run(test)
            if test.request.role == protocol.TALKS:
                # The other side must see that this one closes its stdin or stdout.
                for pipe in test.standard[:2]:
                    os.close(pipe)
                    descriptors.remove(pipe)
            result = self._watch(pid, test)
            has_left_processes = self._clear_processes()
            self._collect_files(test)
            for number in descriptors:
                os.close(number)
            self._control.send(result.pack())
            if has_left_processes:
                # They are in our process group, which nothing leaves; what comes next starts
                # another fork server.
                os.killpg(0, signal.SIGKILL)
            folders.empty_folder(self._setup.scratch, self._setup.scratch_mode)

    def _open_test(self, message: bytes, descriptors: list[int]) -> Test:
        """Return the test that a message asks for; its files are laid out, its limits in force."""
        # Successive tests of a problem have the same request.
        if message != self._latest_message:
            self._latest_message = message
            self._latest_request = Request.unpack(message)
        request = self._latest_request
        source, cache, *standard = descriptors[:_NUM_STANDARD]
        further = descriptors[_NUM_STANDARD:]
        num_shared = len(batch.Files._fields) if request.is_batch else 0
        shared = further[:num_shared]
        further = further[num_shared:]
        pipes: Sequence[int] = ()
        if request.role:
            num_pipes = _NUM_PIPES[request.role]
            pipes = further[:num_pipes]
            further = further[num_pipes:]
        wire = -1
        has_wire = bool(request.fn_name) and not shared
        if has_wire or request.collected or self._is_build(request):
            wire = further.pop(0)
        if request.files:
            self._lay_out(request.files, further)
        if self._has_limits:
            self._limits.set_inherited(request)
        copies: Sequence[tuple[int, int]] = ()
        named = self._name_streams() if request.has_named_streams else []
        if named:
            copies = list(zip(named, standard[1:], strict=True))
            standard[1:] = named
        quota = None
        if self._setup.asks:
            quota = Quota(self._setup.scratch, self._scratch_bytes, has_files=bool(request.files))
        return Test(request, source, cache, standard, wire, shared, quota, copies, pipes)

    def _is_build(self, request: Request) -> bool:
        return self._builds and bool(request.command)

    def _watch(self, pid: int, test: Test) -> Result:
        """Wait for a test's process, and return how it ended."""
        return wait_with_limits(
            pid,
            test.request,
            self._control,
            # A binary starts with memory of its own, not with the fork server's.
            0 if test.request.command else self._base_kib,
            test.quota,
            # A compiler has children, which a signal to it would not stop.
            is_shared=not self._is_build(test.request),
            partner=test.pipes[0] if test.request.role in _HAS_PARTNER else -1,
        )

    def _collect_files(self, test: Test) -> None:
        """Copy what a run left for the supervisor, and what named streams hold, to its files."""
        left = test.request.collected
        if self._is_build(test.request):
            left = protocol.BUILT_FILE
        if left:
            self._limits.lift()
            _copy(left, test.wire)
        for named, target in test.copies:
            _copy_content(named, target)
        for named, _ in test.copies:
            os.close(named)

    def _lay_out(self, names: Sequence[str], descriptors: Sequence[int]) -> None:
        """Write files into the scratch folder, or report why not and exit."""
        self._limits.lift()
        contents = iter(descriptors)
        try:
            if sum(os.fstat(content).st_size for content in descriptors) > self._scratch_bytes:
                raise OSError(f"all of them take more than {self._scratch_bytes >> 20} MiB")
            # No test runs now and the folder was emptied after the last one, so no link can lead
            # these writes elsewhere.
            for name in names:
                path = f"{self._setup.scratch}/{name}"
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if name.endswith("/"):
                    continue
                with open(path, "wb") as file:
                    content = next(contents)
                    file.write(os.pread(content, os.fstat(content).st_size, 0))
        except (OSError, StopIteration) as error:
            self._give_up(f"a file for a test could not be written: {error}")

    def _name_streams(self) -> list[int]:
        """Return new named files for stdout and stderr.

        None without a private root, where streams have names.
        """
        if not self._setup.has(Layer.MOUNT_NAMESPACE):
            return []
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        names = (protocol.STDOUT_FILE, protocol.STDERR_FILE)
        return [os.open(f"{self._setup.scratch}/{name}", flags, 0o666) for name in names]

    def run(self, test: Test) -> NoReturn:
        """Run one test in this forked process, and end it."""
        status = 1
        try:
            status = self._run_test(test)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        os._exit(status)

    def _run_test(self, test: Test) -> int:
        """Take a test's limits and descriptors, drop the rest, run the program.

        Return its exit code. Every object that this touches costs a page fault or two, so it makes
        and looks up as little as it can: fields are unpacked, not asked for by name.
        """
        self._enter(test)
        request, source, cache, _, wire, shared, quota, _, pipes = test
        (_, _, _, _, fn_name, _, arguments, _, dialect, _, _, _, _, _, _) = request
        names = None if dialect == PLAIN else self._dialect_names
        # Before the descriptors are closed, since it needs two of them: compiling runs nothing of
        # the program.
        if shared:
            runner.load_code(source, cache)
            packed = runner.pack_code(source, cache)
            self._take_descriptors(shared)
            self._close_in(request, quota, self._first_own + len(shared))
            runner.restore_signals()
            self._run_batch(packed, request, names)
            return 0
        code = runner.load_code(source, cache)
        if pipes and request.role != protocol.TALKS:
            return self._converse(code, test)
        first_closed = self._first_own
        if fn_name:
            os.dup2(wire, first_closed)
            first_closed += 1
        self._close_in(request, quota, first_closed)
        runner.restore_signals()
        if fn_name:
            return self._run_function(code, request, names)
        return runner.run_program(code, self._stack, arguments, names)

    def _enter(self, test: Test) -> None:
        """Take a test's limits and standard streams, and set up what its request asks for."""
        request, source, _, standard, _, _, _, _, _ = test
        if self._has_limits:
            self._limits.apply(request)
        stdin, stdout, stderr = standard
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        (_, _, _, _, _, command, _, files, _, _, _, int_digits, _, _, _) = request
        if command:
            self._become_binary(test)
        if files:
            self._make_importable(files)
        if self._redirects and folders.is_needed(source):
            folders.redirect_to(self._setup.scratch)
        if int_digits is not None:
            sys.set_int_max_str_digits(int_digits)

    def _make_importable(self, files: Sequence[str]) -> None:
        """Have modules that came with a program found by it, as beside any script."""
        if any(name.endswith(".py") for name in files):
            sys.path.insert(0, self._setup.scratch)

    def _take_descriptors(self, shared: Sequence[int]) -> None:
        """Give further descriptors the numbers that follow the standard ones."""
        # Moved out of each other's way first: one may have the number that another is to have.
        copies = [os.dup(descriptor) for descriptor in shared]
        for number, copy in enumerate(copies, self._first_own):
            os.dup2(copy, number)
            os.close(copy)

    def _rehearse(
        self, source: int, cache: int, wire: int, fn_name: str, further: Sequence[int]
    ) -> None:
        """Run a test in the fork server itself, on descriptors that nothing else uses."""
        self._renew_modules()
        request = NO_LIMITS._replace(fn_name=fn_name)
        self._run_test(Test(request, source, cache, [0, 1, 2], wire, further, None))
        os.closerange(_REHEARSED_FD, _REHEARSED_FD + len(further) + 1)
        self._interpreter.restore(draws=True)

    def _renew_modules(self) -> None:
        """Make a fresh module for each kind of program.

        Made in the fork server, it costs a test nothing.
        """
        runner.renew_main()
        sys.modules.pop(functions.MODULE_NAME, None)
        self._solution = runner.new_main_module(functions.MODULE_NAME, self._prelude)

    def _run_function(
        self, code: runner.Loaded, request: Request, names: dict[str, object] | None
    ) -> int:
        """Run a function's only test.

        At the call depth of a batch: a program must not tell the two apart.
        """
        status, returned = functions.run_function(
            code, request.fn_name, request.call, self._solution, names
        )
        functions.send_result(returned, self._first_own)
        return status

    def _converse(self, code: runner.Loaded, test: Test) -> int:
        """Run a side of a conversation: the test, or the answer."""
        request = test.request
        source = os.pread(test.source, os.fstat(test.source).st_size, 0)
        own = self._first_own
        self._take_descriptors(test.pipes)
        self._close_in(request, test.quota, own + len(test.pipes))
        runner.restore_signals()
        if request.role == protocol.ANSWERS:
            return answering.answer_calls(code, own, own + 1)
        text = source.decode("utf-8", "surrogatepass")
        return asking.run_test(code, text, own, own + 1, own + 2)

    def _run_batch(self, packed: bytes, request: Request, names: dict[str, object] | None) -> None:
        """Run the tests of a batch, up to the first that does not end well."""
        own = self._first_own
        files = batch.Files(own, own + 1, own + 2, own + 3)
        tests = batch.Batch(files, self._interpreter, request, packed, self._renew_modules)
        for program, given in tests:
            if request.fn_name:
                status, output = functions.run_function(
                    program,
                    request.fn_name,
                    request.call,
                    self._solution,
                    names,
                    given,
                    tests.note_defined,
                )
            else:
                assert program is not None
                status = runner.run_program(program, self._stack, (), names, is_shared=True)
                output = tests.read_stdout()
            tests.end(status, output)
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
        """Close all descriptors from one on, except the quota's, and install the test's filter."""
        # Among them are the control socket, over which a test could answer for itself, and the
        # program's cache, in which it could leave other bytecode for its next test. Open
        # descriptors are reached whatever Landlock and the root say.
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
        """Return the supervisor's next message, empty if it has hung up, and its descriptors."""
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
        """Kill and reap whatever a test left running.

        Return whether something is left all the same.
        """
        if self._setup.is_init:
            if kill_everything():
                with contextlib.suppress(ChildProcessError):
                    while True:
                        os.waitpid(-1, 0)
            return False
        if not self._builds:
            return False
        # Without a namespace only a compiler may start processes, and what loses its parent becomes
        # our child.
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return False
        return True


def _copy(name: str, target: int) -> None:
    """Copy a file (no link), if any, to a descriptor."""
    # A link of that name gains nothing: this process is confined as the compiler was, and reads no
    # more than it could.
    with contextlib.suppress(OSError), open(name, "rb") as file:
        if not os.path.islink(name):
            _copy_content(file.fileno(), target)


def _copy_content(source: int, target: int) -> None:
    """Copy all of a file, from one descriptor to another."""
    offset = 0
    while block := os.pread(source, 1 << 20, offset):
        offset += os.pwrite(target, block, offset)
