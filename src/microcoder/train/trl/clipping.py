"""TRL's arguments for a loss, and how much of each response's advantage its clip removes (TRL counts only tokens)."""

from typing import Any

import torch

from microcoder.train.algorithm.config import (
    AlgorithmConfig,
    CispoLoss,
    ClippedLoss,
    GspoLoss,
    Loss,
    LuspoLoss,
    SapoLoss,
    TwoSidedLoss,
)


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


def clipped_shares(loss: Loss, log_ratios: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Return the share of each response's plain gradient (of w A) that a loss removes, as a mean over its tokens.

    A clip removes a token's gradient whole, CISPO's bound and SAPO's gate a part of it.

    Args:
        loss: the loss with its options.
        log_ratios: log-probs now minus those when sampled (rows, tokens).
        advantages: one per row.
        mask: 1 at the response's tokens, 0 at padding.
    """
    num_tokens = mask.sum(1, keepdim=True).clamp(min=1)
    if isinstance(loss, GspoLoss | LuspoLoss):
        log_ratios = ((log_ratios * mask).sum(1, keepdim=True) / num_tokens).expand_as(log_ratios)
    ratios, is_credit = log_ratios.exp(), advantages[:, None] > 0
    if isinstance(loss, CispoLoss):
        taken = 1 - (loss.max_ratio / ratios).clamp(max=1)
    elif isinstance(loss, SapoLoss):
        tau = torch.where(is_credit, loss.temperature_positive, loss.temperature_negative)
        gate = torch.sigmoid(tau * (ratios - 1))
        taken = 1 - 4 * gate * (1 - gate)
    else:
        assert isinstance(loss, ClippedLoss)
        bound = loss.dual_clip if isinstance(loss, TwoSidedLoss) and loss.dual_clip else torch.inf
        is_stopped = (ratios < 1 - loss.clip_low) | (ratios > bound)
        taken = torch.where(is_credit, ratios > 1 + loss.clip_high, is_stopped).to(ratios.dtype)
    return (taken * mask).sum(1) / num_tokens[:, 0]
