"""Signs in a batch of verdicts that the input is wrong, not the programs: a sentence for each, for summaries."""

from collections.abc import Sequence
from dataclasses import dataclass

from microcoder.judge.core.extract import is_response
from microcoder.judge.core.types import Outcome

_SHARE = 0.2
"""Share of a batch from which a sentence is written; well-prompted models leave out a program in a few per cent."""
_TELLING = (Outcome.TIME_LIMIT, Outcome.RUNTIME_ERROR, Outcome.COMPILE_ERROR)
_LEAST = 5
"""Smallest number of verdicts for which sentences are written."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A program with its outcome."""

    code: str | None
    outcome: str


def find_suspicions(batch: Sequence[Judged]) -> list[str]:
    """Return a sentence for each pattern that is unlikely for real answers; none for fewer than five verdicts."""
    if len(batch) < _LEAST:
        return []
    found = []
    responses = sum(
        one.outcome == Outcome.COMPILE_ERROR
        and one.code is not None
        and is_response(one.code, "python")
        for one in batch
    )
    if responses >= _SHARE * len(batch):
        found.append(
            f"{responses} of {len(batch)} do not compile and hold a code fence: whole responses, given as programs"
        )
    without = sum(one.outcome == Outcome.NO_CODE for one in batch)
    if without >= _SHARE * len(batch):
        why = "truncated, no closed code block, or bare programs given as responses (their field is code)"
        found.append(f"no program was found in {without} of {len(batch)}: {why}")
    first = batch[0].outcome
    if not found and first in _TELLING and all(one.outcome == first for one in batch):
        found.append(
            f"all {len(batch)} ended with {first}: limits, input or language may be other than theirs"
        )
    return found
