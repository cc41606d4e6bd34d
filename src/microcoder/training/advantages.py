"""Rewards of a group -> advantages (paper, equation 2, first factor).

Shapes: `rewards_G` holds the G rewards of one problem's samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

STD_EPSILON = 1e-6


def normalise_group(rewards_G: Sequence[float | None]) -> list[float]:
    """Return (r - mean) / std for each member, by the group's own mean and sample standard deviation (n - 1).

    Unscored members (None) are in neither mean nor std and get 0. A group of equal rewards, or with fewer than
    two scored members, says nothing about which response is better: all zeros.
    """
    scored = [reward for reward in rewards_G if reward is not None]
    if not has_signal(rewards_G):
        return [0.0] * len(rewards_G)
    mean, std = fmean(scored), stdev(scored)
    return [0.0 if reward is None else (reward - mean) / (std + STD_EPSILON) for reward in rewards_G]


def has_signal(rewards_G: Sequence[float | None]) -> bool:
    """Return whether the scored rewards of a group differ: otherwise its advantages are all zero."""
    return len({reward for reward in rewards_G if reward is not None}) > 1
