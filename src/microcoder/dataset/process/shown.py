"""Which tests a statement shows: what is in the prompt can be written down in place of a solution."""

from __future__ import annotations

from microcoder.dataset.process.completeness import samples_of, values_of
from microcoder.dataset.process.sections import split
from microcoder.formats.candidates import Candidate

_SAMPLE_GROUPS = ("sample", "example", "public")
_LEAST_VALUES = 4
"""Fewer values stand side by side in a text by chance."""
_MOST_CHARACTERS = 2000
"""Nobody prints a longer input in a statement."""


def is_sample(group: str) -> bool:
    """Whether a package keeps the tests of a group to be shown."""
    return group.partition("/")[0].lower().startswith(_SAMPLE_GROUPS)


def find_shown(candidate: Candidate) -> tuple[bool, ...]:
    """Return for each test whether the statement shows its input.

    That is: a package keeps it among the samples, an example of the statement has its values, or its values (four or
    more) stand in the statement one after the other.
    """
    statement = candidate.statement or candidate.statement_found
    samples = {given for given, _ in samples_of(split(statement))}
    everything = f" {values_of(statement)} "
    groups = candidate.groups or ("",) * len(candidate.tests)

    def is_shown(given: str, group: str) -> bool:
        if is_sample(group):
            return True
        if len(given) > _MOST_CHARACTERS:
            return False
        values = values_of(given)
        return values in samples or (values.count(" ") >= _LEAST_VALUES - 1 and f" {values} " in everything)

    return tuple(is_shown(test.input, group) for test, group in zip(candidate.tests, groups, strict=True))


def count_hidden(candidate: Candidate) -> int:
    """Return how many tests the statement does not show."""
    return len(candidate.tests) - sum(find_shown(candidate))
