"""Derives a problem's limits from the time and memory that its accepted programs take.

A source's limit is kept if accepted programs fit. Otherwise the limit is one of a few steps; close
to the boundary between two of them the programs are timed again, and the fastest runs count.

Programs known to be too slow may be in another language than the answers. They get the time that
accepted programs in their language need, counted as Kattis does: in whole seconds.
"""

import math
from collections.abc import Sequence

from microcoder.data.formats.candidates import Candidate
from microcoder.data.verify.evidence import STEP
from microcoder.data.verify.plans import PlannedProgram, PlannedRun, VerificationPlan
from microcoder.data.verify.runs import Run, run_rotated
from microcoder.data.verify.timing import is_close, round_up

MULTIPLIER = 5.0
"""Factor from slowest accepted run to limit, if the source states neither limit nor factor.

It is Kattis' own.
"""
LIMIT_STEPS_SECONDS = (2.0, 5.0, 10.0)
"""A derived limit is rounded up to one of these; the last one is the largest.

A problem that needs longer costs a training step minutes for each wrong answer. They are few and
far apart, so that two builds on busy machines derive the same.
"""
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
        run: runs the programs.
        plans: every one has accepted programs that passed every run so far.
        first: number of runs so far; further ones take the tests in orders of their own.
    """
    # Most programs are far from every boundary, and are not run again.
    undecided = []
    for plan in plans:
        undecided += [PlannedRun(plan, program) for program in _find_undecided(plan)]
    for repeat in range(first, first + _MORE_MEASUREMENTS):
        run_rotated(run, undecided, repeat)
    for plan in plans:
        _set_limits(plan)


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
    stated_seconds = plan.candidate.time_limit_seconds
    _set_seconds(plan)
    if stated_seconds is None:
        _set_seconds_by_language(plan)
    _set_memory(plan)
    plan.candidate = plan.candidate.change(
        "verify",
        STEP,
        "from what accepted programs take",
        time_limit_seconds=plan.answer_seconds,
        memory_limit_mib=plan.memory_mib,
    )


def _set_seconds(plan: VerificationPlan) -> None:
    """Set the CPU seconds of accepted programs, and those of answers."""
    slowest = max(max(program.fastest_seconds) for program in plan.passing())
    stated = plan.candidate.time_limit_seconds
    if stated is not None and slowest * _HEADROOM <= stated:
        # Fair to the references, so it is the one that answers are judged by.
        plan.limit_seconds = float(stated)
        plan.answer_seconds = float(stated)
        return
    # A stated limit that is too short is raised as little as references need.
    factor = _multiplier_of(plan.candidate) if stated is None else _HEADROOM
    limit = round_up(slowest * factor, LIMIT_STEPS_SECONDS, most=stated or 0.0)
    plan.limit_seconds = limit
    plan.answer_seconds = limit
    answers_language = plan.candidate.programming_language
    timed_languages = {program.language for program in plan.passing()}
    # An interpreter is slower than what was timed.
    if answers_language == "python" and answers_language not in timed_languages:
        slower = limit * _INTERPRETED_FACTOR
        plan.answer_seconds = round_up(slower, LIMIT_STEPS_SECONDS, most=limit)


def _set_seconds_by_language(plan: VerificationPlan) -> None:
    """Set the CPU seconds of programs that are known to be too slow."""
    multiplier = _multiplier_of(plan.candidate)
    by_language = plan.seconds_by_language
    for program in plan.passing():
        language = program.language
        whole_seconds = math.ceil(max(program.fastest_seconds) * multiplier)
        # Whole seconds, one at least, as Kattis counts them.
        seconds = float(max(1, whole_seconds))
        seconds = min(seconds, LIMIT_STEPS_SECONDS[-1])
        by_language[language] = max(by_language.get(language, 0.0), seconds)
    # Last, since in this language the limit of answers stands.
    by_language[plan.candidate.programming_language] = plan.answer_seconds


def _set_memory(plan: VerificationPlan) -> None:
    """Set the memory limit: the source's where accepted programs fit."""
    peak = 0.0
    for program in plan.passing():
        for test in program.verdicts[0].tests:
            peak = max(peak, test.memory_mib)
    stated = plan.candidate.memory_limit_mib
    if stated is not None and peak <= stated:
        plan.memory_mib = stated
        return
    # A power of two.
    needed = max(2 * peak, 1.0)
    doubled = 1 << math.ceil(math.log2(needed))
    plan.memory_mib = max(_MEMORY_MIB, doubled)


def _find_undecided(plan: VerificationPlan) -> list[PlannedProgram]:
    """Return the accepted programs that decide between two limits.

    Their time on a test is close to the boundary.
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
        if any(_is_any_close(program.fastest_seconds, boundary) for boundary in boundaries):
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
