"""Progress inside a step: how far the responses of a batch are, and how far its updates are."""

import time
from collections.abc import Callable
from dataclasses import dataclass

SECONDS_BETWEEN_REPORTS = 0.5
"""Least time between two reports of a batch, or of a step's updates."""


@dataclass(frozen=True, slots=True)
class SamplingProgress:
    """Counts of the responses that a call samples, several of them at a time."""

    ended: int
    """Responses that have ended, by an end token or at the length limit."""
    total: int
    """Responses of the call."""
    tokens: int
    """Tokens sampled so far, of all responses."""
    longest: int
    """Tokens of the longest response so far."""
    limit: int
    """Length limit of a response, in tokens."""
    seconds: float
    """Time since the call began."""
    steps: int
    """Steps done; each samples a token for each response that is at work."""
    steps_left: int
    """Steps to come if each response goes on to the limit."""

    @property
    def tokens_per_second(self) -> float:
        """Speed of the call: tokens of all its responses, a second."""
        if self.seconds <= 0:
            return 0.0
        return self.tokens / self.seconds

    @property
    def most_seconds_left(self) -> float | None:
        """Time until all have ended if each goes on to the limit; None if not known yet."""
        if self.ended == self.total:
            return 0.0
        if self.steps == 0:
            return None
        return self.seconds / self.steps * self.steps_left


@dataclass(frozen=True, slots=True)
class UpdateProgress:
    """How far the updates of a step are, in passes: forward and backward over a micro batch."""

    number: int
    """The pass that begins now, from 1."""
    total: int
    """Passes of all the step's updates."""
    seconds: float
    """Time since the first pass began."""


class PassCounter:
    """Counts the passes of each step's updates, and now and then reports one as it begins."""

    def __init__(self, total: int, report: Callable[[UpdateProgress], None]) -> None:
        self._total = total
        self._report = report
        self._num_begun = 0
        self._started = 0.0
        self._reported = 0.0

    def begin_pass(self) -> None:
        """Count a pass; the one after a step's last is the first of the next step."""
        now = time.monotonic()
        if self._num_begun % self._total == 0:
            self._num_begun = 0
            self._started = now
            # The first is no news: short steps are over before anybody reads of them.
            self._reported = now
        self._num_begun += 1
        if now - self._reported < SECONDS_BETWEEN_REPORTS:
            return
        self._reported = now
        self._report(UpdateProgress(self._num_begun, self._total, now - self._started))
