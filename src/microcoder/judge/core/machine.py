"""The machine: its processors, file locks, full disks, what processes use, and whether it is Linux.

Also how to install our extras.

What the kernel counts for each thread (run time, time in the run queue, turns on a processor) can
be read by anybody in `/proc/PID/task/*/schedstat`. A thread's waiting counts only as far as it is
longer than its own siblings ran. Threads that have ended count with their run time alone.
"""

import contextlib
import errno
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

from microcoder.judge.core.errors import EvaluatorFault

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


_PLATFORMS = {"darwin": "macOS", "win32": "Windows"}
"""Python's name of a platform -> what people call it."""


def require_linux() -> None:
    """Raise EvaluatorFault if this is not Linux, which the sandbox needs."""
    if sys.platform != "linux":
        name = _PLATFORMS.get(sys.platform, sys.platform)
        raise EvaluatorFault(
            f"the sandbox for programs needs Linux, and this is {name}; use a Linux container or "
            "WSL 2 here, or send programs to a Linux machine that runs `microcoder serve` "
            "(microcoder.judge.fleet.http.JudgeClient)"
        )


_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors for a full disk, a full quota, and a file beyond the limit of sizes."""
_SAYS_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|database or disk is full|os error (?:28|122)\b"
)
"""Messages for a full disk from libraries whose exceptions have no errno."""


def is_disk_full(error: BaseException) -> bool:
    """Return whether an exception says that a file system or a quota is full."""
    # An OSError of a library may lack a number: then its message has to tell.
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _DISK_IS_FULL
    return _SAYS_FULL.search(str(error)) is not None


_BFLOAT16_SETS = frozenset(("avx512_bf16", "amx_bf16", "bf16"))
"""Instruction sets for bfloat16, as /proc/cpuinfo names them."""


def count_processors() -> int:
    """Return how many processors this process may use."""
    usable: Callable[[int], Any] | None = getattr(os, "sched_getaffinity", None)
    # A container or `taskset` may allow fewer than the machine has.
    if usable is not None:
        return len(usable(0))
    return os.cpu_count() or 1


def has_bfloat16() -> bool:
    """Return whether this processor multiplies in bfloat16.

    On others, float32 is many times as fast.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:  # no Linux
        return False
    return find_bfloat16(text)


def find_bfloat16(cpuinfo: str) -> bool:
    """Return whether the text of /proc/cpuinfo lists instructions for bfloat16, of x86 or ARM."""
    listed = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    if listed is None:
        return False
    return not _BFLOAT16_SETS.isdisjoint(listed[1].split())


def end_with_parent() -> None:
    """Exit this worker process once its parent ends, killed or not: no worker is orphaned.

    A thread waits for that.
    """
    from multiprocessing import parent_process

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            # `sys.exit` would end this thread alone.
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def lock_file(file: IO[Any] | int, *, waits: bool = False) -> None:
    """Lock a file until it is closed.

    If it is locked already, wait if `waits`.

    Raises:
        BlockingIOError: it is locked already, and `waits` is False.
    """
    if fcntl is None:
        require_linux()
        return
    flags = fcntl.LOCK_EX
    if not waits:
        flags |= fcntl.LOCK_NB
    # Not `lockf`, whose lock ends as soon as the process closes any descriptor of the file.
    fcntl.flock(file, flags)


def how_to_install(extras: str) -> str:
    """Return the pip command that adds extras, such as `train,verl`, from this package's source."""
    # No index has the package.
    return f"pip install '.[{extras}]' in a checkout of MicroCoder"


class Reading(NamedTuple):
    """CPU use of a process and its children so far, as the kernel counts it."""

    cpu_seconds: float
    """CPU time of all threads and children, ended ones too."""
    run_seconds: float
    """CPU time of its living threads."""
    waited_seconds: float
    """Time in which its living threads waited for a processor that another process had."""
    turns: int
    """Times that one of its living threads was given a processor."""
    is_in_the_queue: bool
    """Whether one of its threads runs, or waits for a processor, now."""


class _Thread(NamedTuple):
    """CPU use of a thread, as the kernel counts it."""

    run_seconds: float
    queue_seconds: float
    """Time in the run queue."""
    turns: int
    """Times that it was given a processor."""


def read_process(pid: int) -> Reading | None:
    """Return the CPU use of a process and its children so far.

    None if the kernel does not report it.
    """
    cpu_seconds = 0.0
    run_seconds = 0.0
    waited_seconds = 0.0
    turns = 0
    is_in_the_queue = False
    for number in _family(pid):
        try:
            state, seconds = _read_stat(number)
            threads = list(_read_threads(number))
        except (OSError, ValueError, IndexError):
            # Without the process itself the sum would be that of its children, and look whole.
            if number == pid:
                return None
            continue  # A child has ended meanwhile.
        own_run_seconds = sum(thread.run_seconds for thread in threads)
        if seconds > 1 and not own_run_seconds and state != "Z":
            return None  # This kernel does not count for threads.
        cpu_seconds += seconds
        run_seconds += own_run_seconds
        waited_seconds += sum(_waited_for_others(thread, own_run_seconds) for thread in threads)
        turns += sum(thread.turns for thread in threads)
        is_in_the_queue = is_in_the_queue or "R" in _read_states(number)
    return Reading(cpu_seconds, run_seconds, waited_seconds, turns, is_in_the_queue)


def _waited_for_others(thread: _Thread, run_seconds: float) -> float:
    """Return how long a thread waited for processors, apart from the time that its siblings ran.

    Args:
        thread: the thread.
        run_seconds: what it and its siblings ran.
    """
    siblings_ran = run_seconds - thread.run_seconds
    # Siblings may also have run while it slept, which is no waiting.
    return max(0.0, thread.queue_seconds - siblings_ran)


def memory_mib_of(pid: int) -> float:
    """Return the MiB of memory that a process has resident; infinite if that is not known."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            num_pages = int(file.read().split()[1])
            return num_pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    except (OSError, IndexError):
        return float("inf")


def pid_of(descriptor: int) -> int:
    """Return the process ID behind a pidfd, in our own PID namespace.

    It is negative if the process has ended, 0 if unknown.
    """
    with contextlib.suppress(OSError), open(f"/proc/self/fdinfo/{descriptor}") as file:
        for line in file:
            if line.startswith("Pid:"):
                return int(line.split()[1])
    return 0


def _family(pid: int) -> Iterator[int]:
    """Yield a process and all its descendants."""
    yield pid
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                for child in file.read().split():
                    yield from _family(int(child))
    except OSError:
        return


def _read_stat(pid: int, thread: str = "") -> tuple[str, float]:
    """Return a process's state and its CPU seconds, those of ended children included."""
    path = f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat"
    with open(path, "rb") as file:
        # Behind the name in brackets, which may hold anything.
        fields = file.read().rpartition(b")")[2].split()
    # utime, stime, cutime and cstime of proc(5), counted from the state.
    ticks = sum(map(int, fields[11:15]))
    return fields[0].decode(), ticks / os.sysconf("SC_CLK_TCK")


def _read_threads(pid: int) -> Iterator[_Thread]:
    """Yield the CPU use of each thread of a process."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                run_ns, queue_ns, turns = map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            # A thread may end meanwhile; one that lives on a kernel without the file is an error.
            if os.path.exists(f"/proc/{pid}/task/{thread}"):
                raise
            continue
        yield _Thread(run_ns / 1e9, queue_ns / 1e9, turns)


def _read_states(pid: int) -> list[str]:
    """Return the states of a process's threads; those that end meanwhile have none."""
    states: list[str] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, IndexError):
                states.append(_read_stat(pid, thread)[0])
    return states
