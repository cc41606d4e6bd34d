"""The judge's part of a recipe: where programs run and how their outputs are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from microcoder.config import Config
from microcoder.evaluator import StopRule
from microcoder.evaluator.languages import add_language
from microcoder.evaluator.packages import STANDARD
from microcoder.evaluator.siblings import LEAST_FACTOR

OutputComparison = Literal["robust", "strict"]


class SandboxConfig(Config):
    """How programs are run and judged, wherever a config has a judge of its own."""

    workers: int | None = Field(default=None, ge=1)
    """Sandboxes at work at a time, on each node with `ray`; None: one for each processor that this process, or the
    judge's on its node, may use."""
    stop: StopRule = "first_failure"
    """When to stop testing a program; the 0/1 reward needs no more than its first failing test."""
    nice: int = Field(default=0, ge=0, le=19)
    """How far programs stand back from other work on their machine, such as the trainer: beside one busy process, one
    program gets half of a core at 0, a tenth at 10, a seventieth at 19; `workers` bounds the cores."""
    packages: str = STANDARD
    """Packages that programs may import: `standard`, `atcoder`, `none`, or the path of a file of pins. A service must
    have been started with the same (`microcoder serve --packages`)."""
    languages: tuple[Path, ...] = ()
    """Language files of your own (docs/languages.md), known as soon as this is read."""
    batch_tests: bool = True
    """Let tests of a program share a process where nothing can get from one to the next (docs/sandbox.md); a service
    decides for itself (`microcoder serve --no-batch-tests`)."""
    unsafe_sandbox: bool = False

    def judge_options(self) -> dict[str, Any]:
        """Return what each judge of programs is made with besides `workers`, in this process or on a node."""
        return {
            "stop": self.stop,
            "nice": self.nice,
            "packages": self.packages,
            "batch_tests": self.batch_tests,
            "unsafe": self.unsafe_sandbox,
        }

    @field_validator("languages")
    @classmethod
    def _know_languages(cls, value: tuple[Path, ...]) -> tuple[Path, ...]:
        for path in value:
            add_language(path)
        return value


class EvaluatorConfig(SandboxConfig):
    """The judge."""

    backend: Literal["process", "http", "ray"] = "process"
    """Where programs run: sandboxes of this process; `microcoder serve` at `url`; each node of the Ray cluster."""
    url: tuple[Annotated[str, Field(pattern="^https?://")], ...] = ()
    """`http`: the service's address, or those of several, which share the programs by how busy they are; one that is
    gone is left out until it is back. Their token, where they want one, is read from MICROCODER_JUDGE_TOKEN."""
    comparison: OutputComparison = "robust"
    """How training answers are compared: by each problem's own checker, or, for ablation, `strict`: the exact text, as
    LiveCodeBench's checker nearly does, wherever a problem asks for no checker of its own."""
    sibling_limit: float | None = Field(default=None, ge=LEAST_FACTOR)
    """A test may take so many times the CPU time of the slowest accepted answer to its problem (at least 0.5 s, at most
    the problem's limit), once two were accepted; None: the problem's limit alone. Rewards then depend on each other."""

    def judge_options(self) -> dict[str, Any]:
        """Return what each judge of programs is made with besides `workers`, in this process or on a node."""
        return {**super().judge_options(), "sibling_limit": self.sibling_limit}

    @model_validator(mode="after")
    def _options_belong_to_the_backend(self) -> EvaluatorConfig:
        if (self.backend == "http") != bool(self.url):
            raise ValueError(
                'backend = "http" and url go together; pass both, such as --evaluator.backend http '
                "--evaluator.url http://127.0.0.1:8077, or neither"
            )
        if self.backend == "http" and (
            self.workers is not None or self.nice or self.unsafe_sandbox or self.sibling_limit is not None
        ):
            raise ValueError(
                'backend = "http" leaves workers, nice, sibling_limit and unsafe_sandbox to the service; leave them out'
            )
        return self
