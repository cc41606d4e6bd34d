"""Judging one program at a time: its tests in order, the stop rules, its checker.

A program gets no second try. A test is run again if its run is inconclusive: it failed in a process that it shared,
ended close to its time limit, was killed from outside. A program that guesses must not gain by that, so `Tries` has all
runs that do not count, and two rules hold:

- A run that is only timed again keeps its output (`timing`).
- If a test failed and then was accepted, in a way that the program could have caused, the program is judged anew,
  twice, with one process per test and without any repeats, and passes the tests that it passes both times. A program
  whose runs are all alike loses nothing but time.

One failure in a shared process is excused: the test ran out of the CPU time that later tests share, which is less than
a test's own, and then was accepted after taking at least as much. A program gains nothing by wasting that time twice.
What earlier tests of the process had used is not known, so the lost one counts as having had all of the shared time.

A run that is cut off because neighbours slow it has left no output, so its repetition is another try. It is excused
only if it takes at least what the first was cut off at; a quicker one, usual once the other load ended, is doubted.
The runs anew neither lose nor gain by neighbours: each has limits raised by the largest slowdown from the start, and
one that ends beyond its limit is timed again, alone, and keeps its output.

A sandbox that dies may have been killed by its program where isolation is degraded (it can fill the disk), so a test
that is accepted after that is doubted too. The runs anew are not repeated where the disk is full.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import (
    CHECKER_FAULT,
    Outcome,
    Program,
    Repeat,
    TestResult,
    UncountedRun,
    Verdict,
)
from microcoder.judge.languages import Language, find_language, language_of
from microcoder.judge.run import verdicts
from microcoder.judge.run.builds import Build, Builds, build_program, load_built
from microcoder.judge.run.checkers import CheckerProgram
from microcoder.judge.run.explanations import add_packages
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.options import StopRule
from microcoder.judge.run.sandboxes import Sandboxes, SandboxKind
from microcoder.judge.run.screen import find_syntax_error, screen
from microcoder.judge.run.sharing import Loss, Together, choose_together
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
NAMES_INPUT = re.compile(r"/dev/(?!null|zero|u?random|stdout|stderr)|/proc/")
NAMES_OUTPUT = re.compile(r"/dev/(?!null|zero|u?random|stdin)|/proc/")
"""Programs that may open their standard streams by name (`/dev/stdin`, `/proc/self/fd/0`). A private root has no
`/proc`, so streams in anonymous memory have no name there: such a program is given a copy of its input as a file, and
files in the place of its output streams."""
_PROBED_SHARE, _PROBED_TESTS = 0.01, 4
_MOST_LOGGED = 10
"""Programs that a worker logs, since a test ended otherwise when repeated: a policy that guesses makes thousands."""
_LOG = logging.getLogger(__name__)
_ANEW = (
    "microcoder: a program is judged anew, a process a test, twice, since %s; unless its output is luck, please report "
    "it, and judge with batch_tests = false: %r"
)


class Abandoned(Exception):
    """No caller waits for this verdict any more."""


@dataclass(slots=True)
class Tries:
    """A program's results of tests, in order, and its runs that do not count."""

    results: list[TestResult] = field(default_factory=list)
    """The runs that count."""
    uncounted: list[UncountedRun] = field(default_factory=list)
    """The runs that do not count."""
    is_doubtful: bool = False
    """Whether a test failed and was then accepted, in a way that the program could have caused."""
    is_shared: bool = False
    """Whether tests that count shared a process."""
    is_apart: bool = False
    """Whether the program changed the library: each further test has a process of its own."""
    losses: dict[int, Loss] = field(default_factory=dict)
    """Number of a test that is to be run again -> why its earlier run does not count."""

    @property
    def next_test(self) -> int:
        """Number of the next test, from 1."""
        return len(self.results) + 1

    @property
    def is_accepted(self) -> bool:
        """Whether every test so far was accepted."""
        return all(result.verdict is Outcome.ACCEPTED for result in self.results)

    def uncount(self, test: int, reason: Repeat) -> None:
        """Note a run that does not count, of the test with this number."""
        self.uncounted.append(UncountedRun(test, reason))

    def lose(self, loss: Loss, test: int | None = None) -> None:
        """Note a run that does not count and is repeated, of the test with this number, by default the next one."""
        test = test or self.next_test
        self.uncount(test, loss.reason)
        if test not in self.losses or self.losses[test].cpu_seconds < loss.cpu_seconds:
            self.losses[test] = loss

    def add(self, result: TestResult) -> None:
        """Add the next test's result; doubtful if accepted in less CPU time than its lost run (`Loss`) calls for."""
        loss = self.losses.pop(self.next_test, None)
        if (
            loss is not None
            and result.verdict is Outcome.ACCEPTED
            and result.cpu_seconds < loss.cpu_seconds
        ):
            self.is_doubtful = True
        self.results.append(result)

    def replaced_by(self, first: Tries, second: Tries | None) -> Tries:
        """Return the result of a program that was judged anew; the second time is None if the first one decides.

        A test counts as the worse of its two runs.
        """
        of_second = first.results if second is None else second.results
        pairs = zip(first.results, of_second, strict=False)
        results = [one if one.verdict is not Outcome.ACCEPTED else other for one, other in pairs]
        uncounted = [*self.uncounted, *_anew(len(self.results)), *first.uncounted]
        if second is not None:
            uncounted += [*_anew(len(results)), *second.uncounted]
        return Tries(results, uncounted)


def _anew(num_tests: int) -> Iterable[UncountedRun]:
    return (UncountedRun(number, Repeat.JUDGED_ANEW) for number in range(1, num_tests + 1))


def _choose_probed(
    code: str, tests: Sequence[PreparedTest], *, may_tell: bool, is_shared: bool
) -> list[int]:
    """Return the indices of the tests that an accepted program is run on again, each alone; for 1 % of programs some.

    A program that `may_tell` its first test from the others, by addresses in memory, always has the first and, if tests
    shared a process (`is_shared`), one with another expected output: alone, both look the same to it. The draws are
    seeded by a digest of the program and its first input only.
    """
    digest = hashlib.sha256(code.encode("utf-8", "surrogatepass") + tests[0].stdin).digest()
    draw, places = random.Random(digest), set[int]()
    if int.from_bytes(digest[:4]) < _PROBED_SHARE * (1 << 32):
        places.update(draw.sample(range(len(tests)), min(_PROBED_TESTS, len(tests))))
    if others := [
        place for place, test in enumerate(tests) if may_tell and test.expected != tests[0].expected
    ]:
        places |= {0, draw.choice(others)} if is_shared else {0}
    return sorted(places)


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

    def __init__(self, sandboxes: Sandboxes | None = None, builds: Builds | None = None) -> None:
        self.sandboxes = sandboxes or Sandboxes()
        """The sandboxes of its thread."""
        self._options, self.record = self.sandboxes.options, self.sandboxes.record
        self._builds = builds or Builds(self._options)
        self.explained: list[tuple[int, str]] = []
        """Decisions about the time of the latest program's tests, each with the test's number; see `timing`."""

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
        tries, level = Tries(), ""
        self.explained.clear()
        self.sandboxes.has_rerun = False
        try:
            with contextlib.ExitStack() as opened:
                trial = self._prepare(opened, program.code, prepared)
                if isinstance(trial, TestResult):
                    tries.add(trial)
                else:
                    tries = self._judge_program(trial, is_wanted, tries)
                    level = self.sandboxes.level
        except (EvaluatorFault, OSError) as fault:
            tries = Tries(
                [verdicts.without_run(Outcome.SANDBOX_FAULT, str(fault))], tries.uncounted
            )
        return verdicts.conclude(tries.results, total, isolation=level, uncounted=tries.uncounted)

    def _prepare(
        self, opened: contextlib.ExitStack, answer: str, prepared: PreparedProblem
    ) -> _Trial | TestResult:
        """Return a program ready to be judged, or the one result that decides it already."""
        problem, code = prepared.problem, prepared.submit(answer)
        checking = None
        if problem.checker.type == "program":
            written = find_language(problem.checker.language)
            checker = self.load(opened, written, str(problem.checker.code), CHECKER_MIB)
            if isinstance(checker, str):
                return verdicts.without_run(
                    Outcome.SANDBOX_FAULT, f"{CHECKER_FAULT}was not built: {checker}"
                )
            kind = self.kind_of(written, "", is_large=True)
            checking = CheckerProgram(
                checker, partial(self.sandboxes.run_once, kind, limits=prepared.checker_limits)
            )
        language = language_of(problem)
        is_function = problem.fn_name is not None
        memory_mib = problem.memory_limit_mib
        loaded = self.load(
            opened, language, code, memory_mib, is_function=is_function, answer=answer
        )
        if isinstance(loaded, str):
            return verdicts.without_run(Outcome.COMPILE_ERROR, loaded)
        # A harness compiles its answer at run time, where it is told from other errors by nobody.
        if problem.harness is not None and (message := find_syntax_error(answer)):
            return verdicts.without_run(Outcome.COMPILE_ERROR, message)
        # The same parse serves the screen of programs whose tests may share a process.
        is_screened = (
            not language.is_built and self._options.batch_tests and len(prepared.tests) > 1
        )
        if is_screened and (message := find_syntax_error(code)):
            return verdicts.without_run(Outcome.COMPILE_ERROR, message)
        reads_by_name, writes_by_name = (
            bool(NAMES_INPUT.search(code)),
            bool(NAMES_OUTPUT.search(code)),
        )
        kind = self.kind_of(language, code, is_large=reads_by_name or writes_by_name)
        return _Trial(code, loaded, kind, prepared, checking, reads_by_name, writes_by_name)

    def _judge_program(self, trial: _Trial, is_wanted: Callable[[], bool], tries: Tries) -> Tries:
        """Judge a program's tests; after a doubt judge all of them anew, twice, with one process per test."""
        self._judge_tests(trial, is_wanted, tries)
        if not tries.is_doubtful and tries.is_accepted:
            self._probe(trial, tries, is_wanted)
        if not tries.is_doubtful:
            return tries
        self.record.anew += 1
        first = self._judge_tests(trial, is_wanted, Tries(), is_only_try=True)
        if self._options.stop == "first_failure" and not first.is_accepted:
            return tries.replaced_by(first, None)
        return tries.replaced_by(
            first, self._judge_tests(trial, is_wanted, Tries(), is_only_try=True)
        )

    def _judge_tests(
        self,
        trial: _Trial,
        is_wanted: Callable[[], bool],
        tries: Tries,
        *,
        is_only_try: bool = False,
    ) -> Tries:
        """Add the results of a program's tests to `tries`, in order, until the stop rule or a doubt; return `tries`."""
        tests = trial.problem.tests
        while len(tries.results) < len(tests) and not tries.is_doubtful:
            if not is_wanted():
                raise Abandoned
            together = () if is_only_try else self._choose_together(trial, tries)
            if together:
                self._judge_together(trial, together, tries)
            else:
                run = self._judge_test(trial, tests[len(tries.results)], is_only_try=is_only_try)
                self._note(run, trial, tries)
            if tries.results and _stops_after(tries.results[-1], self._options.stop):
                break
        return tries

    def _choose_together(self, trial: _Trial, tries: Tries) -> Sequence[PreparedTest]:
        """Return the next tests if they are to share a process; empty to run the next one by itself."""
        is_odd = (
            trial.reads_by_name
            or trial.writes_by_name
            or not isinstance(trial.loaded, LoadedProgram)
        )
        num_done = len(tries.results)
        has_failed = num_done > 0 and tries.results[-1].verdict is not Outcome.ACCEPTED
        if is_odd or has_failed or tries.is_apart or not self._options.batch_tests:
            return ()
        # A test that was lost before is not to cost those before it their process again.
        end = min(
            (test - 1 for test in tries.losses if test > num_done + 1),
            default=len(trial.problem.tests),
        )
        return choose_together(trial.code, trial.problem, num_done, end)

    def _judge_together(self, trial: _Trial, tests: Sequence[PreparedTest], tries: Tries) -> None:
        """Judge tests in one process; add the first's result and those accepted next. One that is not is run again."""
        together = Together(trial.code, trial.problem, tests)
        try:
            run = self.sandboxes.run(
                trial.kind, trial.task(tests[0].stdin), trial.problem, together
            )
            if together.is_over(run):
                self._lose(tries)
                tries.lose(Loss(Repeat.SHARED_OVER))
                tries.is_doubtful = True
                return
            first = self._judge_run(trial, run, tests[0])
        except (EvaluatorFault, OSError) as fault:
            self._note(verdicts.without_run(Outcome.SANDBOX_FAULT, str(fault)), trial, tries)
            return
        self._note(first, trial, tries)
        if first.verdict is not Outcome.ACCEPTED:
            return
        later = together.accepted_after(run)
        for result in later:
            tries.add(result)
        self.record.shared += 1 + len(later) if later else 0
        tries.is_shared = tries.is_shared or bool(later)
        lost = tries.next_test + together.num_unchecked
        tries.is_apart = together.has_ended and together.num_unchecked > 0
        for test in range(tries.next_test, lost):
            tries.uncount(test, Repeat.SHARED_UNCHECKED)
        if together.loss is not None:
            tries.lose(together.loss, lost)

    def _lose(self, tries: Tries) -> None:
        """Add to `tries` the runs of the next test that the sandboxes have just repeated."""
        self.explained += [(tries.next_test, reason) for reason in self.record.reasons]
        for loss in self.sandboxes.losses:
            tries.lose(loss)

    def _note(self, result: TestResult, trial: _Trial, tries: Tries) -> None:
        """Add the next test's result to `tries`, after its uncounted runs; log one wrong only in a shared process."""
        self._lose(tries)
        loss = tries.losses.get(tries.next_test)
        is_shared_wrong = loss is not None and loss.reason is Repeat.SHARED_WRONG
        tries.add(result)
        if not (is_shared_wrong and tries.is_doubtful):
            return
        self.record.differences += 1
        if self.record.differences <= _MOST_LOGGED:
            said = f"test {len(tries.results)} was not accepted in a process that tests share, and then it was"
            _LOG.warning(_ANEW, said, trial.code[:2000])

    def _probe(self, trial: _Trial, tries: Tries, is_wanted: Callable[[], bool]) -> None:
        """Run some tests of an accepted program again, each alone; if one fails, mark `tries` doubtful."""
        # Alone, a program may name what shows an address.
        is_function, may_tell = (
            trial.problem.problem.fn_name is not None,
            isinstance(trial.loaded, LoadedProgram),
        )
        if tries.is_shared:
            may_tell = screen(trial.code, is_function=is_function).may_tell
        probed = _choose_probed(
            trial.code, trial.problem.tests, may_tell=may_tell, is_shared=tries.is_shared
        )
        self.record.probed += bool(probed)
        for place in probed:
            if not is_wanted():
                raise Abandoned
            result = self._judge_test(trial, trial.problem.tests[place])
            for loss in self.sandboxes.losses:
                tries.uncount(place + 1, loss.reason)
            is_alike = result.verdict in (Outcome.ACCEPTED, Outcome.SANDBOX_FAULT)
            tries.uncount(place + 1, Repeat.PROBE if is_alike else Repeat.PROBE_DIFFERS)
            if not is_alike:
                self.record.unrepeated += 1
                tries.is_doubtful = True
                said = f"it was accepted, run again on test {place + 1} and not accepted ({result.detail})"
                _LOG.warning(_ANEW, said, trial.code[:2000])
                return

    def _judge_test(
        self, trial: _Trial, test: PreparedTest, *, is_only_try: bool = False
    ) -> TestResult:
        task = trial.task(test.stdin)
        try:
            run = self.sandboxes.run(trial.kind, task, trial.problem, is_only_try=is_only_try)
            return self._judge_run(trial, run, test)
        except (EvaluatorFault, OSError) as fault:
            return verdicts.without_run(Outcome.SANDBOX_FAULT, str(fault))

    def _judge_run(self, trial: _Trial, run: Run, test: PreparedTest) -> TestResult:
        rejection = trial.loaded.rejection()
        if rejection is not None:
            return verdicts.result_of(run, Outcome.COMPILE_ERROR, rejection)
        if trial.checking is not None:
            return trial.checking.judge(run, trial.problem, test)
        result = trial.problem.judge(run, test)
        if result.verdict is not Outcome.RUNTIME_ERROR:
            return result
        packages = (package.name for package in self.sandboxes.packages.profile.packages)
        return replace(result, detail=verdicts.shorten(add_packages(result.detail, packages)))

    def close(self) -> None:
        """End the sandboxes; only from the thread that opened them."""
        self.sandboxes.close()
        self.sandboxes.turn.close()

    def load(
        self,
        opened: contextlib.ExitStack,
        language: Language,
        code: str,
        memory_mib: int,
        *,
        is_function: bool = False,
        answer: str = "",
    ) -> Loaded | str:
        """Return a program ready to run, or the compiler's message; `answer`: the code that a harness calls."""
        if not language.is_built:
            if trouble := language.find_problem():
                raise EvaluatorFault(trouble)
            find_problem = self.sandboxes.packages.find_problem
            problems = (find_problem(source, is_function=is_function) for source in (code, answer))
            if problem := next(filter(None, problems), ""):
                self.record.missing_packages += 1
                raise EvaluatorFault(problem)
            return opened.enter_context(contextlib.closing(LoadedProgram(code)))
        build = self._builds.get(language, code, lambda: self._build(language, code))
        if not build.is_built:
            return build.message
        return opened.enter_context(
            contextlib.closing(load_built(language, build.binary, memory_mib))
        )

    def _build(self, language: Language, code: str) -> Build:
        build = SandboxKind(builds=language.name)
        with self.sandboxes.turn.shared():
            limited = self._builds.limit(language)
            headers = self._builds.provide(limited, code)
            return self.sandboxes.use(
                build, lambda sandbox: build_program(sandbox, limited, code, headers)
            )

    def kind_of(self, language: Language, code: str, *, is_large: bool) -> SandboxKind:
        """Return the kind of sandbox that a program needs; `is_large`: it gets files, or opens streams by name."""
        if language.is_built:
            return SandboxKind(is_large=is_large, runs=language.name if language.runtime else "")
        packages = self.sandboxes.packages
        return SandboxKind(packages.profile.preload_for(code) if packages.folder else (), is_large)


def _stops_after(result: TestResult, stop: StopRule) -> bool:
    outcome = result.verdict
    # A checker that fails on the problem's own answer decides nothing about any other test either.
    is_checker_fault = outcome is Outcome.SANDBOX_FAULT and result.detail.startswith(CHECKER_FAULT)
    if outcome is Outcome.COMPILE_ERROR or is_checker_fault:
        return True
    if stop == "first_failure":
        return outcome is not Outcome.ACCEPTED
    return stop == "first_limit" and outcome in _LIMITS
