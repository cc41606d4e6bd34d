"""TRL's options that a recipe may not name in [trl].

Some have keys of their own in a recipe; others are replaced by our own sampling, batches,
checkpoints or metrics. The last few would change the distribution that is sampled from, and ratios
would be taken under another.
"""

_LOSS = (
    "beta",
    "epsilon",
    "epsilon_high",
    "loss_type",
    "importance_sampling_level",
    "sapo_temperature_neg",
    "sapo_temperature_pos",
    "scale_rewards",
    "use_bias_correction_kl",
    "mask_truncated_completions",
    "multi_objective_aggregation",
    "reward_weights",
)
"""Names of TRL's options for the loss, which [algorithm] decides."""
_BATCHES = (
    "generation_batch_size",
    "gradient_accumulation_steps",
    "num_iterations",
    "per_device_train_batch_size",
    "per_device_eval_batch_size",
    "steps_per_generation",
    "auto_find_batch_size",
    "dataloader_drop_last",
    "dataloader_pin_memory",
    "shuffle_dataset",
    "train_sampling_strategy",
)
"""Those for batches and passes, which [batch] decides."""
_MODEL = (
    "bf16",
    "fp16",
    "gradient_checkpointing",
    "model_init_kwargs",
    "use_cpu",
    "chat_template_kwargs",
)
"""Those for the model and its precision, which [model] decides."""
_OPTIMIZER = (
    "adam_beta2",
    "learning_rate",
    "lr_scheduler_type",
    "lr_scheduler_kwargs",
    "warmup_steps",
    "warmup_ratio",
    "max_grad_norm",
    "optim",
    "weight_decay",
)
"""Those for the optimizer, which [optimizer] decides."""
_LENGTH = (
    "max_steps",
    "num_train_epochs",
    "seed",
    "data_seed",
    "full_determinism",
)
"""Those for the length of a run and its seeds."""
_SAMPLING = (
    "max_completion_length",
    "num_generations",
    "num_generations_eval",
    "temperature",
    "max_tool_calling_iterations",
    "use_transformers_continuous_batching",
    "transformers_continuous_batching_config",
    "use_vllm",
    "vllm_enable_sleep_mode",
    "vllm_gpu_memory_utilization",
    "vllm_importance_sampling_cap",
    "vllm_importance_sampling_clip_max",
    "vllm_importance_sampling_clip_min",
    "vllm_importance_sampling_correction",
    "vllm_importance_sampling_mode",
    "vllm_max_model_length",
    "vllm_mode",
    "vllm_server_base_url",
    "vllm_server_host",
    "vllm_server_port",
    "vllm_server_timeout",
    "vllm_tensor_parallel_size",
)
"""Those for sampling, which is our own or set up by [rollout]."""
_EVALUATION = (
    "do_eval",
    "do_predict",
    "do_train",
    "eval_accumulation_steps",
    "eval_delay",
    "eval_do_concat_batches",
    "eval_on_start",
    "eval_steps",
    "eval_strategy",
    "include_for_metrics",
    "greater_is_better",
    "load_best_model_at_end",
    "metric_for_best_model",
)
"""Those for evaluations, which [evaluation] decides."""
_DISPLAY = (
    "disable_tqdm",
    "log_completions",
    "log_completions_hub_repo",
    "logging_first_step",
    "logging_strategy",
    "logging_steps",
    "num_completions_to_print",
    "remove_unused_columns",
    "output_dir",
)
"""Those for logs and progress bars: metrics and rollouts are written by us."""
_CHECKPOINTS = (
    "ignore_data_skip",
    "restore_callback_states_from_checkpoint",
    "resume_from_checkpoint",
    "save_on_each_node",
    "save_only_model",
    "save_steps",
    "save_strategy",
    "save_total_limit",
    "push_to_hub",
    "hub_model_id",
    "hub_strategy",
    "hub_token",
    "hub_private_repo",
    "hub_always_push",
    "hub_revision",
)
"""Those for checkpoints, which [checkpoint] decides, and for the Hub."""
TRUNCATES_SAMPLING = ("top_k", "top_p", "min_p", "repetition_penalty")
"""Options that would sample from another policy than is trained."""
REFUSED_OF_TRL = frozenset(
    (
        *_LOSS,
        *_BATCHES,
        *_MODEL,
        *_OPTIMIZER,
        *_LENGTH,
        *_SAMPLING,
        *_EVALUATION,
        *_DISPLAY,
        *_CHECKPOINTS,
        *TRUNCATES_SAMPLING,
    )
)
"""All of them."""
