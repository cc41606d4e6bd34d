"""Truncation masking (equation 2, second factor)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder.training.algorithm.masking import (
    MaskReason,
    NonIncorrect,
    draw_uniform,
    mask_all,
    mask_conditional,
    mask_none,
    repeats,
    shortest_period,
    wants_draft,
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
    draft: Verdict | None = None,
    non_incorrect: NonIncorrect = "correct_or_incomplete",
) -> MaskReason | None:
    return mask_conditional(
        rollout, program, verdict, draw=draw, draft=draft, rho=0.3, repeat_window_tokens=8, non_incorrect=non_incorrect
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


def test_an_incomplete_program_that_failed_a_test_can_be_incorrect() -> None:
    draft = replace(CUT_OFF, draft="print(1")
    does_not_compile = Verdict(Outcome.COMPILE_ERROR, (), 3)
    fault = Verdict(Outcome.SANDBOX_FAULT, (), 3)
    masked = MaskReason.TRUNCATED_INCOMPLETE
    for judged, expected in ((WRONG, None), (ACCEPTED, masked), (does_not_compile, masked), (fault, masked)):
        why = conditional(TRUNCATED, draft, NO_CODE, draft=judged, non_incorrect="correct_or_unfailed")
        assert why is expected, judged
    # Equation 2 does not ask.
    assert conditional(TRUNCATED, draft, NO_CODE, draft=WRONG) is masked
    assert conditional(TRUNCATED, CODE, WRONG, non_incorrect="correct_or_unfailed") is None


def test_drafts_are_judged_where_the_mask_depends_on_them_alone() -> None:
    def asks(rollout: Rollout, program: Program, draw: float, non_incorrect: NonIncorrect) -> bool:
        return wants_draft(rollout, program, draw=draw, rho=0.3, non_incorrect=non_incorrect)

    draft = replace(CUT_OFF, draft="print(1)")
    assert asks(TRUNCATED, draft, 0.0, "correct_or_unfailed")
    assert not asks(TRUNCATED, draft, 0.0, "correct_or_incomplete")
    assert not asks(TRUNCATED, draft, 0.3, "correct_or_unfailed")
    assert not asks(TRUNCATED, CUT_OFF, 0.0, "correct_or_unfailed")
    assert not asks(replace(TRUNCATED, is_truncated=False), draft, 0.0, "correct_or_unfailed")


def test_mask_all_and_none_look_at_truncation_only() -> None:
    finished = replace(TRUNCATED, is_truncated=False)
    assert mask_all(TRUNCATED, CODE, WRONG, draw=0.99) is MaskReason.TRUNCATED
    assert mask_all(finished, CODE, WRONG, draw=0.0) is None
    assert mask_none(TRUNCATED, CODE, ACCEPTED, draw=0.0) is None


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 12))
def test_repeats_compares_the_last_two_windows(tokens: list[int], window: int) -> None:
    assert repeats(tokens + tokens[-window:], window_tokens=window) == (len(tokens) >= window)
    assert not repeats([*tokens, 7, *tokens, 8][-2 * window :], window_tokens=window)


def test_loops_of_any_period_up_to_m_are_found() -> None:
    assert not repeats([1, 2, 3] * 100, window_tokens=128)
    assert repeats([1, 2, 3] * 100, window_tokens=128, detection="any_period")
    assert shortest_period([9, *[1, 2, 3] * 100], window_tokens=128) == 3
    assert shortest_period(list(range(200)) * 2, window_tokens=128) is None
    assert shortest_period([*range(128)] * 2, window_tokens=128) == 128
    assert shortest_period([5] * 129, window_tokens=128) == 1
    assert shortest_period([5] * 128, window_tokens=128) is None


@given(st.lists(st.integers(0, 2), max_size=60), st.integers(1, 12))
def test_the_shortest_period_is_the_definition(tokens: list[int], window: int) -> None:
    periods = [
        p
        for p in range(1, window + 1)
        if len(tokens) >= window + p and all(tokens[-i] == tokens[-i - p] for i in range(1, window + 1))
    ]
    assert shortest_period(tokens, window_tokens=window) == (periods[0] if periods else None)
    if repeats(tokens, window_tokens=window):
        assert repeats(tokens, window_tokens=window, detection="any_period")


@given(st.lists(st.integers(0, 5), max_size=20), st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_a_loop_is_found_whatever_stands_before_it(start: list[int], loop: list[int]) -> None:
    tokens = [*start, *loop * 25]
    assert repeats(tokens, window_tokens=12, detection="any_period")
    assert not repeats([*tokens, 9], window_tokens=12, detection="any_period")


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
