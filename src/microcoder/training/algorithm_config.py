"""The algorithm's part of a recipe; defaults are MicroCoder-GRPO (paper, equations 1 and 2)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from microcoder.config import Config, kind_or
from microcoder.training.masking import NonIncorrect

LossNormalisation = Literal["dapo", "grpo", "dr_grpo"]


class NoMasking(Config):
    """Keep every advantage."""

    kind: Literal["none"]


class MaskAll(Config):
    """Zero the advantage of every truncated rollout (DeepCoder)."""

    kind: Literal["all"]


class ConditionalMasking(Config):
    """Zero the advantage of some truncated rollouts (paper, equation 2)."""

    kind: Literal["conditional"] = "conditional"
    rho: float = Field(default=0.1, ge=0, le=1)
    """Share of the eligible truncated rollouts that is masked."""
    repeat_window_tokens: int = Field(default=128, ge=1)
    """m: a response whose last m tokens equal the m before is not eligible."""
    non_incorrect: NonIncorrect = "correct_or_incomplete"


class NoLengthPenalty(Config):
    """The reward is 0 or 1."""

    kind: Literal["none"] = "none"


class SoftLengthPenalty(Config):
    """Lower the reward of long responses, by up to 1 at the limit (DAPO, equation 13)."""

    kind: Literal["soft"]
    window_tokens: int = Field(ge=1)
    """L_cache: the last tokens before the limit, over which the penalty grows (DAPO: 4096 of 20480)."""


class NoFiltering(Config):
    """Train on the problems that were drawn."""

    kind: Literal["none"] = "none"


class DynamicFiltering(Config):
    """Ask other problems in the place of those that all samples solve, or none (DAPO, equation 11)."""

    kind: Literal["dynamic"]
    max_rounds: int = Field(default=3, ge=2)
    """Sampling rounds a step, the first included; groups that are still flat then stay, with zero advantages."""


class AlgorithmConfig(Config):
    """MicroCoder-GRPO: group-normalised advantage, conditional truncation masking, high clip, no KL."""

    advantage: Literal["grpo", "dr_grpo"] = "grpo"
    """`grpo`: (r - mean) / std of the group; `dr_grpo`: r - mean, and the loss is divided by a constant."""
    masking: Annotated[
        Annotated[ConditionalMasking, Tag("conditional")]
        | Annotated[MaskAll, Tag("all")]
        | Annotated[NoMasking, Tag("none")],
        kind_or("conditional"),
    ] = ConditionalMasking()
    length_penalty: Annotated[
        Annotated[NoLengthPenalty, Tag("none")] | Annotated[SoftLengthPenalty, Tag("soft")],
        kind_or("none"),
    ] = NoLengthPenalty()
    group_filtering: Annotated[
        Annotated[NoFiltering, Tag("none")] | Annotated[DynamicFiltering, Tag("dynamic")],
        kind_or("none"),
    ] = NoFiltering()
    clip_low: float = Field(default=0.2, gt=0, lt=1)
    clip_high: float = Field(default=0.28, gt=0)
    """Equal to `clip_low`: the symmetric clip of GRPO."""
    loss_normalisation: LossNormalisation | None = None
    """What a token's loss is divided by: all tokens of the step (`dapo`), those of its response (`grpo`), or L_max
    (`dr_grpo`); TRL's loss types. None: `dapo`, or `dr_grpo` with that advantage."""
    kl_coefficient: float = Field(default=0.0, ge=0)
    """beta_0; 0 needs no reference model."""

    @property
    def loss_type(self) -> LossNormalisation:
        """What a token's loss is divided by, resolved."""
        return self.loss_normalisation or ("dr_grpo" if self.advantage == "dr_grpo" else "dapo")

    @model_validator(mode="after")
    def _dr_grpo_is_whole(self) -> AlgorithmConfig:
        if self.loss_normalisation == "dr_grpo" and self.advantage != "dr_grpo":
            raise ValueError(
                'loss_normalisation = "dr_grpo" alone would keep the std of the group, which Dr. GRPO leaves out; '
                'give algorithm.advantage = "dr_grpo": it means both'
            )
        return self
