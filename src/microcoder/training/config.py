"""The training recipe. Defaults are the published one (paper, section 5.1; see `recipes/`); a key is a departure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from microcoder.config import Config, flatten
from microcoder.evaluator import StopRule
from microcoder.evaluator.packages import STANDARD
from microcoder.evaluator.siblings import LEAST_FACTOR
from microcoder.micro import DemonstrationNoise
from microcoder.prompts import PromptStyle
from microcoder.training.algorithm_config import AlgorithmConfig, SoftLengthPenalty
from microcoder.training.sampling_config import RolloutConfig


class WarmStartConfig(Config):
    """What decides a micro checkpoint, besides the code."""

    hidden_size: int = Field(default=128, ge=8)
    num_layers: int = Field(default=2, ge=1)
    num_heads: int = Field(default=4, ge=1)
    num_kv_heads: int = Field(default=4, ge=1)
    intermediate_size: int = Field(default=256, ge=8)
    vocab_size: int = Field(default=1024, ge=300)
    num_demonstrations: int = Field(default=40_000, ge=1)
    """Distinct answers to learn from; passes over them follow from the steps and the batch."""
    num_steps: int = Field(default=600, ge=1)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=1e-2, gt=0)
    """Peak, of Muon steps; linear warm-up over 6 % of the steps, then cosine to 5 %."""
    prompt_weight: float = Field(default=0.1, ge=0, le=1)
    """Weight of statement tokens in the loss; response tokens count 1. Some teaches the words faster."""
    max_tokens: int = Field(default=192, ge=16, le=1024)
    """Statement and response are cut here; only rambling answers are longer."""
    seed: int = 0
    noise: DemonstrationNoise = DemonstrationNoise()
    """How wrong the demonstrations are: with it the untrained accuracy goes up and down."""

    @model_validator(mode="after")
    def _heads_divide(self) -> WarmStartConfig:
        if self.hidden_size % self.num_heads or (self.hidden_size // self.num_heads) % 2:
            raise ValueError(
                f"hidden_size={self.hidden_size} must be num_heads={self.num_heads} times an even number; "
                f"try hidden_size={self.num_heads * 32}"
            )
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_kv_heads={self.num_kv_heads} must divide num_heads={self.num_heads}; try 1")
        return self


class MicroModel(Config):
    """The tiny Qwen3 of the micro lab: built on first use, cached, deterministic from its seed."""

    kind: Literal["micro"]
    warm_start: WarmStartConfig = WarmStartConfig()
    cache: Path = Path(".cache/microcoder")
    """Folder of built checkpoints."""


class LoraAdapter(Config):
    """Train low-rank adapters instead of all weights."""

    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    target_modules: tuple[str, ...] | Literal["all-linear"] = "all-linear"


class HuggingFaceModel(Config):
    """A causal language model in Hugging Face format."""

    kind: Literal["hugging_face"]
    path: str = Field(min_length=1)
    """A checkpoint folder or a hub id."""
    revision: str | None = None
    """Commit, tag or branch of a hub id."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Weights and optimizer state. In bfloat16 an update below 1/256 of a weight is lost, as most are at rate 1e-6."""
    compute_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Matrix products, by autocast."""
    gradient_checkpointing: bool = True
    lora: LoraAdapter | None = None


class MicroProblems(Config):
    """Generated problems of the micro lab."""

    kind: Literal["micro"]
    num_train: int = Field(default=1500, ge=1)
    num_heldout: int = Field(default=120, ge=1)
    tiers: tuple[Literal["easy", "medium", "hard"], ...] = ("easy", "medium", "hard")
    heldout_tiers: tuple[Literal["easy", "medium", "hard"], ...] | None = None
    """Tiers of the held-out problems; None: `tiers`. For other mixtures measured on the same problems."""
    styles: tuple[Literal["stdin", "function"], ...] = ("stdin", "function")
    seed: int = 0


class ProblemFiles(Config):
    """Problem files in our record format, one problem a line."""

    kind: Literal["files"]
    train: Path
    heldout: Path


class BatchConfig(Config):
    """Batch sizes, in problems unless the name says otherwise."""

    train_batch_size: int = Field(default=64, ge=1)
    """Problems sampled in one step."""
    ppo_mini_batch_size: int = Field(default=64, ge=1)
    """Problems per parameter update; train_batch_size / ppo_mini_batch_size updates a step."""
    micro_batch_rollouts: int = Field(default=8, ge=1)
    """Rollouts in one forward and backward pass on one device; bounds memory, changes no result."""

    @model_validator(mode="after")
    def _updates_divide_the_step(self) -> BatchConfig:
        step, update = self.train_batch_size, self.ppo_mini_batch_size
        if step % update:
            raise ValueError(
                f"ppo_mini_batch_size={update} does not divide train_batch_size={step}; "
                f"try {largest_divisor(step, update)}"
            )
        return self


class OptimizerConfig(Config):
    """AdamW."""

    learning_rate: float = Field(default=1e-6, gt=0)
    warmup_steps: int = Field(default=0, ge=0)
    """Training steps over which the learning rate rises from 0; constant afterwards."""
    weight_decay: float = Field(default=0.0, ge=0)
    beta1: float = Field(default=0.9, gt=0, lt=1)
    beta2: float = Field(default=0.999, gt=0, lt=1)
    max_grad_norm: float = Field(default=1.0, gt=0)


OutputComparison = Literal["robust", "strict"]


class EvaluationConfig(Config):
    """Accuracy on held-out problems: before the first step, every few steps, after the last."""

    every_steps: int = Field(default=20, ge=1)
    samples_per_problem: int = Field(default=4, ge=1)
    temperature: float = Field(default=1.0, gt=0, le=4)
    max_response_tokens: int | None = Field(default=None, ge=1)
    """Longer than in training where set (the paper trains at 4K and tests at 8K); None: the run's last limit."""
    sweep_temperatures: tuple[Annotated[float, Field(gt=0, le=4)], ...] = ()
    """At each evaluation, held-out problems are also sampled at these; recorded as `sweep`, and in no other figure."""
    comparison: OutputComparison = "robust"
    """How held-out answers are compared."""
    batch_rollouts: int = Field(default=256, ge=1)
    """Responses sampled at a time; bounds memory."""
    seed: int = 1_000_003


class EvaluatorConfig(Config):
    """The judge."""

    backend: Literal["process", "http", "ray"] = "process"
    """Where programs run: sandboxes of this process; a `microcoder serve` at `url`; each node of the Ray cluster."""
    url: str | None = Field(default=None, pattern="^https?://")
    """`http`: the service's address; its token, where it wants one, is read from MICROCODER_JUDGE_TOKEN."""
    comparison: OutputComparison = "robust"
    """How training answers are compared: by each problem's own checker, or, for ablation, `strict`: the exact text, as
    LiveCodeBench's checker nearly does, wherever a problem asks for no checker of its own."""

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
    sibling_limit: float | None = Field(default=None, ge=LEAST_FACTOR)
    """A test may take so many times the CPU time of the slowest accepted answer to its problem (at least 1 s, at most
    the problem's limit), once two were accepted; None: the problem's limit alone. Rewards then depend on each other."""
    batch_tests: bool = True
    """Let tests of a program share a process where nothing can get from one to the next (docs/sandbox.md); a service
    decides for itself (`microcoder serve --no-batch-tests`)."""
    unsafe_sandbox: bool = False

    @model_validator(mode="after")
    def _options_belong_to_the_backend(self) -> EvaluatorConfig:
        if (self.backend == "http") != (self.url is not None):
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


class CheckpointConfig(Config):
    """When to save, and how much to keep."""

    every_steps: int = Field(default=10, ge=1)
    keep: int = Field(default=2, ge=1)
    """Latest checkpoints kept."""
    keep_best: bool = True
    """Also save and keep the step of the best held-out accuracy: chosen by that accuracy, it flatters it."""


class LoggingConfig(Config):
    """Where metrics go besides the run directory; each needs its package: pip install 'microcoder[wandb]'."""

    to: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    project: str = "microcoder"
    """`trackio`, `wandb`: the project that the run is filed under."""


class RayConfig(Config):
    """The Ray cluster of engine verl, see docs/cluster.md."""

    address: str | None = Field(default=None, min_length=1)
    """A running cluster: `auto`, or host:port; none: Ray is started on this machine for the run alone."""
    device: Literal["auto", "cuda", "cpu"] = "auto"
    """`auto`: GPUs, but the CPU where Ray is started on a machine without any."""
    num_nodes: int = Field(default=1, ge=1)
    """Machines that hold training processes."""
    processes_per_node: int | None = Field(default=None, ge=1)
    """Training processes on each, one a GPU; none: as many as this machine has, on the CPU 1."""
    start_seconds: float = Field(default=600.0, gt=0)
    """How long to wait for that many devices to join a running cluster."""


class TrainConfig(Config):
    """A training run, whole."""

    engine: Literal["trl", "verl"] = "trl"
    """`trl`: this machine, or several under `accelerate launch`; `verl`: a Ray cluster."""
    seed: int = Field(default=0, ge=0)
    cpu_threads: int | None = Field(default=None, ge=1)
    """Threads of torch in a training process; None: as the environment says. Fixed threads make runs bit-identical."""
    num_steps: int = Field(default=300, ge=1)
    """Sampling rounds; each is train_batch_size / ppo_mini_batch_size parameter updates."""
    prompt_style: PromptStyle = "instruct"
    model: Annotated[MicroModel | HuggingFaceModel, Field(discriminator="kind")]
    problems: Annotated[MicroProblems | ProblemFiles, Field(discriminator="kind")]
    rollout: RolloutConfig = RolloutConfig()
    batch: BatchConfig = BatchConfig()
    algorithm: AlgorithmConfig = AlgorithmConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    evaluator: EvaluatorConfig = EvaluatorConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    logging: LoggingConfig = LoggingConfig()
    ray: RayConfig = RayConfig()
    verl: Mapping[str, Any] = Field(default={}, validate_default=True)
    """verl's own options by verl's names: `"actor_rollout_ref.actor.fsdp_config.param_offload" = true`; those that
    the recipe decides are refused."""

    @field_validator("verl")
    @classmethod
    def _one_level_of_dotted_names(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        return flatten(options)

    @model_validator(mode="after")
    def _options_belong_to_the_engine(self) -> TrainConfig:
        if self.engine == "verl":
            return self
        foreign = [
            *(f"ray.{name}" for name, value in self.ray if value != RayConfig.model_fields[name].default),
            *(f"verl.{name}" for name in self.verl),
            *(['rollout.backend = "sglang"'] if self.rollout.backend == "sglang" else []),
        ]
        if foreign:
            raise ValueError(f'engine = "{self.engine}" takes no {foreign[0]}; leave it out, or add --engine verl')
        if self.evaluator.backend == "ray":
            raise ValueError(
                f'evaluator.backend = "ray" needs a Ray cluster, which engine = "{self.engine}" has not; add '
                "--engine verl, or start `microcoder serve` and use --evaluator.backend http"
            )
        return self

    @model_validator(mode="after")
    def _problems_fill_a_step(self) -> TrainConfig:
        if isinstance(self.problems, MicroProblems) and self.batch.train_batch_size > self.problems.num_train:
            raise ValueError(
                f"batch.train_batch_size={self.batch.train_batch_size} is more than "
                f"problems.num_train={self.problems.num_train}; lower the one or raise the other"
            )
        return self

    @model_validator(mode="after")
    def _micro_batches_fill_an_update(self) -> TrainConfig:
        rollouts = self.batch.ppo_mini_batch_size * self.rollout.num_samples
        micro = self.batch.micro_batch_rollouts
        if rollouts % micro:
            raise ValueError(
                f"batch.micro_batch_rollouts={micro} does not divide the {rollouts} rollouts of an update "
                f"(ppo_mini_batch_size {self.batch.ppo_mini_batch_size} x num_samples {self.rollout.num_samples}); "
                f"try {largest_divisor(rollouts, micro)}"
            )
        return self

    @model_validator(mode="after")
    def _penalty_fits_the_length(self) -> TrainConfig:
        penalty, tokens = self.algorithm.length_penalty, self.rollout.max_response_tokens
        if isinstance(penalty, SoftLengthPenalty) and penalty.window_tokens > tokens:
            raise ValueError(
                f"algorithm.length_penalty.window_tokens={penalty.window_tokens} is more than "
                f"rollout.max_response_tokens={tokens}; try {max(1, tokens // 5)}"
            )
        return self


def largest_divisor(number: int, at_most: int) -> int:
    """Return the largest divisor of a number that is no larger than `at_most`."""
    return next(d for d in range(min(number, at_most), 0, -1) if number % d == 0)
