"""A judge on a Ray cluster: one actor per node, which stays there and runs a `Judge`.

A problem's tests go to a node once. Nodes that join later are used; a node whose sandbox does not start is given
nothing, and tried again later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from itertools import chain
from queue import SimpleQueue
from typing import Any, Unpack

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from microcoder.judge import Judge, JudgeOptions, check_problem
from microcoder.judge.core.errors import ConfigError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.types import Problem, Program
from microcoder.judge.fleet.fleet import Place
from microcoder.judge.fleet.remote import (
    MOST_PROBLEM_BYTES,
    NumberedProblem,
    RemoteJudge,
    strip_problem,
)
from microcoder.judge.run.options import JudgeKeys
from microcoder.judge.run.recent import Recent
from microcoder.judge.run.workers import Answer, Work


def find_nodes() -> dict[str, int]:
    """Return node id -> number of processors by Ray's count, for the living nodes that have any."""
    counted = {
        node["NodeID"]: int(node["Resources"].get("CPU", 0))
        for node in ray.nodes()
        if node["Alive"]
    }
    return {name: number for name, number in counted.items() if number}


_PATIENCE = {
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "600",
    # Ray gives its workers little of a busy machine; here they are what the machine is to do.
    "RAY_worker_niceness": "0",
}


def allow_slow_start(environment: MutableMapping[str, str]) -> None:
    """Let a Ray that is started with this environment take minutes to start; variables already set are kept.

    Call it before `ray.init`, and only if that starts a Ray: it would wait as long for a cluster that does not answer.
    """
    for name, value in _PATIENCE.items():
        environment.setdefault(name, value)


_REFRESH_SECONDS = 5.0
_REST_SECONDS = 30.0
"""Pause before a node is tried again whose judge did not start."""
_LOOK_SECONDS = 0.02
_START_SECONDS = 120.0
"""How long there may be no actor before programs get `sandbox_fault`."""
_MOST_LOSSES = 3
"""Actors that may be lost with a program before it gets `sandbox_fault`."""
_LOG = logging.getLogger(__name__)


class NodeJudge:
    """The actor on a node: passes programs to a `Judge` and collects its verdicts."""

    def __init__(self, options: dict[str, Any]) -> None:
        """Start the judge, with these options."""
        self._judge = Judge(**options)
        self._problems: dict[int, Problem] = {}
        self._landed: SimpleQueue[tuple[int, Answer] | Exception] = SimpleQueue()

    def start(self) -> int:
        """Return the number of the judge's workers; an actor answers once its judge has started."""
        return self._judge.workers

    @ray.method(concurrency_group="give")
    def give(
        self,
        programs: list[tuple[int, Program, int]],
        problems: dict[int, Any],
        forgotten: list[int],
    ) -> None:
        """Begin programs (number, program, problem's number); new problems are references to Ray's object store."""
        try:
            self._problems |= zip(problems, ray.get(list(problems.values())), strict=True)
        except RayError as error:
            # Nobody waits for this call: `collect` says that what was given is lost.
            self._landed.put(error)
            return
        for number, program, known in programs:
            try:
                future = self._judge.submit(program, self._problems[known])
            except MicroCoderError as error:
                self._landed.put((number, error))
            else:
                future.add_done_callback(
                    lambda done, number=number: self._landed.put((number, done.result()))
                )
        for known in forgotten:
            del self._problems[known]

    @ray.method(concurrency_group="collect")
    def collect(self) -> list[tuple[int, Answer]]:
        """Wait for verdicts, and return all that have landed."""
        landed: list[tuple[int, Answer]] = []
        while not (landed and self._landed.empty()):
            one = self._landed.get()
            if isinstance(one, Exception):
                raise one
            landed.append(one)
        return landed


class _Node(Place):
    def __init__(self, name: str, handle: Any) -> None:
        super().__init__()
        self.name, self.handle = name, handle
        self._sent: Recent[bool] = Recent(most_bytes=MOST_PROBLEM_BYTES)

    def send(self, batches: Sequence[Sequence[Work]]) -> None:
        programs: list[tuple[int, Program, int]] = []
        new: dict[int, Any] = {}
        for item in chain.from_iterable(batches):
            known = item.problem
            programs.append((item.number, item.program, known.number))
            if self._sent.find(known.number) is None:
                self._sent.add(known.number, True, known.num_bytes)
                # It stays there as long as this process remembers the problem.
                known.reference = known.reference or ray.put(known.problem)
                new[known.number] = known.reference
        self.handle.give.remote(programs, new, self._sent.trim())


def _check_and_strip(problem: Problem) -> NumberedProblem:
    check_problem(problem)
    return strip_problem(problem)


class RayJudge(RemoteJudge[_Node]):
    """Judges on all nodes of the Ray cluster that this process is connected to; use it as a context manager."""

    def __init__(self, *, processors_per_worker: float = 1.0, **options: Unpack[JudgeKeys]) -> None:
        """Start an actor on each node, and wait for the first.

        Args:
            processors_per_worker: those that Ray reserves for each worker; 0 if a trainer has reserved all already.
            **options: those of each node's `Judge`; `workers` are by default as many as Ray's processors there, or, if
                none are reserved, as the node's real ones.

        Raises:
            ConfigError: Ray is not initialised, or an option is wrong.
            EvaluatorFault: no actor starts.
        """
        if not ray.is_initialized():
            raise ConfigError("Ray is not initialised; call ray.init() first")
        cache_size = JudgeOptions.read(options).cache_size
        self._processors_per_worker = max(0.0, processors_per_worker)
        self._options = options
        super().__init__(_check_and_strip, cache_size)
        self._resting: dict[str, float] = {}
        self._start_failure = ""
        try:
            asyncio.run_coroutine_threadsafe(self._open_first(), self._loop).result()
        except BaseException:
            self.close()
            raise

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ids of the nodes that judge now."""
        return tuple(name for name, node in tuple(self._places.items()) if node.workers)

    # All below runs in the thread of the event loop.

    async def _open_first(self) -> None:
        """Start actors, and wait for the first: fail early if no node can judge."""
        self._start_nodes()
        give_up = time.monotonic() + _START_SECONDS
        while not self.nodes:
            if not self._places or time.monotonic() > give_up:
                why = self._start_failure or "has it a processor that is not taken?"
                raise EvaluatorFault(f"no judge starts on the Ray cluster: {why}")
            await asyncio.sleep(_LOOK_SECONDS)
        self._begin(self._watch())

    async def _watch(self) -> None:
        """Start actors on nodes that join, drop nodes that left, and fail all programs if none is left for too long."""
        able = time.monotonic()
        try:
            while True:
                await asyncio.sleep(_REFRESH_SECONDS)
                self._start_nodes()
                if self.nodes or not self._queue:
                    able = time.monotonic()
                elif time.monotonic() - able > _START_SECONDS:
                    why = (
                        f"no node of the Ray cluster judges any more {self._start_failure}".rstrip()
                    )
                    self._answer(lambda item, why=why: item.finish(item.fault(why)))
        except Exception as error:
            self._fail(error)

    def _hand_out(self) -> None:
        try:
            super()._hand_out()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Answer every program with a fault and close, since the cluster has ended or refuses work."""
        _LOG.error("judging on Ray ended", exc_info=error)
        with self._lock:
            self._is_closed = True
        why = f"judging on Ray ended: {type(error).__name__}: {error}"
        self._answer(lambda item: item.finish(item.fault(why)), *self._places.values())
        for node in tuple(self._places.values()):
            self._drop(node)
        self._loop.stop()

    async def _tend(self, node: _Node) -> None:
        """Take a node's verdicts until it is lost."""
        try:
            self._open(node, await node.handle.start.remote())
            while True:
                for number, verdict in await node.handle.collect.remote():
                    self._land(node, number, verdict)
        except RayError as error:
            if self._places.get(node.name) is not node:
                return
            if node.workers:
                self._lose_node(node, type(error).__name__)
                self._start_nodes()
                return
            why = str(error).strip().splitlines()[-1][:300]
            self._start_failure = self._start_failure or why
            _LOG.warning("no judge starts on Ray node %s: %s", node.name, why)
            self._drop(node)
            self._resting[node.name] = time.monotonic() + _REST_SECONDS

    async def _stop(self) -> None:
        self._answer(
            lambda item: item.finish(item.fault("the judge was closed")), *self._places.values()
        )
        await super()._stop()
        for node in tuple(self._places.values()):
            self._drop(node)

    def _lose_node(self, node: _Node, why: str) -> None:
        for item in node.held.values():
            # It may be what could not be read there.
            item.problem.reference = None
        self._drop(node)
        self._lose(node, why)

    def _drop(self, node: _Node) -> None:
        """Remove a node and kill its actor, which may be gone already."""
        with self._lock:
            del self._places[node.name]
            self._able.pop(node, None)
            node.workers = 0
        # Otherwise Ray would start another cluster, to end an actor there.
        if ray.is_initialized():
            with suppress(RayError, ValueError, RuntimeError):
                ray.kill(node.handle)

    def _find_end(self, place: _Node, item: Work, why: str) -> str:
        return (
            f"lost {item.num_losses} times with its node: {why}"
            if item.num_losses > _MOST_LOSSES
            else ""
        )

    def _start_nodes(self) -> None:
        """Start an actor on every living node that has none; drop nodes that left the cluster."""
        alive = find_nodes()
        for name in set(self._places) - set(alive):
            self._lose_node(self._places[name], "it left the cluster")
        for name, num_processors in alive.items():
            if name in self._places or self._resting.get(name, 0.0) > time.monotonic():
                continue
            # Ray may be configured with any number of processors; it counts only what is reserved.
            workers = self._options.get("workers")
            if self._processors_per_worker:
                workers = min(workers or num_processors, num_processors)
            # Ray neither moves it nor starts it again.
            actor = ray.remote(
                num_cpus=(workers or 0) * self._processors_per_worker,
                max_restarts=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False),
                concurrency_groups={"give": 1, "collect": 1},
            )(NodeJudge)
            node = self._places[name] = _Node(
                name, actor.remote({**self._options, "workers": workers})
            )
            self._begin(self._tend(node))
