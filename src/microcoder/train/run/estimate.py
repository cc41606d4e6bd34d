"""Estimates before a run starts: memory of one GPU, disk, and counts that follow from the config.

Memory is counted part by part, a formula each, at the micro batch and the longest prompt and
response of the recipe. Speed is not estimated: the first steps show it. If disk or memory run out,
the run ends with an error of one line; its directory stays consistent, since partly written files
are never used, and the same command resumes.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import ConfigError, MicroCoderError, TrainingError
from microcoder.judge.core.machine import is_disk_full
from microcoder.train.recipe.recipe import (
    MICRO_CONTEXT_TOKENS,
    MICRO_HEADS,
    MICRO_INTERMEDIATE_SIZE,
    WEIGHT_BYTES,
    HuggingFaceModel,
    MicroModel,
    MicroProblems,
    ProblemFiles,
    TrainConfig,
    WarmStartConfig,
    choose_dtype,
)
from microcoder.train.run.checkpoints import model_folder
from microcoder.train.run.gguf_header import describe_config, find_gguf
from microcoder.train.run.known_models import DIMENSIONS, KNOWN, Architecture
from microcoder.train.run.manifest import longest_statement
from microcoder.train.run.model_files import read_object
from microcoder.train.runs import RunDirectory


def find_architecture(model: MicroModel | HuggingFaceModel) -> Architecture | None:
    """Return the architecture of a recipe's model; None if it is not known here.

    It is read from `KNOWN`, or from the model's config.json.
    """
    if isinstance(model, MicroModel):
        return _micro_architecture(model.warm_start)
    if model.path in KNOWN:
        return KNOWN[model.path]
    config = read_file(model.path, "config.json")
    return config if "num_hidden_layers" in config else None


def _micro_architecture(config: WarmStartConfig) -> Architecture:
    """Return the architecture of the micro model, which a run builds itself."""
    return {
        "model_type": "qwen3",
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": MICRO_HEADS,
        "num_key_value_heads": MICRO_HEADS,
        "intermediate_size": MICRO_INTERMEDIATE_SIZE,
        "vocab_size": config.vocab_size,
        "max_position_embeddings": MICRO_CONTEXT_TOKENS,
        "tie_word_embeddings": True,
    }


def find_file(model: str, name: str, *, revision: str | None = None) -> Path | None:
    """Return the path of a model's file, in its folder or the Hub's cache; None without it."""
    folder = model_folder(model)
    if folder is not None:
        file = folder / name
        return file if file.is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        cached = try_to_load_from_cache(model, name, revision=revision)
    except HFValidationError as error:
        raise ConfigError(
            f"model {model!r} is neither a folder here nor an id of the Hub ({error})"
        ) from None
    # The Hub's library may also answer with a mark for "known not to exist".
    return Path(cached) if isinstance(cached, str) else None


def read_file(model: str, name: str, *, revision: str | None = None) -> dict[str, Any]:
    """Return the object in a model's JSON file; empty without a file. DataError if damaged.

    Of a GGUF file, config.json is what its header says.
    """
    folder = model_folder(model)
    gguf = None if folder is None else find_gguf(folder)
    if gguf is not None:
        return describe_config(gguf) if name == "config.json" else {}
    path = find_file(model, name, revision=revision)
    return {} if path is None else read_object(path)


def count_model_parameters(model: MicroModel | HuggingFaceModel) -> int | None:
    """Return how many parameters a recipe's model has; None if its shape is not known here."""
    return count_parameters(find_architecture(model) or {})


def count_parameters(architecture: Architecture) -> int | None:
    """Return the parameters of a decoder like Llama, Qwen2 or Qwen3.

    None for a mixture of experts, or where a dimension is not known.
    """
    # Which weights an expert has differs by family.
    if architecture.get("num_experts") or architecture.get("num_local_experts"):
        return None
    try:
        hidden, layers, heads, kv_heads, intermediate = (architecture[name] for name in DIMENSIONS)
        size = head_size(architecture)
        attention = hidden * size * (2 * heads + 2 * kv_heads)
        # Qwen2 has biases of queries, keys and values, Qwen3 norms of queries and keys.
        biases = {"qwen2": size * (heads + 2 * kv_heads), "qwen3": 2 * size}
        attention += biases.get(architecture.get("model_type", ""), 0)
        embeddings = 1 if architecture.get("tie_word_embeddings", False) else 2
        per_layer = attention + 3 * hidden * intermediate + 2 * hidden
        return layers * per_layer + embeddings * architecture["vocab_size"] * hidden + hidden
    except (KeyError, TypeError):
        return None


def head_size(architecture: Architecture) -> int:
    """Return the size of an attention head."""
    own = architecture.get("head_dim")
    return own or architecture["hidden_size"] // architecture["num_attention_heads"]


_TILE_ROWS = 4096
"""Number of tokens for which TRL's fused head makes logits at a time."""
_TILE_COLUMNS = 32768
"""Number of entries of the vocabulary for which TRL's fused head makes logits at a time."""
RESERVE_GIB = 2.0
"""GPU memory of CUDA's context and kernels (0.8 GiB on an H200) and lost to fragments: assumed."""
ASLEEP_GIB = 3.0
"""GPU memory that vLLM or SGLang keeps while weights are trained (graphs, buffers).

Assumed, not measured.
"""
ASSUMED_PROMPT_TOKENS = 1024
"""Tokens of the longest prompt where the problems are not here to be read."""
MICRO_PROMPT_TOKENS = 128
"""Tokens that the longest prompt of the micro lab's problems stays below."""
TEMPLATE_TOKENS = 64
"""Tokens that a chat template may add around a statement."""
CHARACTERS_PER_TOKEN = 3.0
"""Characters per token of statements, on the low side.

With Qwen's tokenizer there are about 3.5 in English and code.
"""
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """Memory that a run needs on one GPU by part, in GiB; upper bounds by formula."""

    parts: Mapping[str, float]
    total: float
    """Memory of the whole run; less than the sum of the parts if sampler and update take turns."""
    prompt_tokens: int
    device_gib: float | None
    """Memory of the GPU; None: unknown."""
    cached_responses: int | None
    """Number of full-length responses that vLLM's cache can hold.

    None without vLLM, or for an unknown GPU.
    """

    @property
    def fits(self) -> bool | None:
        """Whether the run fits on the GPU; None for an unknown one."""
        if self.device_gib is None:
            return None
        return self.total <= self.device_gib and self.cached_responses != 0


@dataclass(frozen=True, slots=True)
class _Shape:
    """The sizes of a model on which its memory depends."""

    parameters: int
    hidden: int
    layers: int
    queries: int
    """Width of the queries of all heads together."""
    keys: int
    """Width of the keys of all heads together; that of the values is the same."""
    mlp: int
    vocabulary: int
    embeddings: int
    """Parameters of the embedding, and of the head where it has a matrix of its own."""


@dataclass(frozen=True, slots=True)
class _Precision:
    """What is trained of a model, and with how many bytes for a number."""

    is_whole: bool
    """All weights are trained; otherwise adapters."""
    stored: int
    """Bytes of a stored weight."""
    product: int
    """Bytes of a number in matrix products."""
    adapters: int
    """Parameters of all adapters."""
    trained: int
    """Parameters that are trained."""
    trained_bytes: int
    """Bytes of a trained parameter, and of its gradient."""


@dataclass(frozen=True, slots=True)
class _Sampler:
    """Memory of the sampler."""

    num_bytes: float
    cached_responses: int | None
    """As in `MemoryTable`."""


def count_memory(
    config: TrainConfig, *, device_memory_gib: float | None = None, num_shards: int = 1
) -> MemoryTable | None:
    """Return the memory that a run needs on each GPU; None if the model's shape is unknown.

    Args:
        config: the recipe.
        device_memory_gib: of one GPU; vLLM takes a share of it.
        num_shards: GPUs over which weights, gradients and optimizer are divided (FSDP, ZeRO-3).
    """
    shape = _read_shape(find_architecture(config.model) or {})
    if shape is None:
        return None
    precision = _read_precision(config.weights, shape)
    prompt_tokens = longest_prompt_tokens(config)
    held = _count_held(config, shape, precision, num_shards=num_shards)
    update = {
        "gradients": precision.trained * precision.trained_bytes / num_shards,
        **_count_pass(config, shape, precision, prompt_tokens=prompt_tokens),
        "gathered layers": _count_gathered(config, shape, precision, num_shards=num_shards),
        "sampler, asleep": _count_asleep(config),
    }
    sampler = _count_sampler(
        config,
        shape,
        prompt_tokens=prompt_tokens,
        device_memory_gib=device_memory_gib,
        num_shards=num_shards,
    )

    updating = sum(update.values())
    if _takes_turns(config):
        total = sum(held.values()) + max(updating, sampler.num_bytes)
    else:
        total = sum(held.values()) + (updating + sampler.num_bytes)
    parts = {
        **held,
        **update,
        "sampler (weights, keys and values)": sampler.num_bytes,
        "CUDA and fragments": RESERVE_GIB * _GIB,
    }
    return MemoryTable(
        parts={name: number / _GIB for name, number in parts.items() if number},
        total=total / _GIB + RESERVE_GIB,
        prompt_tokens=prompt_tokens,
        device_gib=device_memory_gib,
        cached_responses=sampler.cached_responses,
    )


def _read_shape(architecture: Architecture) -> _Shape | None:
    """Return the sizes of a model; None if they are not known."""
    parameters = count_parameters(architecture)
    if parameters is None:
        return None
    hidden, layers, heads, kv_heads, mlp = (int(architecture[name]) for name in DIMENSIONS)
    vocabulary = architecture["vocab_size"]
    matrices = 1 if architecture.get("tie_word_embeddings") else 2
    return _Shape(
        parameters=parameters,
        hidden=hidden,
        layers=layers,
        queries=head_size(architecture) * heads,
        keys=head_size(architecture) * kv_heads,
        mlp=mlp,
        vocabulary=vocabulary,
        embeddings=vocabulary * hidden * matrices,
    )


def _read_precision(weights: HuggingFaceModel, shape: _Shape) -> _Precision:
    """Return what is trained of a model's weights, and the bytes of each number."""
    is_whole = weights.lora is None
    rank = 0 if weights.lora is None else weights.lora.rank
    # Two narrow matrices beside each matrix of attention and MLP.
    layer = 7 * shape.hidden + 2 * (shape.queries + shape.keys) + 3 * shape.mlp
    adapters = rank * shape.layers * layer
    stored = WEIGHT_BYTES[weights.dtype]
    # Adapters are trained in float32.
    trained = adapters
    trained_bytes = 4
    if is_whole:
        trained = shape.parameters
        trained_bytes = stored
    return _Precision(
        is_whole=is_whole,
        stored=stored,
        # Memory is counted for a GPU.
        product=WEIGHT_BYTES[choose_dtype(weights.compute_dtype, on_gpu=True)],
        adapters=adapters,
        trained=trained,
        trained_bytes=trained_bytes,
    )


def _count_held(
    config: TrainConfig, shape: _Shape, precision: _Precision, *, num_shards: int
) -> dict[str, float]:
    """Return the bytes that are held during the whole run, by part."""
    moment_bytes = config.optimizer.moment_bytes(precision.trained_bytes)
    held = {
        "weights": (shape.parameters + precision.adapters) * precision.stored / num_shards,
        "optimizer": precision.trained * moment_bytes / num_shards,
        "reference model": 0.0,
    }
    # With adapters the reference is the model without them.
    if config.algorithm.kl_coefficient and precision.is_whole:
        held["reference model"] = shape.parameters * precision.stored / num_shards
    return held


def _count_pass(
    config: TrainConfig, shape: _Shape, precision: _Precision, *, prompt_tokens: int
) -> dict[str, float]:
    """Return the bytes of a forward and backward pass over a micro batch, by part."""
    rows = config.batch.micro_batch_rollouts
    response_tokens = config.rollout.longest_response_tokens
    tokens = rows * (prompt_tokens + response_tokens)
    product = precision.product
    # A layer's activations, with their gradients where they are computed again.
    attention = 9 * (shape.queries + shape.keys)
    layer = tokens * (32 * shape.hidden + product * (6 * shape.mlp + attention))
    if config.weights.gradient_checkpointing:
        activations = tokens * shape.hidden * shape.layers * precision.stored + layer
    else:
        activations = shape.layers * layer

    # The head reads responses only.
    scored = rows * response_tokens
    tile = min(scored, _TILE_ROWS) * min(shape.vocabulary, _TILE_COLUMNS)
    head = product * tile + scored * shape.hidden * 10
    casts = 0
    if precision.is_whole:
        # The gradient of the head's matrix, in float32.
        head += 4 * shape.vocabulary * shape.hidden
        if product < precision.stored:
            casts = product * shape.parameters
    return {
        "activations of a pass": activations,
        # Autocast keeps its casts of trained weights until the forward pass has ended; the head
        # comes after it.
        "logits, or casts of weights": max(head, casts),
    }


def _count_gathered(
    config: TrainConfig, shape: _Shape, precision: _Precision, *, num_shards: int
) -> float:
    """Return the bytes of layers that FSDP2 puts together from their shards, with gradients."""
    if config.engine != "verl" or num_shards <= 1:
        return 0
    # Two layers at a time: the one in use, and the next beside it.
    layers = 2 * (shape.parameters - shape.embeddings) / shape.layers
    return (shape.embeddings + layers) * (precision.product + 4)


def _is_ours(config: TrainConfig) -> bool:
    """Return whether transformers samples, with the weights that are trained."""
    return config.rollout.backend == "transformers"


def _takes_turns(config: TrainConfig) -> bool:
    """Return whether the sampler gives its memory back while weights are trained."""
    if _is_ours(config) or config.engine == "verl":
        return True
    return config.rollout.vllm.enable_sleep_mode


def _count_asleep(config: TrainConfig) -> float:
    """Return the bytes that a sampler keeps while weights are trained."""
    if _takes_turns(config) and not _is_ours(config):
        return ASLEEP_GIB * _GIB
    return 0


def _count_sampler(
    config: TrainConfig,
    shape: _Shape,
    *,
    prompt_tokens: int,
    device_memory_gib: float | None,
    num_shards: int,
) -> _Sampler:
    """Return the memory of the sampler while it samples."""
    evaluated_tokens = config.evaluation.max_response_tokens or 0
    response_tokens = max(config.rollout.longest_response_tokens, evaluated_tokens)
    # Keys and values over all layers, two bytes each.
    response = (prompt_tokens + response_tokens) * 4 * shape.layers * shape.keys
    if _is_ours(config):
        num_rollouts = config.batch.train_batch_size * config.rollout.num_samples
        return _Sampler(num_rollouts // num_shards * response, cached_responses=None)
    if config.engine == "verl":
        # It samples in what the update leaves.
        return _Sampler(0, cached_responses=None)
    weights = 2 * shape.parameters
    if device_memory_gib is None:
        return _Sampler(weights + response, cached_responses=None)
    taken = config.rollout.vllm.gpu_memory_utilization * device_memory_gib * _GIB
    # One GiB for vLLM's own buffers and graphs.
    cache = taken - weights - _GIB
    return _Sampler(taken, cached_responses=max(0, int(cache // response)))


def describe_memory(table: MemoryTable, config: TrainConfig, *, is_counted_for: str) -> list[str]:
    """Return the memory table as lines; `is_counted_for` names the GPU in the first."""
    width = max(map(len, table.parts))
    rollouts = config.batch.micro_batch_rollouts
    tokens = config.rollout.longest_response_tokens
    lines = [
        f"memory of {is_counted_for}, GiB ({rollouts} rollouts a pass, each of "
        f"{table.prompt_tokens:,} prompt and {tokens:,} response tokens):"
    ]
    for name, gib in table.parts.items():
        lines.append(f"  {name:<{width}} {gib:>8.2f}")
    device = "" if table.device_gib is None else f" of {table.device_gib:g}"
    lines.append(f"  {'in all, at most':<{width}} {table.total:>8.2f}{device}")
    return lines


def longest_prompt_tokens(config: TrainConfig) -> int:
    """Estimate the tokens of the longest prompt by its characters.

    Without problem files it is `ASSUMED_PROMPT_TOKENS`.
    """
    problems = config.problems
    if isinstance(problems, MicroProblems):
        return MICRO_PROMPT_TOKENS
    if not isinstance(problems, ProblemFiles):
        return ASSUMED_PROMPT_TOKENS
    paths = (problems.train, problems.heldout)
    if not all(path.exists() for path in paths):
        return ASSUMED_PROMPT_TOKENS
    longest = max(map(longest_statement, paths))
    return int(longest / CHARACTERS_PER_TOKEN) + TEMPLATE_TOKENS


def detect_device_gib() -> float | None:
    """Return the memory of this machine's first GPU, None without one."""
    if find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    return torch.cuda.get_device_properties(0).total_memory / _GIB


def describe_run(config: TrainConfig) -> list[str]:
    """Return lines on a run's size: steps, updates, rollouts, tokens (at most), parameters."""
    batch = config.batch
    rollouts = config.num_steps * batch.train_batch_size * config.rollout.num_samples
    updates = config.num_steps * (batch.train_batch_size // batch.ppo_mini_batch_size)
    parameters = count_model_parameters(config.model)
    if parameters is None:
        size = "size unknown (no config.json, no known name)"
    else:
        size = f"{parameters / 1e6:,.1f} M parameters"
    return [
        f"the run: {config.num_steps} steps, {updates} updates, {rollouts:,} rollouts, at most "
        f"{rollouts * config.rollout.longest_response_tokens:,} tokens",
        f"model: {size}",
    ]


def describe_disk(config: TrainConfig, root: Path) -> str:
    """Return a sentence on the free disk space and the size of a checkpoint.

    A checkpoint holds weights and the optimizer's state.
    """
    # The run's own folder may not be there yet.
    nearest = next(path for path in (root.absolute(), *root.absolute().parents) if path.is_dir())
    weight_bytes = WEIGHT_BYTES[config.weights.dtype]
    parameters = count_model_parameters(config.model)
    # That of an adapter is small, and not counted.
    size = "a size that is not known here"
    if parameters and not config.weights.lora:
        num_bytes = parameters * (weight_bytes + config.optimizer.moment_bytes(weight_bytes))
        size = f"about {num_bytes / 2**20:,.0f} MiB"
    return (
        f"{nearest} has {shutil.disk_usage(nearest).free / 2**20:,.0f} MiB free; a checkpoint "
        f"takes {size}, and up to {config.checkpoint.keep + 1} are there at a time"
    )


_WRITING = re.compile(r"inline_container|PytorchStreamWriter")
"""Matches errors of torch.save, which do not name the reason."""
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|out of memory|can't allocate memory", re.IGNORECASE)
"""Matches the names and texts of errors for a lack of memory, of torch and of the system."""


@contextmanager
def explain_failures(config: TrainConfig, run: RunDirectory) -> Iterator[None]:
    """Within the body, turn errors of a full disk or too little memory into a TrainingError.

    Other errors pass unchanged.
    """
    try:
        yield
    except MicroCoderError:
        raise
    except Exception as error:
        cause = _explain(error, config, run)
        if cause is None:
            raise
        step = run.latest_checkpoint_step()
        then = "starts the run again" if step is None else f"resumes the run after step {step}"
        raise TrainingError(f"{cause}; the same command {then}") from error


def _explain(error: Exception, config: TrainConfig, run: RunDirectory) -> str | None:
    """Return what ran out and what to do about it; None for any other error."""
    if is_disk_full(error) or _WRITING.search(str(error)):
        return (
            f"the disk is full: {describe_disk(config, run.root)}; free some, or lower "
            f"checkpoint.keep ({config.checkpoint.keep})"
        )
    if _OUT_OF_MEMORY.search(f"{type(error).__name__}: {error}"):
        reason = " ".join(str(error).split())[:200]
        return f"out of memory ({reason}); {how_to_shrink(config)}"
    return None


def how_to_shrink(config: TrainConfig) -> str:
    """Return a text of the keys that make a run need less memory, the mildest first."""
    return (
        f"lower batch.micro_batch_rollouts (now {config.batch.micro_batch_rollouts}; resumes as "
        'well), sample by rollout.backend = "vllm" with rollout.vllm.enable_sleep_mode = true or a '
        'smaller gpu_memory_utilization, use optimizer.name = "adamw_8bit", train adapters '
        "([model.lora]), or lower rollout.max_response_tokens (now "
        f"{config.rollout.max_response_tokens})"
    )
