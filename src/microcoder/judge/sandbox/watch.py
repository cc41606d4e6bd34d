"""Waiting for one test from outside, with limits that nothing inside can undo."""

from __future__ import annotations

import array
import contextlib
import errno
import os
import resource
import select
import signal
import socket
import time

from microcoder.judge.sandbox import protocol
from microcoder.judge.sandbox.protocol import Request, Result, pack_seconds, unpack_seconds
from microcoder.judge.sandbox.quota import POLL_SECONDS, Quota, cpu_clock

_OVERSLEPT_SECONDS, _SHORTEST_SECONDS = 0.1, 0.002


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
    """Wait for a child, kill it when its CPU or wall time is spent, and account for it.

    Args:
        pid: the child.
        request: its limits.
        control: the supervisor's socket; it is asked before a test is ended for its wall time. When it hangs up, the
            zygote ends and everything with it.
        base_kib: resident memory the child inherited.
        quota: counts its threads and files, if nothing else does.
        is_shared: whether others may go before it after each slice of CPU time.
        frames: descriptor of the frames of tests that share it, or -1; after the first, the others have less time.
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
    """One test that is waited for."""

    def __init__(self, pid: int, request: Request, control: socket.socket, *, is_shared: bool, frames: int) -> None:
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
                self._wall_left = self._ask(protocol.STILL, time.monotonic() - self.started - self._lost)
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
        """Return the supervisor's answer, as it can see more of a test than we; 0 if the test blocks the question."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.descriptor]))]
        # The kernel counts what all processes of a user have on the way in sockets, and compares it with the sender's
        # limit, which is the one that tests inherit from here: a test that keeps as many on the way as it may would
        # leave no room for this one.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            self._control.sendmsg([pack_seconds(kind, seconds)], rights)
        except OSError as error:
            if error.errno == errno.ETOOMANYREFS:
                return 0.0
            raise
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        answer = self._control.recv(64)
        if not answer:
            os._exit(1)
        return unpack_seconds(answer)
