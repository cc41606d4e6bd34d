"""The threads that judge: each with warm sandboxes of its own, all of them in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Protocol

from microcoder.evaluator import executions, verdicts
from microcoder.evaluator.builds import BuildCache
from microcoder.evaluator.calibration import Pace
from microcoder.evaluator.executions import Execution, Invocation
from microcoder.evaluator.headers import HeaderShelf
from microcoder.evaluator.inputs import InputShelf
from microcoder.evaluator.isolation import Isolation
from microcoder.evaluator.memory import KnownProblem
from microcoder.evaluator.package_folders import PackageShelf
from microcoder.evaluator.session import Abandoned, Session, StopRule
from microcoder.evaluator.statistics import Counts, sum_counts
from microcoder.evaluator.turns import Gate, most_workers
from microcoder.types import Program, Verdict

_JOIN_SECONDS = 10.0
_MOST_THREADS = 8
"""Beyond that a process is busy with its own threads: 4 of them have 1,300 tests a second, 16 only 2,500."""


def count_processes(num_workers: int) -> int:
    """Return how many processes so many workers are spread over; 0 if threads of one do as well."""
    return 0 if num_workers <= _MOST_THREADS else -(-num_workers // _MOST_THREADS)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of all workers of a judge, sent to its processes."""

    stop: StopRule
    time_scale: float | None
    """What CPU limits are multiplied by; None to have it measured."""
    renew_after: int
    nice: int
    packages: str
    batch_tests: bool
    sibling_limit: float | None
    tests_mib: int
    checker_seconds: float
    build_seconds: float | None
    unsafe: bool
    layers: tuple[str, ...]


@dataclass(eq=False, slots=True)
class Work:
    """A program to judge or to run, and the callback for its answer."""

    program: Program
    problem: KnownProblem | None
    """None for a program that is only run."""
    invocation: Invocation | None
    is_wanted: Callable[[], bool]
    finish: Callable[[Verdict | Execution | None], None]
    """Called with the answer, or None if the work was abandoned."""

    def fault(self, message: str) -> Verdict | Execution:
        """Return the answer for a fault of our machine."""
        if self.problem is None:
            return executions.fault(message)
        return verdicts.unjudged(message, len(self.problem.prepared.tests))


class Pool(Protocol):
    """A pool of workers, in this process or in others."""

    @property
    def counts(self) -> Counts:
        """What was counted so far."""
        ...

    @property
    def call_stack(self) -> str:
        """What the first sandbox says of the call stack, see `Sandbox`."""
        ...

    def open(self) -> tuple[Isolation, float]:
        """Start the first sandbox; return what holds around programs, and what CPU limits are multiplied by."""
        ...

    def put(self, work: Work) -> None:
        """Take work, which is begun in the order in which it came."""
        ...

    def withdraw(self, work: Work) -> None:
        """Check at once whether work is still wanted."""
        ...

    def close(self) -> None:
        """End all sandboxes; work that is under way may end as a fault, or without an answer."""
        ...


class Workers:
    """A pool of threads."""

    def __init__(
        self,
        size: int,
        settings: Settings,
        packages: PackageShelf,
        *,
        gate: Gate | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            size: threads at most; one is started if there is work for it.
            settings: what they have in common.
            packages: what programs may import.
            gate: for tests that are to run alone.
            pace: how fast this machine was seen to run.
        """
        self.size = size
        self.time_scale = settings.time_scale or 1.0
        self._settings = settings
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._first: SimpleQueue[tuple[Isolation, float] | Exception] = SimpleQueue()
        self._lock = threading.Lock()
        self._num_open = 0
        self._is_closed = False
        self._inputs = InputShelf((settings.tests_mib << 20) // 2)
        self.pace = pace or Pace()
        """How fast this machine runs."""
        self._gate = gate or Gate()
        self._gate.open(size, is_work_waiting=lambda: not self._work.empty(), on_aside=self._replace)
        self._builds = BuildCache(settings.build_seconds)
        self._builds.time_scale = self.time_scale
        headers = HeaderShelf(layers=settings.layers, nice=settings.nice)
        self.sessions = [
            Session(
                layers=settings.layers,
                unsafe=settings.unsafe,
                gate=self._gate,
                builds=self._builds,
                inputs=self._inputs,
                packages=packages,
                batch_tests=settings.batch_tests,
                headers=headers,
                sibling_limit=settings.sibling_limit,
                pace=self.pace,
                nice=settings.nice,
            )
            for _ in range(most_workers(size))
        ]
        """One for each thread: those whose programs run, and those whose programs stand aside."""
        self._threads: list[threading.Thread] = []

    @property
    def counts(self) -> Counts:
        """What was counted so far."""
        return replace(sum_counts(session.counts for session in self.sessions), aside=self._gate.times_aside)

    @property
    def call_stack(self) -> str:
        """What the first sandbox says of the call stack, see `Sandbox`."""
        return self.sessions[0].call_stack

    def open(self) -> tuple[Isolation, float]:
        """Start the first sandbox; return what holds around programs, and what CPU limits are multiplied by.

        Raises:
            EvaluatorFault: it does not start, or does not hold.
            SandboxDied: it broke.
        """
        with self._lock:
            self._start_thread()
        answer = self._first.get()
        if isinstance(answer, Exception):
            raise answer
        self.time_scale = self._builds.time_scale = answer[1]
        return answer

    def put(self, work: Work) -> None:
        """Take work, which is begun in the order in which it came."""
        with self._lock:
            self._num_open += 1
            self._work.put(work)
            self._call_up()

    def withdraw(self, work: Work) -> None:
        """Nothing to do: a thread asks before each test."""

    def close(self) -> None:
        """End all sandboxes; what is being judged ends as a fault."""
        with self._lock:
            self._is_closed = True
        self._gate.dismiss()
        for session in self.sessions:
            session.interrupt()
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        self._inputs.close()

    def _call_up(self) -> None:
        """Put one more to work if work and a place for it are waiting; with the lock held."""
        num_wanted = min(self._num_open, len(self.sessions))
        if not self._gate.call_up() and len(self._threads) < num_wanted and not self._is_closed:
            self._start_thread()

    def _replace(self) -> None:
        """Have another take over the place of one whose program stands aside."""
        with self._lock:
            if not self._work.empty():
                self._call_up()

    def _start_thread(self) -> None:
        self._gate.begin_work()
        number = len(self._threads)
        thread = threading.Thread(target=self._serve, args=(number,), name=f"judge-{number}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, number: int) -> None:
        session = self.sessions[number]
        if number == 0:
            try:
                isolation, measured = session.open(), session.measure_time_scale()
                self._first.put((isolation, self._settings.time_scale or measured))
            except Exception as error:
                self._first.put(error)
        num_done = 0
        while (work := self._next()) is not None:
            answer = self._do(session, work)
            with self._lock:
                self._num_open -= 1
            work.finish(answer)
            num_done += 1
            if self._settings.renew_after and num_done % self._settings.renew_after == 0:
                session.renew()
        session.close()

    def _next(self) -> Work | None:
        self._gate.stand_by()
        return self._work.get()

    def _do(self, session: Session, work: Work) -> Verdict | Execution | None:
        if not work.is_wanted():
            return None
        try:
            if work.problem is not None:
                return session.judge(work.program, work.problem.prepared, self._settings.stop, work.is_wanted)
            assert work.invocation is not None
            return session.run(work.invocation, self.time_scale)
        except Abandoned:
            return None
        except Exception as error:
            return work.fault(f"{type(error).__name__}: {error}")
