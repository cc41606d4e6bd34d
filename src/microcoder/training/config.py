"""The training recipe. Defaults are the published one (paper, section 5.1; see `recipes/`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from microcoder.config import Config, flatten
from microcoder.training.algorithm.masking import SoftPenalty
from microcoder.training.algorithm_config import AlgorithmConfig
from microcoder.training.judge_config import EvaluatorConfig, OutputComparison
from microcoder.training.model_config import MICRO_WEIGHTS, HuggingFaceModel, MicroModel
from microcoder.training.optimizer_config import OptimizerConfig
from microcoder.training.problems_config import HubProblems, MicroProblems, ProblemFiles
from microcoder.training.prompt_config import PromptConfig
from microcoder.training.reward_config import ExtractorConfig, RewardConfig, looks_at_all_tests
from microcoder.training.sampling_config import RolloutConfig, VllmConfig
from microcoder.training.trl_options import refuse_decided


class BatchConfig(Config):
    """Batch sizes, in problems unless the name says otherwise."""

    train_batch_size: int = Field(default=64, ge=1)
    """Problems sampled in one step."""
    ppo_mini_batch_size: int = Field(default=64, ge=1)
    """Problems per parameter update; train_batch_size / ppo_mini_batch_size updates per step."""
    micro_batch_rollouts: int = Field(default=8, ge=1)
    """Rollouts per forward and backward pass on one device; bounds memory, does not change results."""

    def _contradictions(self) -> Iterator[str]:
        step, update = self.train_batch_size, self.ppo_mini_batch_size
        if step % update:
            yield (
                f"ppo_mini_batch_size={update} does not divide train_batch_size={step}; "
                f"try {largest_divisor(step, update)}"
            )


class EvaluationConfig(Config):
    """Accuracy on held-out problems: before the first step, every few steps, after the last."""

    every_steps: int = Field(default=20, ge=1)
    samples_per_problem: int = Field(default=4, ge=1)
    temperature: float = Field(default=1.0, gt=0, le=4)
    max_response_tokens: int | None = Field(default=None, ge=1)
    """Length limit in evaluations (the paper trains at 4K and tests at 8K); None: the run's last limit."""
    sweep_temperatures: tuple[Annotated[float, Field(gt=0, le=4)], ...] = ()
    """Further temperatures to sample held-out problems at; recorded as `sweep`, in no other metric."""
    comparison: OutputComparison = "robust"
    """How held-out answers are compared."""
    batch_rollouts: int = Field(default=256, ge=1)
    """Responses sampled in parallel; bounds memory."""
    seed: int = 1_000_003


class CheckpointConfig(Config):
    """When to save, and how much to keep."""

    every_steps: int = Field(default=10, ge=1)
    keep: int = Field(default=2, ge=1)
    """Latest checkpoints kept."""
    keep_best: bool = True
    """Also keep the checkpoint of the best held-out accuracy, which is biased upwards by that choice."""


class LoggingConfig(Config):
    """Loggers besides the run directory; each needs its package: the extra of its name."""

    to: tuple[Literal["tensorboard", "trackio", "wandb"], ...] = ()
    project: str = "microcoder"
    """`trackio`, `wandb`: the project of the run."""
    token_rollouts: int = Field(default=0, ge=0, le=64)
    """Rollouts a step and process whose tokens are recorded with log-prob, entropy and ratio, for `microcoder view`:
    two more forward passes over them. Engine trl."""


class HubConfig(Config):
    """Push the model with its card to a Hugging Face Hub repository; see `hf auth login`."""

    repo_id: str | None = Field(default=None, pattern=r"^[\w.-]+/[\w.-]+$")
    """`owner/name`, created if missing. None: push nothing."""
    private: bool = True
    """Whether a created repository is private."""
    push: Literal["end", "checkpoints"] = "end"
    """`end`: the final model, to main; `checkpoints`: also each checkpoint when it was written, to a branch of its own
    name (step_000010); training waits for the upload."""

    def _contradictions(self) -> Iterator[str]:
        if self.push == "checkpoints" and self.repo_id is None:
            yield 'push = "checkpoints" needs a repository; give hub.repo_id = "owner/name"'


class RayConfig(Config):
    """The Ray cluster of engine verl, see docs/cluster.md."""

    address: str | None = Field(default=None, min_length=1)
    """Address of a running cluster: `auto` or host:port; none: start Ray on this machine for this run."""
    device: Literal["cuda", "cpu"] = "cuda"
    """verl has no `cpu`: it is for tests, which add it (docs/cluster.md)."""
    num_nodes: int = Field(default=1, ge=1)
    """Machines with training processes."""
    processes_per_node: int | None = Field(default=None, ge=1)
    """Training processes per machine, one per GPU; none: as many as this machine has GPUs."""
    start_seconds: float = Field(default=600.0, gt=0)
    """How long to wait for the devices to join a running cluster."""


class TrainConfig(Config):
    """A training run, whole."""

    engine: Literal["trl", "verl"] = "trl"
    """`trl`: this machine, or several under `accelerate launch`; `verl`: a Ray cluster."""
    seed: int = Field(default=0, ge=0)
    cpu_threads: int | None = Field(default=None, ge=1)
    """Torch threads of a training process; None: from the environment. Fix them for bit-identical runs."""
    num_steps: int = Field(default=300, ge=1)
    """Sampling rounds, each with train_batch_size / ppo_mini_batch_size parameter updates."""
    prompt: PromptConfig = PromptConfig()
    extractor: ExtractorConfig = ExtractorConfig()
    model: Annotated[MicroModel | HuggingFaceModel, Field(discriminator="kind")]
    problems: Annotated[MicroProblems | ProblemFiles | HubProblems, Field(discriminator="kind")]
    rewards: tuple[RewardConfig, ...] = (RewardConfig(name="all_tests"),)
    """The reward of a response is the weighted sum of these."""
    rollout: RolloutConfig = RolloutConfig()
    batch: BatchConfig = BatchConfig()
    algorithm: AlgorithmConfig = AlgorithmConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    evaluator: EvaluatorConfig = EvaluatorConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    logging: LoggingConfig = LoggingConfig()
    hub: HubConfig = HubConfig()
    ray: RayConfig = RayConfig()
    verl: Mapping[str, Any] = Field(default={}, validate_default=True)
    """verl's own options by verl's names: `"actor_rollout_ref.actor.fsdp_config.param_offload" = true`; those that
    the recipe decides are refused."""

    trl: Mapping[str, Any] = Field(default={}, validate_default=True)
    """TRL's own options by TRL's names: `disable_dropout = true`; those that the recipe decides are refused."""

    @field_validator("trl")
    @classmethod
    def _options_are_trls_to_decide(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        refuse_decided(options)
        return dict(options)

    @field_validator("verl")
    @classmethod
    def _one_level_of_dotted_names(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        return flatten(options)

    @property
    def weights(self) -> HuggingFaceModel:
        """How the model is trained: precision, adapters, checkpointing; `path` is the recipe's own alone."""
        return self.model if isinstance(self.model, HuggingFaceModel) else MICRO_WEIGHTS

    def _contradictions(self) -> Iterator[str]:
        yield from self._of_the_other_engine()
        if not self.rewards:
            yield 'rewards is empty; leave it out for the paper\'s, or use [{name = "all_tests"}]'
        for reward in self.rewards:
            if looks_at_all_tests(reward) and self.evaluator.stop != "never":
                yield self.describe_early_stop(reward.name)
        if lack := self.algorithm.find_foreign(self.engine):
            yield lack
        batch, problems, num_samples = self.batch, self.problems, self.rollout.num_samples
        if isinstance(problems, MicroProblems) and batch.train_batch_size > problems.num_train:
            yield (
                f"batch.train_batch_size={batch.train_batch_size} is more than problems.num_train="
                f"{problems.num_train}; lower the one or raise the other"
            )
        learnt = self.model.warm_start.world if isinstance(self.model, MicroModel) else None
        if learnt and isinstance(problems, MicroProblems) and problems.world != learnt:
            yield (
                f"problems.world={problems.world!r} asks what model.warm_start.world={learnt!r} has not learnt to "
                f"answer; add --model.warm-start.world {problems.world}"
            )
        rollouts, micro = batch.ppo_mini_batch_size * num_samples, batch.micro_batch_rollouts
        if rollouts % micro:
            yield (
                f"batch.micro_batch_rollouts={micro} does not divide the {rollouts} rollouts of an update "
                f"(ppo_mini_batch_size {batch.ppo_mini_batch_size} x num_samples {num_samples}); "
                f"try {largest_divisor(rollouts, micro)}"
            )
        penalty, tokens = self.algorithm.masking, self.rollout.max_response_tokens
        if isinstance(penalty, SoftPenalty) and penalty.window_tokens > tokens:
            yield (
                f"algorithm.masking.window_tokens={penalty.window_tokens} is more than "
                f"rollout.max_response_tokens={tokens}; try {max(1, tokens // 5)}"
            )

    def _of_the_other_engine(self) -> Iterator[str]:
        if self.engine == "verl":
            if self.rollout.vllm != VllmConfig():
                yield (
                    "[rollout.vllm] is for engine trl; verl's servers take their options from [verl]: "
                    '"actor_rollout_ref.rollout.gpu_memory_utilization", ".tensor_model_parallel_size", ...'
                )
            if self.logging.token_rollouts:
                yield 'logging.token_rollouts is for engine trl; leave it out on engine = "verl"'
            if self.trl:
                yield f'engine = "verl" takes no trl.{next(iter(self.trl))}; leave it out, or use [verl]'
            return
        foreign = [
            *(f"ray.{name}" for name, value in self.ray if value != RayConfig.model_fields[name].default),
            *(f"verl.{name}" for name in self.verl),
            *(['rollout.backend = "sglang"'] if self.rollout.backend == "sglang" else []),
        ]
        if foreign:
            yield f'engine = "{self.engine}" takes no {foreign[0]}; leave it out, or add --engine verl'
        if self.evaluator.backend == "ray":
            yield (
                f'evaluator.backend = "ray" needs a Ray cluster, which engine = "{self.engine}" has not; add '
                "--engine verl, or start `microcoder serve` and use --evaluator.backend http"
            )

    def describe_early_stop(self, reward: str) -> str:
        """Return why a reward that looks at every test contradicts a judge that stops at the first failing one."""
        return (
            f'reward {reward} looks at every test, but evaluator.stop = "{self.evaluator.stop}" leaves out those '
            "after a failing one; add --evaluator.stop never (judging then takes longer)"
        )


def largest_divisor(number: int, at_most: int) -> int:
    """Return the largest divisor of a number that is no larger than `at_most`."""
    return next(d for d in range(min(number, at_most), 0, -1) if number % d == 0)
