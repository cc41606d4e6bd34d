"""What a judge counts: of its programs, its tests and what its sandboxes did."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from operator import attrgetter


@dataclass(slots=True)
class Statistics:
    """Statistics of a judge and its sandboxes."""

    retries: int = 0
    """Tests that were run again because the sandbox failed."""
    reruns: int = 0
    """Tests that were run again, because they ended close to their time limit, or beyond it on a
    busy machine."""
    extended: int = 0
    """Times that a test at its wall limit was given longer, because it had waited for a
    processor."""
    blind: int = 0
    """Tests that were given three times their wall limit, because the kernel does not say how long
    they waited."""
    shared: int = 0
    """Tests that were accepted in a process shared with others."""
    unshared: int = 0
    """Programs that were not accepted in a process that their tests shared, and so were judged with
    a process a test."""
    anew: int = 0
    """Programs judged anew, with a process a test, since they had failed and then passed."""
    unrepeated: int = 0
    """Of these, programs that were accepted once and then not: luck, or a bug of ours."""
    missing_packages: int = 0
    """Programs that stayed unscored because they import a promised package that is not installed
    here."""
    judged: int = 0
    """Programs that were judged, those answered from the cache not included."""
    from_cache: int = 0
    """Programs answered with the verdict of an earlier or simultaneous identical one."""
    faults: int = 0
    """Programs that stayed unscored because the sandbox failed."""
    checker_crashes: int = 0
    """Programs that are wrong because their output broke a checker which works on the problem's own
    answer."""


# Each verdict of a judge's process brings the sum over its sessions: `astuple` would take a
# millisecond.
_values_of: Callable[[Statistics], tuple[int, ...]] = attrgetter(
    *(field.name for field in fields(Statistics))
)


def sum_counts(counts: Iterable[Statistics]) -> Statistics:
    """Return the sum of counts, field by field."""
    columns = zip(*map(_values_of, counts), strict=True)
    totals = (sum(column) for column in columns)
    return Statistics(*totals)
