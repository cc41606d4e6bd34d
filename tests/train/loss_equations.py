"""Policy losses as their papers write them, a response at a time in float64:
what both engines are held against.
"""

from collections.abc import Sequence
from typing import Any

import torch

from microcoder.train.algorithm.config import (
    CispoLoss,
    ClippedLoss,
    DapoLoss,
    DrGrpoLoss,
    GrpoLoss,
    GspoLoss,
    Loss,
    LuspoLoss,
    SapoLoss,
)

LOSSES: dict[str, Loss] = {
    "dapo": DapoLoss(),
    "grpo": GrpoLoss(kind="grpo"),
    "dr_grpo": DrGrpoLoss(kind="dr_grpo"),
    # The published clips are so narrow that nearly all made-up ratios would be outside.
    "gspo": GspoLoss(kind="gspo", clip_low=0.2, clip_high=0.3),
    "luspo": LuspoLoss(kind="luspo", clip_low=0.2, clip_high=0.3),
    "cispo": CispoLoss(kind="cispo", max_ratio=1.5),
    "sapo": SapoLoss(kind="sapo"),
}


def policy_loss(
    loss: Loss,
    logps: list[torch.Tensor],
    old: list[torch.Tensor],
    advantages: list[float],
    *,
    counts: list[bool],
    kl_coefficient: float = 0.0,
    **divided: Any,
) -> torch.Tensor:
    """Return the loss of a batch in one pass, with its KL term to `old`;
    each row is as long as its response.

    Args:
        loss: which, and its options.
        logps: log-probs now.
        old: log-probs when sampled.
        advantages: one a response.
        counts: whether a response's tokens are in the loss at all.
        kl_coefficient: of the KL term.
        divided: as of `reduce_rows`.
    """
    rows = []
    for now, then, advantage in zip(logps, old, advantages, strict=True):
        rows.append(
            token_losses(loss, now, then, advantage)
            + kl_coefficient * ((then - now).exp() - (then - now) - 1)
        )
    kept = []
    for row, counted in zip(rows, counts, strict=True):
        kept.append(row if counted else 0 * row)
    return reduce_rows(loss, kept, **divided)


def reduce_rows(
    loss: Loss,
    rows: list[torch.Tensor],
    *,
    tokens_per_update: float,
    max_response_tokens: int,
) -> torch.Tensor:
    """Return the one number that a loss makes of its tokens'.

    Losses over all tokens are divided by `tokens_per_update`; `max_response_tokens` is L_max.
    """
    sums = torch.stack([row.sum() for row in rows])
    number = len(rows)
    if loss.kind in ("grpo", "gspo", "sapo"):
        return torch.stack([row.mean() for row in rows]).sum() / number
    if loss.kind == "luspo":
        return sums.sum() / number
    if loss.kind == "dr_grpo":
        return sums.sum() / (number * max_response_tokens)
    return sums.sum() / tokens_per_update


def token_losses(
    loss: Loss,
    now: torch.Tensor,
    then: torch.Tensor,
    advantage: float,
) -> torch.Tensor:
    """Return the loss of each token of a response, before any division."""
    ratios = (now - then).exp()
    mean_ratio = (now - then).mean().exp()
    if isinstance(loss, GspoLoss | LuspoLoss):
        return _clip(loss, mean_ratio, advantage).expand(len(now))
    if isinstance(loss, ClippedLoss):
        return _clip(loss, ratios, advantage)
    if isinstance(loss, CispoLoss):
        return -ratios.clamp(max=loss.max_ratio).detach() * advantage * now
    assert isinstance(loss, SapoLoss)
    tau = loss.temperature_positive if advantage > 0 else loss.temperature_negative
    return -advantage * 4 / tau * torch.sigmoid(tau * (ratios - 1))


def _clip(loss: ClippedLoss, ratios: torch.Tensor, advantage: float) -> torch.Tensor:
    clipped = ratios.clamp(1 - loss.clip_low, 1 + loss.clip_high)
    return torch.maximum(-ratios * advantage, -clipped * advantage)


Rows = list[torch.Tensor]


def read_responses(
    model: Any,
    prompts: Sequence[torch.Tensor],
    responses: Sequence[torch.Tensor],
    temperature: float,
) -> tuple[Rows, Rows]:
    """Return log-probs and entropies of each response's tokens,
    one at a time and without padding.
    """
    logps = []
    entropies = []
    for prompt, response in zip(prompts, responses, strict=True):
        logits = model(input_ids=torch.cat([prompt, response])[None]).logits[
            0, len(prompt) - 1 : -1
        ]
        shares = torch.log_softmax(logits / temperature, -1)
        logps.append(shares.gather(-1, response[:, None])[:, 0])
        entropies.append(-(shares.exp() * shares).sum(-1))
    return logps, entropies


def largest_change(logps: Rows, old: Rows) -> float:
    """Return how far a ratio is from one."""
    changes = []
    for now, then in zip(logps, old, strict=True):
        changes.append(float((now.detach() - then).exp().sub(1).abs().max()))
    return max(changes)


def gradient_error(model: Any, exact: Any) -> float:
    """Return how far the gradient of a model is from that of one in float64,
    in terms of the latter's length.
    """
    theirs = _gradient(exact)
    return float((_gradient(model) - theirs).norm() / theirs.norm())


def update_both(model: Any, exact: Any, length: float) -> None:
    """Move both models by so much against the gradient of the exact one, to the same weights."""
    rate = length / _gradient(exact).norm()
    with torch.no_grad():
        for weight, same in zip(model.parameters(), exact.parameters(), strict=True):
            weight -= (rate * same.grad).to(weight.dtype)
            same.copy_(weight)


def _gradient(model: Any) -> torch.Tensor:
    named = sorted((name, weight.grad) for name, weight in model.named_parameters())
    return torch.cat([grad.flatten().double() for _, grad in named])
