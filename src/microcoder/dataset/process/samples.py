"""A package's samples put into its statement, as the judge's page shows them; and which tests a statement shows.

What is in the prompt can be written down in place of a solution.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from microcoder.dataset.process.completeness import samples_of, values_of
from microcoder.dataset.process.sections import Example, Sections, render, split
from microcoder.formats.candidates import Candidate

_SAMPLE_GROUPS = ("sample", "example", "public")
_LEAST_VALUES = 4
"""Fewer values stand side by side in a text by chance."""
_MOST_CHARACTERS = 2000
"""Nobody prints a longer input in a statement."""
_SHARED = 0.6
"""Of the values of an example, from which on it is a copy of a sample (our choice)."""


class Shown(NamedTuple):
    """A statement with its samples."""

    statement: str
    num_added: int
    num_left_out: int
    """Samples that are longer than may be shown."""


def restore_samples(candidate: Candidate, *, max_characters: int) -> Shown:
    """Return the statement with every sample of the package, in order; what it says to explain one stays with it.

    Args:
        candidate: laid out, its tests in one form; groups name the samples.
        max_characters: of input and output together; a longer sample is not shown.
    """
    samples = [
        Example(test.input.strip("\n"), test.output.strip("\n"))
        for test, group in zip(candidate.tests, candidate.groups, strict=False)
        if is_sample(group)
    ]
    if candidate.fn_name or not samples:
        return Shown(candidate.statement, 0, 0)
    fitting = [one for one in samples if len(one.input) + len(one.output) <= max_characters]
    sections = split(candidate.statement)
    known = {_values(one) for one in sections.examples}
    added = [one for one in fitting if _values(one) not in known]
    left_out = len(samples) - len(fitting)
    if not added:
        return Shown(candidate.statement, 0, left_out)
    return Shown(render(replace(sections, examples=_merge(fitting, sections))), len(added), left_out)


def _merge(samples: list[Example], sections: Sections) -> tuple[Example, ...]:
    """Put the samples in place of what the statement shows of them.

    An example of the statement that is none of the samples stays, behind them; one that is a garbled copy leaves its
    explanation to the sample of its number.
    """
    shown = {_values(one): one for one in sections.examples}
    merged = []
    for one in samples:
        same = shown.pop(_values(one), None)
        merged.append(one if same is None else replace(same, input=one.input, output=one.output))
    others = []
    for number, one in enumerate(sections.examples):
        if shown.get(_values(one)) is not one:
            continue
        if not _is_copy(one, samples):
            others.append(one)
        elif number < len(merged) and not merged[number].explanation:
            merged[number] = replace(one, input=merged[number].input, output=merged[number].output)
    return (*merged, *others)


def _is_copy(example: Example, samples: list[Example]) -> bool:
    """Whether most of what an example holds is in one of the samples, or it lacks a side."""
    if not example.input.strip() or not example.output.strip():
        return True
    said = set(" ".join(_values(example)).split())
    return any(len(said & set(" ".join(_values(one)).split())) >= _SHARED * len(said) for one in samples)


def _values(example: Example) -> tuple[str, str]:
    return values_of(example.input), values_of(example.output)


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
