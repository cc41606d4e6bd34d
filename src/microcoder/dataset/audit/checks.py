"""What can be seen of a problem without running anything."""

from __future__ import annotations

import re
from collections.abc import Iterator

from microcoder.dataset.audit.findings import Finding
from microcoder.dataset.process.completeness import find_flags, samples_of, values_of
from microcoder.dataset.process.sections import split
from microcoder.formats.candidates import Candidate

FEW_TESTS = 5
CHECKED = ("no_tests", "only_shown_tests", "few_tests", "needs_checker", "wrong_bounds", "no_licence")
_LESS = r"(?:<=?|≤|⩽|&lt;=?|\\leq?(?:slant)?)"
_LOST_POWER = re.compile(
    rf"{_LESS}\s*\$?`?\s*(?:\d+\s*(?:[*x\u00d7]|\\cdot|\\times)\s*)?(10(?:[4-9]|1[0-8]))(?![\d.,^]|\s*\^)"
    rf"|(-10(?:[4-9]|1[0-8]))(?![\d.,^])\s*`?\$?\s*{_LESS}"
)
"""LeetCode texts that lost their superscripts say 105 for ten to the fifth; a true bound of 104 to 109 is rare."""
_SAMPLE_GROUPS = ("sample", "public")


def check(candidate: Candidate) -> Iterator[Finding]:
    """Yield what is wrong with a problem, by its record alone."""
    if not candidate.licence:
        yield Finding(kind="no_licence")
    if lost := find_lost_power(candidate.statement or candidate.statement_found):
        yield Finding(kind="wrong_bounds", detail=lost)
    if "many_answers" in find_flags(candidate):
        yield Finding(kind="needs_checker", detail=f"compared by {candidate.checker.type}")
    if not candidate.tests:
        yield Finding(kind="no_tests")
        return
    if are_all_shown(candidate):
        yield Finding(kind="only_shown_tests", detail=f"{len(candidate.tests)} tests")
    if len(candidate.tests) < FEW_TESTS:
        yield Finding(kind="few_tests", detail=f"{len(candidate.tests)} tests")


def find_lost_power(text: str) -> str:
    """Return the first bound whose power lost its superscript, with what stands around it; empty where none did."""
    found = _LOST_POWER.search(text)
    return " ".join(text[max(0, found.start() - 30) : found.end() + 5].split()) if found else ""


def are_all_shown(candidate: Candidate) -> bool:
    """Whether every test is one of the statement's examples."""
    if candidate.groups and all(group.split("/")[0] in _SAMPLE_GROUPS for group in candidate.groups):
        return True
    shown = {given for given, _ in samples_of(split(candidate.statement or candidate.statement_found))}
    return bool(shown) and all(values_of(test.input) in shown for test in candidate.tests)
