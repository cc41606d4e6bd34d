"""Rewards of a group -> advantages: the first factor of the paper's equation 2, and alternatives.

    grpo      A_i = (r_i - mean(r)) / (std(r) + 1e-6)
    dr_grpo   A_i =  r_i - mean(r)
    rloo      A_i =  r_i - mean(r without r_i)
    maxrl     A_i = (r_i - mean(r)) / mean(r)

grpo is the paper's equation 2, and DeepSeekMath's (arXiv 2402.03300). dr_grpo is of arXiv
2503.20783, section 3.2, rloo of arXiv 2402.14740, and maxrl of arXiv 2602.02710. std is the sample
standard deviation (n - 1), and 1e-6 is verl's epsilon; TRL's own is 1e-4.

In all of them unscored members (None) are in neither mean nor std and get 0. A group of equal
rewards, or with fewer than two scored members, is all zeros: it does not say which response is
better.

To add one: a function here, its name in `ADVANTAGES`. Shapes: `rewards_G` holds the G rewards of
one problem's samples.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any

from microcoder.judge.core.errors import TrainingError
from microcoder.judge.core.extensions import Extension, load_extension
from microcoder.train.rollouts import has_signal

STD_EPSILON = 1e-6
"""Added to a group's standard deviation, as in verl."""

Advantage = Callable[[Sequence[float | None]], list[float]]
"""A function from the rewards of a group to its advantages."""


def normalise_group(rewards_G: Sequence[float | None]) -> list[float]:
    """Return (r - mean) / std for each member, by the group's own mean and std: GRPO."""
    if not has_signal(rewards_G):
        return [0.0] * len(rewards_G)
    std = stdev(reward for reward in rewards_G if reward is not None)
    return [advantage / (std + STD_EPSILON) for advantage in centre_group(rewards_G)]


def centre_group(rewards_G: Sequence[float | None]) -> list[float]:
    """Return r - mean for each member, by the group's own mean: Dr. GRPO.

    Dividing by std gives groups that nearly all pass, or nearly all fail, more weight than the
    others; this does not.
    """
    if not has_signal(rewards_G):
        return [0.0] * len(rewards_G)
    mean = fmean(reward for reward in rewards_G if reward is not None)
    advantages_G = []
    for reward in rewards_G:
        advantages_G.append(0.0 if reward is None else reward - mean)
    return advantages_G


def leave_one_out(rewards_G: Sequence[float | None]) -> list[float]:
    """Return r - mean of the other members' rewards: RLOO, G / (G - 1) times Dr. GRPO's."""
    # r - mean of the others = (r - mean of all) * n / (n - 1).
    scored = sum(reward is not None for reward in rewards_G)
    return [advantage * scored / max(1, scored - 1) for advantage in centre_group(rewards_G)]


def weigh_by_mean(rewards_G: Sequence[float | None]) -> list[float]:
    """Return (r - mean) / mean for each member: MaxRL.

    Hard problems weigh as in maximum likelihood.

    Raises:
        TrainingError: the mean reward is not positive, which negative rewards can cause.
    """
    if not has_signal(rewards_G):
        return [0.0] * len(rewards_G)
    mean = fmean(reward for reward in rewards_G if reward is not None)
    if mean <= 0:
        raise TrainingError(
            'algorithm.advantage = "maxrl" divides by the mean reward of a group, and '
            f"{list(rewards_G)} has {mean:g}; use rewards that are 0 or more, or "
            'algorithm.advantage = "grpo"'
        )
    return [advantage / mean for advantage in centre_group(rewards_G)]


ADVANTAGES: Mapping[str, Advantage] = {
    "grpo": normalise_group,
    "dr_grpo": centre_group,
    "rloo": leave_one_out,
    "maxrl": weigh_by_mean,
}
"""Name in a recipe -> built-in advantage function."""


def load_advantage(name: str, options: Mapping[str, Any]) -> Extension:
    """Return an advantage function, built-in or user-defined.

    ConfigError if there is none of that name.
    """
    return load_extension("advantage", name, builtins=ADVANTAGES, options=options)


def build_advantage(name: str, options: Mapping[str, Any]) -> Advantage:
    """Return a recipe's function from rewards to advantages.

    ConfigError as of `load_advantage`.
    """
    extension = load_advantage(name, options)
    # Only a function of the user's own may return something else than it should.
    if extension.source is None:
        return partial(extension.function, **extension.options)
    return partial(_ask_own, extension)


def _ask_own(extension: Extension, rewards_G: Sequence[float | None]) -> list[float]:
    """Call a user-defined function `(rewards_G) -> advantages_G` and check its result."""
    advantages_G = extension(list(rewards_G))
    if not isinstance(advantages_G, Sequence) or len(advantages_G) != len(rewards_G):
        raise extension.fault(
            f"returned {advantages_G!r:.80} for {len(rewards_G)} rewards; return a list with one "
            "number for each"
        )
    for reward, advantage in zip(rewards_G, advantages_G, strict=True):
        if not _is_finite_number(advantage):
            raise extension.fault(
                f"returned {advantage!r:.80} as an advantage; return finite numbers"
            )
        # Where nothing is known of a response, nothing can be learnt from it.
        if reward is None and advantage:
            raise extension.fault(
                f"returned {advantage:g} where the reward is None: that response is unscored, or "
                "masked out of the baseline; return 0"
            )
    return [float(advantage) for advantage in advantages_G]


def _is_finite_number(value: object) -> bool:
    """Return whether a value is a finite number; a bool, which Python counts as one, is not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
