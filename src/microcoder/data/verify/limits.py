"""The limits of a problem, from what its accepted programs take.

A source's limits are kept where accepted programs fit. Otherwise the limit is one of a few steps; close to the
boundary between two of them the programs are timed again and the fastest runs count. Programs known to be too slow, in
another language than the answers', get what accepted programs in theirs need, as Kattis counts it: whole seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from microcoder.data.formats.candidates import Candidate
from microcoder.data.verify.choose import VerifySettings
from microcoder.data.verify.evidence import STEP
from microcoder.data.verify.plans import Attempt, VerificationPlan, turned_numbers
from microcoder.data.verify.rates import is_close, round_up, whole_mebibytes
from microcoder.judge.core.types import Problem, Program, Verdict

_MORE_MEASUREMENTS = 3

Run = Callable[[Sequence[tuple[Program, Problem]]], list[Verdict]]


def derive_limits(run: Run, plans: Sequence[VerificationPlan], settings: VerifySettings) -> None:
    """Set the limits of each plan; every plan has accepted programs that passed every run so far."""
    _measure_again(run, plans, settings)
    for item in plans:
        _set_limits(item, settings)


def cost_of(seconds: float, settings: VerifySettings) -> float:
    """Return what a test costs by the limit that it needs: the most that may take, so that noise changes no choice."""
    steps = settings.limit_steps_seconds
    return round_up(seconds, [*(step / settings.multiplier for step in steps), steps[-1]])


def multiplier_of(candidate: Candidate, settings: VerifySettings) -> float:
    """Return what a limit is over the slowest accepted run: the source's own number, but no less than the headroom."""
    stated = candidate.time_multiplier
    return settings.multiplier if stated is None else max(stated, settings.headroom)


def _set_limits(item: VerificationPlan, settings: VerifySettings) -> None:
    slowest = max(max(attempt.fastest_seconds) for attempt in item.passing())
    given, steps = item.candidate.time_limit_seconds, settings.limit_steps_seconds
    multiplier = multiplier_of(item.candidate, settings)
    if given is not None and slowest * settings.headroom <= given:
        limit = answers = given
    else:
        factor = multiplier if given is None else settings.headroom
        limit = round_up(slowest * factor, steps, most=given or 0.0)
        languages = {attempt.program.language for attempt in item.passing()}
        is_timed = item.candidate.programming_language in languages or item.candidate.programming_language != "python"
        answers = limit if is_timed else round_up(limit * settings.interpreted_factor, steps, most=limit)
    item.limit_seconds, item.answer_seconds = float(limit), float(answers)
    if given is None:
        for attempt in item.passing():
            own = min(float(max(1, math.ceil(max(attempt.fastest_seconds) * multiplier))), steps[-1])
            known = item.seconds_by_language.get(attempt.program.language, 0.0)
            item.seconds_by_language[attempt.program.language] = max(known, own)
        item.seconds_by_language[item.candidate.programming_language] = item.answer_seconds
    peak = max(test.memory_mib for attempt in item.passing() for test in attempt.verdicts[0].tests)
    memory = item.candidate.memory_limit_mib
    if memory is None or peak > memory:
        memory = max(settings.default_memory_mib, whole_mebibytes(2 * peak))
    item.memory_mib = memory
    item.candidate = item.candidate.change(
        "verify",
        STEP,
        "from what accepted programs take",
        time_limit_seconds=item.answer_seconds,
        memory_limit_mib=memory,
    )


def _measure_again(run: Run, plans: Sequence[VerificationPlan], settings: VerifySettings) -> None:
    again = [(item, attempt) for item in plans for attempt in _undecided(item, settings)]
    for repeat in range(settings.runs, settings.runs + _MORE_MEASUREMENTS):
        numbers = [turned_numbers(len(item.candidate.tests), repeat) for item, _ in again]
        problems = [
            item.problem(attempt.program.language, order=order)
            for (item, attempt), order in zip(again, numbers, strict=True)
        ]
        verdicts = run([(attempt.program, problem) for (_, attempt), problem in zip(again, problems, strict=True)])
        for (_, attempt), verdict, order in zip(again, verdicts, numbers, strict=True):
            attempt.note_seconds(verdict, order)


def _undecided(item: VerificationPlan, settings: VerifySettings) -> list[Attempt]:
    """Return the accepted programs whose time on a test decides between two limits and is close to the boundary."""
    passing, given = item.passing(), item.candidate.time_limit_seconds
    steps = settings.limit_steps_seconds
    boundaries = [step / multiplier_of(item.candidate, settings) for step in steps]
    if given is not None:
        boundaries += [limit / settings.headroom for limit in (given, *steps)]
    slowest = [
        max(attempt.fastest_seconds[number] for attempt in passing) for number in range(len(item.candidate.tests))
    ]
    close = [boundary for boundary in boundaries if any(is_close(seconds, boundary) for seconds in slowest)]
    return [a for a in passing if any(is_close(seconds, b) for seconds in a.fastest_seconds for b in close)]
