"""Running one worker's tests with timing corrected for neighbours: again where a run says too little."""

from __future__ import annotations

import contextlib
import math
import signal

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Repeat
from microcoder.judge.run import timing
from microcoder.judge.run.problem import OUTPUT_MIB, PreparedProblem
from microcoder.judge.run.sandboxes import Sandboxes, SandboxKind
from microcoder.judge.run.series import Series
from microcoder.judge.run.sharing import Loss
from microcoder.judge.run.supervisor import LoadedProgram, RoomLacked, Run, Sandbox, TestTask
from microcoder.judge.run.timing import LARGE_KIB, MAX_SLOWDOWN, MEMORY_PROGRAM, PROGRAM, Limits, Pace, limits_for
from microcoder.judge.run.turns import WorkerTurn
from microcoder.judge.sandbox.protocol import CPU_EXPIRED

_CALIBRATION_SECONDS, _CALIBRATION_MIB = 10.0, 256


class TimedRuns:
    """Runs one worker's tests with timing corrected for neighbours."""

    def __init__(self, sandboxes: Sandboxes, turn: WorkerTurn, pace: Pace) -> None:
        """Note where tests run, when they may, and how fast this machine is."""
        self._sandboxes = sandboxes
        self._turn = turn
        self._pace = pace
        self._has_rerun = self._is_only_try = False
        self.record = sandboxes.record
        """Decisions about time."""
        self.retries = 0
        """Tests that were run again because something else than a limit killed them."""
        self.losses: list[Loss] = []
        """Runs of the latest test that do not count."""

    def begin_program(self) -> None:
        """Let one test of the next program be run again if neighbours slow it."""
        self._has_rerun = False

    def run(
        self,
        kind: SandboxKind,
        task: TestTask,
        prepared: PreparedProblem,
        series: Series | None = None,
        *,
        is_only_try: bool = False,
    ) -> Run:
        """Run a test, alone or with a series, and return its result with CPU time as on an idle machine.

        Whose run is the only try is run again only to time what it did.
        """
        self.losses, self._is_only_try = [], is_only_try
        self.record.reasons.clear()
        run, slowdown = self._run_with_room(kind, task, prepared, series)
        if timing.is_close(run.result, prepared.limits):
            self._repeat(f"it ended by itself after {run.cpu_seconds:.2f} s of CPU time, so it was timed again alone")
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

    def _repeat(self, reason: str) -> None:
        self.record.reruns += 1
        self.record.reasons.append(reason)

    def measure_time_scale(self) -> float:
        """Return the factor on CPU limits on this machine, and learn its pace."""
        self._pace.learn(MEMORY_PROGRAM, self._time(MEMORY_PROGRAM))

        def measure() -> float:
            seconds = self._time(PROGRAM)
            self._pace.learn(PROGRAM, seconds)
            return seconds

        return timing.measure_scale(measure)

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
            run = self._run(kind, task, limits, slowdown, series)
            may_rerun = not (self._has_rerun or self._is_only_try)
            if run.result.expired == CPU_EXPIRED and may_rerun:
                measured = self._measure_slowdown(run)
                if timing.explains_expiry(measured, limits, run.cpu_seconds):
                    self._has_rerun = True
                    self._repeat(f"stopped after {run.cpu_seconds:.2f} s, and neighbours slow it {measured:.2f} times")
                    again = self._run(kind, task, limits, measured)
                    is_as_slow = again.cpu_seconds >= run.cpu_seconds
                    self.losses.append(Loss(Repeat.NEIGHBOURS, 0.0 if is_as_slow else math.inf))
                    return again, measured
            return run, slowdown

    def _run(
        self, kind: SandboxKind, task: TestTask, limits: Limits, slowdown: float, series: Series | None = None
    ) -> Run:
        generous = timing.give_room(limits, slowdown)

        def run(sandbox: Sandbox) -> Run:
            try:
                return sandbox.run(task, generous, series)
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


def _left_the_same(one: Run, other: Run) -> bool:
    """Whether two runs ended alike and left the same output."""
    ends = [(run.result.exit_code, run.result.signal, run.stdout, run.wire) for run in (one, other)]
    return ends[0] == ends[1]


def was_killed(run: Run, failure: tuple[Outcome, str] | None) -> bool:
    """Whether none of its limits killed a test: it did, or the machine, as where memory ended."""
    return failure is not None and failure[0] is Outcome.RUNTIME_ERROR and run.result.signal == signal.SIGKILL
