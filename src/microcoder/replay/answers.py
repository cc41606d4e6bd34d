"""What a step's rollouts would have taught under an alternative, in numbers.

`describe_step` gives what no alternative changes, `answer_step` an alternative's decisions held
against the recorded ones, and `Totals` sums answers over the run. Every row is plain: `asdict`
makes JSON of it, for the terminal, the viewer and files.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from microcoder.replay.recordings import Lack, RecordedStep
from microcoder.train.algorithm.selection import FILTERS, GroupFiltering
from microcoder.train.metrics import Groups, measure_responses
from microcoder.train.rollouts import (
    ScoredRollout,
    ends_in_loop,
    has_signal,
    sum_removed_advantages,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """What a step's rollouts are, whatever is decided about them."""

    step: int
    num_groups: int
    num_rollouts: int
    temperature: float | None
    max_response_tokens: int | None
    length_mean: float | None
    """Mean number of tokens; None where lengths are not recorded."""
    truncated_share: float | None
    diversity: float | None
    """Share of distinct 4-grams, as in training; None where tokens are not recorded."""
    looping_share: float | None
    """Share of responses that end in a loop."""


@dataclass(frozen=True, slots=True)
class Products:
    """Products of a recorded and an alternative's advantage vector."""

    dot: float = 0.0
    square_before: float = 0.0
    square_after: float = 0.0

    @property
    def cosine(self) -> float | None:
        """Their cosine; None if one of them is zero."""
        if not self.square_before or not self.square_after:
            return None
        if self.dot == self.square_before == self.square_after:
            return 1.0
        return self.dot / math.sqrt(self.square_before * self.square_after)

    def __add__(self, other: "Products") -> "Products":
        return Products(
            self.dot + other.dot,
            self.square_before + other.square_before,
            self.square_after + other.square_after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswer:
    """What an alternative decides about a step's rollouts, beside what was decided."""

    step: int
    alternative: str
    reward_mean: float | None
    rewards_changed: int
    """Rollouts whose reward, penalties included, is another than the recorded one."""
    flat_groups: int
    """Groups whose rewards are all equal, so that they teach nothing."""
    became_flat: int
    """Groups that are flat here and were not in the recording."""
    became_mixed: int
    """Groups that were flat in the recording and are not here."""
    filtered: Mapping[str, float]
    """Share of the groups that each dynamic filter would throw away, by `group_filtering`."""
    replaces_groups: int
    """Groups that the alternative's own filter would have replaced by others."""
    masked: Mapping[str, int]
    """Masked rollouts by reason."""
    masked_right: int
    """Masked rollouts whose program is right."""
    advantage_total: float
    """Summed |advantage| before anything was taken."""
    taken: Mapping[str, float]
    """Summed |advantage| that each mechanism took: `mask`, `penalty`, `mismatch`, each with its
    sign, `_positive` (credit) or `_negative` (blame)."""
    doses: Mapping[str, float]
    """The same as shares of `advantage_total`, as in `StepMetrics.doses`."""
    differing: int
    """Rollouts whose advantage, or place in the loss's denominator, is another."""
    recounted: int
    """Those of them that count in the loss's denominator here or there only."""
    products: Products
    """Of the recorded and the alternative's advantages, a component a rollout."""
    cosine: float | None
    """Cosine of the two; None if one of them is zero."""
    differs: bool
    """Whether the update would have been another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingRollout:
    """A rollout that an alternative decides otherwise."""

    step: int
    alternative: str
    row: int
    """Its place among the rollouts of the step, from 0: the row of a run's file."""
    problem_id: str
    sample_index: int
    verdict: str
    reward: float | None
    reward_then: float | None
    """The reward under the alternative."""
    advantage: float
    advantage_then: float
    masked_why: str
    masked_why_then: str


def describe_step(step: RecordedStep, lacks: frozenset[Lack]) -> StepFacts:
    """Return the facts of a step; None for what is not recorded."""
    samples = list(chain.from_iterable(step.scored_P_G))
    measured = measure_responses(step.scored_P_G)
    has_tokens = Lack.TOKENS not in lacks
    looping_share = None
    if has_tokens:
        looping_share = fmean(ends_in_loop(sample.rollout.token_ids) for sample in samples)
    return StepFacts(
        step=step.step,
        num_groups=len(step.scored_P_G),
        num_rollouts=len(samples),
        temperature=step.temperature,
        max_response_tokens=step.max_response_tokens,
        length_mean=None if Lack.LENGTHS in lacks else measured["length_mean"],
        truncated_share=None if Lack.TRUNCATION in lacks else measured["truncated_share"],
        diversity=measured["diversity"] if has_tokens else None,
        looping_share=looping_share,
    )


def answer_step(
    recorded_P_G: Groups,
    decided_P_G: Groups,
    *,
    step: int,
    alternative: str,
    group_filtering: GroupFiltering = "none",
    recorded_filtering: GroupFiltering = "none",
    tolerance: float = 0.0,
) -> StepAnswer:
    """Return what an alternative decides about a step, held against what was decided.

    Args:
        recorded_P_G: the rollouts with the recorded decisions.
        decided_P_G: the same with the alternative's.
        step: the training step.
        alternative: its name.
        group_filtering: the alternative's filter of groups.
        recorded_filtering: the one that has dropped groups already.
        tolerance: relative difference up to which two advantages are the same.
    """
    samples = list(chain.from_iterable(decided_P_G))
    originals = list(chain.from_iterable(recorded_P_G))
    pairs = list(zip(originals, samples, strict=True))
    masked = [sample for sample in samples if sample.masked_why]
    flat_before = [_is_flat(scored_G) for scored_G in recorded_P_G]
    flat_after = [_is_flat(scored_G) for scored_G in decided_P_G]
    flats = list(zip(flat_before, flat_after, strict=True))
    filtered = {}
    for name, keeps in FILTERS.items():
        filtered[str(name)] = fmean(not keeps(scored_G) for scored_G in decided_P_G)
    replaces = 0
    # A filter that the run had itself has replaced what it could.
    if group_filtering not in ("none", recorded_filtering):
        keeps = FILTERS[group_filtering]
        replaces = sum(not keeps(scored_G) for scored_G in decided_P_G)
    differing = sum(_differs(before, after, tolerance) for before, after in pairs)
    removed = sum_removed_advantages(samples)
    products = measure_products(originals, samples)
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    return StepAnswer(
        step=step,
        alternative=alternative,
        reward_mean=fmean(rewards) if rewards else None,
        rewards_changed=sum(before.reward != after.reward for before, after in pairs),
        flat_groups=sum(flat_after),
        became_flat=sum(after and not before for before, after in flats),
        became_mixed=sum(before and not after for before, after in flats),
        filtered=filtered,
        replaces_groups=replaces,
        masked=dict(sorted(Counter(sample.masked_why for sample in masked).items())),
        masked_right=sum(sample.verdict.is_accepted for sample in masked),
        advantage_total=removed.total,
        taken=removed.removed,
        doses=removed.shares,
        differing=differing,
        recounted=sum(before.counts != after.counts for before, after in pairs),
        products=products,
        cosine=products.cosine,
        differs=bool(differing or replaces),
    )


def list_differing(
    recorded_P_G: Groups,
    decided_P_G: Groups,
    *,
    step: int,
    alternative: str,
    tolerance: float = 0.0,
) -> list[DifferingRollout]:
    """Return the rollouts of a step that an alternative decides otherwise."""
    originals = chain.from_iterable(recorded_P_G)
    samples = chain.from_iterable(decided_P_G)
    rows = []
    pairs = zip(originals, samples, strict=True)
    for place, (before, after) in enumerate(pairs):
        if _differs(before, after, tolerance) or before.reward != after.reward:
            row = DifferingRollout(
                step=step,
                alternative=alternative,
                row=place,
                problem_id=before.rollout.problem_id,
                sample_index=before.sample_index,
                verdict=str(after.verdict.outcome),
                reward=before.reward,
                reward_then=after.reward,
                advantage=before.advantage,
                advantage_then=after.advantage,
                masked_why=before.masked_why,
                masked_why_then=after.masked_why,
            )
            rows.append(row)
    return rows


def _is_flat(scored_G: Sequence[ScoredRollout]) -> bool:
    return not has_signal([sample.reward for sample in scored_G])


def _differs(before: ScoredRollout, after: ScoredRollout, tolerance: float) -> bool:
    """Return whether a rollout counts otherwise in the update."""
    is_same = math.isclose(before.advantage, after.advantage, rel_tol=tolerance)
    return not is_same or before.counts != after.counts


def measure_products(
    originals: Sequence[ScoredRollout], samples: Sequence[ScoredRollout]
) -> Products:
    """Return the products of the advantages of the same rollouts."""
    before = [sample.advantage for sample in originals]
    after = [sample.advantage for sample in samples]
    return Products(
        math.fsum(x * y for x, y in zip(before, after, strict=True)),
        math.fsum(x * x for x in before),
        math.fsum(x * x for x in after),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnswer:
    """What an alternative decides over the whole run."""

    alternative: str
    num_steps: int
    num_rollouts: int
    num_groups: int
    first_difference: int | None
    """First step whose update would have been another one; None if all are the same."""
    differing_steps: int
    differing: int
    """Rollouts that count otherwise."""
    recounted: int
    """Rollouts that count in the loss's denominator here or there only."""
    cosine: float | None
    """Cosine of all advantages of the run."""
    rewards_changed: int
    flat_groups: int
    became_flat: int
    became_mixed: int
    filtered: Mapping[str, float]
    """Share of the groups that each dynamic filter would throw away."""
    replaces_groups: int
    masked: Mapping[str, int]
    masked_right: int
    doses: Mapping[str, float]
    """Share of the run's summed |advantage| that each mechanism took, by sign."""


def sum_up(
    alternative: str, facts: Sequence[StepFacts], answers: Sequence[StepAnswer]
) -> RunAnswer:
    """Return the sums of an alternative's answers, one a step."""
    num_groups = sum(fact.num_groups for fact in facts)
    masked: Counter[str] = Counter()
    taken: dict[str, float] = {}
    filtered: dict[str, float] = {}
    for fact, answer in zip(facts, answers, strict=True):
        masked.update(answer.masked)
        for name, amount in answer.taken.items():
            taken[name] = taken.get(name, 0.0) + amount
        for name, share in answer.filtered.items():
            filtered[name] = filtered.get(name, 0.0) + share * fact.num_groups
    total = sum(answer.advantage_total for answer in answers)
    differing = [answer.step for answer in answers if answer.differs]
    products = sum((answer.products for answer in answers), Products())
    return RunAnswer(
        alternative=alternative,
        num_steps=len(answers),
        num_rollouts=sum(fact.num_rollouts for fact in facts),
        num_groups=num_groups,
        first_difference=differing[0] if differing else None,
        differing_steps=len(differing),
        differing=sum(answer.differing for answer in answers),
        recounted=sum(answer.recounted for answer in answers),
        cosine=products.cosine,
        rewards_changed=sum(answer.rewards_changed for answer in answers),
        flat_groups=sum(answer.flat_groups for answer in answers),
        became_flat=sum(answer.became_flat for answer in answers),
        became_mixed=sum(answer.became_mixed for answer in answers),
        filtered={name: count / num_groups for name, count in sorted(filtered.items())},
        replaces_groups=sum(answer.replaces_groups for answer in answers),
        masked=dict(sorted(masked.items())),
        masked_right=sum(answer.masked_right for answer in answers),
        doses={name: amount / total for name, amount in sorted(taken.items()) if total},
    )
