"""Shards over the nodes of a Ray cluster: a worker a core, or one a node for steps that spread over its cores."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import ray
from ray.exceptions import RayError, RayTaskError

from microcoder.errors import EvaluatorFault, MicroCoderError
from microcoder.serving.ray_nodes import find_nodes, kill_actor, start_actor
from microcoder.serving.ray_start import allow_slow_start

if TYPE_CHECKING:
    from microcoder.dataset.pipeline.workers import Chain, Looks, Runner

_LOOK_SECONDS, _PAUSE_SECONDS, _REST_SECONDS = 5.0, 0.5, 15.0
_MOST_LOSSES = 3
_LOG = logging.getLogger(__name__)


class _Seat(NamedTuple):
    """Of one worker."""

    node: str
    number: int


def run_on_nodes(
    chain: Chain, given: Sequence[str], paths: Sequence[list[str]], runner: Runner
) -> Iterator[tuple[int, Looks]]:
    """Have each shard taken through a chain by the next worker that is free.

    Shards of a lost node are done again by others; nodes that join are used.

    Args:
        chain: the steps.
        given: for each shard the part that the first step reads, or the description of the shard itself.
        paths: for each shard the parts of the steps.
        runner: without an address a cluster is started here, unless this process has joined one.

    Yields:
        A shard's place in `given`, and its looks; in any order.

    Raises:
        EvaluatorFault: a shard was lost with its node four times, or no node has a processor.
        MicroCoderError: what a step itself raises.
    """
    if not ray.is_initialized():
        if runner.address is None:
            allow_slow_start(os.environ)
        ray.init(address=runner.address, log_to_driver=False)
    crew = _Crew(chain, runner)
    waiting = deque(range(len(given)))
    losses: Counter[int] = Counter()
    running: dict[Any, tuple[_Seat, int]] = {}
    try:
        while waiting or running:
            for seat in crew.find_idle({seat for seat, _ in running.values()}):
                if waiting:
                    place = waiting.popleft()
                    running[crew.ask(seat, given[place], paths[place])] = seat, place
            if not running:
                time.sleep(_PAUSE_SECONDS)
                continue
            done, _ = ray.wait(list(running), timeout=_LOOK_SECONDS)
            for reference in done:
                seat, place = running.pop(reference)
                try:
                    found = ray.get(reference)
                except RayTaskError as error:
                    # Our own error comes out as itself, not as a fault of Ray's.
                    raise error.cause if isinstance(error.cause, MicroCoderError) else error from None
                except RayError as error:
                    crew.dismiss(seat)
                    losses[place] += 1
                    _LOG.warning("Ray node %s was lost with a shard: %s", seat.node, type(error).__name__)
                    if losses[place] > _MOST_LOSSES:
                        raise EvaluatorFault(
                            f"{given[place]}: lost {losses[place]} times with its node ({type(error).__name__}); "
                            "look into Ray's logs, then type the same command again"
                        ) from None
                    waiting.appendleft(place)
                    continue
                yield place, found
    finally:
        crew.close()


class _Crew:
    """A worker for each seat that had something to do, and what all of them share."""

    def __init__(self, chain: Chain, runner: Runner) -> None:
        self._chain, self._runner = chain, runner
        here = ray.get_runtime_context().get_node_id()
        self._shared = {
            step.name: start_actor(_Shared, here, step.shares, step.settings) for step in chain.steps if step.shares
        }
        self._workers: dict[_Seat, Any] = {}
        self._resting: dict[str, float] = {}

    def find_idle(self, busy: set[_Seat]) -> list[_Seat]:
        """Return the seats that may be given a shard.

        Raises:
            EvaluatorFault: no node has a processor.
        """
        nodes = find_nodes()
        if not nodes and not busy:
            raise EvaluatorFault("no node of the Ray cluster has a processor; start one with `ray start --num-cpus`")
        now = time.monotonic()
        seats = [
            _Seat(node, number)
            for node, cores in nodes.items()
            if self._resting.get(node, 0.0) <= now
            for number in range(1 if self._chain.is_alone else min(cores, self._runner.workers or cores))
        ]
        # Every node has a shard before one has two.
        return sorted((seat for seat in seats if seat not in busy), key=lambda seat: seat.number)

    def ask(self, seat: _Seat, given: str, paths: list[str]) -> Any:
        """Give a worker a shard; return the reference of its answer."""
        from microcoder.dataset.pipeline.workers import ShardWorker

        if seat not in self._workers:
            shared = {name: SharedHere(actor) for name, actor in self._shared.items()}
            self._workers[seat] = start_actor(ShardWorker, seat.node, self._chain, None, shared)
        return self._workers[seat].take.remote(given, paths)

    def dismiss(self, seat: _Seat) -> None:
        """End a worker, and leave its node alone for a while: Ray may not know yet that it is gone."""
        kill_actor(self._workers.pop(seat))
        self._resting[seat.node] = time.monotonic() + _REST_SECONDS

    def close(self) -> None:
        """End all."""
        for actor in (*self._workers.values(), *self._shared.values()):
            kill_actor(actor)


class _Shared:
    """What the workers of a step share, in one process on the machine of the build."""

    def __init__(self, shares: Callable[..., AbstractContextManager[Any]], settings: Any) -> None:
        # Ended with its process.
        self._object = ExitStack().enter_context(shares(settings))

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Call one of its methods."""
        return getattr(self._object, method)(*arguments)


class SharedHere:
    """The same, as a worker sees it: its methods are called there."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *arguments: ray.get(self._actor.call.remote(method, arguments))
