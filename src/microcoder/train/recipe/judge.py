"""Config tables that training recipes and evaluations share: judge and prompt."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, field_validator

from microcoder.judge import JudgeOptions, StopRule
from microcoder.judge.core.config import Config
from microcoder.judge.core.prompts import Asker, load_asker
from microcoder.judge.core.types import Problem
from microcoder.judge.languages import add_language
from microcoder.judge.languages.packages import STANDARD

OutputComparison = Literal["robust", "strict"]


class SandboxConfig(Config):
    """Options of a judge, shared by the configs that start one."""

    workers: int | None = Field(default=None, ge=1)
    """Sandboxes in parallel, per node with `ray`; None: one per processor available to this process, or to the judge's
    on its node."""
    stop: StopRule = "first_failure"
    """When to stop testing a program; the 0/1 reward needs only the first failing test."""
    nice: int = Field(default=0, ge=0, le=19)
    """Niceness of programs, 0 to 19, in favour of other work such as the trainer: beside one busy process, a program
    gets half of a core at 0, a tenth at 10, a seventieth at 19; `workers` bounds the cores."""
    packages: str = STANDARD
    """Packages that programs may import: `standard`, `atcoder`, `none`, or the path of a file of pinned packages. A
    service must be started with the same (`microcoder serve --packages`)."""
    languages: tuple[Path, ...] = ()
    """Your own language files (docs/languages.md)."""
    batch_tests: bool = True
    """Run several tests of a program in one process if none can affect the next (docs/sandbox.md); a service has its
    own setting (`microcoder serve --no-batch-tests`)."""
    unsafe_sandbox: bool = False

    def judge_options(self) -> dict[str, Any]:
        """Return the keyword arguments of `Judge` other than `workers`."""
        mine = self.model_dump(include=JudgeOptions.model_fields.keys() - {"workers"})
        return mine | {"unsafe": self.unsafe_sandbox}

    @field_validator("languages")
    @classmethod
    def _know_languages(cls, value: tuple[Path, ...]) -> tuple[Path, ...]:
        for path in value:
            add_language(path)
        return value


class EvaluatorConfig(SandboxConfig):
    """The judge."""

    backend: Literal["process", "http", "ray"] = "process"
    """Where programs run: sandboxes of this process, `microcoder serve` at `url`, or every node of the Ray cluster."""
    url: tuple[Annotated[str, Field(pattern="^https?://")], ...] = ()
    """`http`: address of the service, or a list, balanced by load; one that is down is skipped until it is back. A
    token, if required, is read from MICROCODER_JUDGE_TOKEN."""
    comparison: OutputComparison = "robust"
    """How training answers are compared: by each problem's checker or, for ablation, `strict`: exact text, nearly as in
    LiveCodeBench, for problems without a checker program."""

    def _contradictions(self) -> Iterator[str]:
        if (self.backend == "http") != bool(self.url):
            yield (
                'backend = "http" and url go together; pass both, such as --evaluator.backend http '
                "--evaluator.url http://127.0.0.1:8077, or neither"
            )
        if self.backend == "http" and (self.workers is not None or self.nice or self.unsafe_sandbox):
            yield 'backend = "http" leaves workers, nice and unsafe_sandbox to the service; leave them out'


class PromptConfig(Config):
    """The prompt of a problem."""

    style: str = Field(default="instruct", min_length=1)
    """`instruct`: the statement and the answer's format; `bare`: the statement alone; `template`: `options.text`, with
    {statement} and {instruction} filled in; or your own function: path/to/file.py:function."""
    options: dict[str, Any] = Field(default={})
    """Options of the style: `text` of `template`, keyword-only parameters of your own function."""
    system: str | None = None
    """A system turn."""
    chat_template_options: dict[str, JsonValue] = Field(default={})
    """Options of the model's chat template, such as enable_thinking = false for Qwen3."""


def build_asker(config: PromptConfig, *, style: str | None = None) -> Asker:
    """Return the function from problems to prompts of a `[prompt]` table; `style` overrides the table's."""
    return load_asker(style or config.style, config.options, system=config.system)


def find_shared(problems: Sequence[Problem], others: Sequence[Problem]) -> list[str]:
    """Return the ids of `problems` that share their id or statement with one of `others`."""
    ids, statements = {problem.id for problem in others}, {problem.statement for problem in others}
    return [problem.id for problem in problems if problem.id in ids or problem.statement in statements]
