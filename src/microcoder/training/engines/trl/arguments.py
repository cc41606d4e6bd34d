"""TrainConfig -> GRPOConfig: the one place where our terms meet TRL's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from trl import GRPOConfig

from microcoder.errors import ConfigError
from microcoder.training.config import HuggingFaceModel, TrainConfig


@dataclass(frozen=True, slots=True)
class Batches:
    """How a step is cut, in the engine's units."""

    rollouts_per_step: int
    updates_per_step: int
    rollouts_per_update: int
    micro_batch_rollouts: int
    gradient_accumulation_steps: int
    num_processes: int


def cut_batches(config: TrainConfig, *, num_processes: int) -> Batches:
    """Return how a step is cut into updates and micro batches.

    Raises:
        ConfigError: the processes cannot share a step or an update evenly.
    """
    batch, num_samples = config.batch, config.rollout.num_samples
    if batch.train_batch_size % num_processes:
        raise ConfigError(
            f"batch.train_batch_size={batch.train_batch_size} cannot be shared by {num_processes} processes; "
            f"use a multiple of {num_processes}"
        )
    rollouts_per_update = batch.ppo_mini_batch_size * num_samples
    if rollouts_per_update % (batch.micro_batch_rollouts * num_processes):
        raise ConfigError(
            f"the {rollouts_per_update} rollouts of an update cannot be cut into micro batches of "
            f"{batch.micro_batch_rollouts} on {num_processes} processes; lower batch.micro_batch_rollouts"
        )
    return Batches(
        rollouts_per_step=batch.train_batch_size * num_samples,
        updates_per_step=batch.train_batch_size // batch.ppo_mini_batch_size,
        rollouts_per_update=rollouts_per_update,
        micro_batch_rollouts=batch.micro_batch_rollouts,
        gradient_accumulation_steps=rollouts_per_update // (batch.micro_batch_rollouts * num_processes),
        num_processes=num_processes,
    )


def build_arguments(config: TrainConfig, batches: Batches, *, output_dir: Path) -> GRPOConfig:
    """Translate a recipe into TRL's arguments."""
    on_gpu = torch.cuda.is_available()
    model, algorithm, optimizer = config.model, config.algorithm, config.optimizer
    computes_in_bfloat16 = isinstance(model, HuggingFaceModel) and model.compute_dtype == "bfloat16"
    return GRPOConfig(
        output_dir=str(output_dir),
        use_cpu=not on_gpu,
        bf16=computes_in_bfloat16,
        seed=config.seed,
        # The order of the problems is ours (`schedules.order_problems`), so that it survives a resume.
        shuffle_dataset=False,
        max_steps=config.num_steps * batches.updates_per_step,
        per_device_train_batch_size=batches.micro_batch_rollouts,
        gradient_accumulation_steps=batches.gradient_accumulation_steps,
        generation_batch_size=batches.rollouts_per_step,
        num_generations=config.rollout.num_samples,
        num_generations_eval=config.evaluation.samples_per_problem,
        num_iterations=1,
        max_completion_length=config.rollout.max_response_tokens,
        use_vllm=config.rollout.backend == "vllm",
        vllm_mode="colocate",
        beta=algorithm.kl_coefficient,
        # TRL would weigh the KL term by the ratio (DeepSeek-V3.2); GRPO's equation and the paper's do not.
        use_bias_correction_kl=False,
        epsilon=algorithm.clip_low,
        epsilon_high=algorithm.clip_high,
        loss_type=algorithm.loss_type,
        # TRL's advantages are replaced by ours; said all the same, for what TRL logs.
        scale_rewards="none" if algorithm.advantage == "dr_grpo" else "group",
        learning_rate=optimizer.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=optimizer.warmup_steps * batches.updates_per_step,
        weight_decay=optimizer.weight_decay,
        adam_beta1=optimizer.beta1,
        adam_beta2=optimizer.beta2,
        max_grad_norm=optimizer.max_grad_norm,
        gradient_checkpointing=isinstance(model, HuggingFaceModel) and model.gradient_checkpointing,
        logging_steps=1,
        # Checkpoints are asked for at step boundaries by the trainer, and evaluation is ours.
        save_strategy="no",
        eval_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=on_gpu,
    )
