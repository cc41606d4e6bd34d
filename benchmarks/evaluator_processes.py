"""What a process and its descendants use: CPU seconds, memory, descriptors, as /proc says."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


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
    own, ended = _read_stat(pid)
    below = [_read_stat(child) for child in list_descendants(pid)]
    return CpuUse(own, sum(stat[0] for stat in below), ended + sum(stat[1] for stat in below))


def _read_stat(pid: int) -> tuple[float, float]:
    """Return CPU seconds of a process, and of its children that it waited for; 0 where it ended meanwhile."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0.0
    user, system, child_user, child_system = (int(field) for field in fields[11:15])
    return (user + system) / _TICKS_PER_SECOND, (child_user + child_system) / _TICKS_PER_SECOND


def list_descendants(pid: int) -> list[int]:
    """Return the process ids of all children and their children."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                children = [int(child) for child in file.read().split()]
            found += [one for child in children for one in (child, *list_descendants(child))]
    except (FileNotFoundError, ProcessLookupError):
        pass  # a process or thread that ended while its folder was read
    return found


def read_own_cpu_seconds() -> float:
    """CPU time of this process and of all its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def look_around() -> dict[str, int]:
    """Return what this process and its descendants hold."""
    family = list_descendants(os.getpid())
    return {
        "own_memory_kib": _resident_kib(os.getpid()),
        "sandbox_memory_kib": sum(map(_resident_kib, family)),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "processes": len(family),
        "temporary_files": len(os.listdir("/tmp")) + len(os.listdir("/dev/shm")),
    }


def _resident_kib(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
