"""The decisions of a step in their order, on given verdicts (the judge's part is tested with the evaluator)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from small_runs import scored

from microcoder.judge import Judge
from microcoder.judge.core.rewards import load_rewards
from microcoder.judge.core.types import Outcome, Problem, Rollout, TestCase
from microcoder.train.algorithm.config import AlgorithmConfig, DapoLoss, DrGrpoLoss
from microcoder.train.algorithm.masking import (
    ConditionalMasking,
    LeaveOutOf,
    MaskAll,
    NoMasking,
    SoftPenalty,
    StopProperly,
)
from microcoder.train.algorithm.scoring import build_rules, note_clipped, note_mismatch, score_rollouts
from microcoder.train.algorithm.selection import is_mixed
from microcoder.train.metrics import summarise_step
from microcoder.train.rollouts import SamplerMismatch, ScoredRollout, measure_doses

PROBLEM = Problem(id="double", tests=(TestCase(input="2", output="4"),))
RIGHT = "```python\nprint(2 * int(input()))\n```"
WRONG = "```python\nprint(3 * int(input()))\n```"
CUT_OFF = "```python\nprint(2 * in"
UNMASKED = NoMasking(kind="none")


def rollout(text: str, num_tokens: int, *, is_truncated: bool = False) -> Rollout:
    return Rollout(PROBLEM.id, "prompt", text, tuple(range(num_tokens)), is_truncated)


GROUP = [
    rollout(RIGHT, 6),
    rollout(RIGHT, 10, is_truncated=True),
    rollout(WRONG, 8),
    rollout(CUT_OFF, 10, is_truncated=True),
]


def score(judge: Judge, algorithm: AlgorithmConfig, group: Sequence[Rollout] = GROUP) -> list[ScoredRollout]:
    rules = build_rules(algorithm, max_response_tokens=10)
    return score_rollouts([group], [PROBLEM], judge=judge, rules=rules, seed=0, step=1)[0]


def test_mean_std_mask_and_its_reason(judge: Judge) -> None:
    scored = score(judge, AlgorithmConfig(masking=ConditionalMasking(rho=1.0)))
    assert [sample.reward for sample in scored] == [1.0, 1.0, 0.0, 0.0]
    std = (1 / 3) ** 0.5
    assert [sample.advantage for sample in scored] == pytest.approx([0.5 / std, 0, -0.5 / std, 0], abs=1e-5)
    assert [sample.masked_why for sample in scored] == ["", "truncated_correct", "", "truncated_incomplete"]
    everything = score(judge, AlgorithmConfig(masking=MaskAll(kind="all")))
    assert [sample.masked_why for sample in everything] == ["", "truncated", "", "truncated"]


def test_dr_grpo_leaves_out_the_std_and_the_length(judge: Judge) -> None:
    algorithm = AlgorithmConfig(advantage="dr_grpo", masking=UNMASKED)
    assert [sample.advantage for sample in score(judge, algorithm)] == [0.5, 0.5, -0.5, -0.5]
    assert isinstance(algorithm.loss, DrGrpoLoss)
    assert isinstance(AlgorithmConfig().loss, DapoLoss)
    assert AlgorithmConfig(loss=DrGrpoLoss(kind="dr_grpo")).advantage == "dr_grpo"
    assert isinstance(AlgorithmConfig(advantage="dr_grpo", loss=DapoLoss()).loss, DapoLoss)


def test_weights_come_before_the_groups_mean(judge: Judge) -> None:
    """Advantages of a weighted sum are those of its totals, not a sum of each reward's own advantages."""
    rewards = load_rewards([("all_tests", 1.0, {}), ("format", 0.25, {})])
    rules = build_rules(AlgorithmConfig(masking=UNMASKED), max_response_tokens=10, rewards=rewards)
    (scored,) = score_rollouts([GROUP], [PROBLEM], judge=judge, rules=rules, seed=0, step=1)
    assert [sample.reward for sample in scored] == [1.25, 1.0, 0.25, 0.0]
    std = ((0.625**2 + 0.375**2 + 0.375**2 + 0.625**2) / 3) ** 0.5
    expected = [part / std for part in (0.625, 0.375, -0.375, -0.625)]
    assert [sample.advantage for sample in scored] == pytest.approx(expected, abs=1e-5)


SOFT = SoftPenalty(kind="soft_penalty", window_tokens=4)
STOP = StopProperly(kind="stop_properly", factor=0.5, penalty=0.25)


@pytest.mark.parametrize(
    ("masking", "penalties", "rewards", "advantages"),
    [
        (SOFT, [0.0, -1.0, -0.5, -1.0], [1.0, 0.0, -0.5, -1.0], [1.125, 0.125, -0.375, -0.875]),
        (STOP, [0.0, -0.75, 0.0, -0.25], [1.0, 0.25, 0.0, -0.25], [0.75, 0.0, -0.25, -0.5]),
    ],
)
def test_a_length_penalty_enters_the_reward_and_is_recorded(
    judge: Judge,
    masking: SoftPenalty | StopProperly,
    penalties: list[float],
    rewards: list[float],
    advantages: list[float],
) -> None:
    scored = score(judge, AlgorithmConfig(advantage="dr_grpo", masking=masking))
    assert [sample.length_penalty for sample in scored] == penalties
    assert [sample.reward for sample in scored] == rewards
    assert [sample.advantage for sample in scored] == advantages
    assert {sample.masked_why for sample in scored} == {""}


def test_doses_are_the_advantage_that_was_taken_and_not_the_responses_that_were_touched(judge: Judge) -> None:
    mask_all = AlgorithmConfig(advantage="dr_grpo", masking=MaskAll(kind="all"))
    scored = score(judge, mask_all)
    assert [sample.lost for sample in scored] == [{}, {"mask": 0.5}, {}, {"mask": -0.5}]
    assert measure_doses(scored) == {"mask_negative": 0.25, "mask_positive": 0.25}
    lowered = score(judge, AlgorithmConfig(advantage="dr_grpo", masking=SOFT))
    assert [sample.lost.get("penalty", 0.0) for sample in lowered] == [-0.625, 0.375, -0.125, 0.375]
    assert measure_doses(lowered) == pytest.approx({"penalty_negative": 0.375, "penalty_positive": 0.375})
    # Of a group whose rewards are equal the mask takes nothing, however many it touches.
    flat = score(judge, mask_all, [GROUP[1]] * 3)
    row = summarise_step([scored, flat], step=1, temperature=1.0, max_response_tokens=10, optimizer={}, seconds={})
    assert (row.masked_share, row.masked_effective_share) == (5 / 7, 2 / 7)
    seen = [SamplerMismatch(0, 1, 1, weight) for weight in (0.5, 0)]
    ((half, whole),) = note_mismatch([[scored[0], scored[2]]], seen)
    assert (half.lost, whole.lost, half.masked_why) == ({"mismatch": 0.25}, {"mismatch": -0.5}, "")
    assert measure_doses([half, whole]) == {"mismatch_negative": 0.5, "mismatch_positive": 0.25}
    clipped = note_clipped([[half], [whole, scored[0]]], {0: 0.5, 2: 1.0})
    assert [[one.lost.get("clip") for one in group] for group in clipped] == [[0.125], [None, 0.5]]


@pytest.mark.parametrize(
    ("leave_out_of", "advantages", "counts"),
    [
        ("gradient", [0.5, 0.0, -0.5, 0.0], [True, True, True, True]),
        ("denominator", [0.5, 0.0, -0.5, 0.0], [True, False, True, False]),
        # One right and one wrong response are left, around a mean of 1/2 as with all four: add a right one.
        ("baseline", [1 / 3, 0.0, -2 / 3, 0.0, 1 / 3], [True, False, True, False, True]),
    ],
)
def test_a_masked_response_leaves_what_the_recipe_says(
    judge: Judge, leave_out_of: LeaveOutOf, advantages: list[float], counts: list[bool]
) -> None:
    masking = MaskAll(kind="all", leave_out_of=leave_out_of)
    algorithm = AlgorithmConfig(advantage="dr_grpo", loss=DapoLoss(), masking=masking)
    scored = score(judge, algorithm, [*GROUP, rollout(RIGHT, 6)][: len(counts)])
    assert [sample.advantage for sample in scored] == pytest.approx(advantages)
    assert [sample.counts for sample in scored] == counts
    assert [bool(sample.masked_why) for sample in scored][:4] == [False, True, False, True]


def test_a_group_is_mixed_by_its_rewards_not_by_length_penalty() -> None:
    assert is_mixed([scored(), scored(Outcome.WRONG_ANSWER)])
    assert not is_mixed([scored(), scored(reward=0.5, length_penalty=-0.5)])
    assert not is_mixed([scored(), scored(Outcome.SANDBOX_FAULT)])


def test_a_fence_without_a_program_is_counted(judge: Judge) -> None:
    unread = [rollout("```print(4)```", 4), rollout("I do not know.", 4), GROUP[0], GROUP[3]]
    scored = score(judge, AlgorithmConfig(masking=UNMASKED), unread)
    row = summarise_step([scored], step=1, temperature=1.0, max_response_tokens=10, optimizer={}, seconds={})
    assert (row.no_code_share, row.unread_fence_share) == (0.75, 0.25)
