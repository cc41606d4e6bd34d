"""The algorithm's part of a recipe; defaults are MicroCoder-GRPO (paper, equations 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, Tag, field_validator, model_validator

from microcoder.judge.core.config import Config, kind_or
from microcoder.judge.core.errors import ConfigError
from microcoder.train.algorithm.advantages import load_advantage
from microcoder.train.algorithm.losses import AnyLoss, DapoLoss, DrGrpoLoss, Engine, LuspoLoss
from microcoder.train.algorithm.masking import ConditionalMasking, Masking, NoMasking, SoftPenalty, StopProperly

_NO_OWN_LOSS = (
    "loss = {!r}: the engines have no place for a loss of your own: ratios, clipping, KL and entropy are one step "
    "of theirs; bring an advantage, a mask or a reward (docs/extending.md), or use a built-in loss"
)


class NoFiltering(Config):
    """Train on all sampled problems."""

    kind: Literal["none"] = "none"


class DynamicFiltering(Config):
    """Dynamic sampling: replace problems that all samples solve, or none, by others (DAPO, equation 11)."""

    kind: Literal["dynamic"]
    max_rounds: int = Field(default=3, ge=2)
    """Sampling rounds per step, the first included; groups without reward variance are kept after the last, with zero
    advantages."""


class NoEntropyTerm(Config):
    """No entropy term."""

    kind: Literal["none"] = "none"


class EntropyBonus(Config):
    """Subtract coefficient x mean token entropy from the loss."""

    kind: Literal["bonus"]
    coefficient: float = Field(gt=0)


Entropy = Annotated[
    Annotated[NoEntropyTerm, Tag("none")] | Annotated[EntropyBonus, Tag("bonus")],
    kind_or("none"),
]


class AlgorithmConfig(Config):
    """MicroCoder-GRPO: group-normalised advantage, conditional truncation masking, high clip, no KL."""

    loss: AnyLoss = DapoLoss()
    advantage: str = Field(default="grpo", min_length=1)
    """`grpo`: (r - mean) / std of the group; `dr_grpo`: r - mean, and also sets `loss`; `rloo`: r - mean of the others;
    `maxrl`: (r - mean) / mean; or your own: path/to/file.py:function."""
    advantage_options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of your own function."""
    masking: Masking = ConditionalMasking()
    group_filtering: Annotated[
        Annotated[NoFiltering, Tag("none")] | Annotated[DynamicFiltering, Tag("dynamic")],
        kind_or("none"),
    ] = NoFiltering()
    kl_coefficient: float = Field(default=0.0, ge=0)
    """beta_0; with 0 no reference model is loaded."""
    entropy: Entropy = NoEntropyTerm()

    @property
    def ideas(self) -> tuple[str, ...]:
        """What should have an effect in a run, by name: `clip` (high, dual, or another use of ratios), `mask`,
        `penalty`."""
        masking = self.masking
        has_penalty = isinstance(masking, SoftPenalty | StopProperly)
        limits = "penalty" if has_penalty else "" if isinstance(masking, NoMasking) else "mask"
        return tuple(filter(None, ("clip" if self.loss.rests_on_ratios else "", limits)))

    @property
    def leaves_denominator(self) -> bool:
        """Whether the tokens of masked responses are excluded from the loss's denominator."""
        return self.masking.excluded_from != "gradient"

    @model_validator(mode="before")
    @classmethod
    def _dr_grpo_is_whole(cls, values: Any) -> Any:
        """Dr. GRPO leaves out the std of the group and the length of the response: one key means both."""
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
        if ":" not in value:
            try:
                load_advantage(value, {})
            except ConfigError as error:
                if "has no option" not in str(error) and "needs the option" not in str(error):
                    raise
        return value

    def _contradictions(self) -> Iterator[str]:
        masking = self.masking
        lowers = isinstance(masking, SoftPenalty) or (isinstance(masking, StopProperly) and masking.penalty > 0)
        if self.advantage == "maxrl" and lowers:
            yield (
                f'advantage = "maxrl" divides by the mean reward, which masking.kind = "{masking.kind}" can make zero '
                'or negative; use advantage = "grpo", or a mask in the place of the penalty'
            )
        is_loss_alone = not self.kl_coefficient and isinstance(self.entropy, NoEntropyTerm)
        if masking.excluded_from == "denominator" and self.loss.divides_by == "responses" and is_loss_alone:
            yield (
                f'masking.leave_out_of = "denominator" changes nothing with loss = "{self.loss.kind}", which divides '
                'by the number of responses, the masked among them; use "gradient", "baseline", or loss = "dapo"'
            )

    def find_foreign(self, engine: Engine) -> str | None:
        """Return what an engine lacks for this algorithm and what to type instead; None if nothing."""
        loss = self.loss
        if engine == "trl":
            return None
        if not isinstance(self.entropy, NoEntropyTerm) and isinstance(loss, DrGrpoLoss | LuspoLoss):
            return (
                f'algorithm.entropy with loss = "{loss.kind}": verl sums entropy over a response as it does the loss, '
                'so the coefficient would mean another; add --engine trl, or use loss = "dapo"'
            )
        return None
