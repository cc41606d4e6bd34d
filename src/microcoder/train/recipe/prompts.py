"""Prompts: the `[prompt]` table of recipes and evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue

from microcoder.data import read_problems
from microcoder.judge.core.config import Config
from microcoder.judge.core.prompts import Asker, load_asker
from microcoder.judge.core.types import Problem


class PromptConfig(Config):
    """The prompt of a problem."""

    style: str = Field(default="instruct", min_length=1)
    """`instruct`: the statement and the answer's format; `bare`: the statement alone; `template`: `options.text`, with
    {statement} and {instruction} filled in; or your own function: path/to/file.py:function."""
    options: dict[str, Any] = Field(default={})
    """Options of the style: `text` of `template`, keyword-only parameters of your own function."""
    system: str | None = None
    """A system turn."""
    examples: Path | None = None
    """Few-shot examples: a problem file whose problems, answered by their `reference`, precede every question."""
    chat_template_options: dict[str, JsonValue] = Field(default={})
    """Options of the model's chat template, such as enable_thinking = false for Qwen3."""


def build_asker(config: PromptConfig, *, style: str | None = None) -> Asker:
    """Return the prompt style of a `[prompt]` table; `style` overrides its own."""
    examples = read_examples(config)
    return load_asker(style or config.style, config.options, system=config.system, examples=examples)


def read_examples(config: PromptConfig) -> list[Problem]:
    """Return the few-shot examples."""
    return [] if config.examples is None else read_problems(config.examples)


def find_shared(problems: Sequence[Problem], others: Sequence[Problem]) -> list[str]:
    """Return the ids of problems that are also among others, by id or statement."""
    ids, statements = {problem.id for problem in others}, {problem.statement for problem in others}
    return [problem.id for problem in problems if problem.id in ids or problem.statement in statements]
