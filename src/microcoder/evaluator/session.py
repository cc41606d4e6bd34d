"""Judging one program at a time: a worker's sandboxes, the stop rules, the one retry after a fault."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Literal, TypedDict, TypeVar

from microcoder.errors import EvaluatorFault
from microcoder.evaluator import calibration, checkers, executions, idleness, verdicts
from microcoder.evaluator.builds import Build, BuildCache, build_program, require_compiler
from microcoder.evaluator.calibration import LARGE_KIB, MEMORY_PROGRAM, PROGRAM, Pace
from microcoder.evaluator.checkers import CheckerFailed
from microcoder.evaluator.compare import Comparison
from microcoder.evaluator.executions import Execution, Invocation
from microcoder.evaluator.inputs import InputShelf
from microcoder.evaluator.interpreter import CURRENT_VERSION, find_interpreter
from microcoder.evaluator.isolation import Isolation
from microcoder.evaluator.languages import Language, find_language, language_of
from microcoder.evaluator.named_streams import names_input, names_output
from microcoder.evaluator.package_folders import PackageShelf
from microcoder.evaluator.packages import STANDARD, load_profile
from microcoder.evaluator.preparation import OUTPUT_MIB, PreparedProblem, PreparedTest, limits_for
from microcoder.evaluator.sandbox.layers import LAYERS
from microcoder.evaluator.sandbox.protocol import CPU_EXPIRED, STDERR_FILE, STDIN_FILE, STDOUT_FILE
from microcoder.evaluator.schedule import Gate
from microcoder.evaluator.supervisor import Limits, LoadedBinary, LoadedProgram, Run, Sandbox, SandboxDied, Task
from microcoder.types import Checker, Outcome, Program, TestResult, Verdict

StopRule = Literal["first_failure", "first_limit", "never"]
"""When a program's remaining tests are left out.

`first_failure`: after its first failing test; `first_limit`: after a test that hit a limit, so that an endless
program costs one limit; `never`.
"""

STOP_RULES: tuple[StopRule, ...] = ("first_failure", "first_limit", "never")

_LIMITS = (
    Outcome.TIME_LIMIT,
    Outcome.MEMORY_LIMIT,
    Outcome.OUTPUT_LIMIT,
    Outcome.PROCESS_LIMIT,
    Outcome.SANDBOX_FAULT,
)
_GRACE = 1.1
"""A test is stopped this far beyond its CPU limit, further where neighbours slow it; one that ends in between is run
again alone."""
_MORE_GRACE = 1.05
"""A test that ran out of CPU time is run again where neighbours turn out to cost so much more than was thought."""
_MAX_FAILED_STARTS = 3
_REST_SECONDS = 10.0
"""After so many failed starts no other is tried for a while: programs are told at once."""
_CALIBRATION_SECONDS, _CALIBRATION_MIB = 10.0, 256

_SCRATCH_MIB, _LARGE_SCRATCH_MIB = 16, 256
"""For builds, for the files that a checker or a run is given, and for a large input that is read as a file."""
_LARGE_STDIN_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Kind:
    """What a sandbox is like; runs that need the same kind share one."""

    version: str = CURRENT_VERSION
    """Of Python."""
    preload: tuple[str, ...] = ()
    """Packages that are loaded before the program starts."""
    is_large: bool = False
    """Whether it has room for files."""
    builds: str = ""
    """The language that it compiles; empty for one that runs programs."""


_CHECKS = Kind(is_large=True)

Loaded = LoadedProgram | LoadedBinary
T = TypeVar("T")


class _Common(TypedDict):
    """What all sandboxes of a session are started with."""

    layers: Collection[str]
    waits: idleness.Counts
    nice: int


class Abandoned(Exception):
    """Nobody waits for this verdict any more."""


class Session:
    """One worker's sandboxes: a plain one, and others once they are asked for, such as one that compiles."""

    def __init__(
        self,
        *,
        layers: Collection[str] = LAYERS,
        unsafe: bool = False,
        gate: Gate | None = None,
        builds: BuildCache | None = None,
        inputs: InputShelf | None = None,
        pace: Pace | None = None,
        nice: int = 0,
        packages: PackageShelf | None = None,
    ) -> None:
        self._packages = packages or PackageShelf(load_profile(STANDARD))
        self._layers = layers
        self._unsafe = unsafe
        self._gate = gate or Gate()
        self._builds = builds or BuildCache()
        self._inputs = inputs or InputShelf()
        self._pace = pace or Pace()
        self._nice = nice
        self._has_rerun = False
        self._sandboxes: dict[Kind, Sandbox] = {}
        self._failed_starts = 0
        self._start_failure = ""
        self._rests_until = 0.0
        self._has_held = False
        self._is_closed = False
        self._level = ""
        self.call_stack = ""
        """What the plain sandbox says of the call stack, see `Sandbox`."""
        self.reruns = 0
        """Tests that were run again because they ended close to their time limit, or beyond it on a busy machine."""
        self.waits = idleness.Counts()
        """What became of tests that reached their wall limit."""
        self.retries = 0
        """Tests and builds that were run again because the sandbox died."""

    def open(self) -> Isolation:
        """Start the plain sandbox.

        Raises:
            EvaluatorFault: it does not start, or does not hold.
        """
        sandbox = self._sandbox(Kind())
        self.call_stack = sandbox.call_stack
        return sandbox.isolation

    def measure_time_scale(self) -> float:
        """Return what CPU limits are to be multiplied by on this machine, see `calibration`, and learn its pace.

        Raises:
            EvaluatorFault: the sandbox does not start.
            SandboxDied: it broke twice.
        """
        self._pace.learn(MEMORY_PROGRAM, self._time(MEMORY_PROGRAM))

        def measure() -> float:
            seconds = self._time(PROGRAM)
            self._pace.learn(PROGRAM, seconds)
            return seconds

        return calibration.measure_scale(measure)

    def _time(self, code: str) -> float:
        """Return the CPU seconds of a fixed program."""
        limits = limits_for(_CALIBRATION_SECONDS, _CALIBRATION_MIB, OUTPUT_MIB)
        with contextlib.closing(LoadedProgram(code)) as program:
            return self._with_one_retry(Kind(), lambda sandbox: sandbox.run(program.task(b""), limits)).cpu_seconds

    def _measure_slowdown(self, run: Run) -> float:
        """Return by how much neighbours slow a program like this now."""
        slowdown = self._pace.measure(PROGRAM, lambda: self._time(PROGRAM))
        if run.result.memory_kib < LARGE_KIB:
            return slowdown
        return max(slowdown, self._pace.measure(MEMORY_PROGRAM, lambda: self._time(MEMORY_PROGRAM)))

    def judge(
        self,
        program: Program,
        prepared: PreparedProblem,
        stop: StopRule,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Verdict:
        """Judge one program; a broken sandbox is a `SANDBOX_FAULT`, not an exception.

        Raises:
            Abandoned: before one of the tests, nobody wanted the verdict any more.
        """
        total = len(prepared.tests)
        if program.code is None:
            return Verdict(Outcome.NO_CODE, (), total, program.reason)
        results: list[TestResult] = []
        self._has_rerun = False
        try:
            checker = prepared.problem.checker
            with contextlib.ExitStack() as opened:
                checking = None
                if checker.type == "program":
                    checking, message = self._load(opened, find_language(checker.language), str(checker.code))
                    if checking is None:
                        return self._conclude([verdicts.checker_fault(f"was not built: {message}")], total)
                language, fn_name = language_of(prepared.problem), prepared.problem.fn_name
                loaded, message = self._load(opened, language, program.code, is_function=fn_name is not None)
                if loaded is None:
                    return self._conclude([verdicts.build_error(message)], total)
                problem = prepared.problem
                reads_by_name, writes_by_name = names_input(program.code), names_output(program.code)
                largest = max(len(test.stdin) for test in prepared.tests)
                is_large = writes_by_name or (reads_by_name and largest > _LARGE_STDIN_BYTES)
                kind = self._kind(language, program.code, is_large=is_large)
                for test in prepared.tests:
                    if not is_wanted():
                        raise Abandoned
                    task = loaded.task(
                        test.stdin,
                        fn_name=fn_name,
                        call=prepared.call_message,
                        files={STDIN_FILE: test.stdin} if reads_by_name else None,
                        dialect=problem.dialect,
                        has_named_streams=writes_by_name,
                    )
                    results.append(self._judge_test(kind, loaded, task, prepared, test, checking))
                    if _stops_after(results[-1].verdict, stop):
                        break
        except (SandboxDied, EvaluatorFault, OSError) as fault:
            results.append(verdicts.sandbox_fault(str(fault)))
        return self._conclude(results, total)

    def _conclude(self, results: list[TestResult], total: int) -> Verdict:
        """The first failing test decides."""
        failed = next((n for n, result in enumerate(results) if result.verdict is not Outcome.ACCEPTED), None)
        if failed is None:
            return Verdict(Outcome.ACCEPTED, tuple(results), total, isolation=self._level)
        detail = f"test {failed + 1}: {results[failed].detail}".rstrip(": ")
        return Verdict(results[failed].verdict, tuple(results), total, detail, self._level)

    def run(self, invocation: Invocation, time_scale: float) -> Execution:
        """Run a program once and return what it did; a broken sandbox is a `SANDBOX_FAULT`, not an exception."""
        code = str(invocation.program.code)
        limits = invocation.limits(time_scale)
        try:
            with contextlib.ExitStack() as opened:
                language = find_language(invocation.program.language)
                loaded, message = self._load(opened, language, code)
                if loaded is None:
                    return executions.not_built(message, self._level)
                files = dict(invocation.files)
                if names_input(code) and f"{STDIN_FILE}/" not in files:
                    files.setdefault(STDIN_FILE, invocation.stdin)
                taken = {name.rstrip("/") for name in files} & {STDOUT_FILE, STDERR_FILE}
                writes_by_name = names_output(code) and not taken
                task = loaded.task(
                    invocation.stdin,
                    arguments=invocation.arguments,
                    files=files,
                    has_named_streams=writes_by_name,
                )
                task = replace(task, int_digits=invocation.int_digits)
                is_large_input = bool(files) and len(invocation.stdin) > _LARGE_STDIN_BYTES
                is_large = bool(invocation.files) or writes_by_name or is_large_input
                kind = self._kind(language, code, is_large=is_large)
                with self._gate.shared():
                    run = self._with_one_retry(kind, lambda sandbox: sandbox.run(task, limits))
                    if _was_killed(run, verdicts.find_failure(run, limits, invocation.memory_limit_mib, "")):
                        self.retries += 1
                        run = self._with_one_retry(kind, lambda sandbox: sandbox.run(task, limits))
                return executions.record_run(run, invocation, limits, loaded.rejection(), self._level)
        except (SandboxDied, EvaluatorFault, OSError) as error:
            return executions.fault(str(error))

    def renew(self) -> None:
        """End the sandboxes, so that the next program starts fresh ones; also after starts that failed."""
        for kind in list(self._sandboxes):
            self._discard(kind)
        self._failed_starts = 0

    def interrupt(self) -> None:
        """End the sandboxes from another thread; what is being judged ends as a fault."""
        self._is_closed = True
        for sandbox in list(self._sandboxes.values()):
            sandbox.interrupt()

    def close(self) -> None:
        """End the sandboxes; only from the thread that opened them."""
        self._is_closed = True
        for sandbox in self._sandboxes.values():
            sandbox.close()
        self._sandboxes.clear()

    def _load(
        self, opened: contextlib.ExitStack, language: Language, code: str, *, is_function: bool = False
    ) -> tuple[Loaded | None, str]:
        """Return a program ready to run, or the reason why it cannot be built.

        Raises:
            EvaluatorFault: a compiler, an interpreter or a promised package is missing on this machine.
        """
        if not language.is_built:
            provided = self._packages.provide(language.find_interpreter())
            if problem := provided.find_problem(code, is_function=is_function):
                raise EvaluatorFault(problem)
            return opened.enter_context(contextlib.closing(LoadedProgram(code))), ""
        build = self._builds.get(language, code, lambda: self._build(language, code))
        if not build.is_built:
            return None, build.message
        return opened.enter_context(contextlib.closing(LoadedBinary(build.binary))), ""

    def _build(self, language: Language, code: str) -> Build:
        require_compiler(language)
        build = Kind(builds=language.name)
        with self._gate.shared():
            return self._with_one_retry(build, lambda sandbox: build_program(sandbox, language, code))

    def _kind(self, language: Language, code: str, *, is_large: bool) -> Kind:
        """Return what sandbox a program runs in."""
        if language.is_built:
            return Kind(is_large=is_large)
        has_packages = self._packages.provide(language.find_interpreter()).folder
        preload = self._packages.profile.preload_for(code) if has_packages else ()
        return Kind(language.version, preload, is_large)

    def _judge_test(
        self,
        kind: Kind,
        loaded: Loaded,
        task: Task,
        prepared: PreparedProblem,
        test: PreparedTest,
        checking: Loaded | None,
    ) -> TestResult:
        try:
            run, slowdown = self._run_with_room(kind, task, prepared.limits)
            if prepared.is_close(run):
                self.reruns += 1
                with self._gate.alone():
                    again = self._run(kind, task, prepared.limits, slowdown)
                    again = again.slowed_by(self._measure_slowdown(again))
                run = min(run, again, key=lambda run: run.cpu_seconds)
            elif _was_killed(run, prepared.find_failure(run)):
                self.retries += 1
                with self._gate.shared():
                    run = self._run(kind, task, prepared.limits, slowdown)
            rejection = loaded.rejection()
            if rejection is not None:
                return verdicts.compile_error(run, rejection)
            if checking is None:
                return prepared.judge(run, test)
            return self._check(checking, run, prepared, test)
        except (SandboxDied, EvaluatorFault, OSError) as fault:
            return verdicts.sandbox_fault(str(fault))

    def _run_with_room(self, kind: Kind, task: Task, limits: Limits) -> tuple[Run, float]:
        """Run a test with the room that neighbours call for; return that too.

        Where it runs out of CPU time and neighbours turn out to cost more than they did of late, it is run once more,
        which happens to one test of a program at most: an endless one must not cost many limits.
        """
        with self._gate.shared():
            slowdown = self._pace.slowdown
            run = self._run(kind, task, limits, slowdown)
            if run.result.expired == CPU_EXPIRED and not self._has_rerun:
                measured = self._measure_slowdown(run)
                if measured > _MORE_GRACE * slowdown:
                    self._has_rerun = True
                    self.reruns += 1
                    return self._run(kind, task, limits, measured), measured
            return run, slowdown

    def _run(self, kind: Kind, task: Task, limits: Limits, slowdown: float) -> Run:
        generous = replace(limits, cpu_seconds=_GRACE * slowdown * limits.cpu_seconds)
        return self._with_one_retry(kind, lambda sandbox: sandbox.run(task, generous))

    def _check(self, checking: Loaded, run: Run, prepared: PreparedProblem, test: PreparedTest) -> TestResult:
        """Judge by a checker program; one that fails on the problem's own answer, too, says nothing about the program.

        Without that question a program would dodge its refusal by an output that the checker cannot read.
        """
        failure = prepared.find_failure(run)
        if failure is not None:
            return verdicts.failed(run, failure)
        answer = str(test.expected).encode("utf-8", "surrogatepass")
        output = prepared.output_of(run, test)
        if isinstance(output, TestResult):
            return output
        try:
            return verdicts.compared(run, self._ask_checker(checking, prepared, test, output))
        except CheckerFailed as failed:
            if prepared.answers.works(test, lambda: self._ask_checker(checking, prepared, test, answer)):
                return verdicts.compared(run, checkers.broken_by(failed))
            return verdicts.checker_fault(str(failed))

    def _ask_checker(
        self, checking: Loaded, prepared: PreparedProblem, test: PreparedTest, output: bytes
    ) -> Comparison:
        """Return what a checker program says of an output, asking again where our machine may have ended it.

        Raises:
            CheckerFailed: it says nothing.
        """
        checker: Checker = prepared.problem.checker
        answer = str(test.expected).encode("utf-8", "surrogatepass")
        task = checkers.checker_task(checker, checking, test.stdin, output, answer)
        with self._gate.shared():
            checked = self._with_one_retry(_CHECKS, lambda sandbox: sandbox.run(task, prepared.checker_limits))
        if checkers.was_killed(checked):
            self.retries += 1
            with self._gate.alone():
                checked = self._with_one_retry(_CHECKS, lambda sandbox: sandbox.run(task, prepared.checker_limits))
        rejection = checking.rejection()
        if rejection is not None:
            raise CheckerFailed(f"does not compile: {rejection}")
        return checkers.read_verdict(checker, checkers.ending_of(checked))

    def _with_one_retry(self, kind: Kind, use: Callable[[Sandbox], T]) -> T:
        try:
            return use(self._sandbox(kind))
        except SandboxDied:
            if self._is_closed:
                raise
            self._discard(kind)
            self.retries += 1
            try:
                return use(self._sandbox(kind))
            except BaseException:
                self._discard(kind)
                raise
        except BaseException:
            self._discard(kind)
            raise

    def _sandbox(self, kind: Kind) -> Sandbox:
        """Return a sandbox of this kind, started where there is none yet."""
        if self._is_closed:
            raise SandboxDied("the judge was closed")
        if kind not in self._sandboxes:
            sandbox = self._start_again(kind)
            self._sandboxes[kind] = sandbox
            if self._is_closed:
                raise SandboxDied("the judge was closed")
        return self._sandboxes[kind]

    def _start_again(self, kind: Kind) -> Sandbox:
        """Start a sandbox; where one has held, twice: somebody may have killed it while it started."""
        if self._failed_starts >= _MAX_FAILED_STARTS and time.monotonic() < self._rests_until:
            raise EvaluatorFault(f"gave up after {self._failed_starts} failed starts: {self._start_failure}")
        for is_last in (False, True) if self._has_held else (True,):
            try:
                sandbox = self._start(kind)
            except EvaluatorFault as fault:
                self._failed_starts, self._start_failure = self._failed_starts + 1, str(fault)
                self._rests_until = time.monotonic() + _REST_SECONDS
                if is_last:
                    raise
            else:
                self._failed_starts, self._has_held = 0, True
                return sandbox
        raise AssertionError("the last try returned or raised")

    def _start(self, kind: Kind) -> Sandbox:
        common: _Common = {"layers": self._layers, "waits": self.waits, "nice": self._nice}
        if kind.builds:
            toolchain = find_language(kind.builds).readable
            sandbox = Sandbox(toolchain=toolchain, scratch_mib=_LARGE_SCRATCH_MIB, **common)
        else:
            interpreter = find_interpreter(kind.version)
            sandbox = Sandbox(
                interpreter=interpreter,
                packages=self._packages.provide(interpreter).folder,
                preload=kind.preload,
                scratch_mib=_LARGE_SCRATCH_MIB if kind.is_large else _SCRATCH_MIB,
                inputs=self._inputs,
                **common,
            )
        self._level = sandbox.isolation.level
        try:
            sandbox.isolation.require(unsafe=self._unsafe)
        except EvaluatorFault:
            sandbox.close()
            raise
        return sandbox

    def _discard(self, kind: Kind) -> None:
        sandbox = self._sandboxes.pop(kind, None)
        if sandbox is not None:
            sandbox.close()


def _was_killed(run: Run, failure: tuple[Outcome, str] | None) -> bool:
    """Whether it was killed by none of its limits: by itself, or from outside, as where the machine's memory ended."""
    return failure is not None and failure[0] is Outcome.RUNTIME_ERROR and run.result.signal == signal.SIGKILL


def _stops_after(outcome: Outcome, stop: StopRule) -> bool:
    if outcome is Outcome.COMPILE_ERROR:
        return True
    if stop == "first_failure":
        return outcome is not Outcome.ACCEPTED
    return stop == "first_limit" and outcome in _LIMITS
