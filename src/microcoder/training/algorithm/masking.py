"""Truncation masking: whose advantage is set to zero (paper, equation 2, second factor).

    A_i = group-normalised reward * (1 - 1[ |o_i| = L_max  and  non_incorrect(o_i)
                                            and not repeat(o_i, m)  and  U(0,1) < rho ])

The uniform draw is a hash of (seed, step, problem, sample), not a stream: it is the same on every engine, for every
number of ranks, and after a resume.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, Protocol

from microcoder.types import Outcome, Program, Rollout, Verdict

NonIncorrect = Literal["correct_or_incomplete", "correct_or_unfailed", "correct"]
RepeatDetection = Literal["window", "any_period"]
LeaveOutOf = Literal["gradient", "denominator", "baseline"]


class MaskReason(StrEnum):
    """Why a rollout was masked."""

    TRUNCATED = "truncated"
    """Every truncated rollout is masked (DeepCoder's overlong filtering)."""
    TRUNCATED_CORRECT = "truncated_correct"
    TRUNCATED_INCOMPLETE = "truncated_incomplete"
    SAMPLER_MISMATCH = "sampler_mismatch"
    """All tokens are dropped by `rollout.mismatch.mode = "mask"`: sampler and trainer disagree too much."""


class Mask(Protocol):
    """Decides whether to mask one rollout; the draw is uniform in [0, 1), see `draw_uniform`.

    `draft` is the verdict on an incomplete program, if the mask needs it.
    """

    def __call__(
        self, rollout: Rollout, program: Program, verdict: Verdict, *, draw: float, draft: Verdict | None = None
    ) -> str | None:
        """Return why the rollout is masked, or None when it is not."""
        ...


def mask_none(
    rollout: Rollout, program: Program, verdict: Verdict, *, draw: float, draft: Verdict | None = None
) -> MaskReason | None:
    """Mask nothing."""
    return None


def mask_all(
    rollout: Rollout, program: Program, verdict: Verdict, *, draw: float, draft: Verdict | None = None
) -> MaskReason | None:
    """Mask every truncated rollout."""
    return MaskReason.TRUNCATED if rollout.is_truncated else None


def mask_conditional(
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
    *,
    draw: float,
    draft: Verdict | None = None,
    rho: float,
    repeat_window_tokens: int,
    repeat_detection: RepeatDetection = "window",
    non_incorrect: NonIncorrect = "correct_or_incomplete",
) -> MaskReason | None:
    """Return why a rollout is masked by equation 2, or None when it is not.

    Args:
        rollout: the response; only a truncated one can be masked.
        program: what was extracted from it; `is_incomplete` is the paper's "incomplete".
        verdict: the judgement on the program.
        draw: a uniform number in [0, 1), see `draw_uniform`.
        draft: the judgement on `program.draft`, for "correct_or_unfailed"; see `wants_draft`.
        rho: share of the eligible rollouts that is masked.
        repeat_window_tokens: m; a response whose last m tokens repeat what stands before them repeats itself.
        repeat_detection: see `repeats`.
        non_incorrect: "correct_or_incomplete" as in equation 2; "correct_or_unfailed", where an incomplete program is
            incorrect if it compiles and fails a test; or "correct" as on the paper's project page.
    """
    if not rollout.is_truncated or draw >= rho:
        return None
    if repeats(rollout.token_ids, window_tokens=repeat_window_tokens, detection=repeat_detection):
        return None
    if verdict.is_accepted:
        return MaskReason.TRUNCATED_CORRECT
    if not program.is_incomplete or non_incorrect == "correct":
        return None
    if non_incorrect == "correct_or_unfailed" and draft is not None and _has_failed(draft):
        return None
    return MaskReason.TRUNCATED_INCOMPLETE


def wants_draft(rollout: Rollout, program: Program, *, draw: float, rho: float, non_incorrect: NonIncorrect) -> bool:
    """Return whether `mask_conditional` may depend on the judgement on an incomplete program."""
    return (
        non_incorrect == "correct_or_unfailed"
        and rollout.is_truncated
        and draw < rho
        and program.is_incomplete
        and program.draft is not None
    )


def _has_failed(draft: Verdict) -> bool:
    """Whether a program failed a test; an incomplete one that does not compile was run on none."""
    return draft.is_scorable and not draft.is_accepted and draft.outcome is not Outcome.COMPILE_ERROR


def repeats(token_ids: Sequence[int], *, window_tokens: int, detection: RepeatDetection = "window") -> bool:
    """Return whether a response repeats itself at its end.

    Args:
        token_ids: of the response.
        window_tokens: m.
        detection: "window": the last m tokens equal the m before them, as the paper says it; finds loops whose period
            divides m. "any_period": the last m tokens equal those that stand p before, for some p from 1 to m; finds
            loops of every period up to m, and everything that "window" finds.
    """
    if detection == "any_period":
        return shortest_period(token_ids, window_tokens=window_tokens) is not None
    if len(token_ids) < 2 * window_tokens:
        return False
    return token_ids[-window_tokens:] == token_ids[-2 * window_tokens : -window_tokens]


def shortest_period(token_ids: Sequence[int], *, window_tokens: int) -> int | None:
    """Return the least p up to m such that each of the last m tokens equals the one p before it, or None.

    Takes time in proportion to m, by the Z-function of the reversed end (Gusfield 1997, section 1.4).
    """
    end = list(token_ids[-2 * window_tokens :])[::-1]
    # matches[p]: how many tokens from place p on equal those from the start on.
    matches = [0] * len(end)
    left = right = 0
    for place in range(1, len(end) - window_tokens + 1):
        number = min(right - place, matches[place - left]) if place < right else 0
        while place + number < len(end) and end[number] == end[place + number]:
            number += 1
        if number >= window_tokens:
            return place
        matches[place] = number
        if place + number > right:
            left, right = place, place + number
    return None


def draw_uniform(*, seed: int, step: int, problem_id: str, sample_index: int) -> float:
    """Return a number in [0, 1) that depends on nothing but these four."""
    key = f"{seed}\0{step}\0{problem_id}\0{sample_index}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") / 2**64
