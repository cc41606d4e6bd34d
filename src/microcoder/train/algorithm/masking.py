"""Rules for truncated responses: masks and penalties, a class each, by `algorithm.masking`.

A rule's fields are its keys in a recipe, its methods apply it. Masks take a response out of the
update, penalties lower its reward; docs/algorithms.md tabulates which denominators leave a masked
one out. The default is the paper's (equation 2, second factor):

    A_i = group-normalised reward * (1 - 1[ |o_i| = L_max  and  non_incorrect(o_i)
                                            and not repeat(o_i, m)  and  U(0,1) < rho ])

To add a rule: a class here, its name in `Masking`, a row in the table. The uniform draw is a hash
of (seed, step, problem, sample), not a stream: it is the same on every engine, for every number of
ranks, and after a resume.
"""

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field

from microcoder.judge.core.config import Config, kind_or
from microcoder.judge.core.extensions import Extension, load_extension
from microcoder.judge.core.types import Program, Rollout, Verdict

LeaveOutOf = Literal["gradient", "denominator", "baseline"]


class MaskReason(StrEnum):
    """Why a rollout was masked."""

    TRUNCATED = "truncated"
    """By a rule that masks every truncated rollout (DeepCoder's overlong filtering)."""
    TRUNCATED_CORRECT = "truncated_correct"
    TRUNCATED_INCOMPLETE = "truncated_incomplete"
    SAMPLER_MISMATCH = "sampler_mismatch"
    """`rollout.mismatch.mode = "mask"` dropped all of its tokens.

    Sampler and trainer disagree too much on them.
    """


class TruncationRule(Config):
    """Base class of the rules; by itself it masks nothing and has no penalty."""

    @property
    def excluded_from(self) -> LeaveOutOf:
        """The parts of the update that a masked rollout is excluded from."""
        return getattr(self, "leave_out_of", "gradient")

    def why_masked(
        self, rollout: Rollout, program: Program, verdict: Verdict, *, draw: float
    ) -> str | None:
        """Return why a rollout is masked, or None when it is not.

        Args:
            rollout: the response.
            program: what was extracted from it; `is_incomplete` is the paper's "incomplete".
            verdict: the judgement on the program.
            draw: a uniform number in [0, 1), see `draw_uniform`.
        """
        return None

    def penalise(self, rollout: Rollout, reward: float, *, max_response_tokens: int) -> float:
        """Return the penalty to add to a rollout's reward, 0 or negative.

        `max_response_tokens` is L_max.
        """
        return 0.0


class NoMasking(TruncationRule):
    """Keep truncated responses as they are."""

    kind: Literal["none"]


class _Mask(TruncationRule):
    """Base class of the masks."""

    leave_out_of: LeaveOutOf = "gradient"
    """What a masked response is excluded from. `gradient`: its advantage is zero, but its tokens
    count in the loss's denominator. `denominator`: also from the denominator, KL and entropy terms
    (TRL's `mask_truncated_completions`). `baseline`: also from its group's mean and std."""


class MaskAll(_Mask):
    """Mask every truncated response (DeepCoder; DAPO's overlong filtering)."""

    kind: Literal["all"]

    def why_masked(
        self, rollout: Rollout, program: Program, verdict: Verdict, *, draw: float
    ) -> str | None:
        """Return "truncated" for every truncated rollout."""
        return MaskReason.TRUNCATED if rollout.is_truncated else None


class ConditionalMasking(_Mask):
    """Mask a random share of truncated responses, accepted or incomplete, that do not repeat.

    This is the paper's second factor of equation 2.
    """

    kind: Literal["conditional"] = "conditional"
    rho: float = Field(default=0.1, ge=0, le=1)
    """Share of the eligible truncated responses that is masked. The paper names no default: it
    draws 10, 20 and 30 % in figure 2, where 10 % ends highest."""
    repeat_window_tokens: int = Field(default=128, ge=1)
    """m: a response whose last m tokens equal the m before them is not eligible."""

    def why_masked(
        self, rollout: Rollout, program: Program, verdict: Verdict, *, draw: float
    ) -> str | None:
        """Return the `MaskReason` of an eligible rollout (equation 2) if `draw` is below rho."""
        # The draw comes before the other conditions: what it rules out need not be looked at.
        if not rollout.is_truncated or draw >= self.rho:
            return None
        if repeats(rollout.token_ids, window_tokens=self.repeat_window_tokens):
            return None
        if verdict.is_accepted:
            return MaskReason.TRUNCATED_CORRECT
        if program.is_incomplete:
            return MaskReason.TRUNCATED_INCOMPLETE
        return None


class OwnMasking(_Mask):
    """Mask by your own function."""

    kind: Literal["own"]
    name: str = Field(min_length=1)
    """path/to/file.py:function of (rollout, program, verdict, draw); it returns why a rollout is
    masked, or None."""
    options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of the function."""

    @cached_property
    def extension(self) -> Extension:
        """The function; raises ConfigError if it cannot be loaded."""
        return load_extension("mask", self.name, builtins={}, options=self.options)

    def why_masked(
        self, rollout: Rollout, program: Program, verdict: Verdict, *, draw: float
    ) -> str | None:
        """Return the reason that the function returns, or None if it returns none.

        For True it is the function's own name.

        Raises:
            ConfigError: the function failed, or returned something else; with its location.
        """
        reason = self.extension(rollout, program, verdict, draw)
        # A slip such as a number would mask nothing, silently.
        if reason is not None and not isinstance(reason, str | bool):
            raise self.extension.fault(
                f"returned {reason!r:.80}; return why it is masked, True, or None"
            )
        if reason is True:
            return self.extension.label
        return reason or None


class SoftPenalty(TruncationRule):
    """Lower the reward of long responses, by up to 1 at the limit (DAPO, equation 13)."""

    kind: Literal["soft_penalty"]
    window_tokens: int = Field(ge=1)
    """L_cache: the last tokens before the limit, over which the penalty grows (DAPO: 4096 of
    20480)."""

    def penalise(self, rollout: Rollout, reward: float, *, max_response_tokens: int) -> float:
        """Return R_length(o) = min(0, (L_max - L_cache) - |o|) / L_cache (arXiv 2503.14476)."""
        # Up to here a response costs nothing.
        free_tokens = max_response_tokens - self.window_tokens
        return min(0, free_tokens - len(rollout.token_ids)) / self.window_tokens


class StopProperly(TruncationRule):
    """Lower the reward of truncated responses: factor x reward - penalty (ProRL v2)."""

    kind: Literal["stop_properly"]
    factor: float = Field(default=0.0, ge=0, le=1)
    """Factor on the reward: with 0 a truncated response gets nothing even if its program is
    right."""
    penalty: float = Field(default=0.0, ge=0, le=1)
    """Amount to subtract from the reward as well: a factor cannot lower the reward 0 of a wrong
    program."""

    def penalise(self, rollout: Rollout, reward: float, *, max_response_tokens: int) -> float:
        """Return what is added to the reward: (factor - 1) max(reward, 0) - penalty if truncated,
        else 0.
        """
        if not rollout.is_truncated:
            return 0.0
        # A negative reward is not raised by a small factor.
        return (self.factor - 1) * max(reward, 0.0) - self.penalty


Masking = Annotated[
    ConditionalMasking | MaskAll | OwnMasking | NoMasking | SoftPenalty | StopProperly,
    Field(discriminator="kind"),
    kind_or("conditional"),
]


def repeats(token_ids: Sequence[int], *, window_tokens: int) -> bool:
    """Return whether a response ends in a repetition (paper): its last m tokens equal those
    before."""
    # Too short to hold anything twice.
    if len(token_ids) < 2 * window_tokens:
        return False
    return token_ids[-window_tokens:] == token_ids[-2 * window_tokens : -window_tokens]


def draw_uniform(*, seed: int, step: int, problem_id: str, sample_index: int) -> float:
    """Return a pseudo-random number in [0, 1): a hash of the arguments."""
    # The separator keeps (1, 23) apart from (12, 3).
    key = f"{seed}\0{step}\0{problem_id}\0{sample_index}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big") / 2**64
