"""TrainConfig -> the command line of stock verl: the one place where our terms meet verl's.

Three kinds of options: what the recipe decides, which may not be overridden; what is chosen for it to run well, which
may; and the rest, at verl's defaults. `[verl]` in a recipe reaches the last two, by verl's own names.

The loss of a recipe in verl's terms: the function that computes it, how it is summed up, and the entropy term.

verl's own words mislead in two places. Its CISPO has a lower clip, which the paper's has not: 1 - 1 is no bound. Its
`gspo` is summed up by `loss_agg_mode`: the mean over responses of sums over tokens is LUSPO.
"""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import ConfigError
from microcoder.train.algorithm.advantages import ADVANTAGES
from microcoder.train.algorithm.config import DynamicFiltering, EntropyBonus
from microcoder.train.algorithm.losses import (
    CispoLoss,
    ClipCovLoss,
    ClippedLoss,
    DppoLoss,
    DrGrpoLoss,
    DroLoss,
    GeoMeanLoss,
    KlCovLoss,
    Loss,
    SapoLoss,
    TwoSidedLoss,
)
from microcoder.train.recipe.recipe import LoraAdapter, OptimizerConfig, TrainConfig
from microcoder.train.runs import RunDirectory
from microcoder.train.verl.checkpoints import staging_folder, state_folder
from microcoder.train.verl.devices import CPU, Devices
from microcoder.train.verl.names import AGENT_LOOP, REWARD_MANAGER, TRAINER_MODE
from microcoder.train.verl.settings import ESTIMATORS, OWN_ESTIMATOR, PluginSettings, RunSettings

ACTOR = "actor_rollout_ref.actor"
NO_DUAL_CLIP = 1e9
"""verl bounds the ratio of negative advantages by 3 (dual clip); the paper's equation and TRL's loss do not."""
FUNCTIONS = {"dapo": "vanilla", "grpo": "vanilla", "dr_grpo": "vanilla", "luspo": "gspo"}
"""Ours -> verl's name; all others have one name."""
SUMS = {
    "grpo": "seq-mean-token-mean",
    "dr_grpo": "seq-mean-token-sum-norm",
    "gspo": "seq-mean-token-mean",
    "luspo": "seq-mean-token-sum",
    "sapo": "seq-mean-token-mean",
    "geo_mean": "seq-mean-token-mean",
}
"""How a loss is summed up; all others: divided by the tokens of the update."""


def translate_loss(config: TrainConfig) -> dict[str, Any]:
    """Return the options of verl's actor that make a recipe's loss."""
    algorithm, loss = config.algorithm, config.algorithm.loss
    low, high = (loss.clip_low, loss.clip_high) if isinstance(loss, ClippedLoss) else (0.2, 0.2)
    if isinstance(loss, CispoLoss):
        low, high = 1.0, loss.max_ratio - 1
    if isinstance(loss, DppoLoss):
        low, high = loss.divergence_low, loss.divergence_high
    options: dict[str, Any] = {
        "clip_ratio": low,
        "clip_ratio_low": low,
        "clip_ratio_high": high,
        "clip_ratio_c": _largest_ratio(loss) or NO_DUAL_CLIP,
        "policy_loss.loss_mode": FUNCTIONS.get(loss.kind, loss.kind),
        "loss_agg_mode": SUMS.get(loss.kind, "token-mean"),
        "loss_scale_factor": config.rollout.max_response_tokens if isinstance(loss, DrGrpoLoss) else None,
        "entropy_coeff": algorithm.entropy.coefficient if isinstance(algorithm.entropy, EntropyBonus) else 0.0,
    }
    if isinstance(loss, SapoLoss):
        options |= {"tau_pos": loss.temperature_positive, "tau_neg": loss.temperature_negative}
    if isinstance(loss, ClipCovLoss):
        options |= {
            "policy_loss.clip_cov_ratio": loss.share,
            "policy_loss.clip_cov_lb": loss.covariance_low,
            "policy_loss.clip_cov_ub": loss.covariance_high,
        }
    if isinstance(loss, KlCovLoss):
        options |= {"policy_loss.kl_cov_ratio": loss.share, "policy_loss.ppo_kl_coef": loss.coefficient}
    if isinstance(loss, DroLoss):
        options |= {"policy_loss.dro_beta": loss.beta}
    return {f"{ACTOR}.{name}": value for name, value in options.items()}


def _largest_ratio(loss: Loss) -> float | None:
    if isinstance(loss, DppoLoss):
        return loss.max_ratio
    return loss.dual_clip if isinstance(loss, TwoSidedLoss) else None


def refuse_unmappable_loss(config: TrainConfig, devices: Devices) -> None:
    """Refuse a loss that verl computes otherwise than it is meant."""
    loss, batch = config.algorithm.loss, config.batch
    if isinstance(loss, DrGrpoLoss) and config.rollout.length_stages:
        raise ConfigError(
            "Dr. GRPO divides the loss by L_max, which verl fixes at the start, so it cannot follow "
            'rollout.length_stages; use algorithm.loss = "dapo", or --engine trl'
        )
    if isinstance(loss, GeoMeanLoss):
        rollouts = batch.ppo_mini_batch_size * config.rollout.num_samples // devices.number
        if rollouts != batch.micro_batch_rollouts:
            raise ConfigError(
                f'loss = "geo_mean" is a mean over one pass in verl 0.9.1, and the passes of an update are added up: '
                f"with batch.micro_batch_rollouts = {batch.micro_batch_rollouts} it would be too large; "
                f'use --batch.micro_batch_rollouts {rollouts}, or loss = "gspo"'
            )


OPTIMIZERS = {
    "adamw_torch_fused": ("torch.optim", "AdamW"),
    "adamw_torch": ("torch.optim", "AdamW"),
    "adamw_8bit": ("bitsandbytes.optim", "AdamW8bit"),
    "paged_adamw_8bit": ("bitsandbytes.optim", "PagedAdamW8bit"),
    "paged_adamw_32bit": ("bitsandbytes.optim", "PagedAdamW32bit"),
    "adamw_torch_8bit": ("torchao.optim", "AdamW8bit"),
    "adamw_torch_4bit": ("torchao.optim", "AdamW4bit"),
}
"""Ours -> module and class; verl runs torch's AdamW without its fused kernel."""
MODEL, ROLLOUT_CONFIG = "actor_rollout_ref.model", "actor_rollout_ref.rollout"

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
"""verl's options that our advantages and our judge leave nothing to do; with what to use instead."""


@dataclass(frozen=True, slots=True)
class Place:
    """Paths of a launch: its data, and what it writes."""

    run: RunDirectory
    model_folder: str
    longest_prompt_tokens: int
    resume_step: int | None = None
    validates_first: bool = True
    """Whether held-out problems are asked before the first step of this launch."""
    settings: RunSettings = field(default_factory=RunSettings)

    @property
    def data(self) -> Path:
        """The folder of the rows and problems that verl reads."""
        return self.run.root.absolute() / "verl"


@dataclass(frozen=True, slots=True)
class Launch:
    """The command line that trains with stock verl."""

    options: Mapping[str, Any]
    """By verl's names; a leading + adds what verl's files do not have."""

    @property
    def words(self) -> list[str]:
        """The options as hydra takes them."""
        return [f"{name}={as_literal(value)}" for name, value in self.options.items()]


def translate(config: TrainConfig, *, devices: Devices, place: Place) -> Launch:
    """Return the launch of a recipe."""
    refuse_unmappable(config, devices)
    decided = {
        **_data(config, place),
        **_actor(config),
        **_rollout(config),
        **_plugin(config, place),
        **_run(config, devices, place),
    }
    chosen = _chosen(config, devices, place)
    for name in config.verl:
        clash = next((mine for mine in decided if _overlap(name.lstrip("+"), mine.lstrip("+"))), None)
        if clash:
            raise ConfigError(
                f"[verl] {name} is decided by the recipe ({clash} = {decided[clash]!r}); change the recipe's own key"
            )
        if instead := next((WITHOUT_EFFECT[one] for one in WITHOUT_EFFECT if _overlap(name.lstrip("+"), one)), None):
            raise ConfigError(f"[verl] {name} would change nothing; use {instead}")
    asked = {name.lstrip("+") for name in config.verl}
    chosen = {name: value for name, value in chosen.items() if name.lstrip("+") not in asked}
    return Launch({**decided, **chosen, **config.verl})


def check(launch: Launch) -> Any:
    """Let hydra and verl check a launch before anything is started; return verl's whole configuration.

    Raises:
        ConfigError: an option is unknown, or verl refuses its value.
    """
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException
    from verl.trainer.ppo.utils import need_reference_policy
    from verl.utils.config import validate_config

    folder = str(files("verl.trainer") / "config")
    try:
        with initialize_config_dir(config_dir=folder, version_base=None):
            composed = compose(config_name="ppo_trainer", overrides=launch.words)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_explain(str(error), folder)) from None
    try:
        with redirect_stdout(io.StringIO()):
            validate_config(composed, use_reference_policy=need_reference_policy(composed), use_critic=False)
    except (ValueError, AssertionError, OmegaConfBaseException) as error:
        raise ConfigError(f"verl refuses this recipe: {str(error).strip().splitlines()[0]}") from None
    return composed


def refuse_unmappable(config: TrainConfig, devices: Devices) -> None:
    """Refuse what verl has no counterpart of."""
    refuse_unmappable_loss(config, devices)
    if config.rollout.corrects_mismatch and _has_own_correction(config):
        raise ConfigError(
            "rollout.mismatch and [verl] algorithm.rollout_correction correct one thing twice; pass "
            "--rollout.mismatch.correction off, or leave out the latter"
        )
    strategy = config.verl.get("model_engine", config.verl.get(f"{ACTOR}.strategy", "fsdp2"))
    if strategy not in ("dp", "fsdp", "fsdp2"):
        raise ConfigError(
            f"[verl] asks for {strategy}, and a recipe is translated into FSDP's options; add the plug-in to a verl "
            "command of your own instead (docs/verl.md)"
        )
    lora, filtering = config.weights.lora, config.algorithm.group_filtering
    if lora is not None:
        usual = LoraAdapter()
        for name in ("dropout", "modules_to_save", "use_rslora", "use_dora"):
            if getattr(lora, name) != getattr(usual, name):
                raise ConfigError(f"model.lora.{name} is not in verl 0.9.1; leave it out, or use --engine trl")
    usual_rounds = DynamicFiltering.model_fields["max_rounds"].default
    if isinstance(filtering, DynamicFiltering) and filtering.max_rounds != usual_rounds:
        raise ConfigError(
            "algorithm.group_filtering.max_rounds does nothing in verl, which asks others until a step is full; "
            "leave it out, or use --engine trl"
        )
    if config.rollout.backend == "transformers" and devices.kind != CPU:
        raise ConfigError(
            'rollout.backend = "transformers" is engine trl\'s; on GPUs verl samples with --rollout.backend vllm'
        )


def _data(config: TrainConfig, place: Place) -> dict[str, Any]:
    batch, evaluation = config.batch, config.evaluation
    longest = max(config.rollout.longest_response_tokens, evaluation.max_response_tokens or 0)
    return {
        # In the order of the run: a step's problems are the same on every engine.
        "data.train_files": str(place.data / "train.parquet"),
        "data.val_files": str(place.data / "heldout.parquet"),
        "data.shuffle": False,
        "data.train_batch_size": batch.train_batch_size,
        "data.val_batch_size": max(1, evaluation.batch_rollouts // evaluation.samples_per_problem),
        "data.max_prompt_length": place.longest_prompt_tokens,
        "data.max_response_length": longest,
        **{f"+data.apply_chat_template_kwargs.{k}": v for k, v in config.prompt.chat_template_options.items()},
    }


def _actor(config: TrainConfig) -> dict[str, Any]:
    batch, algorithm, optimizer, model = config.batch, config.algorithm, config.optimizer, config.weights
    is_bfloat16, attention = model.compute_dtype == "bfloat16", model.attn_implementation
    decided: dict[str, Any] = {
        f"{MODEL}.enable_gradient_checkpointing": model.gradient_checkpointing,
        **({f"+{MODEL}.override_config.attn_implementation": attention} if attention else {}),
        f"{ACTOR}.ppo_mini_batch_size": batch.ppo_mini_batch_size,
        f"{ACTOR}.ppo_epochs": 1,
        # As in TRL an update holds rollouts of many problems, not whole groups.
        f"{ACTOR}.shuffle": True,
        f"{ACTOR}.data_loader_seed": config.seed,
        **translate_loss(config),
        f"{ACTOR}.use_kl_loss": algorithm.kl_coefficient > 0,
        f"{ACTOR}.kl_loss_coef": algorithm.kl_coefficient,
        f"{ACTOR}.kl_loss_type": "low_var_kl",
        **_optimizer(optimizer),
        f"{ACTOR}.grad_clip": optimizer.max_grad_norm,
        f"{ACTOR}.fsdp_config.model_dtype": "bf16" if model.dtype == "bfloat16" else "fp32",
        f"{ACTOR}.fsdp_config.dtype": "bfloat16" if is_bfloat16 else "float32",
        f"+{ACTOR}.fsdp_config.mixed_precision": {
            "param_dtype": "bf16" if is_bfloat16 else "fp32",
            "reduce_dtype": "fp32",
            "buffer_dtype": "fp32",
        },
        f"{ACTOR}.fsdp_config.seed": config.seed,
        # Weights as sharded state to resume from, and as a Hugging Face folder to use.
        f"{ACTOR}.checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],
        f"{ACTOR}.checkpoint.load_contents": ["model", "optimizer", "extra"],
    }
    if (lora := model.lora) is not None:
        decided |= {
            f"{MODEL}.lora_rank": lora.rank,
            f"{MODEL}.lora_alpha": lora.alpha,
            f"{MODEL}.target_modules": lora.peft_modules,
            **({f"{MODEL}.exclude_modules": list(lora.exclude_modules)} if lora.exclude_modules else {}),
        }
    return decided


def _optimizer(optimizer: OptimizerConfig) -> dict[str, Any]:
    if optimizer.schedule not in ("constant", "constant_with_warmup", "cosine", "cosine_with_min_lr"):
        raise ConfigError(
            f'optimizer.schedule = "{optimizer.schedule}" is not in verl 0.9.1; use constant_with_warmup, cosine or '
            "cosine_with_min_lr, or --engine trl"
        )
    if optimizer.name not in OPTIMIZERS:
        raise ConfigError(
            f'optimizer.name = "{optimizer.name}" cannot be had from verl 0.9.1; use one of {", ".join(OPTIMIZERS)}, '
            "or --engine trl"
        )
    module, name = OPTIMIZERS[optimizer.name]
    options = optimizer.schedule_options
    found: dict[str, Any] = {
        "optimizer_impl": module,
        "optimizer": name,
        "lr": optimizer.learning_rate,
        "betas": [optimizer.beta1, optimizer.beta2],
        "weight_decay": optimizer.weight_decay,
        "clip_grad": optimizer.max_grad_norm,
        # verl moves the learning rate once a step, not once an update.
        "lr_warmup_steps": optimizer.warmup_steps,
        "lr_scheduler_type": "cosine" if optimizer.schedule.startswith("cosine") else "constant",
        "min_lr_ratio": options.get("min_lr_rate", options.get("min_lr", 0.0) / optimizer.learning_rate),
        "num_cycles": options.get("num_cycles", 0.5),
    }
    return {f"{ACTOR}.optim.{key}": value for key, value in found.items()}


def _rollout(config: TrainConfig) -> dict[str, Any]:
    rollout, evaluation = config.rollout, config.evaluation
    filtering = config.algorithm.group_filtering
    return {
        f"{ROLLOUT_CONFIG}.name": rollout.backend,
        f"{ROLLOUT_CONFIG}.n": rollout.num_samples,
        # Until the first step; then the plug-in's schedule decides.
        f"{ROLLOUT_CONFIG}.temperature": getattr(rollout.temperature, "value", 1.0),
        f"{ROLLOUT_CONFIG}.top_p": 1.0,
        f"{ROLLOUT_CONFIG}.top_k": -1,
        f"{ROLLOUT_CONFIG}.seed": config.seed,
        f"{ROLLOUT_CONFIG}.val_kwargs.n": evaluation.samples_per_problem,
        f"{ROLLOUT_CONFIG}.val_kwargs.temperature": evaluation.temperature,
        f"{ROLLOUT_CONFIG}.val_kwargs.do_sample": True,
        f"{ROLLOUT_CONFIG}.logprobs_mode": "processed_logprobs",
        f"{ROLLOUT_CONFIG}.calculate_log_probs": rollout.corrects_mismatch or _has_own_correction(config),
        **(
            {"+algorithm.filter_groups.enable": True, "+algorithm.filter_groups.metric": "score"}
            if isinstance(filtering, DynamicFiltering)
            else {}
        ),
    }


def _has_own_correction(config: TrainConfig) -> bool:
    return any(name.lstrip("+").startswith("algorithm.rollout_correction") for name in config.verl)


def _plugin(config: TrainConfig, place: Place) -> dict[str, Any]:
    algorithm, rollout, evaluation = config.algorithm, config.rollout, config.evaluation
    is_own = algorithm.advantage not in ADVANTAGES
    # On the nodes of a cluster are verl's reward workers, each with a judge.
    backend = "process" if config.evaluator.backend == "ray" else config.evaluator.backend
    settings = PluginSettings(
        seed=config.seed,
        masking=algorithm.masking,
        advantage=algorithm.advantage if is_own else None,
        advantage_options=algorithm.advantage_options if is_own else {},
        temperature=rollout.temperature,
        diversity_watch=rollout.diversity_watch,
        max_response_tokens=rollout.max_response_tokens,
        validation_response_tokens=evaluation.max_response_tokens,
        length_stages=rollout.length_stages,
        sweep_temperatures=evaluation.sweep_temperatures,
        mismatch=rollout.mismatch if rollout.corrects_mismatch else None,
        rewards=config.rewards,
        extractor=config.extractor,
        evaluator=config.evaluator.model_copy(update={"backend": backend}),
        evaluation_seed=evaluation.seed,
        problems=place.data / "problems.jsonl",
        run_dir=place.run.root.absolute(),
        run=place.settings.model_copy(
            update={"keep": config.checkpoint.keep, "keep_best": config.checkpoint.keep_best}
        ),
    )
    values = settings.model_dump(mode="json")
    usual = PluginSettings()
    return {
        "trainer.v1.trainer_mode": TRAINER_MODE,
        "algorithm.adv_estimator": OWN_ESTIMATOR if is_own else f"{ESTIMATORS}{algorithm.advantage}",
        "algorithm.use_kl_in_reward": False,
        "reward.reward_manager.name": REWARD_MANAGER,
        **{f"+microcoder.{key}": values[key] for key in values if getattr(settings, key) != getattr(usual, key)},
    }


def _run(config: TrainConfig, devices: Devices, place: Place) -> dict[str, Any]:
    resume = place.resume_step
    return {
        "trainer.device": devices.kind,
        "trainer.nnodes": devices.num_nodes,
        "trainer.n_gpus_per_node": devices.per_node,
        "trainer.total_epochs": 1,
        "trainer.total_training_steps": config.num_steps,
        "trainer.critic_warmup": 0,
        "trainer.save_freq": config.checkpoint.every_steps,
        "trainer.test_freq": config.evaluation.every_steps,
        "trainer.val_before_train": place.validates_first,
        "trainer.default_local_dir": str(staging_folder(place.run)),
        "trainer.experiment_name": place.run.root.name,
        "trainer.resume_mode": "resume_path" if resume else "disable",
        **({"trainer.resume_from_path": str(state_folder(place.run, resume))} if resume else {}),
        f"{MODEL}.path": place.model_folder,
    }


def _chosen(config: TrainConfig, devices: Devices, place: Place) -> dict[str, Any]:
    """Return what changes no result, and where verl's defaults do not fit; `[verl]` may differ."""
    asked = config.weights.attn_implementation
    longest = place.longest_prompt_tokens + config.rollout.longest_response_tokens
    budget = config.batch.micro_batch_rollouts * longest
    sampled = config.batch.train_batch_size * config.rollout.num_samples
    chosen: dict[str, Any] = {
        # Logits are never whole: log-probs and entropy come out of a fused kernel, over responses without padding.
        f"{MODEL}.use_remove_padding": asked in (None, "flash_attention_2", "flash_attention_3"),
        f"{MODEL}.use_fused_kernels": True,
        f"{ACTOR}.use_torch_compile": True,
        f"{ACTOR}.strategy": "fsdp2",
        f"{ACTOR}.fsdp_config.strategy": "fsdp2",
        # A pass is as many tokens as micro_batch_rollouts of full length have, however many responses that are.
        f"{ACTOR}.use_dynamic_bsz": True,
        f"{ACTOR}.ppo_max_token_len_per_gpu": budget,
        f"{ROLLOUT_CONFIG}.log_prob_max_token_len_per_gpu": budget,
        "actor_rollout_ref.ref.log_prob_max_token_len_per_gpu": budget,
        f"{ROLLOUT_CONFIG}.agent.default_agent_loop": AGENT_LOOP,
        f"{ROLLOUT_CONFIG}.load_format": "dummy",
        f"{ROLLOUT_CONFIG}.tensor_model_parallel_size": 1,
        f"{ROLLOUT_CONFIG}.free_cache_engine": True,
        # With a judge each; one worker has any number of responses judged at a time.
        "reward.num_workers": devices.num_nodes if config.evaluator.backend == "ray" else 1,
        "transfer_queue.backend.SimpleStorage.total_storage_size": 4 * max(sampled, config.evaluation.batch_rollouts)
        + 1000,
        "trainer.project_name": config.logging.project,
        "trainer.logger": ["console"],
        "hydra.run.dir": str(place.run.logs.absolute()),
        "hydra.output_subdir": None,
        "+ray_kwargs.ray_init.include_dashboard": False,
        **({"+ray_kwargs.ray_init.address": config.ray.address} if config.ray.address else {}),
    }
    if config.weights.lora is not None:
        chosen[f"{MODEL}.lora.merge"] = True  # the servers get whole weights
    return chosen


def as_literal(value: object) -> str:
    """Return a value as hydra's grammar has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{as_literal(str(key))}:{as_literal(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(as_literal, value)) + "]"
    text = str(value)
    if re.fullmatch(r"[A-Za-z_/.][A-Za-z0-9_./@-]*", text) and text.lower() not in (
        "null",
        "true",
        "false",
        "nan",
        "inf",
    ):
        return text
    return '"' + re.sub(r'(\\*)"', r'\1\1\\"', text) + '"'


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _explain(error: str, folder: str) -> str:
    first = error.strip().splitlines()[0]
    named = re.search(r"Could not override '([^']+)'", error)
    if named is None:
        return f"verl refuses this recipe: {first}"
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(config_dir=folder, version_base=None):
        plain = OmegaConf.to_container(compose(config_name="ppo_trainer"), resolve=False)
    assert isinstance(plain, dict)
    known = list(flatten({str(key): value for key, value in plain.items()}))
    close = difflib.get_close_matches(named[1], known, n=1, cutoff=0.6)
    return f"[verl] {named[1]} is no option of verl 0.9.1; " + (
        f"did you mean {close[0]}?" if close else f'to add it all the same, write "+{named[1]}"'
    )
