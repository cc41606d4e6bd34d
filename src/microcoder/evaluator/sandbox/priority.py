"""Standing back from other work of the machine: this session's processes, and its scheduler group."""

from __future__ import annotations

import os
import time

_ENABLED_FILE, _GROUP_FILE = "/proc/sys/kernel/sched_autogroup_enabled", "/proc/self/autogroup"
_MOST_SECONDS, _PAUSE_SECONDS = 30.0, 0.02


def stand_back(nice: int) -> None:
    """Make this process, those it starts and their scheduler group so nice, or as nice as the process is already.

    Where Linux groups processes by session, a process's niceness counts within its own session only: beside others, the
    session has one of its own, which starts from 0.

    Raises:
        OSError: the group's cannot be set.
    """
    nice = max(nice, os.getpriority(os.PRIO_PROCESS, 0))
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    if nice <= 0 or not _are_sessions_grouped():
        return
    latest = time.monotonic() + _MOST_SECONDS
    while True:
        try:
            with open(_GROUP_FILE, "w") as file:
                file.write(str(nice))
            return
        except BlockingIOError:
            # The kernel lets one of all processes without privileges do so in a tenth of a second.
            if time.monotonic() > latest:
                raise
            time.sleep(_PAUSE_SECONDS)


def _are_sessions_grouped() -> bool:
    try:
        with open(_ENABLED_FILE) as file:
            return file.read().strip() == "1" and os.path.exists(_GROUP_FILE)
    except OSError:
        return False
