"""What a process and its descendants use: CPU seconds, memory, descriptors."""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class CpuUse:
    """CPU seconds of a tree of processes, to a hundredth of a second for each of them."""

    root: float
    """The process itself: in a judge's process, what the judge uses."""
    descendants: float
    """Those that run now: fork servers and pools."""
    ended: float
    """Those that ended and were waited for: the tests' processes."""

    @property
    def total(self) -> float:
        return self.root + self.descendants + self.ended

    def __sub__(self, before: CpuUse) -> CpuUse:
        return CpuUse(self.root - before.root, self.descendants - before.descendants, self.ended - before.ended)


def read_cpu_use(pid: int) -> CpuUse:
    """Return what a process and all below it have used; the sum never loses what an ended child used."""
    root = psutil.Process(pid)
    own = root.cpu_times()
    descendants, ended = 0.0, own.children_user + own.children_system
    for process in root.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            descendants += times.user + times.system
            ended += times.children_user + times.children_system
    return CpuUse(own.user + own.system, descendants, ended)


def read_own_cpu_seconds() -> float:
    """CPU time of this process and of all its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def look_around() -> dict[str, int]:
    """Return what this process and its descendants hold."""
    own = psutil.Process()
    family = own.children(recursive=True)
    return {
        "own_memory_kib": own.memory_info().rss // 1024,
        "sandbox_memory_kib": sum(_memory_of(process) for process in family) // 1024,
        "descriptors": own.num_fds(),
        "threads": own.num_threads(),
        "processes": len(family),
        "temporary_files": len(os.listdir("/tmp")) + len(os.listdir("/dev/shm")),
    }


def _memory_of(process: psutil.Process) -> int:
    """Return resident bytes; 0 where it ended meanwhile."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.memory_info().rss
    return 0
