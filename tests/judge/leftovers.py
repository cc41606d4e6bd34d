"""What a judge leaves behind: processes, files, shared memory, mounts, changed devices."""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from microcoder.judge.run import isolation
from microcoder.judge.sandbox.kernel import prctl
from tests.judge.processes import children_of

_PR_SET_CHILD_SUBREAPER = 36
_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_PATIENCE_SECONDS = 20.0


class Leftovers:
    """Looks at the machine when it is made, and again when it is asked;
    for a process that does nothing else.
    """

    def __init__(self) -> None:
        # Whatever loses its parent becomes our child,
        # so nothing that was started can get out of sight.
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._started = time.time()
        self._before = _machine()

    def users_of(self, processes: Iterable[int]) -> set[int]:
        """Return the user ids of these processes and their children,
        less those that others work under, too.
        """
        found = set()
        for parent in processes:
            for number in (parent, *children_of(parent)):
                found.add(_user(number))
        return found - {0, _user(os.getppid())}

    def find(self, users: set[int]) -> list[str]:
        """Return what was not there before: processes below ours, files of these users,
        changes of the machine.
        """
        found = [f"process {number}" for number in _living_children()]
        found += [path for folder in _FOLDERS for path in self._new_files(folder, users)]
        after = _machine()
        changed = []
        for name in after:
            if after[name] != self._before[name]:
                changed.append(f"{name}: {self._before[name]} -> {after[name]}")
        return found + changed

    def _new_files(self, folder: str, users: set[int]) -> Iterator[str]:
        """Yield what these users have made, in folders that they can write to;
        others' may vanish meanwhile.
        """
        try:
            with os.scandir(folder) as entries:
                paths = [entry.path for entry in entries]
        except OSError:
            return
        for path in paths:
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if os.path.basename(path).startswith(isolation.PREFIX):
                if status.st_ctime >= self._started and isolation.is_abandoned(path):
                    yield path
            elif status.st_uid in users and status.st_ctime >= self._started:
                yield path
            elif stat.S_ISDIR(status.st_mode) and (
                status.st_uid in users or status.st_mode & stat.S_IWOTH
            ):
                yield from self._new_files(path, users)


def _user(process: int) -> int:
    (line,) = (
        line for line in _read(f"/proc/{process}/status").splitlines() if line.startswith("Uid:")
    )
    return int(line.split()[1])


def _living_children() -> list[int]:
    """Reap what has ended; what the kernel was told to end may take a moment to do so."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return []
        if time.monotonic() > end:
            return children_of(os.getpid())
        time.sleep(0.02)


def _machine() -> dict[str, object]:
    shared = {}
    for kind in ("shm", "sem", "msg"):
        shared[f"/proc/sysvipc/{kind}"] = _read(f"/proc/sysvipc/{kind}")
    mounts = []
    for line in _read("/proc/self/mounts").splitlines():
        if "nr_inodes=256" in line or "nr_inodes=512" in line:
            mounts.append(line)
    devices = {}
    for path in _DEVICES:
        for status in [os.stat(path)]:
            devices[path] = (status.st_mode, status.st_uid, status.st_gid)
    return {
        **shared,
        **devices,
        "mounts": mounts,
        "host name": os.uname().nodename,
        "cores": _read("/proc/sys/kernel/core_pattern"),
    }


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
