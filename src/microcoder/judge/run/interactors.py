"""Interactor programs, which talk with the answer, and what their end says of it.

| protocol  | called with             | right | wrong | anything else        |
|-----------|-------------------------|-------|-------|----------------------|
| `testlib` | input output answer     | 0     | 1, 2  | the interactor broke |
| `kattis`  | input answer feedback/  | 42    | 43    | the interactor broke |

First comes what the program did by itself: a limit, a deadlock, a failed exit. Then the interactor
decides. If it is testlib's, and the problem has a checker of its own, that judges what the
interactor has written.

An interactor that broke is put before a program that says nothing. If it waits there, or decides,
it works, and the program that broke it is wrong. If it breaks there, too, the program gets no
verdict.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace

from microcoder.judge.compare.compare import Comparison, compare_output
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import (
    CHECKER_CRASHED,
    CHECKER_FAULT,
    Checker,
    Interactor,
    Outcome,
    TestResult,
)
from microcoder.judge.languages import find_language
from microcoder.judge.run import verdicts
from microcoder.judge.run.checkers import CheckerProgram, answer_of, read_decision
from microcoder.judge.run.executor import (
    Executable,
    Executor,
    Leader,
    Observation,
    Run,
    Source,
    Task,
)
from microcoder.judge.run.timing import CHECKER_MIB, Limits
from microcoder.judge.run.verdicts import PreparedProblem, PreparedTest
from microcoder.judge.sandbox.protocol import Expiry

_SILENT = "import sys\nsys.stdin.read()\n"
"""A program that says nothing, and ends when the interactor does."""
_WRITTEN = "output"
"""The file that testlib's interactors write."""
_MESSAGE = "feedback/judgemessage.txt"
"""The file in which Kattis' validators say why."""


ENDED_EARLY = "the program ended before the interactor was done with it"
"""What is said of a program whose end broke the interactor."""
_MISSED = re.compile(r"^EOFError\b", re.MULTILINE)
"""Python's error where nothing comes any more."""


@dataclass(frozen=True, slots=True)
class InteractorProgram:
    """A problem's interactor, ready to be run."""

    interactor: Interactor
    program: Executable
    limits: Limits
    checking: CheckerProgram | None
    """Judges what the interactor has written."""
    executor: Executor
    """Loads the silent program."""

    def observe(
        self,
        program: Executable,
        task: Task,
        test: PreparedTest,
        limits: Limits,
        *,
        is_final: bool = False,
    ) -> Observation:
        """Return what is seen of a program that talks with the interactor about a test."""
        leader = Leader(self.program, self._task_of(test), self._accepts, self.limits)
        return program.interact(task, leader, limits, is_final=is_final)

    def judge(self, run: Run, prepared: PreparedProblem, test: PreparedTest) -> TestResult:
        """Judge a test by the runs of program and interactor."""
        result = self._decide(run, prepared, test)
        # What the program said is kept nowhere, which is no empty output.
        return replace(result, output=None)

    def _decide(self, run: Run, prepared: PreparedProblem, test: PreparedTest) -> TestResult:
        """Decide about a test; what the program did by itself comes first."""
        failure = prepared.find_failure(run)
        if failure is not None:
            return verdicts.result_of(run, *failure)
        assert run.test is not None
        decision = self._read(run.test)
        if not isinstance(decision, Comparison) and _has_missed_program(run.test):
            return verdicts.result_of(run, Outcome.WRONG_ANSWER, ENDED_EARLY)
        if not isinstance(decision, Comparison):
            return self._judge_broken(run, prepared, test, decision)
        checker = prepared.problem.checker
        if not decision.accepted or checker == Checker():
            return verdicts.compared(run, decision)
        written = run.test.wire or b""
        if self.checking is not None:
            return self.checking.judge_output(run, prepared, test, written)
        text = written.decode("utf-8", "surrogateescape")
        return verdicts.compared(run, compare_output(text, str(test.expected), checker))

    def _judge_broken(
        self, run: Run, prepared: PreparedProblem, test: PreparedTest, why: str
    ) -> TestResult:
        """Judge a test in which the interactor broke."""
        works = prepared.interactor_works
        # The same for all programs, so it is asked once for each test.
        if id(test) not in works:
            works[id(test)] = self._works(prepared, test)
        if works[id(test)]:
            detail = f"the interactor crashed on this output: it {why}"
            return verdicts.result_of(run, Outcome.WRONG_ANSWER, detail, CHECKER_CRASHED)
        fault = f"{CHECKER_FAULT}failed: the interactor {why}"
        return verdicts.without_run(Outcome.SANDBOX_FAULT, fault)

    def _works(self, prepared: PreparedProblem, test: PreparedTest) -> bool:
        """Whether the interactor waits for a program that says nothing, or decides.

        Raises:
            EvaluatorFault: the machine is at fault, so nothing is known about the interactor.
        """
        source = Source(find_language("python"), _SILENT, CHECKER_MIB)
        with contextlib.ExitStack() as opened:
            silent = self.executor.load(opened, source)
            assert not isinstance(silent, str)
            observed = self.observe(silent, Task(), test, prepared.limits, is_final=True)
        run = observed.run
        if run is None or run.test is None:
            raise EvaluatorFault(observed.fault)
        # It was ended as it waited.
        if run.test.result.expired == Expiry.CONVERSATION:
            return True
        return isinstance(self._read(run.test), Comparison)

    def _accepts(self, run: Run) -> bool:
        """Whether a run of the interactor accepts the program."""
        decision = self._read(run)
        return isinstance(decision, Comparison) and decision.accepted

    def _read(self, run: Run) -> Comparison | str:
        """Return the interactor's decision, or as text how it broke."""
        message = ""
        if self.interactor.protocol == "kattis" and run.wire:
            message = run.wire.decode("utf-8", "replace")
        return read_decision(
            self.interactor.protocol,
            run,
            self.program.rejection(),
            who="the interactor",
            message=message,
        )

    def _task_of(self, test: PreparedTest) -> Task:
        """Return what the interactor is run on for a test."""
        files: dict[str, bytes | None] = {"input": test.stdin, "answer": answer_of(test)}
        names: tuple[str, ...] = ("input", _WRITTEN, "answer")
        collected = _WRITTEN
        if self.interactor.protocol == "kattis":
            files["feedback/"] = None
            names = ("input", "answer", "feedback/")
            collected = _MESSAGE
        arguments = (*names, *self.interactor.arguments)
        return Task(b"", arguments, files, int_digits=0, collected=collected)


def _has_missed_program(run: Run) -> bool:
    """Whether an interactor broke since the program had closed its stdout."""
    return bool(run.result.exit_code) and _MISSED.search(run.stderr) is not None
