"""The rewards' part of a recipe."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from microcoder.config import Config
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

    @model_validator(mode="before")
    @classmethod
    def _a_name_is_enough(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _weighs_something(self) -> RewardConfig:
        if self.weight == 0:
            raise ValueError("weight = 0 leaves the reward out; remove it from the list")
        return self


def build_rewards(rewards: tuple[RewardConfig, ...]) -> RewardSum:
    """Return a recipe's rewards as one function.

    Raises:
        ConfigError: one cannot be loaded.
    """
    return load_rewards([(reward.name, reward.weight, reward.options) for reward in rewards])


def looks_at_all_tests(reward: RewardConfig) -> bool:
    """Whether this built-in reward needs the tests after the first failure; other functions declare it themselves."""
    return bool(getattr(BUILTINS.get(reward.name), "needs_all_tests", False))
