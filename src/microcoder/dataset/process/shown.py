"""Which tests a statement shows: what is in the prompt can be written down in place of a solution."""

from __future__ import annotations

from microcoder.dataset.process.completeness import samples_of, values_of
from microcoder.dataset.process.sections import split
from microcoder.formats.candidates import Candidate

_LEAST_VALUES = 4
"""Fewer values stand side by side in a text by chance."""
_MOST_CHARACTERS = 2000
"""Nobody prints a longer input in a statement."""


def find_shown(candidate: Candidate) -> tuple[bool, ...]:
    """Return for each test whether the statement shows its input.

    That is: a package keeps it among the samples, an example of the statement has its values, or its values (four or
    more) stand in the statement one after the other.
    """
    sections = split(candidate.statement)
    samples = {given for given, _ in samples_of(sections)}
    everything = f" {values_of(candidate.statement)} "
    groups = candidate.groups or ("",) * len(candidate.tests)

    def is_shown(given: str, group: str) -> bool:
        if group.startswith("sample"):
            return True
        if len(given) > _MOST_CHARACTERS:
            return False
        values = values_of(given)
        return values in samples or (values.count(" ") >= _LEAST_VALUES - 1 and f" {values} " in everything)

    return tuple(is_shown(test.input, group) for test, group in zip(candidate.tests, groups, strict=True))


def count_hidden(candidate: Candidate) -> int:
    """Return how many tests the statement does not show."""
    return len(candidate.tests) - sum(find_shown(candidate))
