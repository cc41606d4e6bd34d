"""A judge on a Ray cluster: one actor per node, which stays there and runs a `Judge`.

A problem's tests go to a node once. Nodes that join later are used. A node whose sandbox does not
start is given nothing, and tried again later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import chain
from queue import SimpleQueue
from typing import Any, Unpack

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from microcoder.judge import Judge, JudgeOptions, check_problem
from microcoder.judge.core.errors import ConfigError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.fleet.fleet import Backend
from microcoder.judge.fleet.remote import (
    MOST_PROBLEM_BYTES,
    NumberedProblem,
    RemoteJudge,
    strip_problem,
)
from microcoder.judge.run.lru_cache import LruCache
from microcoder.judge.run.options import JudgeKeys
from microcoder.judge.run.workers import Answer, Work


def find_nodes() -> dict[str, int]:
    """Return node id -> number of processors by Ray's count, for the living nodes that have any."""
    num_processors: dict[str, int] = {}
    for node in ray.nodes():
        if not node["Alive"]:
            continue
        number = int(node["Resources"].get("CPU", 0))
        if number:
            num_processors[node["NodeID"]] = number
    return num_processors


_PATIENCE = {
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "600",
    # Ray gives its workers little of a busy machine; here they are what the machine is to do.
    "RAY_worker_niceness": "0",
}
"""Variables of the environment by which Ray waits for minutes."""


def allow_slow_start(environment: MutableMapping[str, str]) -> None:
    """Let a Ray that is started with this environment take minutes to start.

    Variables that are set already are kept. Call it before `ray.init`, and only where that starts a
    Ray: with a cluster that does not answer it would wait equally long.
    """
    for name, value in _PATIENCE.items():
        environment.setdefault(name, value)


_REFRESH_SECONDS = 5.0
"""Pause between two looks at the cluster's nodes."""
_REST_SECONDS = 30.0
"""Pause before a node is tried again whose judge did not start."""
_LOOK_SECONDS = 0.02
"""Pause between two looks for the first actor."""
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
        """Begin programs.

        Args:
            programs: number, program, and its problem's number.
            problems: new ones by number, as references to Ray's object store.
            forgotten: numbers of problems that are not needed any more.
        """
        try:
            self._problems |= zip(
                problems,
                ray.get(list(problems.values())),
                strict=True,
            )
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
                future.add_done_callback(partial(self._land, number))
        for known in forgotten:
            del self._problems[known]

    def _land(
        self,
        number: int,
        future: Future[Verdict],
    ) -> None:
        self._landed.put((number, future.result()))

    @ray.method(concurrency_group="collect")
    def collect(self) -> list[tuple[int, Answer]]:
        """Wait until there are answers, and return them all, each with its program's number.

        An error of Ray by which programs were lost is raised.
        """
        landed: list[tuple[int, Answer]] = []
        while not (landed and self._landed.empty()):
            answer = self._landed.get()
            if isinstance(answer, Exception):
                raise answer
            landed.append(answer)
        return landed


class _Node(Backend):
    def __init__(self, name: str, handle: ActorHandle) -> None:
        super().__init__()
        self.name = name
        self.handle = handle
        """The actor."""
        self._sent: LruCache[bool] = LruCache(most_bytes=MOST_PROBLEM_BYTES)

    def send(self, batches: Sequence[Sequence[Work]]) -> None:
        programs: list[tuple[int, Program, int]] = []
        new: dict[int, Any] = {}
        for item in chain.from_iterable(batches):
            problem = item.problem
            programs.append((item.number, item.program, problem.number))
            if self._sent.find(problem.number) is None:
                self._sent.add(problem.number, True, problem.num_bytes)
                # It stays there as long as this process remembers the problem.
                problem.reference = problem.reference or ray.put(problem.problem)
                new[problem.number] = problem.reference
        self.handle.give.remote(programs, new, self._sent.trim())


def _check_and_strip(problem: Problem) -> NumberedProblem:
    check_problem(problem)
    return strip_problem(problem)


class RayJudge(RemoteJudge[_Node]):
    """Judges on all nodes of the Ray cluster that this process is connected to; use it as a context
    manager."""

    def __init__(self, *, processors_per_worker: float = 1.0, **options: Unpack[JudgeKeys]) -> None:
        """Start an actor on each node, and wait for the first.

        Args:
            processors_per_worker: those that Ray reserves for each worker; 0 if a trainer has
                reserved all already.
            **options: those of each node's `Judge`; `workers` are by default as many as Ray's
                processors there, or, if none are reserved, as the node's real ones.

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
        """Node whose judge did not start -> time (`time.monotonic`) at which it is tried again."""
        self._start_failure = ""
        try:
            asyncio.run_coroutine_threadsafe(self._open_first(), self._loop).result()
        except BaseException:
            self.close()
            raise

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ids of the nodes that judge now."""
        return tuple(name for name, node in tuple(self._backends.items()) if node.workers)

    # All below runs in the thread of the event loop.

    async def _open_first(self) -> None:
        """Start actors, and wait for the first: fail early if no node can judge."""
        self._start_nodes()
        give_up = time.monotonic() + _START_SECONDS
        while not self.nodes:
            if not self._backends or time.monotonic() > give_up:
                why = self._start_failure or "has it a processor that is not taken?"
                raise EvaluatorFault(f"no judge starts on the Ray cluster: {why}")
            await asyncio.sleep(_LOOK_SECONDS)
        self._begin(self._watch())

    async def _watch(self) -> None:
        """Start actors on nodes that join, and drop nodes that left.

        All programs fail if no node is left for too long.
        """
        able = time.monotonic()
        try:
            while True:
                await asyncio.sleep(_REFRESH_SECONDS)
                self._start_nodes()
                if self.nodes or not self._queue:
                    able = time.monotonic()
                # Nobody has judged for too long.
                elif time.monotonic() - able > _START_SECONDS:
                    why = f"no node of the Ray cluster judges any more {self._start_failure}"
                    why = why.rstrip()
                    self._answer(lambda item, why=why: item.finish(item.fault(why)))
        except Exception as error:
            self._fail(error)

    def _hand_out(self) -> None:
        try:
            super()._hand_out()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Answer every program with a fault and close: the cluster has ended or refuses work."""
        _LOG.error("judging on Ray ended", exc_info=error)
        with self._lock:
            self._is_closed = True
        why = f"judging on Ray ended: {type(error).__name__}: {error}"
        self._answer(lambda item: item.finish(item.fault(why)), *self._backends.values())
        for node in tuple(self._backends.values()):
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
            # It was dropped already.
            if self._backends.get(node.name) is not node:
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
        nodes = tuple(self._backends.values())
        self._answer(lambda item: item.finish(item.fault("the judge was closed")), *nodes)
        await super()._stop()
        for node in tuple(self._backends.values()):
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
            del self._backends[node.name]
            self._able.pop(node, None)
            node.workers = 0
        # Otherwise Ray would start another cluster, to end an actor there.
        if ray.is_initialized():
            with suppress(RayError, ValueError, RuntimeError):
                ray.kill(node.handle)

    def _find_end(
        self,
        backend: _Node,
        item: Work,
        why: str,
    ) -> str:
        if item.num_losses <= _MOST_LOSSES:
            return ""
        return f"lost {item.num_losses} times with its node: {why}"

    def _start_nodes(self) -> None:
        """Start an actor on every living node that has none; drop nodes that left the cluster."""
        alive = find_nodes()
        for name in set(self._backends) - set(alive):
            self._lose_node(self._backends[name], "it left the cluster")
        for name, num_processors in alive.items():
            is_resting = self._resting.get(name, 0.0) > time.monotonic()
            if name not in self._backends and not is_resting:
                self._start_node(name, num_processors)

    def _start_node(self, name: str, num_processors: int) -> None:
        """Start an actor on a node, which has so many processors by Ray's count."""
        # Ray may be configured with any number of processors; it counts only what is reserved.
        workers = self._options.get("workers")
        if self._processors_per_worker:
            workers = min(workers or num_processors, num_processors)
        # Ray neither moves it nor starts it again.
        make_actor = ray.remote(
            num_cpus=(workers or 0) * self._processors_per_worker,
            max_restarts=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False),
            concurrency_groups={"give": 1, "collect": 1},
        )
        options = {**self._options, "workers": workers}
        node = _Node(name, make_actor(NodeJudge).remote(options))
        self._backends[name] = node
        self._begin(self._tend(node))
