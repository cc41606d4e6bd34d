"""Derives a problem's limits from the time and memory that its accepted programs take.

A source's limit is kept if accepted programs fit. Otherwise the limit is one of a few steps. Near
the boundary between two of them programs are timed again, each alone and beside a fixed program
that shows how fast the machine is just then. Where the boundary is still too near to tell, the
larger limit counts, and the problem is flagged.

Programs known to be too slow may be in another language than the answers. They get the time that
accepted programs in their language need.
"""

import math
from collections.abc import Sequence
from statistics import median

from microcoder.data.formats.candidates import Candidate
from microcoder.data.verify.plans import PlannedProgram, PlannedRun, VerificationPlan
from microcoder.data.verify.runs import Run, run_rotated
from microcoder.data.verify.timing import Limits, is_close, round_up, with_limits

MULTIPLIER = 5.0
"""Factor from slowest accepted run to limit, if the source states neither limit nor factor.

It is Kattis' own.
"""
LIMIT_STEPS_SECONDS = (2.0, 5.0, 10.0)
"""A derived limit is rounded up to one of these; the last one is the largest.

A problem that needs longer costs a training step minutes for each wrong answer. They are few and
far apart, so that two builds on busy machines derive the same.
"""
_FOREIGN_STEPS_SECONDS = (1.0, *LIMIT_STEPS_SECONDS)
"""The same of programs in other languages than the answers; compiled ones are faster."""
_MARGIN = 1.15
"""Factor by which two measurements beside the fixed program may differ."""
_HEADROOM = 1.5
"""A source's limit is kept if it is this many times the slowest accepted run.

Otherwise it is raised to at least that.
"""
_INTERPRETED_FACTOR = 4.0
"""Factor on a derived limit for Python answers where only compiled programs were timed."""
_MEMORY_MIB = 512
"""Least memory limit where the source has none or programs exceed it.

More if accepted runs need over half of it.
"""
_MORE_MEASUREMENTS = 3
"""How often a program close to a boundary is timed again."""


def derive_limits(
    run: Run,
    plans: Sequence[VerificationPlan],
    *,
    first: int,
) -> None:
    """Set the limits of each plan.

    Programs whose time is close to a boundary between two limits are timed again first.

    Args:
        run: runs programs one at a time, each beside a fixed program (`runs.time_pairs`).
        plans: every one has accepted programs that passed every run so far.
        first: number of runs so far; further ones take the tests in orders of their own.
    """
    # Most programs are far from every boundary, and are not run again.
    undecided = []
    for plan in plans:
        undecided += [PlannedRun(plan, program) for program in _find_undecided(plan)]
    _time_again(run, undecided, first)
    for plan in plans:
        _set_limits(plan)


def _time_again(
    run: Run,
    planned: Sequence[PlannedRun],
    first: int,
) -> None:
    """Replace the times of programs by the median of further measurements."""
    times: list[list[list[float]]] = [[] for _ in planned]
    for repeat in range(first, first + _MORE_MEASUREMENTS):
        known = [item.program.fastest_seconds for item in planned]
        for item in planned:
            item.program.fastest_seconds = [math.inf] * len(item.program.fastest_seconds)
        run_rotated(run, planned, repeat)
        for item, of_program, before in zip(planned, times, known, strict=True):
            # A run that was stopped has not measured every test.
            if all(map(math.isfinite, item.program.fastest_seconds)):
                of_program.append(item.program.fastest_seconds)
            item.program.fastest_seconds = before
    for item, of_program in zip(planned, times, strict=True):
        if of_program:
            by_test = zip(*of_program, strict=True)
            item.program.fastest_seconds = list(map(median, by_test))


def cost_of(seconds: float) -> float:
    """Round a test's CPU seconds up to the largest value from which the same limit is derived.

    So noise in the measurement changes no choice.
    """
    steps = [step / MULTIPLIER for step in LIMIT_STEPS_SECONDS]
    steps.append(LIMIT_STEPS_SECONDS[-1])
    return round_up(seconds, steps)


def _multiplier_of(candidate: Candidate) -> float:
    """Return the factor from the slowest accepted run to the limit.

    It is the source's, at least `_HEADROOM`.
    """
    return max(candidate.time_multiplier or MULTIPLIER, _HEADROOM)


def _set_limits(plan: VerificationPlan) -> None:
    """Set a plan's limits, and those of its candidate."""
    slowest = max(max(program.fastest_seconds) for program in plan.passing())
    # With a margin: what is too near to a boundary gets the larger limit.
    low = _limit_of(plan, slowest / _MARGIN)
    limit = _limit_of(plan, slowest * _MARGIN)
    plan.limit_seconds = limit
    plan.answer_seconds = _answer_limit_of(plan, limit)
    is_unsure = low != limit or slowest * _HEADROOM > limit
    if plan.candidate.time_limit_seconds is None:
        _set_seconds_by_language(plan)
    plan.memory_mib = _memory_of(plan)
    plan.limits = Limits(
        seconds=plan.answer_seconds,
        memory_mib=plan.memory_mib,
        is_unsure=is_unsure,
    )
    plan.candidate = with_limits(plan.candidate, plan.limits)


def _limit_of(plan: VerificationPlan, slowest: float) -> float:
    """Return the CPU seconds of accepted programs, of which the slowest takes so many."""
    stated = plan.candidate.time_limit_seconds
    if stated is not None and slowest * _HEADROOM <= stated:
        # Fair to the references, so it is the one that answers are judged by.
        return float(stated)
    # A stated limit that is too short is raised as little as references need.
    factor = _multiplier_of(plan.candidate) if stated is None else _HEADROOM
    return round_up(slowest * factor, LIMIT_STEPS_SECONDS, most=stated or 0.0)


def _answer_limit_of(plan: VerificationPlan, limit: float) -> float:
    """Return the CPU seconds of answers, by those of accepted programs."""
    stated = plan.candidate.time_limit_seconds
    answers_language = plan.candidate.programming_language
    timed_languages = {program.language for program in plan.passing()}
    # An interpreter is slower than what was timed; a limit that is kept was meant for it.
    if limit != stated and answers_language == "python" and "python" not in timed_languages:
        return round_up(limit * _INTERPRETED_FACTOR, LIMIT_STEPS_SECONDS, most=limit)
    return limit


def _set_seconds_by_language(plan: VerificationPlan) -> None:
    """Set the CPU seconds of programs that are known to be too slow."""
    multiplier = _multiplier_of(plan.candidate)
    by_language = plan.seconds_by_language
    for program in plan.passing():
        language = program.language
        needed = max(program.fastest_seconds) * _MARGIN * multiplier
        seconds = round_up(needed, _FOREIGN_STEPS_SECONDS)
        by_language[language] = max(by_language.get(language, 0.0), seconds)
    # Last, since in this language the limit of answers stands.
    by_language[plan.candidate.programming_language] = plan.answer_seconds


def _memory_of(plan: VerificationPlan) -> int:
    """Return the memory limit in MiB: the source's where accepted programs fit."""
    peak = 0.0
    for program in plan.passing():
        for test in program.verdicts[0].tests:
            peak = max(peak, test.memory_mib)
    stated = plan.candidate.memory_limit_mib
    if stated is not None and peak <= stated:
        return stated
    # A power of two.
    needed = max(2 * peak, 1.0)
    doubled = 1 << math.ceil(math.log2(needed))
    return max(_MEMORY_MIB, doubled)


def _find_undecided(plan: VerificationPlan) -> list[PlannedProgram]:
    """Return the accepted programs that decide between two limits.

    Their time on a test is close to the boundary, and they are the slowest there.
    """
    passing = plan.passing()
    times_by_test = zip(*(program.fastest_seconds for program in passing), strict=True)
    slowest = [max(times) for times in times_by_test]
    boundaries = []
    for boundary in _boundaries_of(plan.candidate):
        if _is_any_close(slowest, boundary):
            boundaries.append(boundary)
    undecided = []
    for program in passing:
        near = [*boundaries, *_own_boundaries_of(plan.candidate, program)]
        if any(_is_any_close(program.fastest_seconds, boundary) for boundary in near):
            undecided.append(program)
    return undecided


def _is_any_close(times: Sequence[float], boundary: float) -> bool:
    return any(is_close(seconds, boundary) for seconds in times)


def _boundaries_of(candidate: Candidate) -> list[float]:
    """Return the times of the slowest accepted run at which the derived limit changes."""
    multiplier = _multiplier_of(candidate)
    boundaries = [step / multiplier for step in LIMIT_STEPS_SECONDS]
    stated = candidate.time_limit_seconds
    if stated is not None:
        boundaries += [limit / _HEADROOM for limit in (stated, *LIMIT_STEPS_SECONDS)]
    return boundaries


def _own_boundaries_of(candidate: Candidate, program: PlannedProgram) -> list[float]:
    """Return the times at which the limit of slow programs in a foreign language changes."""
    is_foreign = program.language != candidate.programming_language
    if not is_foreign or candidate.time_limit_seconds is not None:
        return []
    multiplier = _multiplier_of(candidate)
    return [step / multiplier for step in _FOREIGN_STEPS_SECONDS]
