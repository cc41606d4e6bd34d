"""What judges on other machines have in common: programs wait in one queue here, and each gets one verdict."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any, Protocol, Self, TypeVar, cast

from microcoder.judge.core.errors import DataError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.signatures import judged_by
from microcoder.judge.core.types import Problem, Program, Repeat, UncountedRun, Verdict
from microcoder.judge.fleet.judge import OnVerdict
from microcoder.judge.fleet.protocols import unreached
from microcoder.judge.languages import check_language
from microcoder.judge.run.checkers import CPU_SECONDS
from microcoder.judge.run.executions import longest_wall_seconds

MOST_PROBLEM_BYTES = 512 << 20
"""Of the tests of problems that are remembered though nothing waits for them."""

LATE_SECONDS = 20.0
"""A program that is out for longer is given to an idle machine as well."""

JudgeAnswer = Verdict | MicroCoderError


@dataclass(eq=False, slots=True)
class NumberedProblem:
    """A problem, by a number that is never given again."""

    number: int
    problem: Problem
    """Without what no judge needs."""
    num_bytes: int
    reference: Any = None
    """Where the other machines can fetch it, once that was needed."""


class Shelf:
    """Problems by their content, the latest used ones; those that are judged alike are one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[object, NumberedProblem] = OrderedDict()
        self._num_known = 0
        self._num_bytes = 0

    def find(self, problem: Problem) -> NumberedProblem:
        """Return what a problem goes by."""
        fields = judged_by(problem)
        content = tuple(fields.values())
        with self._lock:
            known = self._known.get(content)
            if known is None:
                num_bytes = sum(len(test.input) + len(test.output) for test in problem.tests)
                self._num_known += 1
                known = self._known[content] = NumberedProblem(
                    self._num_known, Problem.model_construct(id=problem.id, **fields), num_bytes
                )
                self._num_bytes += num_bytes
            self._known.move_to_end(content)
            while self._num_bytes > MOST_PROBLEM_BYTES and len(self._known) > 1:
                self._num_bytes -= self._known.popitem(last=False)[1].num_bytes
        return known


@dataclass(eq=False, slots=True)
class QueuedProgram:
    """A program under way."""

    program: Program
    known: NumberedProblem
    future: Future[Verdict] = field(default_factory=Future)
    num_losses: int = 0
    """Machines that were lost with it."""
    num_holders: int = 0
    """Machines that have it now."""
    since: float = 0.0
    """When it was given to one."""
    lost_since: float = 0.0
    """When it was lost first."""
    _is_begun: bool = False

    def begin(self) -> bool:
        """Whether it is still wanted."""
        if not self._is_begun:
            self._is_begun = self.future.set_running_or_notify_cancel()
        return self._is_begun and not self.future.done()

    def resolve(self, answer: JudgeAnswer) -> None:
        """Set the result, unless there is one."""
        if not self.begin():
            return
        if isinstance(answer, Verdict):
            if self.num_holders > 1 or self.num_losses:
                answer = replace(answer, uncounted=(*answer.uncounted, UncountedRun(1, Repeat.COPIED)))
            self.future.set_result(answer)
        else:
            self.future.set_exception(answer)

    def give_up(self, why: str) -> None:
        """Say that no judge was reached for it."""
        self.resolve(unreached(self.known.problem, why[:300]))


class Queue:
    """Programs that wait. Each machine is given those of one problem before those of the next.

    A problem that one has begun goes behind the others, so that the next one begins another. Programs that were lost
    more than once wait apart: one of them may be what machines are lost by.
    """

    def __init__(self) -> None:
        self._groups: OrderedDict[int, deque[QueuedProgram]] = OrderedDict()
        self._suspects: deque[QueuedProgram] = deque()
        self._num_waiting = 0

    def __len__(self) -> int:
        return self._num_waiting + len(self._suspects)

    def add(self, item: QueuedProgram) -> None:
        """Have a program wait; one that was lost goes before all others."""
        if item.num_losses > 1:
            self._suspects.append(item)
            return
        group = self._groups.setdefault(item.known.number, deque())
        self._num_waiting += 1
        if item.num_losses:
            group.appendleft(item)
            self._groups.move_to_end(item.known.number, last=False)
        else:
            group.append(item)

    def take(self, problem: int = 0) -> QueuedProgram | None:
        """Return the next program, of the problem of this number if one of it waits; None if none waits."""
        while self._groups:
            number = problem if problem in self._groups else next(iter(self._groups))
            group = self._groups[number]
            item = group.popleft()
            self._num_waiting -= 1
            if group:
                self._groups.move_to_end(number)
            else:
                del self._groups[number]
            if item.begin():
                return item
        return None

    def take_suspect(self) -> QueuedProgram | None:
        """Return a program that was lost more than once."""
        while self._suspects:
            if (item := self._suspects.popleft()).begin():
                return item
        return None


class Machine(Protocol):
    """A machine that programs are given to."""

    @property
    def held(self) -> Collection[QueuedProgram]:
        """What it was given and has not answered."""
        ...

    @property
    def num_free(self) -> int:
        """How many programs it could begin at once."""
        ...


MachineT = TypeVar("MachineT", bound=Machine)


def longest_seconds(problem: Problem, time_scale: float) -> float:
    """Return how long a program may take by its limits: each test, and its checker, the whole of its wall time."""
    seconds = longest_wall_seconds(problem.time_limit_seconds * time_scale)
    if problem.checker.type == "program":
        seconds += longest_wall_seconds(CPU_SECONDS * time_scale)
    return len(problem.tests) * seconds


def copy_late(machines: Sequence[MachineT]) -> Iterator[tuple[MachineT, list[QueuedProgram]]]:
    """Yield what is out for long, for machines with nothing to do: its own may hang. Whichever verdict is first counts.

    The caller gives it to them, and counts a holder more, before the next is asked for.
    """
    before = time.monotonic() - LATE_SECONDS
    late = [(machine, item) for machine in machines for item in machine.held if item.since < before]
    for idle in machines:
        if items := [
            item for machine, item in late if machine is not idle and item.num_holders == 1 and not item.future.done()
        ][: max(0, idle.num_free)]:
            yield idle, items


class QueueJudge(ABC):
    """The ways to ask; use it as a context manager, or call `close`. Safe for several threads at once."""

    def __init__(self) -> None:
        self._shelf = Shelf()
        self._is_closed = False
        self._closing = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order.

        Raises:
            DataError: the sequences differ in length, a program is in another language than its problem, or a
                problem's tests cannot be read or are refused.
            ConfigError: a service wants another token, or is none.
            EvaluatorFault: there is no compiler for a problem's language, no judge is reached, or this is closed.
        """
        if len(programs) != len(problems):
            raise DataError(f"{len(programs)} programs but {len(problems)} problems; pass one problem per program")
        known: dict[int, NumberedProblem] = {}
        for index, (program, problem) in enumerate(zip(programs, problems, strict=True)):
            check_language(program, problem, f"program {index}")
            if id(problem) not in known:
                known[id(problem)] = self._know(problem)
        ready: SimpleQueue[int] = SimpleQueue()
        futures = [self._enqueue(p, known[id(problem)]) for p, problem in zip(programs, problems, strict=True)]
        for index, future in enumerate(futures):
            future.add_done_callback(lambda _, index=index: ready.put(index))
        results: list[Verdict | None] = [None] * len(futures)
        try:
            for _ in futures:
                index = ready.get()
                results[index] = verdict = futures[index].result()
                if on_verdict is not None:
                    on_verdict(index, verdict)
        finally:
            for future in futures:
                future.cancel()
        return cast(list[Verdict], results)

    def submit(self, program: Program, problem: Problem) -> Future[Verdict]:
        """Judge one program in the background; a cancelled future is not begun any more. It raises what `judge` does.

        Raises:
            DataError: the program is in another language than its problem, or the problem's tests cannot be read.
            EvaluatorFault: this is closed.
        """
        check_language(program, problem, "the program")
        return self._enqueue(program, self._know(problem))

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine; raises like `judge`."""
        return await asyncio.wrap_future(self.submit(program, problem))

    def close(self) -> None:
        """Give up what is on its way: it gets `sandbox_fault`."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        self._end()

    def _know(self, problem: Problem) -> NumberedProblem:
        return self._shelf.find(problem)

    def _enqueue(self, program: Program, known: NumberedProblem) -> Future[Verdict]:
        item = QueuedProgram(program, known, since=time.monotonic())
        with self._closing:
            if self._is_closed:
                raise EvaluatorFault(f"this {type(self).__name__} is closed; make a new one")
            self._put(item)
        return item.future

    @abstractmethod
    def _put(self, item: QueuedProgram) -> None:
        """Hand a program to the thread that gives programs to machines."""

    @abstractmethod
    def _end(self) -> None:
        """Answer whatever is under way, and free what is held."""
