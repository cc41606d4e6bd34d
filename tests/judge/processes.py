"""What runs below a process, and whether it has ended."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the children of all threads of a process; none of one that has ended."""
    try:
        children = []
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            for one in path.read_text().split():
                children.append(int(one))
        return children
    except OSError:
        return []


def descendants_of(pid: int) -> list[int]:
    """Return the processes that a process has started, and theirs: fork servers,
    and what runs in them.
    """
    descendants = []
    for child in children_of(pid):
        descendants.extend((child, *descendants_of(child)))
    return descendants


def wait_until(is_so: Callable[[], object], seconds: float = 60.0) -> bool:
    """Return whether something came to be so within a time."""
    deadline = time.monotonic() + seconds
    while not (found := bool(is_so())) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def wait_until_gone(pids: Iterable[int]) -> bool:
    """Return whether all have ended within a time."""
    return wait_until(lambda: not any(map(_is_alive, pids)))


def _is_alive(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
