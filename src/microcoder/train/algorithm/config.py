"""The algorithm's part of a recipe; defaults are MicroCoder-GRPO (paper, equations 1 and 2).

The paper gives no clip values and no rho: the clip is DAPO's, rho the one that ends highest in the
paper's figure 2.

Losses: w is the ratio of a token's probability now to that when it was sampled, s the geometric
mean of w over a response, A the advantage. The engine computes the loss; docs/algorithms.md lists
the denominators.
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
    """What the loss is divided by.

    `tokens`: all unmasked tokens of the batch; `responses`: their number, so that each weighs the
    same.
    """

    kind: str

    @property
    def rests_on_ratios(self) -> bool:
        """Whether the loss relies on ratios other than 1; only a step's later updates have them."""
        return True


class ClippedLoss(Loss):
    """Base class of the clipped losses: min(w A, clip(w, 1 - clip_low, 1 + clip_high) A)."""

    clip_low: float = Field(default=0.2, gt=0, lt=1)
    clip_high: float = Field(default=0.2, gt=0)
    """Upper clip; equal to `clip_low`, it is the symmetric clip of PPO and GRPO."""

    @property
    def rests_on_ratios(self) -> bool:
        """Whether the clip is asymmetric.

        A symmetric clip is a common safeguard; it need not act for the recipe to make sense.
        """
        return self.clip_low != self.clip_high


class DapoLoss(ClippedLoss):
    """DAPO (arXiv 2503.14476): divided by all tokens, high clip."""

    kind: Literal["dapo"] = "dapo"
    clip_high: float = Field(default=0.28, gt=0)
    """Upper clip; equal to `clip_low`, it is the symmetric clip of PPO and GRPO."""


class GrpoLoss(ClippedLoss):
    """GRPO (arXiv 2402.03300): each response's mean over its tokens, then that over responses."""

    divides_by: ClassVar[Denominator] = "responses"
    kind: Literal["grpo"]


class DrGrpoLoss(ClippedLoss):
    """Dr. GRPO (arXiv 2503.20783): token sum over responses x L_max; also sets `advantage`."""

    divides_by: ClassVar[Denominator] = "responses"
    kind: Literal["dr_grpo"]


class GspoLoss(ClippedLoss):
    """GSPO (arXiv 2507.18071): one ratio a response, s, clipped as a whole; mean of responses."""

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
    """CISPO (arXiv 2506.13585): -min(w, max_ratio) A log p. No gradient flows through w, and no
    token is left out."""

    kind: Literal["cispo"]
    max_ratio: float = Field(default=5.0, gt=1)
    """Largest weight of a token (ScaleRL, arXiv 2510.13786)."""


class SapoLoss(Loss):
    """SAPO (arXiv 2511.20347): a soft gate, 4 / tau sigmoid(tau (w - 1)), instead of the clip."""

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
    "loss = {!r}: the engines have no place for a loss of your own: ratios, clipping, KL and "
    "entropy are one step of theirs; bring an advantage, a mask or a reward (docs/extending.md), "
    "or use a built-in loss"
)


class AlgorithmConfig(Config):
    """MicroCoder-GRPO: group-normalised advantage, conditional masking, high clip, no KL."""

    loss: AnyLoss = DapoLoss()
    advantage: str = Field(default="grpo", min_length=1)
    """`grpo`: (r - mean) / std of the group; `dr_grpo`: r - mean, and also sets `loss`; `rloo`: r -
    mean of the others; `maxrl`: (r - mean) / mean; or your own: path/to/file.py:function."""
    advantage_options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of your own function."""
    masking: Masking = ConditionalMasking()
    group_filtering: GroupFiltering = "none"
    """`dynamic`: replace problems that all samples solve, or none, by others, at most twice a step
    (DAPO, eq. 11). `dynamic_reward`: replace those whose samples all have one reward, the sum of
    several rewards included; then eight wrong answers of which two earn a reward for their format
    are kept."""
    problem_choice: ProblemChoice = "uniform"
    """`uniform`: all problems equally often, in passes of random order; `active`: those that were
    solved about half of the time (docs/algorithms.md)."""
    kl_coefficient: float = Field(default=0.0, ge=0)
    """Coefficient of the KL penalty, beta_0 in the paper; with 0 no reference model is loaded."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Mechanisms that should have an effect in a run: `clip`, `mask`, `penalty`.

        `clip` is among them where the loss relies on ratios.
        """
        names = []
        if self.loss.rests_on_ratios:
            names.append("clip")
        if isinstance(self.masking, SoftPenalty | StopProperly):
            names.append("penalty")
        elif not isinstance(self.masking, NoMasking):
            names.append("mask")
        return tuple(names)

    @model_validator(mode="before")
    @classmethod
    def _dr_grpo_is_whole(cls, values: object) -> object:
        """Let either key, `loss` or `advantage`, select both halves of Dr. GRPO.

        A user-defined loss is refused.
        """
        if not isinstance(values, Mapping):
            return values
        # A loss may be given by its name, as a table or, from Python, as an object.
        loss = values.get("loss")
        if isinstance(loss, Mapping):
            kind = loss.get("kind")
        else:
            kind = getattr(loss, "kind", loss)
        # The form in which a recipe names a function of the user's own.
        if isinstance(kind, str) and ":" in kind:
            raise ValueError(_NO_OWN_LOSS.format(kind))
        # One half without the other would be neither algorithm.
        if values.get("advantage") == "dr_grpo" and loss is None:
            return {**values, "loss": {"kind": "dr_grpo"}}
        if kind == "dr_grpo" and "advantage" not in values:
            return {**values, "advantage": "dr_grpo"}
        return values

    @field_validator("advantage")
    @classmethod
    def _is_an_advantage(cls, value: str) -> str:
        # It raises, and its message lists the built-in ones.
        if ":" not in value and value not in ADVANTAGES:
            load_advantage(value, {})
        return value

    def _contradictions(self) -> Iterator[str]:
        masking = self.masking
        lowers_rewards = isinstance(masking, SoftPenalty)
        if isinstance(masking, StopProperly):
            # By its factor alone it raises no reward below 0.
            lowers_rewards = masking.penalty > 0
        if self.advantage == "maxrl" and lowers_rewards:
            yield (
                'advantage = "maxrl" divides by the mean reward, which masking.kind = '
                f'"{masking.kind}" can make zero or negative; use advantage = "grpo", or a mask in '
                "the place of the penalty"
            )
        # Active choice learns from what earlier steps have recorded.
        if self.problem_choice == "active" and self.group_filtering != "none":
            yield (
                'problem_choice = "active" and group_filtering = '
                f'"{self.group_filtering}" both avoid flat groups, and what the latter '
                "drops is not recorded for the former; drop one"
            )
        is_idle = masking.excluded_from == "denominator" and self.loss.divides_by == "responses"
        # A KL term would be changed by the denominator.
        if is_idle and not self.kl_coefficient:
            yield (
                'masking.leave_out_of = "denominator" changes nothing with loss = '
                f'"{self.loss.kind}", which divides by the number of responses, the masked among '
                'them; use "gradient", "baseline", or loss = "dapo"'
            )
