"""The interface of all judges (`BaseJudge`), and the local one (`Judge`).

Other judges work over HTTP and on a Ray cluster. The local one has threads that live as long as it
does, each with warm sandboxes of its own. They are in this process or, if there are many, in
processes of their own. Nothing is forked from the calling process, so it may hold torch, threads
and a GPU.
"""

import logging
import platform
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol, Self, Unpack

from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.machine import count_processors, require_linux
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.languages import check_language, language_of
from microcoder.judge.languages.packages import (
    JudgingEnvironment,
    digest_languages,
    load_profile,
    provide_packages,
)
from microcoder.judge.run.counts import Statistics, sum_counts
from microcoder.judge.run.executions import Execution, Invocation
from microcoder.judge.run.lru_cache import LruCache
from microcoder.judge.run.options import JudgeKeys, JudgeOptions, StopRule
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.judge.run.workers import (
    Answer,
    ProblemCache,
    Work,
    Workers,
    answer_all,
    count_processes,
)

_LOG = logging.getLogger(__name__)

OnVerdict = Callable[[int, Verdict], None]
"""Called with a program's index and its verdict, as they are ready, from the calling thread."""


class BatchJudge(Protocol):
    """Judges a batch: programs and problems in, verdicts out.

    An error of the machine is a verdict too (`sandbox_fault`), which is not scored.
    """

    def judge(
        self,
        programs: Sequence[Program],
        problems: Sequence[Problem],
        *,
        on_verdict: OnVerdict | None = None,
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts keep that order."""
        ...


class BaseJudge(ABC):
    """A judge that takes single programs, too; use it as a context manager, or call `close`.

    Identical pairs of program and problem are judged once, also across calls, and sent once to
    where they are judged.
    """

    _is_closed = False

    def __init__(self, cache_size: int) -> None:
        """Cache up to `cache_size` verdicts."""
        self._lock = threading.RLock()
        self._in_flight: dict[Any, Work] = {}
        """Work in progress, by its verdict's cache key.

        A program that is only run has a unique object as its key.
        """
        self._cache: LruCache[Verdict] = LruCache(cache_size)
        self._own_counts = Statistics()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(
        self,
        programs: Sequence[Program],
        problems: Sequence[Problem],
        *,
        on_verdict: OnVerdict | None = None,
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts keep that order.

        A program never raises; an error of the sandbox is its verdict.

        Raises:
            DataError: the sequences differ in length, a program is in another language than its
                problem, or a problem's tests cannot be read or are refused.
            ConfigError: a service refuses the token, or is not a judge.
            EvaluatorFault: there is no compiler or interpreter for a problem's language, no judge
                is reached, or this one is closed.
        """
        # A text is a sequence as well, and a program alone is none.
        if isinstance(programs, (str, Program)) or isinstance(problems, Problem):
            raise DataError(
                "programs and problems are lists, also of one: judge([Program(code)], [problem])"
            )
        if len(programs) != len(problems):
            raise DataError(
                f"{len(programs)} programs but {len(problems)} problems; "
                "pass one problem per program"
            )
        prepared = []
        pairs = zip(programs, problems, strict=True)
        for number, (program, problem) in enumerate(pairs):
            prepared.append(self._prepare(program, problem, f"program {number}"))
        futures = self._begin_all(programs, prepared)
        ready: SimpleQueue[int] = SimpleQueue()
        try:
            for number, future in enumerate(futures):
                future.add_done_callback(lambda _, number=number: ready.put(number))
            # In the order in which they come, so that a caller may write each down at once.
            for _ in futures:
                index = ready.get()
                verdict = futures[index].result()
                if on_verdict is not None:
                    on_verdict(index, verdict)
        finally:
            # Also if a callback raises: nobody waits for the others then.
            for future in futures:
                future.cancel()
        return [future.result() for future in futures]

    def submit(
        self,
        program: Program,
        problem: Problem,
    ) -> Future[Verdict]:
        """Judge one program in the background; raises like `judge`.

        A program whose future is cancelled is dropped if queued; if it runs, it may stop after its
        current test.
        """
        (future,) = self._begin_all(
            [program],
            [self._prepare(program, problem, "the program")],
        )
        return future

    @abstractmethod
    def _prepare(
        self,
        program: Program,
        problem: Problem,
        what: str,
    ) -> object:
        """Check a program, which messages call `what`; return its prepared problem."""

    def _begin_all(
        self,
        programs: Sequence[Program],
        prepared: Sequence[Any],
    ) -> list[Future[Verdict]]:
        """Begin programs, each with what `_prepare` returned; return their verdicts' futures."""
        pairs = zip(programs, prepared, strict=True)
        works = [Work(program, problem) for program, problem in pairs]
        futures = [work.waiting[0] for work in works]
        self._enqueue([(work.key, work) for work in works])
        return futures

    def _enqueue(self, keyed: Sequence[tuple[Any, Work]]) -> None:
        """Start work by its verdict's cache key, except where a verdict is cached or on its way."""
        new: list[Work] = []
        known: list[tuple[Work, Verdict]] = []
        with self._lock:
            self._check_open()
            for key, work in keyed:
                verdict = self._cache.find(key)
                if verdict is not None:
                    self._own_counts.from_cache += 1
                    known.append((work, verdict))
                    continue
                (future,) = work.waiting
                begun = self._in_flight.get(key)
                if begun is not None:
                    self._own_counts.from_cache += 1
                    begun.waiting.append(future)
                else:
                    begun = work
                    work.end = partial(self._finish, key)
                    self._in_flight[key] = work
                    new.append(work)
                future.add_done_callback(partial(self._withdraw_cancelled, begun))
        # Outside of the lock: the futures' callbacks run here.
        for work, verdict in known:
            answer_all(work, verdict)
        self._put(new)

    def _withdraw_cancelled(
        self,
        work: Work,
        future: Future[Any],
    ) -> None:
        """Withdraw work if this future of it was cancelled."""
        if future.cancelled():
            self._withdraw(work)

    @abstractmethod
    def _put(self, items: Sequence[Work]) -> None:
        """Begin work whose verdict is not cached and not being computed."""

    @abstractmethod
    def _withdraw(self, work: Work) -> None:
        """Handle that a future of this work was cancelled; others may still wait for its answer."""

    def _finish(
        self,
        key: object,
        work: Work,
        answer: Answer | None,
    ) -> None:
        """Cache a verdict and answer all waiting callers.

        The answer is None if the work was abandoned because no caller seemed to wait.
        """
        with self._lock:
            # Another caller may have joined in the meantime.
            is_again = answer is None and work.is_wanted()
            if isinstance(answer, Verdict) and work.problem is not None:
                self._note(key, answer)
            # Closing the judge may have answered them already.
            is_last = not is_again and self._in_flight.pop(key, None) is not None
        if is_again:
            self._put([work])
        elif is_last:
            # The futures refer to the work: `answer_all` takes them from it, since the cycle would
            # keep the problem's tests until the next garbage collection.
            answer_all(work, answer)

    def _note(self, key: object, verdict: Verdict) -> None:
        """Count a verdict, and cache it if it is scorable."""
        counts = self._own_counts
        counts.judged += 1
        counts.faults += not verdict.is_scorable
        counts.checker_crashes += verdict.is_checker_crash
        # A verdict on a broken machine is not kept: the next attempt may succeed.
        if verdict.is_scorable:
            self._cache.add(key, verdict)
            self._cache.trim()
        # A broken checker is the problem's matter, and closing is no fault.
        elif not (verdict.is_checker_fault or self._is_closed):
            _LOG.warning("microcoder: a program stays unscored: %s", verdict.detail)

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine, such as when a rollout arrives; raises like
        `judge`."""
        import asyncio  # only callers that have an event loop pay for it

        return await asyncio.wrap_future(self.submit(program, problem))

    def close(self) -> None:
        """End the judge, or the connection to it; a second call has no effect.

        Programs in progress get `sandbox_fault`.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._end()
        with self._lock:
            left = list(self._in_flight.values())
            self._in_flight = {}
        # Nobody else will answer these.
        for work in left:
            answer_all(work, work.fault(f"this {type(self).__name__} was closed"))

    @abstractmethod
    def _end(self) -> None:
        """End workers, or connections.

        This is called once, since their descriptors may be reused afterwards.
        """

    def _check_open(self) -> None:
        if self._is_closed:
            raise EvaluatorFault(f"this {type(self).__name__} is closed; make a new one")


class Judge(BaseJudge):
    """A pool of warm sandboxes; use it as a context manager, or call `close`.

    Of a batch, programs of problems that took longest so far start first.
    """

    def __init__(self, options: JudgeOptions | None = None, **keys: Unpack[JudgeKeys]) -> None:
        """Start the first sandbox, so that missing isolation raises before any program runs.

        Args:
            options: the options; by default those of `JudgeOptions`.
            keys: some of them by name, such as `workers=2`.

        Raises:
            ConfigError: an option is unknown or wrong.
            EvaluatorFault: this is not Linux, or the sandbox does not start or lacks isolation.
        """
        require_linux()
        self.options = JudgeOptions.read(dict(options or ()) | keys)
        # The key is the workers' alone: what was asked for stays as it is.
        options = self.options.with_order_key()
        self.workers = options.workers or count_processors()
        processes = options.processes
        if processes is None:
            processes = count_processes(self.workers)
        self.processes = processes
        """How many judge processes there are at most; 0 if the workers are threads of this one."""
        if not 0 <= self.processes <= self.workers:
            raise ConfigError(
                f"processes = {self.processes}; use 0 to {self.workers}, the number of workers"
            )
        self.stop: StopRule = options.stop
        super().__init__(options.cache_size)
        packages = provide_packages(load_profile(options.packages))
        if self.processes:
            # Imported here: a judge of few workers starts without it.
            from microcoder.judge.fleet.pipe import Processes

            self._pool = Processes(self.processes, self.workers, options)
        else:
            self._pool = Workers(self.workers, options)
        try:
            isolation, time_scale = self._pool.open()
        except BaseException:
            self.close()
            raise
        self.isolation = isolation
        """The isolation of programs."""
        self.time_scale = time_scale
        """The factor on CPU limits."""
        self.environment = JudgingEnvironment(
            platform.python_version(),
            packages.profile,
            packages.problem,
            digest_languages(),
            self.isolation.call_stack,
        )
        """The environment of programs: default Python version, and packages."""
        prepare = partial(
            PreparedProblem,
            time_scale=self.time_scale,
            checker_seconds=options.checker_seconds,
        )
        self._problem_cache = ProblemCache(prepare, options.tests_mib << 20)

    @property
    def statistics(self) -> Statistics:
        """Counts so far, of this judge and its workers."""
        return sum_counts([self._own_counts, self._pool.counts])

    def prepare(self, problem: Problem) -> None:
        """Check and keep a problem, so that its programs begin at once.

        Values of long tests take seconds to read.

        Raises:
            DataError: its tests cannot be read.
        """
        # Kept there, where its programs find it.
        self._problem_cache.find(problem)

    def submit_run(self, invocation: Invocation) -> Future[Execution]:
        """Run one program in the background without judging it.

        Raises:
            DataError: it cannot be run; why.
            EvaluatorFault: there is no compiler for its language, or the judge is closed.
        """
        invocation.check()
        work = Work(invocation.program, None, invocation)
        (future,) = work.waiting
        self._enqueue([(object(), work)])
        return future

    def run(self, invocation: Invocation) -> Execution:
        """Run one program and return the result; raises like `submit_run`."""
        return self.submit_run(invocation).result()

    def _end(self) -> None:
        self._pool.close()

    def _prepare(
        self,
        program: Program,
        problem: Problem,
        what: str,
    ) -> PreparedProblem:
        self._check_open()
        check_language(program, problem, what)
        language = language_of(problem)
        trouble = language.find_problem()
        if trouble:
            raise EvaluatorFault(trouble)
        return self._problem_cache.find(problem)

    def _put(self, items: Sequence[Work]) -> None:
        # The longest first, so that they do not end alone; programs that are only run come last.
        for work in sorted(items, key=_expected_seconds, reverse=True):
            self._pool.put(work)

    def _withdraw(self, work: Work) -> None:
        # Only if no other caller waits for the same verdict.
        if work.waiting and not work.is_wanted():
            self._pool.withdraw(work)

    def _finish(
        self,
        key: object,
        work: Work,
        answer: Answer | None,
    ) -> None:
        if isinstance(answer, Verdict) and work.problem is not None:
            work.problem.note_seconds(sum(test.wall_seconds for test in answer.tests))
        super()._finish(key, work, answer)


def _expected_seconds(work: Work) -> float:
    """Return the expected wall seconds of a program; 0 for one that is only run."""
    return work.problem.expected_seconds if work.problem else 0.0


def judge(
    programs: Sequence[Program],
    problems: Sequence[Problem],
    options: JudgeOptions | None = None,
    **keys: Unpack[JudgeKeys],
) -> list[Verdict]:
    """Judge a batch with sandboxes made for this call; see `Judge`, which keeps them warm between
    calls."""
    with Judge(options, **keys) as judging:
        return judging.judge(programs, problems)
