"""The cost of a run before it starts: its memory on one GPU by formula, counts that follow from the config, and hours.

Memory is counted part by part, at the micro batch and the longest prompt and response of the recipe. Counts are upper
bounds where a length is free: every response is counted at the limit of its step, and dynamic filtering at all of its
rounds. Hours rest on the assumed speeds below. FLOPs are 2 per parameter and token forward and 4 backward (attention
left out: below a tenth at these lengths); gradient checkpointing and old log-probs add a forward each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError
from microcoder.train.algorithm.config import DynamicFiltering
from microcoder.train.algorithm.sampling import DiversityTemperature
from microcoder.train.algorithm.schedules import staged_value
from microcoder.train.recipe.recipe import WEIGHT_BYTES, MicroProblems, ProblemFiles, TrainConfig
from microcoder.train.run.manifest import count_problems
from microcoder.train.run.shapes import count_model, count_pass, find_architecture, head_size

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
    """GiB on one GPU, at most."""

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


def list_savings(config: TrainConfig, *, passes: Sequence[int]) -> Iterator[dict[str, str]]:
    """Yield keys that save memory, mildest first: smaller passes, turns with the sampler, 8-bit moments, adapters.

    Args:
        config: the recipe.
        passes: sizes of a pass to try, in rollouts.
    """
    base = {} if config.weights.gradient_checkpointing else {"model.gradient_checkpointing": "true"}
    if config.rollout.backend == "transformers" and config.engine == "trl":
        base["rollout.backend"] = "vllm"
    is_shared = config.engine == "trl" and config.rollout.vllm.mode == "colocate"
    sleep = {"rollout.vllm.enable_sleep_mode": "true"} if is_shared else {}
    moments = {"optimizer.name": "adamw_8bit"} if config.optimizer.name.startswith("adamw_torch") else {}
    adapter = {} if config.weights.lora else {"model.lora.rank": "32", "model.dtype": "bfloat16"}
    for more, rows in product(({}, sleep, sleep | moments, adapter, adapter | sleep), passes):
        yield base | more | {"batch.micro_batch_rollouts": str(rows)}


def advise(config: TrainConfig, table: MemoryTable, *, num_shards: int = 1) -> str:
    """Return the mildest changes that make a recipe fit, verified by the same count."""
    rows = config.batch.micro_batch_rollouts
    for keys in list_savings(config, passes=[rows, *(number for number in (4, 2, 1) if number < rows)]):
        try:
            changed = load_config(TrainConfig, layers=[config.model_dump(mode="json")], overrides=keys)
        except ConfigError:
            continue
        counted = count_memory(changed, device_memory_gib=table.device_gib, num_shards=num_shards)
        if counted is not None and counted.fits:
            if keys["batch.micro_batch_rollouts"] == str(rows):
                del keys["batch.micro_batch_rollouts"]
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


GPU_FLOPS_PER_SECOND = 4e14
"""Assumed for updates: about 40 % of an H100's dense bf16 peak of 989e12 (NVIDIA's data sheet)."""
VLLM_TOKENS_PER_SECOND_PER_BILLION = 40_000
"""Assumed for vLLM or SGLang with all of an H100, times billions of parameters; with a share of it, that share."""
TRANSFORMERS_TOKENS_PER_SECOND_PER_BILLION = 1_500
"""Assumed: no kernel fused, some 25 ms a token of the batch."""
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
    """Counts are exact; tokens are upper bounds; hours rest on assumed speeds."""

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
    hours: Mapping[str, float]
    """Of sampling, held-out samples and updates (with the pass for old log-probs); empty where the model is unknown."""
    judge_core_hours: float


def estimate_run(config: TrainConfig, *, device: str) -> RunEstimate:
    """Estimate a run on one device: "gpu" (one H100 is assumed) or "cpu" (two cores)."""
    batch, filtering, rollout = config.batch, config.algorithm.group_filtering, config.rollout
    rollouts_per_step = batch.train_batch_size * rollout.num_samples
    rollouts = rollouts_per_step * config.num_steps
    limits = [staged_value(rollout.length_limits, step=step) for step in range(1, config.num_steps + 1)]
    tokens = rollouts_per_step * sum(limits)
    rounds = filtering.max_rounds if isinstance(filtering, DynamicFiltering) else 1
    heldout, heldout_tokens = _count_heldout(config)
    parameters, hours = count_model(config.model), {}
    if parameters is not None:
        speed, flops = CPU_TOKENS_PER_SECOND_PER_BILLION, CPU_FLOPS_PER_SECOND
        if device == "gpu":
            share = rollout.vllm.gpu_memory_utilization if rollout.vllm.mode == "colocate" else 1.0
            if config.engine == "verl":
                share = float(config.verl.get("actor_rollout_ref.rollout.gpu_memory_utilization", 0.5))
            speed, flops = share * VLLM_TOKENS_PER_SECOND_PER_BILLION, GPU_FLOPS_PER_SECOND
            if rollout.backend == "transformers":
                speed = TRANSFORMERS_TOKENS_PER_SECOND_PER_BILLION
        sampled = 3600 * speed / (parameters / 1e9)
        # TRL takes old log-probs after vLLM's sampling in any case, verl always.
        is_plain = rollout.backend == "transformers" and config.engine == "trl"
        takes_old_logps = batch.train_batch_size != batch.ppo_mini_batch_size or not is_plain
        forwards = config.weights.gradient_checkpointing + takes_old_logps + bool(config.algorithm.kl_coefficient)
        per_token = parameters * (6 + 2 * forwards)
        hours = {
            "sampling": rounds * tokens / sampled,
            "sampling held-out problems": heldout_tokens / sampled,
            "updating": tokens * per_token / flops / 3600,
        }
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
        num_parameters=parameters,
        device=device,
        hours=hours,
        judge_core_hours=judged * (CPU_SECONDS_PER_PROGRAM + CPU_SECONDS_PER_TEST * num_tests) / 3600,
    )


def _count_heldout(config: TrainConfig) -> tuple[int, int]:
    """Return the responses, and their tokens at most, of all evaluations and of the probe."""
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
