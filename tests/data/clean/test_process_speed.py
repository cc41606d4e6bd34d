"""Texts that once cost the square of their length, or more, end like any other."""

from __future__ import annotations

import pytest

from microcoder.data.clean import process
from microcoder.data.clean.bounds import parse_bounds
from microcoder.data.clean.cleaning import clean
from microcoder.data.clean.markup import prose
from microcoder.data.clean.tests import find_flags
from microcoder.data.clean.translation import protect
from microcoder.data.formats.candidates import Candidate, Rejection

LENGTH = 20_000
UNITS = ("9", " ", "\t", "`", "```", "~", "[", "![", "f(", "[a](", "-", "a", "a[", "1.", "100 ", "10^", "<!--")
UNITS += ("<svg>", "<li>", "\\begin{verbatim}", "\\iffalse ", "\\newcommand{\\a}{", "\\item ", "10-5 ", "![](a)", "**")


def candidate(text: str) -> Candidate:
    return Candidate(id="a/1", dataset="a", statement=text, statement_found=text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", UNITS)
def test_a_long_run_ends(unit: str) -> None:
    text = "1 <= " + unit * (LENGTH // len(unit)) + " a"
    for read in (clean, protect, parse_bounds, prose):
        read(text)
    find_flags(candidate(text))


def test_a_page_is_turned_away_before_it_is_read() -> None:
    found = process(candidate("Print the sum. " * 7000))
    assert isinstance(found, Rejection)
    assert (found.stage, found.reason, found.detail) == ("process", "too_long", "105000 characters as found")
