"""All decisions about a step's rollouts, in the paper's order. Every engine calls this and decides nothing itself.

rollout -> program -> verdict -> reward (and penalty) -> truncation mask -> advantage of the group
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from microcoder.evaluator.protocols import BatchJudge
from microcoder.extract import USUAL, Extractor
from microcoder.metrics import ScoredRollout
from microcoder.rewards import ALL_TESTS, Reward, RewardSum, score_verdict
from microcoder.training.algorithm.advantages import Advantage, build_advantage
from microcoder.training.algorithm.masking import TruncationRule, draw_uniform
from microcoder.training.algorithm_config import AlgorithmConfig
from microcoder.types import Problem, Program, Rollout, Verdict

REWARD_DRAW = "reward-"
"""Separates the random draw of a response's rewards from that of its mask."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The functions of an algorithm."""

    reward: RewardSum
    """Of one rollout, by itself."""
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
    """Judge a step's rollouts and decide their advantages.

    Args:
        rollouts_P_G: G responses to each of P problems.
        problems_P: the problems, in the same order.
        judge: the evaluator.
        rules: how rewards become advantages, and whose becomes zero, see `build_rules`.
        seed: the run's seed, for the draws of the mask and of rewards.
        step: the training step, from 1.
    """
    programs_P_G, verdicts_P_G = judge_rollouts(rollouts_P_G, problems_P, judge=judge, extract=rules.extract)
    draws_P_G, reward_draws_P_G = (
        [
            [
                draw_uniform(seed=seed, step=step, problem_id=purpose + problem.id, sample_index=index)
                for index in range(len(rollouts_G))
            ]
            for rollouts_G, problem in zip(rollouts_P_G, problems_P, strict=True)
        ]
        for purpose in ("", REWARD_DRAW)
    )
    drafts_P_G = _judge_drafts(rollouts_P_G, programs_P_G, draws_P_G, problems_P, judge=judge, rules=rules)
    return [
        decide_group(
            rollouts_G,
            programs_G,
            verdicts_G,
            [
                rules.reward(problem, *one, draw=draw)
                for *one, draw in zip(rollouts_G, programs_G, verdicts_G, reward_draws_G, strict=True)
            ],
            draws_G,
            drafts_G,
            tier=problem.tier,
            rules=rules,
        )
        for rollouts_G, programs_G, verdicts_G, draws_G, drafts_G, reward_draws_G, problem in zip(
            rollouts_P_G,
            programs_P_G,
            verdicts_P_G,
            draws_P_G,
            drafts_P_G,
            reward_draws_P_G,
            problems_P,
            strict=True,
        )
    ]


def score_heldout(
    rollouts_P_G: Sequence[Sequence[Rollout]],
    problems_P: Sequence[Problem],
    *,
    judge: BatchJudge,
    extract: Extractor = USUAL,
) -> list[list[ScoredRollout]]:
    """Judge held-out samples: rewards, but no advantages."""
    programs_P_G, verdicts_P_G = judge_rollouts(rollouts_P_G, problems_P, judge=judge, extract=extract)
    return [
        [
            ScoredRollout(rollout, program, verdict, score_verdict(verdict), 0.0, "", problem.tier, index)
            for index, (rollout, program, verdict) in enumerate(zip(*group, strict=True))
        ]
        for problem, *group in zip(problems_P, rollouts_P_G, programs_P_G, verdicts_P_G, strict=True)
    ]


def read_program(rollout: Rollout, problem: Problem, extract: Extractor = USUAL) -> Program:
    """Extract the program from a rollout."""
    return extract(rollout.completion, is_truncated=rollout.is_truncated, language=problem.language)


def judge_rollouts(
    rollouts_P_G: Sequence[Sequence[Rollout]],
    problems_P: Sequence[Problem],
    *,
    judge: BatchJudge,
    extract: Extractor = USUAL,
) -> tuple[list[list[Program]], list[list[Verdict]]]:
    """Extract and judge the programs of all rollouts in one batch."""
    programs_P_G = [
        [read_program(rollout, problem, extract) for rollout in rollouts_G]
        for problem, rollouts_G in zip(problems_P, rollouts_P_G, strict=True)
    ]
    flat_programs = [program for programs_G in programs_P_G for program in programs_G]
    flat_problems = [problem for problem, programs_G in zip(problems_P, programs_P_G, strict=True) for _ in programs_G]
    verdicts = iter(judge.judge(flat_programs, flat_problems))
    return programs_P_G, [[next(verdicts) for _ in programs_G] for programs_G in programs_P_G]


def _judge_drafts(
    rollouts_P_G: Sequence[Sequence[Rollout]],
    programs_P_G: Sequence[Sequence[Program]],
    draws_P_G: Sequence[Sequence[float]],
    problems_P: Sequence[Problem],
    *,
    judge: BatchJudge,
    rules: Rules,
) -> list[list[Verdict | None]]:
    """Judge the incomplete programs that the mask needs verdicts on; None for the others."""
    wanted = [
        (place, index, replace(program, code=program.draft), problem)
        for place, problem in enumerate(problems_P)
        for index, (rollout, program, draw) in enumerate(
            zip(rollouts_P_G[place], programs_P_G[place], draws_P_G[place], strict=True)
        )
        if rules.masking.wants_draft(rollout, program, draw=draw)
    ]
    drafts_P_G: list[list[Verdict | None]] = [[None] * len(rollouts_G) for rollouts_G in rollouts_P_G]
    if wanted:
        verdicts = judge.judge([program for *_, program, _ in wanted], [problem for *_, problem in wanted])
        for (place, index, *_), verdict in zip(wanted, verdicts, strict=True):
            drafts_P_G[place][index] = verdict
    return drafts_P_G


def decide_group(
    rollouts_G: Sequence[Rollout],
    programs_G: Sequence[Program],
    verdicts_G: Sequence[Verdict],
    worth_G: Sequence[Reward],
    draws_G: Sequence[float],
    drafts_G: Sequence[Verdict | None],
    *,
    tier: str | None,
    rules: Rules,
) -> list[ScoredRollout]:
    """Decide penalties, masks and advantages of a judged group.

    Args:
        rollouts_G: the responses to one problem.
        programs_G: their programs.
        verdicts_G: the judgements on those.
        worth_G: what each is worth by itself, `rules.reward`.
        draws_G: see `draw_uniform`.
        drafts_G: the judgements on incomplete programs, where the mask asked for them.
        tier: of the problem.
        rules: how rewards become advantages, and whose becomes zero.
    """
    penalties_G = [
        rules.masking.penalise(rollout, worth.total or 0.0, max_response_tokens=rules.max_response_tokens)
        for rollout, worth in zip(rollouts_G, worth_G, strict=True)
    ]
    rewards_G = [
        None if worth.total is None else worth.total + penalty
        for worth, penalty in zip(worth_G, penalties_G, strict=True)
    ]
    reasons_G = [
        rules.masking.why_masked(rollout, program, verdict, draw=draw, draft=draft)
        for rollout, program, verdict, draw, draft in zip(
            rollouts_G, programs_G, verdicts_G, draws_G, drafts_G, strict=True
        )
    ]
    excluded_from = rules.masking.excluded_from
    advantages_G = rules.advantage(
        [None if reason and excluded_from == "baseline" else r for r, reason in zip(rewards_G, reasons_G, strict=True)]
    )
    return [
        ScoredRollout(
            rollout=rollouts_G[index],
            program=programs_G[index],
            verdict=verdicts_G[index],
            reward=rewards_G[index],
            advantage=0.0 if reason else advantages_G[index],
            masked_why=str(reason) if reason else "",
            tier=tier,
            sample_index=index,
            length_penalty=penalties_G[index],
            rewards=worth_G[index].parts,
            counts=not reason or excluded_from == "gradient",
        )
        for index, reason in enumerate(reasons_G)
    ]
