"""The trend of diversity during training, whose steady decline precedes failure (paper, section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import correlation, linear_regression

from microcoder.training.sampling_config import DiversityWatch

STEADINESS = 0.7
"""Correlation of diversity with the step, negative, from which a fall counts as steady."""


@dataclass(frozen=True, slots=True)
class Decline:
    """A falling regression line through the last steps."""

    start: float
    """The line at the window's first step."""
    end: float
    """The line at the window's last step."""
    steps_to_half: int
    """Steps until half of `end` at this rate."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The trend at a step."""

    decline: Decline | None
    """The decline at the last step, if any."""
    num_answered: int
    """Declines answered by a transition so far; the next step is at the last of those temperatures."""


def find_decline(values: Sequence[float | None], *, window_steps: int, min_drop: float) -> Decline | None:
    """Return the steady decline over the last `window_steps` values, or None.

    Steady: a least-squares line loses at least `min_drop` of its level, and follows the values closely (correlation
    below -0.7), so that noise and a single jump are none. Steps without a value are left out; half of the window must
    have one.
    """
    if len(values) < window_steps:
        return None
    points = [(x, y) for x, y in enumerate(values[-window_steps:]) if y is not None]
    if len(points) < max(4, window_steps / 2):
        return None
    xs, ys = zip(*points, strict=True)
    if len(set(ys)) == 1 or correlation(xs, ys) >= -STEADINESS:
        return None
    slope, start = linear_regression(xs, ys)
    end = start + slope * (window_steps - 1)
    if start - end < min_drop * start:
        return None
    return Decline(start=start, end=max(0.0, end), steps_to_half=math.ceil(max(0.0, end) / 2 / -slope))


def follow_trend(diversities: Sequence[float | None], *, watch: DiversityWatch, breaks: Collection[int] = ()) -> Trend:
    """Replay the steps so far: where diversity declined, and how many declines were answered by a transition.

    After a transition, answered or scheduled, the trend is read anew.

    Args:
        diversities: of steps 1, 2, ...; None if a step has none.
        watch: window, threshold and answers.
        breaks: steps at which the schedule itself jumps.
    """
    start, num_answered, decline = 0, 0, None
    for step in range(1, len(diversities) + 1):
        if step in breaks:
            start = step - 1
        decline = find_decline(diversities[start:step], window_steps=watch.window_steps, min_drop=watch.min_drop)
        if decline and num_answered < len(watch.answers):
            num_answered, start = num_answered + 1, step
    return Trend(decline, num_answered)
