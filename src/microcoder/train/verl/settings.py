"""Settings of the plug-in: a table `microcoder` beside verl's own, `+microcoder.KEY=VALUE`.

Each key is a table or key of a recipe, mostly under the same name.

Also our advantages as verl's estimators, which leave unscored responses out:
`algorithm.adv_estimator=microcoder_grpo`. verl has no reward of None. A reward function returns nan
instead (`microcoder.integrations.verl` does), which verl's own estimators would spread over the
whole group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from microcoder.judge.core.config import Config, ConfigT
from microcoder.judge.core.errors import ConfigError, TrainingError, explain_fault
from microcoder.train.algorithm.advantages import ADVANTAGES, Advantage
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.algorithm.masking import ConditionalMasking, Masking
from microcoder.train.algorithm.sampling import (
    ConstantTemperature,
    DiversityTemperature,
    LengthStage,
    MismatchConfig,
    Temperature,
)
from microcoder.train.algorithm.selection import ProblemChoice
from microcoder.train.recipe.judge import EvaluatorConfig
from microcoder.train.recipe.recipe import ExtractorConfig, RewardConfig, build_rewards
from microcoder.train.verl.names import MANAGER, REWARD_MANAGER, TRAINER_MODE, TRAINER_MODES

if TYPE_CHECKING:
    import torch
    from omegaconf import DictConfig

ESTIMATORS = "microcoder_"
"""Prefix of our advantages among verl's estimators.

A name in `algorithm.advantages.ADVANTAGES` follows.
"""


class PluginSettings(Config):
    """Settings of the plug-in; defaults are those of `TrainConfig`."""

    seed: int = Field(default=0, ge=0)
    """Seed of the mask's draws, and of sampling where that is seeded."""
    masking: Masking = ConditionalMasking()
    advantage: str | None = None
    """Your own advantage function, in place of algorithm.adv_estimator:
    path/to/file.py:function."""
    advantage_options: dict[str, Any] = Field(default={})
    temperature: Temperature | None = None
    """Sampling temperatures; None: actor_rollout_ref.rollout.temperature, throughout."""
    max_response_tokens: int | None = Field(default=None, ge=1)
    """L_max, from the first step; None: data.max_response_length."""
    validation_response_tokens: int | None = Field(default=None, ge=1)
    """Length limit of validation; None: data.max_response_length."""
    length_stages: tuple[LengthStage, ...] = ()
    problem_choice: ProblemChoice = "uniform"
    mismatch: MismatchConfig | None = None
    """Our correction of sampler mismatch, in place of verl's algorithm.rollout_correction; None:
    verl's, if any."""
    rewards: tuple[RewardConfig, ...] = (RewardConfig(name="all_tests"),)
    extractor: ExtractorConfig = ExtractorConfig()
    evaluator: EvaluatorConfig = EvaluatorConfig()
    """Judge of each of verl's reward workers, or judge services where `backend` names their
    addresses."""
    problems: Path | None = None
    """JSON-lines file of the problems, if rows hold only the id of theirs,
    `extra_info.problem_id`."""
    seeded_sampling: bool = False
    """Give each request a seed, a hash of `seed`, step, problem and sample. vLLM then draws row by
    row: slower."""
    evaluation_seed: int = 1_000_003
    """Seed of validation and probe."""
    run_dir: Path | None = None
    """Folder of metrics, rollouts and probe; None: `microcoder` in trainer.default_local_dir."""

    def build_algorithm(self, adv_estimator: str) -> AlgorithmConfig:
        """Return these settings as a recipe's [algorithm].

        ConfigError if the estimator is not one of ours.
        """
        # verl's own would spread an unscored response over its group.
        known = {f"{ESTIMATORS}{name}": name for name in ADVANTAGES}
        if adv_estimator not in known:
            raise ConfigError(
                f"algorithm.adv_estimator = {adv_estimator} is none of ours; use {', '.join(known)}"
            )
        values = {
            "masking": self.masking,
            "advantage": self.advantage or known[adv_estimator],
            "advantage_options": self.advantage_options,
            # The loss is verl's own.
            "loss": "dapo",
        }
        return _validate(AlgorithmConfig, values)


def read_settings(config: DictConfig) -> PluginSettings:
    """Return the settings in verl's configuration.

    ConfigError for an unknown key or a wrong value.
    """
    from omegaconf import OmegaConf

    table = config.get("microcoder")
    if table is None:
        return PluginSettings()
    return _validate(PluginSettings, OmegaConf.to_container(table, resolve=True))


def _validate(schema: type[ConfigT], values: object) -> ConfigT:
    """Return an object of a config class; ConfigError, by verl's names, for the first fault."""
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in ("microcoder", *first["loc"]))
        raise ConfigError(
            f"{explain_fault(first, key)} (given: {first.get('input')!r:.80})"
        ) from None


def refuse_idle(config: DictConfig, settings: PluginSettings) -> None:
    """Raise ConfigError for options, ours or verl's, that other options make useless or wrong."""
    for fault in _contradictions(config, settings):
        raise ConfigError(fault)


def _contradictions(config: DictConfig, settings: PluginSettings) -> Iterator[str]:
    yield from _find_mode_faults(config, settings)
    yield from _find_estimator_faults(config)
    yield from _find_mismatch_faults(config, settings)
    yield from _find_judge_faults(config, settings)
    yield from _find_choice_faults(config, settings)


_USUAL_MODE = f"trainer.v1.trainer_mode={TRAINER_MODE}"
"""Option of verl that trains step by step."""


def _is_corrected(config: DictConfig) -> bool:
    """Return whether verl's own correction of the mismatch is on."""
    correction = config.algorithm.get("rollout_correction") or {}
    return any(correction.get(name) for name in ("rollout_is", "rollout_rs", "bypass_mode"))


def _find_mode_faults(config: DictConfig, settings: PluginSettings) -> Iterator[str]:
    """Yield options that conflict with the trainer mode, or with our agent loop manager."""
    mode = config.trainer.v1.trainer_mode
    is_async = "async" in str(mode)
    if is_async and not (settings.mismatch or _is_corrected(config)):
        yield (
            f"trainer_mode={mode} learns from responses of older weights, and nothing corrects for "
            "that; add +microcoder.mismatch={} actor_rollout_ref.rollout.calculate_log_probs=True "
            '(in a recipe: drop rollout.mismatch.correction = "off")'
        )
    is_held = isinstance(settings.temperature, ConstantTemperature | DiversityTemperature | None)
    if is_async and not is_held:
        yield (
            f"the temperature changes over the run, and with trainer_mode={mode} a batch holds "
            "responses from before and after, where verl takes log-probs at one temperature; use "
            f"a constant one, or {_USUAL_MODE}"
        )
    if is_async and settings.seeded_sampling:
        yield (
            f"microcoder.seeded_sampling: with trainer_mode={mode} a response that is interrupted "
            "goes on with the random numbers that it began with; leave it out, or use "
            f"{_USUAL_MODE}"
        )
    # Ours is there in what a reward worker reads: the trainer has entered it.
    manager = config.actor_rollout_ref.rollout.agent.get("agent_loop_manager_class")
    if manager not in (None, MANAGER):
        yield (
            f"trainer_mode={TRAINER_MODE} brings an agent loop manager, by which temperature and "
            "limit travel; leave actor_rollout_ref.rollout.agent.agent_loop_manager_class out "
            "(agent loops are free to choose)"
        )


def _find_estimator_faults(config: DictConfig) -> Iterator[str]:
    """Yield options of verl that would change rewards or advantages behind our estimators."""
    algorithm = config.algorithm
    estimator = str(algorithm.adv_estimator)
    if algorithm.use_kl_in_reward:
        yield (
            f"algorithm.use_kl_in_reward changes rewards after {estimator} has looked at them; use "
            "actor_rollout_ref.actor.use_kl_loss=True"
        )
    if not algorithm.get("norm_adv_by_std_in_grpo", True):
        yield (
            f"algorithm.norm_adv_by_std_in_grpo=False does nothing with {estimator}; use "
            f"algorithm.adv_estimator={ESTIMATORS}dr_grpo"
        )


def _find_mismatch_faults(config: DictConfig, settings: PluginSettings) -> Iterator[str]:
    """Yield options that conflict with our correction of the mismatch."""
    if settings.mismatch and _is_corrected(config):
        yield (
            "microcoder.mismatch and algorithm.rollout_correction correct one thing twice; drop one"
        )
    if settings.mismatch and not config.actor_rollout_ref.rollout.calculate_log_probs:
        yield (
            "microcoder.mismatch compares with the sampler's log-probs, which are not asked for; "
            "add actor_rollout_ref.rollout.calculate_log_probs=True"
        )


def _find_judge_faults(config: DictConfig, settings: PluginSettings) -> Iterator[str]:
    """Yield options by which responses are not judged whole, or not by our judge and rewards
    alone."""
    needy = build_rewards(settings.rewards).needs_all_tests
    if needy and settings.evaluator.stop != "never":
        yield (
            f"microcoder.rewards: {needy} looks at every test, but the judge leaves out those "
            "after a failing one; add +microcoder.evaluator.stop=never (judging then takes longer)"
        )
    # 0: verl's own limit.
    limits = [settings.max_response_tokens or 0, settings.validation_response_tokens or 0]
    limits += [stage.max_response_tokens for stage in settings.length_stages]
    longest = config.data.max_response_length
    if max(limits) > longest:
        yield (
            f"microcoder's limit of {max(limits)} tokens is beyond data.max_response_length="
            f"{longest}, where verl cuts; use data.max_response_length={max(limits)}"
        )
    reward = config.reward
    others = (
        reward.custom_reward_function.path,
        reward.sandbox_fusion.url,
        reward.reward_model.enable,
        reward.get("reward_kwargs"),
    )
    if reward.reward_manager.name != REWARD_MANAGER or any(others):
        yield (
            "masks and advantages are decided by verdicts, which "
            f"reward.reward_manager.name={REWARD_MANAGER} gives, and not "
            f"{reward.reward_manager.name}, a reward function, sandbox_fusion or reward_model; use "
            f"{REWARD_MANAGER} alone, and bring a reward of your own by +microcoder.rewards"
        )


def _find_choice_faults(config: DictConfig, settings: PluginSettings) -> Iterator[str]:
    """Yield options that conflict with the active choice of problems."""
    if settings.problem_choice != "active":
        return
    is_filtered = (config.algorithm.get("filter_groups") or {}).get("enable")
    # The mode is ours or verl's: a reward worker reads the latter.
    usual_modes = (TRAINER_MODE, TRAINER_MODES[TRAINER_MODE])
    if is_filtered or config.trainer.v1.trainer_mode not in usual_modes:
        yield (
            "microcoder.problem_choice=active looks at what the step before recorded, and fills a "
            f"step itself; use {_USUAL_MODE} without algorithm.filter_groups, or leave it out"
        )


def estimate(
    advantage: Advantage,
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Sequence[str],
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return advantages and returns, both of shape (responses, tokens); unscored responses get 0.

    Changes `token_level_rewards`: the nan of an unscored response becomes the mean of its group's
    scored responses, or of the batch's if the group has none. So verl reports the means of scored
    responses.
    """
    # The reward is at the last token; the others are 0.
    scores = token_level_rewards.sum(-1)
    is_scored = ~scores.isnan()
    if not is_scored.any():
        raise TrainingError(
            "the sandbox failed on every response of this batch; type: microcoder doctor"
        )
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for row, group in enumerate(index):
        groups[group].append(row)
    advantages = scores.new_zeros(scores.shape)
    for rows in groups.values():
        rewards_G: list[float | None] = []
        for row in rows:
            rewards_G.append(scores[row].item() if is_scored[row] else None)
        advantages[rows] = scores.new_tensor(advantage(rewards_G))
        group_scores = scores[rows][is_scored[rows]]
        if not len(group_scores):
            group_scores = scores[is_scored]
        mean = group_scores.mean().item()
        token_level_rewards[rows] = token_level_rewards[rows].nan_to_num(nan=mean)
    spread = advantages.unsqueeze(-1) * response_mask
    return spread, spread


def register(registry: dict[str, Any]) -> None:
    """Add our advantage estimators to verl's registry, as `microcoder_` and their name."""
    for name, advantage in ADVANTAGES.items():
        # The user may have entered one of this name.
        registry.setdefault(ESTIMATORS + name, partial(estimate, advantage))
