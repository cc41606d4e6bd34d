"""Truncation masking (equation 2, second factor), and the penalties (DAPO, equation 13; ProRL v2)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.judge.core.types import Outcome, Program, Rollout, Verdict
from microcoder.train.algorithm.masking import ConditionalMasking, SoftPenalty, StopProperly, draw_uniform, repeats

TRUNCATED = Rollout("p", "prompt", "text", tuple(range(64)), is_truncated=True)
CODE = Program("print(1)")
CUT_OFF = Program(None, reason="unclosed_code_block", is_incomplete=True)
ACCEPTED, WRONG, NO_CODE = (
    Verdict(outcome, (), 3) for outcome in (Outcome.ACCEPTED, Outcome.WRONG_ANSWER, Outcome.NO_CODE)
)


@pytest.mark.parametrize(
    ("rollout", "program", "verdict", "draw", "reason"),
    [
        pytest.param(TRUNCATED, CODE, ACCEPTED, 0.0, "truncated_correct", id="correct"),
        pytest.param(TRUNCATED, CUT_OFF, NO_CODE, 0.0, "truncated_incomplete", id="incomplete"),
        # Each condition alone keeps the advantage.
        pytest.param(replace(TRUNCATED, is_truncated=False), CODE, ACCEPTED, 0.0, None, id="not truncated"),
        pytest.param(TRUNCATED, CODE, WRONG, 0.0, None, id="shown wrong"),
        pytest.param(TRUNCATED, CODE, ACCEPTED, 0.3, None, id="not drawn"),
        pytest.param(replace(TRUNCATED, token_ids=(1, 2) * 16), CUT_OFF, NO_CODE, 0.0, None, id="repeats itself"),
    ],
)
def test_what_is_masked_and_why(
    rollout: Rollout, program: Program, verdict: Verdict, draw: float, reason: str | None
) -> None:
    rule = ConditionalMasking(rho=0.3, repeat_window_tokens=8)
    assert rule.why_masked(rollout, program, verdict, draw=draw) == reason
    # Where correct ones alone are masked, incomplete ones stay in the loss.
    correct_only = ConditionalMasking(rho=0.3, repeat_window_tokens=8, non_incorrect="correct")
    expected = None if verdict is NO_CODE else reason
    assert correct_only.why_masked(rollout, program, verdict, draw=draw) == expected


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


@pytest.mark.parametrize(
    ("num_tokens", "penalty"), [(0, 0.0), (16384, 0.0), (16385, -1 / 4096), (18432, -0.5), (20480, -1.0)]
)
def test_the_values_of_the_dapo_paper(num_tokens: int, penalty: float) -> None:
    given, rule = replace(TRUNCATED, token_ids=(0,) * num_tokens), SoftPenalty(kind="soft_penalty", window_tokens=4096)
    assert rule.penalise(given, 1.0, max_response_tokens=20480) == penalty


@pytest.mark.parametrize(
    ("reward", "factor", "penalty", "left"),
    [(1.0, 0.0, 0.0, 0.0), (1.0, 0.5, 0.0, 0.5), (0.0, 0.5, 0.25, -0.25), (1.0, 1.0, 0.5, 0.5), (-0.5, 0.0, 0.0, -0.5)],
)
def test_stopping_properly_keeps_the_reward(reward: float, factor: float, penalty: float, left: float) -> None:
    rule = StopProperly(kind="stop_properly", factor=factor, penalty=penalty)
    assert reward + rule.penalise(TRUNCATED, reward, max_response_tokens=64) == left
    assert rule.penalise(replace(TRUNCATED, is_truncated=False), reward, max_response_tokens=64) == 0.0
