"""Counts of a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from operator import attrgetter


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a judge's sandboxes."""

    retries: int = 0
    """Tests that were run again because the sandbox failed."""
    reruns: int = 0
    """Tests that were run again, because they ended close to their time limit, or beyond it on a busy machine."""
    extended: int = 0
    """Times that a test at its wall limit was given longer, because it had waited for a processor."""
    blind: int = 0
    """Tests that were given three times their wall limit, because the kernel does not say how long they waited."""
    shared: int = 0
    """Tests that were accepted in a process that they shared."""
    fallbacks: int = 0
    """Shared processes that ended before their time, if a test behind the first was not accepted."""
    differences: int = 0
    """Tests that were not accepted in a process that they shared, and then were. There should be none, but of programs
    whose output is luck: please report others."""
    anew: int = 0
    """Programs that were judged anew, a process a test, twice, since a test that was repeated ended otherwise."""
    probed: int = 0
    """Accepted programs of which, as a sample, some tests were run again."""
    unrepeated: int = 0
    """Of these, the ones that were not accepted again: luck, or a fault of ours."""
    aside: int = 0
    """Times that a program gave up its place: while idle, or after a slice of CPU time."""
    lowered: int = 0
    """Tests that were ended by a limit which other programs of their problem had set."""
    missing_packages: int = 0
    """Programs that stayed unscored because they import a promised package that is not installed here."""


# Each verdict of a judge's process brings the sum over its sessions: `astuple` would take a millisecond.
_values_of: Callable[[Counts], tuple[int, ...]] = attrgetter(*(field.name for field in fields(Counts)))


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Return the sum of each."""
    return Counts(*(sum(values) for values in zip(*map(_values_of, counts), strict=True)))


@dataclass(frozen=True, slots=True)
class Statistics(Counts):
    """Counts of a judge and its sandboxes."""

    judged: int = 0
    """Programs that were run."""
    from_cache: int = 0
    """Verdicts that an earlier, or a simultaneous, identical program had already."""
    faults: int = 0
    """Programs that stayed unscored because the sandbox failed."""
    runs: int = 0
    """Programs that were run without being judged."""
    checker_crashes: int = 0
    """Programs that are wrong because their output broke a checker which works on the problem's own answer."""
