"""Compares the tests of a problem with the examples in its statement.

`restore_samples` puts a package's samples into its statement, as the judge's page shows them.
"""

import re
from dataclasses import replace

from microcoder.data.clean.sections import Example, Sections, render, split
from microcoder.data.formats.candidates import Candidate

_SAMPLE_GROUPS = ("sample", "example", "public")
"""Beginnings of the names of groups that are shown to solvers."""
_SAMPLE_CHARACTERS = 4_000
"""Most characters, input and output together, of a package's sample in the statement (our choice).

For longer ones the flag `samples_not_shown` is set.
"""
_BRACKETS = r"(?<=[\"'`])[()\[\]{}]+(?=[\"'`])|(?<!\S)(?=\S*[()])[()\[\]{}]{2,}(?!\S)"
"""Brackets that are a value, not punctuation: in quotes, or a word of its own with round ones."""
_VALUE = re.compile(rf"{_BRACKETS}|[^\s,\[\]{{}}()\"'`]+")
_NAME = re.compile(r"\b[^\W\d]\w*\s*=(?!=)\s*")
"""A name before its value, `n = 3`."""


def restore_samples(candidate: Candidate) -> Candidate:
    """Put the package's samples, unless too long, into the statement as its first examples.

    Explanations are kept.
    """
    samples = _list_samples(candidate)
    if candidate.fn_name or not samples:
        return candidate
    fitting = [sample for sample in samples if _num_characters(sample) <= _SAMPLE_CHARACTERS]
    sections = split(candidate.statement)
    statement = candidate.statement
    flags = candidate.flags
    known = {_values(example): example for example in sections.examples}
    added = [sample for sample in fitting if _values(sample) not in known]
    num_added = len(added)
    detail = f"{num_added} of the package's samples put in"
    if num_added:
        # In place of what the statement shows of them; its other examples stay, behind them.
        merged = []
        for sample in fitting:
            example = known.pop(_values(sample), sample)
            merged.append(replace(example, input=sample.input, output=sample.output))
        examples = (*merged, *known.values())
        statement = render(replace(sections, examples=examples))
    num_left_out = len(samples) - len(fitting)
    if num_left_out:
        detail += f", {num_left_out} too long"
        flags = tuple(sorted({*flags, "samples_not_shown"}))
    return candidate.change(
        "process",
        "restore_samples/1",
        detail,
        statement=statement,
        flags=flags,
    )


def _list_samples(candidate: Candidate) -> list[Example]:
    """Return those tests of a package that solvers are shown."""
    samples = []
    # Of other rows there are no groups.
    for test, group in zip(candidate.tests, candidate.groups, strict=False):
        if is_sample(group):
            shown_input = test.input.strip("\n")
            shown_output = test.output.strip("\n")
            samples.append(Example(shown_input, shown_output))
    return samples


def _num_characters(example: Example) -> int:
    return len(example.input) + len(example.output)


def _values(example: Example) -> tuple[str, str]:
    return values_of(example.input), values_of(example.output)


def is_sample(group: str) -> bool:
    """Whether tests of a group are shown to solvers, by its name: `sample`, `example`, `public`."""
    return group.partition("/")[0].lower().startswith(_SAMPLE_GROUPS)


def samples_of(sections: Sections) -> tuple[tuple[str, str], ...]:
    """Return the complete examples as pairs of input and output, by `values_of`."""
    complete = [example for example in sections.examples if example.input and example.output]
    return tuple(_values(example) for example in complete)


def values_of(text: str) -> str:
    """Return the values of an example or a test, in lower case between single spaces.

    Names and brackets are left out; brackets stay if there is nothing else.
    """
    text = _NAME.sub(" ", text)
    values = _VALUE.findall(text)
    if not values:
        values = re.sub(r"[\s,\"'`]", "", text).split()
    return " ".join(values).lower()
