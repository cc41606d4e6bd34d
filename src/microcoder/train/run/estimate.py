"""Estimates before a run starts: memory of one GPU by formula, disk, and counts that follow from the config.

Memory is counted part by part, a formula each, at the micro batch and the longest prompt and response of the recipe.
Speed is not estimated: the first steps show it. If disk or memory run out, the run ends with an error of one line; its
directory stays consistent, since partly written files are never used, and the same command resumes.
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
    choose_dtype,
)
from microcoder.train.run.checkpoints import model_folder
from microcoder.train.run.manifest import longest_statement
from microcoder.train.run.model_files import read_object
from microcoder.train.runs import RunDirectory

Architecture = Mapping[str, Any]
"""The entries of a model's config.json that determine its shapes."""
_DIMENSIONS = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
)
_QWEN3 = {"model_type": "qwen3", "vocab_size": 151936, "head_dim": 128}
# From the models' config.json on the hub, so that an estimate needs no network.
KNOWN: Mapping[str, Architecture] = {
    name: {
        **_QWEN3,
        **dict(zip(_DIMENSIONS, dimensions, strict=True)),
        "tie_word_embeddings": dimensions[0] < 4096,
    }
    for name, dimensions in {
        "Qwen/Qwen3-0.6B": (1024, 28, 16, 8, 3072),
        "Qwen/Qwen3-1.7B": (2048, 28, 16, 8, 6144),
        "Qwen/Qwen3-4B": (2560, 36, 32, 8, 9728),
        "Qwen/Qwen3-4B-Instruct-2507": (2560, 36, 32, 8, 9728),
        "Qwen/Qwen3-8B": (4096, 36, 32, 8, 12288),
        "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": (4096, 36, 32, 8, 12288),
    }.items()
}


def find_architecture(model: MicroModel | HuggingFaceModel) -> Architecture | None:
    """Return the architecture of a recipe's model, from `KNOWN` or its config.json; None if neither is there."""
    if isinstance(model, MicroModel):
        dims = model.warm_start
        values = (
            dims.hidden_size,
            dims.num_layers,
            MICRO_HEADS,
            MICRO_HEADS,
            MICRO_INTERMEDIATE_SIZE,
        )
        return {
            "model_type": "qwen3",
            **dict(zip(_DIMENSIONS, values, strict=True)),
            "vocab_size": dims.vocab_size,
            "max_position_embeddings": MICRO_CONTEXT_TOKENS,
            "tie_word_embeddings": True,
        }
    if model.path in KNOWN:
        return KNOWN[model.path]
    found = read_file(model.path, "config.json")
    return found if "num_hidden_layers" in found else None


def find_file(model: str, name: str, *, revision: str | None = None) -> Path | None:
    """Return the path of a model's file, in its folder or the Hub's local cache; None if it is not there."""
    if (folder := model_folder(model)) is not None:
        return folder / name if (folder / name).is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(model, name, revision=revision)
    except HFValidationError as error:
        raise ConfigError(
            f"model {model!r} is neither a folder here nor an id of the Hub ({error})"
        ) from None
    return Path(found) if isinstance(found, str) else None


def read_file(model: str, name: str, *, revision: str | None = None) -> dict[str, Any]:
    """Return the object in a model's JSON file; empty without a file. DataError if it is damaged."""
    path = find_file(model, name, revision=revision)
    return {} if path is None else read_object(path)


def count_model(model: MicroModel | HuggingFaceModel) -> int | None:
    """Return how many parameters a recipe's model has; None if its shape is not known here."""
    return count_parameters(find_architecture(model) or {})


def count_parameters(architecture: Architecture) -> int | None:
    """Return the parameters of a decoder like Llama, Qwen2 or Qwen3; None for experts or an unknown dimension."""
    if architecture.get("num_experts") or architecture.get("num_local_experts"):
        return None
    try:
        hidden, layers, heads, kv_heads, intermediate = (architecture[name] for name in _DIMENSIONS)
        size = head_size(architecture)
        attention = hidden * size * (2 * heads + 2 * kv_heads)
        biases = {"qwen2": size * (heads + 2 * kv_heads), "qwen3": 2 * size}
        attention += biases.get(architecture.get("model_type", ""), 0)
        embeddings = 1 if architecture.get("tie_word_embeddings", False) else 2
        per_layer = attention + 3 * hidden * intermediate + 2 * hidden
        return layers * per_layer + embeddings * architecture["vocab_size"] * hidden + hidden
    except (KeyError, TypeError):
        return None


def head_size(architecture: Architecture) -> int:
    """Return the size of an attention head."""
    return (
        architecture.get("head_dim")
        or architecture["hidden_size"] // architecture["num_attention_heads"]
    )


_TILE_ROWS, _TILE_COLUMNS = 4096, 32768
"""Number of tokens, and of entries of the vocabulary, for which TRL's fused head makes logits at a time."""
RESERVE_GIB = 2.0
"""GPU memory of CUDA's context and kernels (0.8 GiB on an H200) and lost to fragments: assumed."""
ASLEEP_GIB = 3.0
"""GPU memory that vLLM or SGLang keeps while weights are trained (graphs, buffers): assumed, not measured."""
ASSUMED_PROMPT_TOKENS = 1024
CHARACTERS_PER_TOKEN = 3.0
"""Characters per token of statements, on the low side: with Qwen's tokenizer about 3.5 in English and code."""
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
    """Number of full-length responses that vLLM's cache can hold; None without vLLM, or for an unknown GPU."""

    @property
    def fits(self) -> bool | None:
        """Whether the run fits on the GPU; None for an unknown one."""
        return (
            None
            if self.device_gib is None
            else self.total <= self.device_gib and self.cached_responses != 0
        )


def count_memory(
    config: TrainConfig, *, device_memory_gib: float | None = None, num_shards: int = 1
) -> MemoryTable | None:
    """Return the memory that a run needs on each GPU; None if the model's shape is unknown.

    Args:
        config: the recipe.
        device_memory_gib: of one GPU; vLLM takes a share of it.
        num_shards: GPUs over which weights, gradients and optimizer are divided (FSDP, ZeRO-3).
    """
    shape = find_architecture(config.model) or {}
    if (parameters := count_parameters(shape)) is None:
        return None
    model, rollout, vllm = config.weights, config.rollout, config.rollout.vllm
    hidden, layers, heads, kv_heads, mlp = (int(shape[name]) for name in _DIMENSIONS)
    queries, keys = head_size(shape) * heads, head_size(shape) * kv_heads
    prompt_tokens, response_tokens = longest_prompt_tokens(config), rollout.longest_response_tokens
    stored, product, is_whole = (
        WEIGHT_BYTES[model.dtype],
        # Memory is counted for a GPU.
        WEIGHT_BYTES[choose_dtype(model.compute_dtype, on_gpu=True)],
        model.lora is None,
    )
    rank = 0 if model.lora is None else model.lora.rank
    adapters = rank * layers * (7 * hidden + 2 * (queries + keys) + 3 * mlp)
    trained, trained_bytes = (parameters, stored) if is_whole else (adapters, 4)
    held = {
        "weights": (parameters + adapters) * stored / num_shards,
        "optimizer": trained * config.optimizer.moment_bytes(trained_bytes) / num_shards,
        "reference model": parameters * stored / num_shards
        if config.algorithm.kl_coefficient and is_whole
        else 0,
    }
    # A pass. Bytes of a layer's activations for each token, with their gradients where it is computed again.
    tokens, scored = (
        config.batch.micro_batch_rollouts * n
        for n in (prompt_tokens + response_tokens, response_tokens)
    )
    layer = tokens * (32 * hidden + product * (6 * mlp + 9 * (queries + keys)))
    kept = (
        tokens * hidden * layers * stored + layer
        if model.gradient_checkpointing
        else layers * layer
    )
    logits = (
        product * min(scored, _TILE_ROWS) * min(shape["vocab_size"], _TILE_COLUMNS)
        + scored * hidden * 10
    )
    head = logits + 4 * shape["vocab_size"] * hidden * is_whole
    # Autocast keeps its casts of trained weights until the forward pass has ended; the head comes after it.
    casts = product * parameters if product < stored and is_whole else 0
    # FSDP2 puts a layer's weights together for its turn, and those of the next beside them; with their gradients.
    embeddings = shape["vocab_size"] * hidden * (1 if shape.get("tie_word_embeddings") else 2)
    gathered = (embeddings + 2 * (parameters - embeddings) / layers) * (product + 4)
    # Keys and values of a response over all layers, two bytes each; of all of a step, or what vLLM takes.
    response = (
        (prompt_tokens + max(response_tokens, config.evaluation.max_response_tokens or 0))
        * 4
        * layers
        * keys
    )
    in_step = config.batch.train_batch_size * rollout.num_samples // num_shards
    is_verl, is_ours, cached = config.engine == "verl", rollout.backend == "transformers", None
    sampler = in_step * response if is_ours else 0 if is_verl else 2 * parameters + response
    if not (is_ours or is_verl or device_memory_gib is None):
        sampler = vllm.gpu_memory_utilization * device_memory_gib * _GIB
        # One GiB for vLLM's own buffers and graphs.
        cached = max(0, int((sampler - 2 * parameters - _GIB) // response))
    takes_turns = is_ours or is_verl or vllm.enable_sleep_mode
    update = {
        "gradients": trained * trained_bytes / num_shards,
        "activations of a pass": kept,
        "logits, or casts of weights": max(head, casts),
        "gathered layers": gathered if is_verl and num_shards > 1 else 0,
        "sampler, asleep": ASLEEP_GIB * _GIB if takes_turns and not is_ours else 0,
    }
    updating = sum(update.values())
    total = sum(held.values()) + (max(updating, sampler) if takes_turns else updating + sampler)
    parts = {
        **held,
        **update,
        "sampler (weights, keys and values)": sampler,
        "CUDA and fragments": RESERVE_GIB * _GIB,
    }
    shown = {name: number / _GIB for name, number in parts.items() if number}
    return MemoryTable(shown, total / _GIB + RESERVE_GIB, prompt_tokens, device_memory_gib, cached)


def describe_memory(table: MemoryTable, config: TrainConfig, *, is_counted_for: str) -> list[str]:
    """Return the memory table as lines; `is_counted_for` names the GPU in the first."""
    width = max(map(len, table.parts))
    rollouts, tokens = config.batch.micro_batch_rollouts, config.rollout.longest_response_tokens
    device = "" if table.device_gib is None else f" of {table.device_gib:g}"
    return [
        f"memory of {is_counted_for}, GiB ({rollouts} rollouts a pass, each of {table.prompt_tokens:,} prompt and "
        f"{tokens:,} response tokens):",
        *(f"  {name:<{width}} {gib:>8.2f}" for name, gib in table.parts.items()),
        f"  {'in all, at most':<{width}} {table.total:>8.2f}{device}",
    ]


def longest_prompt_tokens(config: TrainConfig) -> int:
    """Estimate the tokens of the longest prompt by its characters; `ASSUMED_PROMPT_TOKENS` without problem files."""
    problems = config.problems
    if isinstance(problems, MicroProblems):
        return 128
    paths = (problems.train if isinstance(problems, ProblemFiles) else None, problems.heldout)
    if any(path is None or not path.exists() for path in paths):
        return ASSUMED_PROMPT_TOKENS
    longest = max(longest_statement(path) for path in paths if path is not None)
    return int(longest / CHARACTERS_PER_TOKEN) + 64


def detect_device_gib() -> float | None:
    """Return the memory of this machine's first GPU, None without one."""
    if find_spec("torch") is None:
        return None
    import torch

    return (
        torch.cuda.get_device_properties(0).total_memory / _GIB
        if torch.cuda.is_available()
        else None
    )


def describe_run(config: TrainConfig) -> list[str]:
    """Return lines: a run's steps, updates, rollouts and tokens (an upper bound), and its model's parameters."""
    batch, size, unknown = (
        config.batch,
        count_model(config.model),
        "size unknown (no config.json, no known name)",
    )
    rollouts = config.num_steps * batch.train_batch_size * config.rollout.num_samples
    updates = config.num_steps * (batch.train_batch_size // batch.ppo_mini_batch_size)
    return [
        f"the run: {config.num_steps} steps, {updates} updates, {rollouts:,} rollouts, at most "
        f"{rollouts * config.rollout.longest_response_tokens:,} tokens",
        f"model: {unknown if size is None else f'{size / 1e6:,.1f} M parameters'}",
    ]


def describe_disk(config: TrainConfig, root: Path) -> str:
    """Return a sentence on the free disk space and the size of a checkpoint: weights and the optimizer's state."""
    nearest = next(path for path in (root.absolute(), *root.absolute().parents) if path.is_dir())
    each, parameters = WEIGHT_BYTES[config.weights.dtype], count_model(config.model)
    size = (
        0.0
        if config.weights.lora or not parameters
        else parameters * (each + config.optimizer.moment_bytes(each))
    )
    return (
        f"{nearest} has {shutil.disk_usage(nearest).free / 2**20:,.0f} MiB free; a checkpoint takes "
        f"{f'about {size / 2**20:,.0f} MiB' if size else 'a size that is not known here'}, and up to "
        f"{config.checkpoint.keep + 1} are there at a time"
    )


_WRITING = re.compile(r"inline_container|PytorchStreamWriter")
"""Matches errors of torch.save, which do not name the reason."""
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|out of memory|can't allocate memory", re.IGNORECASE)


@contextmanager
def explain_failures(config: TrainConfig, run: RunDirectory) -> Iterator[None]:
    """Within the body, turn errors of a full disk or a lack of memory into a TrainingError; others pass unchanged."""
    try:
        yield
    except MicroCoderError:
        raise
    except Exception as error:
        if is_disk_full(error) or _WRITING.search(str(error)):
            keep = config.checkpoint.keep
            cause = f"the disk is full: {describe_disk(config, run.root)}; free some, or lower checkpoint.keep ({keep})"
        elif _OUT_OF_MEMORY.search(f"{type(error).__name__}: {error}"):
            cause = f"out of memory ({' '.join(str(error).split())[:200]}); {how_to_shrink(config)}"
        else:
            raise
        step = run.latest_checkpoint_step()
        then = "starts the run again" if step is None else f"resumes the run after step {step}"
        raise TrainingError(f"{cause}; the same command {then}") from error


def how_to_shrink(config: TrainConfig) -> str:
    """Return a text of the keys that make a run need less memory, the mildest first."""
    return (
        f"lower batch.micro_batch_rollouts (now {config.batch.micro_batch_rollouts}; resumes as well), sample by "
        'rollout.backend = "vllm" with rollout.vllm.enable_sleep_mode = true or a smaller gpu_memory_utilization, use '
        'optimizer.name = "adamw_8bit", train adapters ([model.lora]), or lower rollout.max_response_tokens (now '
        f"{config.rollout.max_response_tokens})"
    )
