"""The cost of a run before it starts: counts that follow from the config, and time with its source.

Counts are upper bounds where a length is free: every response is counted at the limit of its step, and dynamic
filtering at all of its rounds. Time comes from the steps of a run that was measured, else from the assumptions below.
FLOPs are 2 per parameter and token forward and 4 backward (attention left out: below a tenth at these lengths);
gradient checkpointing and old log-probs add a forward each.

The memory of a run on one GPU, part by part, and whether it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from typing import Any

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError
from microcoder.train.algorithm.config import DynamicFiltering
from microcoder.train.algorithm.sampling import DiversityTemperature
from microcoder.train.algorithm.schedules import staged_value
from microcoder.train.recipe.recipe import (
    WEIGHT_BYTES,
    MicroProblems,
    ProblemFiles,
    TrainConfig,
)
from microcoder.train.run.manifest import count_problems
from microcoder.train.run.shapes import count_model, count_pass, find_architecture, head_size
from microcoder.train.runs import RunDirectory

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
    """
    if (architecture := find_architecture(config.model)) is None:
        return None
    model, lora, rollout = config.weights, config.weights.lora, config.rollout
    prompt_tokens, response_tokens = longest_prompt_tokens(config), rollout.longest_response_tokens
    rows = config.batch.micro_batch_rollouts
    count = count_pass(architecture, model, rows=rows, prompt_tokens=prompt_tokens, response_tokens=response_tokens)
    if count is None:
        return None
    size = WEIGHT_BYTES[model.dtype]
    trained_size = 4 if lora else size
    parts = {
        "weights": count.parameters * size / num_shards,
        "gradients": count.trained_parameters * trained_size / num_shards,
        "optimizer": count.trained_parameters * config.optimizer.moment_bytes(trained_size) / num_shards,
        "kept for backward": count.kept,
        "working space of a pass": count.peak - count.kept,
    }
    if config.algorithm.kl_coefficient and lora is None:
        parts["reference model"] = count.parameters * size / num_shards
    if config.engine == "verl" and num_shards > 1:
        # FSDP2 puts a layer's weights together for its turn, and those of the next beside them; with their gradients.
        per_layer = (count.parameters - count.embedding_parameters) / architecture["num_hidden_layers"]
        gathered = count.embedding_parameters + 2 * per_layer
        parts["gathered layers"] = gathered * (WEIGHT_BYTES[model.compute_dtype] + 4)
    cached = None
    if config.engine == "verl" and rollout.backend != "transformers":
        parts["sampler, asleep"] = ASLEEP_GIB * _GIB
    elif rollout.backend == "vllm" and rollout.vllm.mode == "colocate":
        weights, longest = 2 * count.parameters, max(response_tokens, config.evaluation.max_response_tokens or 0)
        # Keys and values of a token, over all layers, two bytes each.
        heads = architecture.get("num_key_value_heads") or architecture["num_attention_heads"]
        token_bytes = 2 * architecture["num_hidden_layers"] * heads * head_size(architecture) * 2
        response = (rollout.vllm.max_model_tokens or prompt_tokens + longest) * token_bytes
        parts["vLLM (weights and cache)"] = weights + response
        if device_memory_gib is not None:
            parts["vLLM (weights and cache)"] = taken = rollout.vllm.gpu_memory_utilization * device_memory_gib * _GIB
            # One GiB for vLLM's own buffers and graphs.
            cached = max(0, int((taken - weights - _GIB) // response))
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
    """Return the mildest changes that make a recipe fit, verified by the same count."""
    checkpointing = {} if config.weights.gradient_checkpointing else {"model.gradient_checkpointing": "true"}
    fewer = [{"batch.micro_batch_rollouts": str(n)} for n in (4, 2, 1) if n < config.batch.micro_batch_rollouts]
    adapter = {} if config.weights.lora else {"model.lora.rank": "32", "model.dtype": "bfloat16"}
    for change in ({}, *fewer, adapter, {**adapter, **(fewer[-1] if fewer else {})}):
        keys = {**checkpointing, **change}
        try:
            changed = load_config(TrainConfig, layers=[config.model_dump(mode="json")], overrides=keys)
        except ConfigError:
            continue
        counted = count_memory(changed, device_memory_gib=table.device_gib, num_shards=num_shards)
        if keys and counted is not None and counted.fits:
            return "try " + " ".join(f"--{key} {value}" for key, value in keys.items())
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
    if find_spec("torch") is None:
        return None
    import torch

    return torch.cuda.get_device_properties(0).total_memory / _GIB if torch.cuda.is_available() else None


@dataclass(frozen=True, slots=True)
class Speeds:
    """Medians over the steps of a run."""

    sampled_per_second: float
    """Response tokens."""
    trained_per_second: float
    """Response tokens of an update, its log-prob passes included."""
    judge_seconds_per_rollout: float
    """Wall time: an upper bound of what one core takes."""
    mean_length: float
    """Response tokens, as they were and not at their limit."""
    max_response_tokens: float
    source: str


def read_speeds(run: RunDirectory) -> Speeds:
    """Return the speeds of a run, without its first step if there are more: it warms up."""
    rows = run.read_metrics() if run.metrics.exists() else []
    measured = [row for row in rows[1:] or rows if row["seconds"].get("generate") and row["seconds"].get("update")]
    if not measured:
        raise ConfigError(f"{run.root} has no measured step; pass the folder of a run that has, or leave it out")
    counted = [(row["seconds"], sum(row["outcomes"].values()), row["length_mean"]) for row in measured]
    return Speeds(
        median(length * rollouts / s["generate"] for s, rollouts, length in counted),
        median(length * rollouts / s["update"] for s, rollouts, length in counted),
        median(s.get("judge", 0.0) / rollouts for s, rollouts, _ in counted),
        median(length for _, _, length in counted),
        median(row["max_response_tokens"] for row in measured),
        f"measured over {len(measured)} steps of {run.root}",
    )


GPU_FLOPS_PER_SECOND = 4e14
"""Assumed for updates: about 40 % of an H100's dense bf16 peak of 989e12 (NVIDIA's data sheet)."""
GPU_TOKENS_PER_SECOND_PER_BILLION = {"vllm": 13_000, "sglang": 13_000, "transformers": 1_500}
"""Assumed for batched sampling on one H100, times billions of parameters. vLLM with a third of the card: a third of the
40,000 that it reaches with all of it; transformers: no kernel fused, some 25 ms a token of the batch."""
CPU_FLOPS_PER_SECOND = 2e10
CPU_TOKENS_PER_SECOND_PER_BILLION = 10
CPU_SECONDS_PER_TEST = 0.0026
"""Measured on two quiet cores (docs/sandbox.md, Cost)."""
CPU_SECONDS_PER_PROGRAM = 0.002
"""Before its first test."""
ASSUMED_HELDOUT_PROBLEMS, ASSUMED_TESTS_PER_PROBLEM = 100, 20
"""Where the problem files are not here; most wrong programs end at their first tests, so this is an upper bound."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """Counts are exact; tokens are upper bounds; hours rest on `source`."""

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
    device: str
    generate_hours: float | None
    heldout_hours: float | None
    update_hours: float | None
    """The pass for old log-probs included."""
    judge_core_hours: float
    source: str
    """Where the hours come from."""


def estimate_run(config: TrainConfig, *, device: str, speeds: Speeds | None = None) -> RunEstimate:
    """Estimate a run on one device.

    Args:
        config: the resolved recipe.
        device: "gpu" (one H100 is assumed) or "cpu" (two cores).
        speeds: measured in a run; without them speeds are assumed.
    """
    batch, filtering = config.batch, config.algorithm.group_filtering
    rollouts_per_step = batch.train_batch_size * config.rollout.num_samples
    rollouts = rollouts_per_step * config.num_steps
    limits = [staged_value(config.rollout.length_limits, step=step) for step in range(1, config.num_steps + 1)]
    tokens = rollouts_per_step * sum(limits)
    rounds = filtering.max_rounds if isinstance(filtering, DynamicFiltering) else 1
    heldout, heldout_tokens = count_heldout(config)
    parameters, judged = count_model(config.model), rounds * rollouts + heldout
    hours: Sequence[float | None] = [None] * 3
    judge_seconds = CPU_SECONDS_PER_PROGRAM + CPU_SECONDS_PER_TEST * _tests_per_problem(config)
    if speeds is not None:
        judge_seconds = speeds.judge_seconds_per_rollout
        share = speeds.mean_length / speeds.max_response_tokens / 3600
        sampled, trained = speeds.sampled_per_second / share, speeds.trained_per_second / share
        hours = [rounds * tokens / sampled, heldout_tokens / sampled, tokens / trained]
    elif parameters is not None:
        speed, flops = CPU_TOKENS_PER_SECOND_PER_BILLION, CPU_FLOPS_PER_SECOND
        if device == "gpu":
            speed, flops = GPU_TOKENS_PER_SECOND_PER_BILLION[config.rollout.backend], GPU_FLOPS_PER_SECOND
        sampled = 3600 * speed / (parameters / 1e9)
        # TRL takes old log-probs after vLLM's sampling in any case, verl always.
        takes_old_logps = (
            batch.train_batch_size != batch.ppo_mini_batch_size
            or config.rollout.backend == "vllm"
            or config.engine == "verl"
        )
        forwards = config.weights.gradient_checkpointing + takes_old_logps + bool(config.algorithm.kl_coefficient)
        per_token = parameters * (6 + 2 * forwards)
        hours = [rounds * tokens / sampled, heldout_tokens / sampled, tokens * per_token / flops / 3600]
    return RunEstimate(
        num_steps=config.num_steps,
        updates=config.num_steps * (batch.train_batch_size // batch.ppo_mini_batch_size),
        rollouts_per_step=rollouts_per_step,
        rollouts=rollouts,
        max_tokens=tokens,
        heldout_rollouts=heldout,
        max_heldout_tokens=heldout_tokens,
        num_parameters=parameters,
        device=device,
        generate_hours=hours[0],
        heldout_hours=hours[1],
        update_hours=hours[2],
        judge_core_hours=judged * judge_seconds / 3600,
        source=speeds.source if speeds else "assumed, not measured (docs/resources.md)",
    )


def count_heldout(config: TrainConfig) -> tuple[int, int]:
    """Return the responses, and their tokens at most, of all evaluations and of the probe."""
    evaluation, rollout, problems, steps = config.evaluation, config.rollout, config.problems, config.num_steps
    if isinstance(problems, MicroProblems):
        number = problems.num_heldout
    else:
        counts = None if problems.heldout is None else count_problems(problems.heldout)
        number = ASSUMED_HELDOUT_PROBLEMS if counts is None else counts.num_problems
    evaluations = 1 + steps // evaluation.every_steps + (steps % evaluation.every_steps > 0)
    temperatures = 1 + len(evaluation.sweep_temperatures)
    responses = evaluations * temperatures * number * evaluation.samples_per_problem
    tokens = responses * (evaluation.max_response_tokens or rollout.longest_response_tokens)
    if isinstance(rollout.temperature, DiversityTemperature):
        probed = len(rollout.temperature.grid) * rollout.temperature.num_problems * rollout.num_samples
        return responses + probed, tokens + probed * rollout.max_response_tokens
    return responses, tokens


def _tests_per_problem(config: TrainConfig) -> float:
    if isinstance(config.problems, MicroProblems):
        return 8
    counts = count_problems(config.problems.train) if isinstance(config.problems, ProblemFiles) else None
    known = None if counts is None else counts.tests_per_problem
    return ASSUMED_TESTS_PER_PROBLEM if known is None else known
