"""What can be seen of a problem without running anything."""

from __future__ import annotations

from collections.abc import Iterator

from microcoder.dataset.audit.findings import Finding
from microcoder.dataset.process.completeness import find_flags
from microcoder.dataset.process.shown import count_hidden
from microcoder.dataset.process.stage import RESTORE_POWERS
from microcoder.formats.candidates import Candidate

FEW_TESTS = 5
CHECKED = ("no_tests", "only_shown_tests", "few_tests", "needs_checker", "wrong_bounds", "no_licence")


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
