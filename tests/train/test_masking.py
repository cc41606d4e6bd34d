"""Truncation masking (equation 2, second factor), and the penalties (DAPO, equation 13; ProRL v2)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.judge.core.types import Outcome, Program, Rollout, Verdict
from microcoder.train.algorithm.masking import (
    ConditionalMasking,
    SoftPenalty,
    StopProperly,
    draw_uniform,
    repeats,
)

TRUNCATED = Rollout("p", "prompt", "text", tuple(range(64)), is_truncated=True)
CODE = Program("print(1)")
CUT_OFF = Program(None, reason="unclosed_code_block", is_incomplete=True)
ACCEPTED, WRONG, NO_CODE = (
    Verdict(outcome, (), 3) for outcome in (Outcome.ACCEPTED, Outcome.WRONG_ANSWER, Outcome.NO_CODE)
)


def rule(non_incorrect: str = "correct_or_incomplete") -> ConditionalMasking:
    return ConditionalMasking.model_validate({"rho": 0.3, "repeat_window_tokens": 8, "non_incorrect": non_incorrect})


def conditional(
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
    *,
    draw: float = 0.0,
    non_incorrect: str = "correct_or_incomplete",
) -> str | None:
    return rule(non_incorrect).why_masked(rollout, program, verdict, draw=draw)


def test_truncated_correct_and_incomplete_responses_are_masked_with_their_reason() -> None:
    assert conditional(TRUNCATED, CODE, ACCEPTED) == "truncated_correct"
    assert conditional(TRUNCATED, CUT_OFF, NO_CODE) == "truncated_incomplete"


@pytest.mark.parametrize(
    ("rollout", "program", "verdict", "draw"),
    [
        pytest.param(replace(TRUNCATED, is_truncated=False), CODE, ACCEPTED, 0.0, id="not truncated"),
        pytest.param(TRUNCATED, CODE, WRONG, 0.0, id="shown wrong"),
        pytest.param(TRUNCATED, CODE, ACCEPTED, 0.3, id="not drawn"),
        pytest.param(replace(TRUNCATED, token_ids=(1, 2) * 16), CUT_OFF, NO_CODE, 0.0, id="repeats itself"),
    ],
)
def test_each_condition_alone_keeps_the_advantage(
    rollout: Rollout, program: Program, verdict: Verdict, draw: float
) -> None:
    assert conditional(rollout, program, verdict, draw=draw) is None


def test_correct_only_keeps_incomplete_responses_in_the_loss() -> None:
    assert conditional(TRUNCATED, CUT_OFF, NO_CODE, non_incorrect="correct") is None
    assert conditional(TRUNCATED, CODE, ACCEPTED, non_incorrect="correct") == "truncated_correct"


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 12))
def test_repeats_compares_the_last_two_windows(tokens: list[int], window: int) -> None:
    assert repeats(tokens + tokens[-window:], window_tokens=window) == (len(tokens) >= window)
    assert not repeats([*tokens, 7, *tokens, 8][-2 * window :], window_tokens=window)


def test_draws_depend_on_everything_and_are_uniform() -> None:
    base = {"seed": 0, "step": 1, "problem_id": "a", "sample_index": 0}
    draws = {
        draw_uniform(**{**base, **change})  # type: ignore[arg-type]
        for change in ({}, {"seed": 1}, {"step": 2}, {"problem_id": "b"}, {"sample_index": 1})
    }
    assert len(draws) == 5
    many = [draw_uniform(seed=0, step=1, problem_id="a", sample_index=i) for i in range(4000)]
    assert all(0 <= draw < 1 for draw in many)
    assert abs(sum(draw < 0.1 for draw in many) / len(many) - 0.1) < 0.02


def of_length(num_tokens: int, *, is_truncated: bool = False) -> Rollout:
    return Rollout("p", "prompt", "text", (0,) * num_tokens, is_truncated)


@pytest.mark.parametrize(
    ("num_tokens", "penalty"), [(0, 0.0), (16384, 0.0), (16385, -1 / 4096), (18432, -0.5), (20480, -1.0)]
)
def test_the_values_of_the_dapo_paper(num_tokens: int, penalty: float) -> None:
    given = of_length(num_tokens)
    assert (
        SoftPenalty(kind="soft_penalty", window_tokens=4096).penalise(given, 1.0, max_response_tokens=20480) == penalty
    )


@pytest.mark.parametrize(
    ("reward", "factor", "penalty", "left"),
    [(1.0, 0.0, 0.0, 0.0), (1.0, 0.5, 0.0, 0.5), (0.0, 0.5, 0.25, -0.25), (1.0, 1.0, 0.5, 0.5), (-0.5, 0.0, 0.0, -0.5)],
)
def test_stopping_properly_keeps_the_reward(reward: float, factor: float, penalty: float, left: float) -> None:
    cut, whole = of_length(5, is_truncated=True), of_length(5)
    rule = StopProperly(kind="stop_properly", factor=factor, penalty=penalty)
    assert reward + rule.penalise(cut, reward, max_response_tokens=9) == left
    assert rule.penalise(whole, reward, max_response_tokens=9) == 0.0
