"""An advantage of your own: `algorithm.advantage = "advantage.py:clipped"` in a recipe."""

from collections.abc import Sequence
from statistics import fmean


def clipped(rewards_G: Sequence[float | None], *, most: float = 1.0) -> list[float]:
    """Return r - mean of the group, at most `most` from zero.

    None is a response that nothing is known of: it gets 0 and does not move the mean.
    """
    known = [reward for reward in rewards_G if reward is not None]
    mean = fmean(known) if known else 0.0
    advantages = []
    for reward in rewards_G:
        if reward is None:
            advantages.append(0.0)
        else:
            advantages.append(max(-most, min(most, reward - mean)))
    return advantages
