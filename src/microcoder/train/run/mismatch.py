"""Importance weights for different log-probs of sampler and trainer, the same on all engines.

Sampler and trainer compute different log-probs for a token (other kernels, other precision), so
that a plain gradient is that of another distribution. The ratio exp(trainer - sampler) corrects it,
but is noisy, and so is bounded. It is that of a token or of a response:

    truncated importance sampling   https://fengyao.notion.site/off-policy-rl
    IcePop, masked on both sides    arXiv 2510.18855
    by the geometric mean           https://richardli.xyz/rl-collapse
"""

from dataclasses import dataclass

import torch

from microcoder.train.algorithm.sampling import MismatchConfig
from microcoder.train.rollouts import SamplerMismatch


@dataclass(frozen=True, slots=True)
class Correction:
    """Weights of the loss, and the observed ratios of trainer to sampler."""

    weights: torch.Tensor
    """Weights of shape (rows, tokens), or (rows, 1) for whole responses."""
    rows: list[SamplerMismatch]
    """Observed ratios, one entry per response."""


def correct_mismatch(
    trainer_logps: torch.Tensor,
    sampler_logps: torch.Tensor,
    mask: torch.Tensor,
    *,
    settings: MismatchConfig,
) -> Correction:
    """Return the importance weights of a batch of responses, and the observed ratios.

    Args:
        trainer_logps: the trainer's, of the sampled tokens under the weights that sampled them
            (rows, tokens).
        sampler_logps: the sampler's, same shape; NaN where it reported none: such a token's ratio
            is 1.
        mask: 1 at the response's tokens, 0 at padding.
        settings: `correction` must not be "off".
    """
    # Padding has ratio 1, and so has a token without a log-prob of the sampler's.
    is_token = mask.bool()
    differences = torch.nan_to_num(
        torch.where(is_token, trainer_logps - sampler_logps, 0.0), nan=0.0
    )
    # A row of padding alone, which a sampler never gives, would divide by zero.
    num_tokens = is_token.sum(1).clamp(min=1)
    # exp() is taken of a token's difference, of a response's sum, or of its mean.
    if settings.correction == "token":
        logs = differences
    else:
        logs = differences.sum(1, keepdim=True)
    if settings.correction == "geometric":
        logs = logs / num_tokens[:, None]
    ratios = torch.exp(logs)
    lower = settings.lower_threshold
    upper = settings.threshold
    if settings.mode == "truncate":
        weights = ratios.clamp(lower, upper)
    else:
        weights = ratios.masked_fill((ratios < lower) | (ratios > upper), 0.0)

    def mean_over_tokens(values: torch.Tensor) -> list[float]:
        return (torch.where(is_token, values, 0.0).sum(1) / num_tokens).tolist()

    differences_R = mean_over_tokens(differences.abs())
    weights_R = mean_over_tokens(weights)
    rows = []
    for row in zip(differences_R, weights_R, strict=True):
        rows.append(SamplerMismatch(*row))
    return Correction(weights, rows)
