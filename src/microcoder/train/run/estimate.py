"""The cost of a run before it starts: its memory on one GPU by formula, and counts that follow from the config.

Memory is counted part by part, at the micro batch and the longest prompt and response of the recipe. Counts are upper
bounds where a length is free: every response is counted at the limit of its step, and dynamic filtering at all of its
rounds. How fast a machine samples and updates is seen in its first steps, not guessed here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import ConfigError
from microcoder.train.algorithm.config import DynamicFiltering
from microcoder.train.algorithm.sampling import DiversityTemperature
from microcoder.train.algorithm.schedules import staged_value
from microcoder.train.recipe.recipe import (
    MICRO_HEADS,
    MICRO_INTERMEDIATE_SIZE,
    WEIGHT_BYTES,
    HuggingFaceModel,
    LoraAdapter,
    MicroModel,
    MicroProblems,
    ProblemFiles,
    TrainConfig,
)
from microcoder.train.run.checkpoints import model_folder
from microcoder.train.run.manifest import count_problems

Architecture = Mapping[str, Any]
"""A config.json, as far as it decides shapes."""
_DIMENSIONS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
_QWEN3 = {"model_type": "qwen3", "vocab_size": 151936, "head_dim": 128}
# From the models' config.json on the hub, so that an estimate needs no network.
KNOWN: Mapping[str, Architecture] = {
    name: {**_QWEN3, **dict(zip(_DIMENSIONS, dimensions, strict=True)), "tie_word_embeddings": dimensions[0] < 4096}
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
    """Return the shape of a recipe's model, from its files or the table; None if neither is known here."""
    if isinstance(model, MicroModel):
        dims = model.warm_start
        values = (dims.hidden_size, dims.num_layers, MICRO_HEADS, MICRO_HEADS, MICRO_INTERMEDIATE_SIZE)
        return {
            "model_type": "qwen3",
            **dict(zip(_DIMENSIONS, values, strict=True)),
            "vocab_size": dims.vocab_size,
            "tie_word_embeddings": True,
        }
    if model.path in KNOWN:
        return KNOWN[model.path]
    found = read_json(find_file(model.path, "config.json"))
    return found if "num_hidden_layers" in found else None


def find_file(model: str, name: str) -> Path | None:
    """Return a file of a model's folder, or of a hub id as far as it was downloaded; None if it is not here."""
    if (folder := model_folder(model)) is not None:
        return folder / name if (folder / name).is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(model, name)
    except HFValidationError as error:
        raise ConfigError(f"model {model!r} is neither a folder here nor an id of the Hub ({error})") from None
    return Path(found) if isinstance(found, str) else None


def read_json(path: Path | None) -> dict[str, Any]:
    """Return a model's file; empty without one."""
    if path is None:
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read ({error}); download the model again") from None
    return value if isinstance(value, dict) else {}


def count_model(model: MicroModel | HuggingFaceModel) -> int | None:
    """Return how many parameters a recipe's model has; None if its shape is not known here."""
    architecture = find_architecture(model)
    return None if architecture is None else count_parameters(architecture)


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
    return architecture.get("head_dim") or architecture["hidden_size"] // architecture["num_attention_heads"]


_TILE_ROWS, _TILE_COLUMNS = 4096, 32768
"""Tile of TRL's fused head: logits are made for so many tokens and so much of the vocabulary at a time."""
_KEPT = {
    (2, 2, True): (20.0, 6.0, 18.5), (2, 2, False): (19.5, 7.0, 17.5), (4, 2, True): (32.5, 6.4, 17.5),
    (4, 2, False): (22.5, 7.4, 16.5), (4, 4, True): (27.0, 14.0, 32.0), (4, 4, False): (14.5, 16.0, 27.0),
}  # fmt: skip
"""Bytes that a layer keeps for backward, for each token and value of the hidden state, the MLP and the heads; by bytes
of a weight, bytes of a product, and whether all weights are trained."""
_RECOMPUTED = {
    (2, 2, True): (17.6, 9.8, 18.3), (2, 2, False): (27.5, 13.0, 17.5), (4, 2, True): (27.6, 10.1, 17.7),
    (4, 2, False): (32.0, 13.4, 16.5), (4, 4, True): (22.7, 21.8, 31.6), (4, 4, False): (14.5, 24.0, 27.0),
}  # fmt: skip
"""`_KEPT` of a layer that backward computes again, with its gradients."""


@dataclass(frozen=True, slots=True)
class PassMemory:
    """Bytes of one micro batch, beside weights and their gradients."""

    parameters: int
    trained_parameters: int
    embedding_parameters: int
    """Parameters of the embeddings and the head."""
    kept: int
    """Bytes between forward and backward: what backward needs (with checkpointing, the input of each layer)."""
    peak: int
    """Most bytes at a time, `kept` included."""


def count_pass(
    architecture: Architecture,
    model: HuggingFaceModel,
    *,
    rows: int,
    prompt_tokens: int,
    response_tokens: int,
) -> PassMemory | None:
    """Count a forward and backward pass of a decoder like Qwen's; None if a dimension is not said."""
    parameters = count_parameters(architecture)
    if parameters is None:
        return None
    hidden, layers, heads, kv_heads, mlp = (int(architecture[name]) for name in _DIMENSIONS)
    queries, keys = head_size(architecture) * heads, head_size(architecture) * kv_heads
    stored, product = WEIGHT_BYTES[model.dtype], WEIGHT_BYTES[model.compute_dtype]
    vocabulary, trains_all = int(architecture["vocab_size"]), model.lora is None
    embeddings = vocabulary * hidden * (1 if architecture.get("tie_word_embeddings") else 2)
    length = prompt_tokens + response_tokens
    tokens = rows * length

    def of_layer(coefficients: Mapping[tuple[int, int, bool], tuple[float, float, float]]) -> float:
        of_hidden, of_mlp, of_heads = coefficients[stored, product, trains_all]
        return tokens * (of_hidden * hidden + of_mlp * mlp + of_heads * (queries + keys))

    # The ends of the stack: embeddings, the last norm; with checkpointing the mask is counted apart from the layers.
    kept = tokens * hidden * (2 * stored + 4.0)
    if model.gradient_checkpointing:
        kept += layers * tokens * hidden * stored + rows * length**2
        worked = of_layer(_RECOMPUTED)
    else:
        kept += layers * of_layer(_KEPT)
        worked = tokens * max(20 * hidden, 2 * product * mlp)
    forward = tokens * product * mlp
    if product < stored and trains_all:
        forward += product * parameters  # autocast keeps its casts of weights until the pass has ended
    elif product < stored:
        casts = product * (parameters - embeddings)  # of frozen weights it keeps none, but backward needs them
        worked, kept = (worked + casts / layers, kept) if model.gradient_checkpointing else (worked, kept + casts)
    head_gradient = 4 * vocabulary * hidden if trains_all else 0
    scored = rows * response_tokens
    tile = product * min(scored, _TILE_ROWS) * min(vocabulary, _TILE_COLUMNS)
    head = tile + scored * hidden * (product + stored + 4) + head_gradient
    adapters = 0 if model.lora is None else layers * _count_adapters(model.lora, hidden, mlp, queries, keys)
    return PassMemory(
        parameters=parameters + adapters,
        trained_parameters=parameters if trains_all else adapters,
        embedding_parameters=embeddings,
        kept=round(kept),
        peak=round(kept + max(forward, head, worked + head_gradient)),
    )


def _count_adapters(lora: LoraAdapter, hidden: int, mlp: int, queries: int, keys: int) -> int:
    ends = {"q_proj": hidden + queries, "k_proj": hidden + keys, "v_proj": hidden + keys, "o_proj": queries + hidden}
    ends |= dict.fromkeys(("gate_proj", "up_proj", "down_proj"), hidden + mlp)
    is_all = lora.target_modules == "all-linear"
    return lora.rank * sum(size for name, size in ends.items() if is_all or name.endswith(tuple(lora.target_modules)))


RESERVE_GIB = 2.0
"""CUDA's context and kernels, and what the allocator cannot use: assumed, not measured."""
ASLEEP_GIB = 3.0
"""What vLLM or SGLang keeps of a GPU while weights are trained on it (graphs, buffers): assumed, not measured."""
ASSUMED_PROMPT_TOKENS = 1024
CHARACTERS_PER_TOKEN = 3.0
"""Of statements, on the low side: Qwen's tokenizer makes one token of about 3.5 characters of English and code."""
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """Memory that a run needs on one GPU by part, in GiB; upper bounds by formula."""

    parts: Mapping[str, float]
    total: float
    """Less than the sum where the sampler and the update take turns."""
    prompt_tokens: int
    device_gib: float | None
    """None: unknown, as is whether it fits."""
    cached_responses: int | None
    """Full-length responses in vLLM's cache; None without vLLM, or without a device."""

    @property
    def fits(self) -> bool | None:
        """Whether the run fits; None without a device."""
        if self.device_gib is None:
            return None
        return self.total <= self.device_gib and self.cached_responses != 0


def count_memory(
    config: TrainConfig, *, device_memory_gib: float | None = None, num_shards: int = 1
) -> MemoryTable | None:
    """Count what a run holds on each GPU; None if the model's shape is unknown.

    Args:
        config: the recipe.
        device_memory_gib: of one GPU; vLLM takes a share of it.
        num_shards: GPUs over which weights, gradients and optimizer are divided (FSDP, ZeRO-3).
    """
    if (architecture := find_architecture(config.model)) is None:
        return None
    model, lora, rollout, vllm = config.weights, config.weights.lora, config.rollout, config.rollout.vllm
    prompt_tokens, response_tokens = longest_prompt_tokens(config), rollout.longest_response_tokens
    rows = config.batch.micro_batch_rollouts
    count = count_pass(architecture, model, rows=rows, prompt_tokens=prompt_tokens, response_tokens=response_tokens)
    if count is None:
        return None
    size = WEIGHT_BYTES[model.dtype]
    trained_size = 4 if lora else size
    held = {
        "weights": count.parameters * size / num_shards,
        "optimizer": count.trained_parameters * config.optimizer.moment_bytes(trained_size) / num_shards,
    }
    if config.algorithm.kl_coefficient and lora is None:
        held["reference model"] = count.parameters * size / num_shards
    update = {
        "gradients": count.trained_parameters * trained_size / num_shards,
        "kept for backward": count.kept,
        "working space of a pass": count.peak - count.kept,
    }
    if config.engine == "verl" and num_shards > 1:
        # FSDP2 puts a layer's weights together for its turn, and those of the next beside them; with their gradients.
        per_layer = (count.parameters - count.embedding_parameters) / architecture["num_hidden_layers"]
        gathered = count.embedding_parameters + 2 * per_layer
        update["gathered layers"] = gathered * (WEIGHT_BYTES[model.compute_dtype] + 4)
    # Keys and values of a response over all layers, two bytes each.
    longest = max(response_tokens, config.evaluation.max_response_tokens or 0)
    heads = architecture.get("num_key_value_heads") or architecture["num_attention_heads"]
    token_bytes = 4 * architecture["num_hidden_layers"] * heads * head_size(architecture)
    response = (prompt_tokens + longest) * token_bytes
    cached, takes_turns, sample = None, True, {}
    if config.engine == "verl" and rollout.backend != "transformers":
        update["sampler, asleep"] = ASLEEP_GIB * _GIB
    elif rollout.backend == "transformers":
        in_step = config.batch.train_batch_size * rollout.num_samples // num_shards
        sample["keys and values of a step's responses"] = in_step * response
    elif vllm.mode == "colocate":
        weights, takes_turns = 2 * count.parameters, vllm.enable_sleep_mode
        sample["vLLM (weights and cache)"] = weights + response
        if device_memory_gib is not None:
            sample["vLLM (weights and cache)"] = taken = vllm.gpu_memory_utilization * device_memory_gib * _GIB
            # One GiB for vLLM's own buffers and graphs.
            cached = max(0, int((taken - weights - _GIB) // response))
        if takes_turns:
            update["vLLM, asleep"] = ASLEEP_GIB * _GIB
    updating, sampling = float(sum(update.values())), float(sum(sample.values()))
    total = sum(held.values()) + (max(updating, sampling) if takes_turns else updating + sampling)
    parts = {name: number / _GIB for name, number in (held | update | sample).items()}
    parts["CUDA and fragments"] = RESERVE_GIB
    return MemoryTable(parts, total / _GIB + RESERVE_GIB, prompt_tokens, device_memory_gib, cached)


def describe_memory(table: MemoryTable, config: TrainConfig, *, is_counted_for: str) -> list[str]:
    """Return the table as lines."""
    width = max(map(len, table.parts))
    rollouts, tokens = config.batch.micro_batch_rollouts, config.rollout.longest_response_tokens
    turns = "" if table.total > sum(table.parts.values()) - 0.01 else ": sampler and update take turns"
    lines = [
        f"memory of {is_counted_for}, GiB ({rollouts} rollouts a pass, each of {table.prompt_tokens:,} prompt and "
        f"{tokens:,} response tokens):",
        *(f"  {name:<{width}} {gib:>8.2f}" for name, gib in table.parts.items()),
        f"  {'in all, at most':<{width}} {table.total:>8.2f}"
        + ("" if table.device_gib is None else f" of {table.device_gib:g}")
        + turns,
    ]
    if table.cached_responses is not None:
        lines.append(f"vLLM's cache holds {table.cached_responses} responses of full length at a time")
    return lines


def longest_prompt_tokens(config: TrainConfig) -> int:
    """Return about how many tokens the longest prompt has, by its characters; an assumption where the files lack."""
    problems = config.problems
    if isinstance(problems, MicroProblems):
        return 128
    paths = (problems.train if isinstance(problems, ProblemFiles) else None, problems.heldout)
    counts = [None if path is None else count_problems(path) for path in paths]
    if None in counts:
        return ASSUMED_PROMPT_TOKENS
    return int(max(count.longest_statement for count in counts if count is not None) / CHARACTERS_PER_TOKEN) + 64


def detect_device_gib() -> float | None:
    """Return the memory of this machine's first GPU, None without one."""
    if find_spec("torch") is None:
        return None
    import torch

    return torch.cuda.get_device_properties(0).total_memory / _GIB if torch.cuda.is_available() else None


CPU_SECONDS_PER_TEST = 0.0026
"""Measured on two quiet cores (docs/sandbox.md, Cost)."""
CPU_SECONDS_PER_PROGRAM = 0.002
"""Before its first test."""
ASSUMED_HELDOUT_PROBLEMS, ASSUMED_TESTS_PER_PROBLEM = 100, 20
"""Where the problem files are not here; most wrong programs end at their first tests, so this is an upper bound."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """Counts are exact; tokens are upper bounds."""

    num_steps: int
    updates: int
    rollouts_per_step: int
    rollouts: int
    max_tokens: int
    heldout_rollouts: int
    """Of all evaluations and the probe together."""
    max_heldout_tokens: int
    num_parameters: int | None
    """None if neither the folder's config.json nor the table of known models has it."""
    judge_core_hours: float


def estimate_run(config: TrainConfig) -> RunEstimate:
    """Count what a run samples, updates and judges."""
    batch, filtering, rollout = config.batch, config.algorithm.group_filtering, config.rollout
    rollouts_per_step = batch.train_batch_size * rollout.num_samples
    rollouts = rollouts_per_step * config.num_steps
    limits = [staged_value(rollout.length_limits, step=step) for step in range(1, config.num_steps + 1)]
    tokens = rollouts_per_step * sum(limits)
    rounds = filtering.max_rounds if isinstance(filtering, DynamicFiltering) else 1
    heldout, heldout_tokens = _count_heldout(config)
    problems = config.problems
    counts = count_problems(problems.train) if isinstance(problems, ProblemFiles) else None
    num_tests = 8.0 if isinstance(problems, MicroProblems) else ASSUMED_TESTS_PER_PROBLEM
    if counts is not None and counts.tests_per_problem is not None:
        num_tests = counts.tests_per_problem
    judged = rounds * rollouts + heldout
    return RunEstimate(
        num_steps=config.num_steps,
        updates=config.num_steps * (batch.train_batch_size // batch.ppo_mini_batch_size),
        rollouts_per_step=rollouts_per_step,
        rollouts=rollouts,
        max_tokens=tokens,
        heldout_rollouts=heldout,
        max_heldout_tokens=heldout_tokens,
        num_parameters=count_model(config.model),
        judge_core_hours=judged * (CPU_SECONDS_PER_PROGRAM + CPU_SECONDS_PER_TEST * num_tests) / 3600,
    )


def _count_heldout(config: TrainConfig) -> tuple[int, int]:
    evaluation, rollout, problems, steps = config.evaluation, config.rollout, config.problems, config.num_steps
    if isinstance(problems, MicroProblems):
        number = problems.num_heldout
    else:
        counts = None if problems.heldout is None else count_problems(problems.heldout)
        number = ASSUMED_HELDOUT_PROBLEMS if counts is None else counts.num_problems
    evaluations = 1 + steps // evaluation.every_steps + (steps % evaluation.every_steps > 0)
    responses = evaluations * number * evaluation.samples_per_problem
    tokens = responses * (evaluation.max_response_tokens or rollout.longest_response_tokens)
    if isinstance(rollout.temperature, DiversityTemperature):
        probed = len(rollout.temperature.grid) * rollout.temperature.num_problems * rollout.num_samples
        return responses + probed, tokens + probed * rollout.max_response_tokens
    return responses, tokens
