"""Verify by execution: every program of a batch of candidates through the Judge, phase by phase.

    accepted programs, generous limits, repeated -> limits -> again, under them -> trivial -> known-wrong programs

Pass a judge with `cache_size=0` and the stop rule `first_limit`: with `first_failure` a known-wrong program shows only
the first test that catches it, and the choice of tests knows less.
"""

from __future__ import annotations

from collections.abc import Sequence

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.rejections import process_row
from microcoder.data.verify.choose import VerifySettings
from microcoder.data.verify.evidence import TOO_SLOW, Evidence, Trial, chosen_tests, conclude
from microcoder.data.verify.limits import cost_of, derive_limits
from microcoder.data.verify.plans import Attempt, VerificationPlan, convert, plan, turned_numbers
from microcoder.data.verify.rates import LIMITS, at_reference_speed, compare_references, stable_detail
from microcoder.data.verify.store import Verdicts, verdict_key
from microcoder.judge import Judge, judge_answers
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict

_WORKED_SHARE = 0.05
"""Of its wall time: a program that waits for input that never comes, or sleeps, works less."""
_MOST_TRIES = 4
_OWN_ANSWERS = Program(None, reason="the problem's own answers")
"""Names them in the store of verdicts, where no program has no code."""


class Executor:
    """Runs programs, unless the store knows how they end."""

    def __init__(self, judge: Judge, store: Verdicts | None = None) -> None:
        self.judge = judge
        self._store = store

    def run(self, pairs: Sequence[tuple[Program, Problem]]) -> list[Verdict]:
        """Return one verdict per pair, in their order, with the times of the reference machine."""
        judge = self.judge
        keys = [verdict_key(*pair, stop=judge.stop, environment=judge.environment.identity) for pair in pairs]
        found = {number: verdict for number, key in enumerate(keys) if (verdict := self._find(key))}
        left = [number for number in range(len(pairs)) if number not in found]
        self._judge(pairs, keys, left, found)
        for is_last in [False] * (_MOST_TRIES - 2) + [True]:
            for number in [number for number in left if _was_disturbed(found[number])]:
                self._judge(pairs, keys, [number], found, is_last=is_last)
        return [found[number] for number in range(len(pairs))]

    def judge_answers(self, problem: Problem) -> Verdict:
        """Return what a problem's checker program says of the problem's own answers."""
        key = verdict_key(_OWN_ANSWERS, problem, stop=self.judge.stop, environment=self.judge.environment.identity)
        verdict = self._find(key)
        for _ in range(_MOST_TRIES):
            if verdict is not None and not _was_disturbed(verdict):
                break
            verdict = at_reference_speed(judge_answers(self.judge.run, problem), self.judge.time_scale)
            if self._store is not None:
                self._store.keep(key, verdict)
        assert verdict is not None
        return verdict

    def _find(self, key: bytes) -> Verdict | None:
        return None if self._store is None else self._store.find(key)

    def _judge(
        self,
        pairs: Sequence[tuple[Program, Problem]],
        keys: Sequence[bytes],
        numbers: Sequence[int],
        found: dict[int, Verdict],
        *,
        is_last: bool = False,
    ) -> None:
        """Judge some of the pairs; each verdict is kept as soon as it is known, unless it is to be asked for again."""

        def keep(place: int, verdict: Verdict) -> None:
            number = numbers[place]
            found[number] = at_reference_speed(verdict, self.judge.time_scale)
            if self._store is not None and (is_last or not _was_disturbed(verdict)):
                self._store.keep(keys[number], found[number])

        self.judge.judge([pairs[n][0] for n in numbers], [pairs[n][1] for n in numbers], on_verdict=keep)


def verify(
    candidates: Sequence[Candidate],
    judge: Judge,
    settings: VerifySettings | None = None,
    *,
    store: Verdicts | None = None,
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
    candidates: Sequence[Candidate], judge: Judge, settings: VerifySettings, *, store: Verdicts | None = None
) -> list[Evidence | Rejection]:
    """Return what execution showed of each candidate: what `conclude` and `measure_rates` work on."""
    executor = Executor(judge, store)
    found: list[Evidence | Rejection] = []
    for start in range(0, len(candidates), settings.batch_problems):
        batch = candidates[start : start + settings.batch_problems]
        made = [process_row(candidate, "verify", lambda one: plan(one, settings)) for candidate in batch]
        runnable = [item for item in made if isinstance(item, VerificationPlan)]
        _run_accepted(executor, runnable)
        for repeat in range(1, settings.runs - 1):
            _run_again(executor, runnable, repeat)
        sound = [item for item in runnable if item.passing()]
        derive_limits(executor.run, sound, settings)
        if settings.runs > 1:
            _run_again(executor, sound, settings.runs - 1)
        sound = [item for item in sound if item.passing()]
        _run_trivial(executor, sound)
        _run_others(executor, sound, settings)
        _ask_checkers(executor, runnable)
        found += [_evidence(item, settings) if isinstance(item, VerificationPlan) else item for item in made]
    return found


def _run_accepted(executor: Executor, plans: Sequence[VerificationPlan]) -> None:
    """Run accepted programs with generous limits; settle conversions, and what refused outputs mean."""
    _run_all(executor, [(item, attempt) for item in plans for attempt in item.accepted])
    for item in plans:
        _settle_conversions(item)
        for attempt in item.passing():
            attempt.fastest_seconds = [test.cpu_seconds for test in attempt.verdicts[0].tests]
    compare_references(executor.run, [item for item in plans if item.accepted])


def _settle_conversions(item: VerificationPlan) -> None:
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


def _was_disturbed(verdict: Verdict) -> bool:
    """Whether the machine had a hand in a verdict: the sandbox failed, or a program that worked waited too long."""
    if verdict.outcome is Outcome.SANDBOX_FAULT:
        return not verdict.is_checker_fault
    late = [test for test in verdict.tests if test.verdict is Outcome.TIME_LIMIT]
    return any(test.detail.startswith("wall") and test.cpu_seconds > _WORKED_SHARE * test.wall_seconds for test in late)


def _run_again(executor: Executor, plans: Sequence[VerificationPlan], repeat: int) -> None:
    """Run the accepted programs that passed so far once more, with the tests in another order."""
    pairs = [(item, attempt) for item in plans for attempt in item.passing()]
    orders = [turned_numbers(len(item.candidate.tests), repeat) for item, _ in pairs]
    problems = [
        item.problem(attempt.program.language, order=order)
        for (item, attempt), order in zip(pairs, orders, strict=True)
    ]
    verdicts = executor.run([(attempt.program, problem) for (_, attempt), problem in zip(pairs, problems, strict=True)])
    for (_, attempt), verdict, order in zip(pairs, verdicts, orders, strict=True):
        attempt.verdicts.append(verdict)
        attempt.note_seconds(verdict, order)


def _run_trivial(executor: Executor, plans: Sequence[VerificationPlan]) -> None:
    """Run trivial programs on one test, and on all tests where they pass that one."""
    pairs = [(item, attempt) for item in plans for attempt in item.trivial]
    for item, attempt in pairs:
        tests = item.candidate.tests
        attempt.order = (max(range(len(tests)), key=lambda number: len(tests[number].output)),)
    _run_all(executor, pairs, [item.answer_seconds for item, _ in pairs])
    again = [(item, attempt) for item, attempt in pairs if attempt.verdicts[0].is_accepted]
    for _, attempt in again:
        attempt.order = ()
        attempt.verdicts.clear()
    _run_all(executor, again)


def _ask_checkers(executor: Executor, plans: Sequence[VerificationPlan]) -> None:
    """Ask checker programs about the answers of their own problems."""
    for item in plans:
        if item.candidate.checker.type != "program":
            continue
        verdict = executor.judge_answers(item.problem(item.candidate.programming_language))
        if not verdict.is_accepted and not _was_disturbed(verdict):
            item.refused_answers = stable_detail(verdict)


def _run_others(executor: Executor, plans: Sequence[VerificationPlan], settings: VerifySettings) -> None:
    """Run the programs that are known to fail: the wrong ones, then those that are right and too slow.

    The slow meet the tests that will be kept first, the longest of them before the others: they are stopped at the
    first limit, and what counts is whether a kept test stops them.
    """
    _run_all(executor, [(item, one) for item in plans for one in item.others if one.role not in TOO_SLOW])
    pairs = [(item, one) for item in plans for one in item.others if one.role in TOO_SLOW]
    slow = {id(item): item for item, _ in pairs}
    orders = {number: _order_for_slow(item, settings) for number, item in slow.items()}
    for item, attempt in pairs:
        attempt.order = orders[id(item)]
    limits = [item.seconds_by_language.get(one.program.language, item.limit_seconds) for item, one in pairs]
    _run_all(executor, pairs, limits)


def _order_for_slow(item: VerificationPlan, settings: VerifySettings) -> tuple[int, ...]:
    evidence, tests = _evidence(item, settings), item.candidate.tests
    kept = set(chosen_tests(evidence, settings)) if isinstance(evidence, Evidence) else set()
    return tuple(sorted(range(len(tests)), key=lambda number: (number not in kept, -len(tests[number].input), number)))


def _run_all(
    executor: Executor, pairs: Sequence[tuple[VerificationPlan, Attempt]], seconds: Sequence[float | None] = ()
) -> None:
    """Run each program once, under these limits or those of its plan."""
    limits = seconds or [None] * len(pairs)
    asked = [
        (attempt.program, item.problem(attempt.program.language, seconds=limit, order=attempt.order))
        for (item, attempt), limit in zip(pairs, limits, strict=True)
    ]
    for (_, attempt), verdict in zip(pairs, executor.run(asked), strict=True):
        attempt.verdicts.append(verdict)


def _evidence(item: VerificationPlan, settings: VerifySettings) -> Evidence | Rejection:
    if not item.accepted:
        return item.candidate.reject("verify", "python2_reference", "no converted reference passes all tests")
    attempts = [*item.accepted, *(a for a in item.trivial + item.others if a.verdicts)]
    num_tests = len(item.candidate.tests)
    trials = tuple(_trial(attempt, num_tests, settings) for attempt in attempts)
    return Evidence.model_validate(
        {
            "candidate": item.candidate,
            "trials": trials,
            "outputs": item.outputs,
            "refused_answers": item.refused_answers,
        }
    )


def _trial(attempt: Attempt, num_tests: int, settings: VerifySettings) -> Trial:
    failing = [verdict for verdict in attempt.verdicts if not verdict.is_accepted and verdict.is_scorable]
    unscored = [verdict for verdict in attempt.verdicts if not verdict.is_scorable]
    verdict = (failing or unscored or attempt.verdicts)[0]
    first = attempt.verdicts[0]
    never = (Outcome.ACCEPTED, Outcome.SANDBOX_FAULT)
    order = attempt.order or range(num_tests)
    failed = {order[place]: test.verdict for place, test in enumerate(first.tests) if test.verdict not in never}
    over_limit = tuple(sorted(number for number, outcome in failed.items() if outcome in LIMITS))
    if first.outcome is Outcome.COMPILE_ERROR:
        failed = dict.fromkeys(range(num_tests), first.outcome)
    is_reference = attempt.role == "accepted" and first.is_accepted
    return Trial(
        name=attempt.name,
        role=attempt.role,
        language=attempt.program.language,
        outcome=verdict.outcome,
        failed=tuple(sorted(failed)),
        over_limit=over_limit,
        is_flaky=bool(failing) and first.is_accepted,
        seconds=tuple(cost_of(seconds, settings) for seconds in attempt.fastest_seconds) if is_reference else (),
        detail=stable_detail(verdict),
    )
