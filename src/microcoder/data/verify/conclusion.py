"""What the verify stage returns for a problem whose programs ran: a candidate, or its rejection."""

from collections.abc import Sequence
from typing import Any

from microcoder.data.clean.shown import count_hidden
from microcoder.data.formats.candidates import Candidate, Rejection, Solution
from microcoder.data.verify.choice import MOST_BYTES, MOST_SECONDS, VerifySettings
from microcoder.data.verify.evidence import (
    STEP,
    TOO_SLOW,
    Evidence,
    Fault,
    chosen_tests,
    describe_end,
    find_fault,
)
from microcoder.data.verify.rates import count_right
from microcoder.judge.core.types import Outcome


def conclude(evidence: Evidence, settings: VerifySettings) -> Candidate | Rejection:
    """Return a problem with its chosen tests, or its rejection.

    Its solutions begin with the references that passed.
    """
    chosen = chosen_tests(evidence, settings)
    counts = count_right(evidence, settings)
    # A rejected problem keeps them too: the rates are about all problems that were tried.
    candidate = evidence.candidate.model_copy(update={"counts": counts})
    fault = find_fault(evidence) or _find_fault_of_choice(candidate, chosen, settings)
    if fault is not None:
        return candidate.reject("verify", *fault)
    candidate = _flag_slow_passes(candidate, evidence)
    candidate = _put_references_first(candidate, evidence)
    return _keep_tests(candidate, chosen)


def _find_fault_of_choice(
    candidate: Candidate,
    chosen: Sequence[int],
    settings: VerifySettings,
) -> Fault | None:
    """Return why the chosen tests cannot decide about answers, or None."""
    if not chosen:
        detail = f"no test within {MOST_BYTES} bytes, {MOST_SECONDS} s"
        return ("tests_too_large", detail)
    num_hidden = count_hidden(_with_tests(candidate, chosen))
    if not num_hidden:
        detail = f"the statement shows all {len(chosen)} tests that are kept"
        return ("all_tests_shown", detail)
    if num_hidden < settings.min_hidden_tests:
        detail = f"{num_hidden} hidden tests, fewer than {settings.min_hidden_tests}"
        return ("few_hidden_tests", detail)
    return None


def _with_tests(candidate: Candidate, chosen: Sequence[int]) -> Candidate:
    """Return a candidate with only these tests."""
    return candidate.model_copy(
        update={
            "tests": _pick(candidate.tests, chosen),
            "groups": _pick(candidate.groups, chosen),
        }
    )


def _flag_slow_passes(candidate: Candidate, evidence: Evidence) -> Candidate:
    """Return the candidate, with a flag if most of the programs known to be too slow pass."""
    num_slow = len(evidence.tried_as(*TOO_SLOW))
    num_passing = len(evidence.names_of_passing(*TOO_SLOW))
    # A few may be right and fast enough on this machine.
    if 2 * num_passing <= num_slow:
        return candidate
    detail = f"{num_passing} of {num_slow} slow or partial programs pass"
    flags = (*candidate.flags, "slow_passes")
    return candidate.change("verify", STEP, detail, flags=flags)


def _put_references_first(candidate: Candidate, evidence: Evidence) -> Candidate:
    """Return the candidate with the solutions that passed first.

    Accepted ones that failed are left out.
    """
    detail = "references that passed first"
    has_passed: dict[str, bool] = {}
    for trial in evidence.tried_as("accepted"):
        has_passed[trial.name] = trial.outcome is Outcome.ACCEPTED
        if not has_passed[trial.name]:
            detail += f"; solution {trial.name} dropped: {describe_end(trial)}"
    first: list[Solution] = []
    others: list[Solution] = []
    for number, solution in enumerate(candidate.solutions):
        # Trials of solutions are named by their number.
        name = str(number)
        if name not in has_passed:
            others.append(solution)
        elif has_passed[name]:
            first.append(solution)
    return candidate.change(
        "verify",
        STEP,
        detail,
        solutions=(*first, *others),
    )


def _keep_tests(candidate: Candidate, chosen: Sequence[int]) -> Candidate:
    """Return the candidate with only these tests, and the fields that belong to them."""
    detail = f"cover: {len(chosen)} of {len(candidate.tests)}"
    return candidate.change(
        "verify",
        STEP,
        detail,
        tests=_pick(candidate.tests, chosen),
        groups=_pick(candidate.groups, chosen),
        origins=_pick(candidate.origins, chosen),
    )


def _pick(
    values: Sequence[Any],
    chosen: Sequence[int],
) -> tuple[Any, ...]:
    """Return the values at these indices; empty if there are no values."""
    return tuple(values[number] for number in chosen) if values else ()
