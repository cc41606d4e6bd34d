"""The threads that judge: each with warm sandboxes of its own, all of them in one process.

Also the cache of problems as a judge or a client holds them (`ProblemCache`).
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from microcoder.judge.core.errors import MicroCoderError
from microcoder.judge.core.signatures import judged_by
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.judge.languages.packages import load_profile, provide_packages
from microcoder.judge.run import executions, verdicts
from microcoder.judge.run.builds import Builds
from microcoder.judge.run.counts import Statistics, sum_counts
from microcoder.judge.run.executions import Execution, Invocation
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.judging import Session
from microcoder.judge.run.lru_cache import LruCache
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.policy import Abandoned
from microcoder.judge.run.sandboxes import Sandboxes
from microcoder.judge.run.slots import Job, Slot, Slots, make_lock_files, most_workers
from microcoder.judge.run.timing import Calibration

_MAX_PROBLEMS = 4096
"""Most problems of a cache."""
EntryT = TypeVar("EntryT", bound=Any)


class ProblemCache(Generic[EntryT]):
    """The most recently used problems by content, each with a number that no other ever gets.

    Problems that are judged alike share one number.
    """

    def __init__(
        self,
        make: Callable[[Problem], EntryT],
        most_bytes: int,
    ) -> None:
        """Start empty.

        Args:
            make: returns the entry of a problem, whose `number` is set here; may run twice for one.
            most_bytes: of all entries together.
        """
        self._make = make
        self._lock = threading.Lock()
        self._entries: LruCache[EntryT] = LruCache(_MAX_PROBLEMS, most_bytes)
        self._numbers = count(1)
        self._latest: tuple[Problem | None, Any] = None, None
        """The problem that was looked for last, and its entry."""

    def find(self, problem: Problem) -> EntryT:
        """Return the entry of a problem, made if it is new."""
        # A group's programs come one after the other, and hashing all tests takes longer than
        # judging one.
        latest, entry = self._latest
        if problem is latest:
            return entry
        content = tuple(judged_by(problem).values())
        with self._lock:
            entry = self._entries.find(content)
        if entry is None:
            entry = self._add(content, self._make(problem))
        self._latest = problem, entry
        return entry

    def _add(
        self,
        content: tuple[object, ...],
        made: EntryT,
    ) -> EntryT:
        """Return the entry of a problem's content: the one that was made, if there is none yet."""
        with self._lock:
            entry = self._entries.find(content)
            # Another thread may have made it meanwhile: all must share one number.
            if entry is None:
                entry = made
                entry.number = next(self._numbers)
                self._entries.add(content, entry, entry.num_bytes)
                self._entries.trim()
            return entry


_JOIN_SECONDS = 10.0
"""How long a thread may take to end."""
_MOST_THREADS = 8
"""Maximum worker threads per process, since they share the GIL.

Four do 1,300 tests a second, sixteen only 2,500.
"""


def count_processes(num_workers: int) -> int:
    """Return over how many processes so many workers are spread.

    0 if threads of this process suffice.
    """
    if num_workers <= _MOST_THREADS:
        return 0
    return math.ceil(num_workers / _MOST_THREADS)


Answer = Verdict | Execution | MicroCoderError
"""What a program that was judged or run gets; an error if it could not be."""


def answer_all(work: Work, answer: Answer | None) -> None:
    """Set an answer, or error, on all futures that wait for it.

    None: all are cancelled, which is confirmed.
    """
    # Taken away: a future refers to its work, and the two would keep each other.
    waiting = work.waiting
    work.waiting = []
    for future in waiting:
        is_wanted = future.set_running_or_notify_cancel()
        if not is_wanted or answer is None:
            continue
        if isinstance(answer, MicroCoderError):
            future.set_exception(answer)
        else:
            future.set_result(answer)


@dataclass(eq=False, slots=True)
class Work:
    """A program to judge or to run, the futures of its answer, and a fleet's notes on it."""

    program: Program
    problem: Any
    """Problem to judge by, from a `ProblemCache`; None for a program that is only run."""
    invocation: Invocation | None = None
    waiting: list[Future[Any]] = field(default_factory=lambda: [Future()])
    end: Callable[[Work, Answer | None], None] = answer_all
    """Called with the answer, or None if the work was abandoned."""
    group: int = 0
    """Number of its problem, if programs of one problem are to be sent together."""
    number: int = field(default_factory=count(1).__next__)
    """Number by which a backend refers to this program in its answers."""
    num_losses: int = 0
    """How many backends were lost while they held this program."""
    lost_since: float = 0.0
    """When a loss of it was first counted, by `time.monotonic`; 0 if never."""

    @property
    def key(self) -> tuple[int, bytes]:
        """The cache key of its verdict, which keeps neither program nor problem alive."""
        # A client's reason may be any text, also that of somebody's program: the first character
        # keeps them apart.
        text = f"={self.program.code}"
        if self.program.code is None:
            text = f"-{self.program.reason}"
        return self.problem.number, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    def is_wanted(self) -> bool:
        """Whether a future that is not cancelled waits for the answer."""
        # A copy: callers join from other threads.
        return not all(future.cancelled() for future in tuple(self.waiting))

    def finish(self, answer: Answer | None) -> None:
        """Pass on the answer; None: no longer wanted."""
        self.end(self, answer)

    def fault(self, message: str) -> Verdict | Execution:
        """Return the answer for an error of our machines, not of the program."""
        if self.problem is None:
            return executions.fault(message)
        result = verdicts.without_run(Outcome.SANDBOX_FAULT, message)
        return Verdict(
            result.verdict,
            (result,),
            len(self.problem.problem.tests),
            result.detail,
        )


class Workers:
    """A pool of threads that judge and run programs, each with sandboxes of its own."""

    def __init__(
        self,
        size: int,
        options: JudgeOptions,
        *,
        lock_files: Sequence[int] = (),
        calibration: Calibration | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            size: how many programs run at a time.
            options: those of the judge.
            lock_files: those of `make_lock_files` that this process shares with others; by default
                its own.
            calibration: of this machine, if it is known.
        """
        self.size = size
        self.time_scale = options.time_scale or 1.0
        self._options = options
        self.calibration = calibration or Calibration()
        """Calibration of this machine."""
        self._own_files: Sequence[int] = ()
        if not lock_files:
            self._own_files = lock_files = make_lock_files()
        self._slots = Slots(size, self._start)
        self._builds = Builds(options)
        packages = provide_packages(load_profile(options.packages))
        self.sessions: list[Session] = []
        """One for each thread: those whose programs run, and those whose programs are paused."""
        for _ in range(most_workers(size)):
            sandboxes = Sandboxes(
                options,
                packages=packages,
                slot=Slot(self._slots, lock_files),
                calibration=self.calibration,
            )
            self.sessions.append(Session(sandboxes, self._builds))
        self._threads: list[threading.Thread] = []

    @property
    def counts(self) -> Statistics:
        """Counts of all workers so far, summed."""
        return sum_counts(session.sandboxes.record for session in self.sessions)

    def open(self) -> tuple[Isolation, float]:
        """Start the first sandbox; return its isolation and the factor on CPU limits."""
        opened: Future[tuple[Isolation, float]] = Future()

        def open_first(session: Session) -> None:
            try:
                isolation = session.open()
                measured = session.sandboxes.measure_time_scale()
                opened.set_result((isolation, self._options.time_scale or measured))
            except Exception as error:
                opened.set_exception(error)

        # In a worker's thread: a sandbox belongs to the thread that made it.
        self._slots.put(open_first)
        isolation, self.time_scale = opened.result()
        self._builds.time_scale = self.time_scale
        return isolation, self.time_scale

    def put(self, work: Work) -> None:
        """Queue work; it is begun in the order in which it came."""
        self._slots.put(partial(self._do, work))

    def withdraw(self, work: Work) -> None:
        """Do nothing: a thread calls `is_wanted` before each test."""

    def close(self) -> None:
        """End all sandboxes; what is being judged ends as a fault, what waits is dropped."""
        self._slots.close()
        for session in self.sessions:
            session.sandboxes.interrupt()
        for thread in self._threads:
            # Not for ever: a thread may hang in the kernel.
            thread.join(_JOIN_SECONDS)
        for file in self._own_files:
            os.close(file)

    def _start(self, inbox: SimpleQueue[Job | None]) -> None:
        """Start a thread, which gets its first work through the queue."""
        number = len(self._threads)
        thread = threading.Thread(
            target=self._serve, args=(number, inbox), name=f"judge-{number}", daemon=True
        )
        thread.start()
        self._threads.append(thread)

    def _serve(
        self,
        number: int,
        inbox: SimpleQueue[Job | None],
    ) -> None:
        session = self.sessions[number]
        job = inbox.get()
        while job is not None:
            job(session)
            job = self._slots.next(inbox)
        session.close()

    def _do(self, work: Work, session: Session) -> None:
        answer: Answer | None = None
        try:
            if work.is_wanted():
                answer = self._answer(work, session)
        # Nobody waits: there is no answer.
        except Abandoned:
            pass
        except Exception as error:
            answer = work.fault(f"{type(error).__name__}: {error}")
        work.finish(answer)

    def _answer(self, work: Work, session: Session) -> Answer:
        if work.problem is not None:
            return session.judge(work.program, work.problem, work.is_wanted)
        assert work.invocation is not None
        return executions.run_invocation(session, work.invocation, self.time_scale)
