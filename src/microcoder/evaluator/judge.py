"""The evaluator's front: programs and problems in, verdicts out, many at a time.

The judging threads live as long as the `Judge`, each with warm sandboxes of its own; nothing is forked from the
calling process, so it may hold torch, threads and a GPU.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Batch:
    """One call of `judge`: where its verdicts go."""

    verdicts: SimpleQueue[tuple[int, Verdict]] = field(default_factory=SimpleQueue)
    is_cancelled: bool = False


@dataclass(frozen=True, slots=True)
class _Job:
    number: int
    program: Program
    problem: PreparedProblem
    batch: _Batch


class Judge:
    """A pool of warm sandboxes; use it as a context manager, or call `close`."""

    def __init__(
        self,
        *,
        workers: int | None = None,
        stop: StopRule = "first_limit",
        unsafe: bool = False,
        layers: Collection[str] = LAYERS,
    ) -> None:
        """Start the first sandbox, so that a machine without isolation is known before any program runs.

        Args:
            workers: programs judged at the same time; the number of usable processors where it is left out.
            stop: when a program's remaining tests are left out.
            unsafe: start even where seccomp, resource limits or file protection are missing. Unsafe.
            layers: the layers of isolation to put on; fewer only to test what the others hold.

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

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order.

        Identical pairs are judged once. A program never raises; a fault of the sandbox is its verdict.

        Raises:
            DataError: the sequences differ in length, or a problem's tests cannot be read.
            EvaluatorFault: there is no compiler for a problem's language.
        """
        if self._is_closed:
            raise EvaluatorFault("this Judge is closed; make a new one")
        batch = _Batch()
        indices_of = self._submit(programs, problems, batch)
        results: list[Verdict | None] = [None] * len(programs)
        waiting = set(indices_of)
        try:
            while waiting:
                number, verdict = batch.verdicts.get()
                waiting.discard(number)
                for index in indices_of[number]:
                    results[index] = verdict
                    if on_verdict is not None:
                        on_verdict(index, verdict)
        finally:
            batch.is_cancelled = True
        return cast(list[Verdict], results)

    def close(self) -> None:
        """End all sandboxes at once; verdicts still being worked out are lost."""
        self._is_closed = True
        for session in self._sessions:
            session.interrupt()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _submit(self, programs: Sequence[Program], problems: Sequence[Problem], batch: _Batch) -> dict[int, list[int]]:
        """Queue every distinct pair; return the indices that each job answers."""
        if len(programs) != len(problems):
            raise DataError(f"{len(programs)} programs but {len(problems)} problems; pass one problem per program")
        prepared = _prepare(problems)
        for name in {problem.language for problem in problems}:
            language = find_language(name)
            if language.find_problem():
                raise EvaluatorFault(language.find_problem())
        jobs: dict[tuple[str | None, str, int], _Job] = {}
        indices_of: dict[int, list[int]] = defaultdict(list)
        for index, (program, problem) in enumerate(zip(programs, problems, strict=True)):
            if find_language(program.language) is not find_language(problem.language):
                raise DataError(
                    f"program {index} is in {program.language!r}, problem {problem.id} wants {problem.language!r}"
                )
            chosen = prepared[id(problem)]
            key = (program.code, program.reason if program.code is None else "", id(chosen))
            job = jobs.setdefault(key, _Job(index, program, chosen, batch))
            indices_of[job.number].append(index)
        for job in jobs.values():
            self._jobs.put(job)
        while len(self._threads) < min(self.workers, len(jobs)):
            self._start_thread()
        return indices_of

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
            if job.batch.is_cancelled:
                continue
            try:
                verdict = session.judge(job.program, job.problem, self.stop)
            except Exception as error:
                result = verdicts.sandbox_fault(f"{type(error).__name__}: {error}")
                verdict = Verdict(Outcome.SANDBOX_FAULT, (result,), len(job.problem.tests), result.detail)
            job.batch.verdicts.put((job.number, verdict))
        session.close()


def _prepare(problems: Sequence[Problem]) -> dict[int, PreparedProblem]:
    """Prepare every distinct problem once; problems that are judged alike share one preparation."""
    prepared: dict[int, PreparedProblem] = {}
    by_content: dict[tuple[object, ...], PreparedProblem] = {}
    for problem in problems:
        if id(problem) in prepared:
            continue
        limits = (problem.time_limit_seconds, problem.memory_limit_mib)
        content = (problem.tests, problem.fn_name, problem.language, limits, problem.checker)
        if content not in by_content:
            by_content[content] = PreparedProblem(problem)
        prepared[id(problem)] = by_content[content]
    return prepared


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
