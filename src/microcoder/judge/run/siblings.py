"""A time limit from the other programs of a problem: what is many times slower than accepted ones is given up early.

An option, for steps whose time is spent on endless programs. A verdict under such a limit depends on which programs
were accepted before it: it is marked (`Verdict.is_relative`), counted, and never kept for another time.
"""

from __future__ import annotations

import threading

from microcoder.judge.core.types import Verdict

LEAST_FACTOR = 2.0
FLOOR_SECONDS = 0.5
"""No such limit is below this: times below it say more about the start of a program than about its algorithm."""
_LEAST_ACCEPTED = 2
"""Programs that must have been accepted before: one alone may be the only fast one."""


class Siblings:
    """CPU times of the accepted programs of one problem."""

    def __init__(self, time_scale: float) -> None:
        """Start without accepted programs; limits are scaled like those of problems."""
        self._lock = threading.Lock()
        self._floor_seconds = FLOOR_SECONDS * time_scale
        self._slowest_seconds = 0.0
        self._num_accepted = 0

    def note(self, verdict: Verdict) -> None:
        """Count in a program that was judged."""
        if not verdict.is_accepted:
            return
        with self._lock:
            self._num_accepted += 1
            slowest = max((test.cpu_seconds for test in verdict.tests), default=0.0)
            self._slowest_seconds = max(self._slowest_seconds, slowest)

    def find_limit(self, factor: float | None) -> float | None:
        """Return the factor times the slowest accepted program's slowest test; None if too few were accepted."""
        if factor is None or self._num_accepted < _LEAST_ACCEPTED:
            return None
        return max(self._floor_seconds, factor * self._slowest_seconds)
