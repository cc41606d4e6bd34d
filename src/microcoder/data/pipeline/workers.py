"""Worker processes: one shard after the other through a chain of steps, on this machine or as tasks of Ray's."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import uuid
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from microcoder.data.formats.candidates import Candidate
from microcoder.data.pipeline.parts import KeptRows, is_whole, read_kept, ticked, write_part
from microcoder.data.pipeline.steps import Barrier, MapStep, Row, Step, Work
from microcoder.judge.core.errors import DataError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.machine import count_processors

_MOST_LOSSES = 3
"""How often a shard is done again that was lost with its worker or node."""


def run_on_nodes(
    chain: Chain, given: Sequence[str], paths: Sequence[list[str]], runner: Runner
) -> Iterator[tuple[int, Looks]]:
    """Have each shard taken through a chain by a task of Ray's, which does it again elsewhere if its node is lost.

    Yields:
        A shard's place in `given`, and its looks; in any order.
    """
    # A start of any verb that does without Ray need not wait for it.
    import ray
    from ray.exceptions import RayError, RayTaskError

    from microcoder.judge.fleet.ray import allow_slow_start, find_nodes

    if not ray.is_initialized():
        if runner.address is None:
            allow_slow_start(os.environ)
        ray.init(address=runner.address, log_to_driver=False)
    nodes = find_nodes()
    if not nodes:
        raise EvaluatorFault("no node of the Ray cluster has a processor; start one with `ray start --num-cpus`")
    least = min(nodes.values())
    # A step that runs alone is given a whole node, of unequal ones as much as the smallest has.
    cores = least if chain.is_alone else max(1, least // min(least, runner.workers or least))
    take = ray.remote(num_cpus=cores, max_retries=_MOST_LOSSES, scheduling_strategy="SPREAD")(_take_on_node)
    known = ray.put((uuid.uuid4().hex, chain))
    waiting = iter(enumerate(zip(given, paths, strict=True)))
    running: dict[Any, int] = {}
    try:
        while True:
            # Nodes that join are used.
            most = len(find_nodes()) if chain.is_alone else _MOST_WAITING
            for place, (one, of_shard) in islice(waiting, max(1, most) - len(running)):
                running[take.remote(known, one, of_shard)] = place
            if not running:
                return
            (done,), _ = ray.wait(list(running))
            place = running.pop(done)
            try:
                yield place, ray.get(done)
            except RayTaskError as error:
                # Our own error comes out as itself, not as a fault of Ray's.
                raise error.cause if isinstance(error.cause, MicroCoderError) else error from None
            except RayError as error:
                raise EvaluatorFault(
                    f"{given[place]}: lost {_MOST_LOSSES + 1} times with its node ({type(error).__name__}); "
                    "look into Ray's logs, then type the same command again"
                ) from None
    finally:
        if ray.is_initialized():
            for reference in running:
                ray.cancel(reference, force=True)


_MOST_WAITING = 10_000
"""Shards that Ray is given at a time."""
_ON_NODE: dict[str, tuple[ShardWorker, ExitStack]] = {}
"""Of a process of Ray's, which does one shard after the other: the worker of the chain that it is at."""


def _take_on_node(known: tuple[str, Chain], given: str, paths: list[str]) -> Looks:
    name, chain = known
    if name not in _ON_NODE:
        for _, opened in _ON_NODE.values():
            opened.close()
        _ON_NODE.clear()
        opened = ExitStack()
        _ON_NODE[name] = ShardWorker(chain, opened), opened
    return _ON_NODE[name][0].take(given, paths)


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

    def __init__(self, chain: Chain, opened: ExitStack | None = None) -> None:
        # What a process of its own opened ends with it.
        self._opened = opened or ExitStack()
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
            before = str(path)
        barrier = self._chain.barrier
        return self._look(_kept(rows, before), barrier) if barrier else Looks([], [])

    def _make(self, step: MapStep, path: Path, before: str, rows: list[Row] | None) -> Iterator[Row]:
        """Yield the rows of a step, and report progress with each."""
        if before.startswith("{"):
            described = json.loads(before)
            yield from map(step.keep, ticked(self._work(step)(described), path, described["num_rows"]))
            return
        given: Collection[Candidate] = KeptRows(Path(before)) if rows is None else _kept(rows, before)
        ids = given.ids if isinstance(given, KeptRows) else [candidate.id for candidate in given]
        found = []
        for row in ticked(self._work(step)(given), path, len(ids)):
            found.append(row.id)
            yield step.keep(row)
        if ids != found:
            raise DataError(
                f"step {step.name} lost, added or reordered rows; this is a fault of ours: please report it"
            )

    def _work(self, step: MapStep) -> Work:
        if step.name not in self._works:
            self._works[step.name] = self._opened.enter_context(step.opens(step.settings))
        return self._works[step.name]

    def _look(self, candidates: list[Candidate], step: Step) -> Looks:
        self._barrier = self._barrier or step.opens(step.settings)
        return Looks([candidate.id for candidate in candidates], self._barrier.look(candidates))


def _kept(rows: list[Row] | None, path: str) -> list[Candidate]:
    return read_kept(Path(path)) if rows is None else [row for row in rows if isinstance(row, Candidate)]
