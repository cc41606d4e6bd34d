"""Length penalties on the reward.

Soft overlong penalty (DAPO, arXiv 2503.14476, equation 13), added to the reward:

    R_length(o) = 0                                      |o| <= L_max - L_cache
                  ((L_max - L_cache) - |o|) / L_cache    L_max - L_cache < |o| <= L_max

Stop-properly penalty (ProRL v2; NeMo-RL's `stop_properly_penalty_coef` is the factor), of truncated responses:

    r' = factor r - penalty
"""

from __future__ import annotations

from collections.abc import Callable

from microcoder.types import Rollout

Penalty = Callable[[Rollout, float], float]
"""A rollout and its reward -> the penalty to add, 0 or negative."""


def penalise_nothing(rollout: Rollout, reward: float) -> float:
    """Add nothing."""
    return 0.0


def penalise_length(rollout: Rollout, reward: float, *, max_response_tokens: int, window_tokens: int) -> float:
    """Return the soft overlong penalty of a response: from 0 down to -1 at the limit.

    Args:
        rollout: |o| is the number of its tokens, at most `max_response_tokens`.
        reward: not looked at.
        max_response_tokens: L_max.
        window_tokens: L_cache, at most L_max.
    """
    free_tokens = max_response_tokens - window_tokens
    return min(0, free_tokens - len(rollout.token_ids)) / window_tokens


def penalise_truncation(rollout: Rollout, reward: float, *, factor: float, penalty: float) -> float:
    """Return the stop-properly penalty of a truncated response: (factor - 1) reward - penalty.

    A negative reward is not scaled, which would raise it.
    """
    return (factor - 1) * max(reward, 0.0) - penalty if rollout.is_truncated else 0.0
