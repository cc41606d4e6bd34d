"""Waiting for one test from outside, with limits that nothing inside can undo."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from microcoder.evaluator.sandbox.protocol import CPU_EXPIRED, FINISHED, FOLDER_EXPIRED, WALL_EXPIRED, Request, Result
from microcoder.evaluator.sandbox.quota import POLL_SECONDS, Quota


def wait_with_limits(pid: int, request: Request, control: int, base_kib: int, quota: Quota | None) -> Result:
    """Wait for a child, kill it when its CPU or wall time is spent, and account for it.

    Args:
        pid: the child.
        request: its limits.
        control: the supervisor's socket; when that hangs up, the zygote ends and everything with it.
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


def _watch(pid: int, descriptor: int, request: Request, control: int, started: float, quota: Quota | None) -> int:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.register(control, select.POLLHUP | select.POLLERR)
    channel = -1 if quota is None else quota.begin()
    listener = -1
    if quota is not None:
        poll.register(channel, select.POLLIN)
    cpu_left = request.cpu_seconds
    while True:
        wall_left = started + request.wall_seconds - time.monotonic()
        if wall_left <= 0:
            return WALL_EXPIRED
        is_growing = quota is not None and quota.has_files
        for ready, _ in poll.poll(int(min(wall_left, cpu_left, POLL_SECONDS if is_growing else cpu_left) * 1000) + 1):
            if ready == control:
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
        cpu_left = request.cpu_seconds - _cpu_seconds(pid)
        if cpu_left <= 0:
            return CPU_EXPIRED
        cpu_left = max(cpu_left, 0.002)


def _cpu_seconds(pid: int) -> float:
    """Read another process's CPU clock (see clock_getcpuclockid(3))."""
    process_wide, scheduler = ~pid << 3, 2
    try:
        return time.clock_gettime(process_wide | scheduler)
    except OSError:
        return 0.0
