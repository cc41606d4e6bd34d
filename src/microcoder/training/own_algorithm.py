"""User-defined advantages and masks, with checks of what they return."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from microcoder.extensions import Extension, load_extension
from microcoder.training.algorithm.advantages import ADVANTAGES, Advantage
from microcoder.training.algorithm_config import AlgorithmConfig
from microcoder.training.masking_config import OwnMasking
from microcoder.types import Program, Rollout, Verdict


@dataclass(frozen=True, slots=True)
class OwnAdvantage:
    """A user-defined advantage: a function `(rewards_G) -> advantages_G`."""

    extension: Extension

    def __call__(self, rewards_G: Sequence[float | None]) -> list[float]:
        """Return the group's advantages.

        Raises:
            ConfigError: the function failed, or what it returned cannot be learnt from; with its location.
        """
        advantages_G = self.extension(list(rewards_G))
        if not isinstance(advantages_G, Sequence) or len(advantages_G) != len(rewards_G):
            raise self.extension.fault(
                f"returned {advantages_G!r:.80} for {len(rewards_G)} rewards; return a list with one number for each"
            )
        for reward, advantage in zip(rewards_G, advantages_G, strict=True):
            if isinstance(advantage, bool) or not isinstance(advantage, int | float) or not math.isfinite(advantage):
                raise self.extension.fault(f"returned {advantage!r:.80} as an advantage; return finite numbers")
            if reward is None and advantage:
                raise self.extension.fault(
                    f"returned {advantage:g} where the reward is None: nothing is known of that response, or it is "
                    "in no baseline; return 0"
                )
        return [float(advantage) for advantage in advantages_G]


@dataclass(frozen=True, slots=True)
class OwnMask:
    """A user-defined mask: a function `(rollout, program, verdict, draw) -> str | bool | None`."""

    extension: Extension

    def __call__(
        self, rollout: Rollout, program: Program, verdict: Verdict, *, draw: float, draft: Verdict | None = None
    ) -> str | None:
        """Return why the rollout is masked, or None when it is not.

        Raises:
            ConfigError: the function failed, or returned something else; with its location.
        """
        reason = self.extension(rollout, program, verdict, draw)
        if reason is not None and not isinstance(reason, str | bool):
            raise self.extension.fault(f"returned {reason!r:.80}; return why it is masked, True, or None")
        return (self.extension.label if reason is True else reason) or None


def load_advantage(algorithm: AlgorithmConfig) -> Extension:
    """Return an advantage function, built-in or user-defined.

    Raises:
        ConfigError: it cannot be loaded.
    """
    return load_extension("advantage", algorithm.advantage, builtins=ADVANTAGES, options=algorithm.advantage_options)


def build_advantage(algorithm: AlgorithmConfig) -> Advantage:
    """Return an algorithm's advantage as one function.

    Raises:
        ConfigError: it cannot be loaded.
    """
    extension = load_advantage(algorithm)
    return extension if extension.source is None else OwnAdvantage(extension)


def load_mask(masking: OwnMasking) -> Extension:
    """Return the function of a mask of the user's own.

    Raises:
        ConfigError: it cannot be loaded.
    """
    return load_extension("mask", masking.name, builtins={}, options=masking.options)


def build_own_mask(masking: OwnMasking) -> OwnMask:
    """Return such a mask.

    Raises:
        ConfigError: its function cannot be loaded.
    """
    return OwnMask(load_mask(masking))
