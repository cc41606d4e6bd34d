"""A look before a run: can this model learn from these problems at all?

Some training problems are sampled by the untrained model, as often as a step samples them, and
judged. A problem whose samples are all right or all wrong gives no gradient; a run with only such
problems learns nothing.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from microcoder.judge.core.types import Outcome
from microcoder.train.rollouts import ScoredRollout

NUM_PROBLEMS = 32
"""Training problems that are looked at."""

FEW_MIXED_SHARE = 0.05
"""Share of mixed problems under which a run is told to expect little."""

MANY_TRUNCATED_SHARE = 0.5
"""Share of truncated responses from which on the limit is named."""

MANY_WITHOUT_CODE_SHARE = 0.5
"""Share of responses without a program from which on the prompt is named."""

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Look:
    """What the untrained model does with some problems."""

    num_problems: int
    num_responses: int
    num_right: int
    num_unscored: int
    num_truncated: int
    num_without_code: int
    num_mixed: int
    """Problems with right and wrong responses: those that teach."""
    num_all_right: int
    num_all_wrong: int

    @property
    def mixed_share(self) -> float:
        """Share of the problems that teach."""
        return self.num_mixed / self.num_problems


def choose_looked_at(items: Sequence[ItemT], *, seed: int) -> list[ItemT]:
    """Return the problems to look at: at most 32, drawn by the run's seed."""
    number = min(NUM_PROBLEMS, len(items))
    return random.Random(f"look-{seed}").sample(list(items), number)


def summarise_look(scored_P_G: Sequence[Sequence[ScoredRollout]]) -> Look:
    """Return the figures of sampled and judged problems, a list of responses for each."""
    num_mixed = 0
    num_all_right = 0
    num_all_wrong = 0
    for scored_G in scored_P_G:
        # By correctness, as the mask and the paper's filtering see it.
        verdicts = {sample.verdict.is_accepted for sample in scored_G if sample.reward is not None}
        if verdicts == {True, False}:
            num_mixed += 1
        elif verdicts == {True}:
            num_all_right += 1
        elif verdicts == {False}:
            num_all_wrong += 1
    samples = list(chain.from_iterable(scored_P_G))
    scored = [sample for sample in samples if sample.reward is not None]
    return Look(
        num_problems=len(scored_P_G),
        num_responses=len(samples),
        num_right=sum(sample.verdict.is_accepted for sample in scored),
        num_unscored=len(samples) - len(scored),
        num_truncated=sum(sample.rollout.is_truncated for sample in samples),
        num_without_code=sum(sample.verdict.outcome is Outcome.NO_CODE for sample in samples),
        num_mixed=num_mixed,
        num_all_right=num_all_right,
        num_all_wrong=num_all_wrong,
    )


def describe_look(look: Look, *, max_response_tokens: int) -> list[str]:
    """Return lines on what the model did and what that means for a run."""
    lines = [
        f"look: {look.num_problems} problems, {look.num_responses} responses by the untrained "
        f"model: {look.num_right} right, {look.num_truncated} cut off at {max_response_tokens} "
        f"tokens, {look.num_without_code} without a program",
        f"{look.num_mixed} problems have right and wrong responses and teach; {look.num_all_right} "
        f"are always right, {look.num_all_wrong} always wrong",
    ]
    if look.num_unscored:
        lines.append(f"UNSCORED: {look.num_unscored} responses, which the sandbox could not judge")
    lines.append(_conclude(look))
    # A model that is cut off may know more than it can say.
    if look.num_truncated >= MANY_TRUNCATED_SHARE * look.num_responses:
        lines.append(
            f"{look.num_truncated} of {look.num_responses} were cut off: raise "
            "rollout.max_response_tokens, or ask for shorter answers by prompt.style"
        )
    if look.num_without_code >= MANY_WITHOUT_CODE_SHARE * look.num_responses:
        lines.append(
            f"{look.num_without_code} of {look.num_responses} hold no program: a base model needs "
            "a warm start, a chat "
            'model its template; prompt.style = "instruct" asks for a code block'
        )
    return lines


def _conclude(look: Look) -> str:
    """Return the line that says whether the model can learn from these problems."""
    counted = f"{look.num_right} of {look.num_responses} are right"
    # Without a right answer there is nothing to reinforce.
    if look.num_right == 0:
        return (
            f"{counted}, every group will be flat: this model cannot learn from these problems; "
            "take easier ones, a stronger model, or a warm start"
        )
    if look.num_mixed == 0:
        wanted = "harder" if look.num_all_right > look.num_all_wrong else "easier"
        return (
            f"{counted}, and every group is flat: this model learns nothing from these problems; "
            f"take {wanted} ones"
        )
    if look.mixed_share < FEW_MIXED_SHARE:
        return (
            f"{counted}: about {look.mixed_share:.0%} of a step's problems teach, which is little; "
            "choose problems that are sometimes solved, or sample more of each "
            "(rollout.num_samples)"
        )
    return f"{counted}: about {look.mixed_share:.0%} of a step's problems teach"
