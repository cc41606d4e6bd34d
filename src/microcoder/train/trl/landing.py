"""Judging while sampling: responses of a vLLM in this process go to the judge as they land.

vLLM finishes a step's responses one by one; the last of them take most of the time, in which the processors would idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.fleet.protocols import Judging, OnVerdict


class EarlyJudge:
    """A judge, some of whose programs were begun before their batch is asked for."""

    def __init__(self, judge: Judging) -> None:
        self._judge = judge
        self._begun: dict[tuple[str, Program], list[Future[Verdict]]] = {}

    def begin(self, program: Program, problem: Problem) -> None:
        """Judge a program in the background; the next batch is to hold it. Raises what `Judging.submit` raises."""
        self._begun.setdefault((problem.id, program), []).append(self._judge.submit(program, problem))

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge a batch, as `BatchJudge.judge`: what was begun is waited for, the rest is asked for."""
        begun = [
            waiting.pop() if (waiting := self._begun.get((problem.id, program))) else None
            for program, problem in zip(programs, problems, strict=True)
        ]
        left = [index for index, future in enumerate(begun) if future is None]
        asked = self._judge.judge([programs[index] for index in left], [problems[index] for index in left])
        verdicts = dict(zip(left, asked, strict=True))
        self.forget()
        for index, future in enumerate(begun):
            if future is not None:
                verdicts[index] = future.result()
            if on_verdict is not None:
                on_verdict(index, verdicts[index])
        return [verdicts[index] for index in range(len(programs))]

    def forget(self) -> None:
        """Give up what was begun and is not in the batch, such as after a step that failed."""
        for futures in self._begun.values():
            for future in futures:
                future.cancel()
        self._begun.clear()


@contextmanager
def watch_landing(llm: Any, landed: Callable[[Sequence[int], Sequence[int]], None]) -> Iterator[None]:
    """Call `landed` with the tokens of prompt and response of each request that a `vllm.LLM` finishes meanwhile."""
    engine = llm.llm_engine
    step = engine.step

    def step_and_tell() -> list[Any]:
        outputs = step()
        for output in outputs:
            if output.finished:
                landed(output.prompt_token_ids, output.outputs[0].token_ids)
        return outputs

    engine.step = step_and_tell
    try:
        yield
    finally:
        del engine.step
