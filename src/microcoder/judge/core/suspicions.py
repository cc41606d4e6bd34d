"""Signs in a batch of verdicts that the input is wrong, not the programs.

`find_suspicions` returns a sentence for each, for summaries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from microcoder.judge.core.extract import is_response
from microcoder.judge.core.types import Outcome

_SHARE = 0.2
"""Share of a batch from which a sentence is written.

Well-prompted models leave out a program in a few per cent.
"""
_TELLING = (Outcome.TIME_LIMIT, Outcome.RUNTIME_ERROR, Outcome.COMPILE_ERROR)
"""Outcomes that are suspicious if all programs have the same."""
_LEAST = 5
"""Smallest number of verdicts for which sentences are written."""


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """A program with its outcome."""

    code: str | None
    outcome: str


def find_suspicions(batch: Sequence[ProgramOutcome]) -> list[str]:
    """Return a sentence for each pattern that is unlikely for real answers.

    None for fewer than five verdicts.
    """
    total = len(batch)
    # A few programs may fail alike by chance.
    if total < _LEAST:
        return []
    sentences = []
    num_responses = sum(map(_is_response, batch))
    if num_responses >= _SHARE * total:
        sentences.append(
            f"{num_responses} of {total} do not compile and hold a code fence: "
            "whole responses, given as programs"
        )
    num_without = sum(judged.outcome == Outcome.NO_CODE for judged in batch)
    if num_without >= _SHARE * total:
        sentences.append(
            f"no program was found in {num_without} of {total}: truncated, no closed code block, "
            "or bare programs given as responses (their field is code)"
        )
    first = batch[0].outcome
    is_uniform = all(judged.outcome == first for judged in batch)
    # What was found above explains such outcomes already.
    if not sentences and first in _TELLING and is_uniform:
        sentences.append(
            f"all {total} ended with {first}: limits, input or language may be other than theirs"
        )
    return sentences


def _is_response(judged: ProgramOutcome) -> bool:
    """Whether a program does not compile because it is a whole response."""
    if judged.outcome != Outcome.COMPILE_ERROR or judged.code is None:
        return False
    return is_response(judged.code, "python")
