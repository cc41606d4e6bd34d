"""The evaluator's front: programs and problems in, verdicts out, many at a time.

The judging threads live as long as the `Judge`, each with warm sandboxes of its own, in this process or, where they are
many, in processes of their own. Nothing is forked from the calling process, so it may hold torch, threads and a GPU.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, Self, TypeVar, cast

from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.machine import count_processors, require_linux
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.languages import check_language, language_of
from microcoder.judge.languages.environment import JudgingEnvironment, describe_environment
from microcoder.judge.languages.packages import PackageShelf, load_profile
from microcoder.judge.run import executions, verdicts
from microcoder.judge.run.executions import Execution, Invocation
from microcoder.judge.run.options import JudgeOptions, StopRule
from microcoder.judge.run.verdicts import Statistics
from microcoder.judge.run.workers import (
    Key,
    KnownProblem,
    ProblemShelf,
    Slots,
    VerdictCache,
    Work,
    Workers,
    count_processes,
)

OnVerdict = Callable[[int, Verdict], None]
"""Called with a program's index and its verdict, in the order in which they are ready, from the calling thread."""

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiter:
    """A caller that waits for a verdict."""

    answer: Callable[[Verdict], None]
    is_gone: Callable[[], bool]


@dataclass(slots=True)
class _Job:
    """A program in progress, and the callers that wait for its verdict."""

    key: Key
    problem: KnownProblem
    waiters: list[_Waiter]
    work: Work | None = None

    def is_wanted(self) -> bool:
        """Whether any caller still waits."""
        return not all(waiter.is_gone() for waiter in tuple(self.waiters))


class Judge:
    """A pool of warm sandboxes; use it as a context manager, or call `close`."""

    def __init__(self, options: JudgeOptions | None = None, **keys: Any) -> None:
        """Start the first sandbox, so that a machine without isolation is known before any program runs.

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
        self._room = Slots(options.max_waiting)
        self._lock = threading.Lock()
        self._in_flight: dict[Key, _Job] = {}
        self._running: set[Future[Execution]] = set()
        self._cache = VerdictCache(options.cache_size)
        self._judged = self._from_cache = self._faults = self._runs = self._checker_crashes = 0
        shelf = PackageShelf(load_profile(options.packages))
        if self.processes:
            from microcoder.judge.fleet.pipe import Processes  # a judge of few workers starts without it

            self._pool = Processes(self.processes, self.workers, options)
        else:
            self._pool = Workers(self.workers, options, shelf)
        try:
            self.isolation, self.time_scale = self._pool.open()
            """The isolation of programs, and the factor on CPU limits."""
        except BaseException:
            self.close()
            raise
        self.environment: JudgingEnvironment = describe_environment(shelf, self._pool.call_stack)
        """The environment of programs: default Python version, and packages."""
        self._shelf = ProblemShelf(
            time_scale=self.time_scale,
            checker_seconds=options.checker_seconds,
            most_bytes=options.tests_mib << 20,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def statistics(self) -> Statistics:
        """Counts so far."""
        return Statistics(
            judged=self._judged,
            from_cache=self._from_cache,
            faults=self._faults,
            runs=self._runs,
            checker_crashes=self._checker_crashes,
            **asdict(self._pool.counts),
        )

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order.

        Identical pairs are judged once, also across calls. Programs of problems that took longest so far start first.
        A program never raises; a fault of the sandbox is its verdict.

        Raises:
            DataError: the sequences differ in length, or a problem's tests cannot be read.
            EvaluatorFault: there is no compiler or interpreter for a problem's language, or the judge is closed.
        """
        self._check_open()
        if len(programs) != len(problems):
            raise DataError(f"{len(programs)} programs but {len(problems)} problems; pass one problem per program")
        known = [
            self._prepare(program, problem, f"program {index}")
            for index, (program, problem) in enumerate(zip(programs, problems, strict=True))
        ]
        ready: SimpleQueue[tuple[int, Verdict]] = SimpleQueue()
        results: list[Verdict | None] = [None] * len(programs)
        is_over = threading.Event()
        num_ready = 0
        jobs: list[_Job] = []
        try:
            for index in sorted(range(len(programs)), key=lambda index: -known[index].expected_seconds):
                waiter = _Waiter(lambda verdict, index=index: ready.put((index, verdict)), is_over.is_set)
                if job := self._enqueue(programs[index], known[index], waiter):
                    jobs.append(job)
            while num_ready < len(programs):
                index, verdict = ready.get()
                results[index] = verdict
                num_ready += 1
                if on_verdict is not None:
                    on_verdict(index, verdict)
        finally:
            is_over.set()
            if num_ready < len(programs):
                for job in jobs:
                    self._withdraw(job)
        return cast(list[Verdict], results)

    def prepare(self, problem: Problem) -> None:
        """Check and keep a problem, so that its programs begin at once: values of long tests take seconds to read.

        Raises:
            DataError: its tests cannot be read.
        """
        self._shelf.prepare(problem)

    def submit(self, program: Program, problem: Problem) -> Future[Verdict]:
        """Judge one program in the background; a cancelled future is dropped if queued, or stops after its current
        test.

        Blocks while `max_waiting` programs are queued or running.

        Raises:
            DataError: the problem's tests cannot be read.
            EvaluatorFault: there is no compiler or interpreter for the problem's language, or the judge is closed.
        """
        known = self._prepare(program, problem, "the program")
        self._room.enter().result()
        return self._enter(program, known)

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine, such as when a rollout arrives; waits like `submit`.

        Raises:
            DataError: the problem's tests cannot be read.
            EvaluatorFault: there is no compiler or interpreter for the problem's language, or the judge is closed.
        """
        import asyncio  # only callers that have an event loop pay for it

        known = self._prepare(program, problem, "the program")
        await self._room.enter_async()
        return await asyncio.wrap_future(self._enter(program, known))

    def submit_run(self, invocation: Invocation) -> Future[Execution]:
        """Run one program in the background without judging it; waits like `submit`.

        Raises:
            DataError: it cannot be run; why.
            EvaluatorFault: there is no compiler for its language, or the judge is closed.
        """
        self._check_open()
        invocation.check()
        self._room.enter().result()
        return self._enter_run(invocation)

    def run(self, invocation: Invocation) -> Execution:
        """Run one program and return the result; raises like `submit_run`."""
        return self.submit_run(invocation).result()

    async def run_async(self, invocation: Invocation) -> Execution:
        """Run one program from a coroutine; raises like `submit_run`."""
        import asyncio

        self._check_open()
        invocation.check()
        await self._room.enter_async()
        return await asyncio.wrap_future(self._enter_run(invocation))

    def close(self) -> None:
        """End all sandboxes at once; programs still being judged get a sandbox fault."""
        self._is_closed = True
        self._pool.close()
        with self._lock:
            left, self._in_flight = list(self._in_flight.values()), {}
            runs, self._running = self._running, set()
        for job in left:
            _answer(job.waiters, verdicts.unjudged("the judge was closed", len(job.problem.prepared.tests)))
        for future in runs:
            _settle(future, executions.fault("the judge was closed"))

    def _check_open(self) -> None:
        if self._is_closed:
            raise EvaluatorFault("this Judge is closed; make a new one")

    def _prepare(self, program: Program, problem: Problem, what: str) -> KnownProblem:
        self._check_open()
        language = language_of(problem)
        check_language(program, problem, what)
        if trouble := language.find_problem():
            raise EvaluatorFault(trouble)
        return self._shelf.prepare(problem)

    def _enter(self, program: Program, problem: KnownProblem) -> Future[Verdict]:
        """Judge a program that has a queue place."""
        future: Future[Verdict] = Future()
        future.add_done_callback(lambda _: self._room.leave())
        waiter = _Waiter(lambda verdict: _settle(future, verdict), future.cancelled)
        try:
            job = self._enqueue(program, problem, waiter)
        except EvaluatorFault:
            future.cancel()
            raise
        if job is not None:
            future.add_done_callback(lambda done: self._withdraw(job) if done.cancelled() else None)
        return future

    def _enqueue(self, program: Program, problem: KnownProblem, waiter: _Waiter) -> _Job | None:
        """Start judging a program unless its verdict is known; return the entry in progress."""
        key = problem.key_of(program)
        with self._lock:
            self._check_open()
            known = self._cache.find(key)
            job = self._in_flight.get(key)
            is_new = known is None and job is None
            if is_new:
                job = self._in_flight[key] = _Job(key, problem, [waiter])
                job.work = Work(program, problem, None, job.is_wanted, partial(self._finish, job))
            else:
                self._from_cache += 1
                if known is None and job is not None:
                    job.waiters.append(waiter)
        if known is not None:
            waiter.answer(known)
            return None
        if is_new and job is not None and job.work is not None:
            self._pool.put(job.work)
        return job

    def _withdraw(self, job: _Job) -> None:
        """Note that a waiting caller has gone."""
        if (work := job.work) is not None and not job.is_wanted():
            self._pool.withdraw(work)

    def _finish(self, job: _Job, verdict: Verdict | Execution | None) -> None:
        """Cache a verdict and answer all waiting callers; None if it was abandoned because no caller seemed to wait."""
        assert not isinstance(verdict, Execution)
        waiters: list[_Waiter] = []
        with self._lock:
            if verdict is None:
                if not job.is_wanted():
                    self._in_flight.pop(job.key, None)
                    return
            else:
                self._judged += 1
                self._faults += not verdict.is_scorable
                if not (verdict.is_scorable or verdict.is_checker_fault or self._is_closed):
                    _LOG.warning("microcoder: a program stays unscored: %s", verdict.detail)
                self._checker_crashes += verdict.is_checker_crash
                job.problem.note_seconds(sum(test.wall_seconds for test in verdict.tests))
                self._cache.keep(job.key, verdict)
                # Closing the judge may have answered them already.
                if self._in_flight.pop(job.key, None):
                    # Both refer to the job: it would keep the problem's tests until the next collection of cycles.
                    waiters, job.waiters, job.work = job.waiters, [], None
        if verdict is not None:
            _answer(waiters, verdict)
        elif job.work is not None:
            # Another caller has joined in the meantime.
            self._pool.put(job.work)

    def _enter_run(self, invocation: Invocation) -> Future[Execution]:
        """Run a program that has a queue place."""
        future: Future[Execution] = Future()
        future.add_done_callback(lambda _: self._room.leave())

        def finish(execution: Verdict | Execution | None) -> None:
            with self._lock:
                self._runs += execution is not None
                # Closing the judge may have answered it already.
                is_open = future in self._running
                self._running.discard(future)
            if isinstance(execution, Execution) and is_open:
                _settle(future, execution)

        try:
            with self._lock:
                self._check_open()
                self._running.add(future)
        except EvaluatorFault:
            future.cancel()
            raise
        work = Work(invocation.program, None, invocation, lambda: not future.cancelled(), finish)
        self._pool.put(work)
        return future


def _settle(future: Future[T], result: T) -> None:
    """Set a future's result unless it was cancelled."""
    if future.set_running_or_notify_cancel():
        future.set_result(result)


def _answer(waiters: Sequence[_Waiter], verdict: Verdict) -> None:
    for waiter in waiters:
        waiter.answer(verdict)


def judge(
    programs: Sequence[Program],
    problems: Sequence[Problem],
    options: JudgeOptions | None = None,
    **keys: Any,
) -> list[Verdict]:
    """Judge a batch with sandboxes made for this call; see `Judge`, which keeps them warm between calls."""
    with Judge(options, **keys) as judging:
        return judging.judge(programs, problems)
