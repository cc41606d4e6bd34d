"""Which problems a step learns from: those whose samples differ most.

They are chosen before sampling (active), or after it (dynamic).

Active sampling: a group teaches only if its rewards differ, which is likeliest at a pass rate of
one half. Each problem has a posterior of its pass rate, Beta(1 + solved, 1 + failed), in which a
sample that is 20 steps old counts half: the policy has changed since. Each step draws a rate from
each posterior (Thompson sampling) and samples the problems whose draw is nearest to one half. So
problems that were never sampled, or long ago, are sampled now and then.

Dynamic filtering: problems that all samples solve, or none, are replaced by others before the
update.

    0 < |{ o_i : o_i is correct }| < G          (DAPO, arXiv 2503.14476, equation 11)

Such a group's advantages are all zero, so a step full of them learns nothing. Other problems are
sampled instead until every group is mixed, or a limit of rounds is reached; groups that are still
flat stay, and count in `zero_variance_share`. A group is mixed by correctness, as in the equation,
or, where a recipe asks for it, by reward.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from microcoder.judge.core.types import Outcome
from microcoder.train.rollouts import ScoredRollout

ProblemChoice = Literal["uniform", "active"]
GroupFiltering = Literal["none", "dynamic", "dynamic_reward"]
HALF_LIFE_STEPS = 20.0
"""Age at which a recorded sample counts half."""


@dataclass(frozen=True, slots=True)
class PassCount:
    """Scored samples of one problem in one step."""

    step: int
    problem_id: str
    solved: int
    failed: int


def count_passes(rows: Iterable[Mapping[str, Any]], *, step: int) -> list[PassCount]:
    """Return the counts of a step's rollout rows, by problem; unscored samples are left out."""
    solved: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        # A fault of the machine says nothing about the problem.
        if row["verdict"] != Outcome.SANDBOX_FAULT:
            solved[row["problem_id"]].append(row["verdict"] == Outcome.ACCEPTED)
    counts = []
    for problem_id, verdicts in sorted(solved.items()):
        num_solved = sum(verdicts)
        counts.append(PassCount(step, problem_id, num_solved, len(verdicts) - num_solved))
    return counts


def choose_problems(
    problem_ids: Sequence[str], counts: Iterable[PassCount], *, number: int, seed: int, step: int
) -> list[str]:
    """Return the problems that a step samples, each once.

    They are those whose drawn pass rate is nearest to one half.

    A pure function of its arguments, whatever the order of the problems, so that every engine and
    every resumed run samples the same.

    Args:
        problem_ids: all training problems.
        counts: those of the steps before, in their order.
        number: how many to choose.
        seed: the run's seed.
        step: the training step, from 1.
    """
    solved: dict[str, float] = defaultdict(float)
    failed: dict[str, float] = defaultdict(float)
    for count in counts:
        # Old samples are of another policy.
        weight = 0.5 ** ((step - count.step) / HALF_LIFE_STEPS)
        solved[count.problem_id] += weight * count.solved
        failed[count.problem_id] += weight * count.failed

    def distance(problem_id: str) -> tuple[float, str]:
        # A generator for each problem, so that their order changes nothing.
        source = random.Random(f"active-{seed}-{step}-{problem_id}")
        rate = source.betavariate(1 + solved[problem_id], 1 + failed[problem_id])
        # The id makes the order of equal distances a fixed one.
        return abs(rate - 0.5), problem_id

    return sorted(problem_ids, key=distance)[:number]


class Group(Protocol):
    """One problem's samples, in an engine's own form."""

    @property
    def scored(self) -> Sequence[ScoredRollout]:
        """The samples with their rewards and advantages."""


GroupT = TypeVar("GroupT", bound=Group)


def is_mixed(scored_G: Sequence[ScoredRollout]) -> bool:
    """Return whether some of a group's scored members are right, and not all: DAPO, equation 11."""
    verdicts = [sample.verdict.is_accepted for sample in scored_G if sample.reward is not None]
    return len(set(verdicts)) > 1


def differs_in_reward(scored_G: Sequence[ScoredRollout]) -> bool:
    """Return whether a group's scored members differ in their rewards.

    A length penalty does not count.
    """
    # Rounded: what was added and is taken away leaves the last bits different.
    bare = [
        round(sample.reward - sample.length_penalty, 9)
        for sample in scored_G
        if sample.reward is not None
    ]
    return len(set(bare)) > 1


FILTERS: Mapping[GroupFiltering, Callable[[Sequence[ScoredRollout]], bool]] = {
    "dynamic": is_mixed,
    "dynamic_reward": differs_in_reward,
}
"""Which groups a step keeps, by `algorithm.group_filtering`."""


def order_spares(
    problem_ids: Sequence[str], *, asked: Collection[str], seed: int, step: int
) -> list[str]:
    """Return the problems that may replace others, in order: all that the step has not sampled.

    A pure function of its arguments, so that a resumed run samples the same.
    """
    # A problem twice in a step would be two groups with one baseline each.
    spares = [problem_id for problem_id in problem_ids if problem_id not in asked]
    random.Random(f"spares-{seed}-{step}").shuffle(spares)
    return spares


@dataclass(frozen=True, slots=True)
class Processes:
    """The training processes that share a step; by default there is one."""

    index: int = 0
    """Index of this process."""
    count: int = 1
    gather: Callable[[list[Any]], list[Any]] = list
    """Joins the lists of all processes."""


def sample_mixed_groups(
    sample: Callable[[Sequence[str]], list[GroupT]],
    problem_ids: Sequence[str],
    *,
    all_ids: Sequence[str],
    keeps: Callable[[Sequence[ScoredRollout]], bool] = is_mixed,
    max_rounds: int = 3,
    seed: int,
    step: int,
    processes: Processes = Processes(),
) -> tuple[list[GroupT], list[GroupT]]:
    """Sample problems, and replacements for groups that teach nothing.

    Returns the step's groups and the dropped ones. Every process calls `sample` equally often and
    with equally many problems: sampling is a collective operation.

    Args:
        sample: samples and scores the groups of some problems.
        problem_ids: the problems that this process samples first in this step.
        all_ids: every training problem.
        keeps: whether a group teaches something, one of `FILTERS`.
        max_rounds: calls of `sample`, at most: each takes as long as the longest response.
        seed: the run's seed.
        step: the training step, from 1.
        processes: those that share the step.
    """
    groups = sample(problem_ids)
    left_out: list[GroupT] = []
    asked = set(processes.gather(list(problem_ids)))
    spares = order_spares(all_ids, asked=asked, seed=seed, step=step)
    # The first round is done.
    for _ in range(max_rounds - 1):
        flat = [index for index, group in enumerate(groups) if not keeps(group.scored)]
        # As many as the process that needs the most, since all sample together.
        number = min(max(processes.gather([len(flat)])), len(spares) // processes.count)
        if not number:
            break
        first = processes.index * number
        fresh = sample(spares[first : first + number])
        # All processes have taken theirs: the lists stay equal.
        del spares[: number * processes.count]
        mixed = [group for group in fresh if keeps(group.scored)]
        left_out += [group for group in fresh if not keeps(group.scored)]
        # More than were needed here: other processes needed them.
        left_out += mixed[len(flat) :]
        for index, group in zip(flat, mixed, strict=False):
            left_out.append(groups[index])
            groups[index] = group
    return groups, left_out
