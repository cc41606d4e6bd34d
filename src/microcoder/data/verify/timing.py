"""Seconds that do not differ from run to run: scaled to the reference machine, and rounded up."""

import dataclasses
from collections.abc import Sequence

from microcoder.judge.core.types import Outcome, Verdict

LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT)
"""Outcomes that a busy machine may cause, so that another run may end otherwise."""
_CLOSE_FACTOR = 1.5
"""Factor within which another measurement may fall on the other side of a boundary."""


def at_reference_speed(verdict: Verdict, time_scale: float) -> Verdict:
    """Return a verdict as the reference machine would have given it.

    Its seconds are divided by `Judge.time_scale`.
    """
    tests = []
    for test in verdict.tests:
        scaled = dataclasses.replace(
            test,
            cpu_seconds=test.cpu_seconds / time_scale,
            wall_seconds=test.wall_seconds / time_scale,
        )
        tests.append(scaled)
    return dataclasses.replace(verdict, tests=tuple(tests))


def round_up(
    seconds: float,
    steps: Sequence[float],
    *,
    most: float = 0.0,
) -> float:
    """Return the first step that is not below so many seconds.

    If all steps are below, return the last step, or `most` if that is larger.
    """
    # Steps are sorted.
    for step in steps:
        if step >= seconds:
            return float(step)
    return float(max(steps[-1], most))


def is_close(seconds: float, boundary: float) -> bool:
    """Whether a time is close to a boundary: another measurement may fall on its other side."""
    return boundary / _CLOSE_FACTOR < seconds < boundary * _CLOSE_FACTOR
