"""The loss of a recipe in TRL's terms: its type, the level of its ratio, its clip, and the entropy term."""

from __future__ import annotations

from typing import Any

from microcoder.train.algorithm.config import AdaptiveEntropy, AlgorithmConfig, EntropyBonus
from microcoder.train.algorithm.losses import (
    CispoLoss,
    ClippedLoss,
    GspoLoss,
    LuspoLoss,
    SapoLoss,
    TwoSidedLoss,
    VespoLoss,
)


def translate_loss(algorithm: AlgorithmConfig) -> dict[str, Any]:
    """Return the arguments of `GRPOConfig` that make a recipe's loss."""
    loss, entropy = algorithm.loss, algorithm.entropy
    # GSPO is GRPO's loss with the ratio of the whole response.
    arguments: dict[str, Any] = {
        "loss_type": "grpo" if isinstance(loss, GspoLoss) else loss.kind,
        "importance_sampling_level": "sequence" if isinstance(loss, GspoLoss | LuspoLoss) else "token",
        "top_entropy_quantile": algorithm.top_entropy_share,
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
    if isinstance(loss, VespoLoss):
        arguments |= {
            "vespo_k_pos": loss.k_positive,
            "vespo_lambda_pos": loss.lambda_positive,
            "vespo_k_neg": loss.k_negative,
            "vespo_lambda_neg": loss.lambda_negative,
        }
    if isinstance(entropy, EntropyBonus):
        arguments |= {"entropy_coef": entropy.coefficient}
    if isinstance(entropy, AdaptiveEntropy):
        arguments |= {
            "use_adaptive_entropy": True,
            "entropy_target": entropy.target,
            "entropy_coef": entropy.coefficient,
            "entropy_coef_delta": entropy.step,
            "entropy_coef_min": entropy.least,
            "entropy_coef_max": entropy.most,
        }
    return arguments
