"""The judge as a scorer of Inspect, and rows of any known format as its task.

See docs/integrations.md.
"""

from typing import Any, Unpack

from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from microcoder.data.formats.rows import to_problem
from microcoder.integrations.shared import (
    Mode,
    SharedJudgeKeys,
    as_figures,
    check_mode,
    score,
    shared_judge,
)
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.prompts import instruct
from microcoder.judge.core.types import Outcome, Problem


@scorer(metrics=[mean(), stderr()])
def code_judge(mode: Mode = "all", **judge: Unpack[SharedJudgeKeys]) -> Scorer:
    """Return a scorer of the programs in responses.

    If the sandbox fails, the sample stays unscored.

    Args:
        mode: `all`, 1 where every test passed; `fraction`, the share of the tests that passed.
        judge: options of `Judge`, such as `workers`, or `url`; a process has one judge.
    """
    judging = shared_judge(**check_mode(mode, judge))

    async def judge_sample(state: TaskState, target: Target) -> Score:
        # Samples that other code made may have a row's columns there themselves.
        problem = to_problem(state.metadata.get("problem", state.metadata))
        # Inspect's two names of a length limit: the request's, and the model's.
        is_truncated = state.output.stop_reason in ("max_tokens", "model_length")
        program = extract_program(
            state.output.completion,
            is_truncated=is_truncated,
            language=problem.language,
        )
        verdict = await judging.judge_async(program, problem)
        value = score(verdict, mode)
        figures = {**as_figures(verdict), "extraction": program.reason}
        if value is None:
            return Score.unscored(
                reason=str(Outcome.SANDBOX_FAULT),
                explanation=verdict.detail,
                metadata=figures,
            )
        passed = f"{verdict.tests_passed}/{verdict.tests_total} tests"
        explanation = f"{verdict.outcome}, {passed}. {verdict.detail}"
        return Score(
            value=value,
            answer=program.code,
            explanation=explanation,
            metadata=figures,
        )

    return judge_sample


def to_sample(row: dict[str, Any], format: str | None = None) -> Sample:
    """Return Inspect's sample of a row: the problem's prompt.

    Its metadata have the problem, for the scorer.
    """
    problem: Problem = to_problem(row, format)
    # Without defaults, since logs repeat a sample's metadata.
    record = problem.model_dump(mode="json", exclude_defaults=True)
    return Sample(
        input=instruct(problem),
        id=problem.id,
        target=problem.reference or "",
        metadata={"problem": record},
    )


@task
def code(path: str, format: str | None = None, mode: Mode = "all") -> Task:
    """Return a task of a file's rows.

    They are LiveCodeBench's, HumanEval+'s, MBPP+'s, or our own problem lines, see docs/rows.md.

    Args:
        path: JSON lines or JSON.
        format: row format; None to detect it by the rows' fields.
        mode: how programs are scored.
    """
    dataset = json_dataset(path, lambda row: to_sample(row, format))
    return Task(dataset=dataset, solver=generate(), scorer=code_judge(mode))
