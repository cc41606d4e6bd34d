"""Answers to the fork server's questions while a test runs: how long it may go on.

They are answered by the kernel's counts of the test's process; what follows from these is decided
in `timing`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from microcoder.judge.core.machine import memory_mib_of, pid_of, read_process
from microcoder.judge.run import timing
from microcoder.judge.run.counts import Statistics
from microcoder.judge.run.slots import Slot
from microcoder.judge.run.timing import Limits
from microcoder.judge.sandbox import protocol
from microcoder.judge.sandbox.protocol import Result, unpack_seconds


@dataclass(frozen=True, slots=True)
class Owner:
    """Slot and counts of the worker that a sandbox belongs to."""

    slot: Slot = field(default_factory=Slot)
    """Given back while a test lets others go first."""
    record: Statistics = field(default_factory=Statistics)
    """Counts of the worker."""


class Watchdog:
    """Decides what a running test is allowed: answers the fork server's questions about it."""

    def __init__(
        self,
        limits: Limits,
        owner: Owner,
    ) -> None:
        """Start the clock of a test of a worker."""
        self._limits = limits
        self._slot = owner.slot
        self._record = owner.record
        self.notes: list[str] = []
        """Decisions about the test's time, in words."""
        self._started = time.monotonic()
        self._paused_seconds = 0.0
        self._cpu_seconds = 0.0

    def reply(self, question: bytes, descriptor: int) -> float:
        """Return the answer, in seconds, to a question about a process, and close its pidfd.

        After a slice of CPU time there is nothing to say but that the test may go on: 0.
        """
        asked = time.monotonic()
        pid = pid_of(descriptor)
        os.close(descriptor)
        seconds = unpack_seconds(question)
        if question[:1] == protocol.STILL:
            real_seconds = asked - self._started - self._paused_seconds
            return self._extend(pid, seconds, real_seconds)
        self._slot.give_way(memory_mib_of(pid))
        # Time in which it let others go first is not its own.
        self._paused_seconds += time.monotonic() - asked
        return 0.0

    def conclude(self, result: Result) -> Result:
        """Return the test's result; one whose CPU time was used up is no wall time-out."""
        is_out_of_time = self._cpu_seconds > self._limits.cpu_seconds
        if result.expired == protocol.Expiry.WALL and is_out_of_time:
            # A compiler's own children count: the watch sees the CPU time of one process.
            cpu_us = int(self._cpu_seconds * 1e6)
            return result._replace(expired=protocol.Expiry.CPU, cpu_us=cpu_us)
        return result

    def _extend(
        self,
        pid: int,
        counted_seconds: float,
        real_seconds: float,
    ) -> float:
        """Return how much longer a test may take whose wall time is spent; 0 to end it."""
        if pid < 0:  # It has ended.
            return timing.SHORTEST_EXTENSION_SECONDS
        # 0 where the kernel does not tell: then there are no counts either.
        reading = read_process(pid) if pid else None
        more, why = timing.extend(
            reading,
            limit_seconds=self._limits.wall_seconds,
            counted_seconds=counted_seconds,
            real_seconds=real_seconds,
        )
        if reading is not None:
            self._cpu_seconds = reading.cpu_seconds
            # Its CPU time is used up: no waiting excuses that.
            if self._cpu_seconds > self._limits.cpu_seconds:
                return 0.0
        if more > 0:
            self._record.extended += reading is not None
            self._record.blind += reading is None
            self.notes.append(
                f"wall time was spent after {counted_seconds:.2f} s, and it went on: {why}"
            )
        return more
