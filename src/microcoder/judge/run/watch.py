"""Answers to the fork server's questions while a test runs, by the kernel's counts of its process.

What the kernel counts for each thread (run time, time in the run queue, turns) can be read by anybody in
`/proc/PID/task/*/schedstat`. A thread's waiting counts only beyond what its own siblings ran meanwhile; threads that
have ended count with their run time alone. What follows from that is decided in `timing`.
"""

import contextlib
import os
import time
from collections.abc import Iterator

from microcoder.judge.run import timing
from microcoder.judge.run.timing import Limits, Reading, WorkerRecord
from microcoder.judge.run.turns import Turn
from microcoder.judge.sandbox import protocol
from microcoder.judge.sandbox.protocol import Result, unpack_seconds

QUESTIONS = (protocol.STILL, protocol.SLICE)


class Attendance:
    """Decides what one running test is allowed: answers the fork server's questions from its start to its end."""

    def __init__(self, limits: Limits, turn: Turn, record: WorkerRecord) -> None:
        """Start the clock of a test; decisions about its time are written into the record."""
        self._limits = limits
        self._turn = turn
        self._record = record
        self._started = time.monotonic()
        self._stood_seconds = 0.0
        self._cpu_seconds = 0.0

    def reply(self, question: bytes, descriptor: int) -> float:
        """Return the answer, in seconds, to a question about the process of a pidfd; closes the pidfd."""
        asked = time.monotonic()
        pid = pid_of(descriptor)
        os.close(descriptor)
        kind, seconds = question[:1], unpack_seconds(question)
        if kind == protocol.STILL:
            return self._extend(pid, seconds, asked - self._started - self._stood_seconds)
        memory_mib = memory_mib_of(pid)
        self._turn.give_way(memory_mib)
        self._stood_seconds += time.monotonic() - asked
        return timing.limit_now(self._limits, seconds, memory_mib)

    def conclude(self, result: Result) -> Result:
        """Return the test's result, as a CPU time-out if it hit the wall limit but had used up its CPU time."""
        if result.expired == protocol.WALL_EXPIRED and self._cpu_seconds > self._limits.cpu_seconds:
            # A compiler's own children count: the watch sees the CPU time of one process.
            return result._replace(expired=protocol.CPU_EXPIRED, cpu_us=int(self._cpu_seconds * 1e6))
        return result

    def _extend(self, pid: int, counted: float, real: float) -> float:
        """Return how much longer a test may take whose wall time is spent; 0 to end it."""
        if pid < 0:  # It has ended.
            return timing.SHORTEST_EXTENSION_SECONDS
        reading = read_process(pid) if pid else None
        limit = self._limits.wall_seconds
        more, why = timing.extend(reading, limit_seconds=limit, counted_seconds=counted, real_seconds=real)
        if reading is not None:
            self._cpu_seconds = reading.cpu_seconds
            if self._cpu_seconds > self._limits.cpu_seconds:
                return 0.0
        if more > 0:
            self._record.extended += reading is not None
            self._record.blind += reading is None
            self._record.reasons.append(f"wall time was spent after {counted:.2f} s, and it went on: {why}")
        return more


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
    """Return the process of a pidfd, as seen from here: negative if it has ended, 0 if unknown."""
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
    """Yield for each thread: the seconds it ran, those in the queue, and its turns."""
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
