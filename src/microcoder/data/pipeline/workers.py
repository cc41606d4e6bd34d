"""Worker processes: one shard after the other through a step, on this machine or as tasks of Ray's."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from microcoder.data.pipeline.parts import KeptRows, read_kept, ticked, write_part
from microcoder.data.pipeline.steps import MapStep, Row, Step
from microcoder.judge.core.errors import DataError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.machine import count_processors

_MOST_LOSSES = 3
"""How often a shard is done again that was lost with its worker or node."""


def run_on_nodes(step: Step, given: Sequence[str], paths: Sequence[str], runner: Runner) -> Iterator[tuple[int, Looks]]:
    """Have each shard taken through a step by a task of Ray's, which does it again elsewhere if its node is lost.

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
    cores = least if step.runs == "alone" else max(1, least // min(least, runner.workers or least))
    take = ray.remote(num_cpus=cores, max_retries=_MOST_LOSSES, scheduling_strategy="SPREAD")(_take_on_node)
    known = ray.put((uuid.uuid4().hex, step))
    waiting = iter(enumerate(zip(given, paths, strict=True)))
    running: dict[Any, int] = {}
    try:
        while True:
            # Nodes that join are used.
            most = len(find_nodes()) if step.runs == "alone" else _MOST_WAITING
            for place, (one, path) in islice(waiting, max(1, most) - len(running)):
                running[take.remote(known, one, path)] = place
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
"""Of a process of Ray's, which does one shard after the other: the worker of the step that it is at."""


def _take_on_node(known: tuple[str, Step], given: str, path: str) -> Looks:
    name, step = known
    if name not in _ON_NODE:
        for _, opened in _ON_NODE.values():
            opened.close()
        _ON_NODE.clear()
        opened = ExitStack()
        _ON_NODE[name] = ShardWorker(step, opened), opened
    return _ON_NODE[name][0].take(given, path)


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs steps, in processes here or on Ray."""

    kind: Literal["native", "ray"] = "native"
    workers: int | None = None
    """Processes at the same time, on Ray those of each node; None: one a core."""
    address: str | None = None
    """Address of a Ray cluster; None starts one here."""


class Looks(NamedTuple):
    """A barrier's looks at a shard's rows."""

    ids: list[str]
    looks: Sequence[Any]


def run_step(step: Step, given: Sequence[str], paths: Sequence[str], runner: Runner) -> Iterator[tuple[int, Looks]]:
    """Have each shard taken through a step, or looked at by a barrier, by as many worker processes as there may be.

    Args:
        step: the step.
        given: for each shard the part that the step reads, or the description of the shard itself.
        paths: for each shard the part that the step writes; a barrier writes none.
        runner: where to run.

    Yields:
        A shard's place in `given`, and its looks, empty without a barrier; in any order. Nothing runs before the
        first is asked for.

    Raises:
        DataError: the step lost, added or reordered rows.
        EvaluatorFault: a worker process or a node was lost.
        MicroCoderError: what a step itself raises, from a worker process as from this one.
    """
    if runner.kind == "ray":
        yield from run_on_nodes(step, given, paths, runner)
        return
    workers = min(1 if step.runs == "alone" else runner.workers or count_processors(), len(given))
    if workers > 1:
        yield from _run_in_processes(step, given, paths, workers)
        return
    with ExitStack() as opened:
        worker = ShardWorker(step, opened)
        for place, (first, path) in enumerate(zip(given, paths, strict=True)):
            yield place, worker.take(first, path)


def _run_in_processes(
    step: Step, given: Sequence[str], paths: Sequence[str], workers: int
) -> Iterator[tuple[int, Looks]]:
    # Spawned, not forked: this process has threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_start_worker, initargs=(step,)) as pool:
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


def _start_worker(step: Step) -> None:
    # Ctrl-C is for the build: it waits for the shards at hand and tells of them once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What a process of its own opened ends with it.
    _WORKER.append(ShardWorker(step, ExitStack()))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker of a build that was killed would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _take_shard(given: str, path: str) -> Looks:
    return _WORKER[0].take(given, path)


class ShardWorker:
    """One worker process: set up once for a step, then one shard after the other."""

    def __init__(self, step: Step, opened: ExitStack) -> None:
        self._step = step
        self._open = step.opens(step.settings)
        self._work = opened.enter_context(self._open) if isinstance(step, MapStep) else None

    def take(self, given: str, path: str) -> Looks:
        """Make a part; or, for a barrier, return what it has to know of one."""
        if self._work is None:
            candidates = read_kept(Path(given))
            return Looks([candidate.id for candidate in candidates], self._open.look(candidates))
        write_part(Path(path), self._make(self._work, given, Path(path)))
        return Looks([], [])

    def _make(self, work: Callable[[Any], Iterable[Row]], given: str, path: Path) -> Iterator[Row]:
        """Yield the rows of a step as they come, and report progress with each."""
        step = self._step
        if given.startswith("{"):
            described = json.loads(given)
            yield from map(step.keep, ticked(work(described), path, described["num_rows"]))
            return
        kept = KeptRows(Path(given))
        found = []
        for row in ticked(work(kept), path, len(kept.ids)):
            found.append(row.id)
            yield step.keep(row)
        if kept.ids != found:
            raise DataError(
                f"step {step.name} lost, added or reordered rows; this is a fault of ours: please report it"
            )
