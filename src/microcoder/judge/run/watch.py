"""Answers to the fork server's questions while a test runs.

How long a test waited for a processor, as the kernel counts it: a busy machine is no idleness of the program.

A test's wall limit holds for its time less the time in which it wanted a processor and was given none. What the kernel
counts for each thread (run time, time in the run queue, turns) can be read by anybody in `/proc/PID/task/*/schedstat`.
Programs must not be able to stay by making themselves wait:

- a thread's waiting counts only beyond what its own siblings ran meanwhile;
- waiting counts at most 100 times what was run, and 3 times if turns were shorter than 0.1 ms: only a program that
  gives the processor up by itself has such short ones.

Threads that have ended count with their run time alone.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.run.turns import WorkerTurn
from microcoder.judge.sandbox.protocol import (
    AWAKE,
    CPU_EXPIRED,
    IDLE,
    SLICE,
    SLICE_SECONDS,
    STILL,
    WALL_EXPIRED,
    Request,
    Result,
    unpack_seconds,
)

QUESTIONS = (STILL, IDLE, AWAKE, SLICE)

LARGE_MIB = 64
"""A test that holds more lives in memory that it shares with its neighbours, however fast its core is."""

FindLowerLimit = Callable[[], float | None]
"""Returns a limit on CPU seconds; None if the given one holds."""


class Attendance:
    """One test, from its start to its end."""

    def __init__(
        self,
        request: Request,
        turn: WorkerTurn,
        waits: TimeLimitCounts,
        find_lower_limit: FindLowerLimit,
        *,
        small_cpu_seconds: float = math.inf,
    ) -> None:
        """Begin it.

        Args:
            request: what was asked for.
            turn: the worker's place, given back while the test idles.
            waits: counts the tests that reached their wall limit.
            find_lower_limit: asked after each slice for a limit that holds by now.
            small_cpu_seconds: limit on the CPU time of a test that holds little memory when it comes near this.
        """
        self._small_cpu_seconds = small_cpu_seconds
        self._request = request
        self._turn = turn
        self._waits = waits
        self._find_lower_limit = find_lower_limit
        self._started = time.monotonic()
        self._stood_seconds = 0.0
        self._cpu_seconds = 0.0
        self._lowered: float | None = None

    def reply(self, question: bytes, descriptor: int) -> float:
        """Return the answer to a question about the process of a pidfd; closes the pidfd.

        Raises:
            EvaluatorFault: the machine is stuck.
        """
        asked = time.monotonic()
        pid = pid_of(descriptor)
        os.close(descriptor)
        kind, seconds = question[:1], unpack_seconds(question)
        if kind == STILL:
            return self._extend(pid, seconds, asked - self._started - self._stood_seconds)
        if kind == IDLE:
            rests = is_idle(pid)
            if rests:
                self._turn.rest()
            return float(rests)
        self._turn.go_on()
        limits = []
        memory_mib = memory_mib_of(pid)
        if kind == SLICE:
            self._turn.give_way(memory_mib)
            self._lowered = self._find_lower_limit()
        if self._lowered is not None:
            limits.append(self._lowered)
        if memory_mib <= LARGE_MIB and seconds + SLICE_SECONDS >= self._small_cpu_seconds:
            limits.append(self._small_cpu_seconds)
        self._stood_seconds += time.monotonic() - asked
        return min(limits, default=0.0)

    def conclude(self, result: Result) -> tuple[Result, float | None]:
        """Return how the test ended, and the lower CPU limit that ended it."""
        self._turn.note_seconds(result.cpu_us / 1e6)
        if result.expired == WALL_EXPIRED and self._cpu_seconds > self._request.cpu_seconds:
            # A compiler's own children count: the watch sees the CPU time of one process.
            return result._replace(expired=CPU_EXPIRED, cpu_us=int(self._cpu_seconds * 1e6)), None
        is_lowered = self._lowered is not None and self._lowered < min(
            self._request.cpu_seconds, self._small_cpu_seconds
        )
        return result, self._lowered if is_lowered and result.expired == CPU_EXPIRED else None

    def _extend(self, pid: int, counted: float, real: float) -> float:
        """Return how much longer a test may take whose wall time is spent."""
        more, self._cpu_seconds = extend(
            pid,
            limit_seconds=self._request.wall_seconds,
            counted_seconds=counted,
            real_seconds=real,
            counts=self._waits,
        )
        return 0.0 if self._cpu_seconds > self._request.cpu_seconds else more


_MOST_WAIT_PER_RUN, _MOST_WAIT_PER_SHORT_RUN = 100.0, 3.0
_SHORT_TURN_SECONDS = 1e-4
_SHORTEST_EXTENSION_SECONDS = 0.05
_IN_THE_QUEUE_SECONDS = 0.25
"""How long to wait for a thread that is in the queue, or at work, now: its waiting is counted once it has ended."""
_BLIND_FACTOR = 3.0
"""How much longer a test may take if the kernel does not say how long it waited."""
_STUCK_FACTOR = 100.0
"""A test that takes this many times its wall limit ends as a fault of the machine."""
_HELD_UP_STATES = frozenset("RTtD")


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU use of a process and its children so far."""

    cpu_seconds: float
    """Of all threads and children, ended ones too."""
    wait_seconds: float
    """Time in which it wanted a processor and others had it."""
    is_in_the_queue: bool
    """A thread runs or waits now."""
    is_starved: bool
    """It waited for longer than is believed of any program that is not stuck."""


@dataclass(slots=True)
class TimeLimitCounts:
    """Counts of tests that reached their wall limit, by outcome."""

    extended: int = 0
    """They had waited for a processor, and were given that time."""
    blind: int = 0
    """The kernel did not say; they were given three times as long."""


def extend(
    pid: int, *, limit_seconds: float, counted_seconds: float, real_seconds: float, counts: TimeLimitCounts
) -> tuple[float, float]:
    """Return how much longer a test may take whose wall limit is spent, 0 to end it; and the CPU time seen.

    Args:
        pid: its process; 0 if unknown, negative if it has ended.
        limit_seconds: its wall limit.
        counted_seconds: its wall time so far, less what the watch itself could not follow.
        real_seconds: its wall time so far.
        counts: where to note what was done.

    Raises:
        EvaluatorFault: the machine let it wait far too long.
    """
    if pid < 0:
        return _SHORTEST_EXTENSION_SECONDS, 0.0
    if real_seconds > _STUCK_FACTOR * limit_seconds:
        raise EvaluatorFault(f"the machine is stuck: a test did not end within {real_seconds:.0f} s")
    reading = read_process(pid) if pid else None
    if reading is None:
        more = _BLIND_FACTOR * limit_seconds - counted_seconds
        counts.blind += more > 0
        return max(0.0, more), 0.0
    more = limit_seconds - (counted_seconds - reading.wait_seconds)
    if more < _SHORTEST_EXTENSION_SECONDS:
        if reading.is_starved:
            raise EvaluatorFault(
                f"the machine is stuck: a test ran for {reading.cpu_seconds:.2f} s in {real_seconds:.0f} s"
            )
        more = _IN_THE_QUEUE_SECONDS if reading.is_in_the_queue else 0.0
    counts.extended += more > 0
    return more, reading.cpu_seconds


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
        is_in_the_queue = is_in_the_queue or _is_any_in_the_queue(number)
    is_short = run < _SHORT_TURN_SECONDS * turns
    most = (_MOST_WAIT_PER_SHORT_RUN if is_short else _MOST_WAIT_PER_RUN) * max(cpu, run)
    return Reading(cpu, min(wait, most), is_in_the_queue, is_starved=wait > most and not is_short)


def is_idle(pid: int) -> bool:
    """Whether no thread of a process runs, or waits for a processor or a disk; False if that cannot be told."""
    try:
        threads = os.listdir(f"/proc/{pid}/task") if pid > 0 else []
        return bool(threads) and not any(_read_stat(pid, thread)[0] in "RD" for thread in threads)
    except (OSError, IndexError):
        return False


def memory_mib_of(pid: int) -> float:
    """Return a process's resident memory; infinite if that cannot be told."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    except (OSError, IndexError):
        return float("inf")


def is_held_up(pid: int) -> bool:
    """Whether a process or a child of it waits for a processor or a disk, or was stopped: it could not answer."""
    for number in _family(pid):
        try:
            if _read_stat(number)[0] in _HELD_UP_STATES:
                return True
        except (OSError, ValueError, IndexError):
            continue
    return False


def pid_of(descriptor: int) -> int:
    """Return the process of a pidfd, as seen from here: negative if it has ended, 0 if unknown."""
    try:
        with open(f"/proc/self/fdinfo/{descriptor}") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("Pid:")), 0)
    except OSError:
        return 0


def _family(pid: int) -> Iterator[int]:
    """A process and its descendants."""
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


def _is_any_in_the_queue(pid: int) -> bool:
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            if _read_stat(pid, thread)[0] == "R":
                return True
        except (OSError, IndexError):
            continue
    return False
