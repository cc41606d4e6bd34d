"""How often the verifier is right, and how well guessing does against the tests that it chose.

`combine_counts` gives the verifier's true-positive and true-negative rates, for the card. A kept
problem passes its own references by construction. So each program is measured by a verifier that
did not know it: without that program, the problem is decided and its tests are chosen (leave one
out).
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from microcoder.data.clean.shown import count_hidden
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.test_programs import list_calls
from microcoder.data.verify.choice import VerifySettings
from microcoder.data.verify.evidence import Evidence, Role, Trial, chosen_tests, find_fault
from microcoder.judge.core.types import Outcome, Record

NUM_RESAMPLES = 2000
"""How often the problems are drawn again for an interval."""
_TAIL = 0.025
"""Share of the resampled rates below an interval, and above it."""
MOST_GUESSED = 0.05
"""Chance of guessing all answers above which a problem is reported as guessable (our choice)."""


class Rate(Record):
    """A share of programs with its 95 % interval, from resampling the problems."""

    right: int
    total: int
    low: float
    high: float
    num_problems: int

    @property
    def value(self) -> float:
        """The share, `right / total`."""
        return self.right / self.total


class _Counted(NamedTuple):
    """Which programs a rate counts."""

    role: Role
    is_known: bool = False
    """Whether the tests were chosen knowing them."""


_COUNTED: Mapping[str, _Counted] = {
    "true_positive": _Counted("accepted"),
    "true_negative": _Counted("wrong"),
    "true_negative_slow": _Counted("slow"),
    "true_negative_partial": _Counted("partial"),
    "true_negative_released": _Counted("wrong", is_known=True),
}
"""The programs that each rate counts.

`true_positive` is the share of accepted programs that pass the chosen tests. The others are shares
of programs that fail them: known-wrong ones (wrong answers and crashes), those known to be too slow
or too large, those known to solve a part only, and known-wrong ones under the released tests, which
were chosen knowing them.
"""

Counts = tuple[int, int]
"""How many programs were judged right, and of how many."""


def count_right(
    item: Evidence,
    settings: VerifySettings,
) -> dict[str, Counts]:
    """Return for each rate how many of a problem's programs are judged right, and of how many."""
    return {
        name: _count(
            item,
            counted,
            settings,
        )
        for name, counted in _COUNTED.items()
    }


def combine_counts(counts: Sequence[Mapping[str, Counts]]) -> dict[str, Rate | None]:
    """Return the rates over the `counts` of many problems, by name.

    None for a rate that counts no program.
    """
    rates = {}
    for name in _COUNTED:
        # Problems without such programs say nothing about the rate, so they are not drawn.
        with_programs = [by_name[name] for by_name in counts if by_name[name][1]]
        rates[name] = rate_with_interval(with_programs)
    return rates


def _count(
    item: Evidence,
    counted: _Counted,
    settings: VerifySettings,
) -> Counts:
    num_right = 0
    total = 0
    for trial in item.tried_as(counted.role):
        # A verifier that knew the program would have chosen a test for it.
        left_out = None if counted.is_known else trial
        if not _is_sound_without(item, left_out):
            continue
        total += 1
        if counted.role == "accepted":
            is_right = trial.outcome is Outcome.ACCEPTED
        else:
            chosen = chosen_tests(item, settings, without=left_out)
            is_right = not set(trial.failed).isdisjoint(chosen)
        num_right += int(is_right)
    return num_right, total


def _is_sound_without(item: Evidence, left_out: Trial | None) -> bool:
    """Whether a verifier that did not know this program would keep the problem."""
    others = tuple(trial for trial in item.trials if trial is not left_out)
    # Without another reference nothing could be decided.
    if all(trial.role != "accepted" for trial in others):
        return False
    return find_fault(item.model_copy(update={"trials": others})) is None


def rate_with_interval(counts: Sequence[Counts]) -> Rate | None:
    """Return a pooled share with a percentile interval over problems; None if nothing was counted.

    Args:
        counts: right and total per problem.
    """
    right, total = _pool(counts)
    if not total:
        return None
    size = len(counts)
    # Without any spread to resample: the exact one-sided bound with as many independent draws as
    # there are problems.
    bound = _TAIL ** (1 / size)
    if right == 0:
        low = 0.0
        high = 1 - bound
    elif right == total:
        low = bound
        high = 1.0
    else:
        low, high = _resample(counts)
    return Rate(
        right=right,
        total=total,
        low=low,
        high=high,
        num_problems=size,
    )


def _pool(counts: Sequence[Counts]) -> Counts:
    """Return the sums of right and total."""
    right = sum(count[0] for count in counts)
    total = sum(count[1] for count in counts)
    return right, total


def _resample(counts: Sequence[Counts]) -> tuple[float, float]:
    """Return the 95 % percentile interval of the share, by drawing the problems again."""
    # Always the same draws: two builds must give the same card.
    generator = random.Random(0)
    shares = []
    for _ in range(NUM_RESAMPLES):
        drawn = generator.choices(counts, k=len(counts))
        right, total = _pool(drawn)
        shares.append(right / total)
    shares.sort()
    lowest = int(_TAIL * NUM_RESAMPLES)
    highest = int((1 - _TAIL) * NUM_RESAMPLES) - 1
    return shares[lowest], shares[highest]


def guess_chances(candidate: Candidate) -> dict[str, float]:
    """Return how well blind guesses do on the tests' answers.

    `constant_share`: the share of tests that the best constant answer passes. `coin_chance`: how
    often a coin passes all hidden tests, if the problem has at most two answers; else 0. Both are 0
    where an interactor decides: its tests' outputs are no answers. Of tests that are programs those
    assertions count that are calls compared with a value.
    """
    tests = list_calls(candidate)
    if candidate.interactor is not None or not tests:
        return {"constant_share": 0.0, "coin_chance": 0.0}
    # References may print YES where the source has Yes, and where the checker takes both they are
    # one answer.
    fold = str if candidate.checker.case_sensitive else str.casefold
    answers = Counter(fold(test.output.strip()) for test in tests)
    coin_chance = 0.0
    # Of one answer a guess is always right, and one to any power stays one.
    if len(answers) <= 2:
        coin_chance = float(len(answers)) ** -count_hidden(candidate)
    constant_share = max(answers.values()) / answers.total()
    return {"constant_share": constant_share, "coin_chance": coin_chance}
