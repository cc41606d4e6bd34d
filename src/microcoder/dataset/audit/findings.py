"""What an audit looks for, what it writes down of each row, and what can be seen of a problem without running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pydantic import Field

from microcoder.dataset.process.completeness import find_flags
from microcoder.dataset.process.samples import count_hidden
from microcoder.dataset.process.stage import RESTORE_POWERS
from microcoder.formats.candidates import Candidate
from microcoder.types import Record

FEW_TESTS = 5
CHECKED = ("no_tests", "only_shown_tests", "few_tests", "needs_checker", "wrong_bounds", "no_licence")

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "unreadable": "the row could not be read as a problem",
        "turned_away": "the process stage would turn it away",
        "no_tests": "nothing to judge an answer by",
        "only_shown_tests": "every test is an example that the statement shows: an answer can be read off it",
        "few_tests": "fewer than five tests",
        "needs_checker": "several answers are right, and nothing but a comparison decides",
        "wrong_bounds": "a bound such as 105 that was, or may have been, 10^5",
        "no_licence": "no licence is named",
        "benchmark_copy": "it is a problem of a benchmark",
        "near_duplicate": "another row is the same problem",
        "not_run": "its programs or tests cannot be run here",
        "reference_fails": "no program that is said to be right passes its tests",
        "some_reference_fails": "of the programs that are said to be right some pass and some do not",
        "wrong_passes": "a program that is known to be wrong passes its tests",
        "trivial_passes": "a program that looks at nothing passes its tests",
        "slow_tests": "its tests take long",
    }
)
"""Kind of finding to its meaning, in the order of the report."""


class Finding(Record):
    """One thing that is wrong with a row."""

    kind: str
    """A key of `KINDS`."""
    detail: str = ""
    """What was seen, in a few words."""


class AuditedRow(Record):
    """What an audit found of one row."""

    number: int = Field(ge=0)
    """Its place among the rows of the source, from 0."""
    id: str
    source_row: str
    title: str = ""
    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    """Kinds that could be looked for: a share is of these rows."""
    num_tests: int = 0
    num_references: int = 0
    """Programs said to be right that were run."""
    num_wrong: int = 0
    """Programs known to be wrong that were run."""
    num_wrong_passing: int = 0
    shown: str = ""
    """Beginning of the statement, for the report."""


def check(candidate: Candidate) -> Iterator[Finding]:
    """Yield what is wrong with a problem, by its record alone, as the process stage left it."""
    if not candidate.licence:
        yield Finding(kind="no_licence")
    if lost := _find_lost_power(candidate):
        yield Finding(kind="wrong_bounds", detail=lost)
    if "many_answers" in find_flags(candidate):
        yield Finding(kind="needs_checker", detail=f"compared by {candidate.checker.type}")
    if not candidate.tests:
        yield Finding(kind="no_tests")
        return
    if not count_hidden(candidate):
        yield Finding(kind="only_shown_tests", detail=f"{len(candidate.tests)} tests")
    if len(candidate.tests) < FEW_TESTS:
        yield Finding(kind="few_tests", detail=f"{len(candidate.tests)} tests")


def _find_lost_power(candidate: Candidate) -> str:
    """Return what showed the process stage that powers were lost; empty where none were."""
    mended = [line.detail for line in candidate.lineage if line.step == RESTORE_POWERS and line.field == "statement"]
    if mended:
        return f"lost powers; what shows it: {mended[0]}"
    return "may have lost a power" if "unclear_bounds" in candidate.flags else ""
