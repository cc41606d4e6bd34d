"""Time: every rule by which a test is too slow, may take longer, or is run again.

Nothing here runs a program. The rules turn the kernel's counts and the limits into a number or a reason; `sandboxes`
and `supervisor` apply them, and `microcoder judge --explain` prints the reasons.

| seen                                                            | decision                                       |
|-----------------------------------------------------------------|------------------------------------------------|
| the machine runs Python slower than the reference               | limits are stretched by that, `measure_scale`  |
| neighbours slow programs now                                    | stopped that much later, `give_room`           |
| CPU time beyond the limit, the program ended by itself          | timed again alone, `is_close`; the faster counts |
| stopped at its CPU limit, neighbours cost more than was allowed | run again with that room, `explains_expiry`    |
| wall time spent, but it waited for a processor                  | goes on for as long as it waited, `extend`     |
| wall time spent, and it could have run                          | time limit                                     |
| it waited for 100 times what it ran, and sleeps                 | goes on until its sleep alone is over the limit |
| it waited for 100 times what it ran, and hardly slept           | the machine is stuck: no verdict               |
| it took 100 times its wall limit                                | the machine is stuck: no verdict               |
| none of these, CPU time beyond the limit                        | time limit, `find_overrun`                     |

A limit is never shortened: a stated limit is what a program may take at least. A machine up to 15 % slower counts as
the reference, so that noise changes no limit; one more than four times slower is measured as four, and that is shown.

Neighbours, other load on the machine, slow a program too: they take caches, and half of a core with two threads. That
is measured when a program ran out of CPU time, by how long two fixed programs take now and took at best: a small one,
and for programs of more memory than a core's own cache one that walks through some.

A test's wall limit holds for its time less the time in which it wanted a processor and was given none. Programs must
not be able to stay by making themselves wait: waiting counts at most 100 times what they ran, and 3 times if turns were
shorter than 0.1 ms, since only a program that gives the processor up by itself has such short ones.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import Reading
from microcoder.judge.sandbox.protocol import CPU_EXPIRED, SLICE_SECONDS, WALL_EXPIRED, Result

WALL_FACTOR_OF_TESTS = 2.0
"""Wall limit of a test, in CPU limits, as at Kattis; time that it waits for a processor does not count."""
_WALL_FACTOR, _WALL_EXTRA_SECONDS = 3.0, 1.0
SPARE_MEMORY_MIB = 640
"""Address space beyond the limit on resident memory: room for maps that are never touched, such as the
512 MiB thread stack that deep recursion is usually run in."""

CHECKER_SECONDS, CHECKER_MIB = 10.0, 1024
"""Limits of a checker program, whatever the problem's own; a judge's option `checker_seconds` replaces the first."""
MAX_SECONDS = 3600.0
"""Longest CPU limit of one run."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one test."""

    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    output_bytes: int
    small_cpu_seconds: float = math.inf
    """CPU limit in place of `cpu_seconds` for a test that holds at most LARGE_MIB when it comes near."""


def limits_for(
    cpu_seconds: float,
    memory_mib: int,
    output_mib: int,
    *,
    spare_memory_mib: int = SPARE_MEMORY_MIB,
    wall_factor: float = _WALL_FACTOR,
) -> Limits:
    """Return the limits of a test: CPU time decides, wall time is only a backstop."""
    return Limits(
        cpu_seconds=cpu_seconds,
        wall_seconds=wall_factor * cpu_seconds + _WALL_EXTRA_SECONDS,
        memory_bytes=(memory_mib + spare_memory_mib) << 20,
        output_bytes=output_mib << 20,
    )


PROGRAM = """
words, total = {}, 0
for number in range(40_000):
    key = str(number * 7919 % 1009)
    words[key] = words.get(key, 0) + 1
    total = (total * 31 + number) % 1_000_000_007
values = sorted((value * number % 257, key) for number, (key, value) in enumerate(words.items()))
print(total, len(values), values[0])
"""
"""Fixed program whose CPU time is measured; it does what contest programs do: dicts, strings, integers, sorting."""

REFERENCE_CPU_SECONDS = 0.0205
"""CPU time of `PROGRAM` on a core of the reference machine (a cloud AMD EPYC, CPython 3.11), the fork included."""

MEMORY_PROGRAM = """
size = 1 << 16
cells, place = list(range(size)), 0
for number in range(size):
    place = cells[(place * 5 + number * 7919) % size]
words = sorted(str(number * 7919 % 1_000_003) for number in cells)
print(place, words[0])
"""
"""The second fixed program: walks through a few MiB and sorts; neighbours slow it as they slow large tables."""

LARGE_KIB = 4 << 10
"""Memory above which a program does not fit into a core's own cache."""

MAX_SCALE = 4.0
MAX_SLOWDOWN = 1.6
"""Largest slowdown that is attributed to neighbours; an endless program is run for that much longer."""
_DEAD_BAND = 1.15
"""Slowdown that is taken for noise: at 1.1 a third of endless programs were run again on a quiet machine. So a test is
stopped at this many times its CPU limit at the earliest; one that ends in between is run again alone."""
_NUM_RECENT = 4
_MAX_RUNS = 5


def measure_scale(measure: Callable[[], float]) -> float:
    """Return the factor on CPU limits: 1 to `MAX_SCALE`.

    Args:
        measure: runs the program once and returns its CPU seconds. Of up to five runs the fastest counts; the first
            one that is as fast as the reference ends the measurement.
    """
    fastest = float("inf")
    for _ in range(_MAX_RUNS):
        fastest = min(fastest, measure())
        if fastest <= _DEAD_BAND * REFERENCE_CPU_SECONDS:
            return 1.0
    return min(round(fastest / REFERENCE_CPU_SECONDS, 2), MAX_SCALE)


class Pace:
    """Best CPU times of the two fixed programs here, and recent slowdowns; shared by the workers of a judge."""

    def __init__(self, best: Mapping[str, float] | None = None) -> None:
        """Start from the best CPU seconds of earlier runs, by program, if there are any."""
        self._lock = threading.Lock()
        self._best: dict[str, float] = dict(best or {})
        self._recent: deque[float] = deque([1.0], maxlen=_NUM_RECENT)

    @property
    def best(self) -> dict[str, float]:
        """Best CPU seconds so far, by program."""
        with self._lock:
            return dict(self._best)

    @property
    def slowdown(self) -> float:
        """Largest of the last four measured slowdown factors; 1 on a quiet machine."""
        with self._lock:
            return max(self._recent)

    def learn(self, program: str, seconds: float) -> None:
        """Note the CPU seconds of a run of one of the programs."""
        with self._lock:
            self._best[program] = min(seconds, self._best.get(program, seconds))

    def measure(self, program: str, run: Callable[[], float]) -> float:
        """Return the slowdown, a program's CPU time now over its best: 1, or 1.15 to `MAX_SLOWDOWN`.

        Args:
            program: one of the two programs.
            run: runs it once and returns its CPU seconds. Of up to three runs the fastest counts, as what neighbours
                cost for a moment only slows no test; the first one without delay ends the measurement.
        """
        slowdown = math.inf
        for _ in range(3):
            seconds = run()
            self.learn(program, seconds)
            slowdown = min(slowdown, seconds / self.best[program])
            if slowdown < _DEAD_BAND:
                break
        slowdown = 1.0 if slowdown < _DEAD_BAND else min(slowdown, MAX_SLOWDOWN)
        if program == PROGRAM:
            with self._lock:
                self._recent.append(slowdown)
        return slowdown


_LEAST_ROOM_IN_MEMORY = 1.3
"""`_DEAD_BAND` of a test that holds much memory: there neighbours slow it more than they slow the fixed programs."""
_ROOM_OF_SLOWDOWN = 1.05
"""If a slowdown was measured, a test is stopped at this many times the slowdown, since that varies."""
LARGE_MIB = 64
"""A test that holds more is slowed through memory that it shares with its neighbours, however fast its core is."""


def give_room(limits: Limits, slowdown: float) -> Limits:
    """Return limits raised by a slowdown factor, at which a test is stopped; it is then judged by the original ones."""
    room = max(_DEAD_BAND, _ROOM_OF_SLOWDOWN * slowdown)
    return replace(
        limits,
        cpu_seconds=max(room, _LEAST_ROOM_IN_MEMORY) * limits.cpu_seconds,
        wall_seconds=slowdown * limits.wall_seconds,
        small_cpu_seconds=room * limits.cpu_seconds,
    )


def limit_now(limits: Limits, cpu_seconds: float, memory_mib: float) -> float:
    """Return a running test's new CPU limit in seconds, by its CPU time and memory so far; 0 to leave it as it is."""
    is_near = memory_mib <= LARGE_MIB and cpu_seconds + SLICE_SECONDS >= limits.small_cpu_seconds
    return limits.small_cpu_seconds if is_near else 0.0


def is_close(result: Result, limits: Limits) -> bool:
    """Whether a test ended by itself a little beyond its CPU limit, maybe because of a busy machine."""
    return not result.expired and result.cpu_us / 1e6 > limits.cpu_seconds


def explains_expiry(slowdown: float, limits: Limits, cpu_seconds: float) -> bool:
    """Whether a test that was stopped may be within its limit on a quiet machine.

    If it was stopped later than the slowdown explains, it is beyond its limit there, too.
    """
    return slowdown * limits.cpu_seconds > cpu_seconds


def find_overrun(result: Result, limits: Limits, *, is_signalled: bool) -> str:
    """Return a message with the CPU or wall time that exceeded a test's limit; empty if it is within its limits."""
    cpu_seconds = result.cpu_us / 1e6
    if cpu_seconds > limits.cpu_seconds or result.expired == CPU_EXPIRED or is_signalled:
        return f"cpu {cpu_seconds:.2f} s of {limits.cpu_seconds:g} s"
    if result.expired != WALL_EXPIRED:
        return ""
    return (
        f"wall {result.wall_us / 1e6:.2f} s of {limits.wall_seconds:g} s, cpu {cpu_seconds:.2f} s"
    )


_MOST_WAIT_PER_RUN, _MOST_WAIT_PER_SHORT_RUN = 100.0, 3.0
_SHORT_TURN_SECONDS = 1e-4
SHORTEST_EXTENSION_SECONDS = 0.05
_IN_THE_QUEUE_SECONDS = 0.25
"""Extension for a test with a thread that runs or is queued now: its wait is only counted once that is over."""
_STARVED_SHARE = 0.5
"""Share of its wall limit: a test that was idle for less, and waits just now, was kept from running by the machine."""
_BLIND_FACTOR = 3.0
"""Multiple of its wall limit that a test may take if the kernel does not say how long it waited."""
_STUCK_FACTOR = 100.0
"""A test that takes this many times its wall limit ends as a fault of the machine."""


def extend(
    reading: Reading | None, *, limit_seconds: float, counted_seconds: float, real_seconds: float
) -> tuple[float, str]:
    """Return by how many seconds a test whose wall limit is spent may go on, 0 to end it, and why; or EvaluatorFault.

    Args:
        reading: the kernel's counts of its process; None if the kernel does not give them.
        limit_seconds: its wall limit.
        counted_seconds: its wall time so far, less what the watch itself could not follow.
        real_seconds: its wall time so far.
    """
    if real_seconds > _STUCK_FACTOR * limit_seconds:
        raise EvaluatorFault(
            f"the machine is stuck: a test did not end within {real_seconds:.0f} s"
        )
    if reading is None:
        more = max(0.0, _BLIND_FACTOR * limit_seconds - counted_seconds)
        return (
            more,
            f"the kernel does not say how long it waited: {_BLIND_FACTOR:g} times its wall limit",
        )
    is_short = reading.run_seconds < _SHORT_TURN_SECONDS * reading.turns
    most = _MOST_WAIT_PER_SHORT_RUN if is_short else _MOST_WAIT_PER_RUN
    most *= max(reading.cpu_seconds, reading.run_seconds)
    waited = min(reading.waited_seconds, most)
    more = limit_seconds - (counted_seconds - waited)
    why = f"it waited {waited:.2f} s for a processor"
    if more >= SHORTEST_EXTENSION_SECONDS:
        return more, why
    # With all of its wait credited: a program that has slept past its limit is too slow, however busy the machine is.
    idle_seconds = counted_seconds - reading.waited_seconds
    if reading.waited_seconds > most and not is_short and idle_seconds < limit_seconds:
        if not reading.is_in_the_queue:
            more = max(SHORTEST_EXTENSION_SECONDS, limit_seconds - idle_seconds)
            return more, f"it sleeps, and waited {reading.waited_seconds:.2f} s for a processor"
        if idle_seconds < _STARVED_SHARE * limit_seconds:
            raise EvaluatorFault(
                f"the machine is stuck: a test got {reading.cpu_seconds:.2f} s of CPU time in {real_seconds:.0f} s"
            )
    if reading.is_in_the_queue:
        return _IN_THE_QUEUE_SECONDS, "it runs or waits just now"
    return 0.0, why
