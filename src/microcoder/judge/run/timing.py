"""Fair timing of tests on a busy machine: extra time for slow neighbours, and a second run if they may have decided.

How much slower than the reference machine this one runs Python: CPU limits are stretched by that.

A limit is never shortened: a stated limit is what a program may take at least. A machine up to 15 % slower counts as
the reference, so that noise changes no limit; one more than four times slower is measured as four, and that is shown.

Neighbours slow a program too: they take the caches, and half of a core that runs two threads. That is measured when a
program ran out of CPU time, by how long two fixed programs take now and took at best: a small one, and for programs of
more memory than a core's own cache one that walks through some.
"""

from __future__ import annotations

import contextlib
import math
import signal
import statistics
import threading
from collections import deque
from collections.abc import Callable, Mapping

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Repeat
from microcoder.judge.run.problem import OUTPUT_MIB, PreparedProblem, limits_for
from microcoder.judge.run.sandboxes import Sandboxes, SandboxKind
from microcoder.judge.run.series import Series
from microcoder.judge.run.sharing import Loss
from microcoder.judge.run.supervisor import Limits, LoadedProgram, RoomLacked, Run, Sandbox, TestTask
from microcoder.judge.run.turns import WorkerTurn
from microcoder.judge.run.watch import FindLowerLimit
from microcoder.judge.sandbox.protocol import CPU_EXPIRED

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


_LEAST_ROOM = 1.1
"""A test is stopped this far beyond its CPU limit at the earliest: neighbours that cost less are not noticed. One that
ends in between is run again alone."""
_LEAST_ROOM_IN_MEMORY = 1.3
"""The same of a test that holds much memory: there neighbours slow it more than they slow the fixed programs."""
_ROOM_OF_SLOWDOWN = 1.05
"""Where neighbours were noticed, it is stopped this far beyond what they cost, since that varies."""
_CALIBRATION_SECONDS, _CALIBRATION_MIB = 10.0, 256


class TimedRuns:
    """Runs one worker's tests with timing corrected for neighbours."""

    def __init__(self, sandboxes: Sandboxes, turn: WorkerTurn, pace: Pace, sibling_limit: float | None = None) -> None:
        """Note where tests run, when they may, how fast this machine is, how much slower than others one may be."""
        self._sibling_limit = sibling_limit
        self._sandboxes = sandboxes
        self._turn = turn
        self._pace = pace
        self._has_rerun = self._is_only_try = False
        self.reruns = 0
        """Tests that were run again because they ended close to their time limit, or beyond it on a busy machine."""
        self.lowered = 0
        """Tests that were ended by a limit which other programs of their problem had set."""
        self.retries = 0
        """Tests that were run again because something else than a limit killed them."""
        self.losses: list[Loss] = []
        """Runs of the latest test that do not count."""

    def begin_program(self) -> None:
        """Let one test of the next program be run again if neighbours slow it."""
        self._has_rerun = False
        self._turn.begin_program()

    def run(
        self,
        kind: SandboxKind,
        task: TestTask,
        prepared: PreparedProblem,
        series: Series | None = None,
        *,
        is_only_try: bool = False,
    ) -> Run:
        """Run a test and return its result with CPU time as on an idle machine.

        Args:
            kind: of the sandbox.
            task: what to run.
            prepared: the problem it is a test of.
            series: further tests that are to share its process; if it is run again, it is alone.
            is_only_try: run it again only to time what it did.

        Raises:
            SandboxDied: the sandbox broke twice.
            EvaluatorFault: it does not start, or the disk is full in an only try.
        """
        self.losses, self._is_only_try = [], is_only_try
        run, slowdown = self._run_with_room(kind, task, prepared, series)
        self.lowered += run.lowered_limit is not None
        if prepared.is_close(run):
            self.reruns += 1
            with self._turn.alone():
                again = self._run(kind, task, prepared.limits, slowdown)
                again = again.slowed_by(self._measure_slowdown(again))
            self.losses.append(Loss(Repeat.NEAR_LIMIT, 0.0))
            # Another output would be another try.
            return min(run, again, key=lambda run: run.cpu_seconds) if _left_the_same(run, again) else run
        if run.result.signal and not is_only_try and was_killed(run, prepared.find_failure(run)):
            self.retries += 1
            self.losses.append(Loss(Repeat.KILLED))
            with self._turn.shared():
                return self._run(kind, task, prepared.limits, slowdown)
        return run

    def measure_time_scale(self) -> float:
        """Return what CPU limits are to be multiplied by on this machine, and learn its pace.

        Raises:
            EvaluatorFault: the sandbox does not start.
            SandboxDied: it broke twice.
        """
        self._pace.learn(MEMORY_PROGRAM, self._time(MEMORY_PROGRAM))

        def measure() -> float:
            seconds = self._time(PROGRAM)
            self._pace.learn(PROGRAM, seconds)
            return seconds

        return measure_scale(measure)

    def _time(self, code: str) -> float:
        """Return the CPU seconds of a fixed program."""
        limits = limits_for(_CALIBRATION_SECONDS, _CALIBRATION_MIB, OUTPUT_MIB)
        with contextlib.closing(LoadedProgram(code)) as program:
            return self._sandboxes.use(
                SandboxKind(), lambda sandbox: sandbox.run(program.task(b""), limits)
            ).cpu_seconds

    def _measure_slowdown(self, run: Run) -> float:
        """Return by how much neighbours slow a program like this now."""
        slowdown = self._pace.measure(PROGRAM, lambda: self._time(PROGRAM))
        if run.result.memory_kib < LARGE_KIB:
            return slowdown
        return max(slowdown, self._pace.measure(MEMORY_PROGRAM, lambda: self._time(MEMORY_PROGRAM)))

    def _run_with_room(
        self, kind: SandboxKind, task: TestTask, prepared: PreparedProblem, series: Series | None
    ) -> tuple[Run, float]:
        """Run a test with the room that neighbours call for; return that too.

        Where it runs out of CPU time and neighbours turn out to cost more than they did of late, it is run once more,
        which happens to one test of a program at most: an endless one must not cost many limits. An only try is not
        run once more, so it has all the room that neighbours could ever call for.
        """
        limits = prepared.limits
        with self._turn.shared():
            slowdown = MAX_SLOWDOWN if self._is_only_try else self._pace.slowdown

            def find_lower_limit() -> float | None:
                seconds = prepared.siblings.find_limit(self._sibling_limit)
                return None if seconds is None or seconds >= limits.cpu_seconds else slowdown * seconds

            run = self._run(kind, task, limits, slowdown, find_lower_limit, series)
            may_rerun = not (self._has_rerun or self._is_only_try)
            if run.result.expired == CPU_EXPIRED and run.lowered_limit is None and may_rerun:
                measured = self._measure_slowdown(run)
                # What was stopped later than neighbours explain is beyond its limit on a quiet machine, too.
                if measured * limits.cpu_seconds > run.cpu_seconds:
                    self._has_rerun = True
                    self.reruns += 1
                    again = self._run(kind, task, limits, measured)
                    is_as_slow = again.cpu_seconds >= run.cpu_seconds
                    self.losses.append(Loss(Repeat.NEIGHBOURS, 0.0 if is_as_slow else math.inf))
                    return again, measured
            return run, slowdown

    def _run(
        self,
        kind: SandboxKind,
        task: TestTask,
        limits: Limits,
        slowdown: float,
        find_lower_limit: FindLowerLimit = lambda: None,
        series: Series | None = None,
    ) -> Run:
        room = _room_for(slowdown)
        generous = Limits(
            cpu_seconds=max(room, _LEAST_ROOM_IN_MEMORY) * limits.cpu_seconds,
            wall_seconds=slowdown * limits.wall_seconds,
            memory_bytes=limits.memory_bytes,
            output_bytes=limits.output_bytes,
            small_cpu_seconds=room * limits.cpu_seconds,
        )

        def run(sandbox: Sandbox) -> Run:
            try:
                return sandbox.run(task, generous, find_lower_limit, series)
            except RoomLacked as full:
                if self._is_only_try:
                    raise EvaluatorFault(str(full)) from None
                raise

        num_deaths = self._sandboxes.retries
        try:
            return self._sandboxes.use(kind, run)
        finally:
            # Where isolation is degraded a program may be the cause. Who is judged anew has been doubted already.
            loss = Loss(Repeat.SANDBOX_DIED, 0.0 if self._is_only_try else math.inf)
            self.losses += [loss] * (self._sandboxes.retries - num_deaths)


def _room_for(slowdown: float) -> float:
    """Return how many times its CPU limit a test may take before it is stopped."""
    return max(_LEAST_ROOM, _ROOM_OF_SLOWDOWN * slowdown)


def _left_the_same(one: Run, other: Run) -> bool:
    """Whether two runs ended alike and left the same output."""
    ends = [(run.result.exit_code, run.result.signal, run.stdout, run.wire) for run in (one, other)]
    return ends[0] == ends[1]


def was_killed(run: Run, failure: tuple[Outcome, str] | None) -> bool:
    """Whether it was killed by none of its limits: by itself, or from outside, as where the machine's memory ended."""
    return failure is not None and failure[0] is Outcome.RUNTIME_ERROR and run.result.signal == signal.SIGKILL
