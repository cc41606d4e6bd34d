"""The service, whatever the HTTP routes: a judge behind a bounded queue that can be drained."""

import asyncio
import math
import re
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import Any

from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault, own_faults
from microcoder.judge.core.syntax import attribute_docstrings
from microcoder.judge.core.types import Problem, Program, TestCase, Verdict
from microcoder.judge.fleet.remote import Load
from microcoder.judge.languages import find_language
from microcoder.judge.run.counts import Statistics
from microcoder.judge.run.executions import Execution, Invocation
from microcoder.judge.serve.settings import ServiceSettings

_LINE_SECONDS = 0.05
"""How often a program that waits in line for the queue looks whether there is space."""
_RETRY_AFTER_SECONDS = 2.0
"""When a client is to come back whose programs found no space in the queue."""
_SICK_AFTER_FAULTS = 20
"""A service whose sandbox failed for so many programs in a row should be replaced."""
_MOST_VALUES = 1_000_000
"""Most values in a function's test: reading it holds up all other requests."""
_MOST_LISTS = 2_000_000
"""Most lists in a request: a garbage collection of so many holds up all other requests."""
_IN_TEST = re.compile(r", test (\d+)")
"""What the message of an error in a test has behind the problem's name."""
BEAT_SECONDS = 10.0
"""After so long without a verdict a stream sends a line with the service's load, as a sign of
life."""
_MAX_FAULTS_SHOWN = 5
"""Validation errors of a request that are named in its answer."""


class Refused(HTTPException):
    """A request that is not served, and why."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        retry_after_seconds: float | None = None,
    ) -> None:
        """Say no.

        Args:
            status: HTTP status, 4xx for what the client must change; what was refused with 429, 503
                and 504 may be sent again.
            message: what is wrong, and what would do.
            retry_after_seconds: when it may be sent again.
        """
        headers: dict[str, str] = {}
        if status == 401:
            headers["WWW-Authenticate"] = 'Bearer realm="microcoder"'
        if retry_after_seconds is not None:
            headers["Retry-After"] = str(max(1, math.ceil(retry_after_seconds)))
        super().__init__(status, message, headers)
        self.retry_after_seconds = retry_after_seconds


def refusal_of(error: Exception) -> Refused:
    """Return the refusal that an exception stands for."""
    match error:
        case Refused():
            return error
        case RequestValidationError(body=bytes()):
            return Refused(
                415,
                "a body is read as JSON only with the header Content-Type: application/json; "
                "add it",
            )
        case RequestValidationError():
            # Without the first part of each place, which says that it is in the body.
            faults: list[Any] = [{**fault, "loc": fault["loc"][1:]} for fault in error.errors()]
            return Refused(422, explain(faults))
        case DataError():
            return Refused(422, str(error)[:1000])
        case EvaluatorFault():
            return Refused(503, str(error)[:1000], retry_after_seconds=5)
        case _:
            return Refused(500, "the service failed; its log says how")


def explain(faults: Sequence[ErrorDetails]) -> str:
    """Return the text of validation errors: where and what.

    The values sent are left out: they may be large or private.
    """
    faults = own_faults(faults)
    shown = []
    for fault in faults[:_MAX_FAULTS_SHOWN]:
        where = ".".join(str(part)[:60] for part in fault["loc"])
        message = str(fault["msg"])[:200]
        shown.append(f"{where or 'body'}: {message}")
    num_left = len(faults) - len(shown)
    if num_left:
        shown.append(f"and {num_left} more")
    return "; ".join(shown)


class ServiceMetrics(Collector):
    """What one service counts, for Prometheus.

    It has a registry of its own, so that several may live in one process.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.registry = CollectorRegistry()
        count = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        self.requests = count(
            "microcoder_requests", "Requests by route and status", ("route", "status")
        )
        self.outcomes = count("microcoder_outcomes", "Verdicts by outcome", ("outcome",))
        self.queued = gauge("microcoder_queued_programs", "Programs on their way")
        self.body_bytes = gauge("microcoder_body_bytes", "Bytes of requests on their way")
        self.registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Yield the judge's own counts, read at each request of Prometheus."""
        # One reading for all of them, so that they fit each other.
        statistics = self._judge.statistics
        for name, text in attribute_docstrings(Statistics).items():
            yield CounterMetricFamily(
                f"microcoder_judge_{name}", text.rstrip("."), value=getattr(statistics, name)
            )

    def render(self) -> bytes:
        """Return the page that Prometheus reads."""
        return generate_latest(self.registry)


class Service:
    """A judge behind a bounded queue, which takes programs while the queue has space.

    All of this runs in one event loop; the programs do not.
    """

    def __init__(self, judge: Judge, settings: ServiceSettings) -> None:
        self.judge = judge
        self.settings = settings
        self.metrics = ServiceMetrics(judge)
        self.is_draining = False
        self._num_queued = 0
        self._faults_in_a_row = 0
        self._over = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Remember the running event loop."""
        self._loop = asyncio.get_running_loop()

    def drain(self) -> None:
        """Accept nothing more; answer 503 to what is left after the grace period.

        Any thread or signal may call it.
        """
        self.is_draining = True
        # A signal may come at any moment, so the loop is asked to do it.
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(
                self._loop.call_later, self.settings.grace_seconds, self._over.set
            )

    @property
    def load(self) -> Load:
        """Number of workers, and of programs of all clients that are queued or run."""
        return Load(workers=self.judge.workers, queued=self._num_queued)

    def find_failure(self) -> str:
        """Return why this service should be replaced; empty where all is well."""
        if self._faults_in_a_row >= _SICK_AFTER_FAULTS:
            return f"the sandbox failed for the last {self._faults_in_a_row} programs"
        return ""

    def find_reason_to_wait(self) -> str:
        """Return why nothing should be sent here now; empty if its queue has space."""
        if self.is_draining:
            return "shutting down"
        if self._num_queued >= self.settings.max_queued:
            return f"{self._num_queued} programs are on their way, as many as are taken"
        return self.find_failure()

    async def judge_all(
        self,
        programs: Sequence[Program],
        problems: Sequence[Problem],
    ) -> list[Verdict]:
        """Judge a request's programs, all of them or none; raises what `judge_each` does."""
        landing = self.judge_each(programs, problems)
        landed = [each async for each in landing if each is not None]
        return [verdict for _, verdict in sorted(landed, key=itemgetter(0))]

    async def judge_each(
        self,
        programs: Sequence[Program],
        problems: Sequence[Problem],
    ) -> AsyncGenerator[tuple[int, Verdict] | None]:
        """Judge a request's programs.

        Yields:
            None as soon as they are accepted, and after every BEAT_SECONDS without a verdict; else
            a program's position and its verdict, as they come.

        Raises:
            Refused: the request is too large, cannot be judged, or was not done in time.
        """
        # By identity: a request holds each problem once, and comparing tests takes long.
        by_identity = {id(problem): problem for problem in problems}
        distinct = list(by_identity.values())
        self._check_size(len(programs), distinct)
        for problem in distinct:
            self._check_problem(problem)
        with self._hold_slots(len(programs)):
            # Values of functions are read here, which takes as long as there are many.
            await asyncio.to_thread(self._prepare, distinct)
            # A task each, so that they land in any order.
            numbers: dict[asyncio.Future[Verdict], int] = {}
            pairs = zip(programs, problems, strict=True)
            for number, (program, problem) in enumerate(pairs):
                numbers[asyncio.ensure_future(self._judge(program, problem))] = number
            over = asyncio.ensure_future(self._over.wait())
            give_up = time.monotonic() + self.settings.request_seconds
            try:
                yield None
                left = set(numbers)
                while left:
                    patience = max(0.0, min(BEAT_SECONDS, give_up - time.monotonic()))
                    done, _ = await asyncio.wait(
                        (over, *left),
                        timeout=patience,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                    landed = left & done
                    left -= landed
                    for task in landed:
                        yield numbers[task], task.result()
                    if left and over.done():
                        raise shutting_down()
                    if not done:
                        self._check_time(give_up)
                        yield None
            finally:
                # Also when the client goes.
                for task in (*numbers, over):
                    task.cancel()
                # Waited for, so that asyncio does not log what nobody fetches any more.
                await asyncio.gather(*numbers, over, return_exceptions=True)

    async def run(self, invocation: Invocation, *, patience_seconds: float) -> Execution:
        """Run one program without judging it.

        Where the queue is full it waits in line, for its clients know no refusal to come back from.

        Raises:
            Refused: a limit is above the service's, or it was not done in `patience_seconds`.
            DataError, EvaluatorFault: it cannot be run here; why.
        """
        self._check_limits(invocation.cpu_seconds, invocation.memory_limit_mib)
        seconds = min(patience_seconds, self.settings.request_seconds)
        try:
            async with asyncio.timeout(seconds):
                while self._num_queued >= self.settings.max_queued and not self.is_draining:
                    await asyncio.sleep(_LINE_SECONDS)
                with self._hold_slots(1):
                    execution = await self._run(invocation)
        except TimeoutError:
            raise _not_done(seconds) from None
        self.metrics.outcomes.labels(execution.failure or "finished").inc()
        self._note_fault(is_ours=not execution.is_conclusive)
        return execution

    async def _run(self, invocation: Invocation) -> Execution:
        """Run a program, unless the service ends before."""
        running = asyncio.wrap_future(self.judge.submit_run(invocation))
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait((running, over), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise shutting_down()
            return running.result()
        finally:
            # Also when the client goes.
            running.cancel()
            over.cancel()

    def _check_time(self, give_up: float) -> None:
        """Raise Refused once it is `give_up`, by `time.monotonic`."""
        if time.monotonic() >= give_up:
            raise _not_done(self.settings.request_seconds)

    def _check_size(
        self,
        num_programs: int,
        problems: Sequence[Problem],
    ) -> None:
        """Raise Refused for a request with too many programs, tests or values."""
        # Counted by marks in the texts: to read the values is what is to be avoided.
        num_tests = sum(len(problem.tests) for problem in problems)
        most_values = 0
        num_lists = 0
        for problem in problems:
            if problem.fn_name is None:
                continue
            for test in problem.tests:
                most_values = max(most_values, _count_values(test))
                num_lists += _count_values(test, "[{")
        for what, number, most in (
            ("programs", num_programs, self.settings.max_batch),
            ("tests", num_tests, self.settings.max_total_tests),
            ("values in a function's test", most_values, _MOST_VALUES),
            ("lists in functions' tests", num_lists, _MOST_LISTS),
        ):
            if number > most:
                raise Refused(413, f"{number} {what} in one request; send at most {most}")

    def _prepare(self, problems: Sequence[Problem]) -> None:
        """Let the judge prepare problems before their programs are judged.

        Messages repeat nothing of a test.
        """
        for index, problem in enumerate(problems):
            try:
                self.judge.prepare(problem)
            except DataError as error:
                message = str(error).removeprefix(f"problem {problem.id}")
                test = _IN_TEST.match(message)
                if test:
                    raise Refused(
                        422,
                        f"problem {index}, test {test[1]}: its input or output is not what the "
                        "function takes or returns, as JSON; `microcoder judge` says more, where "
                        "the problem is",
                    ) from None
                raise

    def _check_problem(self, problem: Problem) -> None:
        self._check_limits(problem.time_limit_seconds, problem.memory_limit_mib)
        names = [problem.language, problem.checker.language]
        if problem.interactor is not None:
            names.append(problem.interactor.language)
        for name in names:
            trouble = find_language(name).find_problem()
            if trouble:
                raise Refused(422, trouble)

    def _check_limits(self, cpu_seconds: float, memory_mib: int) -> None:
        """Raise Refused for a limit above the service's."""
        most_seconds = self.settings.max_cpu_seconds
        most_mib = self.settings.max_memory_mib
        if cpu_seconds > most_seconds:
            raise Refused(422, f"a time limit of {cpu_seconds:g} s; use at most {most_seconds:g}")
        if memory_mib > most_mib:
            raise Refused(422, f"a memory limit of {memory_mib} MiB; use at most {most_mib}")

    @contextmanager
    def _hold_slots(self, num_programs: int) -> Iterator[None]:
        """Count programs as queued within the block; raises Refused if the queue has no space."""
        if self.is_draining:
            raise shutting_down()
        most = self.settings.max_queued
        if num_programs > most:
            raise Refused(413, f"{num_programs} programs in one request; send at most {most}")
        # All of them or none: half a request would have to be sent again.
        if self._num_queued + num_programs > most:
            why = (
                f"{self._num_queued} programs are on their way, at most {most} are taken; "
                "send it again later"
            )
            raise Refused(429, why, retry_after_seconds=_RETRY_AFTER_SECONDS)
        self._num_queued += num_programs
        self.metrics.queued.inc(num_programs)
        try:
            yield
        finally:
            self._num_queued -= num_programs
            self.metrics.queued.dec(num_programs)

    async def _judge(self, program: Program, problem: Problem) -> Verdict:
        verdict = await self.judge.judge_async(program, problem)
        self.metrics.outcomes.labels(verdict.outcome.value).inc()
        # A checker that fails is the client's own: sending one must not end the service.
        self._note_fault(is_ours=not verdict.is_scorable and not verdict.is_checker_fault)
        return verdict

    def _note_fault(self, *, is_ours: bool) -> None:
        """Count what the sandbox failed for in a row: a program that it ran ends that."""
        if is_ours:
            self._faults_in_a_row += 1
        else:
            self._faults_in_a_row = 0


def _count_values(test: TestCase, marks: str = ",[{") -> int:
    """Return an upper bound of the number of values in the texts of a test."""
    return sum(test.input.count(mark) + test.output.count(mark) for mark in marks)


def _not_done(seconds: float) -> Refused:
    """Return the refusal of a request that was not done in time."""
    return Refused(
        504, f"not done within {seconds:g} s; send it again later", retry_after_seconds=1
    )


def shutting_down() -> Refused:
    """Return the refusal of a request that was not begun or not done when the service ends."""
    return Refused(503, "this service is shutting down; send it to another", retry_after_seconds=1)
