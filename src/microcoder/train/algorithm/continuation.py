"""Continuations: truncated responses generated on, to twice the limit, to see which of them would have been right.

A mask assumes that a response which the limit cut off would have been right. With `evaluation.continue_truncated`, some
truncated responses of each training step are continued before the update, with the weights and at the temperature that
sampled them. They are judged on their problem's tests, and nothing is learnt from them. Compare the shares that would
have been right among masked and punished responses to see whether rho is well chosen.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from microcoder.judge.core.types import Outcome
from microcoder.train.algorithm.masking import draw_uniform
from microcoder.train.rollouts import ScoredRollout, loses_advantage

DRAW = "continue-"
"""Prefix that makes the draw of the responses to continue independent of the mask's draw."""


class Fate(StrEnum):
    """What the update does to a truncated response."""

    MASKED = "masked"
    """Masked, and its advantage would not have been 0."""
    MASKED_IDLE = "masked, advantage 0 anyway"
    PUNISHED = "punished"
    """Not masked, with a negative advantage."""
    KEPT = "neither"
    """Not masked, with a positive advantage or none."""


def fate_of(sample: ScoredRollout) -> Fate:
    """Return what the update does to a truncated response."""
    if sample.masked_why:
        return Fate.MASKED if loses_advantage(sample.masked_why, sample.lost) else Fate.MASKED_IDLE
    return Fate.PUNISHED if sample.advantage < 0 else Fate.KEPT


def choose_truncated(samples: Iterable[ScoredRollout], *, most: int, seed: int, step: int) -> list[ScoredRollout]:
    """Return the truncated responses of a step to continue: at most `most` of each fate, drawn by a hash."""

    def draw(sample: ScoredRollout) -> float:
        problem_id = DRAW + sample.rollout.problem_id
        return draw_uniform(seed=seed, step=step, problem_id=problem_id, sample_index=sample.sample_index)

    truncated = sorted((sample for sample in samples if sample.rollout.is_truncated), key=draw)
    return [one for fate in Fate for one in [sample for sample in truncated if fate_of(sample) is fate][:most]]


def continuation_row(
    samples: Iterable[ScoredRollout], chosen: Sequence[ScoredRollout], ends: Sequence[ScoredRollout], *, step: int
) -> dict[str, Any]:
    """Return a step's row of `continuations.jsonl`: its truncated responses counted by fate, and the continued ones.

    Args:
        samples: all responses of the step.
        chosen: those that were continued (`choose_truncated`), as they were cut.
        ends: the same, complete: from the first token to the end of the continuation.
        step: the training step, from 1.
    """
    truncated = Counter(fate_of(sample) for sample in samples if sample.rollout.is_truncated)
    return {
        "step": step,
        "truncated": {str(fate): truncated[fate] for fate in Fate},
        "responses": [
            {
                "fate": str(fate_of(begun)),
                "problem_id": begun.rollout.problem_id,
                "sample_index": begun.sample_index,
                "verdict_when_cut": str(begun.verdict.outcome),
                "verdict": str(end.verdict.outcome),
                "num_tokens": len(end.rollout.token_ids),
                "is_truncated": end.rollout.is_truncated,
                "completion": end.rollout.completion,
            }
            for begun, end in zip(chosen, ends, strict=True)
        ],
    }


@dataclass(frozen=True, slots=True)
class Continued:
    """Counts of truncated responses of one fate, over a run."""

    truncated: int
    """Number of truncated responses of this fate."""
    scored: int
    """How many of them were continued and could be judged."""
    ended: int
    """How many of the scored ended by themselves."""
    right: int
    """How many of the scored passed all tests."""


def count_continued(rows: Sequence[Mapping[str, Any]]) -> dict[Fate, Continued]:
    """Return counts by fate over the rows of `continuations.jsonl`; sandbox faults count only as `truncated`."""
    scored = [one for row in rows for one in row["responses"] if one["verdict"] != Outcome.SANDBOX_FAULT]
    by_fate = {fate: [one for one in scored if one["fate"] == fate] for fate in Fate}
    return {
        fate: Continued(
            truncated=sum(row["truncated"][fate] for row in rows),
            scored=len(of_fate),
            ended=sum(not one["is_truncated"] for one in of_fate),
            right=sum(one["verdict"] == Outcome.ACCEPTED for one in of_fate),
        )
        for fate, of_fate in by_fate.items()
    }
