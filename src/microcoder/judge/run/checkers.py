"""Checker programs, which compare for problems with many right answers.

They run in the sandbox, as any program does.

| protocol  | called with                       | stdin      | right | wrong | anything else     |
|-----------|-----------------------------------|------------|-------|-------|-------------------|
| `testlib` | input output answer               | empty      | 0     | 1, 2  | the checker broke |
| `kattis`  | input answer feedback/ arguments  | the output | 42    | 43    | the checker broke |

A checker that broke is run on the problem's own answer in place of the output. If it decides about
that, it works, and the output that broke it is wrong. If it breaks there, too, the program gets no
verdict.
"""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from microcoder.judge.compare.compare import Comparison
from microcoder.judge.compare.values import write_json
from microcoder.judge.core.types import (
    CHECKER_CRASHED,
    CHECKER_FAULT,
    Checker,
    Outcome,
    Problem,
    Program,
    TestResult,
    Verdict,
)
from microcoder.judge.run import verdicts
from microcoder.judge.run.executor import Executable, Run, Task
from microcoder.judge.run.timing import CHECKER_MIB, CHECKER_SECONDS, Limits
from microcoder.judge.run.verdicts import PreparedProblem, PreparedTest
from microcoder.judge.sandbox.protocol import Expiry

_UNCAUGHT = "Traceback (most recent call last)"
"""What Python says after an exception, which must not read as "wrong"."""
_UNCAUGHT_CODE = 1
"""Exit code of Python after an exception."""
_RIGHT = {"testlib": (0,), "kattis": (42,)}
"""Exit codes by which a checker accepts."""
_WRONG = {"testlib": (1, 2), "kattis": (43,)}
"""Exit codes by which it refuses."""
_MOST_WORDS = 150
"""Characters of a broken checker's last words that are kept."""

_AS_PRINTED = {
    "language": "python",
    "language_version": "",
    "dialect": "plain",
    "fn_name": None,
    "call": None,
    "assertions": None,
    "time_limit_seconds": CHECKER_SECONDS,
    "memory_limit_mib": CHECKER_MIB,
}
"""Fields that turn a problem into one whose answers a Python program prints."""


@dataclass(frozen=True, slots=True)
class CheckerProgram:
    """A problem's checker program, ready to be run."""

    program: Executable
    limits: Limits

    def judge(
        self,
        run: Run,
        prepared: PreparedProblem,
        test: PreparedTest,
    ) -> TestResult:
        """Judge a test.

        If the checker breaks on the output and on the problem's own answer, there is no verdict. An
        output that breaks a checker which works is wrong: otherwise a program could avoid a
        rejection by crashing the checker.
        """
        value = prepared.value_of(run, test)
        if isinstance(value, TestResult):
            return value
        output = run.stdout
        if prepared.problem.fn_name is not None:
            output = write_json(value).encode()
        return self.judge_output(run, prepared, test, output)

    def judge_output(
        self, run: Run, prepared: PreparedProblem, test: PreparedTest, output: bytes
    ) -> TestResult:
        """Judge a test of a run that did not fail, by an output."""
        checker = prepared.problem.checker
        decision = self._ask(checker, test, output)
        if isinstance(decision, Comparison):
            return verdicts.compared(run, decision)
        works = prepared.checker_works
        # Asked once for each test: answer and checker are the same for all programs.
        if id(test) not in works:
            answer = answer_of(test)
            works[id(test)] = isinstance(self._ask(checker, test, answer), Comparison)
        # A checker that works on the right answer was broken by this output.
        if works[id(test)]:
            detail = f"the checker crashed on this output: it {decision}"
            return verdicts.result_of(run, Outcome.WRONG_ANSWER, detail, CHECKER_CRASHED)
        return verdicts.without_run(Outcome.SANDBOX_FAULT, f"{CHECKER_FAULT}{decision}")

    def _ask(
        self,
        checker: Checker,
        test: PreparedTest,
        output: bytes,
    ) -> Comparison | str:
        """Return the checker's decision on an output, or as text how it broke."""
        answer = answer_of(test)
        files: dict[str, bytes | None]
        if checker.protocol == "kattis":
            stdin = output
            files = {"input": test.stdin, "answer": answer, "feedback/": None}
        else:
            stdin = b""
            files = {"input": test.stdin, "output": output, "answer": answer}
        # An output of 10^5 digits is data to a checker, whatever Python thinks of it.
        task = Task(stdin, (*files, *checker.arguments), files, int_digits=0)
        run = self.program.run_once(task, self.limits)
        return read_decision(checker.protocol, run, self.program.rejection())


def answer_of(test: PreparedTest) -> bytes:
    """Return a test's expected output as text."""
    return str(test.expected).encode("utf-8", "surrogatepass")


def read_decision(
    protocol: str,
    run: Run,
    rejection: str | None,
    *,
    who: str = "the checker",
    message: str = "",
) -> Comparison | str:
    """Return the decision of a checker or an interactor, or as text how it failed.

    It was not compiled, crashed, took too long, or ended with another exit code.

    Args:
        protocol: by which it says what it decided.
        run: of it.
        rejection: the compiler's message, if it was not compiled.
        who: what it is, in words.
        message: what it left as its reason, if anything.
    """
    if rejection is not None:
        return f"does not compile: {rejection}"
    ended = run.result
    said = message or run.stderr or run.stdout[:1000].decode("utf-8", "replace")
    words = said.strip()
    is_uncaught = _UNCAUGHT in run.stderr and ended.exit_code == _UNCAUGHT_CODE
    # Before the exit code: a checker that was stopped has none of its own.
    if ended.expired == Expiry.CONVERSATION:
        why = "it was ended"
    elif ended.expired in (Expiry.CPU, Expiry.WALL) or ended.signal == signal.SIGXCPU:
        why = "it took too long"
    elif ended.signal:
        why = f"killed by {verdicts.signal_name(ended.signal)}"
    elif ended.exit_code in _RIGHT[protocol]:
        return Comparison(True, "program", "")
    elif ended.exit_code in _WRONG[protocol] and not is_uncaught:
        reason = f": {words}" if words else ""
        return Comparison(False, "", f"{who} refused it{reason}")
    else:
        why = f"exit code {ended.exit_code}"
    return f"failed ({why}): {words[-_MOST_WORDS:]}"


def judge_answers(
    judge: Callable[[Sequence[Program], Sequence[Problem]], list[Verdict]], problem: Problem
) -> Verdict:
    """Judge a problem's own answers by its checker program, on all tests.

    A checker that breaks on one is a `sandbox_fault` that names the checker. Without a checker
    program: accepted. So is an interactive problem, whose outputs are no answers.

    Args:
        judge: such as `Judge.judge`.
        problem: with its tests.

    Raises:
        DataError: the checker cannot be run.
        EvaluatorFault: there is no compiler for it, or the judge is closed.
    """
    # Any other comparison accepts the expected output by its definition.
    if problem.checker.type != "program" or problem.interactor is not None:
        return Verdict(Outcome.ACCEPTED, (), 0)
    programs: list[Program] = []
    problems: list[Problem] = []
    for test in problem.tests:
        answer = test.output.encode("utf-8", "surrogatepass")
        programs.append(Program(f"import sys\nsys.stdout.buffer.write({answer!r})"))
        # A problem a test: the program knows one answer only.
        problems.append(problem.model_copy(update=_AS_PRINTED | {"tests": (test,)}))
    results = [verdict.tests[0] for verdict in judge(programs, problems)]
    return verdicts.conclude(results, len(problems))
