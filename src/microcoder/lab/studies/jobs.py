"""Input and output of measuring functions; a module of its own, so that they depend on nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from microcoder.train.recipe.recipe import TrainConfig


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """One value of one unit under one level."""

    metric: str
    level: str
    unit: str
    """A problem, a rollout, a pair: what the levels are compared on. Of the same name in several seeds, it is the same
    unit there, such as a held-out problem; what is drawn anew for a seed has the seed in its name."""
    value: float


@dataclass(frozen=True, slots=True)
class Job:
    """The input of a measuring function."""

    seed: int
    config: TrainConfig
    """The scale's baseline with the study's and the measurement's keys, and this seed."""
    folder: Path
    """A folder of its own, kept between restarts."""
    runs: Mapping[str, Path] = field(default_factory=dict)
    """Level -> folder of the finished run of this seed, for the levels that the measurement `uses`."""
