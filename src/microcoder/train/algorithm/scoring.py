"""All decisions about a step's rollouts, in the paper's order. Every engine calls this and decides nothing itself.

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


def list_losses(
    rewards_G: Sequence[float | None],
    penalties_G: Sequence[float],
    masked_G: Sequence[bool],
    advantage: Advantage,
) -> list[dict[str, float]]:
    """Return how much advantage each member loses, by cause (`penalty`, `mask`); a cause without loss has no key.

    Args:
        rewards_G: rewards with their length penalties; None is unscored.
        penalties_G: the penalties, 0 or negative.
        masked_G: whether a mask sets the advantage to 0. The loss is the advantage that the member has with all in
            the baseline.
        advantage: the recipe's function from rewards to advantages.
    """
    if not any(penalties_G) and not any(masked_G):
        return [{} for _ in rewards_G]
    whole_G = advantage(rewards_G)
    bare_G = whole_G
    if any(penalties_G):
        bare_G = advantage(
            [None if r is None else r - p for r, p in zip(rewards_G, penalties_G, strict=True)]
        )
    taken_G = (
        {"penalty": bare - whole, "mask": whole if is_masked else 0.0}
        for bare, whole, is_masked in zip(bare_G, whole_G, masked_G, strict=True)
    )
    return [{idea: amount for idea, amount in taken.items() if amount} for taken in taken_G]


REWARD_DRAW = "reward-"
"""Prefix that makes the random draw of a response's rewards independent of its mask's."""


@dataclass(frozen=True, slots=True)
class JudgedRollout:
    """A response with its verdict, reward and mask draw; the advantage needs its group."""

    rollout: Rollout
    program: Program
    verdict: Verdict
    worth: Reward
    """The response's reward, by `Rules.reward`."""
    draw: float
    """Random number of the mask, in [0, 1), see `draw_uniform`."""
    tier: str | None = None
    """Tier of the response's problem."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The functions by which responses get programs, rewards, masks and advantages, and the length limit."""

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
    return [
        decide_group(
            [
                JudgedRollout(
                    *judged,
                    rules.reward(
                        problem,
                        *judged,
                        draw=draw(problem_id=REWARD_DRAW + problem.id, sample_index=index),
                    ),
                    draw(problem_id=problem.id, sample_index=index),
                    problem.tier,
                )
                for index, judged in enumerate(judged_G)
            ],
            rules=rules,
        )
        for problem, judged_G in zip(problems_P, judged_P_G, strict=True)
    ]


def score_heldout(
    rollouts_P_G: Sequence[Sequence[Rollout]],
    problems_P: Sequence[Problem],
    *,
    judge: BatchJudge,
    extract: Extractor = USUAL,
) -> list[list[ScoredRollout]]:
    """Judge held-out samples; return them with rewards, but without advantages."""
    judged_P_G = judge_rollouts(rollouts_P_G, problems_P, judge=judge, extract=extract)
    return [
        [score_apart(*judged, problem.tier, index) for index, judged in enumerate(judged_G)]
        for problem, judged_G in zip(problems_P, judged_P_G, strict=True)
    ]


def score_apart(
    rollout: Rollout, program: Program, verdict: Verdict, tier: str | None, index: int
) -> ScoredRollout:
    """Return a sample with its reward, but no advantage: nothing is learnt from it."""
    return ScoredRollout(rollout, program, verdict, score_verdict(verdict), 0.0, "", tier, index)


def judge_rollouts(
    rollouts_P_G: Sequence[Sequence[Rollout]],
    problems_P: Sequence[Problem],
    *,
    judge: BatchJudge,
    extract: Extractor = USUAL,
) -> list[list[tuple[Rollout, Program, Verdict]]]:
    """Extract and judge the programs of all rollouts in one batch; return (rollout, program, verdict) triples."""
    read = [
        (
            rollout,
            extract(
                rollout.completion, is_truncated=rollout.is_truncated, language=problem.language
            ),
            problem,
        )
        for problem, rollouts_G in zip(problems_P, rollouts_P_G, strict=True)
        for rollout in rollouts_G
    ]
    verdicts = judge.judge([program for _, program, _ in read], [problem for *_, problem in read])
    judged = iter(
        [
            (rollout, program, verdict)
            for (rollout, program, _), verdict in zip(read, verdicts, strict=True)
        ]
    )
    return [[next(judged) for _ in rollouts_G] for rollouts_G in rollouts_P_G]


def decide_group(judged_G: Sequence[JudgedRollout], *, rules: Rules) -> list[ScoredRollout]:
    """Return the responses to one problem with their penalties, masks and advantages."""
    masking, limit = rules.masking, rules.max_response_tokens
    penalties_G = [
        masking.penalise(one.rollout, one.worth.total or 0.0, max_response_tokens=limit)
        for one in judged_G
    ]
    rewards_G = [
        None if one.worth.total is None else one.worth.total + penalty
        for one, penalty in zip(judged_G, penalties_G, strict=True)
    ]
    reasons_G = [
        masking.why_masked(one.rollout, one.program, one.verdict, draw=one.draw) for one in judged_G
    ]
    has_no_baseline = masking.excluded_from == "baseline"
    advantages_G = rules.advantage(
        [
            None if reason and has_no_baseline else r
            for r, reason in zip(rewards_G, reasons_G, strict=True)
        ]
    )
    lost_G = list_losses(
        rewards_G, penalties_G, [bool(reason) for reason in reasons_G], rules.advantage
    )
    return [
        ScoredRollout(
            rollout=one.rollout,
            program=one.program,
            verdict=one.verdict,
            reward=rewards_G[index],
            advantage=0.0 if reason else advantages_G[index],
            masked_why=str(reason) if reason else "",
            tier=one.tier,
            sample_index=index,
            length_penalty=penalties_G[index],
            rewards=one.worth.parts,
            lost=lost_G[index],
            counts=not reason or masking.excluded_from == "gradient",
            unscored_by=one.worth.unscored_by,
        )
        for index, (one, reason) in enumerate(zip(judged_G, reasons_G, strict=True))
    ]


def note_mismatch(
    scored_P_G: Sequence[Sequence[ScoredRollout]], rows: Sequence[SamplerMismatch]
) -> list[list[ScoredRollout]]:
    """Return the rollouts with their observed ratios; one whose weight is 0 is masked."""
    left = iter(rows)
    return [[_note(sample, next(left)) for sample in group] for group in scored_P_G]


def _note(sample: ScoredRollout, seen: SamplerMismatch) -> ScoredRollout:
    taken = sample.advantage * max(0.0, 1 - seen.weight)
    noted = replace(
        sample, mismatch=seen, lost={**sample.lost, "mismatch": taken} if taken else sample.lost
    )
    if seen.weight > 0 or sample.masked_why:
        return noted
    return replace(noted, advantage=0.0, masked_why=str(MaskReason.SAMPLER_MISMATCH))
