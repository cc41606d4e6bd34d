"""This machine: its system, processors, and file locks. Programs are judged on Linux."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from typing import IO, Any

from microcoder.judge.core.errors import EvaluatorFault

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_NAMES = {"darwin": "macOS", "win32": "Windows"}
_WHAT_TO_DO = (
    "use a Linux container or WSL 2 here, or send programs to a Linux machine that runs `microcoder serve` "
    "(microcoder.judge.fleet.http.JudgeClient)"
)


def require_linux() -> None:
    """Refuse a system without support for the sandbox."""
    if sys.platform != "linux":
        raise EvaluatorFault(
            f"the sandbox for programs needs Linux, and this is {_NAMES.get(sys.platform, sys.platform)}; "
            + _WHAT_TO_DO
        )


_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SAYS_FULL = re.compile(r"No space left on device|Disk quota exceeded|database or disk is full|os error (?:28|122)\b")
"""Messages for a full disk from libraries whose exceptions have no errno."""


def is_disk_full(error: BaseException) -> bool:
    """Return whether an exception says that a file system or a quota is full."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _DISK_IS_FULL
    return _SAYS_FULL.search(str(error)) is not None


def count_processors() -> int:
    """Return how many processors this process may use."""
    usable: Callable[[int], Any] | None = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def lock_file(file: IO[Any] | int, *, waits: bool = False) -> None:
    """Lock a file for this process, until it is closed."""
    if fcntl is None:
        require_linux()
    else:
        fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
