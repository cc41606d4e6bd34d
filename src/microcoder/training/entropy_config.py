"""The entropy term of a recipe: none, a constant bonus, or one that keeps entropy above a target."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from microcoder.config import Config, kind_or


class NoEntropyTerm(Config):
    """No entropy term."""

    kind: Literal["none"] = "none"


class EntropyBonus(Config):
    """Subtract coefficient x mean token entropy from the loss."""

    kind: Literal["bonus"]
    coefficient: float = Field(gt=0)


class AdaptiveEntropy(Config):
    """A bonus while entropy is at or below a target, with an adaptive coefficient (Skywork-OR1; TRL's)."""

    kind: Literal["adaptive"]
    target: float = Field(gt=0)
    """Nats per token; near the `entropy` of the first steps, so that it acts before entropy collapses."""
    coefficient: float = Field(default=0.0, ge=0)
    """At the start."""
    step: float = Field(default=0.005, gt=0)
    """Step of the coefficient: added after an update below the target, subtracted after one above."""
    least: float = Field(default=0.0, ge=0)
    """Of the coefficient."""
    most: float = Field(default=1.0, gt=0)
    """Of the coefficient."""

    @model_validator(mode="after")
    def _starts_between_its_bounds(self) -> AdaptiveEntropy:
        if not self.least <= self.coefficient <= self.most:
            raise ValueError(
                f"coefficient={self.coefficient:g} is not between least={self.least:g} and most={self.most:g}; "
                f"try {min(max(self.coefficient, self.least), self.most):g}"
            )
        return self


Entropy = Annotated[
    Annotated[NoEntropyTerm, Tag("none")]
    | Annotated[EntropyBonus, Tag("bonus")]
    | Annotated[AdaptiveEntropy, Tag("adaptive")],
    kind_or("none"),
]
