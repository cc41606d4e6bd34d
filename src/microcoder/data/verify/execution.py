"""Verify by execution: every program of a batch of candidates through the Judge, phase by phase.

    accepted programs, generous limits, repeated -> limits -> again, under them
    -> on the statement's examples -> trivial -> known-wrong programs

Pass a judge with `cache_size=0` and the stop rule `first_limit`: with `first_failure` a known-wrong
program shows only the first test that catches it, and the choice of tests knows less.

Which programs run is decided before anything does. Verdicts are kept on disk, so that a run that is
resumed executes nothing twice.
"""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from microcoder.data.decisions import Decisions
from microcoder.data.formats.candidates import Candidate, Rejection, process_row
from microcoder.data.verify.choice import VerifySettings
from microcoder.data.verify.conclusion import conclude
from microcoder.data.verify.contradictions import run_examples
from microcoder.data.verify.evidence import TOO_SLOW, Evidence, Trial, chosen_tests
from microcoder.data.verify.limits import cost_of, derive_limits
from microcoder.data.verify.plans import PlannedProgram, PlannedRun, VerificationPlan, plan
from microcoder.data.verify.record import Recorder
from microcoder.data.verify.runs import Run, run_once, run_pairs, run_rotated, time_pairs
from microcoder.data.verify.store import VerdictStore
from microcoder.data.verify.timing import LIMITS
from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome

_RUNS = 3
"""How often every accepted program must pass (our choice).

The second run takes the tests in another order, the last in yet another, under the derived limits.
"""
_LATE_REPEAT = 8
"""Order of the tests where late programs are run again; smaller ones are taken by other runs."""
_MORE_CHANCES = 2
"""How often a late accepted program is run again."""
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
"""A memory address, which differs from run to run."""


def verify(
    candidates: Sequence[Candidate],
    judge: Judge,
    settings: VerifySettings,
    *,
    store: VerdictStore | None = None,
    decisions: Decisions | None = None,
) -> list[Candidate | Rejection]:
    """Return each candidate with its chosen tests, limits and verified references.

    Or its rejection.
    """
    results: list[Candidate | Rejection] = []
    for item in gather(candidates, judge, settings, store=store, decisions=decisions):
        if isinstance(item, Evidence):
            results.append(conclude(item, settings))
        else:
            results.append(item)
    return results


def gather(
    candidates: Sequence[Candidate],
    judge: Judge,
    settings: VerifySettings,
    *,
    store: VerdictStore | None = None,
    decisions: Decisions | None = None,
) -> list[Evidence | Rejection]:
    """Run each candidate's programs; return the evidence for `conclude`, or a rejection.

    Args:
        candidates: from the process and filter stages.
        judge: runs the programs; see the module's docstring for its options.
        settings: how many tests are kept.
        store: holds verdicts of an earlier run, and gets those of this one.
        decisions: evidence of earlier builds, which is taken over; gets that of this one.
    """
    recorder = Recorder(decisions)
    results: dict[int, Evidence | Rejection] = {}
    plans: dict[int, VerificationPlan] = {}
    for number, candidate in enumerate(candidates):
        made = process_row(candidate, "verify", plan)
        known = recorder.find(candidate) if isinstance(made, VerificationPlan) else None
        if known is not None:
            results[number] = known
        elif isinstance(made, VerificationPlan):
            plans[number] = made
        else:
            results[number] = made
    _run_plans(list(plans.values()), judge, settings, store)
    for number, item in plans.items():
        evidence = _evidence_of(item)
        results[number] = recorder.keep(candidates[number], item, evidence)
    return [results[number] for number in range(len(candidates))]


def _run_plans(
    plans: Sequence[VerificationPlan],
    judge: Judge,
    settings: VerifySettings,
    store: VerdictStore | None,
) -> None:
    """Run the programs of all plans; they keep the verdicts."""
    # All problems of a batch go through a phase together, so that all workers are busy.
    run = partial(run_pairs, judge=judge, store=store)
    time = partial(time_pairs, judge=judge, store=store)
    _run_accepted(run, plans)
    sound = _with_passing(plans)
    derive_limits(time, sound, first=_RUNS)
    _run_again(run, sound, _RUNS - 1)
    _run_late_again(time, sound)
    sound = _with_passing(sound)
    run_examples(run, sound)
    # Only for sound problems: the programs that follow are many.
    sound = [item for item in sound if not item.contradicted]
    _run_trivial(run, sound)
    _run_others(run, sound, settings)


def _with_passing(plans: Iterable[VerificationPlan]) -> list[VerificationPlan]:
    """Return the plans with at least one accepted program that passed every run so far."""
    return [item for item in plans if item.passing()]


def _run_accepted(run: Run, plans: Sequence[VerificationPlan]) -> None:
    """Run the accepted programs with generous limits, and again if they pass."""
    planned = []
    for item in plans:
        planned += [PlannedRun(item, program) for program in item.accepted]
    run_once(run, planned)
    for item in plans:
        for program in item.passing():
            first = program.verdicts[0]
            program.fastest_seconds = [test.cpu_seconds for test in first.tests]
    # The last run comes under the derived limits.
    for repeat in range(1, _RUNS - 1):
        _run_again(run, plans, repeat)


def _run_again(
    run: Run,
    plans: Sequence[VerificationPlan],
    repeat: int,
) -> None:
    """Run the accepted programs that passed so far again, with the tests in another order."""
    planned = []
    for item in plans:
        planned += [PlannedRun(item, program) for program in item.passing()]
    verdicts = run_rotated(run, planned, repeat)
    for (_, program), verdict in zip(
        planned,
        verdicts,
        strict=True,
    ):
        program.verdicts.append(verdict)


def _run_late_again(run: Run, plans: Sequence[VerificationPlan]) -> None:
    """Run accepted programs again that were late under the limits derived from them.

    The limit holds what they took before, so the machine may have caused it.
    """
    for repeat in range(_LATE_REPEAT, _LATE_REPEAT + _MORE_CHANCES):
        late = []
        for item in plans:
            for program in item.accepted:
                *before, last = program.verdicts
                # One that was late in its first run has no run that it passed.
                has_passed = bool(before) and all(verdict.is_accepted for verdict in before)
                if has_passed and last.outcome is Outcome.TIME_LIMIT:
                    late.append(PlannedRun(item, program))
        verdicts = run_rotated(run, late, repeat)
        for (_, program), verdict in zip(late, verdicts, strict=True):
            program.verdicts[-1] = verdict


def _run_trivial(run: Run, plans: Sequence[VerificationPlan]) -> None:
    """Run programs that solve nothing, such as a constant answer, to see whether they pass.

    They run on the test with the longest output, and on all tests if they pass it.
    """
    planned = []
    seconds = []
    for item in plans:
        tests = item.candidate.tests
        longest = max(range(len(tests)), key=lambda number: len(tests[number].output))
        for program in item.trivial:
            # There most of them fail already, which saves the other tests.
            program.order = (longest,)
            planned.append(PlannedRun(item, program))
            seconds.append(item.answer_seconds)
    run_once(run, planned, seconds)
    again = [item for item in planned if item.program.has_passed]
    for _, program in again:
        # That verdict was about one test; what counts are those about all.
        program.order = ()
        program.verdicts.clear()
    run_once(run, again)


def _run_others(
    run: Run,
    plans: Sequence[VerificationPlan],
    settings: VerifySettings,
) -> None:
    """Run the programs that are known to fail: first the wrong ones, then those that are too slow.

    Slow programs first run the tests that will be kept, longest inputs first, and stop at the first
    limit. What counts is whether a kept test stops them.
    """
    wrong = []
    for item in plans:
        for program in item.others:
            if program.role not in TOO_SLOW:
                wrong.append(PlannedRun(item, program))
    run_once(run, wrong)
    slow = []
    seconds = []
    for item in plans:
        too_slow = [program for program in item.others if program.role in TOO_SLOW]
        # Which tests are kept depends on the programs that have just run.
        order = _kept_first(item, settings) if too_slow else ()
        for program in too_slow:
            program.order = order
            language = program.language
            slow.append(PlannedRun(item, program))
            seconds.append(item.seconds_by_language.get(language, item.limit_seconds))
    run_once(run, slow, seconds)


def _kept_first(
    item: VerificationPlan,
    settings: VerifySettings,
) -> tuple[int, ...]:
    """Return the indices of the tests: first those that will be kept; longest inputs first in
    each part."""
    kept = chosen_tests(_evidence_of(item), settings)
    ranks = []
    for number, test in enumerate(item.candidate.tests):
        ranks.append((number not in kept, -len(test.input), number))
    return tuple(rank[-1] for rank in sorted(ranks))


def _evidence_of(item: VerificationPlan) -> Evidence:
    """Return the evidence of the programs that ran."""
    programs = list(item.accepted)
    for program in item.trivial + item.others:
        # Problems that were found unsound have programs that never ran.
        if program.verdicts:
            programs.append(program)
    num_tests = len(item.candidate.tests)
    trials = tuple(_trial_of(program, num_tests) for program in programs)
    return Evidence(candidate=item.candidate, trials=trials, contradicted=item.contradicted)


def _trial_of(program: PlannedProgram, num_tests: int) -> Trial:
    """Return how a program ended in all its runs."""
    unscored = [verdict for verdict in program.verdicts if not verdict.is_scorable]
    failing = []
    for verdict in program.verdicts:
        if verdict.is_scorable and not verdict.is_accepted:
            failing.append(verdict)
    # A failure says more than a fault of the sandbox, and that more than a pass.
    deciding = (failing or unscored or program.verdicts)[0]
    first = program.verdicts[0]
    failed = _failed_tests(program, num_tests)
    over_limit = [number for number, outcome in failed.items() if outcome in LIMITS]
    # It has run on no test, and so fails each.
    if first.outcome is Outcome.COMPILE_ERROR:
        failed = dict.fromkeys(range(num_tests), first.outcome)
    seconds: tuple[float, ...] = ()
    if program.role == "accepted" and first.is_accepted:
        seconds = tuple(map(cost_of, program.fastest_seconds))
    # Without what differs from run to run.
    detail = ""
    if deciding.outcome not in LIMITS:
        detail = _ADDRESS.sub("0x...", deciding.detail)
    return Trial(
        name=program.name,
        role=program.role,
        outcome=deciding.outcome,
        failed=tuple(sorted(failed)),
        over_limit=tuple(sorted(over_limit)),
        is_flaky=bool(failing) and first.is_accepted,
        seconds=seconds,
        detail=detail,
    )


def _failed_tests(
    program: PlannedProgram,
    num_tests: int,
) -> dict[int, Outcome]:
    """Return the outcomes of the tests that a program failed in its first run, by their index."""
    order = program.order or range(num_tests)
    failed = {}
    for place, test in enumerate(program.verdicts[0].tests):
        if test.verdict not in (Outcome.ACCEPTED, Outcome.SANDBOX_FAULT):
            failed[order[place]] = test.verdict
    return failed
