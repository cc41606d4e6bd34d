"""Verdict -> reward: 1 when every test passed, else 0 (paper, section 2); None when the sandbox failed."""

from __future__ import annotations

from collections.abc import Sequence

from microcoder.types import Verdict


def score_verdict(verdict: Verdict) -> float | None:
    """Return 1.0 for an accepted program, 0.0 for any other, None for a sandbox fault."""
    if not verdict.is_scorable:
        return None
    return 1.0 if verdict.is_accepted else 0.0


def score_verdicts(verdicts: Sequence[Verdict]) -> list[float | None]:
    """Return one reward per verdict, in order."""
    return [score_verdict(verdict) for verdict in verdicts]
