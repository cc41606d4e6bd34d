"""Verify by execution: every program of a batch of candidates through the Judge, phase by phase.

    accepted programs, generous limits -> limits -> again, under them -> trivial programs -> known-wrong programs

Pass a judge with `cache_size=0` and the stop rule `first_limit`: with `first_failure` a known-wrong program shows only
the first test that catches it, and the choice of tests knows less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from microcoder.dataset.candidates import Candidate, Rejection
from microcoder.dataset.verify.evidence import STEP, Evidence, Trial, conclude, reject
from microcoder.dataset.verify.outputs import compare_references
from microcoder.dataset.verify.plans import Attempt, Plan, convert, plan, problem_for
from microcoder.dataset.verify.settings import VerifySettings
from microcoder.dataset.verify.store import VerdictStore, verdict_key
from microcoder.evaluator import Judge
from microcoder.types import Outcome, Problem, Program, TestCase, Verdict

_LIMIT_STEPS_SECONDS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 90, 120, 180, 240, 300, 450, 600)
"""Derived limits are rounded up to one of these, so that two runs on a busy machine mostly derive the same."""
_MEMORY_STEP_MIB = 128
_WORKED_SHARE = 0.05
"""Of its wall time: a program that waits for input that never comes, or sleeps, works less."""


class Executor:
    """Runs programs, unless the store knows how they end."""

    def __init__(self, judge: Judge, store: VerdictStore | None = None) -> None:
        self.judge = judge
        self._store = store

    def run(self, pairs: Sequence[tuple[Program, Problem]]) -> list[Verdict]:
        """Return one verdict per pair, in their order."""
        keys = [
            verdict_key(program, problem, stop=self.judge.stop, time_scale=self.judge.time_scale)
            for program, problem in pairs
        ]
        verdicts = [self._store.find(key) if self._store else None for key in keys]
        missing = [number for number, verdict in enumerate(verdicts) if verdict is None]

        def keep(number: int, verdict: Verdict) -> None:
            verdicts[missing[number]] = verdict
            if self._store is not None and not _was_starved(verdict):
                self._store.keep(keys[missing[number]], verdict)

        programs, problems = [pairs[number][0] for number in missing], [pairs[number][1] for number in missing]
        self.judge.judge(programs, problems, on_verdict=keep)
        for number in missing:
            verdict = verdicts[number]
            if verdict is not None and _was_starved(verdict):
                verdict = verdicts[number] = self.judge.judge([pairs[number][0]], [pairs[number][1]])[0]
                if self._store is not None:
                    self._store.keep(keys[number], verdict)
        return [verdict for verdict in verdicts if verdict is not None]


def verify(
    candidates: Sequence[Candidate],
    judge: Judge,
    settings: VerifySettings | None = None,
    *,
    store: VerdictStore | None = None,
) -> list[Candidate | Rejection]:
    """Return each candidate with its chosen tests, limits and verified references, or why it is turned away.

    Args:
        candidates: from the process and filter stages.
        judge: what runs the programs (see the head of this module).
        settings: what a problem must show.
        store: verdicts of an earlier run, and where this run's are kept.

    Raises:
        ConfigError: a Python 2 reference is to be converted and fissix is missing.
        EvaluatorFault: the judge is closed.
    """
    settings = settings or VerifySettings()
    found = gather(candidates, judge, settings, store=store)
    return [conclude(item, settings) if isinstance(item, Evidence) else item for item in found]


def gather(
    candidates: Sequence[Candidate], judge: Judge, settings: VerifySettings, *, store: VerdictStore | None = None
) -> list[Evidence | Rejection]:
    """Return what execution showed of each candidate: what `conclude` and `measure_rates` work on."""
    executor = Executor(judge, store)
    found: list[Evidence | Rejection] = []
    for start in range(0, len(candidates), settings.batch_problems):
        made = [plan(candidate, settings) for candidate in candidates[start : start + settings.batch_problems]]
        runnable = [item for item in made if isinstance(item, Plan)]
        _run_accepted(executor, runnable, settings)
        sound = [item for item in runnable if _passing(item)]
        _run_again(executor, sound, settings)
        _run_trivial(executor, sound)
        _run_others(executor, sound)
        found += [_evidence(item, judge.time_scale) if isinstance(item, Plan) else item for item in made]
    return found


def _run_accepted(executor: Executor, plans: Sequence[Plan], settings: VerifySettings) -> None:
    """Run accepted programs with generous limits; settle conversions and limits."""
    _run_all(executor, [(item, attempt) for item in plans for attempt in item.accepted])
    for item in plans:
        _settle_conversions(item)
        if passing := _passing(item):
            _derive_limits(item, passing, settings, executor.judge.time_scale)
    compare_references(executor.run, [item for item in plans if item.accepted])


def _settle_conversions(item: Plan) -> None:
    """Of every Python 2 program keep the version that passes; set aside those with none."""
    kept: list[Attempt] = []
    done: set[int] = set()
    for attempt in item.accepted:
        if attempt.is_converted:
            if attempt.solution in done or not attempt.verdicts[0].is_accepted:
                continue
            done.add(attempt.solution)
            convert(item, attempt)
        kept.append(attempt)
    item.accepted = kept


def _derive_limits(item: Plan, passing: Sequence[Attempt], settings: VerifySettings, time_scale: float) -> None:
    """Set the limits that accepted programs imply, and keep the source's where they allow it."""
    tests = [test for attempt in passing for test in attempt.verdicts[0].tests]
    slowest = max(test.cpu_seconds for test in tests) / time_scale
    given = item.candidate.time_limit_seconds
    if given is not None and slowest * settings.headroom <= given:
        limit = answers = given
    else:
        factor = settings.multiplier if given is None else settings.headroom
        limit = _step(max(slowest * factor, settings.min_limit_seconds), settings.max_limit_seconds)
        languages = {attempt.program.language for attempt in passing}
        is_timed = item.candidate.programming_language in languages or item.candidate.programming_language != "python"
        answers = limit if is_timed else _step(limit * settings.interpreted_factor, settings.max_limit_seconds)
    item.limit_seconds, item.answer_seconds = limit, answers
    peak = max(test.memory_mib for test in tests)
    memory = item.candidate.memory_limit_mib
    if memory is None or peak > memory:
        needed = math.ceil(2 * peak / _MEMORY_STEP_MIB) * _MEMORY_STEP_MIB
        memory = max(settings.default_memory_mib, needed)
    item.memory_mib = memory
    how = f"slowest accepted run {slowest:.2f} s, {peak:.0f} MiB"
    item.candidate = item.candidate.change(
        "verify", STEP, how, time_limit_seconds=float(answers), memory_limit_mib=memory
    )


def _was_starved(verdict: Verdict) -> bool:
    """Whether a program ended at the backstop on wall time although it worked: it waited for a busy machine."""
    if verdict.outcome is not Outcome.TIME_LIMIT:
        return False
    last = next(test for test in verdict.tests if test.verdict is Outcome.TIME_LIMIT)
    return last.detail.startswith("wall") and last.cpu_seconds > _WORKED_SHARE * last.wall_seconds


def _step(seconds: float, most: float) -> float:
    return min(next((float(step) for step in _LIMIT_STEPS_SECONDS if step >= seconds), most), most)


def _run_again(executor: Executor, plans: Sequence[Plan], settings: VerifySettings) -> None:
    """Repeat accepted programs under the final limits, each time with the tests in another order.

    Another order is another problem to the judge, so that no verdict is taken from its memory.
    """
    for repeat in range(1, settings.runs):
        pairs = [(item, attempt) for item in plans for attempt in _passing(item)]
        problems = [
            problem_for(item, attempt.program.language, tests=turned(item.candidate.tests, repeat))
            for item, attempt in pairs
        ]
        verdicts = executor.run([(attempt.program, p) for (_, attempt), p in zip(pairs, problems, strict=True)])
        for (_, attempt), verdict in zip(pairs, verdicts, strict=True):
            attempt.verdicts.append(verdict)


def turned(tests: Sequence[TestCase], repeat: int) -> tuple[TestCase, ...]:
    """Return tests beginning with another one; a single test as often as makes it another problem."""
    if len(tests) == 1:
        return tuple(tests) * (repeat + 1)
    start = repeat * max(1, len(tests) // (repeat + 1)) % len(tests)
    return (*tests[start:], *tests[:start])


def _run_trivial(executor: Executor, plans: Sequence[Plan]) -> None:
    """Run trivial programs on one test, and on all tests where they pass that one."""
    pairs = [(item, attempt) for item in plans for attempt in item.trivial]
    first = {id(item): [max(item.candidate.tests, key=lambda test: len(test.output))] for item in plans}
    verdicts = executor.run(
        [
            (attempt.program, problem_for(item, "python", seconds=item.answer_seconds, tests=first[id(item)]))
            for item, attempt in pairs
        ]
    )
    for (_, attempt), verdict in zip(pairs, verdicts, strict=True):
        attempt.verdicts.append(verdict)
    again = [(item, attempt) for item, attempt in pairs if attempt.verdicts[0].is_accepted]
    for _, attempt in again:
        attempt.verdicts.clear()
    _run_all(executor, again)


def _run_others(executor: Executor, plans: Sequence[Plan]) -> None:
    _run_all(executor, [(item, attempt) for item in plans for attempt in item.others])


def _run_all(executor: Executor, pairs: Sequence[tuple[Plan, Attempt]]) -> None:
    verdicts = executor.run([(a.program, problem_for(item, a.program.language)) for item, a in pairs])
    for (_, attempt), verdict in zip(pairs, verdicts, strict=True):
        attempt.verdicts.append(verdict)


def _passing(item: Plan) -> list[Attempt]:
    return [attempt for attempt in item.accepted if all(verdict.is_accepted for verdict in attempt.verdicts)]


def _evidence(item: Plan, time_scale: float) -> Evidence | Rejection:
    if not item.accepted:
        return reject(item.candidate, "python2_reference", "no converted reference passes all tests")
    attempts = [*item.accepted, *(a for a in item.trivial + item.others if a.verdicts)]
    num_tests = len(item.candidate.tests)
    trials = tuple(_trial(attempt, num_tests, time_scale) for attempt in attempts)
    return Evidence.model_validate({"candidate": item.candidate, "trials": trials, "outputs": item.outputs})


def _trial(attempt: Attempt, num_tests: int, time_scale: float) -> Trial:
    failing = [verdict for verdict in attempt.verdicts if not verdict.is_accepted and verdict.is_scorable]
    unscored = [verdict for verdict in attempt.verdicts if not verdict.is_scorable]
    verdict = (failing or unscored or attempt.verdicts)[0]
    first = attempt.verdicts[0]
    never = (Outcome.ACCEPTED, Outcome.SANDBOX_FAULT)
    failed = tuple(number for number, test in enumerate(first.tests) if test.verdict not in never)
    if first.outcome is Outcome.COMPILE_ERROR:
        failed = tuple(range(num_tests))
    is_reference = attempt.role == "accepted" and first.is_accepted
    return Trial(
        name=attempt.name,
        role=attempt.role,
        language=attempt.program.language,
        outcome=verdict.outcome,
        failed=failed if len(first.tests) <= num_tests else (),
        is_flaky=bool(failing) and first.is_accepted,
        seconds=tuple(round(test.cpu_seconds / time_scale, 3) for test in first.tests) if is_reference else (),
        detail=verdict.detail,
    )
