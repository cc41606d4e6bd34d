"""Submission files: a program and the tests that decide it, one pair a line; and the line a verdict is written as."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from microcoder.evaluator.preparation import check_problem
from microcoder.records import read_records
from microcoder.types import Problem, Program, Verdict


class Submission(Problem):
    """A problem together with one program for it; `id` names the pair."""

    code: str | None
    """The program; null if the response had none."""

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        check_problem(self)
        return self

    @property
    def program(self) -> Program:
        """The program as the judge takes it."""
        return Program(self.code, self.language, reason="" if self.code is not None else "no_code_given")


def read_submissions(path: Path) -> list[Submission]:
    """Read a `.jsonl` or `.jsonl.gz` file of submissions, all of it or nothing.

    Raises:
        DataError: the file is missing or empty, or a line is broken: which line, what is wrong, what is allowed.
    """
    return read_records(path, Submission, what="submission file")


def verdict_record(name: str, verdict: Verdict) -> dict[str, Any]:
    """Return the line that a submission's verdict is written as."""
    uncounted = [{"test": run.test, "reason": run.reason.value} for run in verdict.uncounted]
    return {
        "id": name,
        "verdict": verdict.outcome.value,
        "tests_passed": verdict.tests_passed,
        "tests_total": verdict.tests_total,
        "tests": [
            {
                "verdict": test.verdict.value,
                "cpu_seconds": round(test.cpu_seconds, 6),
                "wall_seconds": round(test.wall_seconds, 6),
                "memory_mib": round(test.memory_mib, 3),
                "method": test.method,
                "detail": test.detail,
                **({"output": test.output} if test.output is not None else {}),
            }
            for test in verdict.tests
        ],
        "isolation": verdict.isolation,
        **({"uncounted": uncounted} if uncounted else {}),
    }
