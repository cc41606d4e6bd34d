"""Waiting for one test from outside, with limits that nothing inside can undo."""

from __future__ import annotations

import array
import contextlib
import os
import select
import signal
import socket
import time

from microcoder.evaluator.sandbox.protocol import (
    CPU_EXPIRED,
    FINISHED,
    FOLDER_EXPIRED,
    STILL,
    WALL_EXPIRED,
    Request,
    Result,
    pack_seconds,
    unpack_seconds,
)
from microcoder.evaluator.sandbox.quota import POLL_SECONDS, Quota

_OVERSLEPT_SECONDS = 0.1


def wait_with_limits(pid: int, request: Request, control: socket.socket, base_kib: int, quota: Quota | None) -> Result:
    """Wait for a child, kill it when its CPU or wall time is spent, and account for it.

    Args:
        pid: the child.
        request: its limits.
        control: the supervisor's socket; it is asked before a test is ended for its wall time. When it hangs up, the
            zygote ends and everything with it.
        base_kib: resident memory the child inherited.
        quota: counts what it takes, where nothing else does.
    """
    started = time.monotonic()
    descriptor = os.pidfd_open(pid)
    expired = _watch(pid, descriptor, request, control, started, quota)
    if expired != FINISHED:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os.close(descriptor)
    _, status, usage = os.wait4(pid, 0)
    if quota is not None:
        if expired == FINISHED and quota.has_files and quota.is_exceeded(is_final=True):
            expired = FOLDER_EXPIRED
        quota.close()
    cpu_seconds = usage.ru_utime + usage.ru_stime
    if expired == FINISHED and cpu_seconds > request.cpu_seconds:
        expired = CPU_EXPIRED
    return Result(
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        cpu_us=int(cpu_seconds * 1e6),
        wall_us=int((time.monotonic() - started) * 1e6),
        memory_kib=max(0, usage.ru_maxrss - base_kib),
        expired=expired,
    )


def _watch(
    pid: int, descriptor: int, request: Request, control: socket.socket, started: float, quota: Quota | None
) -> int:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.register(control, select.POLLHUP | select.POLLERR)
    channel = -1 if quota is None else quota.begin()
    if quota is not None:
        poll.register(channel, select.POLLIN)
    cpu_left, wall_left = request.cpu_seconds, request.wall_seconds
    lost = 0.0
    while True:
        is_growing = quota is not None and quota.has_files
        asked, now = min(cpu_left, wall_left, POLL_SECONDS if is_growing else cpu_left), time.monotonic()
        for ready, _ in poll.poll(int(asked * 1000) + 1):
            if ready == control.fileno():
                os._exit(1)
            if ready == descriptor or quota is None:
                return FINISHED
            if ready == channel:
                poll.unregister(channel)
                listener = quota.accept()
                if listener >= 0:
                    poll.register(listener, select.POLLIN)
            else:
                quota.answer(pid)
        if quota is not None and quota.has_files and quota.is_exceeded():
            return FOLDER_EXPIRED
        passed = time.monotonic() - now
        if passed - asked > _OVERSLEPT_SECONDS:
            # The watch itself was stopped, or given no processor: that time says nothing about the test.
            lost, passed = lost + passed - asked, asked
        wall_left -= passed
        cpu_left = request.cpu_seconds - _cpu_seconds(pid)
        if cpu_left <= 0:
            return CPU_EXPIRED
        cpu_left = max(cpu_left, 0.002)
        if wall_left <= 0:
            wall_left = _ask(control, descriptor, time.monotonic() - started - lost)
            if wall_left <= 0:
                return WALL_EXPIRED


def _ask(control: socket.socket, descriptor: int, seconds: float) -> float:
    """Ask the supervisor how much longer a test may take: it sees whether it was idle or only waited its turn."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
    control.sendmsg([pack_seconds(STILL, seconds)], rights)
    answer = control.recv(64)
    if not answer:
        os._exit(1)
    return unpack_seconds(answer)


def _cpu_seconds(pid: int) -> float:
    """Read another process's CPU clock (see clock_getcpuclockid(3))."""
    process_wide, scheduler = ~pid << 3, 2
    try:
        return time.clock_gettime(process_wide | scheduler)
    except OSError:
        return 0.0
