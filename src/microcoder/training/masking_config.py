"""How truncated responses are treated: one key, `algorithm.masking`, for all masks and penalties.

Masks take a response out of the update, penalties lower its reward. What each leaves out of which denominator is
tabulated in docs/training.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from microcoder.config import Config, kind_or
from microcoder.training.algorithm.masking import LeaveOutOf, NonIncorrect, RepeatDetection


class NoMasking(Config):
    """Keep truncated responses as they are."""

    kind: Literal["none"]


class _Mask(Config):
    leave_out_of: LeaveOutOf = "gradient"
    """What a masked response is excluded from. `gradient`: its advantage is zero, but its tokens count in the loss's
    denominator. `denominator`: also from the denominator, KL and entropy terms (TRL's `mask_truncated_completions`).
    `baseline`: also from its group's mean and std."""


class MaskAll(_Mask):
    """Mask every truncated response (DeepCoder; DAPO's overlong filtering)."""

    kind: Literal["all"]


class ConditionalMasking(_Mask):
    """Mask some truncated responses (paper, equation 2)."""

    kind: Literal["conditional"] = "conditional"
    rho: float = Field(default=0.1, ge=0, le=1)
    """Share of the eligible truncated responses that is masked."""
    repeat_window_tokens: int = Field(default=128, ge=1)
    """m: a response whose last m tokens repeat what stands before them is not eligible."""
    repeat_detection: RepeatDetection = "window"
    """`window`: the last m tokens equal the m before (the paper's words; of loops, those whose period divides m).
    `any_period`: they equal what stands p before, for any p up to m."""
    non_incorrect: NonIncorrect = "correct_or_incomplete"
    """`correct_or_incomplete` as in equation 2; `correct_or_unfailed`: an incomplete program is run all the same, and
    incorrect if it compiles and fails a test; `correct` as on the paper's project page."""


class OwnMasking(_Mask):
    """Mask by your own function."""

    kind: Literal["own"]
    name: str = Field(min_length=1)
    """path/to/file.py:function of (rollout, program, verdict, draw); it returns why a rollout is masked, or None."""
    options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of the function."""


AnyMask = MaskAll | ConditionalMasking | OwnMasking


class SoftPenalty(Config):
    """Lower the reward of long responses, by up to 1 at the limit (DAPO, equation 13)."""

    kind: Literal["soft_penalty"]
    window_tokens: int = Field(ge=1)
    """L_cache: the last tokens before the limit, over which the penalty grows (DAPO: 4096 of 20480)."""


class StopProperly(Config):
    """Lower the reward of truncated responses: factor x reward - penalty (ProRL v2)."""

    kind: Literal["stop_properly"]
    factor: float = Field(default=0.0, ge=0, le=1)
    """Factor on the reward: with 0 a truncated response gets nothing even if its program is right."""
    penalty: float = Field(default=0.0, ge=0, le=1)
    """Taken off besides; a wrong program has no reward that a factor could lower."""


Masking = Annotated[
    Annotated[ConditionalMasking, Tag("conditional")]
    | Annotated[MaskAll, Tag("all")]
    | Annotated[OwnMasking, Tag("own")]
    | Annotated[NoMasking, Tag("none")]
    | Annotated[SoftPenalty, Tag("soft_penalty")]
    | Annotated[StopProperly, Tag("stop_properly")],
    kind_or("conditional"),
]
