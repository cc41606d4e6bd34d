"""The interface of a judge: in this process, behind HTTP or on a Ray cluster."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Protocol, Self

from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Problem, Program, Verdict

OnVerdict = Callable[[int, Verdict], None]
"""Called with a program's index and its verdict, in the order in which they are ready, from the calling thread."""


class BatchJudge(Protocol):
    """Programs and problems in, verdicts out. A machine's error is a verdict (`sandbox_fault`) that is not scored."""

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order."""
        ...


class Judging(ABC):
    """A judge that takes single programs, too; use it as a context manager, or call `close`."""

    _lock: threading.RLock
    _is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order.

        A program never raises; an error of the sandbox is its verdict.

        Raises:
            DataError: the sequences differ in length, a program is in another language than its problem, or a
                problem's tests cannot be read or are refused.
            ConfigError: a service refuses the token, or is not a judge.
            EvaluatorFault: there is no compiler or interpreter for a problem's language, no judge is reached, or this
                one is closed.
        """
        if isinstance(programs, (str, Program)) or isinstance(problems, Problem):
            raise DataError("programs and problems are lists, also of one: judge([Program(code)], [problem])")
        if len(programs) != len(problems):
            raise DataError(f"{len(programs)} programs but {len(problems)} problems; pass one problem per program")
        pairs = zip(programs, problems, strict=True)
        prepared = [self._prepare(*pair, f"program {number}") for number, pair in enumerate(pairs)]
        futures = self._begin_all(programs, prepared)
        ready: SimpleQueue[int] = SimpleQueue()
        try:
            for number, future in enumerate(futures):
                future.add_done_callback(lambda _, number=number: ready.put(number))
            for _ in futures:
                index = ready.get()
                verdict = futures[index].result()
                if on_verdict is not None:
                    on_verdict(index, verdict)
        finally:
            for future in futures:
                future.cancel()
        return [future.result() for future in futures]

    def submit(self, program: Program, problem: Problem) -> Future[Verdict]:
        """Judge one program in the background; raises like `judge`.

        A program whose future is cancelled is dropped if queued; if it runs, it may stop after its current test.
        """
        (future,) = self._begin_all([program], [self._prepare(program, problem, "the program")])
        return future

    @abstractmethod
    def _prepare(self, program: Program, problem: Problem, what: str) -> Any:
        """Check a program, which messages call `what`; return its prepared problem."""

    @abstractmethod
    def _begin_all(self, programs: Sequence[Program], prepared: Sequence[Any]) -> list[Future[Verdict]]:
        """Begin programs, each with what `_prepare` returned."""

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine, such as when a rollout arrives; raises like `judge`."""
        import asyncio  # only callers that have an event loop pay for it

        return await asyncio.wrap_future(self.submit(program, problem))

    def close(self) -> None:
        """End the judge, or the connection to it; programs in progress get `sandbox_fault`. Again: no effect."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._end()

    @abstractmethod
    def _end(self) -> None:
        """End what runs; called once, since descriptors may be somebody else's afterwards."""

    def _check_open(self) -> None:
        if self._is_closed:
            raise EvaluatorFault(f"this {type(self).__name__} is closed; make a new one")
