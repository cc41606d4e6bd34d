"""Truncation masking (equation 2, second factor)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.training.masking import (
    MaskReason,
    NonIncorrect,
    draw_uniform,
    mask_all,
    mask_conditional,
    mask_none,
    repeats,
)
from microcoder.types import Outcome, Program, Rollout, Verdict

TRUNCATED = Rollout("p", "prompt", "text", tuple(range(64)), is_truncated=True)
CODE = Program("print(1)")
CUT_OFF = Program(None, reason="unclosed_code_block", is_incomplete=True)
ACCEPTED, WRONG, NO_CODE = (
    Verdict(outcome, (), 3) for outcome in (Outcome.ACCEPTED, Outcome.WRONG_ANSWER, Outcome.NO_CODE)
)


def conditional(
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
    *,
    draw: float = 0.0,
    non_incorrect: NonIncorrect = "correct_or_incomplete",
) -> MaskReason | None:
    return mask_conditional(
        rollout, program, verdict, draw=draw, rho=0.3, repeat_window_tokens=8, non_incorrect=non_incorrect
    )


def test_truncated_correct_and_incomplete_responses_are_masked_with_their_reason() -> None:
    assert conditional(TRUNCATED, CODE, ACCEPTED) is MaskReason.TRUNCATED_CORRECT
    assert conditional(TRUNCATED, CUT_OFF, NO_CODE) is MaskReason.TRUNCATED_INCOMPLETE


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
    assert conditional(TRUNCATED, CODE, ACCEPTED, non_incorrect="correct") is MaskReason.TRUNCATED_CORRECT


def test_mask_all_and_none_look_at_truncation_only() -> None:
    finished = replace(TRUNCATED, is_truncated=False)
    assert mask_all(TRUNCATED, CODE, WRONG, draw=0.99) is MaskReason.TRUNCATED
    assert mask_all(finished, CODE, WRONG, draw=0.0) is None
    assert mask_none(TRUNCATED, CODE, ACCEPTED, draw=0.0) is None


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
