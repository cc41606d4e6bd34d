"""Answers to the fork server's questions while a test runs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

from microcoder.evaluator import idleness
from microcoder.evaluator.sandbox.protocol import (
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
from microcoder.evaluator.turns import WorkerTurn

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
        waits: idleness.TimeLimitCounts,
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
        pid = idleness.pid_of(descriptor)
        os.close(descriptor)
        kind, seconds = question[:1], unpack_seconds(question)
        if kind == STILL:
            return self._extend(pid, seconds, asked - self._started - self._stood_seconds)
        if kind == IDLE:
            rests = idleness.is_idle(pid)
            if rests:
                self._turn.rest()
            return float(rests)
        self._turn.go_on()
        limits = []
        memory_mib = idleness.memory_mib_of(pid)
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
        more, self._cpu_seconds = idleness.extend(
            pid,
            limit_seconds=self._request.wall_seconds,
            counted_seconds=counted,
            real_seconds=real,
            counts=self._waits,
        )
        return 0.0 if self._cpu_seconds > self._request.cpu_seconds else more
