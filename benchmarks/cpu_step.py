"""What a training step of transformers costs on this machine, against its matrix products alone.

    python benchmarks/cpu_step.py --model FOLDER [--rollouts 32] [--tokens 192] [--threads 2]

The step's responses are sampled by the trainer, each exactly as long as the limit, to prompts of
`--prompt-tokens` made-up tokens, in groups of `--group`. Then they are trained on: the passes of an
update with their gradients, without the optimizer. The floor is the time of the step's products of
matrices: the model's own linear layers at the sizes of the step and in its number format, measured
in between; an update has three times those of reading. One JSON object: tokens a second by wall
and by CPU second, and the floor's share of what was used, for sampling and for the update.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer, RunClock
from microcoder.train.run.tasks import EngineInputs, load_tasks
from microcoder.train.runs import RunDirectory
from microcoder.train.trl.engine import build_trainer, find_compute_dtype, load_policy

PRODUCTS_OF_AN_UPDATE = 3
"""Reading, the gradients of what is read, and those of the weights."""


class Cost(NamedTuple):
    """Seconds that something took."""

    wall: float
    cpu: float


def take_time(work: Callable[[], object]) -> Cost:
    """Return what a call costs."""
    wall = time.perf_counter()
    cpu = time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def measure_products(model: torch.nn.Module, rows: int, dtype: torch.dtype) -> Cost:
    """Return what one pass of so many rows through all linear layers costs, the better of two."""
    weights = []
    inputs = {}
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            weights.append(module.weight.detach().to(dtype))
            inputs[module.in_features] = torch.randn(rows, module.in_features, dtype=dtype)

    def multiply() -> None:
        with torch.inference_mode():
            for weight in weights:
                torch.nn.functional.linear(inputs[weight.shape[1]], weight)

    multiply()
    return min(take_time(multiply), take_time(multiply), key=lambda cost: cost.cpu)


def build(options: argparse.Namespace, folder: Path, judge: Judge) -> Any:
    """Return the trainer of a recipe of these sizes."""
    overrides = {
        "prompt.style": "bare",
        "model.kind": "hugging_face",
        "model.path": options.model,
        "model.gradient_checkpointing": "false",
        # One update a step, whose ratios are all 1.
        "algorithm.loss.clip_high": "0.2",
        "problems.kind": "micro",
        "problems.num_train": "24",
        "problems.num_heldout": "6",
        "rollout.num_samples": str(options.group),
        "rollout.max_response_tokens": str(options.tokens),
        "batch.train_batch_size": str(options.rollouts // options.group),
        "batch.ppo_mini_batch_size": str(options.rollouts // options.group),
        "batch.micro_batch_rollouts": str(options.micro_batch),
    }
    if options.threads is not None:
        overrides["cpu_threads"] = str(options.threads)
    config = load_config(TrainConfig, overrides=overrides)
    policy = load_policy(config, observer=Observer())
    run = RunDirectory(folder / "run")
    inputs = EngineInputs(config, policy, load_tasks(config), judge, run, Observer())
    trainer: Any = build_trainer(inputs, RunClock())
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = options.rollouts // options.micro_batch
    # No token ends a response.
    trainer.eos_token_ids = [-1]
    return trainer


def update(trainer: Any, prompts: list[list[int]], responses: list[list[int]], rows: int) -> None:
    """Do the passes of an update, with their gradients."""
    for start in range(0, len(prompts), rows):
        prompt_ids = torch.tensor(prompts[start : start + rows])
        completion_ids = torch.tensor(responses[start : start + rows])
        advantages = torch.ones(len(prompt_ids))
        advantages[::2] = -1.0
        inputs = {
            "prompt_ids": prompt_ids,
            "prompt_mask": torch.ones_like(prompt_ids),
            "completion_ids": completion_ids,
            "completion_mask": torch.ones_like(completion_ids),
            "advantages": advantages,
            "num_items_in_batch": torch.tensor(len(prompts) * completion_ids.shape[1]),
        }
        with trainer.accelerator.autocast():
            loss = trainer.compute_policy_loss(trainer.model, inputs)
        trainer.accelerator.backward(loss)


def describe(tokens: int, cost: Cost, floor: Cost) -> dict[str, float]:
    """Return the figures of a part of the step."""
    return {
        "seconds": round(cost.wall, 2),
        "cpu_seconds": round(cost.cpu, 2),
        "tokens_per_second": round(tokens / cost.wall, 1),
        "tokens_per_cpu_second": round(tokens / cost.cpu, 1),
        "share_of_floor": round(floor.wall / cost.wall, 3),
        "share_of_floor_by_cpu": round(floor.cpu / cost.cpu, 3),
    }


def times(cost: Cost, number: float) -> Cost:
    """Return the cost of so many."""
    return Cost(cost.wall * number, cost.cpu * number)


def add(one: Cost, other: Cost) -> Cost:
    """Return what both cost."""
    return Cost(one.wall + other.wall, one.cpu + other.cpu)


def make_prompts(options: argparse.Namespace, vocab_size: int) -> list[list[int]]:
    """Return made-up prompts, equal within a group."""
    prompts = []
    for row in range(options.rollouts):
        group = row // options.group
        prompts.append([(group + 7 * place) % vocab_size for place in range(options.prompt_tokens)])
    return prompts


def measure(options: argparse.Namespace, trainer: Any) -> dict[str, Any]:
    """Sample and train on a step, and return its figures."""
    dtype_name = find_compute_dtype(trainer.config)
    dtype = getattr(torch, dtype_name)
    prompts = make_prompts(options, trainer.model.config.vocab_size)
    responses: list[list[int]] = []

    def sample() -> None:
        found, _ = trainer.generate_responses(prompts, None, {}, options.group)
        responses.extend(found)

    step = measure_products(trainer.model, options.rollouts, dtype)
    sampled = take_time(sample)
    pass_tokens = options.micro_batch * (options.prompt_tokens + options.tokens)
    reading = measure_products(trainer.model, pass_tokens, dtype)
    trained = take_time(lambda: update(trainer, prompts, responses, options.micro_batch))
    # A step samples a token of each; the prompts are read once a group, at the rate of the update.
    num_prompt_tokens = options.rollouts // options.group * options.prompt_tokens
    of_prompts = times(reading, num_prompt_tokens / pass_tokens)
    sampling_floor = add(times(step, options.tokens), of_prompts)
    passes = options.rollouts // options.micro_batch
    update_floor = times(reading, PRODUCTS_OF_AN_UPDATE * passes)
    tokens = options.rollouts * options.tokens
    return {
        "model": options.model,
        "dtype": dtype_name,
        "threads": torch.get_num_threads(),
        "rollouts": options.rollouts,
        "tokens": options.tokens,
        "sampling": describe(tokens, sampled, sampling_floor),
        "update": describe(tokens, trained, update_floor),
        "step": describe(tokens, add(sampled, trained), add(sampling_floor, update_floor)),
    }


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="a checkpoint folder, or an id of the Hub")
    parser.add_argument("--rollouts", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=192)
    parser.add_argument("--prompt-tokens", type=int, default=160)
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--micro-batch", type=int, default=4)
    parser.add_argument("--threads", type=int, help="of torch; as many as it takes by default")
    options = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder, Judge(workers=1) as judge:
        trainer = build(options, Path(folder), judge)
        print(json.dumps(measure(options, trainer), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
