"""The definition of a verdict: which test is next, when to stop, what counts, what it says.

Nothing here knows of processes: an `Executor` runs programs and says what it saw. With the plain
one of `reference.py` (a new sandbox a program, a process a test, nothing run again) this is the
reference judge. With a worker's own (`local.py`) it is the judge.

A program is judged by its tests in order. The outcome of a test is that of the first row of the
table in `verdicts.py` that applies to its run, and the first test that is not accepted decides
about the program. Three rules make that fast without another verdict:

1. **The first test runs in a process of its own**, where most wrong programs end. If it is accepted
   and was quick, all quick tests run in a process that they share, in an order that is secret
   (`order.py`). If the programs before were right and quick, this one begins there.
2. **Company accepts all of its tests at once, or nothing.** If one of them is not right, or the
   process ended, the program is judged as if nothing had been shared: a process a test, in order.
   A wrong answer stands, however: a program that could answer otherwise alone would have two
   guesses, one for each.
3. **There is no second try.** A run that does not count has an excuse (`Excuse`). Where the run in
   its place may be a second chance, and is accepted, the program is judged alone until it has two
   runs of each test without excuses, and of each test the worse one counts. A program whose runs
   are all alike loses nothing but time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import (
    CHECKER_FAULT,
    Outcome,
    Problem,
    Program,
    Repeat,
    TestResult,
    UncountedRun,
    Verdict,
)
from microcoder.judge.languages import find_language
from microcoder.judge.run import verdicts
from microcoder.judge.run.checkers import CheckerProgram
from microcoder.judge.run.executor import (
    Executable,
    Executor,
    Observation,
    Run,
    Source,
    Task,
    Usage,
)
from microcoder.judge.run.explanations import add_packages
from microcoder.judge.run.interactors import InteractorProgram
from microcoder.judge.run.options import StopRule
from microcoder.judge.run.order import draw_order
from microcoder.judge.run.reports import judge_conversation
from microcoder.judge.run.timing import CHECKER_MIB, share_limits
from microcoder.judge.run.verdicts import PreparedProblem, PreparedTest
from microcoder.judge.sandbox.protocol import PLAIN

_LIMITS = (
    Outcome.TIME_LIMIT,
    Outcome.MEMORY_LIMIT,
    Outcome.OUTPUT_LIMIT,
    Outcome.PROCESS_LIMIT,
    Outcome.SANDBOX_FAULT,
)
"""Outcomes after which the stop rule `first_limit` skips the remaining tests."""
_QUICK_SECONDS = 0.02
"""CPU time of a first test up to which a process of its own costs as much as what it runs."""
_LEAST_SHARED = 8
"""Tests that share a process at least: fewer cost what they cost alone."""
RIGHT_ALONE = "right in a process of its own, and not behind other tests in one"
"""How the detail begins of a test that was right alone and wrong in company."""


class Abandoned(Exception):
    """No caller waits for this verdict any more."""


def is_always_wanted() -> bool:
    """Whether anybody waits, where nobody can leave."""
    return True


@dataclass(frozen=True, slots=True)
class Rules:
    """What may differ between two judges."""

    stop: StopRule = "never"
    """After which test the others are skipped."""
    shares: bool = False
    """Whether tests may share a process."""
    order_key: str = ""
    """Key of the order in which they then run."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and what was decided on the way."""

    verdict: Verdict
    notes: tuple[tuple[int, str], ...] = ()
    """Decisions about time, in words, each with the number of its test."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """A program that is loaded, with the problem that judges it."""

    program: Executable
    code: str
    task: Task
    """What it is run on, but for a test's input."""
    problem: PreparedProblem
    checking: CheckerProgram | None
    interactor: InteractorProgram | None
    executor: Executor
    """Loads further programs: tests that call it."""

    def run_on(self, test: PreparedTest) -> Task:
        """Return what the program is run on for a test."""
        return replace(self.task, stdin=test.stdin)


@dataclass(slots=True)
class _Ledger:
    """Everything that happens while one program is judged."""

    uncounted: list[UncountedRun] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    order: tuple[int, ...] = ()

    def uncount(self, test: int, reason: Repeat) -> None:
        """Note a run that does not count, of the test with this number."""
        self.uncounted.append(UncountedRun(test, reason))


@dataclass(frozen=True, slots=True)
class _Company:
    """What came of tests that share processes."""

    accepted: dict[int, TestResult] = field(default_factory=dict)
    """Number of a test -> its result: of all of them, or of none."""
    refused: dict[int, TestResult] = field(default_factory=dict)
    """The same of the test whose answer was wrong, if one was."""
    is_lost: bool = False
    """Whether they could not be judged together, though none was seen to be wrong."""


@dataclass(slots=True)
class _Attempt:
    """The results of one time through a program's tests."""

    results: dict[int, TestResult] = field(default_factory=dict)
    """Number of a test, from 1 -> its result."""
    is_doubtful: bool = False
    """Whether a test was accepted in what may have been a second try."""

    @property
    def is_accepted(self) -> bool:
        """Whether every test so far was accepted."""
        return all(result.verdict is Outcome.ACCEPTED for result in self.results.values())


def judge_program(
    program: Program,
    prepared: PreparedProblem,
    executor: Executor,
    rules: Rules,
    is_wanted: Callable[[], bool] = is_always_wanted,
) -> Judgement:
    """Judge one program; a broken sandbox is a `SANDBOX_FAULT`, not an exception.

    Args:
        program: what to judge.
        prepared: the problem that judges it.
        executor: runs it.
        rules: when to stop, and whether tests may share a process.
        is_wanted: asked before each test whether anybody still waits for the verdict.

    Raises:
        Abandoned: nobody waits.
    """
    total = len(prepared.tests)
    if program.code is None:
        return Judgement(Verdict(Outcome.NO_CODE, (), total, program.reason))
    ledger = _Ledger()
    level = ""
    try:
        with contextlib.ExitStack() as opened:
            trial = _prepare(opened, program.code, prepared, executor)
            if isinstance(trial, TestResult):
                results = [trial]
            else:
                results = _Judging(trial, rules, is_wanted, ledger).judge()
                level = executor.level
    except (EvaluatorFault, OSError) as fault:
        results = [verdicts.without_run(Outcome.SANDBOX_FAULT, str(fault))]
    verdict = verdicts.conclude(
        results, total, isolation=level, uncounted=ledger.uncounted, order=ledger.order
    )
    return Judgement(verdict, tuple(ledger.notes))


def _prepare(
    opened: contextlib.ExitStack, code: str, prepared: PreparedProblem, executor: Executor
) -> _Trial | TestResult:
    """Return a program ready to be judged, or the one result that decides it already."""
    problem = prepared.problem
    # The checker first: without it no program of the problem can be judged.
    checking = _prepare_checker(opened, prepared, executor)
    if isinstance(checking, TestResult):
        return checking
    interactor = _prepare_interactor(opened, prepared, executor, checking)
    if isinstance(interactor, TestResult):
        return interactor
    source = Source(
        prepared.language,
        code,
        problem.memory_limit_mib,
        is_function=problem.fn_name is not None,
        beside=_list_beside(problem),
    )
    program = executor.load(opened, source)
    if isinstance(program, str):
        return verdicts.without_run(Outcome.COMPILE_ERROR, program)
    task = Task(fn_name=problem.fn_name or "", call=prepared.call_message, dialect=problem.dialect)
    return _Trial(program, code, task, prepared, checking, interactor, executor)


def _list_beside(problem: Problem) -> tuple[str, ...]:
    """Return the sources that run with a program: its tests, if they are programs."""
    if problem.assertions is None:
        return ()
    return (problem.assertions.setup, *(test.output for test in problem.tests))


def _prepare_checker(
    opened: contextlib.ExitStack, prepared: PreparedProblem, executor: Executor
) -> CheckerProgram | TestResult | None:
    """Return a problem's checker program, None if it has none.

    One that cannot be built is a fault, which is returned instead.
    """
    checker = prepared.problem.checker
    if checker.type != "program":
        return None
    language = find_language(checker.language)
    source = Source(language, str(checker.code), CHECKER_MIB, has_files=True)
    loaded = executor.load(opened, source)
    if isinstance(loaded, str):
        message = f"{CHECKER_FAULT}was not built: {loaded}"
        return verdicts.without_run(Outcome.SANDBOX_FAULT, message)
    return CheckerProgram(loaded, prepared.checker_limits)


def _prepare_interactor(
    opened: contextlib.ExitStack,
    prepared: PreparedProblem,
    executor: Executor,
    checking: CheckerProgram | None,
) -> InteractorProgram | TestResult | None:
    """Return a problem's interactor, None if it has none.

    One that cannot be built is a fault, which is returned instead.
    """
    interactor = prepared.problem.interactor
    if interactor is None:
        return None
    language = find_language(interactor.language)
    source = Source(language, interactor.code, CHECKER_MIB, is_partner=True, has_files=True)
    loaded = executor.load(opened, source)
    if isinstance(loaded, str):
        message = f"{CHECKER_FAULT}was not built: {loaded}"
        return verdicts.without_run(Outcome.SANDBOX_FAULT, message)
    return InteractorProgram(interactor, loaded, prepared.checker_limits, checking, executor)


@dataclass(frozen=True, slots=True)
class _Judging:
    """One program that is being judged."""

    trial: _Trial
    rules: Rules
    is_wanted: Callable[[], bool]
    ledger: _Ledger

    def judge(self) -> list[TestResult]:
        """Return the results of the program's tests, in order, up to the last that is judged."""
        attempt = _Attempt()
        problem = self.trial.problem
        tests = range(1, len(problem.tests) + 1)
        shareable = self._list_shareable()
        # Where the programs before were right and quick, this one is likely to be.
        if not (shareable and problem.begins_in_company):
            self._judge_alone(attempt, tests[:1])
        company = _Company()
        if shareable and _is_quick(attempt):
            order = draw_order(self.rules.order_key, self.trial.code, shareable)
            company = self._judge_together(order)
        # What has a run of its own has its own times.
        attempt.results = {**company.accepted, **attempt.results}
        self._judge_alone(attempt, tests)
        if shareable:
            problem.note_company(was_accepted=bool(company.accepted) and attempt.is_accepted)
        # What was lost in company and passes alone may have had a second try there.
        may_be_luck = company.is_lost and attempt.is_accepted
        if attempt.is_doubtful or may_be_luck:
            results = self._judge_anew(attempt)
        else:
            results = self._in_order(attempt)
        return self._refuse(results, company.refused)

    def _judge_alone(
        self, attempt: _Attempt, tests: Iterable[int], *, is_final: bool = False
    ) -> None:
        """Add the results of tests that have none yet, each in a process of its own.

        The stop rule, or a doubt, ends that.
        """
        for number in tests:
            if number not in attempt.results:
                # Between two tests the caller may have left.
                if not self.is_wanted():
                    raise Abandoned
                self._judge_test(attempt, number, is_final=is_final)
            if attempt.is_doubtful or _stops_after(attempt.results[number], self.rules.stop):
                return

    def _judge_test(self, attempt: _Attempt, number: int, *, is_final: bool) -> None:
        """Add the result of one test, run in a process of its own."""
        test = self.trial.problem.tests[number - 1]
        if self.trial.problem.problem.assertions is not None:
            observed, result = self._judge_conversation(str(test.expected), is_final=is_final)
        else:
            observed = self._observe(test, is_final=is_final)
            result = self._judge_observed(observed, test)
        attempt.results[number] = result
        self.ledger.notes += [(number, note) for note in observed.notes]
        for excuse in observed.excuses:
            self.ledger.uncount(number, excuse.reason)
            if excuse.may_help and result.verdict is Outcome.ACCEPTED:
                attempt.is_doubtful = True

    def _observe(self, test: PreparedTest, *, is_final: bool) -> Observation:
        """Return what is seen of the program on a test's input, or with its interactor."""
        trial = self.trial
        limits = trial.problem.limits
        if trial.interactor is None:
            return trial.program.run(trial.run_on(test), limits, is_final=is_final)
        return trial.interactor.observe(trial.program, trial.task, test, limits, is_final=is_final)

    def _judge_observed(self, observed: Observation, test: PreparedTest) -> TestResult:
        """Return the result of a test by what was seen of it."""
        if observed.run is None:
            return verdicts.without_run(Outcome.SANDBOX_FAULT, observed.fault)
        try:
            return self._judge_run(observed.run, test)
        # A checker program is run for that.
        except (EvaluatorFault, OSError) as fault:
            return verdicts.without_run(Outcome.SANDBOX_FAULT, str(fault))

    def _judge_conversation(self, code: str, *, is_final: bool) -> tuple[Observation, TestResult]:
        """Return what is seen of a program with a test that is a program, and the test's result."""
        prepared = self.trial.problem
        source = Source(find_language("python"), code, CHECKER_MIB, is_partner=True)
        with contextlib.ExitStack() as opened:
            test = self.trial.executor.load(opened, source)
            # A Python program is refused by its first run, and not before.
            assert not isinstance(test, str)
            observed = self.trial.program.converse(
                test,
                prepared.settings,
                prepared.limits,
                prepared.checker_limits,
                is_final=is_final,
            )
            if observed.run is None:
                return observed, verdicts.without_run(Outcome.SANDBOX_FAULT, observed.fault)
            rejection = self.trial.program.rejection()
            if rejection is not None:
                refused = verdicts.result_of(observed.run, Outcome.COMPILE_ERROR, rejection)
                return observed, refused
            result = judge_conversation(prepared, observed.run, test.rejection())
            return observed, self._explain(result)

    def _judge_run(self, run: Run, test: PreparedTest) -> TestResult:
        """Return the result of a test by its run."""
        # Compiled in the program's own process, so this is known only after its run.
        if run.result.exit_code:
            rejection = self.trial.program.rejection()
            if rejection is not None:
                return verdicts.result_of(run, Outcome.COMPILE_ERROR, rejection)
        if self.trial.interactor is not None:
            return self._explain(self.trial.interactor.judge(run, self.trial.problem, test))
        if self.trial.checking is not None:
            return self.trial.checking.judge(run, self.trial.problem, test)
        return self._explain(self.trial.problem.judge(run, test))

    def _explain(self, result: TestResult) -> TestResult:
        """Return a result whose words say which package was missing, if one was."""
        if result.verdict not in (Outcome.RUNTIME_ERROR, Outcome.SANDBOX_FAULT):
            return result
        detail = add_packages(result.detail, self.trial.executor.packages)
        return replace(result, detail=verdicts.shorten(detail))

    def _list_shareable(self) -> tuple[int, ...]:
        """Return the tests that may share a process; none if it would not pay."""
        problem = self.trial.problem.problem
        if not self.rules.shares:
            return ()
        # A checker program takes a process a test whatever the program does.
        if self.trial.checking is not None or problem.dialect != PLAIN:
            return ()
        if problem.interactor is not None:
            return ()
        if problem.assertions is not None:
            return ()
        small = self.trial.problem.small_tests
        return small if len(small) >= _LEAST_SHARED else ()

    def _judge_together(self, order: Sequence[int]) -> _Company:
        """Judge tests that share processes, up to the first that is not accepted."""
        problem = self.trial.problem
        tests = [problem.tests[number - 1] for number in order]
        runs = self.trial.program.share(
            self.trial.task, [test.stdin for test in tests], share_limits(problem.limits)
        )
        if runs is None:
            return _Company()
        self.ledger.order = tuple(order)
        results: dict[int, TestResult] = {}
        # The runs first: to ask for one more is what ends the last process.
        with contextlib.closing(iter(runs)) as observations:
            for observed, number in zip(observations, order, strict=False):
                if observed.run is None:
                    self.ledger.uncount(number, observed.excuses[-1].reason)
                    return _Company(is_lost=True)
                result = problem.judge_shared(observed.run, problem.tests[number - 1])
                if result.verdict is not Outcome.ACCEPTED:
                    self.ledger.uncount(number, Repeat.SHARED_WRONG)
                    # What breaks is no guess: it may be something that an earlier test left.
                    if result.verdict is not Outcome.WRONG_ANSWER:
                        return _Company(is_lost=True)
                    return _Company(refused={number: result})
                results[number] = result
        # Which of them held so much is not known.
        if problem.is_over_memory(runs.usage.memory_mib):
            self.ledger.uncount(order[-1], Repeat.SHARED_OVER)
            return _Company(is_lost=True)
        return _Company(_with_usage(results, runs.usage))

    def _refuse(
        self, results: list[TestResult], refused: Mapping[int, TestResult]
    ) -> list[TestResult]:
        """Return the results alone, but for a test that is right alone and was wrong in company."""
        for number, result in refused.items():
            if number > len(results) or results[number - 1].verdict is not Outcome.ACCEPTED:
                continue
            detail = verdicts.shorten(f"{RIGHT_ALONE}: {result.detail}")
            results[number - 1] = replace(result, detail=detail)
            if _stops_after(result, self.rules.stop):
                return results[:number]
        return results

    def _judge_anew(self, attempt: _Attempt) -> list[TestResult]:
        """Return the results of a program whose verdict may be luck: of two runs the worse ones.

        Args:
            attempt: counts as one of the two if nothing in it may have been a second try.
        """
        tests = range(1, len(self.trial.problem.tests) + 1)
        attempts: list[_Attempt] = []
        if attempt.is_doubtful:
            self._uncount_all(attempt)
        else:
            attempts.append(attempt)
        while len(attempts) < 2:
            again = _Attempt()
            self._judge_alone(again, tests, is_final=True)
            attempts.append(again)
            # The worse run counts, so a second one would change nothing.
            if self.rules.stop == "first_failure" and not again.is_accepted:
                break
        for earlier in attempts[:-1]:
            self._uncount_all(earlier)
        if attempts[0].is_accepted != attempts[-1].is_accepted:
            self.ledger.uncount(1, Repeat.DIFFERS)
        return _worse(self._in_order(attempts[0]), self._in_order(attempts[-1]))

    def _uncount_all(self, attempt: _Attempt) -> None:
        for number in attempt.results:
            self.ledger.uncount(number, Repeat.JUDGED_ANEW)

    def _in_order(self, attempt: _Attempt) -> list[TestResult]:
        """Return an attempt's results in the order of the tests, up to where the rule stops."""
        results = []
        for _, result in sorted(attempt.results.items()):
            results.append(result)
            if _stops_after(result, self.rules.stop):
                break
        return results


def _is_quick(attempt: _Attempt) -> bool:
    """Whether the tests so far were right and quick, and in no second try."""
    if attempt.is_doubtful or not attempt.is_accepted:
        return False
    return all(result.cpu_seconds <= _QUICK_SECONDS for result in attempt.results.values())


def _with_usage(results: dict[int, TestResult], usage: Usage) -> dict[int, TestResult]:
    """Return results with the times of their runs: of each, the mean."""
    cpu_seconds = usage.cpu_seconds / len(results)
    wall_seconds = usage.wall_seconds / len(results)
    memory_mib = round(usage.memory_mib, 3)
    # One for all that are alike: making them takes as long as judging them.
    alike: dict[tuple[str, str], TestResult] = {}
    timed = {}
    for number, result in results.items():
        key = (result.method, result.detail)
        if key not in alike:
            alike[key] = replace(
                result, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds, memory_mib=memory_mib
            )
        timed[number] = alike[key]
    return timed


def _worse(first: Sequence[TestResult], second: Sequence[TestResult]) -> list[TestResult]:
    """Return of each test the worse of two results; they end where the shorter attempt does."""
    worse = []
    for result, repeated in zip(first, second, strict=False):
        worse.append(repeated if result.verdict is Outcome.ACCEPTED else result)
    return worse


def _stops_after(result: TestResult, stop: StopRule) -> bool:
    """Whether the tests after this one are skipped."""
    outcome = result.verdict
    if outcome is Outcome.COMPILE_ERROR:
        return True
    # A checker that fails on the problem's own answer decides nothing about any other test either.
    if outcome is Outcome.SANDBOX_FAULT and result.detail.startswith(CHECKER_FAULT):
        return True
    if stop == "first_failure":
        return outcome is not Outcome.ACCEPTED
    return stop == "first_limit" and outcome in _LIMITS
