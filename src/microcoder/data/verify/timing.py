"""Seconds that do not differ from run to run: scaled to the reference machine, and rounded up."""

import dataclasses
from collections.abc import Sequence

from microcoder.data.formats.candidates import Candidate
from microcoder.data.verify.evidence import STEP
from microcoder.judge.core.types import Outcome, Record, Verdict

LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT)
"""Outcomes that a busy machine may cause, so that another run may end otherwise."""
_CLOSE_FACTOR = 2.0
"""Factor within which another measurement may fall on the other side of a boundary.

Beside a neighbour on the same core a program takes nearly twice as long.
"""
LIMIT_UNSURE = "limit_unsure"
"""Flag of a problem whose limit another measurement might set lower; the larger one counts."""


class Limits(Record):
    """Limits that were derived from accepted programs."""

    seconds: float
    """CPU seconds per test."""
    memory_mib: int
    is_unsure: bool = False
    """Whether accepted programs take about as long as the boundary between two limits."""


def with_limits(candidate: Candidate, limits: Limits) -> Candidate:
    """Return a candidate with derived limits, and with a flag if they are unsure."""
    flags = candidate.flags
    if limits.is_unsure:
        flags = (*flags, LIMIT_UNSURE)
    return candidate.change(
        "verify",
        STEP,
        "from what accepted programs take",
        time_limit_seconds=limits.seconds,
        memory_limit_mib=limits.memory_mib,
        flags=flags,
    )


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
