"""Judging one program at a time: a worker's sandboxes, the stop rules, the one retry after a fault."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from microcoder.errors import EvaluatorFault
from microcoder.evaluator import values, verdicts
from microcoder.evaluator.interpreter import current_interpreter
from microcoder.evaluator.isolation import Isolation
from microcoder.evaluator.sandbox.layers import LAYERS
from microcoder.evaluator.supervisor import Limits, LoadedProgram, Run, Sandbox, SandboxDied
from microcoder.types import Outcome, Problem, Program, TestResult, Verdict

StopRule = Literal["first_failure", "first_limit", "never"]
"""When a program's remaining tests are left out.

`first_failure`: after its first failing test; `first_limit`: after a test that hit a limit, so that an endless
program costs one limit; `never`.
"""

STOP_RULES: tuple[StopRule, ...] = ("first_failure", "first_limit", "never")

_LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT, Outcome.SANDBOX_FAULT)
_WALL_FACTOR, _WALL_EXTRA_SECONDS = 3.0, 1.0
_MEMORY_EXTRA_MIB = 640
"""Address space beyond the limit on resident memory: room for maps that are never touched, such as the
512 MiB thread stack that deep recursion is usually run in."""
_OUTPUT_MIB = 16
_IMPORTS_NUMPY = re.compile(r"\bnumpy\b")


@dataclass(frozen=True, slots=True)
class PreparedTest:
    """A test in the form it is run in."""

    stdin: bytes
    expected: object
    """Text, or for a function-call problem the decoded JSON value."""


class PreparedProblem:
    """A problem whose tests were checked once, for all programs of a batch."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.tests = [self._prepare(number) for number in range(1, len(problem.tests) + 1)]
        longest = max(len(test.output.encode("utf-8", "surrogatepass")) for test in problem.tests)
        self.limits = Limits(
            cpu_seconds=problem.time_limit_seconds,
            wall_seconds=_WALL_FACTOR * problem.time_limit_seconds + _WALL_EXTRA_SECONDS,
            memory_bytes=(problem.memory_limit_mib + _MEMORY_EXTRA_MIB) << 20,
            output_bytes=max(_OUTPUT_MIB, 2 * (longest >> 20)) << 20,
        )

    def _prepare(self, number: int) -> PreparedTest:
        test = self.problem.tests[number - 1]
        stdin = test.input.encode("utf-8", "surrogatepass")
        if self.problem.fn_name is None:
            return PreparedTest(stdin, test.output)
        values.read_arguments(test.input, problem_id=self.problem.id, test=number)
        return PreparedTest(stdin, values.read_expected(test.output, problem_id=self.problem.id, test=number))

    def judge(self, run: Run, test: PreparedTest) -> TestResult:
        """Judge what one test left behind."""
        memory_limit = self.problem.memory_limit_mib
        if self.problem.fn_name is None:
            return verdicts.judge_run(run, self.limits, memory_limit, str(test.expected), self.problem.checker)
        return verdicts.judge_call(run, self.limits, memory_limit, test.expected)


class Session:
    """One worker's sandboxes: a plain one, and one with numpy loaded once a program asks for it."""

    def __init__(self, *, layers: Collection[str] = LAYERS, allow_degraded: bool = False) -> None:
        self._layers = layers
        self._allow_degraded = allow_degraded
        self._sandboxes: dict[str, Sandbox] = {}
        self._is_closed = False

    def open(self) -> Isolation:
        """Start the plain sandbox.

        Raises:
            EvaluatorFault: it does not start, or does not hold.
        """
        return self._sandbox("").isolation

    def judge(self, program: Program, prepared: PreparedProblem, stop: StopRule) -> Verdict:
        """Judge one program; a broken sandbox is a `SANDBOX_FAULT`, not an exception."""
        total = len(prepared.tests)
        if program.code is None:
            return Verdict(Outcome.NO_CODE, (), total, program.reason)
        try:
            loaded = LoadedProgram(program.code)
        except OSError as error:
            return _conclude([verdicts.sandbox_fault(str(error))], total)
        package = "numpy" if _IMPORTS_NUMPY.search(program.code) and "numpy" in current_interpreter().packages else ""
        results: list[TestResult] = []
        try:
            for test in prepared.tests:
                results.append(self._judge_test(package, loaded, prepared, test))
                if _stops_after(results[-1].verdict, stop):
                    break
        finally:
            loaded.close()
        return _conclude(results, total)

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

    def _judge_test(
        self, package: str, loaded: LoadedProgram, prepared: PreparedProblem, test: PreparedTest
    ) -> TestResult:
        try:
            run = self._run_with_one_retry(
                package, lambda sandbox: sandbox.run(loaded, test.stdin, prepared.limits, prepared.problem.fn_name)
            )
        except (SandboxDied, EvaluatorFault, OSError) as fault:
            return verdicts.sandbox_fault(str(fault))
        rejection = loaded.rejection()
        return verdicts.compile_error(run, rejection) if rejection is not None else prepared.judge(run, test)

    def _run_with_one_retry(self, package: str, run: Callable[[Sandbox], Run]) -> Run:
        try:
            return run(self._sandbox(package))
        except SandboxDied:
            if self._is_closed:
                raise
            self._discard(package)
            try:
                return run(self._sandbox(package))
            except SandboxDied:
                self._discard(package)
                raise

    def _sandbox(self, package: str) -> Sandbox:
        if self._is_closed:
            raise SandboxDied("the judge was closed")
        if package not in self._sandboxes:
            sandbox = Sandbox(preload=[package] if package else [], layers=self._layers)
            try:
                sandbox.isolation.require(allow_degraded=self._allow_degraded)
            except EvaluatorFault:
                sandbox.close()
                raise
            self._sandboxes[package] = sandbox
            if self._is_closed:
                raise SandboxDied("the judge was closed")
        return self._sandboxes[package]

    def _discard(self, package: str) -> None:
        self._sandboxes.pop(package).close()


def _stops_after(outcome: Outcome, stop: StopRule) -> bool:
    if outcome is Outcome.COMPILE_ERROR:
        return True
    if stop == "first_failure":
        return outcome is not Outcome.ACCEPTED
    return stop == "first_limit" and outcome in _LIMITS


def _conclude(results: list[TestResult], total: int) -> Verdict:
    """The first failing test decides."""
    for number, result in enumerate(results, 1):
        if result.verdict is not Outcome.ACCEPTED:
            return Verdict(result.verdict, tuple(results), total, f"test {number}: {result.detail}".rstrip(": "))
    return Verdict(Outcome.ACCEPTED, tuple(results), total)
