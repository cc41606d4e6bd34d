"""One worker's sandboxes: a plain one, and others on demand, such as one that compiles.

The CPU time of tests that run in them is corrected for neighbours (other load on the machine), and
a run that is inconclusive is repeated.
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
from microcoder.judge.run.builds import describe_runtime, find_toolchain
from microcoder.judge.run.counts import WorkerRecord
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.sharing import DiscardedRun, ProcessBatch
from microcoder.judge.run.slots import Slot
from microcoder.judge.run.supervisor import (
    DiskFull,
    LoadedProgram,
    Owner,
    Sandbox,
    SandboxDied,
    TestTask,
)
from microcoder.judge.run.timing import Calibration, Limits, limits_for
from microcoder.judge.run.verdicts import OUTPUT_MIB, PreparedProblem, Run
from microcoder.judge.sandbox.protocol import NO_RUNTIME, Expiry

_CALIBRATION_SECONDS = 10.0
"""CPU limit of the fixed programs that measure the machine."""
_CALIBRATION_MIB = 256
"""Memory limit of these programs."""
_SCRATCH_MIB = 16
"""Size of the folder that a test may write to."""
_LARGE_SCRATCH_MIB = 256
"""The same for builds, files of a checker or a run, and streams opened by name."""

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
    is_partner: bool = False
    """Whether it runs tests that call programs, which run in another sandbox meanwhile."""


class Sandboxes:
    """A worker's sandboxes by kind, for one thread.

    One is started on first use, and ended when anything goes wrong in it.
    """

    def __init__(
        self,
        options: JudgeOptions | None = None,
        *,
        packages: ProvidedPackages | None = None,
        slot: Slot | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.options = options or JudgeOptions()
        self.packages = packages or provide_packages(load_profile(self.options.packages))
        self.slot = slot or Slot()
        """The thread's slot and locks, by which its programs run beside others or alone."""
        self._calibration = calibration or Calibration()
        self._started: dict[SandboxKind, Sandbox] = {}
        self._is_closed = False
        self.level = ""
        """Level of isolation of the latest sandbox, such as `full`."""
        self.has_rerun = False
        """Whether a test was run again since neighbours slowed it.

        The caller sets it to False for each program.
        """
        self._is_only_attempt = False
        self.record = WorkerRecord()
        """Counts of the worker, and decisions about time."""
        self.discarded: list[DiscardedRun] = []
        """Runs of the latest test that do not count."""

    def use(
        self,
        kind: SandboxKind,
        action: Callable[[Sandbox], T],
        *,
        is_last: bool = False,
    ) -> T:
        """Return `action(sandbox)`; after SandboxDied or OSError once more, with a fresh sandbox.

        With `is_last` it is not tried once more.
        """
        try:
            return action(self._find(kind))
        except BaseException as error:
            # Whatever went wrong, nothing is known about the state of the sandbox.
            self._discard(kind)
            may_retry = isinstance(error, (SandboxDied, OSError)) and not self._is_closed
            if is_last or not may_retry:
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
        """Return a sandbox of this kind, started if there is none.

        Raises:
            SandboxDied: the sandboxes were closed.
        """
        # Started on first use: most workers need one kind only.
        if not self._is_closed and kind not in self._started:
            self._started[kind] = self._start(kind)
        # Looked at once more: another thread may have closed them while one was started.
        if self._is_closed:
            raise SandboxDied("the judge was closed")
        return self._started[kind]

    def _start(self, kind: SandboxKind) -> Sandbox:
        toolchain = None
        packages = self.packages.folder
        # A sandbox that compiles runs no programs, so it needs no packages.
        if kind.builds:
            toolchain = find_toolchain(find_language(kind.builds))
            packages = ""
        runtime = NO_RUNTIME
        if kind.runs:
            runtime = describe_runtime(find_language(kind.runs))
        sandbox = Sandbox(
            packages=packages,
            preload=kind.preload,
            toolchain=toolchain,
            runtime=runtime,
            scratch_mib=_LARGE_SCRATCH_MIB if kind.is_large or kind.builds else _SCRATCH_MIB,
            layers=self.options.layers,
            nice=self.options.nice,
            # A partner has no slot of its own: it waits for the program that has.
            owner=None if kind.is_partner else Owner(self.slot, self.record),
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
        batch: ProcessBatch | None = None,
        *,
        is_only_attempt: bool = False,
    ) -> Run:
        """Run a test, alone or with a batch; return its result with CPU time as on an idle machine.

        With `is_only_attempt` (the program is judged again) it is run again only to measure its
        time: its output is kept.
        """
        self.discarded = []
        self._is_only_attempt = is_only_attempt
        self.record.reasons.clear()
        run, slowdown = self._run_with_raised_limits(kind, task, prepared, batch)
        if timing.is_close(run.result, prepared.limits):
            return self._time_again(kind, task, prepared.limits, slowdown, run)
        if is_only_attempt or not _is_killed_from_outside(run, prepared):
            return run
        self.record.retries += 1
        self.discarded.append(DiscardedRun(Repeat.KILLED))
        with self.slot.shared():
            return self._run(kind, task, prepared.limits, slowdown)

    def _time_again(
        self, kind: SandboxKind, task: TestTask, limits: Limits, slowdown: float, run: Run
    ) -> Run:
        """Run a test alone that ended a little beyond its limit; return the faster run."""
        self._note_rerun(
            f"it ended by itself after {run.cpu_seconds:.2f} s of CPU time, "
            "so it was timed again alone"
        )
        # Alone, other programs of this judge cost it nothing; what others cost is divided out.
        with self.slot.alone():
            again = self._run(kind, task, limits, slowdown)
            cpu_us = int(again.result.cpu_us / self._measure_slowdown(again))
            again = replace(again, result=again.result._replace(cpu_us=cpu_us))
        self.discarded.append(DiscardedRun(Repeat.NEAR_LIMIT, 0.0))
        # Another output would be another attempt.
        if _end_of(run) != _end_of(again):
            return run
        return again if again.cpu_seconds < run.cpu_seconds else run

    def run_once(
        self,
        kind: SandboxKind,
        task: TestTask,
        limits: Limits,
    ) -> Run:
        """Run a program without correcting its CPU time.

        It is run once more if it was killed by none of its limits.
        """
        with self.slot.shared():
            run = self.use(kind, lambda sandbox: sandbox.run(task, limits))
            if run.result.signal != signal.SIGKILL or run.result.expired != Expiry.FINISHED:
                return run
            self.record.retries += 1
            return self.use(kind, lambda sandbox: sandbox.run(task, limits))

    def _note_rerun(self, reason: str) -> None:
        self.record.reruns += 1
        self.record.reasons.append(reason)

    def measure_time_scale(self) -> float:
        """Return this machine's factor on CPU limits; the calibration learns the times."""
        # Not for the factor, but as the best time against which slowdowns are measured.
        self._time(timing.MEMORY_PROGRAM)
        return timing.measure_scale(lambda: self._time(timing.PROGRAM))

    def _time(self, code: str) -> float:
        """Run a fixed program, note its CPU seconds in the calibration, and return them."""
        limits = limits_for(_CALIBRATION_SECONDS, _CALIBRATION_MIB, OUTPUT_MIB)
        with contextlib.closing(LoadedProgram(code)) as program:
            run = self.use(SandboxKind(), lambda sandbox: sandbox.run(program.task(b""), limits))
        self._calibration.learn(code, run.cpu_seconds)
        return run.cpu_seconds

    def _measure_slowdown(self, run: Run) -> float:
        """Return the factor by which neighbours slow a program like this one now."""
        measure = self._calibration.measure
        slowdown = measure(timing.PROGRAM, lambda: self._time(timing.PROGRAM))
        if run.result.memory_kib < timing.LARGE_KIB:
            return slowdown
        in_memory = measure(timing.MEMORY_PROGRAM, lambda: self._time(timing.MEMORY_PROGRAM))
        return max(slowdown, in_memory)

    def _run_with_raised_limits(
        self,
        kind: SandboxKind,
        task: TestTask,
        prepared: PreparedProblem,
        batch: ProcessBatch | None,
    ) -> tuple[Run, float]:
        """Run a test with limits raised by the recent slowdown; return the run and that factor.

        If it runs out of CPU time, and the slowdown turns out to be larger now, it is run once
        more. This happens to one test of a program at most, as an endless one must not cost many
        limits. An only attempt is not run once more, so its limits are raised by the largest factor
        from the start.
        """
        limits = prepared.limits
        with self.slot.shared():
            slowdown = self._calibration.slowdown
            if self._is_only_attempt:
                slowdown = timing.MAX_SLOWDOWN
            run = self._run(kind, task, limits, slowdown, batch)
            may_rerun = not (self.has_rerun or self._is_only_attempt)
            if run.result.expired != Expiry.CPU or not may_rerun:
                return run, slowdown
            measured = self._measure_slowdown(run)
            if not timing.explains_expiry(measured, limits, run.cpu_seconds):
                return run, slowdown
            # Once for each program: an endless one must not cost many limits.
            self.has_rerun = True
            self._note_rerun(
                f"stopped after {run.cpu_seconds:.2f} s, "
                f"and neighbours slow it {measured:.2f} times"
            )
            again = self._run(kind, task, limits, measured)
            # A quicker one may have gained by the other attempt.
            is_as_slow = again.cpu_seconds >= run.cpu_seconds
            discarded = DiscardedRun(Repeat.NEIGHBOURS, 0.0 if is_as_slow else math.inf)
            self.discarded.append(discarded)
            return again, measured

    def _run(
        self,
        kind: SandboxKind,
        task: TestTask,
        limits: Limits,
        slowdown: float,
        batch: ProcessBatch | None = None,
    ) -> Run:
        raised = timing.raise_limits(limits, slowdown)

        def run(sandbox: Sandbox) -> Run:
            try:
                if task.run_in is not None:
                    return task.run_in(sandbox, raised)
                return sandbox.run(task, raised, batch)
            except DiskFull as full:
                if self._is_only_attempt:
                    raise EvaluatorFault(str(full)) from None
                raise

        num_deaths = self.record.retries
        try:
            return self.use(kind, run)
        finally:
            # Where isolation is degraded a program may be the cause. An only attempt is one of a
            # program that has been doubted already.
            doubted_seconds = 0.0 if self._is_only_attempt else math.inf
            discarded = DiscardedRun(Repeat.SANDBOX_DIED, doubted_seconds)
            self.discarded += [discarded] * (self.record.retries - num_deaths)


def _is_killed_from_outside(run: Run, prepared: PreparedProblem) -> bool:
    """Whether a test was killed by none of its limits.

    It may have done so itself, or the machine did, as when memory ran out.
    """
    if run.result.signal != signal.SIGKILL:
        return False
    failure = prepared.find_failure(run)
    return failure is not None and failure[0] is Outcome.RUNTIME_ERROR


def _end_of(run: Run) -> tuple[object, ...]:
    """Return what a run shows besides its time: exit code, signal and output."""
    return run.result.exit_code, run.result.signal, run.stdout, run.wire
