"""Signs in a batch of verdicts that the input is wrong, not the programs: a sentence for each, for summaries."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from microcoder.judge.core.extract import is_response
from microcoder.judge.core.types import Outcome

_SHARE = 0.2
"""Share of a batch from which a sentence is written; well-prompted models leave out a program in a few per cent."""
_LEAST = 5
"""Smallest batch that is looked at."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A program with its problem and outcome."""

    problem: Hashable
    """Its id, or its tests."""
    code: str | None
    outcome: str


def find_suspicions(batch: Sequence[Judged]) -> list[str]:
    """Return a sentence for each pattern that is unlikely for real answers; none for fewer than five verdicts."""
    if len(batch) < _LEAST:
        return []
    found = []
    responses = sum(
        one.outcome == Outcome.COMPILE_ERROR and one.code is not None and is_response(one.code, "python")
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
    for outcome, why in (
        (Outcome.TIME_LIMIT, "limits too short for these programs, or another way to read the input"),
        (Outcome.RUNTIME_ERROR, "a missing package, or another way to read the input"),
        (Outcome.COMPILE_ERROR, "in another language than their problems, or no programs"),
    ):
        if not found and all(one.outcome == outcome for one in batch):
            found.append(f"all {len(batch)} ended with {outcome.value}: {why}")
    problems = {one.problem for one in batch}
    if len(problems) > 1 and len({one.code for one in batch}) == 1 and batch[0].code is not None:
        found.append(f"one and the same program answers all {len(problems)} problems")
    return found
