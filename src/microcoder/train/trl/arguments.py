"""TrainConfig -> GRPOConfig: the one place where our terms meet TRL's."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import trl
from trl import GRPOConfig

from microcoder.judge.core.errors import ConfigError
from microcoder.train.algorithm.config import (
    AlgorithmConfig,
    CispoLoss,
    ClippedLoss,
    GspoLoss,
    LuspoLoss,
    SapoLoss,
    TwoSidedLoss,
)
from microcoder.train.recipe.batching import Batches
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.trl.sampling import vllm_arguments


def build_arguments(
    config: TrainConfig, batches: Batches, *, output_dir: Path, longest_prompt_tokens: int = 0
) -> GRPOConfig:
    """Translate a recipe into TRL's arguments; how long prompts are matters to vLLM alone."""
    on_gpu = torch.cuda.is_available()
    model, algorithm, optimizer = config.weights, config.algorithm, config.optimizer
    decided: dict[str, Any] = dict(
        output_dir=str(output_dir),
        use_cpu=not on_gpu,
        bf16=model.compute_dtype == "bfloat16",
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
        chat_template_kwargs=dict(config.prompt.chat_template_options),
        **vllm_arguments(config, longest_prompt_tokens=longest_prompt_tokens),
        beta=algorithm.kl_coefficient,
        # TRL would weigh the KL term by the ratio (DeepSeek-V3.2); GRPO's equation and the paper's do not.
        use_bias_correction_kl=False,
        **translate_loss(algorithm),
        # TRL's advantages are replaced by ours; set all the same, for TRL's log.
        scale_rewards="group" if algorithm.advantage == "grpo" else "none",
        learning_rate=optimizer.learning_rate,
        optim=optimizer.name,
        lr_scheduler_type=optimizer.schedule,
        warmup_steps=optimizer.warmup_steps * batches.updates_per_step,
        weight_decay=optimizer.weight_decay,
        adam_beta2=optimizer.beta2,
        max_grad_norm=optimizer.max_grad_norm,
        gradient_checkpointing=model.gradient_checkpointing,
        logging_steps=1,
        # Checkpoints are asked for at step boundaries by the trainer, and evaluation is ours.
        save_strategy="no",
        eval_strategy="no",
        disable_tqdm=True,
        dataloader_pin_memory=on_gpu,
    )
    check_options(config.trl)
    try:
        options: dict[str, Any] = {"report_to": "none", "run_name": output_dir.absolute().parent.name, **config.trl}
        return GRPOConfig(**decided, **options)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"TRL refuses this recipe: {str(error).strip().splitlines()[0]}") from None


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options of `[trl]` that TRL does not have."""
    known = [field.name for field in dataclasses.fields(GRPOConfig)]
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            raise ConfigError(
                f"[trl] {name} is not an option of TRL {trl.__version__}"
                + (f"; did you mean {close[0]}?" if close else "; see its GRPOConfig")
            )


def translate_loss(algorithm: AlgorithmConfig) -> dict[str, Any]:
    """Return the arguments of `GRPOConfig` that make a recipe's loss."""
    loss = algorithm.loss
    # GSPO is GRPO's loss with the ratio of the whole response.
    arguments: dict[str, Any] = {
        "loss_type": "grpo" if isinstance(loss, GspoLoss) else loss.kind,
        "importance_sampling_level": "sequence" if isinstance(loss, GspoLoss | LuspoLoss) else "token",
    }
    if isinstance(loss, ClippedLoss):
        arguments |= {"epsilon": loss.clip_low, "epsilon_high": loss.clip_high}
    if isinstance(loss, TwoSidedLoss):
        arguments |= {"delta": loss.dual_clip}
    if isinstance(loss, CispoLoss):
        arguments |= {"epsilon_high": loss.max_ratio}
    if isinstance(loss, SapoLoss):
        arguments |= {
            "sapo_temperature_pos": loss.temperature_positive,
            "sapo_temperature_neg": loss.temperature_negative,
        }
    return arguments
