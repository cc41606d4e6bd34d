"""The reference judge: the policy with the plainest executor there is.

Each program has a sandbox of its own that no other program sees, and each test a process. Nothing
is cached, shared or run again, and no time is corrected. The judge must agree with it:
`tests/judge/test_reference.py` holds it against this one on a sample, `benchmarks/differential.py`
on thousands of programs.
"""

from __future__ import annotations

import contextlib

from microcoder import EvaluatorFault, Problem, Program, Verdict
from microcoder.judge.languages.packages import (
    STANDARD,
    ProvidedPackages,
    load_profile,
    provide_packages,
)
from microcoder.judge.run.builds import (
    describe_runtime,
    load_built,
    require_compiler,
    run_compiler,
)
from microcoder.judge.run.conversations import converse
from microcoder.judge.run.executor import Executable, Leader, Observation, Run, Source, Task
from microcoder.judge.run.interactions import interact
from microcoder.judge.run.options import StopRule
from microcoder.judge.run.policy import Rules, judge_program
from microcoder.judge.run.supervisor import Loaded, LoadedProgram, Sandbox
from microcoder.judge.run.timing import Limits
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.judge.sandbox.protocol import NO_RUNTIME, STDIN_FILE

_SCRATCH_MIB = 256
"""What a program may write to its folder."""


def judge_by_reference(
    program: Program,
    problem: Problem,
    *,
    stop: StopRule = "never",
    time_scale: float = 1.0,
    packages: str = STANDARD,
) -> Verdict:
    """Judge a program by the policy alone; slow.

    Args:
        program: what to judge.
        problem: its tests, limits and checker.
        stop: after which test the others are skipped: the first failing one, the first at a limit,
            none.
        time_scale: factor on the limits of CPU time.
        packages: third-party packages that programs may import, as for `Judge`.

    Raises:
        DataError: the problem cannot be judged, such as tests that do not fit its function.
    """
    prepared = PreparedProblem(problem, time_scale=time_scale)
    executor = PlainExecutor(provide_packages(load_profile(packages)), time_scale)
    return judge_program(program, prepared, executor, Rules(stop)).verdict


class PlainExecutor:
    """Loads each program into a sandbox of its own (see `executor.Executor`)."""

    def __init__(self, packages: ProvidedPackages, time_scale: float = 1.0) -> None:
        """Start nothing yet.

        Args:
            packages: third-party packages that programs may import.
            time_scale: factor on the compiler's limit of CPU time.
        """
        self._provided = packages
        self._time_scale = time_scale
        self.packages = tuple(package.name for package in packages.profile.packages)
        self._level = ""

    @property
    def level(self) -> str:
        """Isolation of the program that ran last; empty before the first."""
        return self._level

    def load(self, opened: contextlib.ExitStack, source: Source) -> PlainProgram | str:
        """Return a program ready to run, or the compiler's message."""
        trouble = source.language.find_problem()
        if trouble:
            raise EvaluatorFault(trouble)
        loaded = self._build(source) if source.language.is_built else self._interpret(source)
        if isinstance(loaded, str):
            return loaded
        # Closed in reverse: the sandbox ends before what it runs is freed.
        opened.enter_context(contextlib.closing(loaded))
        sandbox = self._start(source)
        opened.enter_context(contextlib.closing(sandbox))
        sandbox.isolation.require(unsafe=False)
        self._level = sandbox.isolation.level
        return PlainProgram(loaded, sandbox, source)

    def _interpret(self, source: Source) -> Loaded:
        # Tests that are programs may import packages, too.
        for code in (source.code, *source.beside):
            missing = self._provided.find_problem(code, is_function=source.is_function)
            if missing:
                raise EvaluatorFault(missing)
        return LoadedProgram(source.code)

    def _build(self, source: Source) -> Loaded | str:
        """Return a program that is built first, or the compiler's message."""
        language = source.language
        build_seconds = language.build_seconds * self._time_scale
        limited = language.model_copy(update={"build_seconds": build_seconds})
        # In a sandbox of its own: compilers read files that programs must not see.
        compiling = Sandbox(toolchain=language.find_readable(), scratch_mib=_SCRATCH_MIB)
        with contextlib.closing(compiling):
            command = limited.build_command(require_compiler(language))
            build = run_compiler(compiling, limited, command, source.code)
        if not build.is_built:
            return build.message
        return load_built(language, build.binary, source.memory_mib)

    def _start(self, source: Source) -> Sandbox:
        """Start a sandbox for a program."""
        language = source.language
        if language.is_built:
            runtime = describe_runtime(language) if language.runtime else NO_RUNTIME
            return Sandbox(runtime=runtime, scratch_mib=_SCRATCH_MIB)
        folder = self._provided.folder
        preload = self._provided.profile.preload_for(source.code) if folder else ()
        return Sandbox(packages=folder, preload=preload, scratch_mib=_SCRATCH_MIB)


class PlainProgram:
    """A program in a sandbox of its own (see `executor.Executable`)."""

    def __init__(self, loaded: Loaded, sandbox: Sandbox, source: Source) -> None:
        """Take over what was loaded and started."""
        self._loaded = loaded
        self._sandbox = sandbox
        self._opens_streams = "/dev/" in source.code or "/proc/" in source.code

    def run(self, task: Task, limits: Limits, *, is_final: bool = False) -> Observation:
        """Run a test once, whatever comes of it."""
        try:
            return Observation(self.run_once(task, limits))
        except (EvaluatorFault, OSError) as fault:
            return Observation(None, fault=str(fault))

    def run_once(self, task: Task, limits: Limits) -> Run:
        """Run the program once."""
        files = dict(task.files)
        # It may open its standard streams by name, and so is given files for them.
        if self._opens_streams:
            files.setdefault(STDIN_FILE, task.stdin)
        test = self._loaded.task_of(task, files, has_named_streams=self._opens_streams)
        return self._sandbox.run(test, limits)

    def converse(
        self,
        test: Executable,
        settings: bytes,
        limits: Limits,
        test_limits: Limits,
        *,
        is_final: bool = False,
    ) -> Observation:
        """Run the program with a test that calls it, once, whatever comes of it."""
        assert isinstance(test, PlainProgram)
        try:
            run = converse(
                self._sandbox,
                test._sandbox,
                self._loaded,
                test._loaded,
                settings=settings,
                limits=limits,
                test_limits=test_limits,
            )
            return Observation(run)
        except (EvaluatorFault, OSError) as fault:
            return Observation(None, fault=str(fault))

    def interact(
        self,
        task: Task,
        leader: Leader,
        limits: Limits,
        *,
        is_final: bool = False,
    ) -> Observation:
        """Run the program with an interactor, once, whatever comes of it."""
        interactor = leader.program
        assert isinstance(interactor, PlainProgram)
        try:
            run = interact(
                self._sandbox,
                interactor._sandbox,
                self._loaded,
                interactor._loaded,
                task=task,
                leader=leader,
                limits=limits,
            )
            return Observation(run)
        except (EvaluatorFault, OSError) as fault:
            return Observation(None, fault=str(fault))

    def share(self, task: Task, inputs: object, limits: Limits) -> None:
        """Share nothing."""

    def rejection(self) -> str | None:
        """Return the compiler's message, which is known after a run; None if it compiles."""
        return self._loaded.rejection()
