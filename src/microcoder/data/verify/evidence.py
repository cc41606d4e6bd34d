"""How a problem's programs ran, and what follows from it: pure functions over plain records.

`choose_tests` keeps the tests that catch the known-wrong programs, then some of every group, within a budget.

`combine_counts` gives the verifier's true-positive and true-negative rates, for the card. A kept problem passes
its own references by construction, so each program is measured by a verifier that did not know it: the problem is
decided, and its tests are chosen, without that program (leave one out).

Two builds of a corpus must give the same bytes: what is derived from seconds, megabytes and addresses, which differ
from run to run, is rounded up to steps that are far apart, and messages about them are left out.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from microcoder.data.clean.stage import count_hidden, find_shown
from microcoder.data.formats.candidates import Candidate, Rejection, Solution
from microcoder.judge.core.config import Config
from microcoder.judge.core.types import Outcome, Record, Verdict

Role = Literal["accepted", "wrong", "slow", "partial", "trivial"]
"""Role of a program in verification: `wrong` is known to be wrong or to crash, `slow` to be too slow."""
_CRASHING_SHARE, _WRONG_SHARE = 0.5, 0.5
"""Shares (our choices): of the accepted programs those that may crash or hit a limit, and are dropped (none may give a
wrong output); of the known-wrong ones those that may pass all tests: beyond it the tests are too weak."""
_MOST_BYTES, _MOST_SECONDS = 8 << 20, 30.0
"""Budget of the kept tests (our choices): bytes of their inputs and outputs, and the sum over them of the slowest
accepted program's CPU seconds, each rounded up by `execution.cost_of`."""


class VerifySettings(Config):
    """How many tests of a problem the verify stage keeps."""

    max_tests: int = Field(default=15, ge=1)
    """Tests that are kept (15 in arXiv 2603.07779): those that catch the known-wrong programs, then the
    longest of every group, within 8 MiB and 30 s."""


class Cost(NamedTuple):
    """What a test costs if it is kept: bytes and seconds; and its group."""

    num_bytes: int
    seconds: float = 0.0
    """CPU seconds of the slowest accepted program on the test."""
    group: str = ""


def choose_tests(
    costs: Sequence[Cost],
    failed_by_program: Sequence[Collection[int]],
    settings: VerifySettings,
    *,
    max_bytes: int = _MOST_BYTES,
    max_seconds: float = _MOST_SECONDS,
) -> tuple[int, ...]:
    """Return the indices of the tests to keep, in order; empty if no test fits the budget.

    Args:
        failed_by_program: for each known-wrong program the indices of the tests that it fails.
    """
    numbers = range(len(costs))
    chosen: list[int] = []

    def fitting() -> list[int]:
        left_bytes = max_bytes - sum(costs[n].num_bytes for n in chosen)
        left_seconds = max_seconds - sum(costs[n].seconds for n in chosen)
        fits = [
            costs[n].num_bytes <= left_bytes and costs[n].seconds <= left_seconds for n in numbers
        ]
        return (
            [n for n in numbers if fits[n] and n not in chosen]
            if len(chosen) < settings.max_tests
            else []
        )

    # Greedy cover: always the test that catches most of the programs not caught yet, the cheaper one of equals.
    left = [failed for failed in failed_by_program if failed]
    while left:
        catches = Counter(number for failed in left for number in failed)
        best = min(fitting(), key=lambda n: (-catches[n], costs[n].num_bytes, n), default=None)
        if best is None or not catches[best]:
            break
        chosen.append(best)
        left = [failed for failed in left if best not in failed]
    while able := fitting():
        # The longest tests, of the groups with fewest so far.
        taken = Counter(costs[n].group for n in chosen)
        chosen.append(min(able, key=lambda n: (taken[costs[n].group], -costs[n].num_bytes, n)))
    return tuple(sorted(chosen))


STEP = "verify/3"
_CRASHED = "the checker crashed"
TOO_SLOW: tuple[Role, ...] = ("slow", "partial")
"""Roles of programs taken for right but too slow: as most `partial` ones are; which are wrong is not stated."""


class Trial(Record):
    """One program of a problem, and how it ended."""

    name: str
    role: Role
    outcome: Outcome
    """Outcome under the problem's limits; of an accepted program that failed in a run, that of its first such run."""
    failed: tuple[int, ...] = ()
    """Indices of the tests that the program failed; tests after the first of these may not have been run."""
    over_limit: tuple[int, ...] = ()
    """Those of `failed` that ended at a time or memory limit: no test is chosen for them, since where a slow program
    ends differs from run to run."""
    is_flaky: bool = False
    """Whether it passed all tests once and failed in a later run."""
    seconds: tuple[float, ...] = ()
    """CPU seconds per test of an accepted program, on the reference machine, rounded up by `execution.cost_of`."""
    detail: str = ""


class Evidence(Record):
    """Verdicts and times of one candidate's programs."""

    candidate: Candidate
    """The candidate with derived limits, and still with all its tests."""
    trials: tuple[Trial, ...]

    def tried_as(self, *roles: Role) -> list[Trial]:
        """Return the trials with these roles, without those in which the sandbox failed."""
        return [
            trial
            for trial in self.trials
            if trial.role in roles and trial.outcome is not Outcome.SANDBOX_FAULT
        ]


Fault = tuple[str, str]
"""Why a problem is rejected: reason and detail."""


def find_fault(evidence: Evidence) -> Fault | None:
    """Return why a problem must be rejected, by how its programs ended; None if it is sound."""
    accepted = evidence.tried_as("accepted")
    if not accepted:
        details = [trial.detail for trial in evidence.trials if trial.role == "accepted"]
        return (
            "checker_fails" if any("checker failed" in d for d in details) else "sandbox_fault",
            details[0],
        )
    return _find_failing(evidence, accepted) or _find_passing(evidence)


def _find_failing(evidence: Evidence, accepted: Sequence[Trial]) -> Fault | None:
    """Return the fault that accepted programs which do not pass show, or None.

    A crash says something about the program, as long as others pass: programs that read beyond an array were accepted
    elsewhere. A refused output says something about the tests or their comparison.
    """
    failing = [trial for trial in accepted if trial.outcome is not Outcome.ACCEPTED]
    refused = [trial for trial in failing if trial.outcome is Outcome.WRONG_ANSWER]
    if (
        not refused
        and len(failing) <= _CRASHING_SHARE * len(accepted)
        and len(failing) < len(accepted)
    ):
        return None
    first = (refused or failing)[0]
    detail = (
        f"{len(failing)} of {len(accepted)} accepted programs fail; {first.name}: {_say(first)}"
    )
    if first.is_flaky:
        return ("flaky", detail)
    if _CRASHED in first.detail:
        return ("checker_fails", detail)
    if refused and len(failing) < len(accepted):
        return ("needs_checker", detail)
    return ("reference_fails", detail)


def _find_passing(evidence: Evidence) -> Fault | None:
    trivial = [
        trial.name for trial in evidence.tried_as("trivial") if trial.outcome is Outcome.ACCEPTED
    ]
    if trivial:
        return ("trivial_passes", ", ".join(trivial))
    candidate = evidence.candidate
    is_plain = candidate.checker.type not in ("program", "unordered")
    if "many_answers" in candidate.flags and is_plain and len(evidence.tried_as("accepted")) < 2:
        return (
            "needs_checker",
            "many answers are right, and no second accepted program gives this one",
        )
    wrong, passing = _passing(evidence, "wrong")
    if len(passing) > _WRONG_SHARE * wrong:
        return (
            "wrong_passes",
            f"{len(passing)} of {wrong} known-wrong programs pass: {', '.join(passing)}",
        )
    return None


def _passing(evidence: Evidence, *roles: Role) -> tuple[int, list[str]]:
    """Return how many programs were tried in these roles, and the names of those that passed."""
    trials = evidence.tried_as(*roles)
    return len(trials), [trial.name for trial in trials if trial.outcome is Outcome.ACCEPTED]


def conclude(evidence: Evidence, settings: VerifySettings) -> Candidate | Rejection:
    """Return a problem with its chosen tests, and the references that passed as first solutions; or its rejection."""
    fault = find_fault(evidence)
    chosen = chosen_tests(evidence, settings)
    if fault is None and not chosen:
        fault = ("tests_too_large", f"no test within {_MOST_BYTES} bytes, {_MOST_SECONDS} s")
    candidate = evidence.candidate.model_copy(update={"counts": count_right(evidence, settings)})
    shown = find_shown(candidate)
    if fault is None and all(shown[number] for number in chosen):
        fault = ("all_tests_shown", f"the statement shows all {len(chosen)} tests that are kept")
    if fault is not None:
        return candidate.reject("verify", *fault)
    slow, passing = _passing(evidence, *TOO_SLOW)
    if 2 * len(passing) > slow:
        how = f"{len(passing)} of {slow} slow or partial programs pass"
        candidate = candidate.change("verify", STEP, how, flags=(*candidate.flags, "slow_passes"))
    dropped = [
        trial for trial in evidence.tried_as("accepted") if trial.outcome is not Outcome.ACCEPTED
    ]
    lost = "".join(f"; solution {trial.name} dropped: {_say(trial)}" for trial in dropped)
    changed = candidate.change(
        "verify", STEP, f"references that passed first{lost}", solutions=_references_first(evidence)
    )
    how = f"cover: {len(chosen)} of {len(candidate.tests)}"
    of_tests = {name: getattr(candidate, name) for name in ("tests", "groups", "origins")}
    kept = {
        name: tuple(values[number] for number in chosen) if values else ()
        for name, values in of_tests.items()
    }
    return changed.change("verify", STEP, how, **kept)


def _references_first(evidence: Evidence) -> tuple[Solution, ...]:
    """Return the solutions, accepted ones that passed first, without accepted ones that failed."""
    passed = {
        trial.name: trial.outcome is Outcome.ACCEPTED for trial in evidence.tried_as("accepted")
    }
    numbered = list(enumerate(evidence.candidate.solutions))
    first = [solution for number, solution in numbered if passed.get(str(number)) is True]
    return (*first, *(solution for number, solution in numbered if str(number) not in passed))


def _say(trial: Trial) -> str:
    return f"{trial.outcome.value}, {trial.detail}" if trial.detail else trial.outcome.value


def chosen_tests(
    evidence: Evidence, settings: VerifySettings, *, without: Trial | None = None
) -> tuple[int, ...]:
    """Return the indices of the tests to keep; `without` ignores one program."""
    trials = [trial for trial in evidence.trials if trial is not without]
    known_wrong = [
        set(t.failed) - set(t.over_limit) for t in trials if t.role in ("wrong", "partial", "slow")
    ]
    timed = [trial.seconds for trial in trials if trial.role == "accepted" and trial.seconds]
    candidate = evidence.candidate
    costs = [
        Cost(
            num_bytes=sum(
                len(text.encode("utf-8", "surrogatepass")) for text in (test.input, test.output)
            ),
            seconds=max(
                (seconds[number] for seconds in timed if number < len(seconds)), default=0.0
            ),
            group=candidate.groups[number] if candidate.groups else "",
        )
        for number, test in enumerate(candidate.tests)
    ]
    return choose_tests(costs, known_wrong, settings)


LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT)
"""Outcomes that a busy machine may cause, so that another run may end otherwise."""


def at_reference_speed(verdict: Verdict, time_scale: float) -> Verdict:
    """Return a verdict as the reference machine would have given it: its seconds divided by `Judge.time_scale`."""
    tests = tuple(
        dataclasses.replace(
            test,
            cpu_seconds=test.cpu_seconds / time_scale,
            wall_seconds=test.wall_seconds / time_scale,
        )
        for test in verdict.tests
    )
    return dataclasses.replace(verdict, tests=tests)


def round_up(seconds: float, steps: Sequence[float], *, most: float = 0.0) -> float:
    """Return the first step of at least so many seconds; beyond the last step that one, or `most` if larger."""
    return float(next((step for step in steps if step >= seconds), max(steps[-1], most)))


def is_close(seconds: float, boundary: float) -> bool:
    """Whether a time is within a factor of 1.5 of a boundary: another measurement may fall on its other side."""
    return boundary / 1.5 < seconds < boundary * 1.5


NUM_RESAMPLES = 2000
_TAIL = 0.025


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


_COUNTED: Mapping[str, tuple[Role, bool]] = {
    "true_positive": ("accepted", False),
    "true_negative": ("wrong", False),
    "true_negative_slow": ("slow", False),
    "true_negative_partial": ("partial", False),
    "true_negative_released": ("wrong", True),
}
"""Rate -> the programs that it counts, and whether the tests were chosen knowing them.

`true_positive` is the share of accepted programs that pass the chosen tests; the others are shares of programs that
fail them: known-wrong ones (wrong answers and crashes), those known to be too slow or too large, those known to solve
a part only, and known-wrong ones under the released tests, which were chosen knowing them.
"""


def count_right(item: Evidence, settings: VerifySettings) -> dict[str, tuple[int, int]]:
    """Return, by rate, how many of one problem's programs are judged right, and of how many."""
    return {
        name: _count(item, role, settings, is_known=is_known)
        for name, (role, is_known) in _COUNTED.items()
    }


def combine_counts(counts: Sequence[Mapping[str, tuple[int, int]]]) -> dict[str, Rate | None]:
    """Return the rates over the `counts` of many problems, by name; None for a rate that counts no program."""
    return {
        name: rate_with_interval([count[name] for count in counts if count[name][1]])
        for name in _COUNTED
    }


def _count(
    item: Evidence, role: Role, settings: VerifySettings, *, is_known: bool
) -> tuple[int, int]:
    right = total = 0
    for trial in item.tried_as(role):
        known = None if is_known else trial
        others = tuple(other for other in item.trials if other is not known)
        has_reference = any(other.role == "accepted" for other in others)
        if not (has_reference and find_fault(item.model_copy(update={"trials": others})) is None):
            continue
        total += 1
        if role == "accepted":
            right += trial.outcome is Outcome.ACCEPTED
        else:
            right += bool(set(trial.failed) & set(chosen_tests(item, settings, without=known)))
    return right, total


def rate_with_interval(counts: Sequence[tuple[int, int]]) -> Rate | None:
    """Return a pooled share with a percentile interval over problems; None where there is nothing to count.

    Args:
        counts: right and total per problem.
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
        generator = random.Random(0)
        drawn = (generator.choices(counts, k=size) for _ in range(NUM_RESAMPLES))
        shares = sorted(sum(one for one, _ in some) / sum(of for _, of in some) for some in drawn)
        low, high = shares[int(_TAIL * NUM_RESAMPLES)], shares[int((1 - _TAIL) * NUM_RESAMPLES) - 1]
    return Rate(right=right, total=total, low=low, high=high, num_problems=size)


MOST_GUESSED = 0.05
"""Chance of guessing all answers above which a problem is reported as guessable (our choice)."""


def guess_chances(candidate: Candidate) -> dict[str, float]:
    """Return how well blind guesses do on the tests' answers.

    `constant_share`: the share of the tests that the best constant answer passes. `coin_chance`: how often a coin
    between the problem's two answers passes all hidden tests, where it has no more than two; else 0.
    """
    # References may print YES where the source has Yes, and where the checker takes both they are one answer.
    fold = str if candidate.checker.case_sensitive else str.casefold
    answers = Counter(fold(test.output.strip()) for test in candidate.tests)
    share = max(answers.values()) / answers.total()
    return {
        "constant_share": share,
        "coin_chance": float(len(answers)) ** -count_hidden(candidate)
        if len(answers) <= 2
        else 0.0,
    }
