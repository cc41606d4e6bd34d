"""Worker processes: one shard after the other through a chain of steps, on this machine or on Ray's (`nodes.py`).

Shards over the nodes of a Ray cluster: a worker a core, or one a node for steps that spread over its cores.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import ray
from ray.exceptions import RayError, RayTaskError

from microcoder.data.formats.candidates import Candidate
from microcoder.data.pipeline.parts import KeptRows, Ticker, is_whole, read_kept, write_part
from microcoder.data.pipeline.steps import Barrier, MapStep, Row, Step, Work
from microcoder.judge.core.errors import DataError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.machine import count_processors
from microcoder.judge.fleet.ray import allow_slow_start, find_nodes, kill_actor, start_actor

_LOOK_SECONDS, _PAUSE_SECONDS, _REST_SECONDS = 5.0, 0.5, 15.0
_MOST_LOSSES = 3
_LOG = logging.getLogger(__name__)


class _Seat(NamedTuple):
    """State of one worker."""

    node: str
    number: int


def run_on_nodes(
    chain: Chain, given: Sequence[str], paths: Sequence[list[str]], runner: Runner
) -> Iterator[tuple[int, Looks]]:
    """Have each shard taken through a chain by the next worker that is free.

    Shards of a lost node are done again by others; nodes that join are used.

    Yields:
        A shard's place in `given`, and its looks; in any order.
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
        """Return the seats that may be given a shard."""
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
    """Actor that holds the object which all workers of a step share, on the machine of the build."""

    def __init__(self, shares: Callable[..., AbstractContextManager[Any]], settings: Any) -> None:
        # Ended with its process.
        self._object = ExitStack().enter_context(shares(settings))

    def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Call a method of the shared object."""
        return getattr(self._object, method)(*arguments)


class SharedHere:
    """Proxy in a worker: forwards method calls to the actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):
            raise AttributeError(method)
        return lambda *arguments: ray.get(self._actor.call.remote(method, arguments))


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs steps, in processes here or on Ray."""

    kind: Literal["native", "ray"] = "native"
    workers: int | None = None
    """Processes at the same time, on Ray those of each node; None: one a core."""
    address: str | None = None
    """Address of a Ray cluster; None starts one here."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps that a worker does one after the other while it has a shard at hand."""

    steps: tuple[MapStep, ...]
    barrier: Step | None = None
    """Barrier that looks at the rows once they are through."""

    @property
    def first(self) -> Step:
        """First step of the chain."""
        step = self.steps[0] if self.steps else self.barrier
        assert step is not None
        return step

    @property
    def is_alone(self) -> bool:
        """One shard at a time on a machine."""
        return any(step.runs == "alone" for step in self.steps)


class Looks(NamedTuple):
    """A barrier's looks at a shard's rows."""

    ids: list[str]
    looks: Sequence[Any]


def run_chain(
    chain: Chain, given: Sequence[str], paths: Sequence[list[str]], runner: Runner
) -> Iterator[tuple[int, Looks]]:
    """Have each shard taken through a chain, by as many worker processes as there may be.

    Args:
        chain: the steps.
        given: for each shard the part that the first step reads, or the description of the shard itself.
        paths: for each shard the parts of the steps; those that are there are not made again.
        runner: where to run.

    Yields:
        A shard's place in `given`, and its looks, empty without a barrier; in any order. Nothing runs before the
        first is asked for.

    Raises:
        DataError: a step lost, added or reordered rows.
        EvaluatorFault: a worker process or a node was lost.
        MicroCoderError: what a step itself raises, from a worker process as from this one.
    """
    if runner.kind == "ray":
        yield from run_on_nodes(chain, given, paths, runner)
        return
    workers = min(1 if chain.is_alone else runner.workers or count_processors(), len(given))
    if workers > 1:
        yield from _run_in_processes(chain, given, paths, workers)
        return
    with ExitStack() as opened:
        worker = ShardWorker(chain, opened)
        for place, (first, of_shard) in enumerate(zip(given, paths, strict=True)):
            yield place, worker.take(first, of_shard)


def _run_in_processes(
    chain: Chain, given: Sequence[str], paths: Sequence[list[str]], workers: int
) -> Iterator[tuple[int, Looks]]:
    # Spawned, not forked: this process has threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(chain,)) as pool:
        places = {pool.submit(_take_shard, *of_shard): at for at, of_shard in enumerate(zip(given, paths, strict=True))}
        try:
            for future in as_completed(places):
                # Taken out, so that what was found is not held here until the last shard is through.
                yield places.pop(future), future.result()
        except BrokenProcessPool:
            raise EvaluatorFault(
                "a worker process was killed, as a rule for want of memory; type the same command again with fewer "
                "--workers or less --bytes-per-shard, what is done is kept"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


_WORKER: list[ShardWorker] = []
"""Program of a worker process."""


def _start_worker(chain: Chain) -> None:
    # Ctrl-C is for the build: it waits for the shards at hand and tells of them once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _WORKER.append(ShardWorker(chain))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker of a build that was killed would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _take_shard(given: str, paths: list[str]) -> Looks:
    return _WORKER[0].take(given, paths)


class ShardWorker:
    """One worker process: set up once for a chain, then one shard after the other."""

    def __init__(self, chain: Chain, opened: ExitStack | None = None, shared: Mapping[str, Any] | None = None) -> None:
        # What a process of its own opened ends with it.
        self._opened = opened or ExitStack()
        self._shared = dict(shared or {})
        self._chain = chain
        self._works: dict[str, Work] = {}
        self._barrier: Barrier | None = None

    def take(self, given: str, paths: list[str]) -> Looks:
        """Make the parts of a shard that are missing; return what the barrier has to know of the last."""
        rows: list[Row] | None = None
        before = given
        for step, path in zip(self._chain.steps, map(Path, paths), strict=True):
            if is_whole(path):
                rows, before = None, str(path)
                continue
            made = self._make(step, path, before, rows)
            # Those of the last step, tests that were made here among them, go to their file as they come.
            rows = None if step is self._chain.steps[-1] and not self._chain.barrier else list(made)
            write_part(path, made if rows is None else rows)
            Ticker(path, 1).end()
            before = str(path)
        barrier = self._chain.barrier
        return self._look(_kept(rows, before), barrier) if barrier else Looks([], [])

    def _make(self, step: MapStep, path: Path, before: str, rows: list[Row] | None) -> Iterator[Row]:
        """Yield the rows of a step, and report progress with each."""
        if before.startswith("{"):
            described = json.loads(before)
            yield from map(step.keep, _tell(self._work(step)(described), Ticker(path, described["num_rows"])))
            return
        given: Collection[Candidate] = KeptRows(Path(before)) if rows is None else _kept(rows, before)
        ids = given.ids if isinstance(given, KeptRows) else [candidate.id for candidate in given]
        found = []
        for row in _tell(self._work(step)(given), Ticker(path, len(ids))):
            found.append(row.id)
            yield step.keep(row)
        if ids != found:
            raise DataError(
                f"step {step.name} lost, added or reordered rows; this is a fault of ours: please report it"
            )

    def _work(self, step: MapStep) -> Work:
        if step.name not in self._works:
            if step.shares and step.name not in self._shared:
                self._shared[step.name] = self._opened.enter_context(step.shares(step.settings))
            shared = (self._shared[step.name],) if step.shares else ()
            self._works[step.name] = self._opened.enter_context(step.opens(step.settings, *shared))
        return self._works[step.name]

    def _look(self, candidates: list[Candidate], step: Step) -> Looks:
        self._barrier = self._barrier or step.opens(step.settings)
        return Looks([candidate.id for candidate in candidates], self._barrier.look(candidates))


def _tell(made: Iterable[Row], ticker: Ticker) -> Iterator[Row]:
    """Yield the rows of a step, and say how many there are so far."""
    for number, row in enumerate(made, 1):
        ticker.tell(number)
        yield row


def _kept(rows: list[Row] | None, path: str) -> list[Candidate]:
    return read_kept(Path(path)) if rows is None else [row for row in rows if isinstance(row, Candidate)]
