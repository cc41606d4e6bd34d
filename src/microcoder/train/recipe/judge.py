"""Config tables that training recipes and evaluations share: judge and prompt."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, field_validator

from microcoder.judge import JudgeOptions, StopRule
from microcoder.judge.core.config import Config
from microcoder.judge.core.prompts import PromptBuilder, load_prompt_builder
from microcoder.judge.languages import add_language
from microcoder.judge.run.options import SandboxOptions

OutputComparison = Literal["robust", "strict"]


class SandboxConfig(SandboxOptions):
    """Options of a judge, shared by the configs that start one."""

    stop: StopRule = "first_failure"
    """When to stop testing a program; the 0/1 reward needs only the first failing test."""
    languages: tuple[Path, ...] = ()
    """Your own language files (docs/languages.md)."""

    def judge_options(self) -> dict[str, Any]:
        """Return the keyword arguments of `Judge` other than `workers`."""
        return self.model_dump(include=JudgeOptions.model_fields.keys() - {"workers"})

    @field_validator("languages")
    @classmethod
    def _know_languages(cls, value: tuple[Path, ...]) -> tuple[Path, ...]:
        for path in value:
            # A run's checks, its judge and its processes must all know them.
            add_language(path)
        return value


class EvaluatorConfig(SandboxConfig):
    """Options of the judge."""

    backend: Literal["process", "ray"] | tuple[Annotated[str, Field(pattern="^https?://")], ...] = (
        "process"
    )
    """Where programs run: sandboxes of this process, every node of the Ray cluster (`ray`), or
    `microcoder serve` at an address such as http://127.0.0.1:8077, or at several, balanced by load;
    one that is down is skipped until it is back. A token, if required, is read from
    MICROCODER_JUDGE_TOKEN."""
    comparison: OutputComparison = "robust"
    """How training answers are compared: by each problem's checker or, for ablation, `strict`:
    exact text, nearly as in LiveCodeBench, for problems without a checker program."""

    def _contradictions(self) -> Iterator[str]:
        if not self.backend:
            yield "backend names no address of a service; name one, or leave it out"
        # Options of sandboxes that this process does not start.
        is_service = isinstance(self.backend, tuple)
        has_options = self.workers is not None or bool(self.nice or self.unsafe)
        if is_service and has_options:
            yield (
                "workers, nice and unsafe are those of the service that backend names; leave them "
                "out"
            )


class PromptConfig(Config):
    """How prompts are made of problems."""

    style: str = Field(default="instruct", min_length=1)
    """`instruct`: the statement and the answer's format; `bare`: the statement alone; `template`:
    `options.text`, with {statement} and {instruction} filled in; or your own function:
    path/to/file.py:function."""
    options: dict[str, Any] = Field(default={})
    """Options of the style: `text` of `template`, keyword-only parameters of your own function."""
    system: str | None = None
    """Text of a system turn before the prompt; None: no such turn."""
    chat_template_options: dict[str, JsonValue] = Field(default={})
    """Options of the model's chat template, such as enable_thinking = false for Qwen3."""


def make_prompt_builder(config: PromptConfig, *, style: str | None = None) -> PromptBuilder:
    """Return the function that makes prompts of problems by a `[prompt]` table.

    `style` overrides the table's.
    """
    return load_prompt_builder(style or config.style, config.options, system=config.system)
