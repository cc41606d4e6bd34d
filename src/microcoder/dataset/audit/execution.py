"""What running a problem's own programs shows: do those said to be right pass, and do the wrong ones fail?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microcoder.dataset.audit.findings import Finding
from microcoder.dataset.rejections import process_row
from microcoder.dataset.verify.execution import Executor
from microcoder.dataset.verify.plans import Attempt, VerificationPlan, plan
from microcoder.dataset.verify.settings import VerifySettings
from microcoder.formats.candidates import Candidate, Rejection
from microcoder.types import Verdict

_MOST_ACCEPTED, _MOST_WRONG, _MOST_TESTS = 3, 12, 50
_SLOW_TEST_SECONDS, _SLOW_SECONDS = 5.0, 30.0
_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one problem."""

    findings: tuple[Finding, ...] = ()
    checked: tuple[str, ...] = ()
    num_references: int = 0
    num_wrong: int = 0
    num_wrong_passing: int = 0


def run_programs(candidates: Sequence[Candidate], executor: Executor) -> list[Ran]:
    """Return for each problem what its programs showed, on up to 50 of its tests, spread over all."""
    settings = VerifySettings(max_accepted=_MOST_ACCEPTED, max_wrong=_MOST_WRONG)
    plans = [process_row(_with_fewer_tests(one), "verify", lambda one: plan(one, settings)) for one in candidates]
    runnable = [item for item in plans if isinstance(item, VerificationPlan)]
    _run(executor, [(item, attempt) for item in runnable for attempt in item.accepted])
    sound = [item for item in runnable if item.passing()]
    _run(executor, [(item, attempt) for item in sound for attempt in (*item.trivial, *item.others)])
    return [_conclude(item) if isinstance(item, VerificationPlan) else _not_run(item) for item in plans]


def _with_fewer_tests(candidate: Candidate) -> Candidate:
    num = len(candidate.tests)
    if num <= _MOST_TESTS:
        return candidate
    numbers = [at * num // _MOST_TESTS for at in range(_MOST_TESTS)]
    groups = tuple(candidate.groups[number] for number in numbers) if candidate.groups else ()
    return candidate.model_copy(update={"tests": tuple(candidate.tests[n] for n in numbers), "groups": groups})


def _run(executor: Executor, pairs: Sequence[tuple[VerificationPlan, Attempt]]) -> None:
    verdicts = executor.run([(a.program, item.problem(a.program.language)) for item, a in pairs])
    for (_, attempt), verdict in zip(pairs, verdicts, strict=True):
        attempt.verdicts.append(verdict)


def _not_run(rejection: Rejection) -> Ran:
    if rejection.reason == "no_tests":
        return Ran()
    said = f"{rejection.reason}: {rejection.detail}" if rejection.detail else rejection.reason
    return Ran((Finding(kind="not_run", detail=said),), ("not_run",))


def _conclude(item: VerificationPlan) -> Ran:
    references: dict[int, list[Verdict]] = {}
    for attempt in item.accepted:
        references.setdefault(attempt.solution, []).append(attempt.verdicts[0])
    # A Python 2 program was converted in more than one way: one that passes is enough.
    best = [next((v for v in found if v.is_accepted), found[0]) for found in references.values()]
    scored = [verdict for verdict in best if verdict.is_scorable]
    if not scored:
        return Ran((Finding(kind="not_run", detail=best[0].detail),), ("not_run",))
    passing = [verdict for verdict in scored if verdict.is_accepted]
    findings = []
    if len(passing) < len(scored):
        failed = next(verdict for verdict in scored if not verdict.is_accepted)
        kind = "some_reference_fails" if passing else "reference_fails"
        said = f"{len(scored) - len(passing)} of {len(scored)}: {failed.outcome.value}, {failed.detail}"
        findings.append(Finding(kind=kind, detail=said[:300]))
    if not passing:
        return Ran(tuple(findings), ("not_run", "reference_fails", "some_reference_fails"), len(scored))
    checked = ["not_run", "reference_fails", "some_reference_fails", "trivial_passes", "slow_tests"]
    wrong = [attempt for attempt in item.others if attempt.role == "wrong" and attempt.verdicts[0].is_scorable]
    if wrong:
        checked.append("wrong_passes")
    wrong_passing = [attempt for attempt in wrong if attempt.verdicts[0].is_accepted]
    if wrong_passing:
        said = ", ".join(_name(item, attempt) for attempt in wrong_passing[:_NAMES_SHOWN])
        findings.append(Finding(kind="wrong_passes", detail=f"{len(wrong_passing)} of {len(wrong)}: {said}"))
    if trivial := [attempt.name for attempt in item.trivial if attempt.verdicts[0].is_accepted]:
        findings.append(Finding(kind="trivial_passes", detail=", ".join(trivial[:_NAMES_SHOWN])))
    findings += _slow(passing)
    return Ran(tuple(findings), tuple(checked), len(scored), len(wrong), len(wrong_passing))


def _name(item: VerificationPlan, attempt: Attempt) -> str:
    return item.candidate.solutions[attempt.solution].name or f"solution {attempt.solution}"


def _slow(passing: Sequence[Verdict]) -> list[Finding]:
    """Return whether even the fastest right program needs long; the figure is left out, which no two runs share."""
    slowest = min(max((test.cpu_seconds for test in verdict.tests), default=0.0) for verdict in passing)
    together = min(sum(test.cpu_seconds for test in verdict.tests) for verdict in passing)
    if slowest > _SLOW_TEST_SECONDS:
        return [Finding(kind="slow_tests", detail=f"a test takes more than {_SLOW_TEST_SECONDS:g} CPU seconds")]
    if together > _SLOW_SECONDS:
        return [Finding(kind="slow_tests", detail=f"all tests take more than {_SLOW_SECONDS:g} CPU seconds")]
    return []
