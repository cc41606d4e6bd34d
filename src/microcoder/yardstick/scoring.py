"""Answers -> figures: how many misses of how many, with an interval, by suite and by flaw class; and speed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from microcoder.yardstick.questions import CaseResult

_Z = 1.959963984540054
"""Of 95 %."""


@dataclass(frozen=True, slots=True)
class Proportion:
    """So many of so many, and the 95 % interval of the share."""

    misses: int
    asked: int
    unsteady: int = 0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, which holds at 0 and at all, too."""
        return wilson_interval(self.misses, self.asked)


def wilson_interval(misses: int, asked: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson 1927); (0, 1) if nothing was asked."""
    if not asked:
        return 0.0, 1.0
    share = misses / asked
    centre = share + _Z * _Z / (2 * asked)
    half = _Z * math.sqrt(share * (1 - share) / asked + _Z * _Z / (4 * asked * asked))
    scale = 1 + _Z * _Z / asked
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def count_misses(results: Iterable[CaseResult]) -> Proportion:
    """Return how many of the results are misses."""
    listed = list(results)
    return Proportion(sum(one.is_miss for one in listed), len(listed), sum(one.is_unsteady for one in listed))


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast right programs are judged, one after another, and what a program without end costs."""

    tests: int
    wall_seconds: float
    cpu_seconds: float
    slowest_seconds: float
    """The longest that one of the right programs took."""
    endless_seconds: float
    """The longest from asking until the verdict on a program that never ends."""
    endless_limit_seconds: float

    @property
    def tests_per_cpu_second(self) -> float | None:
        """Tests in a second of one core; None if the judge computes elsewhere."""
        return self.tests / self.cpu_seconds if self.cpu_seconds > 0 else None


def measure_speed(rights: Sequence[CaseResult], endless: Sequence[CaseResult]) -> Speed:
    """Return the figures of judged speed cases and of those without an end."""
    return Speed(
        tests=sum(len(one.case.tests) for one in rights if not one.is_miss),
        wall_seconds=sum(one.answer.seconds for one in rights),
        cpu_seconds=sum(one.answer.cpu_seconds for one in rights),
        slowest_seconds=max((one.answer.seconds for one in rights), default=0.0),
        endless_seconds=max((one.answer.seconds for one in endless), default=0.0),
        endless_limit_seconds=max((one.case.time_limit_seconds for one in endless), default=0.0),
    )
