"""Progress of sampling: how far the responses of a batch have come, while they are sampled."""

from dataclasses import dataclass

SECONDS_BETWEEN_REPORTS = 0.5
"""Least time between two reports of a batch."""


@dataclass(frozen=True, slots=True)
class SamplingProgress:
    """Counts of the responses that are being sampled at one time."""

    ended: int
    """Responses that have ended, by an end token or at the length limit."""
    total: int
    """Responses of the batch."""
    tokens: int
    """Tokens sampled in this batch so far, of all responses."""
    longest: int
    """Tokens of the longest response so far."""
    limit: int
    """Length limit of a response, in tokens."""
    seconds: float
    """Time since the batch began."""
    steps: int
    """Tokens sampled for each unended response since the batch began."""

    @property
    def tokens_per_second(self) -> float:
        """Speed of the batch: tokens of all its responses, a second."""
        if self.seconds <= 0:
            return 0.0
        return self.tokens / self.seconds

    @property
    def most_seconds_left(self) -> float | None:
        """Time until the batch has ended, if one of its responses reaches the limit.

        None if not known yet.
        """
        if self.ended == self.total:
            return 0.0
        if self.steps == 0:
            return None
        return self.seconds / self.steps * max(0, self.limit - self.longest)
