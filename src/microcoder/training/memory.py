"""The memory of a run on one GPU, part by part, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from microcoder.config import load_config
from microcoder.errors import ConfigError
from microcoder.training.architectures import cache_bytes_per_token, find_architecture
from microcoder.training.config import TrainConfig
from microcoder.training.inputs import count_problems
from microcoder.training.model_config import WEIGHT_BYTES, HuggingFaceModel
from microcoder.training.problems_config import MicroProblems, ProblemFiles

RESERVE_GIB = 2.0
"""CUDA's context and kernels, and what the allocator cannot use: assumed, not measured."""
ASLEEP_GIB = 3.0
"""What vLLM or SGLang keeps of a GPU while verl trains on it (graphs, buffers): assumed, not measured."""
ASSUMED_PROMPT_TOKENS = 1024
CHARACTERS_PER_TOKEN = 3.0
"""Of statements, on the low side: Qwen's tokenizer makes one token of about 3.5 characters of English and code."""
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """GiB on one GPU, at most."""

    parts: Mapping[str, float]
    total: float
    parameters: int
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

    def as_record(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "parts_gib": {name: round(gib, 2) for name, gib in self.parts.items()},
            "total_gib": round(self.total, 2),
            "device_gib": self.device_gib,
            "fits": self.fits,
            "prompt_tokens": self.prompt_tokens,
            "cached_responses": self.cached_responses,
        }


def can_count() -> bool:
    """Whether the libraries needed for the count are installed."""
    return all(find_spec(name) is not None for name in ("torch", "transformers"))


def fits(config: TrainConfig, device_memory_gib: float, *, num_shards: int = 1) -> bool | None:
    """Return whether a recipe fits on GPUs of that size; None if the model's shape is unknown."""
    table = count_memory(config, device_memory_gib=device_memory_gib, num_shards=num_shards)
    return None if table is None else table.fits


def count_memory(
    config: TrainConfig, *, device_memory_gib: float | None = None, num_shards: int = 1
) -> MemoryTable | None:
    """Count what a run holds on each GPU, at the micro batch and the longest prompt and response of the recipe.

    Args:
        config: the recipe.
        device_memory_gib: of one GPU; vLLM takes a share of it.
        num_shards: GPUs over which weights, gradients and optimizer are divided (FSDP, ZeRO-3).

    Returns:
        None if the model's shape is unknown.

    Raises:
        ValueError: transformers knows no model of that type.
    """
    architecture = find_architecture(config.model)
    if architecture is None or "model_type" not in architecture:
        return None
    # torch, which the command line does without.
    from microcoder.training.activations import PassSettings, count_pass

    prompt_tokens, is_on_gpu = longest_prompt_tokens(config), isinstance(config.model, HuggingFaceModel)
    model, lora = config.weights, config.weights.lora
    count = count_pass(
        architecture,
        PassSettings(
            rows=config.batch.micro_batch_rollouts,
            prompt_tokens=prompt_tokens,
            response_tokens=config.rollout.longest_response_tokens,
            weight_dtype=model.dtype,
            compute_dtype=model.compute_dtype,
            gradient_checkpointing=model.gradient_checkpointing,
            lora=None if lora is None else {"r": lora.rank, "target_modules": lora.peft_modules},
            has_triton=is_on_gpu,
        ),
    )
    size = WEIGHT_BYTES[model.dtype]
    trained_size = 4 if lora else size
    parts = {
        "weights": count.parameters * size / num_shards,
        "gradients": count.trained_parameters * trained_size / num_shards,
        "optimizer": count.trained_parameters * config.optimizer.moment_bytes(trained_size) / num_shards,
    }
    if config.algorithm.kl_coefficient and lora is None:
        parts["reference model"] = count.parameters * size / num_shards
    if config.engine == "verl" and num_shards > 1:
        # FSDP2 puts a layer's weights together for its turn, and those of the next beside them; with their gradients.
        per_layer = (count.parameters - count.embedding_parameters) / architecture["num_hidden_layers"]
        gathered = count.embedding_parameters + 2 * per_layer
        parts["gathered layers"] = gathered * (WEIGHT_BYTES[model.compute_dtype] + 4)
    parts["kept for backward"] = count.kept
    parts["working space of a pass"] = count.peak - count.kept
    cached = None
    if config.rollout.backend == "vllm" and config.engine == "trl":
        share, max_tokens = _vllm_settings(config, prompt_tokens)
        needed = 2 * count.parameters + max_tokens * cache_bytes_per_token(architecture, bytes_per_value=2)
        taken = needed if device_memory_gib is None else share * device_memory_gib * _GIB
        parts["vLLM (weights and cache)"] = taken
        if device_memory_gib is not None:
            # One GiB for vLLM's own buffers and graphs.
            room = taken - 2 * count.parameters - _GIB
            cached = max(0, int(room // (needed - 2 * count.parameters)))
    if config.rollout.backend != "transformers" and config.engine == "verl":
        parts["sampler, asleep"] = ASLEEP_GIB * _GIB
    parts = {name: number / _GIB for name, number in parts.items()} | {"CUDA and fragments": RESERVE_GIB}
    return MemoryTable(parts, sum(parts.values()), count.parameters, prompt_tokens, device_memory_gib, cached)


def describe_memory(table: MemoryTable, config: TrainConfig, *, is_counted_for: str) -> list[str]:
    """Return the table as lines."""
    width = max(map(len, table.parts))
    rollouts, tokens = config.batch.micro_batch_rollouts, config.rollout.longest_response_tokens
    lines = [
        f"memory of {is_counted_for}, GiB ({rollouts} rollouts a pass, each of {table.prompt_tokens:,} prompt and "
        f"{tokens:,} response tokens):",
        *(f"  {name:<{width}} {gib:>8.2f}" for name, gib in table.parts.items()),
        f"  {'in all, at most':<{width}} {table.total:>8.2f}"
        + ("" if table.device_gib is None else f" of {table.device_gib:g}"),
    ]
    if table.cached_responses is not None:
        lines.append(f"vLLM's cache holds {table.cached_responses} responses of full length at a time")
    return lines


def advise(config: TrainConfig, table: MemoryTable, *, num_shards: int = 1) -> str:
    """Return which changes make a recipe fit, verified by the same count."""
    assert table.device_gib is not None
    for keys in _savings(config):
        try:
            changed = load_config(TrainConfig, layers=[config.model_dump(mode="json"), keys])
        except ConfigError:
            continue
        if fits(changed, table.device_gib, num_shards=num_shards):
            return "try " + " ".join(f"--{key} {_as_text(value)}" for key, value in keys.items())
    return "try several GPUs with shards (recipes/accelerate/fsdp.yaml), a smaller model, or a shorter limit"


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
    if not can_count():
        return None
    import torch

    return torch.cuda.get_device_properties(0).total_memory / _GIB if torch.cuda.is_available() else None


def _vllm_settings(config: TrainConfig, prompt_tokens: int) -> tuple[float, int]:
    settings = config.rollout.vllm
    longest = prompt_tokens + max(config.rollout.longest_response_tokens, config.evaluation.max_response_tokens or 0)
    return (0.0 if settings.mode == "server" else settings.gpu_memory_utilization), settings.max_model_tokens or longest


def _savings(config: TrainConfig) -> Iterator[dict[str, Any]]:
    """Changes, in the order in which they are tried: the mildest first."""
    if not isinstance(config.model, HuggingFaceModel):
        return
    checkpointing = {} if config.model.gradient_checkpointing else {"model.gradient_checkpointing": True}
    if checkpointing:
        yield checkpointing
    rollouts = [n for n in (4, 2, 1) if n < config.batch.micro_batch_rollouts]
    for number in rollouts:
        yield {**checkpointing, "batch.micro_batch_rollouts": number}
    if config.model.lora is None:
        adapter = {**checkpointing, "model.lora.rank": 32, "model.dtype": "bfloat16"}
        yield adapter
        yield {**adapter, "batch.micro_batch_rollouts": 1}


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
