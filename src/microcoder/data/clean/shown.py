"""Says which tests a statement shows: their answers could be written down, not computed."""

import ast
from collections.abc import Iterator

from microcoder.data.clean.examples import list_calls_in
from microcoder.data.clean.samples import is_sample, samples_of, values_of
from microcoder.data.clean.sections import split
from microcoder.data.formats.assertions import is_claim
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.test_programs import CANDIDATE
from microcoder.data.formats.values import parse_python
from microcoder.judge.core.types import TestCase

_LEAST_VALUES = 4
"""Fewest values of an input that count as shown if they stand side by side in the statement."""
_MOST_SHOWN = 2000
"""Characters of an input; a longer one counts as not shown unless it is among the samples."""


def find_shown(candidate: Candidate) -> tuple[bool, ...]:
    """Return for each test whether the statement shows its input.

    It does if a package lists the test as a sample, if an example or a call in the statement has
    its values, or if its values (four or more) stand in the statement one after the other. A test
    that is a program is shown where all that it asserts is.
    """
    statement = candidate.statement
    known = {given for given, _ in samples_of(split(statement))}
    known |= _values_of_calls(candidate)
    if candidate.assertions is not None:
        return tuple(not any(_list_hidden(candidate, test, known)) for test in candidate.tests)
    # Spaces at both ends, so that only whole values are found in it.
    everything = f" {values_of(statement)} "
    groups = candidate.groups or ("",) * len(candidate.tests)

    def is_shown(given: str, group: str) -> bool:
        if is_sample(group):
            return True
        if len(given) > _MOST_SHOWN:
            return False
        values = values_of(given)
        if values in known:
            return True
        num_values = values.count(" ") + 1
        return num_values >= _LEAST_VALUES and f" {values} " in everything

    return tuple(
        is_shown(test.input, group) for test, group in zip(candidate.tests, groups, strict=True)
    )


def count_hidden(candidate: Candidate) -> int:
    """Return how many tests the statement does not show; of programs each assertion counts."""
    if candidate.assertions is None:
        return len(candidate.tests) - sum(find_shown(candidate))
    known = _values_of_calls(candidate)
    num_hidden = 0
    for test in candidate.tests:
        num_hidden += sum(_list_hidden(candidate, test, known))
    return num_hidden


def _values_of_calls(candidate: Candidate) -> set[str]:
    """Return the values of the calls in a statement."""
    if candidate.fn_name is None:
        return set()
    text = f"{candidate.statement}\n{candidate.starter_code or ''}"
    return {values_of(given) for given in list_calls_in(text, candidate.fn_name)}


def _list_hidden(
    candidate: Candidate,
    test: TestCase,
    known: set[str],
) -> Iterator[bool]:
    """Yield for each thing that a program asserts whether the statement hides it.

    An exception that it asks for is one. A program without any is one thing that is hidden.
    """
    tree = parse_python(test.output)
    claims = [] if tree is None else [node for node in ast.walk(tree) if is_claim(node)]
    if not claims:
        yield True
    for claim in claims:
        inputs = list(_list_inputs(claim, candidate.fn_name or CANDIDATE))
        yield not inputs or not known.issuperset(inputs)


def _list_inputs(claim: ast.AST, fn_name: str) -> Iterator[str]:
    """Yield the values of the function's calls in an assertion."""
    for node in ast.walk(claim):
        match node:
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                if name in (fn_name, CANDIDATE):
                    values = [*args, *(keyword.value for keyword in keywords)]
                    yield values_of(", ".join(map(ast.unparse, values)))
