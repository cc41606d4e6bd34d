"""Answers that a model is fine-tuned on: those of a run's rollouts, and which of them are kept.

Two baselines without reinforcement learning differ in this alone. Rejection-sampling fine-tuning
keeps what passed all tests (arXiv 2308.01825). Simple Self-Distillation keeps every answer,
unverified (arXiv 2604.01193).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome
from microcoder.train.rollouts import Chat
from microcoder.train.runs import RunDirectory, read_rollouts, steps_in

Keep = Literal["accepted", "all"]
"""Which answers are kept: those that passed every test, or all."""
_COLUMNS = ["problem_id", "prompt", "completion", "is_truncated", "verdict"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a model to a problem."""

    problem_id: str
    prompt: str | Chat
    """The prompt as the model was given it; a chat where that is not known."""
    completion: str
    is_truncated: bool
    is_accepted: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """The answers that are kept, and how many were not, by reason."""

    answers: Sequence[Answer]
    left_out: Mapping[str, int]


def read_run_answers(run: RunDirectory) -> list[Answer]:
    """Return the answers of a run's training rollouts, step by step.

    DataError if no step has been sampled yet.
    """
    steps = steps_in(run.rollouts)
    if not steps:
        raise DataError(
            f"run {run.root} has no rollouts yet; type the command of its training again, and wait "
            "for a step"
        )
    answers = []
    for step in steps:
        answers += _read_step(run.rollout_file(step))
    return answers


def _read_step(path: Path) -> list[Answer]:
    answers = []
    for row in read_rollouts(path, columns=_COLUMNS):
        answer = Answer(
            problem_id=row["problem_id"],
            prompt=row["prompt"],
            completion=row["completion"],
            is_truncated=row["is_truncated"],
            is_accepted=row["verdict"] == Outcome.ACCEPTED,
        )
        answers.append(answer)
    return answers


def keep_answers(answers: Sequence[Answer], keep: Keep) -> Selection:
    """Return the answers to train on.

    Of accepted ones each text is kept once a problem, so that an easy problem does not count by its
    number of samples. All are kept as they are drawn; only empty ones teach nothing.
    """
    left_out = {"empty": 0, "not accepted": 0, "the same again": 0}
    kept = []
    seen = set()
    for answer in answers:
        key = (answer.problem_id, answer.completion)
        if not answer.completion.strip():
            left_out["empty"] += 1
        elif keep == "accepted" and not answer.is_accepted:
            left_out["not accepted"] += 1
        elif keep == "accepted" and key in seen:
            left_out["the same again"] += 1
        else:
            seen.add(key)
            kept.append(answer)
    return Selection(kept, {reason: number for reason, number in left_out.items() if number})
