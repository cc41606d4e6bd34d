"""The evaluator's front: programs and problems in, verdicts out, many at a time.

The judging threads live as long as the `Judge`, each with warm sandboxes of its own; nothing is forked from the
calling process, so it may hold torch, threads and a GPU.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Self, cast

from microcoder.errors import ConfigError, DataError, EvaluatorFault
from microcoder.evaluator import verdicts
from microcoder.evaluator.builds import BuildCache
from microcoder.evaluator.isolation import Isolation
from microcoder.evaluator.languages import find_language
from microcoder.evaluator.preparation import PreparedProblem
from microcoder.evaluator.sandbox.layers import LAYERS
from microcoder.evaluator.schedule import Gate
from microcoder.evaluator.session import STOP_RULES, Session, StopRule
from microcoder.types import Outcome, Problem, Program, Verdict

OnVerdict = Callable[[int, Verdict], None]
"""Called with a program's index and its verdict, in the order in which they are ready, from the calling thread."""

_JOIN_SECONDS = 10.0
_CACHE_SIZE = 65_536
_MAX_PREPARED = 4096


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a judge has done so far."""

    judged: int
    """Programs that were run."""
    from_cache: int
    """Verdicts that an earlier, or a simultaneous, identical program had already."""
    faults: int
    """Programs that stayed unscored because the sandbox failed."""
    reruns: int
    """Tests that were run again alone, because they ended close to their time limit."""


@dataclass(slots=True)
class _Waiter:
    """Somebody who wants a verdict."""

    answer: Callable[[Verdict], None]
    is_gone: Callable[[], bool]


@dataclass(slots=True)
class _Job:
    key: Hashable
    program: Program
    problem: PreparedProblem
    waiters: list[_Waiter]


class Judge:
    """A pool of warm sandboxes; use it as a context manager, or call `close`."""

    def __init__(
        self,
        *,
        workers: int | None = None,
        stop: StopRule = "first_limit",
        unsafe: bool = False,
        layers: Collection[str] = LAYERS,
        cache_size: int = _CACHE_SIZE,
    ) -> None:
        """Start the first sandbox, so that a machine without isolation is known before any program runs.

        Args:
            workers: programs judged at the same time; the number of usable processors where it is left out.
            stop: when a program's remaining tests are left out.
            unsafe: start even where seccomp, resource limits or file protection are missing. Unsafe.
            layers: the layers of isolation to put on; fewer only to test what the others hold.
            cache_size: verdicts to keep for identical pairs of program and problem; 0 judges each anew.

        Raises:
            ConfigError: an argument is wrong.
            EvaluatorFault: the sandbox does not start or does not hold.
        """
        if stop not in STOP_RULES:
            raise ConfigError(f"stop = {stop!r}; use one of {', '.join(STOP_RULES)}")
        if workers is not None and workers < 1:
            raise ConfigError(f"workers = {workers}; use 1 or more, or leave it out for one per processor")
        self.workers = workers or len(os.sched_getaffinity(0))
        self.stop: StopRule = stop
        self._is_closed = False
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._in_flight: dict[Hashable, _Job] = {}
        self._cache: OrderedDict[Hashable, Verdict] = OrderedDict()
        self._cache_size = cache_size
        self._prepared: OrderedDict[Hashable, PreparedProblem] = OrderedDict()
        self._seconds_of: dict[int, float] = {}
        self._judged = self._from_cache = self._faults = 0
        self._first: SimpleQueue[Isolation | Exception] = SimpleQueue()
        gate, builds = Gate(), BuildCache()
        self._sessions = [Session(layers=layers, unsafe=unsafe, gate=gate, builds=builds) for _ in range(self.workers)]
        self._threads: list[threading.Thread] = []
        self._start_thread()
        answer = self._first.get()
        if isinstance(answer, Exception):
            self.close()
            raise answer
        self.isolation = answer
        """The layers that hold around every program."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def statistics(self) -> Statistics:
        """What was done so far."""
        reruns = sum(session.reruns for session in self._sessions)
        return Statistics(self._judged, self._from_cache, self._faults, reruns)

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order.

        Identical pairs are judged once, also across calls. Programs of problems that took longest so far start first.
        A program never raises; a fault of the sandbox is its verdict.

        Raises:
            DataError: the sequences differ in length, or a problem's tests cannot be read.
            EvaluatorFault: there is no compiler for a problem's language, or the judge is closed.
        """
        self._check_open()
        if len(programs) != len(problems):
            raise DataError(f"{len(programs)} programs but {len(problems)} problems; pass one problem per program")
        prepared = [
            self._prepare(program, problem, f"program {index}")
            for index, (program, problem) in enumerate(zip(programs, problems, strict=True))
        ]
        ready: SimpleQueue[tuple[int, Verdict]] = SimpleQueue()
        results: list[Verdict | None] = [None] * len(programs)
        is_over = threading.Event()
        try:
            for index in sorted(range(len(programs)), key=lambda index: -self._expected_seconds(prepared[index])):
                waiter = _Waiter(lambda verdict, index=index: ready.put((index, verdict)), is_over.is_set)
                self._enqueue(programs[index], prepared[index], waiter)
            for _ in programs:
                index, verdict = ready.get()
                results[index] = verdict
                if on_verdict is not None:
                    on_verdict(index, verdict)
        finally:
            is_over.set()
        return cast(list[Verdict], results)

    def submit(self, program: Program, problem: Problem) -> Future[Verdict]:
        """Judge one program in the background; a cancelled future is not begun any more.

        Raises:
            DataError: the problem's tests cannot be read.
            EvaluatorFault: there is no compiler for the problem's language, or the judge is closed.
        """
        future: Future[Verdict] = Future()

        def answer(verdict: Verdict) -> None:
            if future.set_running_or_notify_cancel():
                future.set_result(verdict)

        self._enqueue(program, self._prepare(program, problem, "the program"), _Waiter(answer, future.cancelled))
        return future

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine, as a rollout lands; as many at a time as there are workers.

        Raises:
            DataError: the problem's tests cannot be read.
            EvaluatorFault: there is no compiler for the problem's language, or the judge is closed.
        """
        return await asyncio.wrap_future(self.submit(program, problem))

    def close(self) -> None:
        """End all sandboxes at once; what is still being judged ends as a fault of the sandbox."""
        self._is_closed = True
        for session in self._sessions:
            session.interrupt()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        with self._lock:
            left, self._in_flight = list(self._in_flight.values()), {}
        for job in left:
            self._answer(job.waiters, _fault(job, "the judge was closed"))

    def _check_open(self) -> None:
        if self._is_closed:
            raise EvaluatorFault("this Judge is closed; make a new one")

    def _prepare(self, program: Program, problem: Problem, what: str) -> PreparedProblem:
        """Return a problem's prepared form; problems that are judged alike share one."""
        self._check_open()
        language = find_language(problem.language)
        if find_language(program.language) is not language:
            raise DataError(f"{what} is in {program.language!r}, problem {problem.id} wants {problem.language!r}")
        if language.find_problem():
            raise EvaluatorFault(language.find_problem())
        limits = (problem.time_limit_seconds, problem.memory_limit_mib)
        content = (problem.tests, problem.fn_name, language.name, limits, problem.checker)
        with self._lock:
            found = self._prepared.get(content)
            if found is not None:
                self._prepared.move_to_end(content)
                return found
        found = PreparedProblem(problem)
        with self._lock:
            found = self._prepared.setdefault(content, found)
            while len(self._prepared) > _MAX_PREPARED:
                self._prepared.popitem(last=False)
        return found

    def _expected_seconds(self, problem: PreparedProblem) -> float:
        """Return how long programs of a problem took so far; unknown ones count as long."""
        return self._seconds_of.get(id(problem), problem.limits.cpu_seconds)

    def _enqueue(self, program: Program, problem: PreparedProblem, waiter: _Waiter) -> None:
        """Have a program judged, unless its verdict is known or on its way."""
        # The prepared problem itself is in the key, so that its identity cannot be another's later.
        key = (program.code, program.reason if program.code is None else "", problem)
        with self._lock:
            known = self._cache.get(key)
            job = self._in_flight.get(key)
            if known is not None:
                self._cache.move_to_end(key)
            elif job is not None:
                job.waiters.append(waiter)
            else:
                job = self._in_flight[key] = _Job(key, program, problem, [waiter])
                self._jobs.put(job)
                if len(self._threads) < min(self.workers, len(self._in_flight)):
                    self._start_thread()
                return
            self._from_cache += 1
        if known is not None:
            waiter.answer(known)

    def _start_thread(self) -> None:
        number = len(self._threads)
        thread = threading.Thread(target=self._work, args=(number,), name=f"judge-{number}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self, number: int) -> None:
        session = self._sessions[number]
        if number == 0:
            try:
                self._first.put(session.open())
            except Exception as error:
                self._first.put(error)
        while (job := self._jobs.get()) is not None:
            with self._lock:
                if all(waiter.is_gone() for waiter in job.waiters):
                    self._in_flight.pop(job.key, None)
                    continue
            try:
                verdict = session.judge(job.program, job.problem, self.stop)
            except Exception as error:
                verdict = _fault(job, f"{type(error).__name__}: {error}")
            self._finish(job, verdict)
        session.close()

    def _finish(self, job: _Job, verdict: Verdict) -> None:
        """Keep a verdict and tell everybody who waits for it."""
        seconds = sum(test.wall_seconds for test in verdict.tests)
        with self._lock:
            self._judged += 1
            self._faults += not verdict.is_scorable
            before = self._seconds_of.get(id(job.problem), seconds)
            self._seconds_of[id(job.problem)] = (before + seconds) / 2
            if self._cache_size and verdict.is_scorable:
                self._cache[job.key] = verdict
                while len(self._cache) > self._cache_size:
                    self._cache.popitem(last=False)
            is_mine = self._in_flight.pop(job.key, None) is not None
            waiters = list(job.waiters) if is_mine else []
        self._answer(waiters, verdict)

    @staticmethod
    def _answer(waiters: Sequence[_Waiter], verdict: Verdict) -> None:
        for waiter in waiters:
            waiter.answer(verdict)


def _fault(job: _Job, message: str) -> Verdict:
    result = verdicts.sandbox_fault(message)
    return Verdict(Outcome.SANDBOX_FAULT, (result,), len(job.problem.tests), result.detail)


def judge(
    programs: Sequence[Program],
    problems: Sequence[Problem],
    *,
    workers: int | None = None,
    stop: StopRule = "first_limit",
    unsafe: bool = False,
) -> list[Verdict]:
    """Judge a batch with sandboxes made for this call; see `Judge`, which keeps them warm between calls."""
    with Judge(workers=workers, stop=stop, unsafe=unsafe) as judging:
        return judging.judge(programs, problems)
