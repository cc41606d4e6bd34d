"""Checker programs against the answers of their own problem: one that refuses them decides about nothing."""

from __future__ import annotations

from collections.abc import Callable

from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, TestResult, Verdict
from microcoder.judge.run import verdicts
from microcoder.judge.run.checkers import (
    ANY_NUMBER,
    CPU_SECONDS,
    MEMORY_MIB,
    CheckerFailed,
    Ending,
    checker_call,
    has_traceback,
    read_verdict,
)
from microcoder.judge.run.executions import Execution, Invocation

Run = Callable[[Invocation], Execution]
"""Such as `Judge.run`."""


def judge_answers(run: Run, problem: Problem, *, checker_seconds: float = CPU_SECONDS) -> Verdict:
    """Judge a problem's own answers by its checker program, on all tests.

    A checker that breaks on one is a fault of the checker, as it is where a program is judged.

    Raises:
        DataError: the checker cannot be run.
        EvaluatorFault: there is no compiler for it, or the judge is closed.
    """
    if problem.checker.type != "program":
        return Verdict(Outcome.ACCEPTED, (), 0)
    results = tuple(_judge_answer(run, problem, test, checker_seconds) for test in problem.tests)
    failed = next((number for number, result in enumerate(results) if result.verdict is not Outcome.ACCEPTED), None)
    if failed is None:
        return Verdict(Outcome.ACCEPTED, results, len(results))
    return Verdict(results[failed].verdict, results, len(results), f"test {failed + 1}: {results[failed].detail}")


def _judge_answer(run: Run, problem: Problem, test: TestCase, checker_seconds: float) -> TestResult:
    checker = problem.checker
    answer = test.output.encode("utf-8", "surrogatepass")
    stdin, arguments, files = checker_call(checker, test.input.encode("utf-8", "surrogatepass"), answer, answer)
    execution = run(
        Invocation(
            program=Program(checker.code, checker.language),
            stdin=stdin,
            arguments=arguments,
            files=files,
            cpu_seconds=checker_seconds,
            memory_limit_mib=MEMORY_MIB,
            int_digits=ANY_NUMBER,
        )
    )
    if not execution.is_conclusive:
        return verdicts.sandbox_fault(execution.detail)
    if execution.failure is Outcome.COMPILE_ERROR:
        return verdicts.checker_fault(f"does not compile: {execution.detail}")
    try:
        found = read_verdict(checker, _ending_of(execution))
    except CheckerFailed as failed:
        return verdicts.checker_fault(str(failed))
    return TestResult(
        verdict=Outcome.ACCEPTED if found.accepted else Outcome.WRONG_ANSWER,
        cpu_seconds=execution.cpu_seconds,
        wall_seconds=execution.wall_seconds,
        memory_mib=execution.memory_mib,
        method=found.method,
        detail=verdicts.shorten(found.detail),
    )


def _ending_of(execution: Execution) -> Ending:
    return Ending(
        exit_code=execution.exit_code,
        signal=execution.signal,
        is_late=execution.failure is Outcome.TIME_LIMIT,
        said=(execution.stderr or execution.stdout[:1000].decode("utf-8", "replace")).strip(),
        has_traceback=has_traceback(execution.stderr),
    )
