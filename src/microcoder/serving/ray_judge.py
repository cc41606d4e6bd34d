"""A judge on a Ray cluster: one actor a node, which is given the next programs when it has room.

Programs wait in one queue here, so a node that is fast or free takes more: nothing is dealt out in advance. Towards the
end a node with nothing to do takes over what waits at another. When an actor or its node is lost, what it held goes
back to the front of the queue and is judged again; a program's verdict is told once. Nodes that join later are used; a
node whose sandbox does not start is given nothing, and tried again later.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self, cast

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from microcoder.errors import ConfigError, DataError, EvaluatorFault, MicroCoderError
from microcoder.evaluator import Judge, check_problem
from microcoder.evaluator.judge import OnVerdict
from microcoder.evaluator.languages import check_language
from microcoder.serving.judging import unreached
from microcoder.types import Problem, Program, Verdict

_REFRESH_SECONDS = 5.0
_CHUNK_SIZE = 8
_HELD_PER_ACTOR = 2
"""Chunks: one that runs, and one that waits so that the actor is never idle."""
_LATE_SECONDS = 20.0
"""A chunk that is out for longer is given to an idle node as well: its own node may hang."""
_REST_SECONDS = 30.0
"""How long a node is left alone whose judge did not start."""
_JOIN_SECONDS = 10.0
_LOG = logging.getLogger(__name__)

Told = Verdict | MicroCoderError | None
"""What an actor says about a program; None where it was told to give it up."""


class _NodeJudge:
    """What runs on a node: a judge with so many workers, or one for each of the node's processors."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._judge = Judge(**options)
        self._held: dict[int, list[Future[Verdict]]] = {}

    def start(self) -> str:
        """Answer once there is a judge: with its level of isolation."""
        return self._judge.isolation.level

    def judge(self, number: int, programs: list[Program], problems: list[Problem]) -> list[Told]:
        """Judge a chunk."""
        begun: list[Future[Verdict] | MicroCoderError] = []
        for program, problem in zip(programs, problems, strict=True):
            try:
                begun.append(self._judge.submit(program, problem))
            except MicroCoderError as error:
                begun.append(error)
        self._held[number] = [future for future in begun if isinstance(future, Future)]
        try:
            return [_wait(future) if isinstance(future, Future) else future for future in begun]
        finally:
            del self._held[number]

    def give_up(self, number: int) -> None:
        """Begin no more of a chunk; answer it with what is known."""
        for future in self._held.get(number, []):
            future.cancel()


def _wait(future: Future[Verdict]) -> Verdict | None:
    try:
        return future.result()
    except CancelledError:
        return None


@dataclass(slots=True)
class _Item:
    program: Program
    problem: Problem
    future: Future[Verdict]
    num_losses: int = 0
    num_copies: int = 0
    """Chunks that it is in now."""
    is_begun: bool = False
    is_copied: bool = False

    def begin(self) -> bool:
        """Whether it is still wanted."""
        if not self.is_begun:
            self.is_begun = self.future.set_running_or_notify_cancel()
        return self.is_begun and not self.future.done()

    def tell(self, told: Verdict | MicroCoderError) -> None:
        """Answer whoever waits, unless that was done."""
        if self.future.done():
            return
        if isinstance(told, Verdict):
            self.future.set_result(told)
        else:
            self.future.set_exception(told)


@dataclass(slots=True)
class _Actor:
    handle: Any
    node: str
    is_ready: bool = False
    chunks: dict[int, _Chunk] = field(default_factory=dict)


@dataclass(slots=True)
class _Chunk:
    number: int
    actor: _Actor
    items: list[_Item]
    since: float = field(default_factory=time.monotonic)

    def left(self) -> list[_Item]:
        """Return what is not told yet and given to no other node."""
        return [item for item in self.items if not item.future.done() and not item.is_copied]


@dataclass(frozen=True, slots=True)
class _Started:
    """An actor is there, or why not."""

    actor: _Actor
    error: BaseException | None


@dataclass(frozen=True, slots=True)
class _Done:
    """An actor's answer: what it says about each program, or why it says nothing."""

    chunk: _Chunk
    answer: list[Told] | BaseException


class RayJudge:
    """Judges on all nodes of the Ray cluster that this process is connected to; use it as a context manager."""

    def __init__(
        self,
        *,
        workers_per_node: int | None = None,
        processors_per_worker: float = 1.0,
        max_losses: int = 3,
        start_seconds: float = 120.0,
        **options: Any,
    ) -> None:
        """Start an actor on each node, and wait for the first.

        Args:
            workers_per_node: programs judged at the same time on a node; where it is left out, as many as Ray's
                processors there, or, where none are reserved, as the node's real ones.
            processors_per_worker: what Ray reserves for each; 0 where a trainer has reserved all processors already.
            max_losses: how often an actor may be lost with a program before that gets `sandbox_fault`.
            start_seconds: how long there may be no actor before programs get `sandbox_fault`.
            **options: what each node's `Judge` is made with besides.

        Raises:
            ConfigError: Ray is not initialised, or a value is wrong.
            EvaluatorFault: no actor starts.
        """
        if not ray.is_initialized():
            raise ConfigError("Ray is not initialised; call ray.init() first")
        if workers_per_node is not None and workers_per_node < 1:
            raise ConfigError(f"workers_per_node = {workers_per_node}; use 1 or more, or leave it out")
        if processors_per_worker < 0 or max_losses < 0 or start_seconds <= 0:
            raise ConfigError(
                f"processors_per_worker = {processors_per_worker}, max_losses = {max_losses}, "
                f"start_seconds = {start_seconds}; use at least 0, at least 0, and more than 0"
            )
        self._workers_per_node = workers_per_node
        self._processors_per_worker = processors_per_worker
        self._max_losses = max_losses
        self._start_seconds = start_seconds
        self._options = options
        self._actors: dict[str, _Actor] = {}
        self._resting: dict[str, float] = {}
        self._queue: deque[_Item] = deque()
        self._events: SimpleQueue[_Item | _Started | _Done | None] = SimpleQueue()
        self._out: dict[int, _Chunk] = {}
        self._numbers = itertools.count()
        self._is_closed = False
        self._lock = threading.Lock()
        self._start_failure = ""
        self.num_losses = 0
        """Times that an actor was lost."""
        self.num_stolen = 0
        """Programs that a node with nothing to do took over from another."""
        self._start_actors()
        self._wait_for_one()
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
        """Ids of the nodes that judge now."""
        return tuple(name for name, actor in self._actors.items() if actor.is_ready)

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], *, on_verdict: OnVerdict | None = None
    ) -> list[Verdict]:
        """Judge each program against the problem at the same position; verdicts come back in that order.

        Raises:
            DataError: the sequences differ in length, or a problem's tests cannot be read.
            EvaluatorFault: a node has no compiler for a problem's language, or this judge is closed.
        """
        if len(programs) != len(problems):
            raise DataError(f"{len(programs)} programs but {len(problems)} problems; pass one problem per program")
        for problem in {id(problem): problem for problem in problems}.values():
            check_problem(problem)
        for index, (program, problem) in enumerate(zip(programs, problems, strict=True)):
            check_language(program, problem, f"program {index}")
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
        check_language(program, problem, "the program")
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

    def _wait_for_one(self) -> None:
        """Fail early where no node can judge."""
        give_up = time.monotonic() + self._start_seconds
        while not self.nodes:
            if not self._actors:
                why = self._start_failure or "it has no processor"
                raise EvaluatorFault(f"no judge starts on the Ray cluster: {why}")
            try:
                self._take(self._events.get(timeout=max(0.0, give_up - time.monotonic())))
            except Empty:
                for actor in self._actors.values():
                    _kill(actor)
                why = self._start_failure or "are its processors taken?"
                raise EvaluatorFault(
                    f"no judge started on the Ray cluster within {self._start_seconds:g} s; {why}"
                ) from None

    def _dispatch(self) -> None:
        """Give programs to actors as they have room; the only thread that touches the queue and the actors."""
        why = "the judge was closed"
        try:
            self._dispatch_until_closed()
        except Exception as error:
            # Such as the end of the cluster: whoever waits is told, and nobody waits any more.
            _LOG.error("judging on Ray ended", exc_info=error)
            why = f"judging on Ray ended: {type(error).__name__}: {error}"
        with self._lock:
            self._is_closed = True
        self._end(why)

    def _dispatch_until_closed(self) -> None:
        looked = able = time.monotonic()
        while True:
            try:
                event = self._events.get(timeout=_REFRESH_SECONDS)
                self._take(event)
                while not self._events.empty():
                    self._take(self._events.get_nowait())
            except Empty:
                pass
            if self._is_closed:
                return
            now = time.monotonic()
            if now - looked > _REFRESH_SECONDS:
                looked = now
                self._start_actors()
            if self.nodes or not self._queue:
                able = now
            elif now - able > self._start_seconds:
                self._give_up_queue(f"no node of the Ray cluster judges any more {self._start_failure}".rstrip())
            self._hand_out()

    def _take(self, event: _Item | _Started | _Done | None) -> None:
        match event:
            case _Item():
                self._queue.append(event)
            case _Started(actor, error):
                actor.is_ready = error is None
                if error is not None and self._actors.get(actor.node) is actor:
                    why = str(error).strip().splitlines()[-1][:300]
                    # The first of ours says most: Ray's is often only that the node went away.
                    ours = EvaluatorFault.__name__
                    if not self._start_failure or (ours in why and ours not in self._start_failure):
                        self._start_failure = why
                    _LOG.warning("no judge starts on Ray node %s: %s", actor.node, why)
                    del self._actors[actor.node]
                    self._resting[actor.node] = time.monotonic() + _REST_SECONDS
            case _Done(chunk, answer):
                self._out.pop(chunk.number, None)
                chunk.actor.chunks.pop(chunk.number, None)
                for item in chunk.items:
                    item.num_copies -= 1
                if isinstance(answer, RayError) and not isinstance(answer, RayTaskError):
                    self._lose(chunk, answer)
                elif isinstance(answer, BaseException):
                    for item in chunk.items:
                        item.tell(EvaluatorFault(f"the judge on a Ray node failed: {answer}"[:1000]))
                else:
                    for item, told in zip(chunk.items, answer, strict=True):
                        if told is not None:
                            item.tell(told)
                    self._take_back(chunk.items)

    def _lose(self, chunk: _Chunk, error: RayError) -> None:
        actor = chunk.actor
        if self._actors.get(actor.node) is actor:
            self.num_losses += 1
            del self._actors[actor.node]
            _kill(actor)
            if not self._is_closed:
                self._start_actors()
        for item in chunk.items:
            item.num_losses += 1
            if item.num_losses > self._max_losses and not item.num_copies:
                why = f"lost {item.num_losses} times with its node: {type(error).__name__}"
                item.tell(unreached(item.problem, why))
        self._take_back(chunk.items)

    def _take_back(self, items: Sequence[_Item]) -> None:
        """Put what is not told and held by nobody in front of the queue."""
        self._queue.extendleft(item for item in reversed(items) if not item.future.done() and not item.num_copies)

    def _hand_out(self) -> None:
        while actor := self._find_free():
            items = self._next_items() if self._queue else self._steal_for(actor)
            if items:
                self._send(actor, items)
            elif not self._queue:
                return

    def _find_free(self) -> _Actor | None:
        ready = [actor for actor in self._actors.values() if actor.is_ready]
        actor = min(ready, key=lambda actor: len(actor.chunks), default=None)
        return actor if actor is not None and len(actor.chunks) < _HELD_PER_ACTOR else None

    def _next_items(self) -> list[_Item]:
        # Towards the end smaller chunks, so that all nodes end together.
        size = max(1, min(_CHUNK_SIZE, len(self._queue) // (2 * len(self._actors))))
        items: list[_Item] = []
        while self._queue and len(items) < size:
            # One that was lost before goes alone: it may be what its node is lost by.
            if items and self._queue[0].num_losses:
                break
            item = self._queue.popleft()
            if item.begin():
                items.append(item)
            if item.num_losses:
                break
        return items

    def _steal_for(self, idle: _Actor) -> list[_Item]:
        """Return what waits at the fullest node, for one with nothing to do."""
        others = [actor for actor in self._actors.values() if actor is not idle and actor.chunks]
        if idle.chunks or not others:
            return []
        victim = max(others, key=lambda actor: len(actor.chunks))
        chunk = victim.chunks[max(victim.chunks)]
        items = chunk.left()
        if not items:
            return []
        if len(victim.chunks) > 1:
            victim.handle.give_up.remote(chunk.number)
        elif time.monotonic() - chunk.since < _LATE_SECONDS:
            return []
        for item in items:
            item.is_copied = True
        self.num_stolen += len(items)
        return items

    def _send(self, actor: _Actor, items: list[_Item]) -> None:
        chunk = _Chunk(next(self._numbers), actor, items)
        actor.chunks[chunk.number] = self._out[chunk.number] = chunk
        for item in items:
            item.num_copies += 1
        programs, problems = [item.program for item in items], [item.problem for item in items]
        reference = actor.handle.judge.remote(chunk.number, programs, problems)
        # An empty answer is no error either.
        reference.future().add_done_callback(
            lambda done: self._events.put(_Done(chunk, done.exception() or done.result()))
        )

    def _start_actors(self) -> None:
        """Start an actor on every living node that has none."""
        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        for name in set(self._actors) - set(alive):
            # What it held comes back as lost; nothing more is given to it.
            self.num_losses += 1
            del self._actors[name]
        for name, node in alive.items():
            num_processors = int(node["Resources"].get("CPU", 0))
            is_resting = self._resting.get(name, 0.0) > time.monotonic()
            if name in self._actors or is_resting or not num_processors:
                continue
            # What Ray is told to have may be any number; only what is reserved is counted in it.
            workers = self._workers_per_node
            if self._processors_per_worker:
                workers = min(workers or num_processors, num_processors)
            remote = ray.remote(_NodeJudge).options(
                num_cpus=(workers or 0) * self._processors_per_worker,
                # One more, to be told what to give up.
                max_concurrency=_HELD_PER_ACTOR + 1,
                max_restarts=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False),
            )
            actor = self._actors[name] = _Actor(remote.remote({"workers": workers, **self._options}), name)
            self._watch_start(actor)

    def _watch_start(self, actor: _Actor) -> None:
        started = actor.handle.start.remote()
        started.future().add_done_callback(lambda done: self._events.put(_Started(actor, done.exception())))

    def _give_up_queue(self, why: str) -> None:
        while self._queue:
            item = self._queue.popleft()
            if item.begin():
                item.tell(unreached(item.problem, why))

    def _end(self, why: str) -> None:
        for actor in self._actors.values():
            _kill(actor)
        while not self._events.empty():
            event = self._events.get_nowait()
            if isinstance(event, _Item):
                self._queue.append(event)
        for chunk in self._out.values():
            self._queue.extend(chunk.items)
        self._actors.clear()
        self._give_up_queue(why)


def _kill(actor: _Actor) -> None:
    try:
        ray.kill(actor.handle)
    except (RayError, ValueError, RuntimeError):
        # It is gone already, or the cluster is.
        return
