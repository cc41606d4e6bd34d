"""Isolates the process of a judge under test from this machine. Standard library only; loaded by `worker`.

Under a judge that does not isolate them, hostile programs would act with the user's rights. So the judge runs
in user, mount, pid, network, IPC and host name namespaces of its own: the file system is read-only, `/tmp`, `/var/tmp`
and `/dev/shm` are its own and small, there is no network, and all processes end when it ends.
"""

from __future__ import annotations

import contextlib
import os
import resource

# `worker` loads it: the system calls of our own sandbox, `microcoder.judge.sandbox.kernel`.
import yardstick_kernel as kernel  # pyrefly: ignore[missing-import]

_PRIVATE, _RECURSIVE, _BIND = 1 << 18, 1 << 14, 1 << 12
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")
_SCRATCH_OPTIONS = "size=256m,nr_inodes=20000"
_ADDRESS_BYTES, _FILE_BYTES, _PROCESSES = 3 << 30, 200 << 20, 400


def contain(folder: str, keep: list[str]) -> str:
    """Isolate this process; return an empty text, or why it failed. Only a child returns, whose pid is not 1.

    `folder`, below /tmp, is the judge's working folder; the folders of `keep` stay visible there, read-only.
    """
    for limit, most in ((resource.RLIMIT_AS, _ADDRESS_BYTES), (resource.RLIMIT_FSIZE, _FILE_BYTES)):
        resource.setrlimit(limit, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Of everything on this machine, the kernel is to end this first where memory runs out.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    problem = ""
    try:
        _enter()
    except OSError as error:
        problem = str(error)
    if not problem:
        _become_child()
        # The first process of a pid namespace takes no signals, and a judge is to be no better off than elsewhere.
        _close_file_system(keep)
    _become_child()
    resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    return problem


def _enter() -> None:
    user, group = os.getuid(), os.getgid()
    kernel.unshare(sum(getattr(kernel, f"CLONE_NEW{name}") for name in ("NS", "UTS", "IPC", "USER", "PID", "NET")))
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _close_file_system(keep: list[str]) -> None:
    kernel.mount("none", "/", None, _PRIVATE | _RECURSIVE)
    kernel.make_mount_read_only("/", has_devices=True)
    hidden = [path for path in map(os.path.realpath, keep) if path.startswith(tuple(f"{one}/" for one in _SCRATCH))]
    handles = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in hidden]
    for path in _SCRATCH:
        if os.path.isdir(path):
            kernel.mount("tmpfs", path, "tmpfs", 0, _SCRATCH_OPTIONS)
    for path, handle in zip(hidden, handles, strict=True):
        os.makedirs(path, exist_ok=True)
        kernel.mount(f"/proc/self/fd/{handle}", path, None, _BIND | _RECURSIVE)
        os.close(handle)
    kernel.mount("proc", "/proc", "proc")


def _become_child() -> None:
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
