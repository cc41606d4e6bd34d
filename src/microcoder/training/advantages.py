"""Rewards of a group -> advantages (paper, equation 2, first factor; Dr. GRPO for the variant without std).

    GRPO      A_i = (r_i - mean(r)) / (std(r) + 1e-6)     (paper, equation 2; DeepSeekMath, arXiv 2402.03300)
    Dr. GRPO  A_i =  r_i - mean(r)                         (arXiv 2503.20783, section 3.2)

std is the sample standard deviation (n - 1), and 1e-6 is verl's epsilon; TRL's own is 1e-4.
Shapes: `rewards_G` holds the G rewards of one problem's samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, stdev

STD_EPSILON = 1e-6

Advantage = Callable[[Sequence[float | None]], list[float]]
"""Turns the rewards of a group into advantages."""


def normalise_group(rewards_G: Sequence[float | None]) -> list[float]:
    """Return (r - mean) / std for each member, by the group's own mean and standard deviation: GRPO.

    Unscored members (None) are in neither mean nor std and get 0. A group of equal rewards, or with fewer than
    two scored members, says nothing about which response is better: all zeros.
    """
    if not has_signal(rewards_G):
        return [0.0] * len(rewards_G)
    std = stdev(reward for reward in rewards_G if reward is not None)
    return [advantage / (std + STD_EPSILON) for advantage in centre_group(rewards_G)]


def centre_group(rewards_G: Sequence[float | None]) -> list[float]:
    """Return r - mean for each member, by the group's own mean: Dr. GRPO.

    Dividing by std gives groups that nearly all pass, or nearly all fail, more weight than the others; this does
    not. Unscored members (None) are not in the mean and get 0.
    """
    if not has_signal(rewards_G):
        return [0.0] * len(rewards_G)
    mean = fmean(reward for reward in rewards_G if reward is not None)
    return [0.0 if reward is None else reward - mean for reward in rewards_G]


def has_signal(rewards_G: Sequence[float | None]) -> bool:
    """Return whether the scored rewards of a group differ: otherwise its advantages are all zero."""
    return len({reward for reward in rewards_G if reward is not None}) > 1
