"""Waiting for one test from outside, with limits that nothing inside can undo."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from microcoder.evaluator.sandbox.protocol import CPU_EXPIRED, FINISHED, WALL_EXPIRED, Request, Result


def wait_with_limits(pid: int, request: Request, control: int, base_kib: int) -> Result:
    """Wait for a child, kill it when its CPU or wall time is spent, and account for it.

    Args:
        pid: the child.
        request: its limits.
        control: the supervisor's socket; when that hangs up, the zygote ends and everything with it.
        base_kib: resident memory the child inherited.
    """
    started = time.monotonic()
    descriptor = os.pidfd_open(pid)
    expired = _watch(pid, descriptor, request, control, started)
    if expired != FINISHED:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os.close(descriptor)
    _, status, usage = os.wait4(pid, 0)
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


def _watch(pid: int, descriptor: int, request: Request, control: int, started: float) -> int:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.register(control, select.POLLHUP | select.POLLERR)
    cpu_left = request.cpu_seconds
    while True:
        wall_left = started + request.wall_seconds - time.monotonic()
        if wall_left <= 0:
            return WALL_EXPIRED
        for ready, _ in poll.poll(int(min(wall_left, cpu_left) * 1000) + 1):
            if ready == control:
                os._exit(1)
            return FINISHED
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
