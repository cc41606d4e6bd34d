"""The config of an evaluation: benchmark, generation, judge."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from microcoder.data.benchmarks import AnyBenchmark, HumanEval, Mbpp
from microcoder.data.completions import EndpointConfig
from microcoder.judge.core.config import Config, kind_or
from microcoder.train.recipe.fine_tuning import FineTuningConfig
from microcoder.train.recipe.judge import PromptConfig, SandboxConfig
from microcoder.train.recipe.recipe import ExtractorConfig


class EvalPromptConfig(PromptConfig):
    """How questions become prompts: by the benchmark's published prompt, or as in training."""

    style: str = Field(default="published", min_length=1)
    """`published`: the benchmark's own text (of a problem file: `instruct`); else as in training:
    `instruct`, `bare`, `template`, or your own function."""


class ResponseSampling(Config):
    """Sampling of responses.

    Defaults are LiveCodeBench's, except number and length (the paper's).
    """

    num_samples: int = Field(default=4, ge=1)
    """Responses per problem: n."""
    temperature: float = Field(default=0.2, ge=0, le=4)
    """Sampling temperature; 0: greedy decoding, with all samples of a problem the same."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    """Likeliest tokens that are drawn from; None: all. Not every server knows it."""
    max_tokens: int = Field(default=8192, ge=1)
    """Length limit of a response."""
    seed: int = Field(default=0, ge=0)


class Transformers(Config):
    """Generate with transformers in this process, for small models; for others use `endpoint`.

    A server of your own for these is `vllm serve`.
    """

    kind: Literal["transformers"] = "transformers"
    model: str = Field(min_length=1)
    """A checkpoint folder, a GGUF file or a hub id."""
    revision: str | None = None
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the weights; `auto`: bfloat16, on a CPU that has no bfloat16 float32. The
    manifest records which (`machine.dtype`)."""
    batch_size: int = Field(default=32, ge=1)
    """Responses sampled in parallel; bounds memory."""


class EndpointGeneration(EndpointConfig):
    """Generate with any OpenAI-compatible server (chat completions)."""

    kind: Literal["endpoint"]
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Name of the length limit in a request to this server."""
    send_seed: bool = True
    """Send a seed with each request; some servers refuse the key."""
    extra: dict[str, JsonValue] = Field(default={})
    """Additional keys of a request, such as top_k = 20; `prompt.chat_template_options` are sent as
    chat_template_kwargs."""


class GenerationFile(Config):
    """Read the answers from a file."""

    kind: Literal["file"]
    path: Path
    """File of whole responses or programs: JSON, JSON lines (also .gz) or Parquet
    (docs/evaluation.md#answers)."""
    allow_missing: bool = False
    """Skip problems without answers; otherwise they are an error."""


class EvalConfig(Config):
    """The complete config of an evaluation."""

    benchmark: AnyBenchmark
    generation: Annotated[
        Transformers | EndpointGeneration | GenerationFile,
        Field(discriminator="kind"),
        kind_or("transformers"),
    ]
    sampling: ResponseSampling = ResponseSampling()
    prompt: EvalPromptConfig = EvalPromptConfig()
    extractor: ExtractorConfig = ExtractorConfig()
    judging: SandboxConfig = SandboxConfig()

    def _contradictions(self) -> Iterator[str]:
        if isinstance(self.generation, GenerationFile):
            for name, table in (("prompt", self.prompt), ("sampling", self.sampling)):
                # Values that change nothing are let pass: a config may spell out its defaults.
                if table != type(table)():
                    key = f"{name}.{min(table.model_fields_set)}"
                    yield f'generation.kind = "file" asks nothing; leave out {key}'
        asks_for_function = isinstance(self.benchmark, HumanEval | Mbpp)
        if asks_for_function and self.prompt.style in ("instruct", "bare"):
            yield (
                f'prompt.style = "{self.prompt.style}" asks for a program that reads stdin, which '
                f"{self.benchmark.kind} does not support; leave it out, or use your own function"
            )


NEUTRAL_KEYS = (
    "judging.workers",
    "judging.nice",
    "judging.unsafe",
    "generation.concurrency",
    "generation.timeout_seconds",
    "generation.max_retries",
    "generation.api_key_env",
    "generation.batch_size",
)
"""Keys that do not change verdicts: an evaluation may be resumed with other values."""


class HeldoutConfig(Config):
    """The held-out problems of a distillation, asked before and after."""

    benchmark: AnyBenchmark
    sampling: ResponseSampling = ResponseSampling()
    prompt: EvalPromptConfig = EvalPromptConfig()
    judging: SandboxConfig = SandboxConfig()
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of the weights, as in `generation.dtype`."""
    batch_size: int = Field(default=16, ge=1)
    """Responses sampled in parallel; bounds memory."""


class DistillConfig(FineTuningConfig):
    """The complete config of a distillation."""

    source: Path
    """Folder of the answers: a training run, or an evaluation; the same as --from."""
    keep: Literal["accepted", "all"]
    """`accepted`: answers that passed every test, each text once a problem (rejection-sampling
    fine-tuning); `all`: unverified (simple self-distillation)."""
    model: str | None = Field(default=None, min_length=1)
    """The model that is fine-tuned: a checkpoint folder, a GGUF file or a hub id; None: the one
    that answered, of a run the one that it began with."""
    revision: str | None = None
    """Commit, tag or branch of a hub id in `model`."""
    heldout: HeldoutConfig | None = None
    """Problems that are asked before and after."""
