"""What a judge is to those who ask one: in this process, behind HTTP or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.judge.fleet.judge import OnVerdict


class BatchJudge(Protocol):
    """Programs and problems in, verdicts out. A fault of any machine is a verdict that scores nothing."""

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order."""
        ...


class Judging(BatchJudge, Protocol):
    """One that can be asked program by program, too."""

    def submit(self, program: Program, problem: Problem) -> Future[Verdict]:
        """Judge one program in the background."""
        ...

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


def unreached(problem: Problem, why: str) -> Verdict:
    """Return the verdict on a program that no judge could be reached for: it says nothing about the program."""
    return Verdict(Outcome.SANDBOX_FAULT, (), len(problem.tests), why)
