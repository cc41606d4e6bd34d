"""What of a verdict may be written down: two builds of the same corpus must give the same bytes.

Seconds, megabytes and addresses differ from run to run, so what is derived from them is rounded up to steps that are
far apart, and what is said of them is left out.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence

from microcoder.types import Outcome, Verdict

LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT)
"""Outcomes that a busy machine may turn into another one."""
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


def at_reference_speed(verdict: Verdict, time_scale: float) -> Verdict:
    """Return a verdict as the reference machine would have given it: its seconds divided by `Judge.time_scale`."""
    tests = tuple(
        dataclasses.replace(
            test, cpu_seconds=test.cpu_seconds / time_scale, wall_seconds=test.wall_seconds / time_scale
        )
        for test in verdict.tests
    )
    return dataclasses.replace(verdict, tests=tests)


def stable_detail(verdict: Verdict) -> str:
    """Return what a verdict says, without what differs from run to run."""
    return "" if verdict.outcome in LIMITS else _ADDRESS.sub("0x...", verdict.detail)


def whole_mebibytes(mebibytes: float) -> int:
    """Return an amount of memory, rounded up to a power of two."""
    return 1 << max(0, math.ceil(math.log2(max(mebibytes, 1.0))))


def round_up(seconds: float, steps: Sequence[float], *, most: float = 0.0) -> float:
    """Return the first step that holds so many seconds; beyond the last one that one, or `most` where it is more."""
    return float(next((step for step in steps if step >= seconds), max(steps[-1], most)))


def is_close(seconds: float, boundary: float, *, factor: float = 1.5) -> bool:
    """Whether another measurement may fall on the other side of a boundary."""
    return boundary / factor < seconds < boundary * factor
