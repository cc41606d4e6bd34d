"""Finds texts that a program must give back and that its statement never names.

"Check whether the string is binary", and the tests expect "Yes": who returns True, or "yes, it is",
fails for ever. Such a text is the same for several inputs, so it is not made from one of them.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.values import parse_python, read_json
from microcoder.judge.core.types import TestCase

FLAG = "unstated_output"
"""Flag of a problem whose tests expect such a text."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_NO_WORD = re.compile(r"[\W_]+")
_LEAST_INPUTS = 2
"""Fewest inputs with one text: a text of one input may be made from it."""
_LEAST_SHARE = 1 / 3
"""Least share of the tests that expect such a text.

Of a hundred short words that are made from inputs, two may be the same by chance.
"""
_MOST_CHARACTERS = 2000
"""Characters of an input or an output; longer ones are not looked at."""


def has_unstated_text(candidate: Candidate) -> bool:
    """Whether a third of the tests expect texts, each of several inputs, that nothing names."""
    # Once: tests that are programs are parsed for it.
    texts = list(_list_texts(candidate))
    inputs: defaultdict[str, list[str]] = defaultdict(list)
    for given, text in texts:
        if len(given) <= _MOST_CHARACTERS and len(text) <= _MOST_CHARACTERS:
            inputs[text].append(given)
    stated = _read_stated(candidate.statement)
    num_repeated = 0
    for text, given in inputs.items():
        if len(set(given)) >= _LEAST_INPUTS and _is_unstated(text, stated, given):
            num_repeated += len(given)
    return num_repeated > 0 and num_repeated >= _LEAST_SHARE * len(texts)


class _Stated(NamedTuple):
    """What a statement names."""

    squeezed: str
    words: frozenset[str]


def _read_stated(statement: str) -> _Stated:
    """Return what a statement names: read once, since it may be long and the texts many."""
    return _Stated(_squeeze(statement), frozenset(_WORD.findall(statement.lower())))


def _is_unstated(text: str, stated: _Stated, given: list[str]) -> bool:
    """Whether neither a statement nor the inputs of a text have it, or all of its words."""
    words = {word.lower() for word in _WORD.findall(text)}
    if not words:
        return False
    squeezed = _squeeze(text)
    if squeezed in stated.squeezed or any(squeezed in _squeeze(item) for item in given):
        return False
    in_inputs = _WORD.findall(" ".join(given).lower())
    return not words <= stated.words.union(in_inputs)


def _squeeze(text: str) -> str:
    return _NO_WORD.sub("", text.lower())


def _list_texts(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yield the tests that expect a text: input and text."""
    for test in candidate.tests:
        if candidate.assertions is not None:
            yield from _texts_of_program(test)
        elif candidate.fn_name is None:
            yield test.input, test.output.strip()
        else:
            try:
                value = read_json(test.output)
            except ValueError:
                continue
            if isinstance(value, str):
                yield test.input, value


def _texts_of_program(test: TestCase) -> Iterator[tuple[str, str]]:
    """Yield the texts that assertions of a program compare something with."""
    tree = parse_python(test.output)
    if tree is None:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Assert(
                test=ast.Compare(
                    left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=str(text))]
                )
            ):
                # A chain of hundreds of calls is too deep to be written again.
                with suppress(RecursionError):
                    yield ast.unparse(left), text
