"""Time: every rule by which a test is too slow, may take longer, or is run again.

Nothing here runs a program. The rules turn the kernel's counts and the limits into a number or a
reason; `sandboxes` and `supervisor` apply them, and `microcoder judge --explain` prints the
reasons.

| seen                                     | decision                                            |
|------------------------------------------|-----------------------------------------------------|
| the machine runs Python slower than the  | limits are stretched by that, `measure_scale`       |
| reference                                |                                                     |
| neighbours slowed a program just now     | others are stopped that much later, `choose_factor` |
| CPU time beyond the limit, the program   | timed again alone, `is_close`; the faster run counts|
| ended by itself                          |                                                     |
| stopped at its CPU limit, and neighbours | run again with as much room as they may cost,       |
| cost more than was allowed               | `explains_expiry`                                   |
| wall time spent, but it waited for a     | goes on for as long as it waited, `extend`          |
| processor                                |                                                     |
| wall time spent, and it could have run   | time limit                                          |
| it waited for 100 times what it ran, and | goes on until its sleep alone is over the limit     |
| sleeps                                   |                                                     |
| it waited for 100 times what it ran, and | the machine is stuck: no verdict                    |
| hardly slept                             |                                                     |
| it took 100 times its wall limit         | the machine is stuck: no verdict                    |
| none of these, CPU time beyond the limit | time limit, `find_failure` in `verdicts`              |

A limit is never shortened: a stated limit is what a program may take at least. A machine up to 15 %
slower counts as the reference, so that noise changes no limit. One more than four times slower is
measured as four, and that is shown.

Neighbours, other load on the machine, slow a program too: they take caches, and half of a core with
two threads. That is measured when a program ran out of CPU time, by how long two fixed programs
take now and took at best. One is small; the other walks through memory, and is for programs of more
memory than a core's own cache. What a test takes alone is divided by that. Programs that walk
through memory are slowed by more than the fixed one shows (benchmarks/time_excuses.py has by how
much), so some of them, close to their limit, time out beside neighbours that do so too.

A test's wall limit holds for its time less the time in which it wanted a processor and was given
none. Programs must not be able to stay by making themselves wait: waiting counts at most 100 times
what they ran. It counts 3 times if a program ran for less than 0.1 ms at a stretch, since only a
program that gives the processor up by itself does that.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import Reading
from microcoder.judge.sandbox.protocol import Result

WALL_FACTOR_OF_TESTS = 2.0
"""Wall limit of a test, in CPU limits, as at Kattis; time that it waits for a processor is not
counted."""
_WALL_FACTOR = 3.0
"""Wall limit of any other run, in CPU limits."""
_WALL_EXTRA_SECONDS = 1.0
"""Added to every wall limit: starting and ending a process takes time, too."""
SPARE_MEMORY_MIB = 640
"""Address space beyond the limit on resident memory, for maps that are never touched.

An example is the thread stack of 512 MiB that deep recursion is usually run in.
"""

CHECKER_SECONDS = 10.0
"""CPU limit of a checker program; a judge's option `checker_seconds` replaces it."""
CHECKER_MIB = 1024
"""Memory limit of a checker program, whatever the problem's own is."""
MAX_SECONDS = 3600.0
"""Longest CPU limit of one run."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one test."""

    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    output_bytes: int


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


_SHARED_SECONDS = 0.5
"""CPU time of a process that tests share: an endless one among them costs at most this."""


def share_limits(limits: Limits) -> Limits:
    """Return the limits of a process that tests share: never more than those of one test."""
    cpu_seconds = min(limits.cpu_seconds, _SHARED_SECONDS)
    wall_seconds = limits.wall_seconds * cpu_seconds / limits.cpu_seconds
    return replace(limits, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)


PROGRAM = """
words, total = {}, 0
for number in range(40_000):
    key = str(number * 7919 % 1009)
    words[key] = words.get(key, 0) + 1
    total = (total * 31 + number) % 1_000_000_007
values = sorted((value * number % 257, key) for number, (key, value) in enumerate(words.items()))
print(total, len(values), values[0])
"""
"""Fixed program whose CPU time is measured.

It does what contest programs do: dicts, strings, integers, sorting.
"""

REFERENCE_CPU_SECONDS = 0.0205
"""CPU time of `PROGRAM` on a core of the reference machine, the fork included.

The machine is a cloud AMD EPYC with CPython 3.11.
"""

MEMORY_PROGRAM = """
size = 1 << 16
cells, place = list(range(size)), 0
for number in range(size):
    place = cells[(place * 5 + number * 7919) % size]
words = sorted(str(number * 7919 % 1_000_003) for number in cells)
print(place, words[0])
"""
"""The second fixed program: walks through a few MiB and sorts.

Neighbours slow it as they slow programs with large tables.
"""

LARGE_KIB = 4 << 10
"""Memory above which a program does not fit into a core's own cache."""

MAX_SCALE = 4.0
"""Largest factor on CPU limits that is measured."""
MAX_SLOWDOWN = 1.6
"""Largest slowdown attributed to neighbours; an endless program is run for that much longer."""
DEAD_BAND = 1.15
"""A test is stopped at this many times its CPU limit; one that ends between both is timed again.

A smaller slowdown is noise: at 1.1 a third of endless programs were run again on a quiet machine.
"""
_NUM_RECENT = 4
"""Measured slowdowns of which the largest counts."""
_MAX_SCALE_RUNS = 5
"""Most runs of `PROGRAM` to measure the machine's factor."""
_MAX_SLOWDOWN_RUNS = 3
"""Most runs of a fixed program to measure a slowdown."""


def measure_scale(measure: Callable[[], float]) -> float:
    """Return the factor on CPU limits: 1 to `MAX_SCALE`.

    Args:
        measure: runs the program once and returns its CPU seconds. Of up to five runs the fastest
            counts; the first one that is as fast as the reference ends the measurement.
    """
    fastest = math.inf
    for _ in range(_MAX_SCALE_RUNS):
        # The fastest, as neighbours only make a run slower.
        fastest = min(fastest, measure())
        if fastest <= DEAD_BAND * REFERENCE_CPU_SECONDS:
            return 1.0
    return min(round(fastest / REFERENCE_CPU_SECONDS, 2), MAX_SCALE)


class Calibration:
    """Best CPU times of the two fixed programs here, and recent slowdowns.

    A judge's workers share it.
    """

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
        """Largest of the last four measured slowdown factors; near 1 on a quiet machine."""
        with self._lock:
            return max(self._recent)

    def learn(self, program: str, seconds: float) -> None:
        """Note the CPU seconds of a run of one of the programs."""
        with self._lock:
            self._best[program] = min(seconds, self._best.get(program, seconds))

    def measure(
        self,
        program: str,
        run: Callable[[], float],
    ) -> float:
        """Return the slowdown, a program's CPU time now over its best: 1 to `MAX_SLOWDOWN`.

        Args:
            program: one of the two programs.
            run: runs it once and returns its CPU seconds. Of up to three runs the fastest counts,
                as neighbours that cost time for a moment only slow no test. The first run without
                delay ends the measurement.
        """
        slowdown = math.inf
        for _ in range(_MAX_SLOWDOWN_RUNS):
            seconds = run()
            self.learn(program, seconds)
            slowdown = min(slowdown, seconds / self.best[program])
            if slowdown < DEAD_BAND:
                break
        slowdown = min(slowdown, MAX_SLOWDOWN)
        # The other program's slowdown holds for large programs alone.
        if program == PROGRAM:
            with self._lock:
                self._recent.append(slowdown)
        return slowdown


_FACTOR_OF_SLOWDOWN = 1.05
"""A test is stopped at this many times a slowdown, since that varies."""


def choose_factor(slowdown: float) -> float:
    """Return at how many times its limit a test is stopped, by the recent slowdown.

    This changes hardly a verdict. It saves second runs: beside neighbours, an endless program costs
    a third less.
    """
    return max(DEAD_BAND, _FACTOR_OF_SLOWDOWN * slowdown)


def raise_limits(limits: Limits, factor: float) -> Limits:
    """Return limits with CPU time raised by a factor.

    A test is stopped at these; it is then judged by the original ones. Its wall limit leaves room
    for that already.
    """
    return replace(limits, cpu_seconds=factor * limits.cpu_seconds)


def is_close(result: Result, limits: Limits) -> bool:
    """Whether a test ended by itself beyond its CPU limit, maybe since the machine is busy."""
    return not result.expired and result.cpu_us / 1e6 > limits.cpu_seconds


def explains_expiry(
    slowdown: float,
    limits: Limits,
    cpu_seconds: float,
) -> bool:
    """Whether a test that was stopped may be within its limit on a quiet machine.

    If it was stopped later than the slowdown explains, it is beyond its limit there, too.
    """
    return slowdown * limits.cpu_seconds > cpu_seconds


_MOST_WAIT_PER_RUN = 100.0
"""Seconds of waiting for a processor that count, for each second that a test ran."""
_MOST_WAIT_PER_SHORT_RUN = 3.0
"""The same for a test whose mean stretch on a processor is shorter than
`_SHORT_STRETCH_SECONDS`."""
_SHORT_STRETCH_SECONDS = 1e-4
"""Mean time on a processor below which a test must have given it up by itself."""
SHORTEST_EXTENSION_SECONDS = 0.05
"""A test whose wall limit is spent goes on for no less: each extension costs a question."""
_IN_THE_QUEUE_SECONDS = 0.25
"""Extension for a test with a thread that runs or is queued now: its wait counts only once it is
over."""
_STARVED_SHARE = 0.5
"""Share of its wall limit: one that was idle for less, and waits now, was kept waiting by the
machine."""
_BLIND_FACTOR = 3.0
"""Multiple of its wall limit that a test may take if the kernel does not say how long it waited."""
_STUCK_FACTOR = 100.0
"""A test that takes this many times its wall limit ends as a fault of the machine."""


def extend(
    reading: Reading | None, *, limit_seconds: float, counted_seconds: float, real_seconds: float
) -> tuple[float, str]:
    """Return by how many seconds a test whose wall limit is spent may go on, and why; 0 to end it.

    Args:
        reading: the kernel's counts of its process; None if the kernel does not give them.
        limit_seconds: its wall limit.
        counted_seconds: its wall time so far, less what the watch itself could not follow.
        real_seconds: its wall time so far.

    Raises:
        EvaluatorFault: the machine is stuck, so nothing is known about the program.
    """
    if real_seconds > _STUCK_FACTOR * limit_seconds:
        raise EvaluatorFault(
            f"the machine is stuck: a test did not end within {real_seconds:.0f} s"
        )
    # Without counts nothing is known of its wait, and a fixed factor must do.
    if reading is None:
        more = max(0.0, _BLIND_FACTOR * limit_seconds - counted_seconds)
        times = f"{_BLIND_FACTOR:g} times its wall limit"
        return more, f"the kernel does not say how long it waited: {times}"
    # Who gives the processor up by itself could make its wait as long as it likes.
    is_short = reading.run_seconds < _SHORT_STRETCH_SECONDS * reading.turns
    per_run = _MOST_WAIT_PER_SHORT_RUN if is_short else _MOST_WAIT_PER_RUN
    most_waited = per_run * max(reading.cpu_seconds, reading.run_seconds)
    waited = min(reading.waited_seconds, most_waited)
    more = limit_seconds - (counted_seconds - waited)
    # Less would only make the fork server ask again at once.
    if more >= SHORTEST_EXTENSION_SECONDS:
        return more, f"it waited {waited:.2f} s for a processor"
    # With all of its wait credited: a program that has slept past its limit is too slow, however
    # busy the machine is.
    idle_seconds = counted_seconds - reading.waited_seconds
    is_starved = reading.waited_seconds > most_waited and not is_short
    if is_starved and idle_seconds < limit_seconds:
        if not reading.is_in_the_queue:
            more = max(SHORTEST_EXTENSION_SECONDS, limit_seconds - idle_seconds)
            return more, f"it sleeps, and waited {reading.waited_seconds:.2f} s for a processor"
        if idle_seconds < _STARVED_SHARE * limit_seconds:
            raise EvaluatorFault(
                f"the machine is stuck: a test got {reading.cpu_seconds:.2f} s of CPU time "
                f"in {real_seconds:.0f} s"
            )
    if reading.is_in_the_queue:
        return _IN_THE_QUEUE_SECONDS, "it runs or waits just now"
    return 0.0, f"it waited {waited:.2f} s for a processor"
