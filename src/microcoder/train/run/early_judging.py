"""Judging of finished responses while others are still being sampled; same verdicts as judging all at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.fleet.judge import OnVerdict
from microcoder.judge.fleet.protocols import BatchJudge


class EarlyJudge:
    """A judge that starts on programs as they arrive and returns the verdicts when all are requested.

    A judge that takes no single programs (`submit`) is asked about all of them then.
    """

    def __init__(self, judge: BatchJudge) -> None:
        self._judge = judge
        self._begun: dict[tuple[str, Program], Future[Verdict]] = {}
        self._lock = threading.Lock()
        self._num_running = 0
        self._busy_seconds = 0.0
        self._busy_since = 0.0

    def begin(self, program: Program, problem: Problem) -> None:
        """Have a program judged in the background."""
        submit = getattr(self._judge, "submit", None)
        key = (problem.id, program)
        if submit is None or key in self._begun:
            return
        self._count(1)
        try:
            future = self._begun[key] = submit(program, problem)
        except BaseException:
            self._count(-1)
            raise
        future.add_done_callback(lambda _: self._count(-1))

    def busy_seconds(self) -> float:
        """Return for how long, so far, at least one program was being judged."""
        with self._lock:
            running = time.perf_counter() - self._busy_since if self._num_running else 0.0
            return self._busy_seconds + running

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; raises what the judge raises."""
        begun = [self._begun.get((problem.id, program)) for program, problem in zip(programs, problems, strict=True)]
        missing = [index for index, future in enumerate(begun) if future is None]
        late = iter(
            self._judge.judge([programs[i] for i in missing], [problems[i] for i in missing]) if missing else ()
        )
        verdicts = [next(late) if future is None else future.result() for future in begun]
        if on_verdict is not None:
            for index, verdict in enumerate(verdicts):
                on_verdict(index, verdict)
        return verdicts

    def _count(self, change: int) -> None:
        with self._lock:
            now = time.perf_counter()
            if self._num_running:
                self._busy_seconds += now - self._busy_since
            self._num_running += change
            self._busy_since = now
