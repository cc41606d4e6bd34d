"""A run's programs judged again with another comparison of outputs.

Nothing is trained and nothing is sampled: programs that a run wrote are taken from its files and put to the real judge
again, so that the two judgements differ in the comparison alone. The robust comparison accepts whatever the strict one
does, so only accepted programs are judged anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from microcoder.errors import DataError, EvaluatorFault
from microcoder.insights.jobs import Job, MeasuredValue
from microcoder.runs import RunDirectory, read_rollouts
from microcoder.types import Program

if TYPE_CHECKING:
    from microcoder.training.tasks import Task

ACCEPTED = "accepted"


def judge_both_ways(job: Job, *, share: float = 1 / 3) -> Iterator[MeasuredValue]:
    """Yield the share of a run's training rollouts that are accepted by the robust and by the strict comparison.

    Metrics: `accepted`, problem by problem, of what the untrained model wrote in the first step, levels `robust` and
    `strict`; `gap`, robust less strict over all rollouts of a run's steps, levels `early` and `late`.

    Args:
        job: uses one level, trained with the robust comparison.
        share: of the steps, the first are early and as many at the end late; at least one.

    Raises:
        DataError: the run was trained with another comparison.
    """
    from microcoder.training.judging import open_judge
    from microcoder.training.tasks import load_tasks

    run = RunDirectory(next(iter(job.runs.values())))
    if job.config.evaluator.comparison != "robust":
        raise DataError(f"{run.root} was trained with comparison = {job.config.evaluator.comparison!r}, not robust")
    evaluator = job.config.evaluator.model_copy(update={"comparison": "strict"})
    tasks = {t.problem.id: t for t in load_tasks(job.config.model_copy(update={"evaluator": evaluator})).train}
    steps = run.rollout_steps()
    gaps: dict[int, float] = {}
    with open_judge(evaluator, [task.problem for task in tasks.values()]) as (judge, _):
        for step in steps:
            rows = [row for row in read_rollouts(run.rollout_file(step)) if row["reward"] is not None]
            both = _judge_accepted(rows, tasks, judge)
            gaps[step] = fmean(robust - strict for robust, strict in both)
            if step == steps[0]:
                yield from _by_problem(rows, both, seed=job.seed)
    num = max(1, round(share * len(steps)))
    yield MeasuredValue("gap", "early", f"seed{job.seed}", fmean(gaps[step] for step in steps[:num]))
    yield MeasuredValue("gap", "late", f"seed{job.seed}", fmean(gaps[step] for step in steps[-num:]))


def _judge_accepted(
    rows: Sequence[Mapping[str, Any]], tasks: Mapping[str, Task], judge: Any
) -> list[tuple[float, float]]:
    """Return for each rollout whether the robust and whether the strict comparison accepts it.

    Raises:
        EvaluatorFault: a program could not be judged anew.
    """
    wanted = [row for row in rows if row["verdict"] == ACCEPTED]
    problems = [tasks[row["problem_id"]].problem for row in wanted]
    programs = [
        Program(code=row["program"], language=problem.language) for row, problem in zip(wanted, problems, strict=True)
    ]
    verdicts = judge.judge(programs, problems)
    if faults := [verdict for verdict in verdicts if not verdict.is_scorable]:
        raise EvaluatorFault(f"{len(faults)} of {len(verdicts)} programs could not be judged anew: {faults[0].detail}")
    anew = iter(verdicts)
    judged = []
    for row in rows:
        is_right = row["verdict"] == ACCEPTED
        judged.append((float(is_right), float(is_right and next(anew).is_accepted)))
    return judged


def _by_problem(
    rows: Sequence[Mapping[str, Any]], both: Sequence[tuple[float, float]], *, seed: int
) -> Iterator[MeasuredValue]:
    of: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row, pair in zip(rows, both, strict=True):
        of[row["problem_id"]].append(pair)
    for problem, pairs in of.items():
        for level, place in (("robust", 0), ("strict", 1)):
            yield MeasuredValue("accepted", level, f"seed{seed}/{problem}", fmean(pair[place] for pair in pairs))
