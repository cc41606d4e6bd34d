"""Our advantages as verl's estimators, which leave unscored responses out: `algorithm.adv_estimator=microcoder_grpo`.

verl has no reward that is none. A reward function says nan in its place (`microcoder.integrations.verl` does), which
verl's own estimators would spread over the whole group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from microcoder.judge.core.errors import TrainingError
from microcoder.train.algorithm.advantages import ADVANTAGES, Advantage
from microcoder.train.verl.settings import ESTIMATORS


def estimate(
    advantage: Advantage,
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Sequence[str],
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return advantages and returns, both of shape (responses, tokens); unscored responses get 0.

    In `token_level_rewards` an unscored response's nan becomes the mean of its group's scored ones (of the batch's,
    where there is none), so that means that verl reports are those of what was scored.
    """
    scores = token_level_rewards.sum(-1)
    is_scored = ~scores.isnan()
    if not is_scored.any():
        raise TrainingError("the sandbox failed on every response of this batch; type: microcoder doctor")
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for row, group in enumerate(index):
        groups[group].append(row)
    advantages = torch.zeros_like(scores)
    for rows in groups.values():
        rewards_G = [scores[row].item() if is_scored[row] else None for row in rows]
        advantages[rows] = scores.new_tensor(advantage(rewards_G))
        known = scores[rows][is_scored[rows]]
        mean = (known if len(known) else scores[is_scored]).mean().item()
        token_level_rewards[rows] = token_level_rewards[rows].nan_to_num(nan=mean)
    spread = advantages.unsqueeze(-1) * response_mask
    return spread, spread


def register(registry: dict[str, Any]) -> None:
    """Enter our advantage estimators into verl's registry by name."""
    for name, advantage in ADVANTAGES.items():
        registry.setdefault(ESTIMATORS + name, partial(estimate, advantage))
