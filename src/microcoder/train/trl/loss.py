"""TRL's arguments for a loss."""

from typing import Any

from microcoder.train.algorithm.config import AlgorithmConfig, CispoLoss, ClippedLoss, GspoLoss, LuspoLoss, SapoLoss


def translate_loss(algorithm: AlgorithmConfig) -> dict[str, Any]:
    """Return the arguments of `GRPOConfig` that select a recipe's loss."""
    loss = algorithm.loss
    # GSPO is GRPO's loss with the ratio of the whole response.
    arguments: dict[str, Any] = {
        "loss_type": "grpo" if isinstance(loss, GspoLoss) else loss.kind,
        "importance_sampling_level": "sequence" if isinstance(loss, GspoLoss | LuspoLoss) else "token",
    }
    if isinstance(loss, ClippedLoss):
        arguments |= {"epsilon": loss.clip_low, "epsilon_high": loss.clip_high}
    if isinstance(loss, CispoLoss):
        arguments |= {"epsilon_high": loss.max_ratio}
    if isinstance(loss, SapoLoss):
        arguments |= {
            "sapo_temperature_pos": loss.temperature_positive,
            "sapo_temperature_neg": loss.temperature_negative,
        }
    return arguments
