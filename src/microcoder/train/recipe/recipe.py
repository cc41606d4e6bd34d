"""The training recipe: one table for each part of a run, with its defaults.

The parts are model, problems, prompts, rewards, batches, optimizer, evaluations and checkpoints.

Defaults are the published recipe (paper, section 5) where it gives a value, and otherwise DAPO's or
ours: docs/paper.md lists which. Recipes count batches in problems, engines in rollouts:
`cut_batches` converts, `describe_batches` shows both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator

from microcoder.data.micro import ThinkingShares
from microcoder.judge.core.config import Config, flatten
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.extract import DEFAULT, Extractor, load_extractor
from microcoder.judge.core.machine import has_bfloat16
from microcoder.judge.core.rewards import RewardSum, load_rewards
from microcoder.train.algorithm.config import AlgorithmConfig, ClippedLoss
from microcoder.train.algorithm.masking import ConditionalMasking, SoftPenalty
from microcoder.train.algorithm.sampling import RolloutConfig, StagedTemperature, VllmConfig
from microcoder.train.recipe.judge import EvaluatorConfig, PromptConfig
from microcoder.train.recipe.refused import REFUSED_OF_TRL, TRUNCATES_SAMPLING

WEIGHT_BYTES = {"float32": 4, "bfloat16": 2}
"""Bytes per weight, by `dtype`."""
MICRO_HEADS = 4
"""Heads of the micro lab's models, whatever else their size."""
MICRO_INTERMEDIATE_SIZE = 256
"""Width of the MLPs of the micro lab's models, whatever else their size."""
MICRO_CONTEXT_TOKENS = 1024
"""Context of the micro lab's models: prompt and response together."""
NumberFormat = Literal["float32", "bfloat16"]


def choose_dtype(asked: Literal["auto", "float32", "bfloat16"], *, on_gpu: bool) -> NumberFormat:
    """Return a number format; `auto` is bfloat16 on a GPU or a CPU that has it, else float32."""
    if asked != "auto":
        return asked
    if on_gpu or has_bfloat16():
        return "bfloat16"
    return "float32"


class WarmStartConfig(Config):
    """Size and supervised training of the micro lab's starting model."""

    # A head's size must be even: rotary positions turn pairs.
    hidden_size: int = Field(default=128, ge=8, multiple_of=2 * MICRO_HEADS)
    num_layers: int = Field(default=2, ge=1)
    vocab_size: int = Field(default=1024, ge=300)
    num_demonstrations: int = Field(default=40_000, ge=1)
    """Distinct answers to learn from; passes over them follow from the steps and the batch."""
    num_steps: int = Field(default=600, ge=1)
    batch_size: int = Field(default=32, ge=1)
    seed: int = 0
    thinking: ThinkingShares = ThinkingShares()
    """Shares of hacks and of odd layouts among the demonstrations."""


class MicroModel(Config):
    """The micro lab's tiny Qwen3: built on first use from its seed, kept in .cache/microcoder."""

    kind: Literal["micro"]
    warm_start: WarmStartConfig = WarmStartConfig()


class LoraAdapter(Config):
    """Low-rank adapters that are trained in place of the weights; keys have PEFT's names.

    All linear layers but the output layer have an adapter.
    """

    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    """Scales an adapter by alpha / rank."""


class HuggingFaceModel(Config):
    """A causal language model in Hugging Face format."""

    kind: Literal["hugging_face"]
    path: str = Field(min_length=1)
    """A checkpoint folder, a GGUF file or a hub id."""
    revision: str | None = None
    """Commit, tag or branch of a hub id."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of weights and optimizer state. Keep float32 for full training: these are the
    master weights of mixed precision; in bfloat16 an update below 1/256 of a weight is lost, as
    most are at rate 1e-6. With LoRA, bfloat16 halves the memory of the frozen weights; adapters and
    their optimizer stay in float32."""
    compute_dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of matrix products; `auto`: bfloat16, on a CPU that has no bfloat16 float32. The
    manifest records which (`machine.compute_dtype`)."""
    attn_implementation: str | None = Field(default=None, min_length=1)
    """Attention by transformers' names: `sdpa`, `eager`, `flash_attention_2` (needs flash_attn, on
    a GPU), or a kernel of the hub; None: the engine's own choice."""
    gradient_checkpointing: bool = True
    lora: LoraAdapter | None = None


MICRO_WEIGHTS = HuggingFaceModel(
    kind="hugging_face", path="micro", compute_dtype="float32", gradient_checkpointing=False
)
"""Precision and adapters of the micro lab's model."""


class OptimizerConfig(Config):
    """The optimizer, an implementation of AdamW, with its learning-rate schedule."""

    name: Literal["adamw_torch_fused", "adamw_torch", "adamw_8bit"] = "adamw_torch_fused"
    """Optimizer, by transformers' names; `adamw_8bit` needs bitsandbytes."""
    learning_rate: float = Field(default=1e-6, gt=0)
    schedule: Literal["constant_with_warmup", "cosine"] = "constant_with_warmup"
    """Learning-rate schedule, by transformers' names."""
    warmup_steps: int = Field(default=0, ge=0)
    """Training steps over which the learning rate rises from 0."""
    weight_decay: float = Field(default=0.0, ge=0)
    beta2: float = Field(default=0.999, gt=0, lt=1)
    max_grad_norm: float = Field(default=1.0, gt=0)

    def moment_bytes(self, weight_bytes: int) -> float:
        """Return the bytes of optimizer state per parameter."""
        if self.name == "adamw_8bit":
            # Two moments of a byte each, and a scale for each block.
            return 2.1
        return 2 * weight_bytes


def require_optimizer(optimizer: OptimizerConfig) -> None:
    """Raise ConfigError if the optimizer needs a package that is not installed."""
    if optimizer.name == "adamw_8bit" and find_spec("bitsandbytes") is None:
        raise ConfigError(
            'optimizer.name = "adamw_8bit" needs bitsandbytes, which is not installed; type: pip '
            "install bitsandbytes, or leave optimizer.name out"
        )


class MicroProblems(Config):
    """Generated problems of the micro lab."""

    kind: Literal["micro"]
    num_train: int = Field(default=1500, ge=1)
    num_heldout: int = Field(default=120, ge=1)
    tiers: tuple[Literal["easy", "medium", "hard"], ...] = ("easy", "medium", "hard")
    heldout_tiers: tuple[Literal["easy", "medium", "hard"], ...] | None = None
    """Tiers of the held-out problems; None: `tiers`. Set it to compare mixtures on the same
    problems."""
    styles: tuple[Literal["stdin", "function"], ...] = ("stdin", "function")
    seed: int = 0


class ProblemFiles(Config):
    """Problem files in our format, one problem per line, or folders of finished corpora."""

    kind: Literal["files"]
    train: Path
    heldout: Path
    """Held-out problems; also LiveCodeBench as published: one of its files, or their folder (all
    problems)."""


class HubProblems(Config):
    """A Hugging Face Hub dataset in one of the public formats."""

    kind: Literal["hub"]
    id: str = Field(min_length=1)
    """`owner/name`, or a local folder with its files."""
    revision: str | None = None
    """Commit, tag or branch; a commit makes the run reproducible."""
    subset: str = "default"
    """The dataset's config on the Hub."""
    split: str = "train"
    format: str = Field(min_length=1)
    """Row format: `trl`, `verl`, `taco`, `deepcoder`, ..., see docs/rows.md."""
    heldout_split: str | None = None
    """Held-out split of the dataset; or set `heldout`."""
    heldout: Path | None = None
    """Held-out problems: a problem file, a finished corpus or LiveCodeBench; or set
    `heldout_split`."""

    def _contradictions(self) -> Iterator[str]:
        # Without held-out problems nothing would be measured, and with two sets nobody knew of
        # which.
        if (self.heldout is None) == (self.heldout_split is None):
            yield (
                "set exactly one of problems.heldout (a file) and problems.heldout_split (such as "
                "test)"
            )


class RewardConfig(Config):
    """One reward of the list `[[rewards]]`, whose weighted sum is the reward of a response."""

    name: str = Field(min_length=1)
    """`all_tests` (1 when every test passed, else 0: the paper's), `fraction` (of the tests),
    `format` (1 when the response ended by itself and holds a whole code block), or your own:
    path/to/file.py:function."""
    weight: float = Field(default=1.0, allow_inf_nan=False)
    """Factor on this reward in the sum; negative for a penalty."""
    options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of your own function."""


def build_rewards(rewards: tuple[RewardConfig, ...]) -> RewardSum:
    """Return a recipe's rewards as one function, their weighted sum."""
    return load_rewards([(reward.name, reward.weight, reward.options) for reward in rewards])


class ExtractorConfig(Config):
    """Extraction of programs from responses."""

    name: str = Field(default=DEFAULT, min_length=1)
    """`last_code_block`: the last whole program in a closed code block outside of thinking, tagged
    or not (docs/judging.md); or your own: path/to/file.py:function."""
    options: dict[str, Any] = Field(default={})
    """Keyword-only parameters of your own function."""


def build_extractor(config: ExtractorConfig) -> Extractor:
    """Return a recipe's function that extracts programs from responses."""
    return load_extractor(config.name, config.options)


class BatchConfig(Config):
    """Batch sizes, in problems unless the name says otherwise."""

    train_batch_size: int = Field(default=64, ge=1)
    """Problems sampled in one step."""
    ppo_mini_batch_size: int = Field(default=32, ge=1)
    """Problems per parameter update; train_batch_size / ppo_mini_batch_size updates per step. The
    paper does not give it. It is at most 32: section 7.1 keeps it constant, and figure 8 shows
    train_batch_size 32, 64 and 128. With one update a step every ratio is 1, and no clip can
    act."""
    micro_batch_rollouts: int = Field(default=8, ge=1)
    """Rollouts per forward and backward pass on one device; bounds memory, does not change
    results."""

    def _contradictions(self) -> Iterator[str]:
        step = self.train_batch_size
        update = self.ppo_mini_batch_size
        # Updates of unequal size would have unequal steps.
        if step % update:
            yield (
                f"ppo_mini_batch_size={update} does not divide train_batch_size={step}; "
                f"try {largest_divisor(step, update)}"
            )


class EvaluationConfig(Config):
    """When and how accuracy on held-out problems is measured.

    It is measured before the first step, every few steps, and after the last.
    """

    every_steps: int = Field(default=20, ge=1)
    samples_per_problem: int = Field(default=4, ge=1)
    temperature: float = Field(default=1.0, gt=0, le=4)
    """Sampling temperature in evaluations; the default is ours, the paper gives none."""
    max_response_tokens: int | None = Field(default=None, ge=1)
    """Length limit in evaluations; None: the run's last limit. In its Table 1 the paper trains at
    4K tokens, and tests at 4K and at 8K."""
    seed: int = 1_000_003


EVALUATION_ROLLOUTS = 256
"""Most responses of an evaluation that are sampled at a time; bounds memory (our choice)."""


class CheckpointConfig(Config):
    """When to save checkpoints, and how many to keep."""

    every_steps: int = Field(default=10, ge=1)
    keep: int = Field(default=2, ge=1)
    """Number of latest checkpoints to keep."""


class TrainConfig(Config):
    """The complete recipe of a training run."""

    engine: Literal["trl", "verl"] = "trl"
    """`trl`: this machine, or several under `accelerate launch`; `verl`: a Ray cluster."""
    seed: int = Field(default=0, ge=0)
    cpu_threads: int | None = Field(default=None, ge=1)
    """Torch threads of a training process; None: from the environment. Fix them for bit-identical
    runs."""
    num_steps: int = Field(default=300, ge=1)
    """Sampling rounds, each with train_batch_size / ppo_mini_batch_size parameter updates. The
    default is ours: the paper speaks of 300 steps where it compares data sets (section 1.3), and
    gives none for its algorithms."""
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
    verl: Annotated[Mapping[str, Any], AfterValidator(flatten)] = Field(
        default={}, validate_default=True
    )
    """verl's own options by verl's names: `"actor_rollout_ref.actor.fsdp_config.param_offload" =
    true`; those that the recipe decides are refused."""

    trl: Mapping[str, Any] = Field(default={}, validate_default=True)
    """TRL's own options by TRL's names: `disable_dropout = true`; those that the recipe decides are
    refused."""

    @field_validator("trl")
    @classmethod
    def _options_are_trls_to_decide(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        refused = [name for name in options if name in REFUSED_OF_TRL]
        # Ratios are taken between policies: what truncates sampling makes another one.
        if refused and refused[0] in TRUNCATES_SAMPLING:
            raise ValueError(
                f"[trl] {refused[0]} would sample from another policy than is trained; leave it out"
            )
        if refused:
            raise ValueError(
                f"[trl] {refused[0]} is the recipe's to decide; look for its key in "
                "docs/reference.md"
            )
        return dict(options)

    @property
    def weights(self) -> HuggingFaceModel:
        """Precision, adapters and gradient checkpointing of the model.

        The micro model's `path` is a placeholder.
        """
        return self.model if isinstance(self.model, HuggingFaceModel) else MICRO_WEIGHTS

    def _contradictions(self) -> Iterator[str]:
        # A key that is ignored would be a recipe that says something else than it does.
        yield from self._find_foreign_keys()
        if not self.rewards:
            yield 'rewards is empty; leave it out for the paper\'s, or use [{name = "all_tests"}]'
        batch = self.batch
        problems = self.problems
        if isinstance(problems, MicroProblems) and batch.train_batch_size > problems.num_train:
            yield (
                f"batch.train_batch_size={batch.train_batch_size} is more than problems.num_train="
                f"{problems.num_train}; lower the one or raise the other"
            )
        yield from self._find_idle_loss()
        num_samples = self.rollout.num_samples
        rollouts = batch.ppo_mini_batch_size * num_samples
        micro = batch.micro_batch_rollouts
        # Gradients are summed over whole passes.
        if rollouts % micro:
            yield (
                f"batch.micro_batch_rollouts={micro} does not divide the {rollouts} rollouts of an "
                f"update (ppo_mini_batch_size {batch.ppo_mini_batch_size} x num_samples "
                f"{num_samples}); try {largest_divisor(rollouts, micro)}"
            )
        penalty = self.algorithm.masking
        tokens = self.rollout.max_response_tokens
        if isinstance(penalty, SoftPenalty) and penalty.window_tokens > tokens:
            yield (
                f"algorithm.masking.window_tokens={penalty.window_tokens} is more than "
                f"rollout.max_response_tokens={tokens}; try {max(1, tokens // 5)}"
            )

    def _find_idle_loss(self) -> Iterator[str]:
        """Yield why a loss that relies on ratios cannot act."""
        loss = self.algorithm.loss
        step = self.batch.train_batch_size
        if step != self.batch.ppo_mini_batch_size:
            return
        if not loss.rests_on_ratios or self.num_steps == 1:
            return
        plain = " grpo"
        if isinstance(loss, ClippedLoss):
            plain = f".clip-high {loss.clip_low:g}"
        # With two updates a step the second has ratios other than 1.
        smaller = largest_divisor(step, max(1, step // 2))
        yield (
            f"algorithm.loss {loss.kind} cannot act with one update a step (train_batch_size = "
            f"ppo_mini_batch_size = {step}): every ratio is 1; try "
            f"batch.ppo_mini_batch_size={smaller}, or, where one update is meant, a loss that "
            f"claims no more: --algorithm.loss{plain}"
        )

    def _find_foreign_keys(self) -> Iterator[str]:
        """Yield the keys that belong to the other engine, and would be ignored."""
        if self.engine == "verl":
            if self.rollout.vllm != VllmConfig():
                yield (
                    "[rollout.vllm] is for engine trl; verl's servers take their options from "
                    '[verl]: "actor_rollout_ref.rollout.gpu_memory_utilization", '
                    '".tensor_model_parallel_size", ...'
                )
            if self.trl:
                yield (
                    f'engine = "verl" takes no trl.{next(iter(self.trl))}; leave it out, or use '
                    "[verl]"
                )
            return
        # The first of them is named: one is enough to see what is meant.
        foreign = [f"verl.{name}" for name in self.verl]
        if self.rollout.backend == "sglang":
            foreign.append('rollout.backend = "sglang"')
        if foreign:
            yield (
                f'engine = "{self.engine}" takes no {foreign[0]}; leave it out, or add --engine '
                "verl"
            )
        if self.evaluator.backend == "ray":
            yield (
                f'evaluator.backend = "ray" needs a Ray cluster, which engine = "{self.engine}" '
                "has not; add --engine verl, or start `microcoder serve`, and name its address as "
                "the backend"
            )


def largest_divisor(number: int, at_most: int) -> int:
    """Return the largest divisor of a number that is no larger than `at_most`."""
    return next(d for d in range(min(number, at_most), 0, -1) if number % d == 0)


@dataclass(frozen=True, slots=True)
class Batches:
    """The split of a step into updates and micro batches, in rollouts."""

    rollouts_per_step: int
    updates_per_step: int
    rollouts_per_update: int
    gradient_accumulation_steps: int


def cut_batches(config: TrainConfig, *, num_processes: int) -> Batches:
    """Return the split of a step into updates and micro batches.

    ConfigError if a size does not divide evenly.
    """
    batch = config.batch
    num_samples = config.rollout.num_samples
    # Each process samples the same number of problems.
    if batch.train_batch_size % num_processes:
        raise ConfigError(
            f"batch.train_batch_size={batch.train_batch_size} cannot be shared by {num_processes} "
            f"processes; use a multiple of {num_processes}"
        )
    rollouts_per_update = batch.ppo_mini_batch_size * num_samples
    rollouts_per_pass = batch.micro_batch_rollouts * num_processes
    if rollouts_per_update % rollouts_per_pass:
        raise ConfigError(
            f"the {rollouts_per_update} rollouts of an update cannot be cut into micro batches of "
            f"{batch.micro_batch_rollouts} on {num_processes} processes; lower "
            "batch.micro_batch_rollouts, or use a batch.ppo_mini_batch_size that is a multiple of "
            f"{num_processes}"
        )
    return Batches(
        rollouts_per_step=batch.train_batch_size * num_samples,
        updates_per_step=batch.train_batch_size // batch.ppo_mini_batch_size,
        rollouts_per_update=rollouts_per_update,
        gradient_accumulation_steps=rollouts_per_update // rollouts_per_pass,
    )


def count_verl_devices(config: TrainConfig) -> int:
    """Return how many training processes verl starts: nodes times GPUs per node."""
    # verl's own defaults.
    nodes = int(config.verl.get("trainer.nnodes", 1))
    return nodes * int(config.verl.get("trainer.n_gpus_per_node", 8))


def describe_batches(config: TrainConfig, *, num_processes: int) -> list[str]:
    """Return lines on a step's batches, then the settings that have no effect.

    Batch sizes are in problems, rollouts and tokens.
    """
    cut = cut_batches(config, num_processes=num_processes)
    batch = config.batch
    limit = config.rollout.longest_response_tokens
    # Of one process; the others have as many.
    passes = f"{cut.gradient_accumulation_steps} an update"
    if num_processes > 1:
        passes += f" on each of {num_processes} processes"

    def row(name: str, problems: int | str, rollouts: int, meaning: str) -> str:
        return f"{name:<10} {problems:>8} {rollouts:>8} {rollouts * limit:>12,}  {meaning}"

    lines = [
        f"{'batches':<10} {'problems':>8} {'rollouts':>8} {'tokens <=':>12}",
        row(
            "a step",
            batch.train_batch_size,
            cut.rollouts_per_step,
            "sampled and judged (train_batch_size)",
        ),
        row(
            "an update",
            batch.ppo_mini_batch_size,
            cut.rollouts_per_update,
            f"{cut.updates_per_step} a step (ppo_mini_batch_size)",
        ),
        row("a pass", "", batch.micro_batch_rollouts, f"{passes} (micro_batch_rollouts)"),
    ]
    lines += describe_filtering(config)
    for setting in find_idle(config):
        lines.append(f"has no effect: {setting}")
    return lines


def describe_filtering(config: TrainConfig) -> list[str]:
    """Return the line on the problems that `algorithm.group_filtering` replaces, if it is on."""
    match config.algorithm.group_filtering:
        case "none":
            return []
        case "dynamic":
            replaced = "all samples are right, or all wrong"
        case "dynamic_reward":
            replaced = "all samples have one reward"
    return [f"filtered   problems of which {replaced} are replaced, at most twice a step"]


def find_idle(config: TrainConfig) -> list[str]:
    """Return the settings of a recipe that cannot have an effect in its run.

    Each comes with the reason and a remedy.
    """
    loss = config.algorithm.loss
    masking = config.algorithm.masking
    idle = []
    if config.batch.train_batch_size == config.batch.ppo_mini_batch_size:
        # Losses without a clip weigh by the ratio itself.
        part = "clip" if isinstance(loss, ClippedLoss) else "ratio"
        idle.append(
            f"the {part} of loss {loss.kind}, with one update a step: every ratio is 1; "
            f"try batch.ppo_mini_batch_size={max(1, config.batch.train_batch_size // 2)}"
        )
    if isinstance(masking, ConditionalMasking) and not masking.rho:
        idle.append("the mask, with algorithm.masking.rho = 0; try 0.1, or kind = none")
    longest = config.rollout.longest_response_tokens
    # A response shorter than two windows cannot repeat.
    if isinstance(masking, ConditionalMasking) and longest < 2 * masking.repeat_window_tokens:
        idle.append(
            f"the repeat check of the mask: it compares the last {masking.repeat_window_tokens} "
            f"tokens with as many before them, and responses have at most {longest}; try "
            f"algorithm.masking.repeat_window_tokens={max(1, longest // 4)}"
        )
    temperature = config.rollout.temperature
    if isinstance(temperature, StagedTemperature):
        steps = [stage.from_step for stage in temperature.stages]
        idle += _find_late_stages("temperature.stages", steps, last_step=config.num_steps)
    steps = [stage.from_step for stage in config.rollout.length_stages]
    idle += _find_late_stages("length_stages", steps, last_step=config.num_steps)
    return idle


def _find_late_stages(key: str, steps: Sequence[int], *, last_step: int) -> list[str]:
    """Return the stages of [rollout] that would begin after the run has ended."""
    late = [step for step in steps if step > last_step]
    return [f"rollout.{key} from step {step}, after the last step {last_step}" for step in late]
