"""How often the verifier is right: its true-positive and true-negative rate, for the release's card.

A kept problem passes its own references by construction, so each program is measured by a verifier that did not know
it: the problem is decided, and its tests are chosen, without that program (leave one out). What the released tests do
with the known-wrong programs that they were chosen by stands beside it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from microcoder.dataset.verify.evidence import Evidence, Trial, chosen_tests, find_fault
from microcoder.dataset.verify.settings import Role, VerifySettings
from microcoder.types import Outcome, Record

NUM_RESAMPLES = 2000
_TAIL = 0.025


class Rate(Record):
    """A share of programs with its 95 % interval, which resamples problems."""

    right: int
    total: int
    low: float
    high: float
    num_problems: int

    @property
    def value(self) -> float:
        """The share."""
        return self.right / self.total


class Rates(Record):
    """What the verifier does with programs that it did not know; None where there are none."""

    true_positive: Rate | None
    """Accepted programs that pass the chosen tests."""
    true_negative: Rate | None
    """Known-wrong programs (wrong answers and crashes) that fail them."""
    true_negative_slow: Rate | None
    """Programs known to be too slow or too large that fail them, under limits derived on this machine."""
    true_negative_partial: Rate | None
    """Programs known to solve a part only that fail them."""
    true_negative_all_tests: Rate | None
    """Known-wrong programs that fail the source's tests, before the choice."""
    true_negative_released: Rate | None
    """Known-wrong programs of the kept problems that fail the released tests, which were chosen knowing them."""


Counts = Mapping[str, tuple[int, int]]
"""By field of `Rates`: how many programs of one problem are judged right, and of how many."""

_Tests = Literal["chosen_without", "all", "released"]
_COUNTED: Mapping[str, tuple[Role, _Tests]] = MappingProxyType(
    {
        "true_positive": ("accepted", "chosen_without"),
        "true_negative": ("wrong", "chosen_without"),
        "true_negative_slow": ("slow", "chosen_without"),
        "true_negative_partial": ("partial", "chosen_without"),
        "true_negative_all_tests": ("wrong", "all"),
        "true_negative_released": ("wrong", "released"),
    }
)
"""Field of `Rates` -> the programs it counts, and by which tests."""


def measure_rates(evidence: Iterable[Evidence], settings: VerifySettings, *, seed: int = 0) -> Rates:
    """Return the rates over the problems that are kept without the program that is measured."""
    return combine_counts([count_right(item, settings) for item in evidence], seed=seed)


def count_right(item: Evidence, settings: VerifySettings) -> Counts:
    """Return what one problem adds to the rates."""
    return {name: _count(item, role, settings, by=by) for name, (role, by) in _COUNTED.items()}


def combine_counts(counts: Sequence[Counts], *, seed: int = 0) -> Rates:
    """Return the rates over many problems."""
    found = {name: [tuple(count[name]) for count in counts if count[name][1]] for name in _COUNTED}
    return Rates.model_validate({name: rate_with_interval(of_name, seed=seed) for name, of_name in found.items()})


def _count(item: Evidence, role: Role, settings: VerifySettings, *, by: _Tests) -> tuple[int, int]:
    right = total = 0
    for trial in item.tried_as(role):
        known = None if by == "released" else trial
        if not _is_kept_without(item, known, settings):
            continue
        total += 1
        if role == "accepted":
            right += trial.outcome is Outcome.ACCEPTED
        else:
            kept = range(len(item.candidate.tests)) if by == "all" else chosen_tests(item, settings, without=known)
            right += bool(set(trial.failed) & set(kept))
    return right, total


def _is_kept_without(item: Evidence, trial: Trial | None, settings: VerifySettings) -> bool:
    others = tuple(other for other in item.trials if other is not trial)
    has_reference = any(other.role == "accepted" for other in others)
    return has_reference and find_fault(item.model_copy(update={"trials": others}), settings) is None


def rate_with_interval(counts: Sequence[tuple[int, int]], *, seed: int = 0) -> Rate | None:
    """Return a pooled share with a percentile interval over problems; None where there is nothing to count.

    Args:
        counts: right and total per problem.
        seed: of the resampling.
    """
    right, total = sum(count[0] for count in counts), sum(count[1] for count in counts)
    if not total:
        return None
    size = len(counts)
    if right in (0, total):
        # No spread to resample: the exact one-sided bound with as many independent draws as there are problems.
        bound = _TAIL ** (1 / size)
        low, high = (0.0, 1 - bound) if right == 0 else (bound, 1.0)
    else:
        generator = random.Random(seed)
        shares = sorted(_share(generator.choices(counts, k=size)) for _ in range(NUM_RESAMPLES))
        low, high = shares[int(_TAIL * NUM_RESAMPLES)], shares[int((1 - _TAIL) * NUM_RESAMPLES) - 1]
    return Rate(right=right, total=total, low=low, high=high, num_problems=size)


def _share(counts: Sequence[tuple[int, int]]) -> float:
    return sum(count[0] for count in counts) / sum(count[1] for count in counts)
