"""TRL's own options in a recipe, `[trl]`: which of them the recipe has a key for, or would be of no effect.

Free of torch and TRL, for the dry run. Names that TRL does not have are reported when it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping

_OURS = "MicroCoder does this itself"
RECIPE_KEYS: Mapping[str, str] = {
    "adam_beta2": "optimizer.beta2", "beta": "algorithm.kl_coefficient",
    "bf16": "model.compute_dtype", "fp16": "model.compute_dtype",
    "chat_template_kwargs": "prompt.chat_template_options", "epsilon": "algorithm.loss.clip_low",
    "epsilon_high": "algorithm.loss.clip_high", "generation_batch_size": "batch.train_batch_size",
    "gradient_accumulation_steps": "batch.ppo_mini_batch_size",
    "gradient_checkpointing": "model.gradient_checkpointing", "learning_rate": "optimizer.learning_rate",
    "loss_type": "[algorithm]", "lr_scheduler_kwargs": "optimizer.schedule_options",
    "lr_scheduler_type": "optimizer.schedule", "max_completion_length": "rollout.max_response_tokens",
    "max_grad_norm": "optimizer.max_grad_norm", "max_steps": "num_steps", "num_generations": "rollout.num_samples",
    "num_generations_eval": "evaluation.samples_per_problem", "optim": "optimizer.name", "output_dir": "--run-dir",
    "per_device_train_batch_size": "batch.micro_batch_rollouts", "scale_rewards": "algorithm.advantage", "seed": "seed",
    "use_vllm": "rollout.backend", "vllm_enable_sleep_mode": "rollout.vllm.enable_sleep_mode",
    "vllm_gpu_memory_utilization": "rollout.vllm.gpu_memory_utilization",
    "vllm_importance_sampling_clip_max": "rollout.mismatch.threshold",
    "vllm_importance_sampling_clip_min": "rollout.mismatch.lower_threshold",
    "vllm_importance_sampling_correction": "rollout.mismatch.correction",
    "vllm_importance_sampling_mode": "rollout.mismatch.mode", "vllm_max_model_length": "rollout.max_response_tokens",
    "vllm_mode": "rollout.vllm.mode", "vllm_server_base_url": "rollout.vllm.server_base_url",
    "vllm_server_host": "rollout.vllm.server_base_url", "vllm_server_port": "rollout.vllm.server_base_url",
    "vllm_tensor_parallel_size": "rollout.vllm.tensor_parallel_size", "warmup_steps": "optimizer.warmup_steps",
    "weight_decay": "optimizer.weight_decay",
}  # fmt: skip
"""TRL's name -> what to use instead."""
_BY_ADVICE: Mapping[str, str] = {
    "use batch.micro_batch_rollouts": "auto_find_batch_size",
    "use seed": "data_seed shuffle_dataset train_sampling_strategy",
    "use [batch]": "dataloader_drop_last",
    "use [evaluation]": (
        "do_eval do_predict eval_accumulation_steps eval_delay eval_do_concat_batches include_for_metrics"
    ),
    _OURS: (
        "do_train eval_on_start ignore_data_skip log_completions_hub_repo logging_first_step logging_strategy "
        "logging_steps max_tool_calling_iterations min_p num_completions_to_print "
        "remove_unused_columns repetition_penalty restore_callback_states_from_checkpoint save_on_each_node "
        "save_only_model top_k top_p"
    ),
    "use evaluation.every_steps": "eval_steps",
    "use seed and cpu_threads": "full_determinism",
    "use checkpoint.keep_best": "greater_is_better load_best_model_at_end metric_for_best_model",
    "use the rollouts of the run directory": "log_completions",
    "it would be in the manifest; type `hf auth login`": "hub_token",
    'use algorithm.masking.kind = "all"': "mask_truncated_completions",
    "use [model]": "model_init_kwargs",
    "use rewards.weight": "multi_objective_aggregation reward_weights",
    "use batch.ppo_mini_batch_size": "num_iterations steps_per_generation",
    "use num_steps": "num_train_epochs",
    "use evaluation.batch_rollouts": "per_device_eval_batch_size",
    "the same command resumes": "resume_from_checkpoint",
    "use checkpoint.every_steps": "save_steps save_strategy",
    "use checkpoint.keep": "save_total_limit",
    "use rollout.temperature": "temperature",
    "use rollout.backend": "use_transformers_continuous_batching transformers_continuous_batching_config",
    "the weights are [rollout.mismatch]'s": "vllm_importance_sampling_cap",
    "use optimizer.warmup_steps": "warmup_ratio",
}
WITHOUT_EFFECT: Mapping[str, str] = {name: advice for advice, names in _BY_ADVICE.items() for name in names.split()}
"""Options that MicroCoder's own sampling, batches, checkpoints or metrics replace, or that would make the sampled
distribution another than the one that ratios are taken under (`top_p`, `repetition_penalty`)."""
