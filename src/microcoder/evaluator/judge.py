"""The evaluator's front: programs and problems in, verdicts out, many at a time.

The judging threads live as long as the `Judge`, each with warm sandboxes of its own; nothing is forked from the
calling process, so it may hold torch, threads and a GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Self, cast

from microcoder.errors import ConfigError, DataError, EvaluatorFault
from microcoder.evaluator import executions, verdicts
from microcoder.evaluator.builds import BuildCache
from microcoder.evaluator.calibration import Pace
from microcoder.evaluator.environment import JudgingEnvironment, describe_environment
from microcoder.evaluator.executions import Execution, Invocation
from microcoder.evaluator.headers import HeaderShelf
from microcoder.evaluator.inputs import InputShelf
from microcoder.evaluator.isolation import Isolation
from microcoder.evaluator.languages import check_language, language_of
from microcoder.evaluator.memory import Key, KnownProblem, ProblemShelf, VerdictCache
from microcoder.evaluator.package_folders import PackageShelf
from microcoder.evaluator.packages import STANDARD, load_profile
from microcoder.evaluator.sandbox.layers import LAYERS
from microcoder.evaluator.schedule import Room
from microcoder.evaluator.session import STOP_RULES, Abandoned, Session, StopRule
from microcoder.evaluator.siblings import LEAST_FACTOR
from microcoder.evaluator.statistics import Statistics
from microcoder.evaluator.turns import Gate, most_workers
from microcoder.machine import count_processors, require_linux
from microcoder.types import Outcome, Problem, Program, Verdict

OnVerdict = Callable[[int, Verdict], None]
"""Called with a program's index and its verdict, in the order in which they are ready, from the calling thread."""

_JOIN_SECONDS = 10.0


@dataclass(slots=True)
class _Waiter:
    """Somebody who wants a verdict."""

    answer: Callable[[Verdict], None]
    is_gone: Callable[[], bool]


@dataclass(slots=True)
class _Job:
    key: Key
    program: Program
    problem: KnownProblem
    waiters: list[_Waiter]

    def is_wanted(self) -> bool:
        """Whether anybody still waits."""
        return not all(waiter.is_gone() for waiter in tuple(self.waiters))


@dataclass(frozen=True, eq=False, slots=True)
class _RunJob:
    invocation: Invocation
    future: Future[Execution]


class Judge:
    """A pool of warm sandboxes; use it as a context manager, or call `close`."""

    def __init__(
        self,
        *,
        workers: int | None = None,
        stop: StopRule = "first_limit",
        time_scale: float | None = None,
        max_waiting: int = 1024,
        cache_size: int = 4096,
        renew_after: int = 0,
        nice: int = 0,
        packages: str = STANDARD,
        batch_tests: bool = True,
        sibling_limit: float | None = None,
        unsafe: bool = False,
        layers: Collection[str] = LAYERS,
    ) -> None:
        """Start the first sandbox, so that a machine without isolation is known before any program runs.

        Args:
            workers: programs judged at the same time; the number of usable processors where it is left out.
            stop: when a program's remaining tests are left out.
            time_scale: what CPU limits are multiplied by; measured (see `calibration`) where it is left out.
            max_waiting: programs that `submit` and `judge_async` take before they make their callers wait.
            cache_size: verdicts to keep for identical pairs of program and problem; 0 judges each anew.
            renew_after: programs after which a worker starts fresh sandboxes; 0 keeps them as long as they work.
            nice: how far programs stand back from other work of this machine, 0 to 19: beside one process that wants
                it as well, one program gets half of a core at 0, a tenth at 10, a seventieth at 19. Never less than
                the calling process's own.
            packages: which third-party packages programs may import: `standard`, `atcoder`, `none`, or the path of a
                file of pins (docs/languages.md). Installed where they are not there yet.
            batch_tests: let tests of a program share a process where nothing could get from one to the next (see
                docs/sandbox.md); the verdicts are those of a process a test.
            sibling_limit: how many times the CPU time of the slowest accepted program of its problem a test may take at
                most (1 s in any case, and never beyond the problem's limit); left out, the problem's limit decides
                alone. A verdict that it changes depends on the other programs: `Verdict.is_relative`.
            unsafe: start even where seccomp, resource limits or file protection are missing. Unsafe.
            layers: the layers of isolation to put on; fewer only to test what the others hold.

        Raises:
            ConfigError: an argument is wrong.
            EvaluatorFault: this is not Linux, or the sandbox does not start or does not hold.
        """
        require_linux()
        if stop not in STOP_RULES:
            raise ConfigError(f"stop = {stop!r}; use one of {', '.join(STOP_RULES)}")
        if workers is not None and workers < 1:
            raise ConfigError(f"workers = {workers}; use 1 or more, or leave it out for one per processor")
        if time_scale is not None and not 0.1 <= time_scale <= 100:
            raise ConfigError(f"time_scale = {time_scale}; use 0.1 to 100, or leave it out to have it measured")
        if not 0 <= nice <= 19:
            raise ConfigError(f"nice = {nice}; use 0 to 19")
        if max_waiting < 1 or cache_size < 0 or renew_after < 0:
            raise ConfigError(
                f"max_waiting = {max_waiting}, cache_size = {cache_size}, renew_after = {renew_after}; "
                "use at least 1, 0 and 0"
            )
        if sibling_limit is not None and not sibling_limit >= LEAST_FACTOR:
            raise ConfigError(f"sibling_limit = {sibling_limit}; use {LEAST_FACTOR:g} or more, or leave it out")
        self.workers = workers or count_processors()
        self.stop: StopRule = stop
        self._is_closed = False
        self._jobs: SimpleQueue[_Job | _RunJob | None] = SimpleQueue()
        self._room = Room(max_waiting)
        self._lock = threading.Lock()
        self._in_flight: dict[Key, _Job] = {}
        self._running: set[_RunJob] = set()
        self._renew_after = renew_after
        self._cache = VerdictCache(cache_size)
        self._judged = self._from_cache = self._faults = self._runs = self._checker_crashes = 0
        self._given_scale = time_scale
        self._first: SimpleQueue[tuple[Isolation, float] | Exception] = SimpleQueue()
        self._inputs = InputShelf()
        self._gate = gate = Gate(
            self.workers, is_work_waiting=lambda: not self._jobs.empty(), on_aside=self._replace_worker
        )
        builds, pace = BuildCache(), Pace()
        shelf, headers = PackageShelf(load_profile(packages)), HeaderShelf(layers=layers, nice=nice)
        self._sessions = [
            Session(
                layers=layers,
                unsafe=unsafe,
                gate=gate,
                builds=builds,
                inputs=self._inputs,
                packages=shelf,
                batch_tests=batch_tests,
                headers=headers,
                sibling_limit=sibling_limit,
                pace=pace,
                nice=nice,
            )
            for _ in range(most_workers(self.workers))
        ]
        self._threads: list[threading.Thread] = []
        self._start_thread()
        answer = self._first.get()
        if isinstance(answer, Exception):
            self.close()
            raise answer
        self.isolation, self.time_scale = answer
        """The layers that hold around every program, and what CPU limits are multiplied by."""
        self.environment: JudgingEnvironment = describe_environment(shelf, self._sessions[0].call_stack)
        """What programs run on: the Python that problems without a version mean, and the packages."""
        self._shelf = ProblemShelf(time_scale=self.time_scale)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def statistics(self) -> Statistics:
        """What was done so far."""
        names = ("retries", "reruns", "lowered")
        retries, reruns, lowered = (sum(getattr(s, name) for s in self._sessions) for name in names)
        extended, blind = (sum(getattr(s.waits, name) for s in self._sessions) for name in ("extended", "blind"))
        sharing = [session.sharing for session in self._sessions]
        return Statistics(
            shared=sum(s.shared for s in sharing),
            fallbacks=sum(s.fallbacks for s in sharing),
            rechecked=sum(s.rechecked for s in sharing),
            differences=sum(s.differences for s in sharing),
            judged=self._judged,
            from_cache=self._from_cache,
            faults=self._faults,
            retries=retries,
            reruns=reruns,
            runs=self._runs,
            extended=extended,
            blind=blind,
            lowered=lowered,
            aside=self._gate.times_aside,
            checker_crashes=self._checker_crashes,
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
        try:
            for index in sorted(range(len(programs)), key=lambda index: -known[index].expected_seconds):
                waiter = _Waiter(lambda verdict, index=index: ready.put((index, verdict)), is_over.is_set)
                self._enqueue(programs[index], known[index], waiter)
            for _ in programs:
                index, verdict = ready.get()
                results[index] = verdict
                if on_verdict is not None:
                    on_verdict(index, verdict)
        finally:
            is_over.set()
        return cast(list[Verdict], results)

    def submit(self, program: Program, problem: Problem) -> Future[Verdict]:
        """Judge one program in the background; a cancelled future is not begun any more, or ends after its test.

        Waits while `max_waiting` programs are on their way.

        Raises:
            DataError: the problem's tests cannot be read.
            EvaluatorFault: there is no compiler or interpreter for the problem's language, or the judge is closed.
        """
        known = self._prepare(program, problem, "the program")
        self._room.enter().result()
        return self._enter(program, known)

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine, as a rollout lands; waits its turn like `submit`.

        Raises:
            DataError: the problem's tests cannot be read.
            EvaluatorFault: there is no compiler or interpreter for the problem's language, or the judge is closed.
        """
        import asyncio  # only callers that have an event loop pay for it

        known = self._prepare(program, problem, "the program")
        await self._room.enter_async()
        return await asyncio.wrap_future(self._enter(program, known))

    def submit_run(self, invocation: Invocation) -> Future[Execution]:
        """Run one program in the background without judging it; waits its turn like `submit`.

        Raises:
            DataError: it cannot be run; why.
            EvaluatorFault: there is no compiler for its language, or the judge is closed.
        """
        self._check_open()
        invocation.check()
        self._room.enter().result()
        return self._enter_run(invocation)

    def run(self, invocation: Invocation) -> Execution:
        """Run one program and return what it did; raises like `submit_run`."""
        return self.submit_run(invocation).result()

    async def run_async(self, invocation: Invocation) -> Execution:
        """Run one program from a coroutine; raises like `submit_run`."""
        import asyncio

        self._check_open()
        invocation.check()
        await self._room.enter_async()
        return await asyncio.wrap_future(self._enter_run(invocation))

    def close(self) -> None:
        """End all sandboxes at once; what is still being judged ends as a fault of the sandbox."""
        with self._lock:
            self._is_closed = True
        self._gate.dismiss()
        for session in self._sessions:
            session.interrupt()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        with self._lock:
            left, self._in_flight = list(self._in_flight.values()), {}
            runs, self._running = self._running, set()
        for job in left:
            _answer(job.waiters, _fault(job, "the judge was closed"))
        for run in runs:
            if not run.future.cancelled():
                run.future.set_result(executions.fault("the judge was closed"))
        self._inputs.close()

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
        """Have a program judged that was given a place."""
        future: Future[Verdict] = Future()

        def answer(verdict: Verdict) -> None:
            if future.set_running_or_notify_cancel():
                future.set_result(verdict)

        future.add_done_callback(lambda _: self._room.leave())
        try:
            self._enqueue(program, problem, _Waiter(answer, future.cancelled))
        except EvaluatorFault:
            future.cancel()
            raise
        return future

    def _enqueue(self, program: Program, problem: KnownProblem, waiter: _Waiter) -> None:
        """Have a program judged, unless its verdict is known or on its way."""
        key = problem.key_of(program)
        with self._lock:
            self._check_open()
            known = self._cache.find(key)
            job = self._in_flight.get(key)
            if known is None and job is None:
                job = self._in_flight[key] = _Job(key, program, problem, [waiter])
                self._put(job)
                return
            self._from_cache += 1
            if known is None and job is not None:
                job.waiters.append(waiter)
        if known is not None:
            waiter.answer(known)

    def _enter_run(self, invocation: Invocation) -> Future[Execution]:
        """Have a program run that was given a place."""
        job = _RunJob(invocation, Future())
        job.future.add_done_callback(lambda _: self._room.leave())
        try:
            with self._lock:
                self._check_open()
                self._running.add(job)
                self._put(job)
        except EvaluatorFault:
            job.future.cancel()
            raise
        return job.future

    def _put(self, job: _Job | _RunJob) -> None:
        """Give a job to the workers; with the lock held."""
        self._jobs.put(job)
        self._call_worker()

    def _call_worker(self) -> None:
        """Put one more to work where work and a place for it are waiting; with the lock held."""
        num_wanted = min(len(self._in_flight) + len(self._running), len(self._sessions))
        if not self._gate.call_up() and len(self._threads) < num_wanted and not self._is_closed:
            self._start_thread()

    def _replace_worker(self) -> None:
        """Have another take over the place of one whose program stands aside."""
        with self._lock:
            if not self._jobs.empty():
                self._call_worker()

    def _start_thread(self) -> None:
        self._gate.begin_work()
        number = len(self._threads)
        thread = threading.Thread(target=self._work, args=(number,), name=f"judge-{number}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, number: int) -> None:
        session = self._sessions[number]
        if number == 0:
            try:
                isolation, measured = session.open(), session.measure_time_scale()
                self._first.put((isolation, self._given_scale or measured))
            except Exception as error:
                self._first.put(error)
        num_done = 0
        while (job := self._next_job()) is not None:
            if isinstance(job, _RunJob):
                self._run(session, job)
            else:
                self._judge(session, job)
            num_done += 1
            if self._renew_after and num_done % self._renew_after == 0:
                session.renew()
        session.close()

    def _next_job(self) -> _Job | _RunJob | None:
        self._gate.stand_by()
        return self._jobs.get()

    def _run(self, session: Session, job: _RunJob) -> None:
        is_wanted = job.future.set_running_or_notify_cancel()
        execution = None
        if is_wanted:
            try:
                execution = session.run(job.invocation, self.time_scale)
            except Exception as error:
                execution = executions.fault(f"{type(error).__name__}: {error}")
        with self._lock:
            self._runs += is_wanted
            # Closing the judge may have answered it already.
            is_open = job in self._running
            self._running.discard(job)
        if execution is not None and is_open:
            job.future.set_result(execution)

    def _judge(self, session: Session, job: _Job) -> None:
        if self._give_up(job):
            return
        try:
            verdict = session.judge(job.program, job.problem.prepared, self.stop, job.is_wanted)
        except Abandoned:
            if not self._give_up(job):
                self._jobs.put(job)
            return
        except Exception as error:
            verdict = _fault(job, f"{type(error).__name__}: {error}")
        self._finish(job, verdict)

    def _give_up(self, job: _Job) -> bool:
        """Forget a job that nobody waits for; somebody may have joined since that was last looked at."""
        with self._lock:
            if job.is_wanted():
                return False
            self._in_flight.pop(job.key, None)
            return True

    def _finish(self, job: _Job, verdict: Verdict) -> None:
        """Keep a verdict and tell everybody who waits for it."""
        with self._lock:
            self._judged += 1
            self._faults += not verdict.is_scorable
            self._checker_crashes += verdict.is_checker_crash
            job.problem.note_seconds(sum(test.wall_seconds for test in verdict.tests))
            self._cache.keep(job.key, verdict)
            # Closing the judge may have answered them already.
            waiters = job.waiters if self._in_flight.pop(job.key, None) else []
        _answer(waiters, verdict)


def _answer(waiters: Sequence[_Waiter], verdict: Verdict) -> None:
    for waiter in waiters:
        waiter.answer(verdict)


def _fault(job: _Job, message: str) -> Verdict:
    result = verdicts.sandbox_fault(message)
    return Verdict(Outcome.SANDBOX_FAULT, (result,), len(job.problem.prepared.tests), result.detail)


def judge(
    programs: Sequence[Program],
    problems: Sequence[Problem],
    *,
    workers: int | None = None,
    stop: StopRule = "first_limit",
    packages: str = STANDARD,
    unsafe: bool = False,
) -> list[Verdict]:
    """Judge a batch with sandboxes made for this call; see `Judge`, which keeps them warm between calls."""
    with Judge(workers=workers, stop=stop, packages=packages, unsafe=unsafe) as judging:
        return judging.judge(programs, problems)
