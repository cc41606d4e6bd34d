"""The loss of a recipe in verl's terms: the function that computes it, how it is summed up, and the entropy term.

verl's own words mislead in two places. Its CISPO has a lower clip, which the paper's has not: 1 - 1 is no bound. Its
`gspo` is summed up by `loss_agg_mode`: the mean over responses of sums over tokens is LUSPO.
"""

from __future__ import annotations

from typing import Any

from microcoder.errors import ConfigError
from microcoder.training.algorithm_config import EntropyBonus
from microcoder.training.config import TrainConfig
from microcoder.training.engines.verl.devices import Devices
from microcoder.training.loss_config import (
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
    """Refuse a loss that verl computes otherwise than it is meant.

    Raises:
        ConfigError: what it is, and what to type.
    """
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
