"""Runs a judge under test in a disposable process.

It reads a JSON line for each case, and writes one with the answer. It needs the standard library
only, so that it runs under any interpreter that has a judge's packages:

    python worker.py '{"judge": "livecodebench", "path": "CHECKOUT", ...}'

Under a judge that does not isolate them, hostile programs would act with the user's rights. So it
runs, if asked, in user, mount, pid, network, IPC and host name namespaces of its own: the file
system is read-only, `/tmp`, `/var/tmp` and `/dev/shm` are its own and small, there is no network,
and all processes end when it ends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import sys
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_HERE = os.path.dirname(os.path.abspath(__file__))
"""Folder of this file."""

_PATIENCE_SECONDS = 0.3
"""Time that a judge has after its verdict to end the program's processes."""

_PRIVATE = 1 << 18
"""Flag MS_PRIVATE of mount: changes of a mount are not seen outside."""

_RECURSIVE = 1 << 14
"""Flag MS_REC of mount: with all mounts below it."""

_BIND = 1 << 12
"""Flag MS_BIND of mount: a folder appears in another place."""

_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")
"""Folders that every user may write, which the process gets of its own."""

_SCRATCH_OPTIONS = "size=256m,nr_inodes=20000"
"""Size of each of these folders."""

_ADDRESS_BYTES = 3 << 30
"""Address space of a process: 3 GiB."""

_FILE_BYTES = 200 << 20
"""Largest file that is written: 200 MiB."""

_PROCESSES = 400
"""Most processes of the user at a time."""

_NAMESPACES = ("NS", "UTS", "IPC", "USER", "PID", "NET")
"""Kinds of namespaces that the process gets of its own, by the kernel's names."""


def main() -> None:
    """Start the judge that the argument (JSON) names, and answer cases until stdin ends."""
    settings = json.loads(sys.argv[1])
    judges = _import_judges()
    # What programs read is nothing, what they write goes to the log.
    requests = os.fdopen(os.dup(0))
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    problem = "not asked for"
    if settings["contain"]:
        kernel = judges.import_file(settings["kernel"], "yardstick_kernel")
        problem = _contain(kernel, settings["folder"], settings["keep"])
    ask, about = judges.make_judge(settings)
    begun = {
        "token": settings["token"],
        "containment": problem,
        "about": about,
        # What a judge lacks may show only where it is asked.
        "cannot": list(getattr(ask, "cannot", ())),
    }
    _send(answers, begun)
    for line in requests:
        answer = _answer(ask, json.loads(line))
        _send(answers, {"token": settings["token"], **answer})


def _import_judges() -> ModuleType:
    """Return the module of judges, under the name by which adapters import it.

    Afterwards no file of this folder can be imported by its own name: modules of the same name that
    belong to a judge must be found.
    """
    sys.path.insert(0, _HERE)
    judges = importlib.import_module("judges")
    sys.modules[judges.MODULE] = sys.modules.pop("judges")
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    return judges


def _answer(ask: Callable[[dict[str, Any]], Any], case: dict[str, Any]) -> dict[str, Any]:
    """Return a judge's answer to a case, its time, and what it left behind."""
    processes = _orphans()
    files = _files()
    accepted = None
    error = ""
    started = time.monotonic()
    try:
        accepted = ask(case)
    except (Exception, SystemExit, KeyboardInterrupt) as raised:
        error = f"{type(raised).__name__}: {raised}"[:300]
    seconds = time.monotonic() - started
    left = _orphans() - processes
    if left:
        time.sleep(_PATIENCE_SECONDS)
        left = _orphans() - processes
    remains = [f"process {name}" for _, name in sorted(left)]
    remains += sorted(_files() - files)
    return {
        "id": case["id"],
        "accepted": None if accepted is None else bool(accepted),
        "error": error,
        "left": remains,
        "seconds": seconds,
    }


def _send(channel: int, message: dict[str, Any]) -> None:
    # A program may have written half a line there.
    line = json.dumps(message).encode()
    os.write(channel, b"\n" + line + b"\n")


def _orphans() -> set[tuple[int, str]]:
    """Return (pid, name) of the processes without a parent, which no judge can still manage."""
    orphans = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        # It may end while it is read.
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            # The name is in brackets, and may hold brackets itself.
            head, _, rest = file.read().rpartition(")")
            state, parent, *_ = rest.split()
            # The first two are the init of the namespace and the worker.
            if parent == "1" and int(pid) > 2 and state != "Z":
                name = head.partition("(")[2]
                orphans.add((int(pid), name))
    return orphans


def _files() -> set[str]:
    """Return the paths of everything in the shared folders."""
    paths = set()
    for folder in filter(os.path.isdir, _SCRATCH):
        names = os.listdir(folder)
        paths.update(os.path.join(folder, name) for name in names)
    return paths


def _contain(kernel: ModuleType, folder: str, keep: list[str]) -> str:
    """Isolate a child; the calling process never returns.

    Args:
        kernel: the system calls of our own sandbox.
        folder: the judge's working folder, below /tmp.
        keep: folders that stay visible there, read-only.

    Returns:
        In the child, why isolation failed; empty if it did not.
    """
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_BYTES, _ADDRESS_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Of everything on this machine, the kernel is to end this first where memory runs out.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    problem = ""
    try:
        _enter(kernel)
    except OSError as error:
        problem = str(error)
    if not problem:
        _become_child(kernel)
        # The first process of a pid namespace takes no signals, and a judge is to be no better off
        # than elsewhere: so it becomes the second.
        _close_file_system(kernel, keep)
    _become_child(kernel)
    resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    return problem


def _enter(kernel: ModuleType) -> None:
    """Enter namespaces of this process's own, as their root user."""
    # Read before: inside, both are unknown until they are mapped.
    user = os.getuid()
    group = os.getgid()
    kernel.unshare(sum(getattr(kernel, f"CLONE_NEW{name}") for name in _NAMESPACES))
    # The kernel takes a map of groups only from who has given up setgroups.
    _write_own("setgroups", "deny")
    _write_own("uid_map", f"0 {user} 1")
    _write_own("gid_map", f"0 {group} 1")


def _write_own(name: str, text: str) -> None:
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def _close_file_system(kernel: ModuleType, keep: list[str]) -> None:
    """Make the file system read-only, and the shared folders new and small."""
    kernel.mount("none", "/", None, _PRIVATE | _RECURSIVE)
    kernel.make_mount_read_only("/", has_devices=True)
    below_scratch = tuple(f"{folder}/" for folder in _SCRATCH)
    handles = {}
    for path in map(os.path.realpath, keep):
        if path.startswith(below_scratch):
            # Opened before the new folders hide it.
            handles[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
    for path in _SCRATCH:
        if os.path.isdir(path):
            kernel.mount("tmpfs", path, "tmpfs", 0, _SCRATCH_OPTIONS)
    for path, handle in handles.items():
        os.makedirs(path, exist_ok=True)
        kernel.mount(f"/proc/self/fd/{handle}", path, None, _BIND | _RECURSIVE)
        os.close(handle)
    kernel.mount("proc", "/proc", "proc")


def _become_child(kernel: ModuleType) -> None:
    """Continue in a child; the parent adopts orphans, and ends when the child does."""
    child = os.fork()
    if not child:
        # If the parent is killed, so is this.
        kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
        return
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
