"""The executor of a worker: programs in its own sandboxes, which are warm and serve many of them.

Builds are kept. The CPU time of tests is corrected for neighbours (other load on the machine), and
a run that says too little is repeated; which runs those are, and what may come of it, says
`Excuse`.
"""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Repeat
from microcoder.judge.languages import Language
from microcoder.judge.run import timing
from microcoder.judge.run.builds import Build, Builds, build_program, load_built
from microcoder.judge.run.conversations import converse
from microcoder.judge.run.executor import (
    Excuse,
    Executable,
    Leader,
    Observation,
    Run,
    Source,
    Task,
)
from microcoder.judge.run.interactions import interact
from microcoder.judge.run.sandboxes import Sandboxes, SandboxKind
from microcoder.judge.run.sharing import SharedInSandbox
from microcoder.judge.run.supervisor import (
    DiskFull,
    Loaded,
    LoadedProgram,
    Sandbox,
    SandboxDied,
    TestTask,
)
from microcoder.judge.run.timing import Limits
from microcoder.judge.run.verdicts import find_failure
from microcoder.judge.sandbox.protocol import STDERR_FILE, STDIN_FILE, STDOUT_FILE, Expiry

NAMES_INPUT = re.compile(r"/dev/(?!null|zero|u?random|stdout|stderr)|/proc/")
"""Programs that may open their stdin by name (`/dev/stdin`, `/proc/self/fd/0`).

A private root has no `/proc`, so streams in anonymous memory have no name there. Such a program is
given a copy of its input as a file.
"""
NAMES_OUTPUT = re.compile(r"/dev/(?!null|zero|u?random|stdin)|/proc/")
"""Programs that may open their stdout or stderr by name: they are given files for these streams."""


RunIn = Callable[[Sandbox, Limits], Run]
"""Runs a test in a sandbox, within limits."""


class LocalExecutor:
    """Loads programs into a worker's sandboxes."""

    def __init__(self, sandboxes: Sandboxes, builds: Builds) -> None:
        """Use these sandboxes, and builds that may be common to several workers."""
        self._sandboxes = sandboxes
        self.builds = builds
        """Keeps what was built."""
        profile = sandboxes.packages.profile
        self.packages = tuple(package.name for package in profile.packages)

    @property
    def level(self) -> str:
        """Isolation of the program that ran last, such as `full`; empty before the first."""
        return self._sandboxes.level

    def load(self, opened: contextlib.ExitStack, source: Source) -> LocalProgram | str:
        """Return a program ready to run, or the compiler's message (see `Executor.load`)."""
        language = source.language
        if not language.is_built:
            self._check_imports(source)
            kind = SandboxKind(self._find_preload(source))
            loaded: Loaded = LoadedProgram(source.code)
        else:
            # Kept, so that its tests and equal programs are built once.
            build = self.builds.get(language, source.code, lambda: self._build(source))
            if not build.is_built:
                return build.message
            kind = SandboxKind(runs=language.name if language.runtime else "")
            loaded = load_built(language, build.binary, source.memory_mib)
        opened.enter_context(contextlib.closing(loaded))
        return LocalProgram(self._sandboxes, loaded, source, kind)

    def _find_preload(self, source: Source) -> tuple[str, ...]:
        """Return the modules that are loaded before an interpreted program starts."""
        packages = self._sandboxes.packages
        return packages.profile.preload_for(source.code) if packages.folder else ()

    def _check_imports(self, source: Source) -> None:
        """Raise EvaluatorFault if an interpreter, or a promised package, is not installed."""
        trouble = source.language.find_problem()
        if trouble:
            raise EvaluatorFault(trouble)
        # Tests that are programs may import packages, too.
        for code in (source.code, *source.beside):
            problem = self._sandboxes.packages.find_problem(code, is_function=source.is_function)
            if problem:
                self._sandboxes.record.missing_packages += 1
                raise EvaluatorFault(problem)

    def _build(self, source: Source) -> Build:
        kind = SandboxKind(builds=source.language.name)
        with self._sandboxes.slot.shared():
            limited = self.builds.limit(source.language)
            headers = self.builds.provide(limited, source.code)
            build = partial(_build_in, limited, source.code, headers)
            return self._sandboxes.use(kind, build)


def _build_in(language: Language, code: str, headers: str, sandbox: Sandbox) -> Build:
    return build_program(sandbox, language, code, headers)


@dataclass(slots=True)
class _Told:
    """What is told of one test besides the run that stands."""

    excuses: list[Excuse] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class LocalProgram:
    """A program that is loaded, and the sandboxes that run it (see `executor.Executable`)."""

    def __init__(
        self, sandboxes: Sandboxes, loaded: Loaded, source: Source, kind: SandboxKind
    ) -> None:
        """Take a program and the kind of its sandbox; nothing is started yet."""
        self._sandboxes = sandboxes
        self._loaded = loaded
        self._memory_mib = source.memory_mib + source.language.startup_memory_mib
        self._reads_by_name = bool(NAMES_INPUT.search(source.code))
        self._writes_by_name = bool(NAMES_OUTPUT.search(source.code))
        has_files = source.has_files or self._reads_by_name or self._writes_by_name
        self._kind = replace(kind, is_large=has_files, is_partner=source.is_partner)
        self._has_rerun = False
        """Whether a test was run again since neighbours slowed it: once for each program, as an
        endless one must not cost many limits."""

    def rejection(self) -> str | None:
        """Return the compiler's message, which is known after a run; None if it compiles."""
        return self._loaded.rejection()

    def share(self, task: Task, inputs: Sequence[bytes], limits: Limits) -> SharedInSandbox | None:
        """Return the runs of a task on several inputs that share processes.

        None for what was built, and for a program whose streams are files in the folder of one
        test.
        """
        is_named = self._reads_by_name or self._writes_by_name
        if is_named or not isinstance(self._loaded, LoadedProgram):
            return None
        return SharedInSandbox(self._enter, self._test_of(task), inputs, limits)

    @contextlib.contextmanager
    def _enter(self) -> Iterator[Sandbox]:
        with self._sandboxes.slot.shared(), self._sandboxes.entered(self._kind) as sandbox:
            yield sandbox

    def run_once(self, task: Task, limits: Limits) -> Run:
        """Run the program without correcting its CPU time.

        It is run once more if it was killed by none of its limits.
        """
        test = self._test_of(task)
        with self._sandboxes.slot.shared():
            run = self._sandboxes.use(self._kind, lambda sandbox: sandbox.run(test, limits))
            if not _is_killed(run):
                return run
            self._sandboxes.record.retries += 1
            return self._sandboxes.use(self._kind, lambda sandbox: sandbox.run(test, limits))

    def run(self, task: Task, limits: Limits, *, is_final: bool = False) -> Observation:
        """Run a test; of its CPU time is told what it takes on an idle machine."""

        def run_alone(sandbox: Sandbox, raised: Limits) -> Run:
            return sandbox.run(self._test_of(task), raised)

        return self._observe(run_alone, limits, is_final)

    def converse(
        self,
        test: Executable,
        settings: bytes,
        limits: Limits,
        test_limits: Limits,
        *,
        is_final: bool = False,
    ) -> Observation:
        """Run the program with a test that calls it, in another sandbox of the same worker."""
        assert isinstance(test, LocalProgram)

        def run_both(answering: Sandbox, raised: Limits) -> Run:
            # Where anything goes wrong in one sandbox, both begin anew.
            with self._sandboxes.entered(test._kind) as asking:
                return converse(
                    answering,
                    asking,
                    self._loaded,
                    test._loaded,
                    settings=settings,
                    limits=raised,
                    test_limits=test_limits,
                )

        return self._observe(run_both, limits, is_final)

    def interact(
        self,
        task: Task,
        leader: Leader,
        limits: Limits,
        *,
        is_final: bool = False,
    ) -> Observation:
        """Run the program with an interactor, in another sandbox of the same worker."""
        interactor = leader.program
        assert isinstance(interactor, LocalProgram)

        def run_both(answering: Sandbox, raised: Limits) -> Run:
            with self._sandboxes.entered(interactor._kind) as leading:
                return interact(
                    answering,
                    leading,
                    self._loaded,
                    interactor._loaded,
                    task=task,
                    leader=leader,
                    limits=raised,
                )

        return self._observe(run_both, limits, is_final)

    def _observe(self, run_in: RunIn, limits: Limits, is_final: bool) -> Observation:
        """Return what is seen of a test that is run by `run_in`."""
        told = _Told()
        try:
            run = self._run_until_it_counts(run_in, limits, told, is_final=is_final)
        except (EvaluatorFault, OSError) as fault:
            return Observation(None, tuple(told.excuses), tuple(told.notes), str(fault))
        return Observation(run, tuple(told.excuses), (*told.notes, *run.notes))

    def _run_until_it_counts(
        self, run_in: RunIn, limits: Limits, told: _Told, *, is_final: bool
    ) -> Run:
        """Run a test, and again if the first run says too little; return the run that stands."""
        run = self._run_with_room(run_in, limits, told, is_final=is_final)
        if timing.is_close(run.result, limits):
            return self._time_again(run_in, limits, run, told)
        if is_final or not _is_killed_from_outside(run, limits, self._memory_mib):
            return run
        # It may have done so itself, or the machine did, as when memory ran out.
        self._sandboxes.record.retries += 1
        told.excuses.append(Excuse(Repeat.KILLED, may_help=True))
        with self._sandboxes.slot.shared():
            return self._run_raised(run_in, limits, timing.DEAD_BAND, told, is_final=is_final)

    def _time_again(self, run_in: RunIn, limits: Limits, run: Run, told: _Told) -> Run:
        """Run a test alone that ended a little beyond its limit; return the faster run."""
        self._sandboxes.record.reruns += 1
        told.notes.append(
            f"it ended by itself after {run.cpu_seconds:.2f} s of CPU time, "
            "so it was timed again alone"
        )
        # Alone, other programs of this judge cost it nothing; what others cost is divided out.
        with self._sandboxes.slot.alone():
            again = self._run_raised(run_in, limits, timing.MAX_SLOWDOWN, told, is_final=True)
            slowdown = self._sandboxes.measure_slowdown(again)
            cpu_us = int(again.result.cpu_us / slowdown)
            again = replace(again, result=again.result._replace(cpu_us=cpu_us))
        told.excuses.append(Excuse(Repeat.NEAR_LIMIT, may_help=False))
        # Another output would be another attempt.
        if _end_of(run) != _end_of(again):
            return run
        return again if again.cpu_seconds < run.cpu_seconds else run

    def _run_with_room(
        self,
        run_in: RunIn,
        limits: Limits,
        told: _Told,
        *,
        is_final: bool,
    ) -> Run:
        """Run a test with a little more CPU time than its limit.

        If it takes all of that, and neighbours may be why, it is run once more with as much as they
        may cost. A final run is not, so it has that from the start.
        """
        with self._sandboxes.slot.shared():
            factor = timing.choose_factor(self._sandboxes.calibration.slowdown)
            if is_final:
                factor = timing.MAX_SLOWDOWN
            run = self._run_raised(run_in, limits, factor, told, is_final=is_final)
            if run.result.expired != Expiry.CPU or self._has_rerun or is_final:
                return run
            measured = self._sandboxes.measure_slowdown(run)
            if not timing.explains_expiry(measured, limits, run.cpu_seconds):
                return run
            self._has_rerun = True
            self._sandboxes.record.reruns += 1
            told.notes.append(
                f"stopped after {run.cpu_seconds:.2f} s, "
                f"and neighbours slow it {measured:.2f} times"
            )
            factor = timing.MAX_SLOWDOWN
            again = self._run_raised(run_in, limits, factor, told, is_final=is_final)
            # A quicker one may have gained by the other attempt.
            is_quicker = again.cpu_seconds < run.cpu_seconds
            told.excuses.append(Excuse(Repeat.NEIGHBOURS, may_help=is_quicker))
            return again

    def _run_raised(
        self, run_in: RunIn, limits: Limits, factor: float, told: _Told, *, is_final: bool
    ) -> Run:
        """Run a test within limits raised by a factor; once more if the sandbox dies."""
        raised = timing.raise_limits(limits, factor)
        try:
            return self._sandboxes.use_once(self._kind, lambda sandbox: run_in(sandbox, raised))
        except DiskFull as full:
            if is_final:
                raise EvaluatorFault(str(full)) from None
        except (SandboxDied, OSError):
            if self._sandboxes.is_closed:
                raise
        # Where isolation is degraded a program may be the cause. A final run is one of a program
        # that has been doubted already.
        self._sandboxes.record.retries += 1
        told.excuses.append(Excuse(Repeat.SANDBOX_DIED, may_help=not is_final))
        return self._sandboxes.use_once(self._kind, lambda sandbox: run_in(sandbox, raised))

    def _test_of(self, task: Task) -> TestTask:
        """Return a task in the form that a sandbox takes, with files for streams that it names."""
        files = dict(task.files)
        # A run's own file of that name goes before the stream.
        taken = {name.partition("/")[0] for name in files}
        if self._reads_by_name and STDIN_FILE not in taken:
            files[STDIN_FILE] = task.stdin
        is_free = taken.isdisjoint((STDOUT_FILE, STDERR_FILE))
        has_named_streams = self._writes_by_name and is_free
        return self._loaded.task_of(task, files, has_named_streams=has_named_streams)


def _is_killed_from_outside(run: Run, limits: Limits, memory_mib: int) -> bool:
    """Whether a test was killed by none of its limits.

    It may have done so itself, or the machine did, as when memory ran out. In a conversation this
    holds for both sides.
    """
    if run.test is not None and _is_killed(run.test):
        return True
    if run.result.signal != signal.SIGKILL:
        return False
    failure = find_failure(run, limits, memory_mib)
    return failure is not None and failure[0] is Outcome.RUNTIME_ERROR


def _is_killed(run: Run) -> bool:
    """Whether a process was killed, and by no limit that ends it from outside."""
    return run.result.signal == signal.SIGKILL and run.result.expired == Expiry.FINISHED


def _end_of(run: Run) -> tuple[object, ...]:
    """Return what a run shows besides its time: exit code, signal and output.

    Of its test or interactor also what that says by its end.
    """
    own = (run.result.exit_code, run.result.signal, run.stdout, run.wire)
    if run.test is None:
        return own
    # What the two said is not kept: an interactor's end alone tells two attempts apart.
    return (*own, run.test.result.exit_code, run.test.result.signal, run.test.wire)
