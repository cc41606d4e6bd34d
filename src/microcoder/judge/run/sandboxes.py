"""One worker's sandboxes: a plain one, and others once they are asked for, such as one that compiles.

The CPU time of tests that run in them is corrected for neighbours (other load on the machine), and a run that is
inconclusive is repeated.
"""

import contextlib
import math
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Repeat
from microcoder.judge.languages import find_language
from microcoder.judge.languages.packages import ProvidedPackages, load_profile, provide_packages
from microcoder.judge.run import timing
from microcoder.judge.run.builds import find_room, find_toolchain
from microcoder.judge.run.counts import WorkerRecord
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.sharing import Loss, Series
from microcoder.judge.run.supervisor import (
    LoadedProgram,
    RoomLacked,
    Sandbox,
    SandboxDied,
    TestTask,
)
from microcoder.judge.run.timing import Limits, Pace, limits_for
from microcoder.judge.run.turns import Turn
from microcoder.judge.run.verdicts import OUTPUT_MIB, PreparedProblem, Run
from microcoder.judge.sandbox.protocol import CPU_EXPIRED, FINISHED, NO_RUNTIME

_CALIBRATION_SECONDS, _CALIBRATION_MIB = 10.0, 256
_SCRATCH_MIB, _LARGE_SCRATCH_MIB = 16, 256
"""Sizes of the scratch folder; the larger for builds, files of a checker or a run, and streams opened by name."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SandboxKind:
    """The kind of a sandbox; runs that need the same kind share one."""

    preload: tuple[str, ...] = ()
    """Modules that are loaded before the program starts."""
    is_large: bool = False
    """Whether its scratch folder is the larger one."""
    builds: str = ""
    """The language that it compiles; empty for one that runs programs."""
    runs: str = ""
    """The language whose runtime it can start; empty if programs are Python's or binaries."""


class Sandboxes:
    """A worker's sandboxes by kind, for one thread: started on first use, ended when anything goes wrong in them."""

    def __init__(
        self,
        options: JudgeOptions | None = None,
        *,
        packages: ProvidedPackages | None = None,
        turn: Turn | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.options = options or JudgeOptions()
        self.packages = packages or provide_packages(load_profile(self.options.packages))
        self.turn = turn or Turn()
        """The thread's place and locks, by which its programs run beside others or alone."""
        self._pace = pace or Pace()
        self._started: dict[SandboxKind, Sandbox] = {}
        self._is_closed = False
        self.level = ""
        """Level of isolation of the latest sandbox, such as `full`."""
        self.has_rerun = False
        """Whether a test was run again since neighbours slowed it; the caller sets it to False for each program."""
        self._is_only_try = False
        self.record = WorkerRecord()
        """Counts of the worker, and decisions about time."""
        self.losses: list[Loss] = []
        """Runs of the latest test that do not count."""

    def use(self, kind: SandboxKind, action: Callable[[Sandbox], T], *, is_last: bool = False) -> T:
        """Return `action(sandbox)`; after SandboxDied or OSError, unless `is_last`, once more with a fresh sandbox."""
        try:
            return action(self._find(kind))
        except BaseException as error:
            self._discard(kind)
            if is_last or self._is_closed or not isinstance(error, (SandboxDied, OSError)):
                raise
        self.record.retries += 1
        return self.use(kind, action, is_last=True)

    def interrupt(self) -> None:
        """End the sandboxes from another thread; what is being judged ends as a fault."""
        self._is_closed = True
        for sandbox in list(self._started.values()):
            sandbox.interrupt()

    def close(self) -> None:
        """End the sandboxes; only from the thread that opened them."""
        self._is_closed = True
        for kind in list(self._started):
            self._discard(kind)

    def _find(self, kind: SandboxKind) -> Sandbox:
        """Return a sandbox of this kind, started if there is none; raises SandboxDied once closed."""
        if not self._is_closed and kind not in self._started:
            self._started[kind] = self._start(kind)
        if self._is_closed:
            raise SandboxDied("the judge was closed")
        return self._started[kind]

    def _start(self, kind: SandboxKind) -> Sandbox:
        sandbox = Sandbox(
            packages="" if kind.builds else self.packages.folder,
            preload=kind.preload,
            toolchain=find_toolchain(find_language(kind.builds)) if kind.builds else None,
            runtime=find_room(find_language(kind.runs)) if kind.runs else NO_RUNTIME,
            scratch_mib=_LARGE_SCRATCH_MIB if kind.is_large or kind.builds else _SCRATCH_MIB,
            layers=self.options.layers,
            record=self.record,
            turn=self.turn,
            nice=self.options.nice,
        )
        self.level = sandbox.isolation.level
        try:
            sandbox.isolation.require(unsafe=self.options.unsafe)
        except EvaluatorFault:
            sandbox.close()
            raise
        return sandbox

    def _discard(self, kind: SandboxKind) -> None:
        sandbox = self._started.pop(kind, None)
        if sandbox is not None:
            sandbox.close()

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

        With `is_only_try` (the program is judged anew) it is run again only to measure its time: its output is kept.
        """
        self.losses, self._is_only_try = [], is_only_try
        self.record.reasons.clear()
        run, slowdown = self._run_with_room(kind, task, prepared, series)
        if timing.is_close(run.result, prepared.limits):
            self._repeat(
                f"it ended by itself after {run.cpu_seconds:.2f} s of CPU time, so it was timed again alone"
            )
            with self.turn.alone():
                again = self._run(kind, task, prepared.limits, slowdown)
                cpu_us = int(again.result.cpu_us / self._measure_slowdown(again))
                again = replace(again, result=again.result._replace(cpu_us=cpu_us))
            self.losses.append(Loss(Repeat.NEAR_LIMIT, 0.0))
            ends = {
                (one.result.exit_code, one.result.signal, one.stdout, one.wire)
                for one in (run, again)
            }
            # Another output would be another try.
            return min(run, again, key=lambda run: run.cpu_seconds) if len(ends) == 1 else run
        failure = (
            prepared.find_failure(run)
            if run.result.signal == signal.SIGKILL and not is_only_try
            else None
        )
        # By none of its limits: by itself, or by the machine, as when memory ran out.
        if failure is not None and failure[0] is Outcome.RUNTIME_ERROR:
            self.record.retries += 1
            self.losses.append(Loss(Repeat.KILLED))
            with self.turn.shared():
                return self._run(kind, task, prepared.limits, slowdown)
        return run

    def run_once(self, kind: SandboxKind, task: TestTask, limits: Limits) -> Run:
        """Run a program without correcting its CPU time; once more if it was killed by none of its limits."""
        with self.turn.shared():
            run = self.use(kind, lambda sandbox: sandbox.run(task, limits))
            if run.result.signal != signal.SIGKILL or run.result.expired != FINISHED:
                return run
            self.record.retries += 1
            return self.use(kind, lambda sandbox: sandbox.run(task, limits))

    def _repeat(self, reason: str) -> None:
        self.record.reruns += 1
        self.record.reasons.append(reason)

    def measure_time_scale(self) -> float:
        """Return this machine's factor on CPU limits; its CPU times of the two fixed programs are noted in the pace."""
        self._time(timing.MEMORY_PROGRAM)
        return timing.measure_scale(lambda: self._time(timing.PROGRAM))

    def _time(self, code: str) -> float:
        """Run a fixed program, note its CPU seconds in the machine's pace, and return them."""
        limits = limits_for(_CALIBRATION_SECONDS, _CALIBRATION_MIB, OUTPUT_MIB)
        with contextlib.closing(LoadedProgram(code)) as program:
            run = self.use(SandboxKind(), lambda sandbox: sandbox.run(program.task(b""), limits))
        self._pace.learn(code, run.cpu_seconds)
        return run.cpu_seconds

    def _measure_slowdown(self, run: Run) -> float:
        """Return the factor by which neighbours slow a program like this one now."""
        slowdown = self._pace.measure(timing.PROGRAM, lambda: self._time(timing.PROGRAM))
        if run.result.memory_kib < timing.LARGE_KIB:
            return slowdown
        return max(
            slowdown,
            self._pace.measure(timing.MEMORY_PROGRAM, lambda: self._time(timing.MEMORY_PROGRAM)),
        )

    def _run_with_room(
        self, kind: SandboxKind, task: TestTask, prepared: PreparedProblem, series: Series | None
    ) -> tuple[Run, float]:
        """Run a test with limits raised by the recent slowdown factor; return the run and the factor.

        If it runs out of CPU time, and the slowdown turns out to be larger now, it is run once more; this happens to
        one test of a program at most, as an endless one must not cost many limits. An only try is not run once more,
        so its limits are raised by the largest factor from the start.
        """
        limits = prepared.limits
        with self.turn.shared():
            slowdown = timing.MAX_SLOWDOWN if self._is_only_try else self._pace.slowdown
            run = self._run(kind, task, limits, slowdown, series)
            may_rerun = not (self.has_rerun or self._is_only_try)
            if run.result.expired == CPU_EXPIRED and may_rerun:
                measured = self._measure_slowdown(run)
                if timing.explains_expiry(measured, limits, run.cpu_seconds):
                    self.has_rerun = True
                    self._repeat(
                        f"stopped after {run.cpu_seconds:.2f} s, and neighbours slow it {measured:.2f} times"
                    )
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
        series: Series | None = None,
    ) -> Run:
        generous = timing.give_room(limits, slowdown)

        def run(sandbox: Sandbox) -> Run:
            try:
                return sandbox.run(task, generous, series)
            except RoomLacked as full:
                if self._is_only_try:
                    raise EvaluatorFault(str(full)) from None
                raise

        num_deaths = self.record.retries
        try:
            return self.use(kind, run)
        finally:
            # Where isolation is degraded a program may be the cause. Who is judged anew has been doubted already.
            loss = Loss(Repeat.SANDBOX_DIED, 0.0 if self._is_only_try else math.inf)
            self.losses += [loss] * (self.record.retries - num_deaths)
