"""The isolation of programs: which layers hold, and whether they suffice to start.

Also the process of a fork server, in an environment of its own, and the private folders of
sandboxes: they are named and removed here, and those that a killed judge left are cleared.
"""

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import lock_file
from microcoder.judge.sandbox.protocol import Layer

PREFIX = "microcoder-sandbox-"
"""Beginning of the names of sandboxes' folders."""
_SCRIPT = Path(__file__).parents[1] / "sandbox" / "zygote.py"
"""What the process of a fork server runs."""
_NEW_SECONDS = 60.0
"""Age up to which an unlocked folder may be that of a sandbox that is starting, so it is not
swept."""
_MOST_REMOVALS = 20
"""Attempts to remove a folder, in which a process that was just killed may still write."""
_PAUSE_SECONDS = 0.05
"""Pause between two of them."""
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    # Local time is UTC, and zones come from the package tzdata: neither from this machine.
    "TZ": "UTC0",
    "PYTHONTZPATH": "",
    "LD_BIND_NOW": "1",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""Variables of a fork server, and so of programs: none of this process's."""


def start_fork_server(executable: str, log: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the process of a fork server; return it and our end of its socket.

    Args:
        executable: the Python that runs it.
        log: descriptor of the file that gets its stdout and stderr.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stdin = os.memfd_create("stdin", os.MFD_CLOEXEC)
    try:
        # -S and -s: nothing of this environment's site-packages, whose .pth files run code. -P: our
        # folder's modules do not shadow others of the same name. A session of its own, so that one
        # signal ends all of it.
        process = subprocess.Popen(
            [executable, "-s", "-P", "-S", "-B", str(_SCRIPT), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=_ENVIRONMENT,
            cwd="/",
            stdin=stdin,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
        os.close(stdin)
    return process, ours


def reserve_name() -> str:
    """Return a new random path for a sandbox's folder; nothing is created."""
    try:
        parent = tempfile.gettempdir()
    except FileNotFoundError:
        # Nothing can be written anywhere. Where a sandbox can mount a folder of its own, that does
        # not matter.
        parent = "/tmp"
    return f"{os.path.realpath(parent)}/{PREFIX}{os.urandom(12).hex()}"


def remove(path: str) -> None:
    """Remove the folder of a sandbox that was ended, if it had one.

    A process that was just killed may write once more. A folder that stays all the same is removed
    by `sweep` later.
    """
    # Imported here: Windows lacks it, and this module can be imported there all the same.
    from microcoder.judge.sandbox.folders import PRIVATE_MODE, empty_folder

    for _ in range(_MOST_REMOVALS):
        try:
            empty_folder(path, PRIVATE_MODE)
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(_PAUSE_SECONDS)
        else:
            return


@cache
def sweep(parent: str) -> None:
    """Remove the folders that killed judges left in `parent`; once per process.

    They are known by having no lock.
    """
    for path in Path(parent).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            is_old = path.lstat().st_mtime < time.time() - _NEW_SECONDS
            if is_old and is_abandoned(str(path)):
                remove(str(path))


def is_abandoned(path: str) -> bool:
    """Whether a folder exists that no sandbox has locked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            lock_file(descriptor)
        finally:
            os.close(descriptor)
    except OSError:  # There is none, or it is locked.
        return False
    return True


_FILE_PROTECTION = (Layer.MOUNT_NAMESPACE, Layer.LANDLOCK)
"""Layers of which one is required: either keeps programs from the machine's files."""
_ALWAYS_REQUIRED = (Layer.SECCOMP, Layer.RESOURCE_LIMITS)
"""Layers without which a judge does not start."""

DEGRADED_MEANS = (
    "everything is judged, and no program reads or changes a file, signals a process or opens a "
    "socket that is not its own; but it may see names and sizes of files, and what it writes is on "
    "disk until its test ends (docs/sandbox.md)"
)
"""What the level `degraded` means to a user."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The layers that hold in a sandbox; kept with every result."""

    enforced: tuple[str, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Layer -> why it could not be put on."""
    call_stack: str = ""
    """Why programs recurse less deep than under plain python; empty if they do not."""

    @property
    def level(self) -> str:
        """`full`: every layer; `degraded`: the required ones; `unsafe`: less, if the user permits
        that."""
        if self.unmet_requirements():
            return "unsafe"
        return "degraded" if self.missing else "full"

    def unmet_requirements(self) -> tuple[str, ...]:
        """Return the required layers that are missing.

        Required are seccomp, resource limits, and one form of file protection.
        """
        unmet: list[str] = [layer for layer in _ALWAYS_REQUIRED if layer not in self.enforced]
        if not any(layer in self.enforced for layer in _FILE_PROTECTION):
            unmet.append(" or ".join(_FILE_PROTECTION))
        return tuple(unmet)

    def describe_missing(self) -> str:
        """Return the missing layers with the reasons, in words."""
        by_reason: dict[str, list[str]] = {}
        for layer, reason in self.missing.items():
            by_reason.setdefault(reason, []).append(layer)
        parts = []
        for reason, names in by_reason.items():
            parts.append(f"{', '.join(names)} ({reason})")
        return "; ".join(parts)

    def require(self, *, unsafe: bool) -> None:
        """Refuse a sandbox that lacks a required layer.

        Raises:
            EvaluatorFault: a required layer is missing and the caller did not accept that.
        """
        unmet = self.unmet_requirements()
        if unmet and not unsafe:
            raise EvaluatorFault(
                f"the sandbox lacks isolation here: {', '.join(unmet)} missing "
                f"({self.describe_missing()}). "
                "Use a Linux kernel >= 5.13 with Landlock, or allow user namespaces and mounts "
                "(in a container: the options in docs/serving.md; gVisor has neither, use another "
                "runtime); only for programs you trust: unsafe=True (--unsafe)"
            )

    def as_record(self) -> dict[str, Any]:
        """Return the level and the layers as plain values, for JSON files."""
        return {"level": self.level, "enforced": list(self.enforced), "missing": dict(self.missing)}
