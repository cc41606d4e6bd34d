"""What the clients of remote judges have in common: messages and queueing.

Equal problems are sent once.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from microcoder.judge.core.signatures import judged_by
from microcoder.judge.core.types import Problem, Program, Record, Repeat, UncountedRun, Verdict
from microcoder.judge.fleet.fleet import BackendT, Fleet
from microcoder.judge.fleet.judge import BaseJudge
from microcoder.judge.languages import check_language
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.workers import Answer, ProblemCache, Work


class ProgramMessage(Record):
    """A program for one of the request's problems."""

    problem: Annotated[int, Field(ge=0)]
    """Position of its problem in `problems`."""
    code: str | None
    """The source; null if the response held none."""
    reason: str = ""
    """Why there is no code."""


class JudgeRequest(Record):
    """Programs to judge; a problem that several programs answer is sent once."""

    problems: Annotated[tuple[Problem, ...], Field(min_length=1)]
    programs: Annotated[tuple[ProgramMessage, ...], Field(min_length=1)]


class JudgeResponse(Record):
    """One verdict per program, in the order of the request."""

    verdicts: tuple[Verdict, ...]
    """Verdicts in order; a `sandbox_fault` says nothing about its program: do not score it."""


class VerdictLine(Record):
    """A line of `/v1/judge/stream`: a verdict, as soon as it is known."""

    index: Annotated[int, Field(ge=0)]
    """Position of its program in the request."""
    verdict: Verdict
    """The verdict; a `sandbox_fault` says nothing about its program: do not score it."""


class Load(Record):
    """A line of `/v1/judge/stream` with the load: the first line, and one for ten silent
    seconds."""

    workers: int
    queued: int
    """Programs of all clients that are queued or run here."""


class Failure(Record):
    """The last line of `/v1/judge/stream` if programs are left without a verdict; it says why."""

    status: int
    """HTTP status that the answer would have had: after 503 and 504 the programs may be sent
    again."""
    detail: str
    retry_after_seconds: float | None = None


class About(Record):
    """This service: its version, environment, workers and limits."""

    version: str
    isolation: dict[str, Any]
    environment: dict[str, Any]
    """The Python that programs run on, and the packages that they may import."""
    languages: tuple[str, ...]
    workers: int
    time_scale: float
    """Factor on time limits at this service."""
    stop: str
    """When a program's remaining tests are left out."""
    limits: dict[str, float]


MOST_PROBLEM_BYTES = 512 << 20
"""Maximum bytes of tests of problems that a client keeps for later programs."""

_JOIN_SECONDS = 10.0
"""Time for the event loop to end."""


@dataclass(eq=False, slots=True)
class NumberedProblem:
    """A problem with a number that no other problem of this client ever gets."""

    problem: Problem
    """Only its id and the fields that decide verdicts."""
    number: int = 0
    reference: Any = None
    """The problem's reference in Ray's object store, once it was put there."""

    @property
    def num_bytes(self) -> int:
        """Bytes of its tests."""
        return sum(len(test.input) + len(test.output) for test in self.problem.tests)


def strip_problem(problem: Problem) -> NumberedProblem:
    """Return a problem as it is sent: its id, and the fields that decide verdicts."""
    deciding = judged_by(problem)
    return NumberedProblem(Problem.model_construct(id=problem.id, **deciding))


class RemoteJudge(Fleet[BackendT], BaseJudge):
    """Client side of remote judges, thread-safe.

    An event loop in its own thread sends the programs.
    """

    def __init__(
        self,
        make: Callable[[Problem], NumberedProblem] = strip_problem,
        cache_size: int = JudgeOptions.model_fields["cache_size"].default,
    ) -> None:
        """Start the loop.

        Args:
            make: returns a new problem as it is sent, or raises if it cannot be judged.
            cache_size: verdicts to keep.
        """
        Fleet.__init__(self)
        BaseJudge.__init__(self, cache_size)
        self._problem_cache = ProblemCache(make, MOST_PROBLEM_BYTES)
        self._is_woken = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        # A thread of its own: callers may have a loop, or none.
        self._thread = threading.Thread(
            target=self._loop.run_forever,
            name=type(self).__name__,
            daemon=True,
        )
        self._thread.start()

    def _prepare(
        self,
        program: Program,
        problem: Problem,
        what: str,
    ) -> NumberedProblem:
        check_language(program, problem, what)
        return self._problem_cache.find(problem)

    def _put(self, items: Sequence[Work]) -> None:
        # Programs of one problem go together, as it is sent once.
        for item in items:
            item.group = item.problem.number
        super()._put(items)

    def _withdraw(self, work: Work) -> None:
        """Do nothing here.

        Cancelled work is dropped before it is sent. A request ends when nobody waits for its
        answers.
        """

    def _end(self) -> None:
        # The tasks first, which need the loop to end.
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(_JOIN_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_JOIN_SECONDS)
        self._loop.close()

    def _note_losses(self, answer: Answer) -> Answer:
        if not isinstance(answer, Verdict):
            return answer
        # It may have run twice, and whoever scores it is told.
        copied = UncountedRun(1, Repeat.COPIED)
        return replace(answer, uncounted=(*answer.uncounted, copied))

    def _wake(self) -> None:
        # Once for all that happens meanwhile.
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        self._is_woken = False
        super()._hand_out()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a coroutine as a task; only in the loop's thread."""
        task = self._loop.create_task(work)
        # The loop itself keeps only weak references to tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self) -> None:
        """Answer all programs with a fault, and cancel the tasks."""
        self._give_all_up(f"this {type(self).__name__} is closed")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
