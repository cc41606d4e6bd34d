"""A corpus as a taskset of verifiers (`verifiers.v1`).

verifiers finds it under the name `microcoder-code`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from microcoder.integrations.shared import as_figures, read_corpus, shared_judge
from microcoder.judge.core.errors import ConfigError, EvaluatorFault
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.prompts import instruct
from microcoder.judge.core.types import Problem, Program, Verdict


class CodeData(vf.TaskData):
    """Data of a task with its problem, sent to verifiers' workers and stored in its traces."""

    problem: Problem


class CodeTaskConfig(vf.TaskConfig):
    """Options of judging, on the command line `--env.taskset.task.*`."""

    judge: dict[str, Any] = Field(default_factory=dict)
    """Options of `Judge`, such as `{"workers": 8}`, or `{"url": ...}` of a judge service."""


class CodeTask(vf.Task[CodeData, vf.State, CodeTaskConfig]):
    """One problem: the last code block of the answer is judged by the problem's tests."""

    @vf.reward(weight=1.0)
    async def accepted(self, trace: vf.Trace) -> float:
        """Return 1 when every test passed, else 0.

        A sandbox that failed is an error of the rollout, and no reward.
        """
        problem = self.data.problem
        program = extract_program(
            trace.last_reply or "",
            is_truncated=bool(trace.is_truncated),
            language=problem.language,
        )
        verdict = await self._judge(program)
        share = verdict.tests_passed / max(1, verdict.tests_total)
        trace.record_metric("tests_passed_share", share)
        trace.info["microcoder"] = {
            **as_figures(verdict),
            "extraction": program.reason,
            "tests": [test.verdict.value for test in verdict.tests],
        }
        return float(verdict.is_accepted)

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Return whether the problem's reference is accepted, None if it has none."""
        problem = self.data.problem
        if problem.reference is None:
            return None
        verdict = await self._judge(Program(problem.reference, problem.language))
        return verdict.is_accepted

    async def _judge(self, program: Program) -> Verdict:
        # At each answer: a task is sent to a worker, whose process has a judge of its own.
        judging = shared_judge(**self.config.judge)
        try:
            verdict = await judging.judge_async(program, self.data.problem)
        except EvaluatorFault as error:
            # By this error verifiers tells a broken sandbox from a wrong answer.
            raise vf.SandboxError(str(error)) from error
        if not verdict.is_scorable:
            raise vf.SandboxError(verdict.detail)
        return verdict


class CodeConfig(vf.TasksetConfig):
    """Which problems to use, on the command line `--env.taskset.*`."""

    corpus: Path | None = None
    """A folder of `microcoder data build`, or a file of rows (docs/rows.md)."""
    format: str | None = None
    """Row format; None to detect it."""
    task: CodeTaskConfig = CodeTaskConfig()


class CodeTaskset(vf.Taskset[CodeTask, CodeConfig]):
    """The problems of a corpus, in its order."""

    def load(self) -> Iterator[CodeTask]:
        """Yield one task per problem.

        Raises like `read_corpus`, or ConfigError without a corpus.
        """
        if self.config.corpus is None:
            raise ConfigError(
                "the taskset has no corpus; type --taskset.corpus FILE (vf-eval: "
                "--env.taskset.corpus FILE)"
            )
        for problem in read_corpus(self.config.corpus, format=self.config.format):
            data = CodeData(
                id=problem.id,
                name=problem.id,
                prompt=instruct(problem),
                problem=problem,
            )
            yield CodeTask(data, self.config.task)


__all__ = ["CodeTaskset"]
