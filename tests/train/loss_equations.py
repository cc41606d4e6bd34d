"""Policy losses as their papers write them, a response at a time in float64: what both engines are held against."""

from __future__ import annotations

import math

import torch

from microcoder.train.algorithm.losses import (
    BnpoLoss,
    CispoLoss,
    ClippedLoss,
    DapoLoss,
    DppoKlLoss,
    DppoLoss,
    DppoTvLoss,
    DrGrpoLoss,
    DroLoss,
    GeoMeanLoss,
    GpgLoss,
    GrpoLoss,
    GspoLoss,
    Loss,
    LuspoLoss,
    SapoLoss,
    TwoSidedLoss,
    VespoLoss,
)

LOSSES: dict[str, Loss] = {
    "dapo": DapoLoss(),
    "dapo, dual clip": DapoLoss(dual_clip=1.7),
    "grpo": GrpoLoss(kind="grpo"),
    "dr_grpo": DrGrpoLoss(kind="dr_grpo"),
    "bnpo": BnpoLoss(kind="bnpo"),
    # The published clips are so narrow that nearly all made-up ratios would be outside.
    "gspo": GspoLoss(kind="gspo", clip_low=0.2, clip_high=0.3),
    "luspo": LuspoLoss(kind="luspo", clip_low=0.2, clip_high=0.3),
    "cispo": CispoLoss(kind="cispo", max_ratio=1.5),
    "sapo": SapoLoss(kind="sapo"),
    "vespo": VespoLoss(kind="vespo"),
    "gpg": GpgLoss(kind="gpg"),
    "geo_mean": GeoMeanLoss(kind="geo_mean"),
    "dppo_tv": DppoTvLoss(kind="dppo_tv", divergence_low=0.05, divergence_high=0.04, max_ratio=1.3),
    "dppo_kl": DppoKlLoss(kind="dppo_kl", divergence_low=0.02, divergence_high=0.01, max_ratio=1.3),
    "dro": DroLoss(kind="dro", beta=0.3),
}


def policy_loss(
    loss: Loss,
    logps: list[torch.Tensor],
    old: list[torch.Tensor],
    advantages: list[float],
    *,
    counts: list[bool],
    tokens_per_update: float,
    max_response_tokens: int,
) -> torch.Tensor:
    """Return the loss of a batch in one pass; each row is as long as its response.

    Args:
        loss: which, and its options.
        logps: log-probs now.
        old: log-probs when sampled.
        advantages: one a response.
        counts: whether a response's tokens are in the loss at all.
        tokens_per_update: what losses over all tokens are divided by.
        max_response_tokens: L_max.
    """
    rows = [
        token_losses(loss, now, then, advantage) if counted else 0 * now
        for now, then, advantage, counted in zip(logps, old, advantages, counts, strict=True)
    ]
    return reduce_rows(
        loss, rows, counts=counts, tokens_per_update=tokens_per_update, max_response_tokens=max_response_tokens
    )


def reduce_rows(
    loss: Loss, rows: list[torch.Tensor], *, counts: list[bool], tokens_per_update: float, max_response_tokens: int
) -> torch.Tensor:
    """Return the one number that a loss makes of its tokens'."""
    sums, number = torch.stack([row.sum() for row in rows]), len(rows)
    if loss.kind in ("grpo", "gspo", "sapo", "geo_mean"):
        return torch.stack([row.mean() for row in rows]).sum() / number
    if loss.kind == "luspo":
        return sums.sum() / number
    if loss.kind == "dr_grpo":
        return sums.sum() / (number * max_response_tokens)
    if loss.kind == "bnpo":
        return sums.sum() / max(1, sum(len(row) for row, counted in zip(rows, counts, strict=True) if counted))
    return sums.sum() / tokens_per_update


def token_losses(loss: Loss, now: torch.Tensor, then: torch.Tensor, advantage: float) -> torch.Tensor:
    """Return the loss of each token of a response, before any division."""
    ratios = (now - then).exp()
    mean_ratio = (now - then).mean().exp()
    if isinstance(loss, GspoLoss | LuspoLoss):
        return _clip(loss, mean_ratio, advantage).expand(len(now))
    if isinstance(loss, GeoMeanLoss):
        sign = math.copysign(1.0, advantage)
        clipped = (now - then).clamp(-loss.clip_low, loss.clip_high)
        kept = sign * torch.minimum(sign * (now - then), sign * clipped)
        return (-advantage * kept.mean().exp()).expand(len(now))
    if isinstance(loss, ClippedLoss):
        return _clip(loss, ratios, advantage)
    if isinstance(loss, CispoLoss):
        return -ratios.clamp(max=loss.max_ratio).detach() * advantage * now
    if isinstance(loss, SapoLoss):
        tau = loss.temperature_positive if advantage > 0 else loss.temperature_negative
        return -advantage * 4 / tau * torch.sigmoid(tau * (ratios - 1))
    if isinstance(loss, VespoLoss):
        k, weight = (
            (loss.k_positive, loss.lambda_positive) if advantage >= 0 else (loss.k_negative, loss.lambda_negative)
        )
        whole = math.exp((now - then).sum().item())
        return -(math.exp(weight) * whole**k * math.exp(-weight * whole)) * advantage * now
    if isinstance(loss, DroLoss):
        return -advantage * now + loss.beta / 2 * (now - then) ** 2
    if isinstance(loss, DppoLoss):
        may_move = _is_near(loss, now.exp(), then.exp(), upwards=advantage > 0).detach()
        return -ratios.clamp(max=loss.max_ratio).detach() * advantage * now * may_move
    assert isinstance(loss, GpgLoss)
    return -advantage * now


def _is_near(loss: DppoLoss, now: torch.Tensor, then: torch.Tensor, *, upwards: bool) -> torch.Tensor:
    """Whether each token's probability has not gone too far up, or down."""
    if isinstance(loss, DppoTvLoss):
        return now - then <= loss.divergence_high if upwards else then - now <= loss.divergence_low
    divergence = then * (then / now).log() + (1 - then) * ((1 - then) / (1 - now)).log()
    if upwards:
        return (divergence <= loss.divergence_high) | (now <= then)
    return (divergence <= loss.divergence_low) | (now >= then)


def _clip(loss: ClippedLoss, ratios: torch.Tensor, advantage: float) -> torch.Tensor:
    clipped = ratios.clamp(1 - loss.clip_low, 1 + loss.clip_high)
    losses = torch.maximum(-ratios * advantage, -clipped * advantage)
    if isinstance(loss, TwoSidedLoss) and loss.dual_clip is not None and advantage < 0:
        losses = torch.minimum(losses, torch.full_like(losses, -advantage * loss.dual_clip))
    return losses
