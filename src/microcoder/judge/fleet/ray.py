"""A judge on a Ray cluster: one actor per node, which stays there and runs a `Judge`.

A problem's tests go to a node once. Nodes that join later are used. A node whose sandbox does not
start is given nothing, and tried again later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from typing import Any, Unpack

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from microcoder.judge import Judge, JudgeOptions, check_problem
from microcoder.judge.core.errors import ConfigError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.types import Problem, Program
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
    """The actor on a node: judges programs with a `Judge` that lives as long as the actor."""

    def __init__(self, options: dict[str, Any]) -> None:
        """Start the judge, with these options."""
        self._judge = Judge(**options)
        self._problems: LruCache[Problem] = LruCache(most_bytes=MOST_PROBLEM_BYTES)
        """Problems that were fetched, by the client's number."""
        self._fetching = asyncio.Lock()

    async def start(self) -> int:
        """Return the number of the judge's workers; an actor answers once its judge has started."""
        return self._judge.workers

    async def judge(
        self,
        program: Program,
        number: int,
        references: list[Any],
    ) -> Answer:
        """Judge a program.

        Args:
            program: what to judge.
            number: of its problem.
            references: the problem's reference in Ray's object store, alone in a list: Ray would
                fetch a bare one for each program.
        """
        try:
            # Locked: programs of a new problem come together, and one of them fetches it.
            async with self._fetching:
                problem = self._problems.find(number)
                if problem is None:
                    numbered: NumberedProblem = await references[0]
                    problem = numbered.problem
                    # Not here: to read a problem's tests may take seconds.
                    await asyncio.to_thread(self._judge.prepare, problem)
                    self._problems.add(number, problem, numbered.num_bytes)
                    self._problems.trim()
            return await self._judge.judge_async(program, problem)
        except MicroCoderError as error:
            return error


class _Node(Backend):
    def __init__(
        self,
        name: str,
        handle: ActorHandle,
        judge: RayJudge,
    ) -> None:
        super().__init__()
        self.name = name
        self.handle = handle
        """The actor."""
        self._judge = judge

    def send(self, batch: Sequence[Work]) -> None:
        for item in batch:
            self._judge._begin(self._judge._judge_at(self, item))


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
        read = JudgeOptions.read(options).with_order_key()
        options["order_key"] = read.order_key
        self._processors_per_worker = max(0.0, processors_per_worker)
        self._options = options
        super().__init__(_check_and_strip, read.cache_size)
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
                    self._give_all_up(why.rstrip())
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Answer every program with a fault and close: the cluster has ended or refuses work."""
        _LOG.error("judging on Ray ended", exc_info=error)
        with self._lock:
            self._is_closed = True
        self._give_all_up(f"judging on Ray ended: {type(error).__name__}: {error}")
        for node in tuple(self._backends.values()):
            self._drop(node)
        self._loop.stop()

    async def _open_node(self, node: _Node) -> None:
        """Wait until a node's judge has started; leave the node alone for a while if it does not.

        It may be dropped meanwhile.
        """
        try:
            workers = await node.handle.start.remote()
        except RayError as error:
            if self._backends.get(node.name) is not node:
                return
            self._drop(node)
            # One that left the cluster says nothing about the judge.
            if node.name in find_nodes():
                last_line = str(error).strip().splitlines()[-1]
                why = last_line[:300]
                self._start_failure = self._start_failure or why
                _LOG.warning("no judge starts on Ray node %s: %s", node.name, why)
                self._resting[node.name] = time.monotonic() + _REST_SECONDS
            return
        if self._backends.get(node.name) is node:
            self._open(node, workers)

    async def _judge_at(self, node: _Node, item: Work) -> None:
        """Judge a program at a node; it is queued again if the node is lost."""
        problem = item.problem
        try:
            # It stays in the store as long as this process remembers the problem.
            problem.reference = problem.reference or ray.put(problem)
            references = [problem.reference]
            answer = await node.handle.judge.remote(item.program, problem.number, references)
        except RayTaskError as error:
            # The problem could not be read there: it is put into the store anew.
            problem.reference = None
            self._lose(node, type(error.cause).__name__, [item])
        except RayError as error:
            # All its programs fail, and the first of them drops it.
            if self._backends.get(node.name) is node:
                self._lose_node(node, type(error).__name__)
                self._start_nodes()
        except Exception as error:
            self._fail(error)
        else:
            self._land(node, item.number, answer)

    async def _stop(self) -> None:
        await super()._stop()
        for node in tuple(self._backends.values()):
            self._drop(node)

    def _lose_node(self, node: _Node, why: str) -> None:
        self._drop(node)
        self._lose(node, why)

    def _drop(self, node: _Node) -> None:
        """Remove a node and kill its actor, which may be gone already."""
        with self._lock:
            del self._backends[node.name]
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
        )
        options = {**self._options, "workers": workers}
        node = _Node(name, make_actor(NodeJudge).remote(options), self)
        self._backends[name] = node
        self._begin(self._open_node(node))
