"""Renders docs/costs.md: what `microcoder init` plans for some models on some GPUs.

`docs/generate.py` writes it, and a test compares, so that the table is what the plan says today.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.estimate import MemoryTable, count_memory
from microcoder.train.run.starter import GPUS, Wishes, write_recipe

MODELS = (
    "Qwen/Qwen2.5-Coder-0.5B-Instruct",
    "Qwen/Qwen3-1.7B",
    "Qwen/Qwen3-4B-Instruct-2507",
    "Qwen/Qwen3-8B",
)
"""Models of the table; their shapes are known without their files."""
DEVICES = ("h200", "h100", "a100-40", "rtx-4090")
"""GPUs of the table, by the names that `microcoder init` takes."""
PROBLEMS = "agentica-org/DeepCoder-Preview-Dataset"
"""Problems of the plan: on the Hub, so that 1,024 tokens of a prompt are assumed."""
FIGURES = Path(__file__).parents[1] / "benchmarks" / "figures.json"
"""Figures that were measured, the newest of each last."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The recipe that `microcoder init` writes for a model on a GPU, and its memory."""

    config: TrainConfig
    memory: MemoryTable


def make_plan(model: str, device: str) -> Plan | None:
    """Return what `init` plans; None where nothing fits."""
    wishes = Wishes(model=model, problems=PROBLEMS, heldout="test", gpu=device)
    try:
        text = write_recipe(wishes)
    except ConfigError as error:
        if "does not fit" not in str(error):
            raise
        return None
    config = load_config(TrainConfig, layers=[tomllib.loads(text)])
    memory = count_memory(config, device_memory_gib=_memory_gib(device))
    assert memory is not None, f"the shape of {model} is not known"
    return Plan(config, memory)


def _memory_gib(device: str) -> float:
    gigabytes = GPUS[device]
    assert gigabytes is not None, f"{device} is no GPU"
    return gigabytes * 1e9 / 2**30


def _describe(plan: Plan | None, device: str) -> str:
    """Return the cells of a plan: what is trained, the limit, the memory, the cache."""
    if plan is None:
        return "does not fit | - | - | - | -"
    config = plan.config
    trained = "all weights"
    if config.weights.lora is not None:
        trained = "adapters"
    elif "8bit" in config.optimizer.name:
        trained = "all weights, 8-bit moments"
    sleeps = "no"
    if config.rollout.vllm.enable_sleep_mode:
        sleeps = "yes"
    memory = f"{plan.memory.total:.0f} of {_memory_gib(device):.0f} GiB"
    limit = config.rollout.max_response_tokens
    return f"{trained} | {limit:,} | {memory} | {plan.memory.cached_responses} | {sleeps}"


def render_costs() -> str:
    """Return the page as Markdown."""
    config = TrainConfig.model_validate(
        {"model": {"kind": "hugging_face", "path": MODELS[1]}, "problems": {"kind": "micro"}}
    )
    rollouts = config.num_steps * config.batch.train_batch_size * config.rollout.num_samples
    tokens = rollouts * config.rollout.max_response_tokens
    speed = json.loads(FIGURES.read_text(encoding="utf-8"))["gpu_vllm"][-1]["numbers"]
    sampled = speed["sampled_per_second"]
    trained = speed["trained_per_second"]
    hours = tokens * (1 / sampled + 1 / trained) / 3600
    lines = [
        "# What a run costs, by GPU and model",
        "",
        "Written by `make docs` from the plan of `microcoder init`, so that it is what the code",
        "says. Memory is counted by formula. It bounds the tensors. On an H200 it was",
        "[2 % below what the allocator took](results.md#one-gpu) for one model of 4B, and above it",
        "for the others. None of these runs was made to its end.",
        "",
        "Ask it of your own recipe, without a GPU:",
        "",
        "```console",
        "microcoder train -c recipe.toml --dry-run --gpu-memory-gib 79.6",
        "```",
        "",
        "## Memory",
        "",
        "One GPU, vLLM on the same card, prompts of 1,024 tokens. *Cached* is how many responses",
        "of full length vLLM can hold at a time. Where it *sleeps*, it gives its memory back",
        "during updates. The second number under *memory* is the card as sold: 80 GB of 10^9",
        "bytes are 75 GiB. A driver may report more, as the 79.6 above of an H100.",
    ]
    for model in MODELS:
        lines += [
            "",
            f"### {model.partition('/')[2]}",
            "",
            "| GPU | trained | limit | memory | cached | sleeps |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for device in DEVICES:
            lines.append(f"| `{device}` | {_describe(make_plan(model, device), device)} |")
    lines += [
        "",
        "Several GPUs: [verl on a cluster](cluster.md), where weights and optimizer are divided.",
        "",
        "## Time",
        "",
        "The plan counts tokens, not hours: the first steps of a run show its speed. One",
        "measurement gives the scale. On an H200 Qwen3-1.7B was",
        f"[sampled at {sampled:,} tokens/s and trained at {trained:,}](results.md#one-gpu),",
        "with 64 responses of 1,020 tokens. The default recipe has",
        f"{config.num_steps} steps of {config.batch.train_batch_size} problems with "
        f"{config.rollout.num_samples} responses: {rollouts:,} in all, and at most",
        f"{tokens / 1e9:.2f} billion tokens. At that speed these are {hours:.0f} hours, "
        "if every response reaches the limit.",
        "Responses of a quarter of it take about a quarter of the time.",
        "",
        "Judging takes processors, not the GPU: [memory, time and batches](resources.md), and",
        "[a service](serving.md) where other machines have free ones.",
        "",
    ]
    return "\n".join(lines)
