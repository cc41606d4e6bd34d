"""The decisions of a step, alone and in their order: advantages, masks (equation 2),
penalties (DAPO, ProRL v2).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError, TrainingError
from microcoder.judge.core.rewards import load_rewards
from microcoder.judge.core.types import Outcome, Problem, Program, Rollout, TestCase, Verdict
from microcoder.train.algorithm.advantages import ADVANTAGES, build_advantage, weigh_by_mean
from microcoder.train.algorithm.config import AlgorithmConfig, DapoLoss, DrGrpoLoss
from microcoder.train.algorithm.masking import (
    ConditionalMasking,
    LeaveOutOf,
    MaskAll,
    NoMasking,
    SoftPenalty,
    StopProperly,
    draw_uniform,
    repeats,
)
from microcoder.train.algorithm.scoring import build_rules, note_mismatch, score_rollouts
from microcoder.train.algorithm.selection import is_mixed
from microcoder.train.metrics import summarise_step
from microcoder.train.rollouts import (
    SamplerMismatch,
    ScoredRollout,
    has_signal,
    share_removed_advantages,
)
from tests.train.small_runs import scored

shaped_rewards = st.lists(
    st.one_of(st.none(), st.floats(-1, 1).map(lambda r: round(r, 3))),
    min_size=1,
    max_size=16,
)


def by_hand(name: str, scored: np.ndarray, index: int) -> float:
    """The equation of one member, in float64."""
    reward = scored[index]
    mean = scored.sum() / scored.size
    if name == "rloo":
        return reward - np.delete(scored, index).mean()
    divisor = {
        "grpo": math.sqrt(((scored - mean) ** 2).sum() / (scored.size - 1)) + 1e-6,
        "dr_grpo": 1.0,
        "maxrl": mean,
    }[name]
    return (reward - mean) / divisor


@given(shaped_rewards, st.sampled_from(sorted(ADVANTAGES)))
def test_each_equals_its_equation_in_float64_of_the_scored(
    group: list[float | None], name: str
) -> None:
    if name == "maxrl":
        group = [None if reward is None else abs(reward) for reward in group]
    places = []
    for place, reward in enumerate(group):
        if reward is not None:
            places.append(place)
    # The equations know nothing of unscored members: they are taken out, and put back as 0.
    scored = np.array([group[place] for place in places], dtype=np.float64)
    advantages = ADVANTAGES[name](group)
    for place, reward in enumerate(group):
        if reward is None:
            assert advantages[place] == 0.0
    for index, place in enumerate(places):
        expected = by_hand(name, scored, index) if len(set(scored.tolist())) > 1 else 0.0
        assert advantages[place] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert has_signal(group) == any(advantages)


def test_maxrl_refuses_a_mean_below_zero() -> None:
    # (-1 + 0) / 2: to divide by a negative mean would turn right into wrong.
    with pytest.raises(TrainingError, match=r"has -0\.5; use rewards that are 0 or more"):
        weigh_by_mean([-1.0, 0.0])


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("[2, -1, 0]", ""),
        ("[1.0]", "returned [1.0] for 3 rewards; return a list with one number for each"),
        ("7", "returned 7 for 3 rewards"),
        ("[True, 0, 0]", "returned True as an advantage; return finite numbers"),
        ("['1', 0, 0]", "returned '1' as an advantage"),
        ("[0, float('nan'), 0]", "returned nan as an advantage"),
        ("[1, -1, 2]", "returned 2 where the reward is None"),
    ],
)
def test_an_advantage_of_ones_own_is_a_finite_number_for_each_and_none_for_the_unscored(
    returned: str,
    told: str,
    tmp_path: Path,
) -> None:
    (tmp_path / "own.py").write_text(f"def mine(rewards):\n    return {returned}\n")
    advantage = build_advantage(f"{tmp_path / 'own.py'}:mine", {})
    if not told:
        assert advantage([1.0, 0.0, None]) == [2.0, -1.0, 0.0]
        return
    with pytest.raises(ConfigError) as error:
        advantage([1.0, 0.0, None])
    assert told in str(error.value)


TRUNCATED = Rollout("p", "prompt", "text", tuple(range(64)), is_truncated=True)
CODE = Program("print(1)")
INCOMPLETE = Program(None, reason="unclosed_code_block", is_incomplete=True)
ACCEPTED = Verdict(Outcome.ACCEPTED, (), 3)
REFUSED = Verdict(Outcome.WRONG_ANSWER, (), 3)
NO_CODE = Verdict(Outcome.NO_CODE, (), 3)


@pytest.mark.parametrize(
    ("rollout", "program", "verdict", "draw", "reason"),
    [
        pytest.param(TRUNCATED, CODE, ACCEPTED, 0.0, "truncated_correct", id="correct"),
        pytest.param(TRUNCATED, INCOMPLETE, NO_CODE, 0.0, "truncated_incomplete", id="incomplete"),
        # Each condition alone keeps the advantage.
        pytest.param(
            replace(TRUNCATED, is_truncated=False),
            CODE,
            ACCEPTED,
            0.0,
            None,
            id="not truncated",
        ),
        pytest.param(TRUNCATED, CODE, REFUSED, 0.0, None, id="shown wrong"),
        pytest.param(TRUNCATED, CODE, ACCEPTED, 0.3, None, id="not drawn"),
        pytest.param(
            replace(TRUNCATED, token_ids=(1, 2) * 16),
            INCOMPLETE,
            NO_CODE,
            0.0,
            None,
            id="repeats itself",
        ),
    ],
)
def test_what_is_masked_and_why(
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
    draw: float,
    reason: str | None,
) -> None:
    rule = ConditionalMasking(rho=0.3, repeat_window_tokens=8)
    assert rule.why_masked(rollout, program, verdict, draw=draw) == reason


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 12))
def test_repeats_compares_the_last_two_windows(tokens: list[int], window: int) -> None:
    assert repeats(tokens + tokens[-window:], window_tokens=window) == (len(tokens) >= window)
    # The 8 occurs nowhere else, so that no window before it ends alike.
    assert not repeats([*tokens, 7, *tokens, 8][-2 * window :], window_tokens=window)


def test_draws_depend_on_everything_and_are_uniform() -> None:
    base = {"seed": 0, "step": 1, "problem_id": "a", "sample_index": 0}
    draws = {
        draw_uniform(**{**base, **change})  # type: ignore[arg-type]
        for change in ({}, {"seed": 1}, {"step": 2}, {"problem_id": "b"}, {"sample_index": 1})
    }
    assert len(draws) == 5
    many = [draw_uniform(seed=0, step=1, problem_id="a", sample_index=i) for i in range(4000)]
    for draw in many:
        assert 0 <= draw < 1
    # Of 4,000 draws 400 are below 0.1, give or take 19: 0.02 is four standard errors.
    assert abs(sum(draw < 0.1 for draw in many) / len(many) - 0.1) < 0.02


# DAPO (arXiv 2503.14476): of a limit of 20,480 tokens the last 4,096 are penalised in proportion,
# so by -1/2 in the middle of these and by -1 at the limit.
@pytest.mark.parametrize(
    ("num_tokens", "penalty"),
    [(0, 0.0), (16384, 0.0), (16385, -1 / 4096), (18432, -0.5), (20480, -1.0)],
)
def test_the_values_of_the_dapo_paper(num_tokens: int, penalty: float) -> None:
    given = replace(TRUNCATED, token_ids=(0,) * num_tokens)
    rule = SoftPenalty(kind="soft_penalty", window_tokens=4096)
    assert rule.penalise(given, 1.0, max_response_tokens=20480) == penalty


@pytest.mark.parametrize(
    ("reward", "factor", "penalty", "left"),
    [
        # Left is factor * reward - penalty; a reward that is not positive keeps its size.
        (1.0, 0.0, 0.0, 0.0),
        (1.0, 0.5, 0.0, 0.5),
        (0.0, 0.5, 0.25, -0.25),
        (1.0, 1.0, 0.5, 0.5),
        (-0.5, 0.0, 0.0, -0.5),
    ],
)
def test_stopping_properly_keeps_the_reward(
    reward: float,
    factor: float,
    penalty: float,
    left: float,
) -> None:
    rule = StopProperly(kind="stop_properly", factor=factor, penalty=penalty)
    assert reward + rule.penalise(TRUNCATED, reward, max_response_tokens=64) == left
    assert (
        rule.penalise(replace(TRUNCATED, is_truncated=False), reward, max_response_tokens=64) == 0.0
    )


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


def score(
    judge: Judge,
    algorithm: AlgorithmConfig,
    group: Sequence[Rollout] = GROUP,
) -> list[ScoredRollout]:
    rules = build_rules(algorithm, max_response_tokens=10)
    return score_rollouts([group], [PROBLEM], judge=judge, rules=rules, seed=0, step=1)[0]


def test_mean_std_mask_and_its_reason(judge: Judge) -> None:
    scored = score(judge, AlgorithmConfig(masking=ConditionalMasking(rho=1.0)))
    assert [sample.reward for sample in scored] == [1.0, 1.0, 0.0, 0.0]
    # Four deviations of 1/2: the variance is 4 * 1/4 over n - 1 = 3.
    std = (1 / 3) ** 0.5
    assert [sample.advantage for sample in scored] == pytest.approx(
        [0.5 / std, 0, -0.5 / std, 0], abs=1e-5
    )
    assert [sample.masked_why for sample in scored] == [
        "",
        "truncated_correct",
        "",
        "truncated_incomplete",
    ]
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
    """Advantages of a weighted sum are those of its totals,
    not a sum of each reward's own advantages.
    """
    rewards = load_rewards([("all_tests", 1.0, {}), ("format", 0.25, {})])
    rules = build_rules(AlgorithmConfig(masking=UNMASKED), max_response_tokens=10, rewards=rewards)
    (scored,) = score_rollouts([GROUP], [PROBLEM], judge=judge, rules=rules, seed=0, step=1)
    # A whole code block that ended by itself adds 0.25: both truncated responses lack it.
    assert [sample.reward for sample in scored] == [1.25, 1.0, 0.25, 0.0]
    # The mean is 2.5 / 4 = 0.625.
    std = ((0.625**2 + 0.375**2 + 0.375**2 + 0.625**2) / 3) ** 0.5
    expected = [part / std for part in (0.625, 0.375, -0.375, -0.625)]
    assert [sample.advantage for sample in scored] == pytest.approx(expected, abs=1e-5)


# Of a limit of 10 tokens the last 4 cost: 6 tokens nothing, 8 tokens 2/4, 10 tokens 1.
SOFT = SoftPenalty(kind="soft_penalty", window_tokens=4)
STOP = StopProperly(kind="stop_properly", factor=0.5, penalty=0.25)


@pytest.mark.parametrize(
    ("masking", "penalties", "rewards", "advantages"),
    [
        # Rewards sum to -0.5, and each advantage is a reward less their mean of -0.125.
        (SOFT, [0.0, -1.0, -0.5, -1.0], [1.0, 0.0, -0.5, -1.0], [1.125, 0.125, -0.375, -0.875]),
        # Rewards sum to 1, so the mean is 0.25.
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


def test_doses_are_the_advantage_that_was_taken_and_not_the_responses_that_were_touched(
    judge: Judge,
) -> None:
    mask_all = AlgorithmConfig(advantage="dr_grpo", masking=MaskAll(kind="all"))
    scored = score(judge, mask_all)
    assert [sample.lost for sample in scored] == [{}, {"mask": 0.5}, {}, {"mask": -0.5}]
    # Of four advantages of size 1/2, one of each sign is taken: 0.5 of 2 each.
    assert share_removed_advantages(scored) == {"mask_negative": 0.25, "mask_positive": 0.25}
    lowered = score(judge, AlgorithmConfig(advantage="dr_grpo", masking=SOFT))
    # Without the penalty they are +-1/2; with it 1.125, 0.125, -0.375, -0.875 (see above).
    assert [sample.lost.get("penalty", 0.0) for sample in lowered] == [-0.625, 0.375, -0.125, 0.375]
    assert share_removed_advantages(lowered) == pytest.approx(
        {"penalty_negative": 0.375, "penalty_positive": 0.375}
    )
    # Of a group whose rewards are equal the mask takes nothing, however many it touches.
    flat = score(judge, mask_all, [GROUP[1]] * 3)
    row = summarise_step(
        [scored, flat],
        step=1,
        temperature=1.0,
        max_response_tokens=10,
        optimizer={},
        seconds={},
    )
    # Two masked of the first four, and all three of the flat group, of which none had an advantage.
    assert row.masked_share == 5 / 7
    assert row.masked_effective_share == 2 / 7
    seen = [SamplerMismatch(0, weight) for weight in (0.5, 0)]
    # A weight takes its complement: half of 0.5, and all of -0.5.
    ((half, whole),) = note_mismatch([[scored[0], scored[2]]], seen)
    assert half.lost == {"mismatch": 0.25}
    assert whole.lost == {"mismatch": -0.5}
    assert half.masked_why == ""
    assert share_removed_advantages([half, whole]) == {
        "mismatch_negative": 0.5,
        "mismatch_positive": 0.25,
    }


@pytest.mark.parametrize(
    ("leave_out_of", "advantages", "counts"),
    [
        ("gradient", [0.5, 0.0, -0.5, 0.0], [True, True, True, True]),
        ("denominator", [0.5, 0.0, -0.5, 0.0], [True, False, True, False]),
        # One right and one wrong response are left, around a mean of 1/2 as with all four:
        # add a right one.
        ("baseline", [1 / 3, 0.0, -2 / 3, 0.0, 1 / 3], [True, False, True, False, True]),
    ],
)
def test_a_masked_response_leaves_what_the_recipe_says(
    judge: Judge,
    leave_out_of: LeaveOutOf,
    advantages: list[float],
    counts: list[bool],
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
