"""Runs a judge under test in a disposable process: reads a JSON line for each case, and writes one with the answer.

Standard library only, so that it runs under any interpreter that has a judge's packages:

    python worker.py '{"judge": "livecodebench", "path": "CHECKOUT", ...}'

Under a judge that does not isolate them, hostile programs would act with the user's rights. So it runs, if asked,
in user, mount, pid, network, IPC and host name namespaces of its own: the file system is read-only, `/tmp`, `/var/tmp`
and `/dev/shm` are its own and small, there is no network, and all processes end when it ends.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import sys
import time
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_PATIENCE_SECONDS = 0.3
"""Time that a judge has after its verdict to end the program's processes."""
_PRIVATE, _RECURSIVE, _BIND = 1 << 18, 1 << 14, 1 << 12
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")
_SCRATCH_OPTIONS = "size=256m,nr_inodes=20000"
_ADDRESS_BYTES, _FILE_BYTES, _PROCESSES = 3 << 30, 200 << 20, 400


def main() -> None:
    """Start the judge that the argument (JSON) names, and answer cases until stdin ends."""
    settings = json.loads(sys.argv[1])
    # By the name by which adapters import it. Other files of this folder, and it by its own name, are no modules: those
    # of a judge's own must be found.
    sys.path.insert(0, _HERE)
    judges = importlib.import_module("judges")
    sys.modules[judges.MODULE] = sys.modules.pop("judges")
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]
    # What programs read is nothing, what they write goes to the log.
    requests, answers = os.fdopen(os.dup(0)), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    problem = "not asked for"
    if settings["contain"]:
        kernel = judges.import_file(settings["kernel"], "yardstick_kernel")
        problem = _contain(kernel, settings["folder"], settings["keep"])
    ask, about = judges.make_judge(settings)
    _send(answers, {"token": settings["token"], "containment": problem, "about": about})
    for line in requests:
        _send(answers, {"token": settings["token"], **_answer(ask, json.loads(line))})


def _answer(ask: Any, case: dict[str, Any]) -> dict[str, Any]:
    processes, files = _orphans(), _files()
    started = time.monotonic()
    accepted, error = None, ""
    try:
        accepted = ask(case)
    except (Exception, SystemExit, KeyboardInterrupt) as raised:
        error = f"{type(raised).__name__}: {raised}"[:300]
    seconds = time.monotonic() - started
    left = sorted(_orphans() - processes)
    if left:
        time.sleep(_PATIENCE_SECONDS)
        left = sorted(_orphans() - processes)
    remains = [f"process {name}" for _, name in left] + sorted(_files() - files)
    accepted = None if accepted is None else bool(accepted)
    return {
        "id": case["id"],
        "accepted": accepted,
        "error": error,
        "left": remains,
        "seconds": seconds,
    }


def _send(channel: int, message: dict[str, Any]) -> None:
    os.write(channel, b"\n" + json.dumps(message).encode() + b"\n")


def _orphans() -> set[tuple[int, str]]:
    """Return (pid, name) of the processes without a parent, which no judge can still manage."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            head, _, rest = file.read().rpartition(")")
            state, parent, *_ = rest.split()
            if parent == "1" and int(pid) > 2 and state != "Z":
                found.add((int(pid), head.partition("(")[2]))
    return found


def _files() -> set[str]:
    folders = filter(os.path.isdir, _SCRATCH)
    return {os.path.join(folder, name) for folder in folders for name in os.listdir(folder)}


def _contain(kernel: Any, folder: str, keep: list[str]) -> str:
    """Isolate a child; return in it why that failed, or an empty text. The calling process never returns.

    `kernel` has the system calls of our own sandbox. `folder`, below /tmp, is the judge's working folder; the folders
    of `keep` stay visible there, read-only.
    """
    for limit, most in ((resource.RLIMIT_AS, _ADDRESS_BYTES), (resource.RLIMIT_FSIZE, _FILE_BYTES)):
        resource.setrlimit(limit, (most, most))
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
        # The first process of a pid namespace takes no signals, and a judge is to be no better off than elsewhere.
        _close_file_system(kernel, keep)
    _become_child(kernel)
    resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    return problem


def _enter(kernel: Any) -> None:
    user, group = os.getuid(), os.getgid()
    kernel.unshare(
        sum(
            getattr(kernel, f"CLONE_NEW{name}")
            for name in ("NS", "UTS", "IPC", "USER", "PID", "NET")
        )
    )
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"0 {user} 1"),
        ("gid_map", f"0 {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _close_file_system(kernel: Any, keep: list[str]) -> None:
    kernel.mount("none", "/", None, _PRIVATE | _RECURSIVE)
    kernel.make_mount_read_only("/", has_devices=True)
    hidden = [
        path
        for path in map(os.path.realpath, keep)
        if path.startswith(tuple(f"{one}/" for one in _SCRATCH))
    ]
    handles = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in hidden]
    for path in _SCRATCH:
        if os.path.isdir(path):
            kernel.mount("tmpfs", path, "tmpfs", 0, _SCRATCH_OPTIONS)
    for path, handle in zip(hidden, handles, strict=True):
        os.makedirs(path, exist_ok=True)
        kernel.mount(f"/proc/self/fd/{handle}", path, None, _BIND | _RECURSIVE)
        os.close(handle)
    kernel.mount("proc", "/proc", "proc")


def _become_child(kernel: Any) -> None:
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
