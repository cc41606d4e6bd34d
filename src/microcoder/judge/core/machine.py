"""The machine: whether it is Linux, processors, file locks, full disks, orphans; and how to install our extras."""

import errno
import os
import re
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from microcoder.judge.core.errors import EvaluatorFault

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def require_linux() -> None:
    """Raise EvaluatorFault if this is not Linux, which the sandbox needs."""
    if sys.platform != "linux":
        name = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        raise EvaluatorFault(
            f"the sandbox for programs needs Linux, and this is {name}; use a Linux container or WSL 2 here, or send "
            "programs to a Linux machine that runs `microcoder serve` (microcoder.judge.fleet.http.JudgeClient)"
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


def end_with_parent() -> None:
    """End this worker process with its parent, which may be killed: it would wait for ever."""
    from multiprocessing import parent_process

    def wait() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def lock_file(file: IO[Any] | int, *, waits: bool = False) -> None:
    """Lock a file until it is closed; if it is locked already, wait, or raise BlockingIOError unless `waits`."""
    if fcntl is None:
        require_linux()
    else:
        fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)


def how_to_install(extras: str) -> str:
    """Return the pip command that adds extras, such as `train,verl`, from this package's source: no index has it."""
    return f"pip install '.[{extras}]' in a checkout of MicroCoder"
