"""Time by phase within a step, and in total over the attempts of a run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from microcoder.training.observer import Observer


class PhaseClock:
    """Wall time by phase since the last reading; time outside any phase counts as `update`, the engine's own work."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._seconds: dict[str, float] = {}
        self._beside: dict[str, float] = {}
        self._since = time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the body's time for this phase."""
        self._observer.phase(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start
            self._observer.phase("update")

    def add(self, name: str, seconds: float) -> None:
        """Count work that ran during a phase and is part of its time."""
        self._beside[name] = self._beside.get(name, 0.0) + seconds

    def read(self) -> dict[str, float]:
        """Return the seconds by phase, their total and the concurrent work, and reset."""
        now = time.perf_counter()
        total = now - self._since
        seconds = {
            **self._seconds,
            "update": max(0.0, total - sum(self._seconds.values())),
            "total": total,
            **self._beside,
        }
        self._seconds, self._beside, self._since = {}, {}, now
        return {name: round(value, 4) for name, value in seconds.items()}


class RunClock:
    """Wall and CPU seconds of a run, earlier attempts included; steps lost to a kill do not count."""

    def __init__(self, *, wall_seconds: float = 0.0, cpu_seconds: float = 0.0) -> None:
        self._wall_before, self._cpu_before = wall_seconds, cpu_seconds
        self._wall_start, self._cpu_start = time.perf_counter(), _cpu_seconds()

    def read(self) -> dict[str, float]:
        """Return `wall_seconds` and `cpu_seconds` up to now; ended child processes are counted."""
        return {
            "wall_seconds": round(self._wall_before + time.perf_counter() - self._wall_start, 3),
            "cpu_seconds": round(self._cpu_before + _cpu_seconds() - self._cpu_start, 3),
        }


def _cpu_seconds() -> float:
    return sum(os.times()[:4])
