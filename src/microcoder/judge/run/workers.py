"""The threads that judge: each with warm sandboxes of its own, all of them in one process.

Also the caches of a judge: prepared problems (`Shelf`), and verdicts by program and problem.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from microcoder.judge.core.signatures import judged_by
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.languages.packages import ProvidedPackages
from microcoder.judge.run import executions, verdicts
from microcoder.judge.run.builds import BuildCache, HeaderShelf
from microcoder.judge.run.checkers import CPU_SECONDS
from microcoder.judge.run.executions import Execution, Invocation
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.problem import PreparedProblem
from microcoder.judge.run.session import Abandoned, Session
from microcoder.judge.run.timing import Counts, Pace, sum_counts
from microcoder.judge.run.turns import Job, Places, Turn, make_lock_files, most_workers

_MAX_PROBLEMS = 4096
_TEST_BYTES, _VALUE_BYTES_PER_CHARACTER = 1000, 20
"""Memory of a test besides its text, and of a value read from JSON such as `[[],[]]` for each character."""

Key = tuple[int, bytes]
"""The number of a known problem, and a digest of the program: neither keeps anything alive."""


@dataclass(slots=True)
class KnownProblem:
    """A prepared problem of a judge; its number is unique."""

    number: int
    prepared: PreparedProblem
    seen_seconds: float | None = None
    """Moving average of the programs' wall seconds; None before the first."""

    @property
    def expected_seconds(self) -> float:
        """Expected seconds of the next program; those of the time limit before the first."""
        return self.prepared.limits.cpu_seconds if self.seen_seconds is None else self.seen_seconds

    @property
    def num_bytes(self) -> int:
        """Bytes of its tests, which are held twice: as text, and as input or values."""
        problem = self.prepared.problem
        per_character = 2 if problem.fn_name is None else 2 + _VALUE_BYTES_PER_CHARACTER
        return sum(2 * len(test.input) + per_character * len(test.output) + _TEST_BYTES for test in problem.tests)

    def key_of(self, program: Program) -> Key:
        """Return the cache key of this program's verdict."""
        text = program.reason if program.code is None else "=" + program.code
        return self.number, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    def note_seconds(self, seconds: float) -> None:
        """Update the average by a program's time."""
        self.seen_seconds = seconds if self.seen_seconds is None else (self.seen_seconds + seconds) / 2


KnownT = TypeVar("KnownT", bound=Any)


class Shelf(Generic[KnownT]):
    """Cache of the most recently used problems by content, each with a number that no other problem ever gets.

    Problems that are judged alike share one number.
    """

    def __init__(self, make: Callable[[int, Problem], KnownT], most_bytes: int) -> None:
        """Start empty; `make` returns what is kept for a problem, from its number and itself; maybe called twice."""
        self._make = make
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._known: OrderedDict[object, KnownT] = OrderedDict()
        self._numbers = count(1)
        self._num_bytes = 0
        self._latest: tuple[Problem | None, Any] = None, None

    def find(self, problem: Problem) -> KnownT:
        """Return what is kept for a problem; `make` is called if it is new."""
        # A group's programs come one after the other, and hashing all tests takes longer than judging one.
        latest, known = self._latest
        if problem is latest:
            return known
        content = tuple(judged_by(problem).values())
        with self._lock:
            known = self._known.get(content)
            if known is not None:
                self._known.move_to_end(content)
                self._latest = problem, known
                return known
            number = next(self._numbers)
        made = self._make(number, problem)
        with self._lock:
            if content in self._known:
                return self._known[content]
            self._known[content] = made
            self._latest = problem, made
            self._num_bytes += made.num_bytes
            while len(self._known) > _MAX_PROBLEMS or (self._num_bytes > self._most_bytes and len(self._known) > 1):
                self._num_bytes -= self._known.popitem(last=False)[1].num_bytes
        return made


def open_shelf(*, time_scale: float, checker_seconds: float = CPU_SECONDS, most_mib: int = 512) -> Shelf[KnownProblem]:
    """Return a cache of prepared problems; `find` raises DataError if the tests of one cannot be read."""

    def make(number: int, problem: Problem) -> KnownProblem:
        return KnownProblem(number, PreparedProblem(problem, time_scale=time_scale, checker_seconds=checker_seconds))

    return Shelf(make, most_mib << 20)


class VerdictCache:
    """Cache of the most recently used verdicts; not thread-safe."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._verdicts: OrderedDict[Key, Verdict] = OrderedDict()

    def find(self, key: Key) -> Verdict | None:
        """Return the stored verdict, or None."""
        verdict = self._verdicts.get(key)
        if verdict is not None:
            self._verdicts.move_to_end(key)
        return verdict

    def keep(self, key: Key, verdict: Verdict) -> None:
        """Store a verdict, except sandbox errors."""
        if not verdict.is_scorable:
            return
        self._verdicts[key] = verdict
        while len(self._verdicts) > self._size:
            self._verdicts.popitem(last=False)


_JOIN_SECONDS = 10.0
_MOST_THREADS = 8
"""Beyond that a process is busy with its own threads: 4 of them have 1,300 tests a second, 16 only 2,500."""


def count_processes(num_workers: int) -> int:
    """Return over how many processes so many workers are spread; 0 if threads of this process suffice."""
    return 0 if num_workers <= _MOST_THREADS else -(-num_workers // _MOST_THREADS)


@dataclass(eq=False, slots=True)
class Work:
    """A program to judge or to run, and the callback for its answer."""

    program: Program
    problem: KnownProblem | None
    """Problem to judge by; None for a program that is only run."""
    invocation: Invocation | None
    is_wanted: Callable[[], bool]
    finish: Callable[[Verdict | Execution | None], None]
    """Called with the answer, or None if the work was abandoned."""

    def fault(self, message: str) -> Verdict | Execution:
        """Return the answer for an error of our machine."""
        if self.problem is None:
            return executions.fault(message)
        return verdicts.unjudged(message, len(self.problem.prepared.tests))


class Workers:
    """A pool of threads that judge and run programs, each with sandboxes of its own."""

    def __init__(
        self,
        size: int,
        options: JudgeOptions,
        packages: ProvidedPackages,
        *,
        lock_files: Sequence[int] = (),
        pace: Pace | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            size: how many programs run at a time.
            options: those of the judge.
            packages: what programs may import.
            lock_files: those of `make_lock_files` that this process shares with others; by default its own.
            pace: of this machine, if it is known.
        """
        self.size = size
        self.time_scale = options.time_scale or 1.0
        self._options = options
        self.pace = pace or Pace()
        """Pace of this machine."""
        self._own_files = () if lock_files else make_lock_files()
        self._places = Places(size, self._start)
        self._builds = BuildCache(options.build_seconds)
        self._builds.time_scale = self.time_scale
        headers = HeaderShelf(layers=options.layers, nice=options.nice)
        self.sessions = [
            Session(
                options,
                turn=Turn(self._places, lock_files or self._own_files),
                builds=self._builds,
                packages=packages,
                headers=headers,
                pace=self.pace,
            )
            for _ in range(most_workers(size))
        ]
        """One for each thread: those whose programs run, and those whose programs pause."""
        self._threads: list[threading.Thread] = []
        self._num_done: Counter[Session] = Counter()

    @property
    def counts(self) -> Counts:
        """Counts so far."""
        total = sum_counts(session.record for session in self.sessions)
        return replace(total, aside=self._places.times_given_back)

    def open(self) -> tuple[Isolation, float]:
        """Start the first sandbox; return its isolation and the factor on CPU limits."""
        opened: Future[tuple[Isolation, float]] = Future()

        def open_first(session: Session) -> None:
            try:
                isolation, measured = session.open(), session.timed.measure_time_scale()
                opened.set_result((isolation, self._options.time_scale or measured))
            except Exception as error:
                opened.set_exception(error)

        self._places.put(open_first)
        isolation, self.time_scale = opened.result()
        self._builds.time_scale = self.time_scale
        return isolation, self.time_scale

    def put(self, work: Work) -> None:
        """Queue work; it is begun in the order in which it came."""
        self._places.put(partial(self._finish, work))

    def withdraw(self, work: Work) -> None:
        """Do nothing: a thread calls `is_wanted` before each test."""

    def close(self) -> None:
        """End all sandboxes; what is being judged ends as a fault, what waits is dropped."""
        self._places.close()
        for session in self.sessions:
            session.sandboxes.interrupt()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        for file in self._own_files:
            os.close(file)

    def _start(self, post: SimpleQueue[Job | None]) -> None:
        number = len(self._threads)
        thread = threading.Thread(target=self._serve, args=(number, post), name=f"judge-{number}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, number: int, post: SimpleQueue[Job | None]) -> None:
        session = self.sessions[number]
        turn, job = session.turn, post.get()
        while job is not None:
            turn.has_place = True
            job(session)
            job = self._places.next(post, has_place=turn.has_place)
        session.close()

    def _finish(self, work: Work, session: Session) -> None:
        work.finish(self._do(session, work))
        self._num_done[session] += 1
        if self._options.renew_after and self._num_done[session] % self._options.renew_after == 0:
            session.sandboxes.renew()

    def _do(self, session: Session, work: Work) -> Verdict | Execution | None:
        if not work.is_wanted():
            return None
        try:
            if work.problem is not None:
                return session.judge(work.program, work.problem.prepared, work.is_wanted)
            assert work.invocation is not None
            return session.run(work.invocation, self.time_scale)
        except Abandoned:
            return None
        except Exception as error:
            return work.fault(f"{type(error).__name__}: {error}")
