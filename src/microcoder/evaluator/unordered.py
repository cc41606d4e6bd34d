"""Lines or tokens in any order, each as often as expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from microcoder.evaluator.differences import ValueRules, find_difference, stated_tolerance
from microcoder.evaluator.numbers import is_number, without_zero_fraction
from microcoder.evaluator.streams import lines, split, tokens
from microcoder.types import Checker

_MAX_DIGITS = 300
"""Longer integers are compared as text instead of within a tolerance."""

Unit = tuple[str, ...]


def find_unordered_difference(text: str, wanted: str, checker: Checker) -> str:
    """Return a unit of an output that was not expected, or an expected one that is missing; empty if all are there.

    Args:
        text: a normal text (see `streams.normalise`).
        wanted: the expected one.
        checker: by lines or tokens, with or without letter case and a tolerance.
    """
    units = _lines if checker.by == "lines" else _tokens
    expected = Counter(units(wanted, checker.case_sensitive))
    tolerance = stated_tolerance(checker)
    if tolerance is not None:
        num_wanted = expected.total()
        found = list(islice(units(text, checker.case_sensitive), num_wanted + 1))
        if len(found) != num_wanted:
            return (
                f"in any order: expected {num_wanted} {checker.by}, got {'more' if found[num_wanted:] else len(found)}"
            )
        rules = replace(ValueRules(), tolerance=tolerance, is_unordered=True)
        return find_difference(_read(found), _read(expected.elements()), rules)
    for unit in units(text, checker.case_sensitive):
        if not expected[unit]:
            return f"in any order: unexpected {' '.join(unit)!r:.80}"
        expected[unit] -= 1
    missing = next((unit for unit, times in expected.items() if times), None)
    return "" if missing is None else f"in any order: missing {' '.join(missing)!r:.80}"


def _lines(text: str, is_case_sensitive: bool) -> Iterator[Unit]:
    for line in lines(text):
        plain = line if is_case_sensitive else line.casefold()
        found = split(plain)
        yield tuple(map(_canonical, found) if "." in plain else found)


def _tokens(text: str, is_case_sensitive: bool) -> Iterator[Unit]:
    return ((_canonical(token if is_case_sensitive else token.casefold()),) for token in tokens(text))


def _canonical(token: str) -> str:
    """Return one spelling for all spellings of an integer that the chain takes for the same."""
    return without_zero_fraction(token) if "." in token else token


def _read(units: Iterable[Unit]) -> list[object]:
    return [[_value(token) for token in unit] for unit in units]


def _value(token: str) -> object:
    return float(token) if len(token) <= _MAX_DIGITS and is_number(token) else token
