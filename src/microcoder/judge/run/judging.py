"""Judging one program at a time: its tests in order, the stop rules, its checker.

A program gets no second attempt. A test is run again if its run is inconclusive: it failed in a
process that it shared, ended close to its time limit, or was killed from outside. A program that
guesses must not gain by that. So `Attempts` has all runs that do not count, and two rules hold:

- A run that is only timed again keeps its output (`timing`).
- A test may fail and then be accepted, in a way that the program could have caused. Then the
  program is judged again, twice, with one process per test and without any repeats. It passes the
  tests that it passes both times. A program whose runs are all alike loses nothing but time.

One failure in a shared process is excused. The test ran out of the CPU time that later tests share,
which is less than a test's own, and then was accepted after taking at least as much. A program
gains nothing by wasting that time twice. What earlier tests of the process had used is not known,
so the discarded run counts as having had all of the shared time.

A run that is cut off because neighbours slow it has left no output, so its repetition is another
attempt. It is excused only if it takes at least what the first was cut off at. A quicker one, usual
once the other load ended, is doubted. The two runs that then decide neither lose nor gain by
neighbours. Each has limits raised by the largest slowdown from the start, and one that ends beyond
its limit is timed again, alone, and keeps its output.

A sandbox that dies may have been killed by its program where isolation is degraded (it can fill the
disk), so a test that is accepted after that is doubted too. The two runs that then decide are not
repeated where the disk is full.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import (
    CHECKER_FAULT,
    Outcome,
    Problem,
    Program,
    Repeat,
    TestResult,
    Verdict,
)
from microcoder.judge.languages import Language, find_language, language_of
from microcoder.judge.run import verdicts
from microcoder.judge.run.attempts import Attempts
from microcoder.judge.run.builds import Build, Builds, build_program, load_built
from microcoder.judge.run.checkers import CheckerProgram
from microcoder.judge.run.conversations import conversation_task, judge_conversation
from microcoder.judge.run.explanations import add_packages
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.options import StopRule
from microcoder.judge.run.sandboxes import Sandboxes, SandboxKind
from microcoder.judge.run.screen import find_syntax_error, screen
from microcoder.judge.run.sharing import DiscardedRun, JudgedBatch, choose_batch
from microcoder.judge.run.supervisor import Loaded, LoadedProgram, TestTask
from microcoder.judge.run.timing import CHECKER_MIB
from microcoder.judge.run.verdicts import PreparedProblem, PreparedTest, Run
from microcoder.judge.sandbox.protocol import STDIN_FILE

_LIMITS = (
    Outcome.TIME_LIMIT,
    Outcome.MEMORY_LIMIT,
    Outcome.OUTPUT_LIMIT,
    Outcome.PROCESS_LIMIT,
    Outcome.SANDBOX_FAULT,
)
"""Outcomes after which the stop rule `first_limit` skips the remaining tests."""
NAMES_INPUT = re.compile(r"/dev/(?!null|zero|u?random|stdout|stderr)|/proc/")
"""Programs that may open their stdin by name (`/dev/stdin`, `/proc/self/fd/0`).

A private root has no `/proc`, so streams in anonymous memory have no name there. Such a program is
given a copy of its input as a file.
"""
NAMES_OUTPUT = re.compile(r"/dev/(?!null|zero|u?random|stdin)|/proc/")
"""Programs that may open their stdout or stderr by name: they are given files for these streams."""
_PROBED_SHARE = 0.01
"""Share of accepted programs of which some tests are run again."""
_PROBED_TESTS = 4
"""Tests of such a program that are run again."""
_MOST_LOGGED = 10
"""Programs that a worker logs since a repeated test ended otherwise: a guessing policy makes
thousands."""
_LOG = logging.getLogger(__name__)
_REJUDGED = (
    "microcoder: a program is judged anew, a process a test, twice, since %s; unless its output "
    "is luck, please report it, and judge with batch_tests = false: %r"
)
"""Message of the log: why, and the beginning of the program."""


class Abandoned(Exception):
    """No caller waits for this verdict any more."""


def _choose_probed(
    code: str, tests: Sequence[PreparedTest], *, may_tell: bool, is_shared: bool
) -> list[int]:
    """Return the indices of the tests that an accepted program is run on again, each alone.

    For 1 % of programs these are some tests. The draws are seeded by a digest of the program and
    its first input only.

    Args:
        code: the program.
        tests: all of its tests.
        may_tell: whether it could tell its first test from the others, by addresses in memory. Its
            first test is then among them, if another test expects another output.
        is_shared: whether its tests shared a process. If it `may_tell`, one of those others is then
            among them as well: alone, both look the same to it.
    """
    digest = hashlib.sha256(code.encode("utf-8", "surrogatepass") + tests[0].stdin).digest()
    draw = random.Random(digest)
    probed = set[int]()
    if int.from_bytes(digest[:4]) < _PROBED_SHARE * (1 << 32):
        probed.update(draw.sample(range(len(tests)), min(_PROBED_TESTS, len(tests))))
    if not may_tell:
        return sorted(probed)
    others = [index for index, test in enumerate(tests) if test.expected != tests[0].expected]
    if others:
        probed.add(0)
        if is_shared:
            probed.add(draw.choice(others))
    return sorted(probed)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A program that is loaded, with the problem that judges it."""

    code: str
    loaded: Loaded
    kind: SandboxKind
    """Kind of the sandbox for its tests."""
    problem: PreparedProblem
    checking: CheckerProgram | None
    reads_by_name: bool
    writes_by_name: bool

    def task(self, stdin: bytes) -> TestTask:
        """Return the task of running the program on this stdin."""
        return self.loaded.task(
            stdin,
            fn_name=self.problem.problem.fn_name or "",
            call=self.problem.call_message,
            files={STDIN_FILE: stdin} if self.reads_by_name else {},
            dialect=self.problem.problem.dialect,
            has_named_streams=self.writes_by_name,
        )


class Session:
    """Judges one program at a time in sandboxes of its own: what one worker of a judge does."""

    def __init__(
        self,
        sandboxes: Sandboxes | None = None,
        builds: Builds | None = None,
    ) -> None:
        self.sandboxes = sandboxes or Sandboxes()
        """The sandboxes of its thread."""
        self.record = self.sandboxes.record
        """Counts of the worker."""
        self._options = self.sandboxes.options
        self._builds = builds or Builds(self._options)
        self.explained: list[tuple[int, str]] = []
        """Decisions about the time of the latest program's tests, each with the test's number."""

    def open(self) -> Isolation:
        """Start the plain sandbox; return its isolation."""
        return self.sandboxes.use(SandboxKind(), lambda sandbox: sandbox.isolation)

    def judge(
        self,
        program: Program,
        prepared: PreparedProblem,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Verdict:
        """Judge one program; a broken sandbox is a `SANDBOX_FAULT`, not an exception."""
        total = len(prepared.tests)
        if program.code is None:
            return Verdict(Outcome.NO_CODE, (), total, program.reason)
        attempts = Attempts()
        level = ""
        # Both are about one program.
        self.explained.clear()
        self.sandboxes.has_rerun = False
        try:
            with contextlib.ExitStack() as opened:
                trial = self._prepare(opened, program.code, prepared)
                if isinstance(trial, TestResult):
                    attempts.add(trial)
                else:
                    attempts = self._judge_program(trial, is_wanted, attempts)
                    level = self.sandboxes.level
        except (EvaluatorFault, OSError) as fault:
            result = verdicts.without_run(Outcome.SANDBOX_FAULT, str(fault))
            attempts = Attempts([result], attempts.uncounted)
        return verdicts.conclude(
            attempts.results, total, isolation=level, uncounted=attempts.uncounted
        )

    def _prepare(
        self, opened: contextlib.ExitStack, code: str, prepared: PreparedProblem
    ) -> _Trial | TestResult:
        """Return a program ready to be judged, or the one result that decides it already."""
        problem = prepared.problem
        # The checker first: without it no program of the problem can be judged.
        checking = self._prepare_checker(opened, prepared)
        if isinstance(checking, TestResult):
            return checking
        language = language_of(problem)
        loaded = self.load(
            opened,
            language,
            code,
            problem.memory_limit_mib,
            is_function=problem.fn_name is not None,
            beside=_list_beside(problem),
        )
        if isinstance(loaded, str):
            return verdicts.without_run(Outcome.COMPILE_ERROR, loaded)
        # The same parse serves the screen of programs whose tests may share a process.
        may_share = self._options.batch_tests and len(prepared.tests) > 1
        is_screened = may_share and not language.is_built
        if is_screened and (message := find_syntax_error(code)):
            return verdicts.without_run(Outcome.COMPILE_ERROR, message)
        reads_by_name = bool(NAMES_INPUT.search(code))
        writes_by_name = bool(NAMES_OUTPUT.search(code))
        kind = self.kind_of(language, code, is_large=reads_by_name or writes_by_name)
        return _Trial(code, loaded, kind, prepared, checking, reads_by_name, writes_by_name)

    def _prepare_checker(
        self, opened: contextlib.ExitStack, prepared: PreparedProblem
    ) -> CheckerProgram | TestResult | None:
        """Return a problem's checker program, None if it has none.

        One that cannot be built is a fault, which is returned instead.
        """
        checker = prepared.problem.checker
        if checker.type != "program":
            return None
        language = find_language(checker.language)
        loaded = self.load(opened, language, str(checker.code), CHECKER_MIB)
        if isinstance(loaded, str):
            message = f"{CHECKER_FAULT}was not built: {loaded}"
            return verdicts.without_run(Outcome.SANDBOX_FAULT, message)
        kind = self.kind_of(language, "", is_large=True)
        run = partial(self.sandboxes.run_once, kind, limits=prepared.checker_limits)
        return CheckerProgram(loaded, run)

    def _judge_program(
        self, trial: _Trial, is_wanted: Callable[[], bool], attempts: Attempts
    ) -> Attempts:
        """Judge a program's tests; after a doubt judge all of them again, twice.

        Then each has a process of its own.
        """
        self._judge_tests(trial, is_wanted, attempts)
        # Only an accepted program is probed: a guess gains nothing by a failure.
        if not attempts.is_doubtful and attempts.is_accepted:
            self._probe(trial, attempts, is_wanted)
        if not attempts.is_doubtful:
            return attempts
        self.record.anew += 1
        first = self._judge_tests(trial, is_wanted, Attempts(), is_only_attempt=True)
        # The worse of two runs counts, so a second time would change nothing.
        if self._options.stop == "first_failure" and not first.is_accepted:
            return attempts.replaced_by(first, None)
        second = self._judge_tests(trial, is_wanted, Attempts(), is_only_attempt=True)
        return attempts.replaced_by(first, second)

    def _judge_tests(
        self,
        trial: _Trial,
        is_wanted: Callable[[], bool],
        attempts: Attempts,
        *,
        is_only_attempt: bool = False,
    ) -> Attempts:
        """Add the results of a program's tests, in order, until the stop rule or a doubt.

        Returns:
            `attempts`.
        """
        tests = trial.problem.tests
        while len(attempts.results) < len(tests) and not attempts.is_doubtful:
            # Between two tests the caller may have left.
            if not is_wanted():
                raise Abandoned
            batch = () if is_only_attempt else self._choose_batch(trial, attempts)
            if batch:
                self._judge_batch(trial, batch, attempts)
            else:
                test = tests[len(attempts.results)]
                result = self._judge_test(trial, test, is_only_attempt=is_only_attempt)
                self._note(result, trial, attempts)
            if attempts.results and _stops_after(attempts.results[-1], self._options.stop):
                break
        return attempts

    def _choose_batch(
        self,
        trial: _Trial,
        attempts: Attempts,
    ) -> Sequence[PreparedTest]:
        """Return the next tests if they are to share a process; empty to run the next by itself."""
        # A program that changed the library could tell later tests by that.
        if attempts.is_apart or not self._options.batch_tests:
            return ()
        if trial.problem.problem.assertions is not None:
            return ()
        # Streams by name are files in the folder of one test; what was built has no module to
        # share.
        has_named_streams = trial.reads_by_name or trial.writes_by_name
        if has_named_streams or not isinstance(trial.loaded, LoadedProgram):
            return ()
        num_done = len(attempts.results)
        # A batch ends at its first test that is not right, and then costs more than it saves.
        if num_done and attempts.results[-1].verdict is not Outcome.ACCEPTED:
            return ()
        # A test that was lost before is not to cost those before it their process again.
        lost_later = [test - 1 for test in attempts.discarded if test > num_done + 1]
        end = min(lost_later, default=len(trial.problem.tests))
        return choose_batch(trial.code, trial.problem, num_done, end)

    def _judge_batch(
        self, trial: _Trial, tests: Sequence[PreparedTest], attempts: Attempts
    ) -> None:
        """Judge tests in one process; add the first's result and those accepted next.

        One that is not accepted is run again.
        """
        batch = JudgedBatch(trial.code, trial.problem, tests)
        try:
            task = trial.task(tests[0].stdin)
            run = self.sandboxes.run(trial.kind, task, trial.problem, batch)
            # Some test was over a limit, and nobody knows which.
            if batch.is_over(run):
                self._discard(attempts)
                attempts.discard(DiscardedRun(Repeat.SHARED_OVER))
                attempts.is_doubtful = True
                return
            first = self._judge_run(trial, run, tests[0])
        except (EvaluatorFault, OSError) as fault:
            result = verdicts.without_run(Outcome.SANDBOX_FAULT, str(fault))
            self._note(result, trial, attempts)
            return
        self._note(first, trial, attempts)
        if first.verdict is Outcome.ACCEPTED:
            self._add_later(batch, run, attempts)

    def _add_later(
        self,
        batch: JudgedBatch,
        run: Run,
        attempts: Attempts,
    ) -> None:
        """Add what a batch says of the tests behind its first, which is accepted."""
        later = batch.accepted_after(run)
        for result in later:
            attempts.add(result)
        if later:
            self.record.shared += 1 + len(later)
            attempts.is_shared = True
        # What was not checked is run again as well, before the test that ended the batch.
        lost = attempts.next_test + batch.num_unchecked
        attempts.is_apart = batch.has_ended and batch.num_unchecked > 0
        for test in range(attempts.next_test, lost):
            attempts.uncount(test, Repeat.SHARED_UNCHECKED)
        if batch.discarded is not None:
            attempts.discard(batch.discarded, lost)

    def _discard(self, attempts: Attempts) -> None:
        """Add to `attempts` the runs of the next test that the sandboxes have just repeated."""
        self.explained += [(attempts.next_test, reason) for reason in self.record.reasons]
        for discarded in self.sandboxes.discarded:
            attempts.discard(discarded)

    def _note(
        self,
        result: TestResult,
        trial: _Trial,
        attempts: Attempts,
    ) -> None:
        """Add the next test's result, after its uncounted runs; log one wrong only where shared."""
        self._discard(attempts)
        discarded = attempts.discarded.get(attempts.next_test)
        is_shared_wrong = discarded is not None and discarded.reason is Repeat.SHARED_WRONG
        attempts.add(result)
        if not (is_shared_wrong and attempts.is_doubtful):
            return
        # Logged, since only luck or a bug of ours makes such a difference.
        self.record.differences += 1
        if self.record.differences <= _MOST_LOGGED:
            number = len(attempts.results)
            why = f"test {number} was not accepted in a process that tests share, and then it was"
            _LOG.warning(_REJUDGED, why, trial.code[:2000])

    def _probe(
        self,
        trial: _Trial,
        attempts: Attempts,
        is_wanted: Callable[[], bool],
    ) -> None:
        """Run some tests of an accepted program again, each alone; doubt it if one fails."""
        # Alone, a program may name what shows an address.
        may_tell = isinstance(trial.loaded, LoadedProgram)
        if attempts.is_shared:
            is_function = trial.problem.problem.fn_name is not None
            may_tell = screen(trial.code, is_function=is_function).may_tell
        tests = trial.problem.tests
        probed = _choose_probed(
            trial.code,
            tests,
            may_tell=may_tell,
            is_shared=attempts.is_shared,
        )
        self.record.probed += bool(probed)
        for index in probed:
            if not is_wanted():
                raise Abandoned
            number = index + 1
            result = self._judge_test(trial, tests[index])
            for discarded in self.sandboxes.discarded:
                attempts.uncount(number, discarded.reason)
            # A fault of the machine says nothing about the program.
            if result.verdict in (Outcome.ACCEPTED, Outcome.SANDBOX_FAULT):
                attempts.uncount(number, Repeat.PROBE)
                continue
            attempts.uncount(number, Repeat.PROBE_DIFFERS)
            self.record.unrepeated += 1
            attempts.is_doubtful = True
            why = f"it was accepted, run again on test {number} and not accepted ({result.detail})"
            _LOG.warning(_REJUDGED, why, trial.code[:2000])
            return

    def _judge_test(
        self, trial: _Trial, test: PreparedTest, *, is_only_attempt: bool = False
    ) -> TestResult:
        if trial.problem.problem.assertions is not None:
            return self._judge_conversation(trial, test, is_only_attempt=is_only_attempt)
        task = trial.task(test.stdin)
        try:
            run = self.sandboxes.run(
                trial.kind, task, trial.problem, is_only_attempt=is_only_attempt
            )
            return self._judge_run(trial, run, test)
        except (EvaluatorFault, OSError) as fault:
            return verdicts.without_run(Outcome.SANDBOX_FAULT, str(fault))

    def _judge_conversation(
        self, trial: _Trial, test: PreparedTest, *, is_only_attempt: bool
    ) -> TestResult:
        """Judge a test that is a program, which calls the judged one."""
        source = str(test.expected)
        kind = self.kind_of(find_language("python"), source, is_large=False)
        # Not once more by itself: both begin anew then.
        use = partial(self.sandboxes.use, replace(kind, is_partner=True), is_last=True)
        try:
            with contextlib.closing(LoadedProgram(source)) as loaded:
                task = conversation_task(trial.loaded, loaded, trial.problem, use)
                run = self.sandboxes.run(
                    trial.kind, task, trial.problem, is_only_attempt=is_only_attempt
                )
                rejection = trial.loaded.rejection()
                if rejection is not None:
                    return verdicts.result_of(run, Outcome.COMPILE_ERROR, rejection)
                prepared = trial.problem
                return self._explain(
                    judge_conversation(run, loaded, prepared.find_failure, prepared.checker_limits)
                )
        except (EvaluatorFault, OSError) as fault:
            return verdicts.without_run(Outcome.SANDBOX_FAULT, str(fault))

    def _judge_run(
        self,
        trial: _Trial,
        run: Run,
        test: PreparedTest,
    ) -> TestResult:
        # Compiled in the program's own process, so this is known only after its run.
        rejection = trial.loaded.rejection()
        if rejection is not None:
            return verdicts.result_of(run, Outcome.COMPILE_ERROR, rejection)
        if trial.checking is not None:
            return trial.checking.judge(run, trial.problem, test)
        return self._explain(trial.problem.judge(run, test))

    def _explain(self, result: TestResult) -> TestResult:
        """Return a result whose words say which package was missing, if one was."""
        if result.verdict not in (Outcome.RUNTIME_ERROR, Outcome.SANDBOX_FAULT):
            return result
        packages = (package.name for package in self.sandboxes.packages.profile.packages)
        return replace(result, detail=verdicts.shorten(add_packages(result.detail, packages)))

    def close(self) -> None:
        """End the sandboxes; only from the thread that opened them."""
        self.sandboxes.close()
        self.sandboxes.slot.close()

    def load(
        self,
        opened: contextlib.ExitStack,
        language: Language,
        code: str,
        memory_mib: int,
        *,
        is_function: bool = False,
        beside: Sequence[str] = (),
    ) -> Loaded | str:
        """Return a program ready to run, or the compiler's message.

        Args:
            opened: closes the program.
            language: its language.
            code: the source that is run.
            memory_mib: its memory limit.
            is_function: a function of it is called.
            beside: sources that run with it: its tests, if they are programs.

        Raises:
            EvaluatorFault: there is no compiler or interpreter, or a package is missing here.
        """
        if not language.is_built:
            self._check_imports(language, (code, *beside), is_function=is_function)
            return opened.enter_context(contextlib.closing(LoadedProgram(code)))
        # Kept, so that its tests and equal programs are built once.
        build = self._builds.get(language, code, lambda: self._build(language, code))
        if not build.is_built:
            return build.message
        loaded = load_built(language, build.binary, memory_mib)
        return opened.enter_context(contextlib.closing(loaded))

    def _check_imports(
        self, language: Language, sources: Iterable[str], *, is_function: bool
    ) -> None:
        """Raise EvaluatorFault if an interpreter, or a promised package, is not installed."""
        trouble = language.find_problem()
        if trouble:
            raise EvaluatorFault(trouble)
        packages = self.sandboxes.packages
        # Tests that are programs may import packages, too.
        for source in sources:
            problem = packages.find_problem(source, is_function=is_function)
            if problem:
                self.record.missing_packages += 1
                raise EvaluatorFault(problem)

    def _build(self, language: Language, code: str) -> Build:
        kind = SandboxKind(builds=language.name)
        with self.sandboxes.slot.shared():
            limited = self._builds.limit(language)
            headers = self._builds.provide(limited, code)
            return self.sandboxes.use(
                kind, lambda sandbox: build_program(sandbox, limited, code, headers)
            )

    def kind_of(
        self,
        language: Language,
        code: str,
        *,
        is_large: bool,
    ) -> SandboxKind:
        """Return the kind of sandbox for a program; `is_large`: it gets files, or names streams."""
        if language.is_built:
            return SandboxKind(is_large=is_large, runs=language.name if language.runtime else "")
        packages = self.sandboxes.packages
        preload = packages.profile.preload_for(code) if packages.folder else ()
        return SandboxKind(preload, is_large)


def _list_beside(problem: Problem) -> Sequence[str]:
    """Return the sources that run with a program: its tests, if they are programs."""
    if problem.assertions is None:
        return ()
    return (problem.assertions.setup, *(test.output for test in problem.tests))


def _stops_after(result: TestResult, stop: StopRule) -> bool:
    outcome = result.verdict
    if outcome is Outcome.COMPILE_ERROR:
        return True
    # A checker that fails on the problem's own answer decides nothing about any other test either.
    if outcome is Outcome.SANDBOX_FAULT and result.detail.startswith(CHECKER_FAULT):
        return True
    if stop == "first_failure":
        return outcome is not Outcome.ACCEPTED
    return stop == "first_limit" and outcome in _LIMITS
