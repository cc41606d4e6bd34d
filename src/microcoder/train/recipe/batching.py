"""How a step is split: our batch sizes in problems, an engine's in rollouts, and a table of both."""

from __future__ import annotations

from dataclasses import dataclass

from microcoder.judge.core.errors import ConfigError
from microcoder.train.algorithm.config import ClippedLoss
from microcoder.train.algorithm.masking import ConditionalMasking
from microcoder.train.algorithm.sampling import StagedTemperature
from microcoder.train.recipe.recipe import TrainConfig, largest_divisor


@dataclass(frozen=True, slots=True)
class Batches:
    """The split of a step, in the engine's units."""

    rollouts_per_step: int
    updates_per_step: int
    rollouts_per_update: int
    micro_batch_rollouts: int
    gradient_accumulation_steps: int
    num_processes: int


def cut_batches(config: TrainConfig, *, num_processes: int) -> Batches:
    """Return the split of a step into updates and micro batches."""
    batch, num_samples = config.batch, config.rollout.num_samples
    if batch.train_batch_size % num_processes:
        near = max(1, round(batch.train_batch_size / num_processes)) * num_processes
        raise ConfigError(
            f"batch.train_batch_size={batch.train_batch_size} cannot be shared by {num_processes} processes; "
            f"try {near}, or another multiple of {num_processes}"
        )
    rollouts_per_update = batch.ppo_mini_batch_size * num_samples
    if rollouts_per_update % (batch.micro_batch_rollouts * num_processes):
        share, rest = divmod(rollouts_per_update, num_processes)
        advice = (
            f"try batch.ppo_mini_batch_size={-(-batch.ppo_mini_batch_size // num_processes) * num_processes}"
            if rest
            else f"try batch.micro_batch_rollouts={largest_divisor(share, batch.micro_batch_rollouts)}"
        )
        raise ConfigError(
            f"the {rollouts_per_update} rollouts of an update cannot be cut into micro batches of "
            f"{batch.micro_batch_rollouts} on {num_processes} processes; {advice}"
        )
    return Batches(
        rollouts_per_step=batch.train_batch_size * num_samples,
        updates_per_step=batch.train_batch_size // batch.ppo_mini_batch_size,
        rollouts_per_update=rollouts_per_update,
        micro_batch_rollouts=batch.micro_batch_rollouts,
        gradient_accumulation_steps=rollouts_per_update // (batch.micro_batch_rollouts * num_processes),
        num_processes=num_processes,
    )


def count_verl_devices(config: TrainConfig) -> int:
    """Return how many training processes verl starts, by its own options or their defaults: eight of one machine."""
    return int(config.verl.get("trainer.nnodes", 1)) * int(config.verl.get("trainer.n_gpus_per_node", 8))


def describe_batches(config: TrainConfig, *, num_processes: int) -> list[str]:
    """Return the table of batch sizes as lines: what each bounds, in problems, rollouts and tokens."""
    cut = cut_batches(config, num_processes=num_processes)
    batch, limit = config.batch, config.rollout.longest_response_tokens
    on_each = "" if num_processes == 1 else f" on each of {num_processes} processes"
    rows = [
        ("a step", batch.train_batch_size, cut.rollouts_per_step, "sampled and judged (train_batch_size)"),
        (
            "an update",
            batch.ppo_mini_batch_size,
            cut.rollouts_per_update,
            f"{cut.updates_per_step} a step (ppo_mini_batch_size)",
        ),
        (
            "a pass",
            None,
            cut.micro_batch_rollouts,
            f"{cut.gradient_accumulation_steps} an update{on_each} (micro_batch_rollouts)",
        ),
    ]
    lines = [f"{'batches':<10} {'problems':>8} {'rollouts':>8} {'tokens <=':>12}"]
    for name, problems, rollouts, what in rows:
        problem_text = "" if problems is None else str(problems)
        lines.append(f"{name:<10} {problem_text:>8} {rollouts:>8} {rollouts * limit:>12,}  {what}")
    return [*lines, *(f"cannot act: {idea}" for idea in find_idle(config))]


def find_idle(config: TrainConfig) -> list[str]:
    """Return the ideas of a recipe that cannot act in its run, each with the reason and what to change."""
    loss, masking, last = config.algorithm.loss, config.algorithm.masking, config.num_steps
    idle = []
    if config.batch.train_batch_size == config.batch.ppo_mini_batch_size:
        what = "clip" if isinstance(loss, ClippedLoss) else "ratio"
        idle.append(
            f"the {what} of loss {loss.kind}, with one update a step: every ratio is 1; "
            f"try batch.ppo_mini_batch_size={max(1, config.batch.train_batch_size // 2)}"
        )
    if isinstance(masking, ConditionalMasking) and not masking.rho:
        idle.append("the mask, with algorithm.masking.rho = 0; try 0.1, or kind = none")
    temperature = config.rollout.temperature
    stages = temperature.stages if isinstance(temperature, StagedTemperature) else ()
    for key, begins in (
        ("temperature.stages", [stage.from_step for stage in stages]),
        ("length_stages", [stage.from_step for stage in config.rollout.length_stages]),
    ):
        idle += [f"rollout.{key} from step {step}, after the last step {last}" for step in begins if step > last]
    return idle
