"""The evaluator's front: programs and problems in, verdicts out, many at a time.

The judging threads live as long as the `Judge`, each with warm sandboxes of its own, in this process or, where they are
many, in processes of their own. Nothing is forked from the calling process, so it may hold torch, threads and a GPU.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from microcoder.judge.core.errors import ConfigError, EvaluatorFault
from microcoder.judge.core.machine import count_processors, require_linux
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.fleet.protocols import Judging
from microcoder.judge.languages import check_language, language_of
from microcoder.judge.languages.environment import JudgingEnvironment, describe_environment
from microcoder.judge.languages.packages import load_profile, provide_packages
from microcoder.judge.run.executions import Execution, Invocation
from microcoder.judge.run.options import JudgeOptions, StopRule
from microcoder.judge.run.verdicts import Statistics
from microcoder.judge.run.workers import KnownProblem, VerdictCache, Work, Workers, count_processes, open_shelf

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Job:
    """A program in progress, and the futures of those who wait for its answer."""

    key: Any
    """Key of the verdict in the cache; for a program that is only run, an object of its own."""
    waiting: list[Future[Any]] = field(default_factory=list)
    work: Work | None = None

    def is_wanted(self) -> bool:
        """Whether anyone still waits."""
        return not all(future.cancelled() for future in tuple(self.waiting))


class Judge(Judging):
    """A pool of warm sandboxes; use it as a context manager, or call `close`.

    Identical pairs of program and problem are judged once, also across calls. Of a batch, programs of problems that
    took longest so far start first.
    """

    def __init__(self, options: JudgeOptions | None = None, **keys: Any) -> None:
        """Start the first sandbox, so that missing isolation raises before any program runs.

        Args:
            options: the options; by default those of `JudgeOptions`.
            keys: some of them by name, such as `workers=2`.

        Raises:
            ConfigError: an option is unknown or wrong.
            EvaluatorFault: this is not Linux, or the sandbox does not start or lacks isolation.
        """
        require_linux()
        self.options = options = JudgeOptions.read(dict(options or ()) | keys)
        self.workers = options.workers or count_processors()
        self.processes = count_processes(self.workers) if options.processes is None else options.processes
        """How many judge processes there are at most; 0 if the workers are threads of this one."""
        if not 0 <= self.processes <= self.workers:
            raise ConfigError(f"processes = {self.processes}; use 0 to {self.workers}, the number of workers")
        self.stop: StopRule = options.stop
        self._is_closed = False
        self._lock = threading.Lock()
        self._in_flight: dict[Any, _Job] = {}
        self._cache = VerdictCache(options.cache_size)
        self._own_counts = Statistics()
        packages = provide_packages(load_profile(options.packages))
        if self.processes:
            from microcoder.judge.fleet.pipe import Processes  # a judge of few workers starts without it

            self._pool = Processes(self.processes, self.workers, options)
        else:
            self._pool = Workers(self.workers, options, packages)
        try:
            self.isolation, self.time_scale = self._pool.open()
            """The isolation of programs, and the factor on CPU limits."""
        except BaseException:
            self.close()
            raise
        self.environment: JudgingEnvironment = describe_environment(packages, self.isolation.call_stack)
        """The environment of programs: default Python version, and packages."""
        self._shelf = open_shelf(
            time_scale=self.time_scale, checker_seconds=options.checker_seconds, most_mib=options.tests_mib
        )

    @property
    def statistics(self) -> Statistics:
        """Counts so far."""
        return replace(self._own_counts, **asdict(self._pool.counts))

    def prepare(self, problem: Problem) -> None:
        """Check and keep a problem, so that its programs begin at once: values of long tests take seconds to read.

        Raises:
            DataError: its tests cannot be read.
        """
        self._shelf.find(problem)

    def submit_run(self, invocation: Invocation) -> Future[Execution]:
        """Run one program in the background without judging it.

        Raises:
            DataError: it cannot be run; why.
            EvaluatorFault: there is no compiler for its language, or the judge is closed.
        """
        invocation.check()
        future: Future[Execution] = Future()
        self._enqueue(object(), future, invocation.program, None, invocation)
        return future

    def run(self, invocation: Invocation) -> Execution:
        """Run one program and return the result; raises like `submit_run`."""
        return self.submit_run(invocation).result()

    async def run_async(self, invocation: Invocation) -> Execution:
        """Run one program from a coroutine; raises like `submit_run`."""
        import asyncio

        return await asyncio.wrap_future(self.submit_run(invocation))

    def close(self) -> None:
        """End all sandboxes at once; programs still being judged get a sandbox error. A second call does nothing."""
        with self._lock:
            # The pool's descriptors may be somebody else's by now.
            if self._is_closed:
                return
            self._is_closed = True
        self._pool.close()
        with self._lock:
            left, self._in_flight = self._in_flight, {}
        for job in left.values():
            if job.work is not None:
                _settle(job.waiting, job.work.fault("the judge was closed"))

    def _check_open(self) -> None:
        if self._is_closed:
            raise EvaluatorFault("this Judge is closed; make a new one")

    def _prepare(self, program: Program, problem: Problem, what: str) -> KnownProblem:
        self._check_open()
        check_language(program, problem, what)
        language = language_of(problem)
        if trouble := language.find_problem():
            raise EvaluatorFault(trouble)
        return self._shelf.find(problem)

    def _begin_all(self, programs: Sequence[Program], prepared: Sequence[KnownProblem]) -> list[Future[Verdict]]:
        self._check_open()
        futures: list[Future[Verdict]] = [Future() for _ in programs]
        for index in sorted(range(len(programs)), key=lambda index: -prepared[index].expected_seconds):
            program, problem = programs[index], prepared[index]
            self._enqueue(problem.key_of(program), futures[index], program, problem)
        return futures

    def _enqueue(
        self,
        key: Any,
        future: Future[Any],
        program: Program,
        problem: KnownProblem | None,
        invocation: Invocation | None = None,
    ) -> None:
        """Start work unless its answer is known or on its way."""
        new: Work | None = None
        with self._lock:
            self._check_open()
            verdict, job = self._cache.find(key), self._in_flight.get(key)
            if verdict is None:
                if job is None:
                    job = self._in_flight[key] = _Job(key)
                    finish = partial(self._finish, job, problem)
                    new = job.work = Work(program, problem, invocation, job.is_wanted, finish)
                job.waiting.append(future)
            self._own_counts.from_cache += new is None
        if verdict is not None:
            _settle([future], verdict)
            return
        if new is not None:
            self._pool.put(new)
        future.add_done_callback(lambda done: self._withdraw(job) if done.cancelled() else None)

    def _withdraw(self, job: _Job | None) -> None:
        """Stop a program's work if nobody waits for its answer any more."""
        if job is not None and (work := job.work) is not None and not job.is_wanted():
            self._pool.withdraw(work)

    def _finish(self, job: _Job, problem: KnownProblem | None, answer: Verdict | Execution | None) -> None:
        """Cache a verdict and answer all waiting callers; None if it was abandoned because no caller seemed to wait."""
        waiting: list[Future[Any]] = []
        with self._lock:
            if answer is None:
                if not job.is_wanted():
                    self._in_flight.pop(job.key, None)
                    return
            else:
                self._note(job.key, problem, answer)
                # Closing the judge may have answered them already.
                if self._in_flight.pop(job.key, None):
                    # Both refer to the job: it would keep the problem's tests until the next collection of cycles.
                    waiting, job.waiting, job.work = job.waiting, [], None
        if answer is not None:
            _settle(waiting, answer)
        elif job.work is not None:
            # Another caller has joined in the meantime.
            self._pool.put(job.work)

    def _note(self, key: Any, problem: KnownProblem | None, answer: Verdict | Execution) -> None:
        """Count an answer, and keep a verdict."""
        counts = self._own_counts
        if isinstance(answer, Execution) or problem is None:
            counts.runs += 1
            return
        counts.judged += 1
        counts.faults += not answer.is_scorable
        counts.checker_crashes += answer.is_checker_crash
        if not (answer.is_scorable or answer.is_checker_fault or self._is_closed):
            _LOG.warning("microcoder: a program stays unscored: %s", answer.detail)
        problem.note_seconds(sum(test.wall_seconds for test in answer.tests))
        self._cache.keep(key, answer)


def _settle(futures: Iterable[Future[T]], result: T) -> None:
    """Set the result of futures that were not cancelled."""
    for future in futures:
        if future.set_running_or_notify_cancel():
            future.set_result(result)


def judge(
    programs: Sequence[Program], problems: Sequence[Problem], options: JudgeOptions | None = None, **keys: Any
) -> list[Verdict]:
    """Judge a batch with sandboxes made for this call; see `Judge`, which keeps them warm between calls."""
    with Judge(options, **keys) as judging:
        return judging.judge(programs, problems)
