"""How programs are extracted from responses: the `extractor` key of recipes and evaluations."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from microcoder.config import Config
from microcoder.extract import DEFAULT, Extractor, load_extractor


class ExtractorConfig(Config):
    """How programs are extracted from responses."""

    name: str = Field(default=DEFAULT, min_length=1)
    """`last_code_block`: the last closed code block outside of thinking; or your own: path/to/file.py:function."""
    options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of your own function."""

    @model_validator(mode="before")
    @classmethod
    def _a_name_is_enough(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value


def build_extractor(config: ExtractorConfig) -> Extractor:
    """Return a recipe's extractor.

    Raises:
        ConfigError: it cannot be loaded.
    """
    return load_extractor(config.name, config.options)
