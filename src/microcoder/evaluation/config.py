"""What an evaluation asks, how answers are made, how they are judged. A key in a file is a departure from defaults."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, Tag, model_validator

from microcoder.config import Config, kind_or
from microcoder.dataset.benchmarks.mbpp import Split
from microcoder.training.extractor_config import ExtractorConfig
from microcoder.training.judge_config import SandboxConfig
from microcoder.training.prompt_config import PromptConfig
from microcoder.types import LEAST_MEMORY_MIB, MOST_MEMORY_MIB, Dialect


class EvalPromptConfig(PromptConfig):
    """How questions are asked: as in training, or as the benchmark's authors do."""

    style: str = Field(default="published", min_length=1)
    """`published`: the benchmark's own text (of a problem file: `instruct`); else as in training: `instruct`, `bare`,
    `template`, or your own function."""


class LiveCodeBench(Config):
    """LiveCodeBench code generation, as published."""

    kind: Literal["livecodebench"] = "livecodebench"
    path: Path
    """A file, or the folder of test.jsonl to test6.jsonl."""
    release: str | None = None
    """Of a folder: release_v1 to release_v6, release_latest (the default), v6 alone, or a range such as v4_v6."""
    start_date: date | None = None
    """The first contest day."""
    end_date: date | None = None
    """A contest later than the midnight this day begins with is left out, as by LiveCodeBench's own flag."""
    platforms: tuple[Literal["atcoder", "leetcode", "codeforces"], ...] = ()
    """Empty: all."""
    difficulties: tuple[Literal["easy", "medium", "hard"], ...] = ()
    """Empty: all."""
    time_limit_seconds: float = Field(default=6.0, gt=0, le=600)
    """CPU seconds a test; LiveCodeBench's checker gives as many of wall time."""
    memory_limit_mib: int = Field(default=2048, ge=LEAST_MEMORY_MIB, le=MOST_MEMORY_MIB)
    """Of a test; LiveCodeBench's checker has no limit."""
    dialect: Dialect = "plain"
    """`livecodebench` runs programs under what LiveCodeBench's checker puts before them (star imports, recursion to
    50,000 calls, integers of 50,000 digits), for figures that compare with its leaderboard."""
    skip_broken: bool = False
    """Leave out problems whose tests cannot be read, and say which; otherwise they are an error."""


class HumanEval(Config):
    """HumanEval, with HumanEval+ where `plus` names its file."""

    kind: Literal["humaneval"]
    path: Path
    """HumanEval.jsonl.gz."""
    plus: Path | None = None
    """EvalPlus's HumanEvalPlus.jsonl(.gz)."""


class Mbpp(Config):
    """MBPP, with MBPP+ where `plus` names its file."""

    kind: Literal["mbpp"]
    path: Path
    """mbpp.jsonl or sanitized-mbpp.json."""
    plus: Path | None = None
    """EvalPlus's MbppPlus.jsonl(.gz); its inputs replace the assertions."""
    split: Split = "test"
    """As published: tasks 11 to 510 are the test; also prompt, validation, train, all."""


class ProblemFileConfig(Config):
    """A problem file in our own format."""

    kind: Literal["problems"]
    path: Path
    """One problem a line (see the problem record)."""


class Rows(Config):
    """Rows of any format, a benchmark of your own among them: the same reader serves to decontaminate a corpus."""

    kind: Literal["rows"]
    path: Path
    """JSON lines (also .gz), or one JSON list."""
    format: str = Field(min_length=1)
    """A format of docs/rows.md, or your own: path/to/file.py:function (docs/extending.md)."""


class ResponseSampling(Config):
    """How responses are sampled. The defaults are LiveCodeBench's, but for the number and the length (the paper's)."""

    num_samples: int = Field(default=4, ge=1)
    """Responses per problem: n."""
    temperature: float = Field(default=0.2, ge=0, le=4)
    """0 takes the likeliest token; all samples of a problem are then the same."""
    top_p: float = Field(default=0.95, gt=0, le=1)
    max_tokens: int = Field(default=8192, ge=1)
    """Length limit of a response."""
    seed: int = Field(default=0, ge=0)


class Transformers(Config):
    """Generate with transformers, on a GPU where there is one."""

    kind: Literal["transformers"] = "transformers"
    model: str = Field(min_length=1)
    """A checkpoint folder or a hub id."""
    revision: str | None = None
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Of the weights."""
    batch_size: int = Field(default=16, ge=1)
    """Responses sampled at a time; bounds memory."""
    sampling: ResponseSampling = ResponseSampling()


class Vllm(Config):
    """Generate with vLLM, in this process."""

    kind: Literal["vllm"]
    model: str = Field(min_length=1)
    """A checkpoint folder or a hub id."""
    revision: str | None = None
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    num_gpus: int = Field(default=1, ge=1)
    """Tensor parallel size."""
    max_context_tokens: int | None = Field(default=None, ge=1)
    """Prompt and response together, what vLLM reserves memory for; None: the longest prompt and `max_tokens`."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, lt=1)
    """Share of each GPU's memory for vLLM."""
    batch_problems: int = Field(default=64, ge=1)
    """Problems handed over at a time; what is written survives a kill."""
    sampling: ResponseSampling = ResponseSampling()


class EndpointConfig(Config):
    """Generate with any server that speaks OpenAI's chat completions."""

    kind: Literal["endpoint"]
    base_url: str = Field(pattern=r"^https?://")
    """Such as http://localhost:8000/v1."""
    model: str = Field(min_length=1)
    """The name that the server knows the model by."""
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key; sent only where it is set, and never written down."""
    concurrency: int = Field(default=8, ge=1, le=1024)
    """Requests at a time."""
    timeout_seconds: float = Field(default=600.0, gt=0)
    """Of one request."""
    retries: int = Field(default=5, ge=0)
    """After a lost connection, a time-out, status 408, 429 or 5xx; waits double from a second to a minute."""
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the server calls the length limit."""
    send_seed: bool = True
    """Ask for a seed of its own for each sample; some servers refuse the key."""
    extra: dict[str, JsonValue] = Field(default={})
    """Further keys of a request, such as top_k = 20; `prompt.chat_template_options` go as chat_template_kwargs."""
    sampling: ResponseSampling = ResponseSampling()


class GenerationFile(Config):
    """Take the answers from a file."""

    kind: Literal["file"]
    path: Path
    """JSON, JSON lines (also .gz) or Parquet."""
    format: Literal["auto", "livecodebench", "evalplus", "rollouts"] = "auto"
    """`livecodebench`: [{"question_id", "code_list"}]; `evalplus`: lines of {"task_id", "solution" or "completion"};
    `rollouts`: our own, .parquet or .jsonl."""
    step: int | None = None
    """Of rollouts of several steps: the one to judge."""
    allow_missing: bool = False
    """Judge the problems that have answers, where others have none."""


class EvalConfig(Config):
    """An evaluation, whole."""

    benchmark: Annotated[
        Annotated[LiveCodeBench, Tag("livecodebench")]
        | Annotated[HumanEval, Tag("humaneval")]
        | Annotated[Mbpp, Tag("mbpp")]
        | Annotated[ProblemFileConfig, Tag("problems")]
        | Annotated[Rows, Tag("rows")],
        kind_or("livecodebench"),
    ]
    generation: Annotated[
        Annotated[Transformers, Tag("transformers")]
        | Annotated[Vllm, Tag("vllm")]
        | Annotated[EndpointConfig, Tag("endpoint")]
        | Annotated[GenerationFile, Tag("file")],
        kind_or("transformers"),
    ]
    prompt: EvalPromptConfig = EvalPromptConfig()
    extractor: ExtractorConfig = ExtractorConfig()
    judging: SandboxConfig = SandboxConfig()
    pass_at: tuple[int, ...] = ()
    """Further k of pass@k, besides 1 (the mean accuracy) and the number of samples."""

    @model_validator(mode="after")
    def _prompt_asks_something(self) -> EvalConfig:
        given = sorted(self.prompt.model_fields_set)
        if given and isinstance(self.generation, GenerationFile) and self.prompt != EvalPromptConfig():
            raise ValueError(f'generation.kind = "file" asks nothing; leave out prompt.{given[0]}')
        if isinstance(self.benchmark, HumanEval | Mbpp) and self.prompt.style in ("instruct", "bare"):
            raise ValueError(
                f'prompt.style = "{self.prompt.style}" asks for a program that reads stdin, which '
                f"{self.benchmark.kind} does not want; leave it out, or give a function of your own"
            )
        return self

    @model_validator(mode="after")
    def _pass_at_fits(self) -> EvalConfig:
        for k in self.pass_at:
            if k < 1:
                raise ValueError(f"pass_at holds {k}; k is 1 or more")
            if not isinstance(self.generation, GenerationFile) and k > self.generation.sampling.num_samples:
                raise ValueError(
                    f"pass_at holds {k}, more than the {self.generation.sampling.num_samples} samples; "
                    f"pass --generation.sampling.num_samples {k}"
                )
        return self


NEUTRAL_KEYS = (
    "judging.workers",
    "judging.nice",
    "judging.unsafe_sandbox",
    "pass_at",
    "generation.concurrency",
    "generation.timeout_seconds",
    "generation.retries",
    "generation.api_key_env",
    "generation.batch_size",
    "generation.batch_problems",
    "generation.gpu_memory_utilization",
)
"""Keys that change no verdict: a run may go on under other values."""
