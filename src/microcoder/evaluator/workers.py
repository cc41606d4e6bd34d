"""The threads that judge: each with warm sandboxes of its own, all of them in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from microcoder.evaluator import executions, verdicts
from microcoder.evaluator.builds import BuildCache
from microcoder.evaluator.calibration import Pace
from microcoder.evaluator.executions import Execution, Invocation
from microcoder.evaluator.inputs import InputShelf
from microcoder.evaluator.isolation import Isolation
from microcoder.evaluator.memory import KnownProblem
from microcoder.evaluator.package_folders import PackageShelf
from microcoder.evaluator.schedule import Gate
from microcoder.evaluator.session import Abandoned, Session, StopRule
from microcoder.types import Program, Verdict

_JOIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What all workers of a judge have in common; it travels to the processes of a judge."""

    stop: StopRule
    time_scale: float | None
    """What CPU limits are multiplied by; None to have it measured."""
    renew_after: int
    nice: int
    packages: str
    batch_tests: bool
    unsafe: bool
    layers: tuple[str, ...]


class Counts(NamedTuple):
    """What sessions count; see `judge.Statistics`."""

    retries: int = 0
    reruns: int = 0
    extended: int = 0
    blind: int = 0
    shared: int = 0
    fallbacks: int = 0
    rechecked: int = 0
    differences: int = 0


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Return the sum of each."""
    return Counts._make([sum(values) for values in zip(*counts, strict=True)])


def _counts_of(session: Session) -> Counts:
    waits, sharing = session.waits, session.sharing
    return Counts(
        retries=session.retries,
        reruns=session.reruns,
        extended=waits.extended,
        blind=waits.blind,
        shared=sharing.shared,
        fallbacks=sharing.fallbacks,
        rechecked=sharing.rechecked,
        differences=sharing.differences,
    )


@dataclass(eq=False, slots=True)
class Work:
    """A program to judge or to run, and where its answer goes."""

    program: Program
    problem: KnownProblem | None
    """None for a program that is only run."""
    invocation: Invocation | None
    is_wanted: Callable[[], bool]
    finish: Callable[[Verdict | Execution | None], None]
    """Called with the answer, or None where the work was given up since nobody wanted it."""

    def fault(self, message: str) -> Verdict | Execution:
        """Return the answer where our machine failed."""
        if self.problem is None:
            return executions.fault(message)
        return verdicts.unjudged(message, len(self.problem.prepared.tests))


class Pool(Protocol):
    """Workers, wherever they are."""

    @property
    def counts(self) -> Counts:
        """What was counted so far."""
        ...

    def open(self) -> tuple[Isolation, float]:
        """Start the first sandbox; return what holds around programs, and what CPU limits are multiplied by."""
        ...

    def put(self, work: Work) -> None:
        """Take work, which is begun in the order in which it came."""
        ...

    def withdraw(self, work: Work) -> None:
        """Look at once whether work is still wanted."""
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
            size: threads at most; one is started where there is work for it.
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
        self._inputs = InputShelf()
        self.pace = pace or Pace()
        """How fast this machine runs."""
        gate, builds = gate or Gate(), BuildCache()
        self.sessions = [
            Session(
                layers=settings.layers,
                unsafe=settings.unsafe,
                gate=gate,
                builds=builds,
                inputs=self._inputs,
                packages=packages,
                batch_tests=settings.batch_tests,
                pace=self.pace,
                nice=settings.nice,
            )
            for _ in range(size)
        ]
        """One for each thread."""
        self._threads: list[threading.Thread] = []

    @property
    def counts(self) -> Counts:
        """What was counted so far."""
        return sum_counts(map(_counts_of, self.sessions))

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
        self.time_scale = answer[1]
        return answer

    def put(self, work: Work) -> None:
        """Take work, which is begun in the order in which it came."""
        with self._lock:
            self._num_open += 1
            self._work.put(work)
            if len(self._threads) < min(self.size, self._num_open):
                self._start_thread()

    def withdraw(self, work: Work) -> None:
        """Nothing to do: a thread asks before each test."""

    def close(self) -> None:
        """End all sandboxes; what is being judged ends as a fault."""
        for session in self.sessions:
            session.interrupt()
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        self._inputs.close()

    def _start_thread(self) -> None:
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
        while (work := self._work.get()) is not None:
            answer = self._do(session, work)
            with self._lock:
                self._num_open -= 1
            work.finish(answer)
            num_done += 1
            if self._settings.renew_after and num_done % self._settings.renew_after == 0:
                session.renew()
        session.close()

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
