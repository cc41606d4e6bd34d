"""How a problem's programs ran, and what follows from it: pure functions over plain records.

Two builds of a corpus must give the same bytes. Seconds, megabytes and addresses differ from run to
run. So what is derived from them is rounded up to steps that are far apart, and messages about them
are left out.
"""

from collections.abc import Sequence
from typing import Literal

from microcoder.data.clean.orders import FLAG
from microcoder.data.formats.candidates import Candidate
from microcoder.data.verify.choice import Cost, VerifySettings, choose_tests
from microcoder.judge.core.types import Outcome, Record, TestCase

Role = Literal["accepted", "wrong", "slow", "partial", "trivial"]
"""Role of a program in verification.

`wrong` is known to be wrong or to crash, `slow` to be too slow.
"""
STEP = "verify/3"
"""Name and version of the step in the lineage of a candidate."""
TOO_SLOW: tuple[Role, ...] = ("slow", "partial")
"""Roles of programs taken for right but too slow.

Most `partial` ones are; which of them are wrong is not stated.
"""
_CRASHING_SHARE = 0.5
"""Share of the accepted programs that may crash or hit a limit, and are dropped (our choice).

None may give a wrong output.
"""
_WRONG_SHARE = 0.5
"""Share of the known-wrong programs that may pass all tests (our choice).

Beyond it the tests are too weak.
"""
_CRASHED = ("the checker crashed", "the interactor crashed")
"""What a verdict's detail says where the checker, or the interactor, failed on an output."""


class Trial(Record):
    """One program of a problem, and how it ended."""

    name: str
    role: Role
    outcome: Outcome
    """Outcome under the problem's limits.

    Of an accepted program that failed in a run, that of its first such run.
    """
    failed: tuple[int, ...] = ()
    """Indices of the tests that the program failed.

    Tests after the first of these may not have been run.
    """
    over_limit: tuple[int, ...] = ()
    """Those of `failed` that ended at a time or memory limit.

    No test is chosen for them, since where a slow program ends differs from run to run.
    """
    is_flaky: bool = False
    """Whether it passed all tests once and failed in a later run."""
    seconds: tuple[float, ...] = ()
    """CPU seconds per test of an accepted program, on the reference machine.

    They are rounded up by `limits.cost_of`.
    """
    detail: str = ""


class Evidence(Record):
    """Verdicts and times of one candidate's programs."""

    candidate: Candidate
    """The candidate with derived limits, and still with all its tests."""
    trials: tuple[Trial, ...]
    contradicted: str = ""
    """An example of the statement that its accepted programs contradict, in a line."""

    def tried_as(self, *roles: Role) -> list[Trial]:
        """Return the trials of programs with these roles, unless the sandbox failed."""
        trials = []
        for trial in self.trials:
            if trial.role in roles and trial.outcome is not Outcome.SANDBOX_FAULT:
                trials.append(trial)
        return trials

    def names_of_passing(self, *roles: Role) -> list[str]:
        """Return the names of the programs with these roles that passed."""
        trials = self.tried_as(*roles)
        return [trial.name for trial in trials if trial.outcome is Outcome.ACCEPTED]


Fault = tuple[str, str]
"""Why a problem is rejected: reason and detail."""


def find_fault(evidence: Evidence) -> Fault | None:
    """Return why a problem must be rejected, by how its programs ended; None if it is sound."""
    accepted = evidence.tried_as("accepted")
    if not accepted:
        return _explain_missing_references(evidence)
    failing = _find_failing(accepted)
    if failing is not None:
        return failing
    if evidence.contradicted:
        return ("contradicts_examples", f"the statement shows {evidence.contradicted}")
    return _find_passing(evidence)


def _explain_missing_references(evidence: Evidence) -> Fault:
    """Return the fault of a problem whose accepted programs all stayed without a verdict."""
    details = [trial.detail for trial in evidence.trials if trial.role == "accepted"]
    if any("checker failed" in detail for detail in details):
        return ("checker_fails", details[0])
    return ("sandbox_fault", details[0])


def _find_failing(accepted: Sequence[Trial]) -> Fault | None:
    """Return the fault that accepted programs show when they fail; None if there is none.

    A crash blames the program, as long as others pass: programs that read beyond an array were
    accepted elsewhere. A refused output blames the tests or their comparison.
    """
    failing = [trial for trial in accepted if trial.outcome is not Outcome.ACCEPTED]
    refused = [trial for trial in failing if trial.outcome is Outcome.WRONG_ANSWER]
    some_pass = len(failing) < len(accepted)
    are_few = len(failing) <= _CRASHING_SHARE * len(accepted)
    is_tolerable = are_few and some_pass
    if is_tolerable and not refused:
        return None
    first = (refused or failing)[0]
    shares = f"{len(failing)} of {len(accepted)} accepted programs fail"
    detail = f"{shares}; {first.name}: {describe_end(first)}"
    # A flaky program comes first: no other verdict about it can be believed.
    if first.is_flaky:
        return ("flaky", detail)
    # A checker that crashes has refused nothing.
    if any(words in first.detail for words in _CRASHED):
        return ("checker_fails", detail)
    # Right programs disagree, so that several answers are right.
    if refused and some_pass:
        return ("needs_checker", detail)
    return ("reference_fails", detail)


def _find_passing(evidence: Evidence) -> Fault | None:
    """Return the fault that programs show by passing although they must not; None if there is
    none."""
    trivial = evidence.names_of_passing("trivial")
    if trivial:
        return ("trivial_passes", ", ".join(trivial))
    if _is_answer_unconfirmed(evidence):
        detail = "many answers are right, and no second accepted program gives this one"
        return ("needs_checker", detail)
    num_wrong = len(evidence.tried_as("wrong"))
    passing = evidence.names_of_passing("wrong")
    if len(passing) > _WRONG_SHARE * num_wrong:
        names = ", ".join(passing)
        detail = f"{len(passing)} of {num_wrong} known-wrong programs pass: {names}"
        return ("wrong_passes", detail)
    return None


def _is_answer_unconfirmed(evidence: Evidence) -> bool:
    """Whether several answers are right, one of them is expected, and a single program gives it."""
    candidate = evidence.candidate
    # A checker that we made by the statement's words is as good as a second program says.
    is_ours = FLAG in candidate.flags
    if "many_answers" not in candidate.flags and not is_ours:
        return False
    if candidate.checker.type in ("program", "unordered") and not is_ours:
        return False
    return len(evidence.tried_as("accepted")) < 2


def describe_end(trial: Trial) -> str:
    """Return how a program ended, in a few words."""
    if trial.detail:
        return f"{trial.outcome.value}, {trial.detail}"
    return trial.outcome.value


def chosen_tests(
    evidence: Evidence,
    settings: VerifySettings,
    *,
    without: Trial | None = None,
) -> tuple[int, ...]:
    """Return the indices of the tests to keep; `without` ignores one program."""
    trials = [trial for trial in evidence.trials if trial is not without]
    failed_by_program = []
    for trial in trials:
        if trial.role in ("wrong", "partial", "slow"):
            # Where a limit ends a program differs from run to run.
            failed_by_program.append(set(trial.failed) - set(trial.over_limit))
    costs = _costs_of(evidence.candidate, trials)
    origins = evidence.candidate.origins
    made = [number for number, origin in enumerate(origins) if origin.kind != "given"]
    return choose_tests(costs, failed_by_program, settings, made=made)


def _costs_of(
    candidate: Candidate,
    trials: Sequence[Trial],
) -> list[Cost]:
    """Return what each test costs."""
    timed = [trial.seconds for trial in trials if trial.role == "accepted" and trial.seconds]
    costs = []
    for number, test in enumerate(candidate.tests):
        # A program that failed was not timed on every test.
        seconds = [times[number] for times in timed if number < len(times)]
        group = candidate.groups[number] if candidate.groups else ""
        cost = Cost(
            num_bytes=_count_bytes(test),
            seconds=max(seconds, default=0.0),
            group=group,
        )
        costs.append(cost)
    return costs


def _count_bytes(test: TestCase) -> int:
    """Return the bytes of a test's input and output."""
    # Lone surrogates stand for bytes that are no text.
    num_input = len(test.input.encode("utf-8", "surrogatepass"))
    num_output = len(test.output.encode("utf-8", "surrogatepass"))
    return num_input + num_output
