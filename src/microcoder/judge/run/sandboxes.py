"""One worker's sandboxes: a plain one, and others on demand, such as one that compiles."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.languages import find_language
from microcoder.judge.languages.packages import ProvidedPackages, load_profile, provide_packages
from microcoder.judge.run import timing
from microcoder.judge.run.builds import describe_runtime, find_toolchain
from microcoder.judge.run.counts import Statistics
from microcoder.judge.run.executor import Run
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.slots import Slot
from microcoder.judge.run.supervisor import (
    LoadedProgram,
    Owner,
    Sandbox,
    SandboxDied,
)
from microcoder.judge.run.timing import Calibration, limits_for
from microcoder.judge.run.verdicts import OUTPUT_MIB
from microcoder.judge.sandbox.protocol import NO_RUNTIME

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
        self.calibration = calibration or Calibration()
        """What is known of this machine's speed."""
        self._started: dict[SandboxKind, Sandbox] = {}
        self._is_closed = False
        self.level = ""
        """Level of isolation of the latest sandbox, such as `full`."""
        self.record = Statistics()
        """Counts of the worker."""

    def use(self, kind: SandboxKind, action: Callable[[Sandbox], T]) -> T:
        """Return `action(sandbox)`; if the sandbox dies once more, with a fresh one."""
        try:
            return self.use_once(kind, action)
        except (SandboxDied, OSError):
            if self._is_closed:
                raise
        self.record.retries += 1
        return self.use_once(kind, action)

    def use_once(self, kind: SandboxKind, action: Callable[[Sandbox], T]) -> T:
        """Return `action(sandbox)`; a sandbox in which anything goes wrong is ended."""
        with self.entered(kind) as sandbox:
            return action(sandbox)

    @contextlib.contextmanager
    def entered(self, kind: SandboxKind) -> Iterator[Sandbox]:
        """Enter a sandbox of a kind; one in which anything goes wrong is ended."""
        sandbox = self._find(kind)
        try:
            yield sandbox
        # Whoever takes no more of a generator has done no harm.
        except GeneratorExit:
            raise
        except BaseException:
            # Whatever went wrong, nothing is known about the state of the sandbox.
            self._discard(kind)
            raise

    @property
    def is_closed(self) -> bool:
        """Whether the sandboxes were ended for good."""
        return self._is_closed

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
        self.calibration.learn(code, run.cpu_seconds)
        return run.cpu_seconds

    def measure_slowdown(self, run: Run) -> float:
        """Return the factor by which neighbours slow a program like this one now."""
        measure = self.calibration.measure
        slowdown = measure(timing.PROGRAM, lambda: self._time(timing.PROGRAM))
        if run.result.memory_kib < timing.LARGE_KIB:
            return slowdown
        in_memory = measure(timing.MEMORY_PROGRAM, lambda: self._time(timing.MEMORY_PROGRAM))
        return max(slowdown, in_memory)
