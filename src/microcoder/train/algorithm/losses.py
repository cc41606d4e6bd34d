"""The policy loss of a recipe, by name. Each name brings the options that belong to it, at its paper's values.

w is the ratio of a token's probability now to that when it was sampled, s the geometric mean of w over a response, A
the advantage. A loss is computed by the engine; what it is divided by is said in docs/algorithms.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, Tag

from microcoder.judge.core.config import Config, kind_or

Engine = Literal["trl", "verl"]
Denominator = Literal["tokens", "responses"]


class Loss(Config):
    """Properties of every policy loss."""

    divides_by: ClassVar[Denominator] = "tokens"
    """`tokens`: all unmasked tokens of the batch; `responses`: their number, so that each weighs the same."""

    kind: str

    @property
    def rests_on_ratios(self) -> bool:
        """Whether the loss is meant for ratios other than 1, which an update after the first of a step brings."""
        return True


class ClippedLoss(Loss):
    """min(w A, clip(w, 1 - clip_low, 1 + clip_high) A)."""

    clip_low: float = Field(default=0.2, gt=0, lt=1)
    clip_high: float = Field(default=0.2, gt=0)
    """Equal to `clip_low`: the symmetric clip of PPO and GRPO."""


class TwoSidedLoss(ClippedLoss):
    """A clipped loss whose ratio can also be bounded where the advantage is negative."""

    dual_clip: float | None = Field(default=None, gt=1)
    """Bound on the ratio at negative advantages (INTELLECT-2's delta, PPO's dual clip); none: no bound."""

    @property
    def rests_on_ratios(self) -> bool:
        """Whether the clip is high or dual; a symmetric one is everybody's guard, also where it has nothing to do."""
        return self.clip_low != self.clip_high or self.dual_clip is not None

    def _contradictions(self) -> Iterator[str]:
        if self.dual_clip is not None and self.dual_clip < 1 + self.clip_high:
            yield (
                f"dual_clip={self.dual_clip} is inside the clip, which allows 1 + clip_high = {1 + self.clip_high:g}; "
                f"try {max(4.0, 1 + self.clip_high):g}"
            )


class DapoLoss(TwoSidedLoss):
    """DAPO (arXiv 2503.14476): divided by all tokens, high clip."""

    kind: Literal["dapo"] = "dapo"
    clip_high: float = Field(default=0.28, gt=0)
    """Equal to `clip_low`: the symmetric clip of PPO and GRPO."""


class GrpoLoss(TwoSidedLoss):
    """GRPO (arXiv 2402.03300): each response's mean over its tokens, then the mean over responses."""

    divides_by: ClassVar[Denominator] = "responses"
    kind: Literal["grpo"]


class DrGrpoLoss(TwoSidedLoss):
    """Dr. GRPO (arXiv 2503.20783): the sum over tokens, divided by responses x L_max; also sets `advantage`."""

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
    """LUSPO (arXiv 2602.05261): GSPO's, times the response's length."""

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
    Annotated[DapoLoss, Tag("dapo")]
    | Annotated[GrpoLoss, Tag("grpo")]
    | Annotated[DrGrpoLoss, Tag("dr_grpo")]
    | Annotated[GspoLoss, Tag("gspo")]
    | Annotated[LuspoLoss, Tag("luspo")]
    | Annotated[CispoLoss, Tag("cispo")]
    | Annotated[SapoLoss, Tag("sapo")],
    kind_or("dapo"),
]
"""`loss = "cispo"`, or with its options `loss = {kind = "cispo", max_ratio = 4}`."""
