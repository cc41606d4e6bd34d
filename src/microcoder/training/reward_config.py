"""The rewards' part of a recipe, and the extractor of the programs that are rewarded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from microcoder.config import Config
from microcoder.extract import DEFAULT, Extractor, load_extractor
from microcoder.rewards import BUILTINS, RewardSum, load_rewards


class RewardConfig(Config):
    """One reward of the list `[[rewards]]`, whose weighted sum is the reward of a response."""

    name: str = Field(min_length=1)
    """`all_tests` (1 when every test passed, else 0: the paper's), `fraction` (of the tests), `format` (1 when the
    response ended by itself and holds a whole code block), or your own: path/to/file.py:function."""
    weight: float = Field(default=1.0, allow_inf_nan=False)
    """Negative for a penalty."""
    options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of your own function."""

    def _contradictions(self) -> Iterator[str]:
        if self.weight == 0:
            yield "weight = 0 leaves the reward out; remove it from the list"


def build_rewards(rewards: tuple[RewardConfig, ...]) -> RewardSum:
    """Return a recipe's rewards as one function.

    Raises:
        ConfigError: one cannot be loaded.
    """
    return load_rewards([(reward.name, reward.weight, reward.options) for reward in rewards])


def looks_at_all_tests(reward: RewardConfig) -> bool:
    """Whether this built-in reward needs the tests after the first failure; other functions declare it themselves."""
    return bool(getattr(BUILTINS.get(reward.name), "needs_all_tests", False))


class ExtractorConfig(Config):
    """How programs are extracted from responses."""

    name: str = Field(default=DEFAULT, min_length=1)
    """`last_code_block`: the last whole program in a closed code block outside of thinking, tagged or not
    (docs/judging.md); or your own: path/to/file.py:function."""
    options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of your own function."""


def build_extractor(config: ExtractorConfig) -> Extractor:
    """Return a recipe's extractor.

    Raises:
        ConfigError: it cannot be loaded.
    """
    return load_extractor(config.name, config.options)
