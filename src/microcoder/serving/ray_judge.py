"""A judge on a Ray cluster: one actor a node, which takes the next programs when it has room.

Programs wait in one queue here, so a node that is fast or free takes more: nothing is dealt out in advance. When an
actor or its node is lost, what it held goes back to the front of the queue and is judged again; a program's verdict is
told once. Nodes that join later are used.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self, cast

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from microcoder.errors import ConfigError, DataError, EvaluatorFault
from microcoder.evaluator import Judge, check_problem
from microcoder.evaluator.judge import OnVerdict
from microcoder.serving.judging import unreached
from microcoder.types import Problem, Program, Verdict

_REFRESH_SECONDS = 5.0
_CHUNK_SIZE = 8
_HELD_PER_ACTOR = 2
"""Chunks: one that runs, and one that waits so that the actor is never idle."""
_JOIN_SECONDS = 10.0


class _NodeJudge:
    """What runs on a node: a judge with as many workers as the actor was given processors."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._judge = Judge(**options)

    def judge(self, programs: list[Program], problems: list[Problem]) -> list[Verdict]:
        """Judge a chunk."""
        return self._judge.judge(programs, problems)


@dataclass(slots=True)
class _Item:
    program: Program
    problem: Problem
    future: Future[Verdict]
    num_losses: int = 0


@dataclass(slots=True)
class _Actor:
    handle: Any
    node: str
    num_held: int = 0


@dataclass(frozen=True, slots=True)
class _Done:
    """An actor's answer: verdicts, or why there are none."""

    actor: _Actor
    items: list[_Item]
    answer: list[Verdict] | BaseException


class RayJudge:
    """Judges on all nodes of the Ray cluster that this process is connected to; use it as a context manager."""

    def __init__(
        self, *, workers_per_node: int | None = None, max_losses: int = 3, start_seconds: float = 120.0, **options: Any
    ) -> None:
        """Start an actor on each node.

        Args:
            workers_per_node: programs judged at the same time on a node, each taking one of its processors; all of a
                node's processors where it is left out.
            max_losses: how often an actor may be lost with a program before that gets `sandbox_fault`.
            start_seconds: how long the first actor may take to start.
            **options: what each node's `Judge` is made with besides.

        Raises:
            ConfigError: Ray is not initialised, or a value is wrong.
            EvaluatorFault: no actor starts.
        """
        if not ray.is_initialized():
            raise ConfigError("Ray is not initialised; call ray.init() first")
        if workers_per_node is not None and workers_per_node < 1:
            raise ConfigError(f"workers_per_node = {workers_per_node}; use 1 or more, or leave it out")
        self._workers_per_node = workers_per_node
        self._max_losses = max_losses
        self._options = options
        self._actors: dict[str, _Actor] = {}
        self._queue: deque[_Item] = deque()
        self._events: SimpleQueue[_Item | _Done | None] = SimpleQueue()
        self._is_closed = False
        self._lock = threading.Lock()
        self.num_losses = 0
        """Times that an actor was lost."""
        self._start_actors()
        self._wait_for_one(start_seconds)
        self._thread = threading.Thread(target=self._dispatch, name="ray-judge", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ids of the nodes that judge."""
        return tuple(self._actors)

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order.

        Raises:
            DataError: the sequences differ in length, or a problem's tests cannot be read.
            EvaluatorFault: this judge is closed.
        """
        if len(programs) != len(problems):
            raise DataError(f"{len(programs)} programs but {len(problems)} problems; pass one problem per program")
        for problem in {id(problem): problem for problem in problems}.values():
            check_problem(problem)
        ready: SimpleQueue[int] = SimpleQueue()
        futures = [self._enqueue(program, problem) for program, problem in zip(programs, problems, strict=True)]
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
        """Judge one program in the background; a cancelled future is not begun any more.

        Raises:
            DataError: the problem's tests cannot be read.
            EvaluatorFault: this judge is closed.
        """
        check_problem(problem)
        return self._enqueue(program, problem)

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine; raises like `submit`."""
        return await asyncio.wrap_future(self.submit(program, problem))

    def close(self) -> None:
        """End all actors; what is still being judged gets `sandbox_fault`."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._events.put(None)
        self._thread.join(_JOIN_SECONDS)

    def _enqueue(self, program: Program, problem: Problem) -> Future[Verdict]:
        item = _Item(program, problem, Future())
        with self._lock:
            if self._is_closed:
                raise EvaluatorFault("this RayJudge is closed; make a new one")
            self._events.put(item)
        return item.future

    def _dispatch(self) -> None:
        """Give programs to actors as they have room; the only thread that touches the queue and the actors."""
        held: dict[int, _Item] = {}
        looked = time.monotonic()
        while True:
            try:
                event = self._events.get(timeout=_REFRESH_SECONDS)
                if event is None:
                    break
                self._take(event, held)
            except Empty:
                pass
            while not self._events.empty() and (event := self._events.get_nowait()) is not None:
                self._take(event, held)
            if self._is_closed:
                break
            if time.monotonic() - looked > _REFRESH_SECONDS or not self._actors:
                looked = time.monotonic()
                self._start_actors()
            self._hand_out(held)
        self._end(held)

    def _take(self, event: _Item | _Done, held: dict[int, _Item]) -> None:
        if isinstance(event, _Item):
            self._queue.append(event)
            return
        event.actor.num_held -= 1
        for item in event.items:
            held.pop(id(item), None)
        if not isinstance(event.answer, BaseException):
            for item, verdict in zip(event.items, event.answer, strict=True):
                item.future.set_result(verdict)
        elif isinstance(event.answer, RayError):
            self._lose(event.actor)
            for item in reversed(event.items):
                item.num_losses += 1
                if item.num_losses > self._max_losses:
                    why = f"lost {item.num_losses} times with its node: {type(event.answer).__name__}"
                    item.future.set_result(unreached(item.problem, why))
                else:
                    self._queue.appendleft(item)
        else:
            for item in event.items:
                item.future.set_exception(event.answer)

    def _lose(self, actor: _Actor) -> None:
        if self._actors.get(actor.node) is actor:
            self.num_losses += 1
            del self._actors[actor.node]
            self._kill(actor)
            if not self._is_closed:
                self._start_actors()

    def _hand_out(self, held: dict[int, _Item]) -> None:
        while self._queue and self._actors:
            actor = min(self._actors.values(), key=lambda actor: actor.num_held)
            if actor.num_held >= _HELD_PER_ACTOR:
                return
            # Towards the end smaller chunks, so that all nodes end together.
            size = max(1, min(_CHUNK_SIZE, len(self._queue) // (2 * len(self._actors))))
            items: list[_Item] = []
            while self._queue and len(items) < size:
                item = self._queue.popleft()
                if item.num_losses or item.future.set_running_or_notify_cancel():
                    items.append(item)
                # One that was lost before goes alone: it may be what its node is lost by.
                if item.num_losses:
                    break
            if not items:
                continue
            held.update((id(item), item) for item in items)
            actor.num_held += 1
            reference = actor.handle.judge.remote([item.program for item in items], [item.problem for item in items])
            self._watch(actor, items, reference)

    def _watch(self, actor: _Actor, items: list[_Item], reference: Any) -> None:
        def tell(done: Future[list[Verdict]]) -> None:
            self._events.put(_Done(actor, items, done.exception() or done.result()))

        reference.future().add_done_callback(tell)

    def _start_actors(self) -> None:
        """Start an actor on every living node that has none."""
        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        for name in set(self._actors) - set(alive):
            # What it held comes back as lost; nothing more is given to it.
            self.num_losses += 1
            del self._actors[name]
        for name, node in alive.items():
            num_processors = int(node["Resources"].get("CPU", 0))
            if name in self._actors or not num_processors:
                continue
            workers = min(self._workers_per_node or num_processors, num_processors)
            remote = ray.remote(_NodeJudge).options(
                num_cpus=workers,
                max_concurrency=_HELD_PER_ACTOR,
                max_restarts=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False),
            )
            self._actors[name] = _Actor(remote.remote({"workers": workers, **self._options}), name)

    def _wait_for_one(self, seconds: float) -> None:
        """Fail early where no node can judge."""
        references = [actor.handle.judge.remote([], []) for actor in self._actors.values()]
        if not references:
            raise EvaluatorFault("the Ray cluster has no node with a processor")
        ready, _ = ray.wait(references, num_returns=1, timeout=seconds)
        if not ready:
            raise EvaluatorFault(f"no judge started on the Ray cluster within {seconds:g} s; are its processors taken?")
        try:
            ray.get(ready[0])
        except RayError as error:
            raise EvaluatorFault(f"no judge started on the Ray cluster: {error}") from None

    def _end(self, held: dict[int, _Item]) -> None:
        for actor in self._actors.values():
            self._kill(actor)
        while not self._events.empty():
            if (event := self._events.get_nowait()) is not None:
                self._take(event, held)
        # Those that were lost before are running already, as far as their callers can see.
        waiting = [item for item in self._queue if item.num_losses or item.future.set_running_or_notify_cancel()]
        for item in (*held.values(), *waiting):
            item.future.set_result(unreached(item.problem, "the judge was closed"))

    @staticmethod
    def _kill(actor: _Actor) -> None:
        try:
            ray.kill(actor.handle)
        except (RayError, ValueError):
            # It is gone already.
            return
