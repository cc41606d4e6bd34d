"""How often the verifier is right: its true-positive and true-negative rate, for the release's card.

A kept problem passes its own references by construction, so each program is measured by a verifier that did not know
it: the problem is decided, and its tests are chosen, without that program (leave one out). What the released tests do
with the known-wrong programs that they were chosen by stands beside it.

What of a verdict may be written down: two builds of the same corpus must give the same bytes.

Seconds, megabytes and addresses differ from run to run, so what is derived from them is rounded up to steps that are
far apart, and what is said of them is left out.
"""

from __future__ import annotations

import dataclasses
import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from microcoder.data.clean.tests import count_hidden
from microcoder.data.formats.candidates import Candidate
from microcoder.data.verify.evidence import Evidence, Role, VerifySettings, chosen_tests, find_fault
from microcoder.judge.core.types import Outcome, Record, Verdict

LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT)
"""Outcomes that a busy machine may turn into another one."""
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


def at_reference_speed(verdict: Verdict, time_scale: float) -> Verdict:
    """Return a verdict as the reference machine would have given it: its seconds divided by `Judge.time_scale`."""
    tests = tuple(
        dataclasses.replace(
            test, cpu_seconds=test.cpu_seconds / time_scale, wall_seconds=test.wall_seconds / time_scale
        )
        for test in verdict.tests
    )
    return dataclasses.replace(verdict, tests=tests)


def stable_detail(verdict: Verdict) -> str:
    """Return what a verdict says, without what differs from run to run."""
    return "" if verdict.outcome in LIMITS else _ADDRESS.sub("0x...", verdict.detail)


def whole_mebibytes(mebibytes: float) -> int:
    """Return an amount of memory, rounded up to a power of two."""
    return 1 << max(0, math.ceil(math.log2(max(mebibytes, 1.0))))


def round_up(seconds: float, steps: Sequence[float], *, most: float = 0.0) -> float:
    """Return the first step that holds so many seconds; beyond the last one that one, or `most` where it is more."""
    return float(next((step for step in steps if step >= seconds), max(steps[-1], most)))


def is_close(seconds: float, boundary: float, *, factor: float = 1.5) -> bool:
    """Whether another measurement may fall on the other side of a boundary."""
    return boundary / factor < seconds < boundary * factor


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


Counts = Mapping[str, tuple[int, int]]
"""By name of a rate: how many programs of one problem are judged right, and of how many."""

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
"""Rate -> the programs that it counts, and by which tests.

`true_positive` is the share of accepted programs that pass the chosen tests, the others are those of programs that
fail: of known-wrong ones (wrong answers and crashes), of those too slow or too large under limits derived here, of
those known to solve a part only; then of the known-wrong by all tests of the source, before the choice, and by the
released tests, which were chosen knowing them.
"""


def count_right(item: Evidence, settings: VerifySettings) -> Counts:
    """Return what one problem adds to the rates."""
    return {name: _count(item, role, settings, by=by) for name, (role, by) in _COUNTED.items()}


def combine_counts(counts: Sequence[Counts], *, seed: int = 0) -> Mapping[str, Rate | None]:
    """Return the rates over many problems."""
    found = {name: [count[name] for count in counts if count[name][1]] for name in _COUNTED}
    return {name: rate_with_interval(of_name, seed=seed) for name, of_name in found.items()}


def _count(item: Evidence, role: Role, settings: VerifySettings, *, by: _Tests) -> tuple[int, int]:
    right = total = 0
    for trial in item.tried_as(role):
        known = None if by == "released" else trial
        others = tuple(other for other in item.trials if other is not known)
        has_reference = any(other.role == "accepted" for other in others)
        if not (has_reference and find_fault(item.model_copy(update={"trials": others})) is None):
            continue
        total += 1
        if role == "accepted":
            right += trial.outcome is Outcome.ACCEPTED
        else:
            kept = range(len(item.candidate.tests)) if by == "all" else chosen_tests(item, settings, without=known)
            right += bool(set(trial.failed) & set(kept))
    return right, total


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
        drawn = (generator.choices(counts, k=size) for _ in range(NUM_RESAMPLES))
        shares = sorted(sum(one for one, _ in some) / sum(of for _, of in some) for some in drawn)
        low, high = shares[int(_TAIL * NUM_RESAMPLES)], shares[int((1 - _TAIL) * NUM_RESAMPLES) - 1]
    return Rate(right=right, total=total, low=low, high=high, num_problems=size)


MOST_GUESSED = 0.05
"""Chance of a coin from which on a problem is named as one that can be guessed (our choice)."""


def guess_chances(candidate: Candidate) -> dict[str, float]:
    """Return how far guesses get, from the tests' answers.

    `constant_share`: the share of the tests that the best constant answer passes. `coin_chance`: how often a coin
    between the problem's two answers passes all hidden tests, where it has no more than two; else 0.
    """
    answers = Counter(test.output.strip() for test in candidate.tests)
    share = max(answers.values()) / answers.total()
    return {
        "constant_share": share,
        "coin_chance": float(len(answers)) ** -count_hidden(candidate) if len(answers) <= 2 else 0.0,
    }
