"""Waiting for a test from outside: its CPU time, its wall time, its folder, how it ended.

The fork server waits in its own process, with limits that nothing inside a test can undo. Start
with `wait_with_limits`.
"""

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
from microcoder.judge.sandbox.protocol import Expiry, Request, Result
from microcoder.judge.sandbox.quota import POLL_SECONDS, Quota, cpu_clock

_OVERSLEPT_SECONDS = 0.1
"""The watch slept so much longer than it meant to: it was stopped, or given no processor."""
_SHORTEST_SECONDS = 0.002
"""Shortest time that the watch sleeps for CPU time to pass."""


def wait_with_limits(
    pid: int,
    request: Request,
    control: socket.socket,
    base_kib: int,
    quota: Quota | None,
    *,
    is_shared: bool = True,
    partner: int = -1,
) -> Result:
    """Wait for a child, kill it at its CPU, wall time or file limit, and account for it.

    Args:
        pid: the child.
        request: its limits.
        control: the supervisor's socket, asked before a test is ended for its wall time; if it
            hangs up, the fork server and everything with it end.
        base_kib: resident memory the child inherited.
        quota: counts the child's threads and files, where the kernel does not.
        is_shared: whether the child is paused after each slice of CPU time, for other tests to run.
        partner: descriptor of the pipe from the child's partner in a conversation, or -1; once that
            has ended, so does the child.
    """
    watch = _Watch(pid, request, control, is_shared=is_shared, partner=partner)
    expired = watch.wait(quota)
    if expired != Expiry.FINISHED:
        # It is not reaped before `wait4`, so until then its number cannot be another process's.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os.close(watch.descriptor)
    _, status, usage = os.wait4(pid, 0)
    if quota is not None:
        if expired == Expiry.FINISHED:
            expired = _find_excess(quota)
        quota.close()
    cpu_seconds = usage.ru_utime + usage.ru_stime
    if expired == Expiry.CONVERSATION and _has_ended_by_itself(request, status):
        expired = Expiry.FINISHED
    if expired == Expiry.CONVERSATION:
        # How it ended was not its own doing.
        status = 0
    if expired in (Expiry.FINISHED, Expiry.CONVERSATION) and cpu_seconds > request.cpu_seconds:
        expired = Expiry.CPU
    return Result(
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        cpu_us=int(cpu_seconds * 1e6),
        wall_us=int((time.monotonic() - watch.started - watch.stood_seconds) * 1e6),
        memory_kib=max(0, usage.ru_maxrss - base_kib),
        expired=expired,
    )


def _has_ended_by_itself(request: Request, status: int) -> bool:
    """Whether a program that talks had ended before it was ended here.

    It does not see that the interactor has ended. So its own end is its own doing, also where the
    interactor ended because of it and was seen to have ended first.
    """
    is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return request.role == protocol.TALKS and not is_killed


def _find_excess(quota: Quota) -> int:
    """Return the limit of space that a test which ended by itself exceeded; FINISHED if none."""
    if quota.has_files and quota.is_exceeded(is_final=True):
        return Expiry.FOLDER
    if quota.lacks_space:
        return Expiry.FILE_SYSTEM
    return Expiry.FINISHED


class _Watch:
    """Waits for one test, and watches its CPU time, wall time and quota."""

    def __init__(
        self,
        pid: int,
        request: Request,
        control: socket.socket,
        *,
        is_shared: bool,
        partner: int,
    ) -> None:
        self.started = time.monotonic()
        self.descriptor = os.pidfd_open(pid)
        self._pid = pid
        self._request = request
        self._control = control
        self._is_shared = is_shared
        self._partner = partner
        self._has_partner_ended = False
        self._lost = 0.0
        """Seconds that are not the test's: the watch overslept, or the test was stopped."""
        self._wall_left = request.wall_seconds
        self._slice_end = protocol.SLICE_SECONDS
        self.stood_seconds = 0.0
        """Seconds that the test was stopped."""

    def wait(self, quota: Quota | None) -> int:
        """Wait for the test; return FINISHED, or the limit at which it must be ended."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        poll.register(self._control, select.POLLHUP | select.POLLERR)
        if self._partner >= 0:
            # For no event but its end, which is always reported.
            poll.register(self._partner, 0)
        channel = -1
        if quota is not None:
            channel = quota.begin(self._pid)
            poll.register(channel, select.POLLIN)
        cpu_seconds = 0.0
        cpu_left = self._request.cpu_seconds
        while True:
            now = time.monotonic()
            pause = self._choose_pause(cpu_seconds, cpu_left, quota)
            if self._is_finished(poll, pause, channel, quota):
                return Expiry.CONVERSATION if self._has_partner_ended else Expiry.FINISHED
            if quota is not None and quota.has_files and quota.is_exceeded():
                return Expiry.FOLDER
            self._count_wall(time.monotonic() - now, pause)
            cpu_seconds = cpu_clock(self._pid)
            if self._is_shared and self._slice_end <= cpu_seconds < self._request.cpu_seconds:
                self._share(cpu_seconds)
            cpu_left = self._request.cpu_seconds - cpu_seconds
            if cpu_left <= 0:
                return Expiry.CPU
            cpu_left = max(cpu_left, _SHORTEST_SECONDS)
            if self._wall_left <= 0:
                self._wall_left = self._ask(
                    protocol.STILL, time.monotonic() - self.started - self._lost
                )
                if self._wall_left <= 0:
                    return Expiry.WALL

    def _choose_pause(self, cpu_seconds: float, cpu_left: float, quota: Quota | None) -> float:
        """Return how long to wait for the test's end before its times and its folder are read."""
        pause = min(cpu_left, self._wall_left)
        if self._is_shared:
            slice_left = self._slice_end - cpu_seconds
            pause = min(pause, max(slice_left, _SHORTEST_SECONDS))
        if quota is not None and quota.has_files:
            pause = min(pause, POLL_SECONDS)
        return pause

    def _is_finished(
        self, poll: select.poll, pause: float, channel: int, quota: Quota | None
    ) -> bool:
        """Wait a while, answer questions about the test's calls; return whether the test has ended.

        Args:
            poll: waits for the test, the supervisor and the quota.
            pause: how long to wait, in seconds.
            channel: where the test's listener arrives.
            quota: answers the questions.
        """
        # By a descriptor, not by SIGCHLD or a timer: nothing that a test does can delay or take
        # either.
        for ready, _ in poll.poll(int(pause * 1000) + 1):
            if ready == self._control.fileno():
                os._exit(1)
            if ready == self._partner:
                self._has_partner_ended = True
                return True
            if ready == self.descriptor or quota is None:
                return True
            if ready == channel:
                poll.unregister(channel)
                listener = quota.accept()
                if listener >= 0:
                    poll.register(listener, select.POLLIN)
            else:
                quota.answer()
        return False

    def _count_wall(self, passed: float, pause: float) -> None:
        """Count the wall time that passed while the watch meant to pause for a while."""
        if passed - pause > _OVERSLEPT_SECONDS:
            # The watch itself was stopped, or given no processor: that time says nothing about the
            # test.
            self._lost += passed - pause
            passed = pause
        self._wall_left -= passed

    def _share(self, cpu_seconds: float) -> None:
        """Let other tests go first after a slice of CPU time.

        The time in which it is stopped is not the test's.
        """
        since = time.monotonic()
        self._signal(signal.SIGSTOP)
        self._ask(protocol.SLICE, cpu_seconds)
        self._signal(signal.SIGCONT)
        stood = time.monotonic() - since
        self._lost += stood
        self.stood_seconds += stood
        self._slice_end = cpu_seconds + protocol.SLICE_SECONDS

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _ask(self, kind: bytes, seconds: float) -> float:
        """Ask the supervisor, which sees more of a test.

        Return its answer in seconds, 0 if the test blocks that.
        """
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self.descriptor]))]
        # The kernel counts what all processes of a user have on the way in sockets, and compares it
        # with the sender's limit, which is the one that tests inherit from here: a test that keeps
        # as many on the way as it may would leave no space for this one.
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
