"""Answers to the fork server's questions while a test runs: how long it may go on.

They are answered by the kernel's counts of the test's process; what follows from these is decided
in `timing`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
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


_LOOK_SECONDS = 0.25
"""How often two processes that talk are looked at."""
_MOST_IDLE_LOOKS = 6
"""Looks between which neither has run at all, after which they wait for each other."""


class Interaction:
    """Whether two processes that talk wait for each other: then nothing will happen any more."""

    def __init__(self, end_input: Callable[[], None], last_seconds: float) -> None:
        """Know nothing yet.

        Args:
            end_input: lets the program see that the interactor has closed its stdout, if it has.
            last_seconds: wall time that the interactor may take after the program's end.
        """
        self._end_input = end_input
        self._last_seconds = last_seconds
        self._leader_seconds = math.inf
        self._pids: dict[bool, int] = {}
        self._turns: list[int] = []
        self._num_idle_looks = 0
        self._has_ended_input = False
        self.has_ended = False
        """Whether the interactor has ended."""
        self.is_answered = False
        """Whether the program has ended, so that nothing holds the interactor up any more."""

    def limit_leader(self, counted_seconds: float) -> float:
        """Return the interactor's wall limit by its wall time so far; none before the program's
        end."""
        if self.is_answered and self._leader_seconds == math.inf:
            self._leader_seconds = counted_seconds + self._last_seconds
        return self._leader_seconds

    def note(self, pid: int, *, is_answer: bool) -> None:
        """Note which process one side is."""
        self._pids[is_answer] = pid

    @property
    def is_idle(self) -> bool:
        """Whether neither process has run between the last two looks."""
        return self._num_idle_looks > 0

    def is_deadlocked(self) -> bool:
        """Look at both processes; return whether they wait for each other."""
        turns = self._read_turns()
        if turns and turns == self._turns:
            self._num_idle_looks += 1
        else:
            self._num_idle_looks = 0
        self._turns = turns
        if self._num_idle_looks < _MOST_IDLE_LOOKS:
            return False
        if self._has_ended_input:
            return True
        # The program may wait for an end of its stdin that only we keep from it.
        self._has_ended_input = True
        self._end_input()
        self._num_idle_looks = 0
        return False

    def _read_turns(self) -> list[int]:
        """Return how often each process was given a processor; nothing if one may run now."""
        if self.has_ended or len(self._pids) < 2:
            return []
        turns = []
        for _, pid in sorted(self._pids.items()):
            reading = read_process(pid)
            if reading is None or reading.is_in_the_queue:
                return []
            turns.append(reading.turns)
        return turns


@dataclass(frozen=True, slots=True)
class Side:
    """One of two processes that talk."""

    interaction: Interaction
    is_answer: bool = False
    """Whether it is the program, and not the interactor."""


class Watchdog:
    """Decides what a running test is allowed: answers the fork server's questions about it."""

    def __init__(self, limits: Limits, owner: Owner, side: Side | None = None) -> None:
        """Start the clock of a test of a worker; `side` is set in an interaction."""
        self._limits = limits
        self._side = side
        self.first_wall_seconds = limits.wall_seconds
        """After how much wall time the fork server asks first."""
        if side is not None:
            self.first_wall_seconds = min(_LOOK_SECONDS, limits.wall_seconds)
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
        """Return the test's result; one whose CPU time was used up is no wall time-out.

        Nor is one that waited for its partner, which waited for it.
        """
        is_out_of_time = self._cpu_seconds > self._limits.cpu_seconds
        if result.expired == protocol.Expiry.WALL and is_out_of_time:
            # A compiler's own children count: the watch sees the CPU time of one process.
            cpu_us = int(self._cpu_seconds * 1e6)
            return result._replace(expired=protocol.Expiry.CPU, cpu_us=cpu_us)
        if self._side is not None and self._side.is_answer and self._side.interaction.is_idle:
            return result._replace(expired=protocol.Expiry.DEADLOCK)
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
        limit_seconds = self._limits.wall_seconds
        if self._side is not None:
            if not self._side.is_answer:
                of_leader = self._side.interaction.limit_leader(counted_seconds)
                limit_seconds = min(limit_seconds, of_leader)
            left = limit_seconds - counted_seconds
            is_over = self._look(self._side, pid)
            if is_over:
                return 0.0
            if left > 0:
                return max(timing.SHORTEST_EXTENSION_SECONDS, min(_LOOK_SECONDS, left))
        # 0 where the kernel does not tell: then there are no counts either.
        reading = read_process(pid) if pid else None
        more, why = timing.extend(
            reading,
            limit_seconds=limit_seconds,
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

    def _look(self, side: Side, pid: int) -> bool:
        """Look at both sides of an interaction; return whether they wait for each other."""
        # 0 where the kernel does not tell.
        if pid:
            side.interaction.note(pid, is_answer=side.is_answer)
        return side.is_answer and side.interaction.is_deadlocked()
