"""The limits of a problem, from what its accepted programs take.

A source's limits are kept where accepted programs fit. Otherwise the limit is one of a few steps; close to the
boundary between two of them the programs are timed again and the fastest runs count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from microcoder.dataset.verify.evidence import STEP
from microcoder.dataset.verify.plans import Attempt, Plan, problem_for, turned_numbers
from microcoder.dataset.verify.reproducible import is_close, round_up, whole_mebibytes
from microcoder.dataset.verify.settings import VerifySettings
from microcoder.types import Problem, Program, Verdict

_MORE_MEASUREMENTS = 3

Run = Callable[[Sequence[tuple[Program, Problem]]], list[Verdict]]


def derive_limits(run: Run, plans: Sequence[Plan], settings: VerifySettings) -> None:
    """Set the limits of each plan; every plan has accepted programs that passed one run."""
    _measure_again(run, plans, settings)
    for item in plans:
        _set_limits(item, settings)


def _set_limits(item: Plan, settings: VerifySettings) -> None:
    slowest = max(max(attempt.fastest_seconds) for attempt in item.passing())
    given, steps = item.candidate.time_limit_seconds, settings.limit_steps_seconds
    if given is not None and slowest * settings.headroom <= given:
        limit = answers = given
    else:
        factor = settings.multiplier if given is None else settings.headroom
        limit = round_up(slowest * factor, steps, most=given or 0.0)
        languages = {attempt.program.language for attempt in item.passing()}
        is_timed = item.candidate.programming_language in languages or item.candidate.programming_language != "python"
        answers = limit if is_timed else round_up(limit * settings.interpreted_factor, steps, most=limit)
    item.limit_seconds, item.answer_seconds = float(limit), float(answers)
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


def _measure_again(run: Run, plans: Sequence[Plan], settings: VerifySettings) -> None:
    again = [(item, attempt) for item in plans for attempt in _undecided(item, settings)]
    for repeat in range(settings.runs, settings.runs + _MORE_MEASUREMENTS):
        numbers = [turned_numbers(len(item.candidate.tests), repeat) for item, _ in again]
        problems = [
            problem_for(item, attempt.program.language, tests=[item.candidate.tests[n] for n in order])
            for (item, attempt), order in zip(again, numbers, strict=True)
        ]
        verdicts = run([(attempt.program, problem) for (_, attempt), problem in zip(again, problems, strict=True)])
        for (_, attempt), verdict, order in zip(again, verdicts, numbers, strict=True):
            attempt.note_seconds(verdict, order)


def _undecided(item: Plan, settings: VerifySettings) -> list[Attempt]:
    """Return the accepted programs whose time decides between two limits and is close to the boundary."""
    passing, given = item.passing(), item.candidate.time_limit_seconds
    slowest = max(max(attempt.fastest_seconds) for attempt in passing)
    factor = settings.multiplier if given is None else settings.headroom
    limits = settings.limit_steps_seconds[:-1] if given is None else (given, *settings.limit_steps_seconds)
    boundaries = [limit / factor for limit in limits if is_close(slowest, limit / factor)]
    return [a for a in passing if any(is_close(max(a.fastest_seconds), boundary) for boundary in boundaries)]
