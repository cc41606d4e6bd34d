"""Overlong soft penalty: a reward that falls over the last tokens before the limit (DAPO, arXiv 2503.14476, eq. 13).

R_length(o) = 0                                      |o| <= L_max - L_cache
              ((L_max - L_cache) - |o|) / L_cache    L_max - L_cache < |o| <= L_max
"""

from __future__ import annotations


def penalise_length(num_tokens: int, *, max_response_tokens: int, window_tokens: int) -> float:
    """Return what is added to the reward of a response of `num_tokens`: 0 down to -1 at the limit.

    Args:
        num_tokens: |o|, at most `max_response_tokens`.
        max_response_tokens: L_max.
        window_tokens: L_cache, at most L_max.
    """
    free_tokens = max_response_tokens - window_tokens
    return min(0, free_tokens - num_tokens) / window_tokens
