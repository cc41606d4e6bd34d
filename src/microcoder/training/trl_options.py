"""TRL's own options in a recipe, `[trl]`: which of them the recipe has a key for, or would be of no effect.

Free of torch and TRL, for the dry run. Names that TRL does not have are reported when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OURS = "MicroCoder does this itself"
RECIPE_KEYS: Mapping[str, str] = {
    "adam_beta1": "optimizer.beta1",
    "adam_beta2": "optimizer.beta2",
    "beta": "algorithm.kl_coefficient",
    "bf16": "model.compute_dtype",
    "fp16": "model.compute_dtype",
    "chat_template_kwargs": "prompt.chat_template_options",
    "epsilon": "algorithm.loss.clip_low",
    "epsilon_high": "algorithm.loss.clip_high",
    "generation_batch_size": "batch.train_batch_size",
    "gradient_accumulation_steps": "batch.ppo_mini_batch_size",
    "gradient_checkpointing": "model.gradient_checkpointing",
    "learning_rate": "optimizer.learning_rate",
    "loss_type": "[algorithm]",
    "lr_scheduler_kwargs": "optimizer.schedule_options",
    "lr_scheduler_type": "optimizer.schedule",
    "max_completion_length": "rollout.max_response_tokens",
    "max_grad_norm": "optimizer.max_grad_norm",
    "max_steps": "num_steps",
    "num_generations": "rollout.num_samples",
    "num_generations_eval": "evaluation.samples_per_problem",
    "optim": "optimizer.name",
    "output_dir": "--run-dir",
    "per_device_train_batch_size": "batch.micro_batch_rollouts",
    "scale_rewards": "algorithm.advantage",
    "seed": "seed",
    "use_vllm": "rollout.backend",
    "vllm_enable_sleep_mode": "rollout.vllm.enable_sleep_mode",
    "vllm_gpu_memory_utilization": "rollout.vllm.gpu_memory_utilization",
    "vllm_group_port": "rollout.vllm.group_port",
    "vllm_importance_sampling_clip_max": "rollout.mismatch.threshold",
    "vllm_importance_sampling_correction": "rollout.mismatch.correction",
    "vllm_importance_sampling_mode": "rollout.mismatch.mode",
    "vllm_max_model_length": "rollout.vllm.max_model_tokens",
    "vllm_mode": "rollout.vllm.mode",
    "vllm_server_base_url": "rollout.vllm.server_base_url",
    "vllm_server_timeout": "rollout.vllm.server_timeout_seconds",
    "vllm_tensor_parallel_size": "rollout.vllm.tensor_parallel_size",
    "warmup_steps": "optimizer.warmup_steps",
    "weight_decay": "optimizer.weight_decay",
}
"""TRL's name -> what to use instead."""
WITHOUT_EFFECT: Mapping[str, str] = {
    "auto_find_batch_size": "use batch.micro_batch_rollouts",
    "data_seed": "use seed",
    "dataloader_drop_last": "use [batch]",
    "do_eval": "use [evaluation]",
    "do_predict": "use [evaluation]",
    "do_train": _OURS,
    "eval_accumulation_steps": "use [evaluation]",
    "eval_delay": "use [evaluation]",
    "eval_do_concat_batches": "use [evaluation]",
    "eval_on_start": _OURS,
    "eval_steps": "use evaluation.every_steps",
    "full_determinism": "use seed and cpu_threads",
    "greater_is_better": "use checkpoint.keep_best",
    "hub_always_push": _OURS,
    "hub_model_id": _OURS,
    "hub_private_repo": _OURS,
    "hub_revision": _OURS,
    "hub_strategy": _OURS,
    "hub_token": _OURS,
    "ignore_data_skip": _OURS,
    "include_for_metrics": "use [evaluation]",
    "load_best_model_at_end": "use checkpoint.keep_best",
    "log_completions": "use the rollouts of the run directory",
    "log_completions_hub_repo": _OURS,
    "logging_dir": "use logging.to",
    "logging_first_step": _OURS,
    "logging_strategy": _OURS,
    "logging_steps": _OURS,
    "mask_truncated_completions": 'use algorithm.masking.kind = "all"',
    "max_tool_calling_iterations": _OURS,
    "metric_for_best_model": "use checkpoint.keep_best",
    "min_p": _OURS,
    "model_init_kwargs": "use [model]",
    "multi_objective_aggregation": "use rewards.weight",
    "num_completions_to_print": _OURS,
    "num_iterations": "use batch.ppo_mini_batch_size",
    "num_train_epochs": "use num_steps",
    "per_device_eval_batch_size": "use evaluation.batch_rollouts",
    "project": "use logging.project",
    "push_to_hub": _OURS,
    "remove_unused_columns": _OURS,
    "repetition_penalty": _OURS,
    "report_to": "use logging.to",
    "restore_callback_states_from_checkpoint": _OURS,
    "resume_from_checkpoint": "the same command resumes",
    "reward_weights": "use rewards.weight",
    "run_name": "use --run-dir",
    "save_on_each_node": _OURS,
    "save_only_model": _OURS,
    "save_steps": "use checkpoint.every_steps",
    "save_strategy": "use checkpoint.every_steps",
    "save_total_limit": "use checkpoint.keep",
    "shuffle_dataset": "use seed",
    "steps_per_generation": "use batch.ppo_mini_batch_size",
    "temperature": "use rollout.temperature",
    "top_k": _OURS,
    "top_p": _OURS,
    "train_sampling_strategy": "use seed",
    "warmup_ratio": "use optimizer.warmup_steps",
}
"""Options that MicroCoder's own sampling, batches, checkpoints or metrics replace, or that would make the sampled
distribution another than the one that ratios are taken under (`top_p`, `repetition_penalty`)."""


def refuse_decided(options: Mapping[str, Any]) -> None:
    """Refuse options of `[trl]` that have a key in the recipe, or would have no effect.

    Raises:
        ValueError: which, and what to use instead.
    """
    for name in options:
        if name in RECIPE_KEYS:
            raise ValueError(f"[trl] {name} is decided by the recipe; use {RECIPE_KEYS[name]}")
        if name in WITHOUT_EFFECT:
            raise ValueError(f"[trl] {name} is not TRL's to decide here: {WITHOUT_EFFECT[name]}")
