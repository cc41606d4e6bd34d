"""How much each idea of a recipe takes: the dose, as a share of a step's |advantage| before anything was taken.

A masked response of a group in which all rewards are equal loses nothing: its advantage is 0 anyway. So what an idea
does to an update is the advantage that it takes, and not the number of responses that it touches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from microcoder.train.algorithm.advantages import Advantage
from microcoder.train.metrics import ScoredRollout


def list_losses(
    rewards_G: Sequence[float | None], penalties_G: Sequence[float], masked_G: Sequence[bool], advantage: Advantage
) -> list[dict[str, float]]:
    """Return what is taken of each member's advantage, by idea; what takes nothing is left out.

    Args:
        rewards_G: rewards with their length penalties; None is unscored.
        penalties_G: the penalties, 0 or negative.
        masked_G: whether a mask sets the advantage to 0. It takes what the member would have had with all in the
            baseline.
        advantage: the recipe's, from rewards to advantages.
    """
    if not any(penalties_G) and not any(masked_G):
        return [{} for _ in rewards_G]
    whole_G = advantage(rewards_G)
    bare_G = whole_G
    if any(penalties_G):
        bare_G = advantage([None if r is None else r - p for r, p in zip(rewards_G, penalties_G, strict=True)])
    taken_G = (
        {"penalty": bare - whole, "mask": whole if is_masked else 0.0}
        for bare, whole, is_masked in zip(bare_G, whole_G, masked_G, strict=True)
    )
    return [{idea: amount for idea, amount in taken.items() if amount} for taken in taken_G]


def measure_doses(samples: Sequence[ScoredRollout]) -> dict[str, float]:
    """Return what each idea took of a step, as shares of all |advantage| before; by the sign of what was taken.

    `mask_positive` is credit that right answers lost, `mask_negative` blame that wrong ones were spared. Ideas that
    took nothing have no key.
    """
    taken: dict[str, float] = {}
    total = 0.0
    for sample in samples:
        whole = sample.advantage or sample.lost.get("mask", 0.0) or sample.lost.get("mismatch", 0.0)
        total += abs(whole + sample.lost.get("penalty", 0.0))
        for idea, amount in sample.lost.items():
            name = f"{idea}_{'positive' if amount > 0 else 'negative'}"
            taken[name] = taken.get(name, 0.0) + abs(amount)
    return {name: amount / total for name, amount in sorted(taken.items())} if total else {}


def loses_advantage(masked_why: str, lost: Mapping[str, float]) -> bool:
    """Return whether a rollout was masked and had an advantage to lose."""
    return bool(masked_why) and bool(lost.get("mask") or lost.get("mismatch"))
