"""All decisions about a step's rollouts, in the paper's order.

Every engine calls this and decides nothing itself.

rollout -> program -> verdict -> reward (and penalty) -> truncation mask -> advantage of the group
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from microcoder.judge.core.extract import USUAL, Extractor
from microcoder.judge.core.rewards import ALL_TESTS, Reward, RewardSum, score_verdict
from microcoder.judge.core.types import Problem, Program, Rollout, Verdict
from microcoder.train.algorithm.advantages import Advantage, build_advantage
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.algorithm.masking import MaskReason, TruncationRule, draw_uniform
from microcoder.train.rollouts import SamplerMismatch, ScoredRollout

if TYPE_CHECKING:
    from microcoder.judge.fleet.judge import BatchJudge


def find_removed_advantages(
    rewards_G: Sequence[float | None],
    penalties_G: Sequence[float],
    masked_G: Sequence[bool],
    advantage: Advantage,
) -> list[dict[str, float]]:
    """Return how much advantage is removed from each member, by cause (`penalty`, `mask`).

    A cause that removes nothing has no key.

    Args:
        rewards_G: rewards with their length penalties; None is unscored.
        penalties_G: the penalties, 0 or negative.
        masked_G: whether a mask sets the advantage to 0. It removes the advantage that the member
            has with all in the baseline.
        advantage: the recipe's function from rewards to advantages.
    """
    # The usual case; the advantage function need not be asked again.
    if not any(penalties_G) and not any(masked_G):
        return [{} for _ in rewards_G]
    with_penalty_G = advantage(rewards_G)
    without_penalty_G = with_penalty_G
    if any(penalties_G):
        bare_G = list(rewards_G)
        for index, reward in enumerate(rewards_G):
            if reward is not None:
                bare_G[index] = reward - penalties_G[index]
        without_penalty_G = advantage(bare_G)
    removed_G = []
    for index, is_masked in enumerate(masked_G):
        removed: dict[str, float] = {}
        # A penalty also moves its group's mean, and so the advantage of the others.
        by_penalty = without_penalty_G[index] - with_penalty_G[index]
        if by_penalty:
            removed["penalty"] = by_penalty
        if is_masked and with_penalty_G[index]:
            removed["mask"] = with_penalty_G[index]
        removed_G.append(removed)
    return removed_G


REWARD_DRAW = "reward-"
"""Prefix that makes the random draw of a response's rewards independent of its mask's."""


@dataclass(frozen=True, slots=True)
class JudgedRollout:
    """A response with its verdict, reward and mask draw; the advantage needs its group."""

    rollout: Rollout
    program: Program
    verdict: Verdict
    reward: Reward
    """The response's reward, by `Rules.reward`."""
    draw: float
    """Random number of the mask, in [0, 1), see `draw_uniform`."""
    tier: str | None = None
    """Tier of the response's problem."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The functions by which responses get programs, rewards, masks and advantages.

    The length limit goes with them.
    """

    reward: RewardSum
    """Reward of one rollout, without its group."""
    advantage: Advantage
    masking: TruncationRule
    max_response_tokens: int
    extract: Extractor = USUAL


def build_rules(
    algorithm: AlgorithmConfig,
    *,
    max_response_tokens: int,
    rewards: RewardSum = ALL_TESTS,
    extract: Extractor = USUAL,
) -> Rules:
    """Return the rules of an algorithm and its rewards at the length limit of a step."""
    advantage = build_advantage(algorithm.advantage, algorithm.advantage_options)
    return Rules(rewards, advantage, algorithm.masking, max_response_tokens, extract)


def score_rollouts(
    rollouts_P_G: Sequence[Sequence[Rollout]],
    problems_P: Sequence[Problem],
    *,
    judge: BatchJudge,
    rules: Rules,
    seed: int,
    step: int,
) -> list[list[ScoredRollout]]:
    """Judge a step's rollouts; return them with rewards, masks and advantages, in the shape given.

    Args:
        rollouts_P_G: G responses to each of P problems.
        problems_P: the problems, in the same order.
        judge: the evaluator.
        rules: how rewards become advantages, and whose becomes zero, see `build_rules`.
        seed: the run's seed, for the draws of the mask and of rewards.
        step: the training step, from 1.
    """
    draw = partial(draw_uniform, seed=seed, step=step)
    judged_P_G = judge_rollouts(rollouts_P_G, problems_P, judge=judge, extract=rules.extract)
    scored_P_G = []
    for problem, judged_G in zip(problems_P, judged_P_G, strict=True):
        group = []
        for index, (rollout, program, verdict) in enumerate(judged_G):
            # A number of its own: a reward that draws must not be tied to the mask.
            reward_draw = draw(problem_id=REWARD_DRAW + problem.id, sample_index=index)
            judged = JudgedRollout(
                rollout=rollout,
                program=program,
                verdict=verdict,
                reward=rules.reward(problem, rollout, program, verdict, draw=reward_draw),
                draw=draw(problem_id=problem.id, sample_index=index),
                tier=problem.tier,
            )
            group.append(judged)
        scored_P_G.append(decide_group(group, rules=rules))
    return scored_P_G


def score_heldout(
    rollouts_P_G: Sequence[Sequence[Rollout]],
    problems_P: Sequence[Problem],
    *,
    judge: BatchJudge,
    extract: Extractor = USUAL,
) -> list[list[ScoredRollout]]:
    """Judge held-out samples; return them with rewards, but without advantages."""
    judged_P_G = judge_rollouts(rollouts_P_G, problems_P, judge=judge, extract=extract)
    scored_P_G = []
    for problem, judged_G in zip(problems_P, judged_P_G, strict=True):
        scored_G = []
        for index, (rollout, program, verdict) in enumerate(judged_G):
            scored_G.append(score_apart(rollout, program, verdict, problem.tier, index))
        scored_P_G.append(scored_G)
    return scored_P_G


def score_apart(
    rollout: Rollout, program: Program, verdict: Verdict, tier: str | None, index: int
) -> ScoredRollout:
    """Return a sample with its reward and no advantage: nothing is learnt from it."""
    return ScoredRollout(
        rollout=rollout,
        program=program,
        verdict=verdict,
        reward=score_verdict(verdict),
        advantage=0.0,
        masked_why="",
        tier=tier,
        sample_index=index,
    )


def judge_rollouts(
    rollouts_P_G: Sequence[Sequence[Rollout]],
    problems_P: Sequence[Problem],
    *,
    judge: BatchJudge,
    extract: Extractor = USUAL,
) -> list[list[tuple[Rollout, Program, Verdict]]]:
    """Extract and judge the programs of all rollouts in one batch.

    Returns (rollout, program, verdict) triples in the shape of the rollouts.
    """
    programs = []
    problems = []
    for problem, rollouts_G in zip(problems_P, rollouts_P_G, strict=True):
        for rollout in rollouts_G:
            program = extract(
                rollout.completion, is_truncated=rollout.is_truncated, language=problem.language
            )
            programs.append(program)
            problems.append(problem)
    judged = iter(list(zip(programs, judge.judge(programs, problems), strict=True)))
    triples_P_G = []
    for rollouts_G in rollouts_P_G:
        triples_G = []
        for rollout in rollouts_G:
            program, verdict = next(judged)
            triples_G.append((rollout, program, verdict))
        triples_P_G.append(triples_G)
    return triples_P_G


def decide_group(judged_G: Sequence[JudgedRollout], *, rules: Rules) -> list[ScoredRollout]:
    """Return the responses to one problem with their penalties, masks and advantages."""
    masking = rules.masking
    penalties_G: list[float] = []
    rewards_G: list[float | None] = []
    reasons_G: list[str | None] = []
    baseline_G: list[float | None] = []
    for judged in judged_G:
        bare_reward = judged.reward.total
        penalty = masking.penalise(
            judged.rollout, bare_reward or 0.0, max_response_tokens=rules.max_response_tokens
        )
        reward = None if bare_reward is None else bare_reward + penalty
        reason = masking.why_masked(
            judged.rollout, judged.program, judged.verdict, draw=judged.draw
        )
        penalties_G.append(penalty)
        rewards_G.append(reward)
        reasons_G.append(reason)
        if reason and masking.excluded_from == "baseline":
            # To the advantage function a response out of the baseline is like an unscored one.
            baseline_G.append(None)
        else:
            baseline_G.append(reward)
    advantages_G = rules.advantage(baseline_G)
    removed_G = find_removed_advantages(
        rewards_G, penalties_G, [bool(reason) for reason in reasons_G], rules.advantage
    )

    scored_G = []
    for index, judged in enumerate(judged_G):
        reason = reasons_G[index]
        scored = ScoredRollout(
            rollout=judged.rollout,
            program=judged.program,
            verdict=judged.verdict,
            reward=rewards_G[index],
            advantage=advantages_G[index],
            masked_why="",
            tier=judged.tier,
            sample_index=index,
            length_penalty=penalties_G[index],
            rewards=judged.reward.parts,
            lost=removed_G[index],
            unscored_by=judged.reward.unscored_by,
        )
        if reason:
            scored = replace(
                scored,
                advantage=0.0,
                masked_why=str(reason),
                counts=masking.excluded_from == "gradient",
            )
        scored_G.append(scored)
    return scored_G


def note_mismatch(
    scored_P_G: Sequence[Sequence[ScoredRollout]], rows: Sequence[SamplerMismatch]
) -> list[list[ScoredRollout]]:
    """Return the rollouts with their observed ratios; a rollout of weight 0 counts as masked."""
    # They are in the order of the rollouts.
    remaining = iter(rows)
    noted_P_G = []
    for scored_G in scored_P_G:
        noted_P_G.append([_note(sample, next(remaining)) for sample in scored_G])
    return noted_P_G


def _note(sample: ScoredRollout, mismatch: SamplerMismatch) -> ScoredRollout:
    """Return a rollout with its observed ratio, and with the advantage that its weight removes."""
    # A weight above 1 removes nothing.
    removed = sample.advantage * max(0.0, 1 - mismatch.weight)
    lost = sample.lost
    if removed:
        lost = {**lost, "mismatch": removed}
    noted = replace(sample, mismatch=mismatch, lost=lost)
    # Weight 0: all of its tokens were dropped.
    if mismatch.weight > 0 or sample.masked_why:
        return noted
    return replace(noted, advantage=0.0, masked_why=str(MaskReason.SAMPLER_MISMATCH))
