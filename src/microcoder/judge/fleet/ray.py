"""The machines of the Ray cluster that this process is connected to, and actors that stay on one of them.

How long a local Ray may take to start: its fixed 30 s are too short on a busy machine.

A judge on a Ray cluster: one actor a node, which holds as many programs as its sandboxes have places for.

Programs wait in one queue here, so a node that is fast or free takes more: nothing is dealt out in advance. A problem's
tests go to a node once. When an actor or its node is lost, what it held goes back to the front of the queue and is
judged again; a program gets one verdict. Nodes that join later are used; a node whose sandbox does not start is
given nothing, and tried again later.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from microcoder.judge import Judge, check_problem
from microcoder.judge.core.errors import ConfigError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.types import Problem, Program
from microcoder.judge.fleet.queued import (
    MOST_PROBLEM_BYTES,
    JudgeAnswer,
    NumberedProblem,
    Queue,
    QueuedProgram,
    QueueJudge,
    copy_late,
)
from microcoder.judge.run.turns import most_workers


def find_nodes() -> dict[str, int]:
    """Return the ids of the living nodes that have a processor, and how many Ray counts there."""
    counted = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]}
    return {name: number for name, number in counted.items() if number}


def start_actor(kind: type, node: str, *arguments: Any, num_processors: float = 0, **options: Any) -> Any:
    """Start an actor on a node; Ray neither moves it nor starts it again.

    Args:
        kind: its class.
        node: where.
        *arguments: what it is made with.
        num_processors: what Ray reserves for it.
        **options: of `ray.remote`.
    """
    there = NodeAffinitySchedulingStrategy(node, soft=False)
    remote = ray.remote(num_cpus=num_processors, max_restarts=0, scheduling_strategy=there, **options)(kind)
    return remote.remote(*arguments)


def kill_actor(handle: Any) -> None:
    """End an actor, whatever it does; one that is gone already, with its cluster or alone, is no error."""
    try:
        ray.kill(handle)
    except (RayError, ValueError, RuntimeError):
        return


_PATIENCE = {
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_worker_register_timeout_seconds": "600",
    # Ray gives its workers little of a busy machine; here they are what the machine is to do.
    "RAY_worker_niceness": "0",
}


def allow_slow_start(environment: MutableMapping[str, str]) -> None:
    """Let a Ray that is started with this environment take minutes; what a user has set stays.

    Call it before `ray.init`, and only if that starts a Ray: it would wait as long for a cluster that does not answer.
    """
    for name, value in _PATIENCE.items():
        environment.setdefault(name, value)


_REFRESH_SECONDS = 5.0
_REST_SECONDS = 30.0
"""How long a node is left alone whose judge did not start."""
_JOIN_SECONDS = 10.0
_NO_LIMIT = 1 << 20
_LOG = logging.getLogger(__name__)


class NodeJudge:
    """What runs on a node: a judge with so many workers, or one for each of the node's processors."""

    def __init__(self, options: dict[str, Any]) -> None:
        """Start the judge; how many programs come at a time is decided by who sends them."""
        self._judge = Judge(**(options | {"max_waiting": _NO_LIMIT}))
        self._problems: dict[int, Problem] = {}
        self._landed: SimpleQueue[tuple[int, JudgeAnswer]] = SimpleQueue()

    def start(self) -> int:
        """Answer once there is a judge: with its workers."""
        return self._judge.workers

    @ray.method(concurrency_group="give")
    def give(self, programs: list[tuple[int, Program, int]], problems: dict[int, Any], forgotten: list[int]) -> None:
        """Begin programs.

        Args:
            programs: a number for each, and that of its problem.
            problems: those that are new here, in Ray's object store.
            forgotten: problems that are not asked about again, unless they are sent again.
        """
        self._problems |= zip(problems, ray.get(list(problems.values())), strict=True)
        for number, program, known in programs:
            try:
                future = self._judge.submit(program, self._problems[known])
            except MicroCoderError as error:
                self._landed.put((number, error))
            else:
                future.add_done_callback(lambda done, number=number: self._landed.put((number, done.result())))
        for known in forgotten:
            del self._problems[known]

    @ray.method(concurrency_group="collect")
    def collect(self) -> list[tuple[int, JudgeAnswer]]:
        """Wait for verdicts, and return all that have landed."""
        landed = [self._landed.get()]
        while not self._landed.empty():
            landed.append(self._landed.get_nowait())
        return landed


@dataclass(eq=False, slots=True)
class _Node:
    """A node's actor, as it is seen from here."""

    name: str
    handle: Any
    workers: int = 0
    """0 until it is ready."""
    items: dict[int, QueuedProgram] = field(default_factory=dict)
    known: OrderedDict[int, NumberedProblem] = field(default_factory=OrderedDict)
    num_bytes: int = 0
    """Of the problems that it has."""
    latest: int = 0
    """The problem of the program that it was given last."""

    @property
    def held(self) -> Collection[QueuedProgram]:
        """What it was given and has not answered."""
        return self.items.values()

    @property
    def num_free(self) -> int:
        """How many programs it could begin at once."""
        return self.workers - len(self.items)


class RayJudge(QueueJudge):
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
            workers_per_node: programs judged at the same time on a node; by default as many as Ray's processors
                there, or, if none are reserved, as the node's real ones.
            processors_per_worker: what Ray reserves for each; 0 if a trainer has reserved all processors already.
            max_losses: how often an actor may be lost with a program before that gets `sandbox_fault`.
            start_seconds: how long there may be no actor before programs get `sandbox_fault`.
            **options: what each node's `Judge` is made with besides.

        Raises:
            ConfigError: Ray is not initialised, or a value is wrong.
            EvaluatorFault: no actor starts.
        """
        super().__init__()
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
        self._nodes: dict[str, _Node] = {}
        self._resting: dict[str, float] = {}
        self._queue = Queue()
        self._events: SimpleQueue[partial[Any]] = SimpleQueue()
        """What happened, as what to do about it: called by the one thread that touches the queue and the nodes."""
        self._numbers = itertools.count()
        self._start_failure = ""
        self.num_losses = 0
        """Times that an actor was lost."""
        self.num_problems_sent = 0
        """Problems that nodes were given: each once a node, unless the node has had 512 MiB of others since."""
        self._start_nodes()
        self._wait_for_one()
        self._thread = threading.Thread(target=self._dispatch, name="ray-judge", daemon=True)
        self._thread.start()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ids of the nodes that judge now."""
        return tuple(name for name, node in tuple(self._nodes.items()) if node.workers)

    def _know(self, problem: Problem) -> NumberedProblem:
        check_problem(problem)
        return super()._know(problem)

    def _put(self, item: QueuedProgram) -> None:
        self._events.put(partial(self._queue.add, item))

    def _end(self) -> None:
        self._events.put(partial(_LOG.debug, "the Ray judge is closed"))
        self._thread.join(_JOIN_SECONDS)

    def _wait_for_one(self) -> None:
        """Fail early if no node can judge."""
        give_up = time.monotonic() + self._start_seconds
        while not self.nodes:
            if not self._nodes:
                raise EvaluatorFault(
                    f"no judge starts on the Ray cluster: {self._start_failure or 'it has no processor'}"
                )
            try:
                self._events.get(timeout=max(0.0, give_up - time.monotonic()))()
            except Empty:
                for node in self._nodes.values():
                    kill_actor(node.handle)
                why = self._start_failure or "are its processors taken?"
                raise EvaluatorFault(
                    f"no judge started on the Ray cluster within {self._start_seconds:g} s; {why}"
                ) from None

    def _dispatch(self) -> None:
        """Give programs to nodes as they have room; the only thread that touches the queue and the nodes."""
        why = "the judge was closed"
        try:
            self._dispatch_until_closed()
        except Exception as error:
            # Such as the end of the cluster: every waiting program is answered.
            _LOG.error("judging on Ray ended", exc_info=error)
            why = f"judging on Ray ended: {type(error).__name__}: {error}"
        with self._closing:
            self._is_closed = True
        self._give_up(why)

    def _dispatch_until_closed(self) -> None:
        looked = able = time.monotonic()
        while True:
            try:
                self._events.get(timeout=_REFRESH_SECONDS)()
                while not self._events.empty():
                    self._events.get_nowait()()
            except Empty:
                pass
            if self._is_closed:
                return
            now = time.monotonic()
            if now - looked > _REFRESH_SECONDS:
                looked = now
                self._start_nodes()
                if not self._queue:
                    for node, items in copy_late(tuple(self._nodes.values())):
                        self._give(node, items)
            if self.nodes or not self._queue:
                able = now
            elif now - able > self._start_seconds:
                self._give_up_queue(f"no node of the Ray cluster judges any more {self._start_failure}".rstrip())
            for node in self._nodes.values():
                self._fill(node)

    def _call(self, node: _Node, method: Any, note: Callable[[_Node, Any], None]) -> None:
        """Call a method of a node's actor; what it answers, or the error that ended it, is noted."""
        method.remote().future().add_done_callback(
            lambda done: self._events.put(partial(note, node, done.exception() or done.result()))
        )

    def _note_start(self, node: _Node, answer: int | BaseException) -> None:
        """Note that an actor is there, with so many workers, or why not."""
        if not isinstance(answer, BaseException):
            node.workers = answer
            self._call(node, node.handle.collect, self._note_verdicts)
        elif self._nodes.get(node.name) is node:
            why = str(answer).strip().splitlines()[-1][:300]
            # The first of ours says most: Ray's is often only that the node went away.
            ours = EvaluatorFault.__name__
            if not self._start_failure or (ours in why and ours not in self._start_failure):
                self._start_failure = why
            _LOG.warning("no judge starts on Ray node %s: %s", node.name, why)
            del self._nodes[node.name]
            self._resting[node.name] = time.monotonic() + _REST_SECONDS

    def _note_verdicts(self, node: _Node, answer: list[tuple[int, JudgeAnswer]] | BaseException) -> None:
        """Note verdicts of a node, or that it is lost."""
        if not isinstance(answer, BaseException):
            for number, verdict in answer:
                # A program that was given up is no longer among the node's own.
                if (item := node.items.pop(number, None)) is not None:
                    item.num_holders -= 1
                    item.resolve(verdict)
            self._call(node, node.handle.collect, self._note_verdicts)
        elif self._nodes.get(node.name) is node:
            self._lose(node, type(answer).__name__)
            self._start_nodes()

    def _lose(self, node: _Node, why: str) -> None:
        """Put back what a lost node held, unless another one has it as well."""
        self.num_losses += 1
        del self._nodes[node.name]
        kill_actor(node.handle)
        held, node.items = list(node.items.values()), {}
        # In the order in which they were given: the first goes in front of all.
        for item in reversed(held):
            item.num_losses += 1
            item.num_holders -= 1
            if item.num_holders or item.future.done():
                continue
            if item.num_losses > self._max_losses:
                item.give_up(f"lost {item.num_losses} times with its node: {why}")
            else:
                self._queue.add(item)

    def _fill(self, node: _Node) -> None:
        """Give a node programs for its free places, and some to wait there while many wait here."""
        if not node.workers:
            return
        # Half of an even share, so that nodes end together; one alone need leave nothing for others.
        share = len(self._queue) // (2 * len(self._nodes)) if len(self._nodes) > 1 else len(self._queue)
        spare = min(most_workers(node.workers) - node.workers, share)
        given: list[QueuedProgram] = []
        # At most one on a node: the others there are not to be lost with it again and again.
        if all(item.num_losses < 2 for item in node.items.values()) and (suspect := self._queue.take_suspect()):
            given.append(suspect)
        while len(node.items) + len(given) < node.workers + spare and (item := self._queue.take(node.latest)):
            given.append(item)
            node.latest = item.known.number
        self._give(node, given)

    def _give(self, node: _Node, items: Sequence[QueuedProgram]) -> None:
        """Send programs to a node, with those of their problems that it does not have."""
        programs: list[tuple[int, Program, int]] = []
        new: dict[int, Any] = {}
        forgotten: list[int] = []
        for item in items:
            item.num_holders += 1
            item.since = time.monotonic()
            node.items[number := next(self._numbers)] = item
            known = item.known
            programs.append((number, item.program, known.number))
            if known.number not in node.known:
                # It stays there as long as this process remembers the problem.
                known.reference = known.reference or ray.put(known.problem)
                new[known.number] = known.reference
                node.known[known.number] = known
                node.num_bytes += known.num_bytes
            node.known.move_to_end(known.number)
        while node.num_bytes > MOST_PROBLEM_BYTES and len(node.known) > 1:
            oldest, known = node.known.popitem(last=False)
            forgotten.append(oldest)
            node.num_bytes -= known.num_bytes
        self.num_problems_sent += len(new)
        if programs:
            node.handle.give.remote(programs, new, forgotten)

    def _start_nodes(self) -> None:
        """Start an actor on every living node that has none; count those out that are gone."""
        alive = find_nodes()
        for name in set(self._nodes) - set(alive):
            self._lose(self._nodes[name], "it left the cluster")
        for name, num_processors in alive.items():
            if name in self._nodes or self._resting.get(name, 0.0) > time.monotonic():
                continue
            # Ray may be configured with any number of processors; it counts only what is reserved.
            workers = self._workers_per_node
            if self._processors_per_worker:
                workers = min(workers or num_processors, num_processors)
            handle = start_actor(
                NodeJudge,
                name,
                {"workers": workers, **self._options},
                num_processors=(workers or 0) * self._processors_per_worker,
                concurrency_groups={"give": 1, "collect": 1},
            )
            node = self._nodes[name] = _Node(name, handle)
            self._call(node, handle.start, self._note_start)

    def _give_up_queue(self, why: str) -> None:
        while (item := self._queue.take_suspect() or self._queue.take()) is not None:
            item.give_up(why)

    def _give_up(self, why: str) -> None:
        for node in self._nodes.values():
            kill_actor(node.handle)
            for item in node.items.values():
                item.give_up(why)
        self._nodes.clear()
        while not self._events.empty():
            # Programs that came meanwhile are queued; what ended actors say is ignored, since their nodes are gone.
            if (event := self._events.get_nowait()).func == self._queue.add:
                event()
        self._give_up_queue(why)
