"""The algorithm's part of a recipe; defaults are MicroCoder-GRPO (paper, equations 1 and 2).

The paper gives no clip values and no rho: the clip is DAPO's, rho the one that ends highest in the paper's figure 2.

Losses: w is the ratio of a token's probability now to that when it was sampled, s the geometric mean of w over a
response, A the advantage. The engine computes the loss; docs/algorithms.md lists the denominators.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from microcoder.judge.core.config import Config, kind_or
from microcoder.train.algorithm.advantages import ADVANTAGES, load_advantage
from microcoder.train.algorithm.masking import (
    ConditionalMasking,
    Masking,
    NoMasking,
    SoftPenalty,
    StopProperly,
)
from microcoder.train.algorithm.selection import GroupFiltering, ProblemChoice

Denominator = Literal["tokens", "responses"]


class Loss(Config):
    """Base class of the policy losses: the denominator, and whether ratios matter."""

    divides_by: ClassVar[Denominator] = "tokens"
    """Denominator: `tokens`, all unmasked tokens of the batch; `responses`, their number: each weighs the same."""

    kind: str

    @property
    def rests_on_ratios(self) -> bool:
        """Whether the loss relies on ratios other than 1, which only a step's second and later updates have."""
        return True


class ClippedLoss(Loss):
    """Base class of the clipped losses: min(w A, clip(w, 1 - clip_low, 1 + clip_high) A)."""

    clip_low: float = Field(default=0.2, gt=0, lt=1)
    clip_high: float = Field(default=0.2, gt=0)
    """Upper clip; equal to `clip_low`, it is the symmetric clip of PPO and GRPO."""

    @property
    def rests_on_ratios(self) -> bool:
        """Whether the clip is asymmetric; a symmetric one is a usual safeguard, even where it never acts."""
        return self.clip_low != self.clip_high


class DapoLoss(ClippedLoss):
    """DAPO (arXiv 2503.14476): divided by all tokens, high clip."""

    kind: Literal["dapo"] = "dapo"
    clip_high: float = Field(default=0.28, gt=0)
    """Upper clip; equal to `clip_low`, it is the symmetric clip of PPO and GRPO."""


class GrpoLoss(ClippedLoss):
    """GRPO (arXiv 2402.03300): each response's mean over its tokens, then the mean over responses."""

    divides_by: ClassVar[Denominator] = "responses"
    kind: Literal["grpo"]


class DrGrpoLoss(ClippedLoss):
    """Dr. GRPO (arXiv 2503.20783): token sum over responses x L_max; also sets `advantage = "dr_grpo"`."""

    divides_by: ClassVar[Denominator] = "responses"
    kind: Literal["dr_grpo"]


class GspoLoss(ClippedLoss):
    """GSPO (arXiv 2507.18071): one ratio a response, s, clipped as a whole; the mean over responses."""

    divides_by: ClassVar[Denominator] = "responses"
    kind: Literal["gspo"]
    clip_low: float = Field(default=3e-4, gt=0, lt=1)
    clip_high: float = Field(default=4e-4, gt=0)
    """Upper clip of s, which moves far less than a token's ratio."""


class LuspoLoss(ClippedLoss):
    """LUSPO (arXiv 2602.05261): GSPO's loss of each response, times the response's length."""

    divides_by: ClassVar[Denominator] = "responses"
    kind: Literal["luspo"]
    clip_low: float = Field(default=2e-3, gt=0, lt=1)
    clip_high: float = Field(default=2.5e-3, gt=0)
    """Upper clip of s, which moves far less than a token's ratio."""


class CispoLoss(Loss):
    """CISPO (arXiv 2506.13585): -min(w, max_ratio) A log p, the weight without gradient; no token is cut off."""

    kind: Literal["cispo"]
    max_ratio: float = Field(default=5.0, gt=1)
    """Largest weight of a token (ScaleRL, arXiv 2510.13786)."""


class SapoLoss(Loss):
    """SAPO (arXiv 2511.20347): a soft gate, 4 / tau sigmoid(tau (w - 1)), in the place of the clip."""

    divides_by: ClassVar[Denominator] = "responses"
    kind: Literal["sapo"]
    temperature_positive: float = Field(default=1.0, gt=0)
    """tau at positive advantages."""
    temperature_negative: float = Field(default=1.05, gt=0)
    """tau at other advantages; higher is stricter."""


AnyLoss = Annotated[
    DapoLoss | GrpoLoss | DrGrpoLoss | GspoLoss | LuspoLoss | CispoLoss | SapoLoss,
    Field(discriminator="kind"),
    kind_or("dapo"),
]
"""A recipe's loss: `loss = "cispo"`, or with options `loss = {kind = "cispo", max_ratio = 4}`."""


_NO_OWN_LOSS = (
    "loss = {!r}: the engines have no place for a loss of your own: ratios, clipping, KL and entropy are one step "
    "of theirs; bring an advantage, a mask or a reward (docs/extending.md), or use a built-in loss"
)


class AlgorithmConfig(Config):
    """MicroCoder-GRPO: group-normalised advantage, conditional truncation masking, high clip, no KL."""

    loss: AnyLoss = DapoLoss()
    advantage: str = Field(default="grpo", min_length=1)
    """`grpo`: (r - mean) / std of the group; `dr_grpo`: r - mean, and also sets `loss`; `rloo`: r - mean of the others;
    `maxrl`: (r - mean) / mean; or your own: path/to/file.py:function."""
    advantage_options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of your own function."""
    masking: Masking = ConditionalMasking()
    group_filtering: GroupFiltering = "none"
    """`dynamic`: replace problems that all samples solve, or none, by others, at most twice a step (DAPO, eq. 11).
    `dynamic_reward`: replace those whose samples all have one reward, the sum of several rewards included; then eight
    wrong answers of which two earn a reward for their format are kept."""
    problem_choice: ProblemChoice = "uniform"
    """`uniform`: all problems equally often, in passes of random order; `active`: those that were solved about half of
    the time (docs/algorithms.md)."""
    kl_coefficient: float = Field(default=0.0, ge=0)
    """Coefficient of the KL penalty, beta_0 in the paper; with 0 no reference model is loaded."""

    @property
    def ideas(self) -> tuple[str, ...]:
        """Mechanisms that should have an effect in a run: `clip` (high, or another use of ratios), `mask`,
        `penalty`."""
        masking = self.masking
        has_penalty = isinstance(masking, SoftPenalty | StopProperly)
        limits = "penalty" if has_penalty else "" if isinstance(masking, NoMasking) else "mask"
        return tuple(filter(None, ("clip" if self.loss.rests_on_ratios else "", limits)))

    @model_validator(mode="before")
    @classmethod
    def _dr_grpo_is_whole(cls, values: Any) -> Any:
        """Let either key, `loss` or `advantage`, select both halves of Dr. GRPO; refuse a user-defined loss."""
        if not isinstance(values, Mapping):
            return values
        loss = values.get("loss")
        kind = loss.get("kind") if isinstance(loss, Mapping) else getattr(loss, "kind", loss)
        if isinstance(kind, str) and ":" in kind:
            raise ValueError(_NO_OWN_LOSS.format(kind))
        if values.get("advantage") == "dr_grpo" and loss is None:
            return {**values, "loss": {"kind": "dr_grpo"}}
        if kind == "dr_grpo" and "advantage" not in values:
            return {**values, "advantage": "dr_grpo"}
        return values

    @field_validator("advantage")
    @classmethod
    def _is_an_advantage(cls, value: str) -> str:
        if ":" not in value and value not in ADVANTAGES:
            load_advantage(value, {})
        return value

    def _contradictions(self) -> Iterator[str]:
        masking = self.masking
        lowers = isinstance(masking, SoftPenalty) or (
            isinstance(masking, StopProperly) and masking.penalty > 0
        )
        if self.advantage == "maxrl" and lowers:
            yield (
                f'advantage = "maxrl" divides by the mean reward, which masking.kind = "{masking.kind}" can make zero '
                'or negative; use advantage = "grpo", or a mask in the place of the penalty'
            )
        if self.problem_choice == "active" and self.group_filtering != "none":
            yield (
                'problem_choice = "active" and group_filtering = '
                f'"{self.group_filtering}" both avoid flat groups, and what the latter '
                "drops is not recorded for the former; drop one"
            )
        is_idle = masking.excluded_from == "denominator" and self.loss.divides_by == "responses"
        if is_idle and not self.kl_coefficient:
            yield (
                f'masking.leave_out_of = "denominator" changes nothing with loss = "{self.loss.kind}", which divides '
                'by the number of responses, the masked among them; use "gradient", "baseline", or loss = "dapo"'
            )
