"""The machine: whether it is Linux, processors, file locks, full disks, orphans; and how to install our extras.

What the kernel counts for each thread (run time, time in the run queue, turns) can be read by anybody in
`/proc/PID/task/*/schedstat`. A thread's waiting counts only beyond what its own siblings ran meanwhile; threads that
have ended count with their run time alone.
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


def require_linux() -> None:
    """Raise EvaluatorFault if this is not Linux, which the sandbox needs."""
    if sys.platform != "linux":
        name = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        raise EvaluatorFault(
            f"the sandbox for programs needs Linux, and this is {name}; use a Linux container or WSL 2 here, or send "
            "programs to a Linux machine that runs `microcoder serve` (microcoder.judge.fleet.http.JudgeClient)"
        )


_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SAYS_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|database or disk is full|os error (?:28|122)\b"
)
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


def has_bfloat16() -> bool:
    """Return whether this processor multiplies in bfloat16 itself: where it does not, float32 is many times as fast."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:  # no Linux
        return False
    return find_bfloat16(text)


def find_bfloat16(cpuinfo: str) -> bool:
    """Return whether the text of /proc/cpuinfo lists an instruction set for bfloat16, of x86 or ARM."""
    listed = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    if listed is None:
        return False
    return bool({"avx512_bf16", "amx_bf16", "bf16"} & set(listed[1].split()))


def end_with_parent() -> None:
    """Exit this worker process once its parent ends, killed or not (a thread waits for that): no worker is orphaned."""
    from multiprocessing import parent_process

    def wait() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def lock_file(file: IO[Any] | int, *, waits: bool = False) -> None:
    """Lock a file until it is closed; if it is locked already, wait if `waits`, else raise BlockingIOError."""
    if fcntl is None:
        require_linux()
    else:
        fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)


def how_to_install(extras: str) -> str:
    """Return the pip command that adds extras, such as `train,verl`, from this package's source: no index has it."""
    return f"pip install '.[{extras}]' in a checkout of MicroCoder"


class Reading(NamedTuple):
    """CPU use of a process and its children so far, as the kernel counts it."""

    cpu_seconds: float
    """CPU time of all threads and children, ended ones too."""
    run_seconds: float
    """CPU time of its living threads."""
    waited_seconds: float
    """Time in which its living threads were ready to run, and threads of other processes had the processor."""
    turns: int
    """Times that one of its living threads was given a processor."""
    is_in_the_queue: bool
    """Whether one of its threads runs, or waits for a processor, now."""


def read_process(pid: int) -> Reading | None:
    """Return the CPU use of a process and its children so far; None if the kernel does not report it."""
    cpu = wait = run = 0.0
    turns, is_in_the_queue = 0, False
    for number in _family(pid):
        try:
            state, seconds = _read_stat(number)
            threads = list(_read_threads(number))
        except (OSError, ValueError, IndexError):
            if number == pid:
                return None
            continue
        of_threads = sum(ran for ran, _, _ in threads)
        if seconds > 1 and not of_threads and state != "Z":
            return None
        cpu, run = cpu + seconds, run + of_threads
        wait += sum(max(0.0, waited - (of_threads - ran)) for ran, waited, _ in threads)
        turns += sum(num for _, _, num in threads)
        is_in_the_queue = is_in_the_queue or "R" in _read_states(number)
    return Reading(cpu, run, wait, turns, is_in_the_queue)


def memory_mib_of(pid: int) -> float:
    """Return a process's resident memory; infinite if that is not known."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    except (OSError, IndexError):
        return float("inf")


def pid_of(descriptor: int) -> int:
    """Return the process ID behind a pidfd, in our own PID namespace: negative if it has ended, 0 if unknown."""
    try:
        with open(f"/proc/self/fdinfo/{descriptor}") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("Pid:")), 0)
    except OSError:
        return 0


def _family(pid: int) -> Iterator[int]:
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
    with open(f"/proc/{pid}/task/{thread}/stat" if thread else f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return fields[0].decode(), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _read_threads(pid: int) -> Iterator[tuple[float, float, int]]:
    """Yield for each thread: seconds run, seconds in the run queue, and how often it was given a processor."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                ran, waited, turns = map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            if os.path.exists(f"/proc/{pid}/task/{thread}"):
                raise
            continue
        yield ran / 1e9, waited / 1e9, turns


def _read_states(pid: int) -> list[str]:
    """Return the states of a process's threads; those that end meanwhile have none."""
    states: list[str] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, IndexError):
                states.append(_read_stat(pid, thread)[0])
    return states
