"""TrainConfig -> the command line of stock verl: the one place where our terms meet verl's.

Three kinds of options: what the recipe decides, which may not be overridden; what is chosen for it
to run well, which may; and the rest, at verl's defaults. `[verl]` in a recipe reaches the last two,
by verl's own names.

verl's own words mislead in two places. Its CISPO has a lower clip, which the paper's has not: 1 - 1
is no bound. Its `gspo` is summed up by `loss_agg_mode`: the mean over responses of sums over tokens
is LUSPO.
"""

import re
import shlex
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from microcoder.judge.core.errors import ConfigError
from microcoder.train.algorithm.advantages import ADVANTAGES
from microcoder.train.algorithm.config import CispoLoss, ClippedLoss, DrGrpoLoss, SapoLoss
from microcoder.train.recipe.recipe import (
    EVALUATION_ROLLOUTS,
    HuggingFaceModel,
    TrainConfig,
    choose_dtype,
)
from microcoder.train.run.estimate import longest_prompt_tokens
from microcoder.train.runs import RunDirectory
from microcoder.train.verl.names import (
    AGENT_LOOP,
    REWARD_MANAGER,
    SEPARATE_ASYNC,
    TRAINER_MODE,
    TRAINER_MODES,
)
from microcoder.train.verl.settings import ESTIMATORS, PluginSettings

MODEL = "actor_rollout_ref.model"
"""verl's table of the model."""
ACTOR = "actor_rollout_ref.actor"
"""verl's table of the training of weights."""
ROLLOUT = "actor_rollout_ref.rollout"
"""verl's table of sampling."""
MODE = "trainer.v1.trainer_mode"
"""verl's key for the trainer: ours are in `TRAINER_MODES`."""
KEYS: Mapping[str, tuple[str, ...]] = {
    "seed": (f"{ACTOR}.data_loader_seed", f"{ACTOR}.fsdp_config.seed", f"{ROLLOUT}.seed"),
    "num_steps": ("trainer.total_training_steps",),
    "batch.train_batch_size": ("data.train_batch_size",),
    "batch.ppo_mini_batch_size": (f"{ACTOR}.ppo_mini_batch_size",),
    "rollout.backend": (f"{ROLLOUT}.name",),
    "rollout.num_samples": (f"{ROLLOUT}.n",),
    "algorithm.kl_coefficient": (f"{ACTOR}.kl_loss_coef",),
    "weights.gradient_checkpointing": (f"{MODEL}.enable_gradient_checkpointing",),
    "optimizer.learning_rate": (f"{ACTOR}.optim.lr",),
    "optimizer.weight_decay": (f"{ACTOR}.optim.weight_decay",),
    "optimizer.max_grad_norm": (f"{ACTOR}.optim.clip_grad", f"{ACTOR}.grad_clip"),
    "evaluation.every_steps": ("trainer.test_freq",),
    "evaluation.samples_per_problem": (f"{ROLLOUT}.val_kwargs.n",),
    "evaluation.temperature": (f"{ROLLOUT}.val_kwargs.temperature",),
    "checkpoint.every_steps": ("trainer.save_freq",),
    "checkpoint.keep": ("trainer.max_actor_ckpt_to_keep",),
}
"""Keys of a recipe whose values verl takes unchanged -> verl's names."""
DECIDED: Mapping[str, Any] = {
    "trainer.total_epochs": 1,
    "trainer.critic_warmup": 0,
    "trainer.resume_mode": "auto",
    "algorithm.use_kl_in_reward": False,
    "reward.reward_manager.name": REWARD_MANAGER,
    # In the order of the run: a step's problems are the same on every engine.
    "data.shuffle": False,
    f"{ACTOR}.ppo_epochs": 1,
    # As in TRL an update holds rollouts of many problems, not whole groups.
    f"{ACTOR}.shuffle": True,
    f"{ACTOR}.kl_loss_type": "low_var_kl",
    # Weights as sharded state to resume from, and as a Hugging Face folder to use.
    f"{ACTOR}.checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],
    f"{ACTOR}.checkpoint.load_contents": ["model", "optimizer", "extra"],
    f"{ROLLOUT}.top_p": 1.0,
    f"{ROLLOUT}.top_k": -1,
    f"{ROLLOUT}.val_kwargs.do_sample": True,
    f"{ROLLOUT}.logprobs_mode": "processed_logprobs",
}
"""Options of verl that are the same for every recipe; `[verl]` may not override them."""
CHOSEN: Mapping[str, Any] = {
    # Logits are never whole: log-probs and entropy come out of a fused kernel, over responses
    # without padding.
    f"{MODEL}.use_fused_kernels": True,
    f"{ACTOR}.use_torch_compile": True,
    # verl bounds the ratio of negative advantages by 3 (dual clip); the paper's equation and TRL's
    # loss do not.
    f"{ACTOR}.clip_ratio_c": 1e9,
    f"{ACTOR}.strategy": "fsdp2",
    f"{ACTOR}.fsdp_config.strategy": "fsdp2",
    f"{ACTOR}.use_dynamic_bsz": True,
    f"{ROLLOUT}.agent.default_agent_loop": AGENT_LOOP,
    f"{ROLLOUT}.load_format": "dummy",
    f"{ROLLOUT}.tensor_model_parallel_size": 1,
    f"{ROLLOUT}.free_cache_engine": True,
    "trainer.project_name": "microcoder",
    "trainer.logger": ["console"],
    "hydra.output_subdir": None,
    "+ray_kwargs.ray_init.include_dashboard": False,
}
"""Options of verl whose defaults do not fit; `[verl]` may override them."""
WITHOUT_EFFECT = {
    "algorithm.gamma": "nothing: a response has one reward",
    "algorithm.lam": "nothing: a response has one reward",
    "algorithm.norm_adv_by_std_in_grpo": "algorithm.advantage",
    "algorithm.kl_penalty": "algorithm.kl_coefficient",
    "algorithm.kl_ctrl": "algorithm.kl_coefficient",
    "critic": "nothing: there is no critic",
    "data.seed": "seed",
    "reward.custom_reward_function": "[[rewards]]",
    "reward.sandbox_fusion": "[evaluator]",
}
"""Options of verl that have no effect with our advantages and judge -> what to use instead."""
FUNCTIONS = {"dapo": "vanilla", "grpo": "vanilla", "dr_grpo": "vanilla", "luspo": "gspo"}
"""Our name of a loss -> verl's; all others have the same name."""
SUMS = {
    "grpo": "seq-mean-token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
    "gspo": "seq-mean-token-mean",
    "luspo": "seq-mean-token-sum",
    "sapo": "seq-mean-token-mean",
}
"""Our name of a loss -> verl's `loss_agg_mode`.

All others are divided by the tokens of the update.
"""


def translate(
    config: TrainConfig, run: RunDirectory, *, model: str | None = None
) -> dict[str, Any]:
    """Return the options of verl that train a recipe, by verl's names.

    A leading + marks keys that verl's files lack.

    Args:
        config: the recipe.
        run: where the run is, or will be; all machines with training processes must see it under
            one path.
        model: folder of the starting weights; None: as the recipe names them.
    """
    _refuse_unmappable(config)
    decided = dict(DECIDED)
    for key, names in KEYS.items():
        value = attrgetter(key)(config)
        decided.update(dict.fromkeys(names, value))
    decided |= _combine(config, run, model)
    decided |= _translate_model(config)
    decided |= translate_loss(config)
    decided |= _translate_plugin(config, run)
    _refuse_overrides(config, decided)

    named = {name.lstrip("+") for name in config.verl}
    options = dict(decided)
    for name, value in {**CHOSEN, **_choose(config, run)}.items():
        # What the user names in [verl] comes instead.
        if name.lstrip("+") not in named:
            options[name] = value
    return options | dict(config.verl)


def _refuse_overrides(config: TrainConfig, decided: Mapping[str, Any]) -> None:
    """Raise ConfigError for an option in [verl] that has no effect, or that the recipe decides."""
    for name in config.verl:
        for own_name, value in decided.items():
            if _overlap(name, own_name):
                raise ConfigError(
                    f"[verl] {name} is decided by the recipe ({own_name} = {value!r}); change "
                    "the recipe's own key"
                )
        for idle_name, instead in WITHOUT_EFFECT.items():
            if _overlap(name, idle_name):
                raise ConfigError(f"[verl] {name} would change nothing; use {instead}")


def as_words(options: Mapping[str, Any]) -> list[str]:
    """Return options as hydra's command-line arguments, `name=value`."""
    return [f"{name}={as_literal(value)}" for name, value in options.items()]


def describe_command(options: Mapping[str, Any]) -> str:
    """Return the command that trains with these options, a line each, for a shell."""
    words = ["python -m verl.trainer.main_ppo", *map(shlex.quote, as_words(options))]
    return " \\\n    ".join(words)


def _refuse_unmappable(config: TrainConfig) -> None:
    """Raise ConfigError for a setting that verl lacks or would compute differently."""
    loss = config.algorithm.loss
    # Megatron's options have other names.
    strategy = config.verl.get("model_engine", config.verl.get(f"{ACTOR}.strategy", "fsdp2"))
    if isinstance(loss, DrGrpoLoss) and config.rollout.length_stages:
        raise ConfigError(
            "Dr. GRPO divides the loss by L_max, which verl fixes at the start, so it cannot "
            'follow rollout.length_stages; use algorithm.loss = "dapo", or --engine trl'
        )
    mode = _find_mode(config)
    if mode not in TRAINER_MODES:
        raise ConfigError(
            f"[verl] {MODE} = {mode} would train without our decisions; use one of "
            f"{', '.join(TRAINER_MODES)}"
        )
    if strategy not in ("dp", "fsdp", "fsdp2"):
        raise ConfigError(
            f"[verl] asks for {strategy}, and a recipe is translated into FSDP's options; add the "
            "plug-in to a verl command of your own instead (docs/verl.md)"
        )
    if isinstance(config.model, HuggingFaceModel) and config.model.revision:
        raise ConfigError(
            "model.revision is engine trl's; type `hf download MODEL --revision REVISION`, and "
            "give --model.path its folder"
        )


def _combine(config: TrainConfig, run: RunDirectory, model: str | None) -> dict[str, Any]:
    """Return options of verl that follow from several keys, or whose values differ from a key's."""
    rollout = config.rollout
    evaluation = config.evaluation
    data = run.root.absolute() / "verl"
    options: dict[str, Any] = {
        f"{MODEL}.path": model or getattr(config.model, "path", "MODEL"),
        "trainer.default_local_dir": str(run.checkpoints.absolute()),
        "trainer.experiment_name": run.root.name,
        "data.train_files": str(data / "train.parquet"),
        "data.val_files": str(data / "heldout.parquet"),
        "data.val_batch_size": max(1, EVALUATION_ROLLOUTS // evaluation.samples_per_problem),
        "data.max_response_length": max(
            rollout.longest_response_tokens, evaluation.max_response_tokens or 0
        ),
    }
    for name, value in config.prompt.chat_template_options.items():
        options[f"+data.apply_chat_template_kwargs.{name}"] = value
    options |= _translate_optimizer(config)
    options[f"{ACTOR}.use_kl_loss"] = config.algorithm.kl_coefficient > 0
    # Until the first step; then the plug-in's schedule decides.
    options[f"{ROLLOUT}.temperature"] = getattr(rollout.temperature, "value", 1.0)
    compares_logps = _corrects_mismatch(config) or _has_own_correction(config)
    options[f"{ROLLOUT}.calculate_log_probs"] = compares_logps
    # Names of what the reward manager reports of a response.
    filtered_by = {"dynamic": "acc", "dynamic_reward": "score"}
    metric = filtered_by.get(config.algorithm.group_filtering)
    if metric:
        options["+algorithm.filter_groups"] = {"enable": True, "metric": metric}
    return options


def _translate_optimizer(config: TrainConfig) -> dict[str, Any]:
    """Return the options of verl that set up the optimizer and its schedule."""
    optimizer = config.optimizer
    batch = config.batch
    is_8bit = optimizer.name == "adamw_8bit"
    # Where sampling is separate, verl makes each update of a step by itself, and moves the learning
    # rate with it.
    is_separate = _find_mode(config) == SEPARATE_ASYNC
    updates = 1
    if is_separate:
        updates = batch.train_batch_size // batch.ppo_mini_batch_size
    options: dict[str, Any] = {f"{ACTOR}.optim.lr_warmup_steps": optimizer.warmup_steps * updates}
    if is_separate:
        options["trainer.v1.separate_async.parameter_sync_step"] = updates
    package = "bitsandbytes.optim" if is_8bit else "torch.optim"
    name = "AdamW8bit" if is_8bit else "AdamW"
    schedule = "cosine" if optimizer.schedule == "cosine" else "constant"
    options |= {
        f"{ACTOR}.optim.optimizer_impl": package,
        f"{ACTOR}.optim.optimizer": name,
        f"{ACTOR}.optim.betas": [0.9, optimizer.beta2],
        f"{ACTOR}.optim.lr_scheduler_type": schedule,
        f"{ACTOR}.optim.min_lr_ratio": 0.0,
        f"{ACTOR}.optim.num_cycles": 0.5,
    }
    return options


def _find_mode(config: TrainConfig) -> str:
    """Return the trainer mode of a run."""
    return str(config.verl.get(MODE, TRAINER_MODE))


def _translate_model(config: TrainConfig) -> dict[str, Any]:
    """Return the options of verl for precision, attention and adapters."""
    model = config.weights
    short = {"bfloat16": "bf16", "float32": "fp32"}
    compute_dtype = choose_dtype(model.compute_dtype, on_gpu=True)
    options: dict[str, Any] = {
        f"{ACTOR}.fsdp_config.dtype": compute_dtype,
        f"{ACTOR}.fsdp_config.model_dtype": short[model.dtype],
        f"+{ACTOR}.fsdp_config.mixed_precision": {
            "param_dtype": short[compute_dtype],
            "reduce_dtype": "fp32",
            "buffer_dtype": "fp32",
        },
    }
    if model.attn_implementation:
        options[f"+{MODEL}.override_config.attn_implementation"] = model.attn_implementation
    if model.lora is not None:
        options |= {
            f"{MODEL}.lora_rank": model.lora.rank,
            f"{MODEL}.lora_alpha": model.lora.alpha,
            f"{MODEL}.target_modules": "all-linear",
        }
    return options


def translate_loss(config: TrainConfig) -> dict[str, Any]:
    """Return the options of verl's actor that select a recipe's loss."""
    loss = config.algorithm.loss
    low = 0.2
    high = 0.2
    if isinstance(loss, ClippedLoss):
        low = loss.clip_low
        high = loss.clip_high
    elif isinstance(loss, CispoLoss):
        # 1 - 1 is no bound: the paper's loss has no lower clip.
        low = 1.0
        high = loss.max_ratio - 1
    scale = None
    if isinstance(loss, DrGrpoLoss):
        scale = config.rollout.max_response_tokens
    options: dict[str, Any] = {
        "clip_ratio": low,
        "clip_ratio_low": low,
        "clip_ratio_high": high,
        "policy_loss.loss_mode": FUNCTIONS.get(loss.kind, loss.kind),
        "loss_agg_mode": SUMS.get(loss.kind, "token-mean"),
        "loss_scale_factor": scale,
    }
    if isinstance(loss, SapoLoss):
        options |= {"tau_pos": loss.temperature_positive, "tau_neg": loss.temperature_negative}
    return {f"{ACTOR}.{name}": value for name, value in options.items()}


def _corrects_mismatch(config: TrainConfig) -> bool:
    """Return whether the loss is weighted by importance ratios.

    They are needed where the sampler has other kernels or older weights than the trainer.
    """
    if config.rollout.corrects_mismatch:
        return True
    if config.rollout.mismatch.correction == "off":
        return False
    # Other modes sample ahead of the updates.
    return _find_mode(config) != TRAINER_MODE and not _has_own_correction(config)


def _has_own_correction(config: TrainConfig) -> bool:
    """Return whether [verl] asks for verl's correction, in place of ours."""
    return any(name.lstrip("+").startswith("algorithm.rollout_correction") for name in config.verl)


def _translate_plugin(config: TrainConfig, run: RunDirectory) -> dict[str, Any]:
    """Return the settings of our plug-in, and the advantage estimator."""
    algorithm = config.algorithm
    rollout = config.rollout
    is_own = algorithm.advantage not in ADVANTAGES
    own_advantage = algorithm.advantage if is_own else None
    own_options = algorithm.advantage_options if is_own else {}
    mismatch = rollout.mismatch if _corrects_mismatch(config) else None
    settings = PluginSettings(
        seed=config.seed,
        masking=algorithm.masking,
        advantage=own_advantage,
        advantage_options=own_options,
        temperature=rollout.temperature,
        max_response_tokens=rollout.max_response_tokens,
        validation_response_tokens=config.evaluation.max_response_tokens,
        length_stages=rollout.length_stages,
        problem_choice=algorithm.problem_choice,
        mismatch=mismatch,
        rewards=config.rewards,
        extractor=config.extractor,
        evaluator=config.evaluator,
        evaluation_seed=config.evaluation.seed,
        problems=run.root.absolute() / "verl" / "problems.jsonl",
        run_dir=run.root.absolute(),
    )
    # An advantage of the user's replaces that of verl's estimator, so any will do.
    estimator = "grpo" if is_own else algorithm.advantage
    options = {"algorithm.adv_estimator": f"{ESTIMATORS}{estimator}"}
    usual = PluginSettings()
    for key, value in settings.model_dump(mode="json").items():
        if getattr(settings, key) != getattr(usual, key):
            options[f"+microcoder.{key}"] = value
    return options


def _choose(config: TrainConfig, run: RunDirectory) -> dict[str, Any]:
    """Return the options of verl that are chosen for a recipe to run well."""
    longest_prompt = int(config.verl.get("data.max_prompt_length", longest_prompt_tokens(config)))
    # A pass is as many tokens as micro_batch_rollouts of full length have, however many responses
    # that are.
    longest = longest_prompt + config.rollout.longest_response_tokens
    budget = config.batch.micro_batch_rollouts * longest
    # Attention without padding is written for these kernels alone.
    packs = config.weights.attn_implementation in (None, "flash_attention_2", "flash_attention_3")
    # With a judge each; one worker has any number of responses judged at a time.
    reward_workers = 1
    if config.evaluator.backend == "ray":
        reward_workers = config.verl.get("trainer.nnodes", 1)
    options: dict[str, Any] = {MODE: TRAINER_MODE}
    if _find_mode(config) == SEPARATE_ASYNC:
        # verl's own default hands weights over within one process.
        options[f"{ROLLOUT}.checkpoint_engine.backend"] = "nccl"
    options |= {
        "data.max_prompt_length": longest_prompt,
        f"{MODEL}.use_remove_padding": packs,
        f"{ACTOR}.ppo_max_token_len_per_gpu": budget,
        f"{ROLLOUT}.log_prob_max_token_len_per_gpu": budget,
        "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu": budget,
        "reward.num_workers": reward_workers,
        "hydra.run.dir": str(run.logs.absolute()),
    }
    if config.weights.lora is not None:
        # The servers get whole weights.
        options[f"{MODEL}.lora.merge"] = True
    return options


_PLAIN = re.compile(r"(?!(?i:null|true|false|nan|inf)$)[A-Za-z_/.][A-Za-z0-9_./@-]*")
"""A text that hydra's grammar reads as itself."""


def as_literal(value: object) -> str:
    """Return a value in hydra's command-line syntax."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = []
        for key, item in value.items():
            pairs.append(f"{as_literal(str(key))}:{as_literal(item)}")
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(as_literal, value)) + "]"
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    # hydra reads a backslash as itself but before a quote.
    escaped = re.sub(r'(\\*)"', r'\1\1\\"', text)
    return f'"{escaped}"'


def _overlap(name: str, other: str) -> bool:
    """Return whether two options of verl are the same, or one is a table that holds the other."""
    name = name.lstrip("+")
    other = other.lstrip("+")
    if name == other:
        return True
    return name.startswith(f"{other}.") or other.startswith(f"{name}.")
