"""How much slower than the reference machine this one runs Python: CPU limits are stretched by that.

A limit is never shortened: a stated limit is what a program may take at least. A machine up to 15 % slower counts as
the reference, so that noise changes no limit; one more than four times slower is measured as four, and that is shown.

Neighbours slow a program too: they take the caches, and half of a core that runs two threads. That is measured when a
program ran out of CPU time, by how long two fixed programs take now and took at best: a small one, and for programs of
more memory than a core's own cache one that walks through some.
"""

from __future__ import annotations

import statistics
import threading
from collections import deque
from collections.abc import Callable, Mapping

PROGRAM = """
words, total = {}, 0
for number in range(40_000):
    key = str(number * 7919 % 1009)
    words[key] = words.get(key, 0) + 1
    total = (total * 31 + number) % 1_000_000_007
values = sorted((value * number % 257, key) for number, (key, value) in enumerate(words.items()))
print(total, len(values), values[0])
"""
"""Dicts, strings, integers, sorting: what contest programs do."""

REFERENCE_CPU_SECONDS = 0.0205
"""What the program takes on a core of the reference machine (a cloud AMD EPYC, CPython 3.11), fork and all."""

MEMORY_PROGRAM = """
size = 1 << 16
cells, place = list(range(size)), 0
for number in range(size):
    place = cells[(place * 5 + number * 7919) % size]
words = sorted(str(number * 7919 % 1_000_003) for number in cells)
print(place, words[0])
"""
"""A walk through a few MiB, and strings to sort: slowed by neighbours as programs with large tables are."""

LARGE_KIB = 4 << 10
"""Programs with more memory than that live beyond a core's own cache."""

MAX_SCALE = 4.0
MAX_SLOWDOWN = 1.6
"""What neighbours are believed to cost at most; an endless program is run for that much longer."""
_NOTABLE_SLOWDOWN = 1.1
_NUM_RECENT = 4
_DEAD_BAND = 1.15
_MAX_RUNS = 5


def measure_scale(measure: Callable[[], float]) -> float:
    """Return by how much CPU limits are to be stretched: 1 to `MAX_SCALE`.

    Args:
        measure: runs the program once and returns its CPU seconds. Of up to five runs the fastest counts; the first
            one that is as fast as the reference ends the matter.
    """
    fastest = float("inf")
    for _ in range(_MAX_RUNS):
        fastest = min(fastest, measure())
        if fastest <= _DEAD_BAND * REFERENCE_CPU_SECONDS:
            return 1.0
    return min(round(fastest / REFERENCE_CPU_SECONDS, 2), MAX_SCALE)


class Pace:
    """How fast this machine runs at best, and of late; shared by the workers of a judge."""

    def __init__(self, best: Mapping[str, float] | None = None) -> None:
        """Note what the programs took at best, if that was seen before."""
        self._lock = threading.Lock()
        self._best: dict[str, float] = dict(best or {})
        self._recent: deque[float] = deque([1.0], maxlen=_NUM_RECENT)

    @property
    def best(self) -> dict[str, float]:
        """CPU seconds that the programs took at best."""
        with self._lock:
            return dict(self._best)

    @property
    def slowdown(self) -> float:
        """The most that neighbours cost of late, if that was looked at; 1 on a quiet machine."""
        with self._lock:
            return max(self._recent)

    def learn(self, program: str, seconds: float) -> None:
        """Note what one of the programs took."""
        with self._lock:
            self._best[program] = min(seconds, self._best.get(program, seconds))

    def measure(self, program: str, run: Callable[[], float]) -> float:
        """Return how many times longer than at best a program takes now: 1, or 1.1 to `MAX_SLOWDOWN`.

        Args:
            program: one of the two programs.
            run: runs it once and returns its CPU seconds. The middle one of three counts; a first one without any
                delay ends the matter.
        """
        seconds: list[float] = []
        while len(seconds) < 3:
            seconds.append(run())
            self.learn(program, seconds[-1])
            if self._ratio(program, seconds[0]) < _NOTABLE_SLOWDOWN:
                break
        slowdown = self._ratio(program, statistics.median(seconds))
        slowdown = 1.0 if slowdown < _NOTABLE_SLOWDOWN else min(slowdown, MAX_SLOWDOWN)
        if program == PROGRAM:
            with self._lock:
                self._recent.append(slowdown)
        return slowdown

    def _ratio(self, program: str, seconds: float) -> float:
        with self._lock:
            return seconds / self._best[program]
