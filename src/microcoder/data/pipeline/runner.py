"""Runs one step over shards, in worker processes of this machine or as Ray tasks."""

from __future__ import annotations

import multiprocessing
import os
import signal
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from microcoder.data.pipeline.parts import KeptRows, write_part
from microcoder.data.pipeline.steps import MapStep, Row, Step
from microcoder.judge.core.errors import DataError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.machine import count_processors, end_with_parent

Looks = Sequence[Any]
"""What a barrier's `look` returns for the rows of a shard; empty for other steps."""
Take = Callable[[Any, Path], Looks]
"""Writes the part of a shard, from its input to a path; for a barrier, returns its looks."""
_MOST_RETRIES = 3
"""Retries of a shard that was lost with its worker or node."""
_OPENED: dict[str, tuple[Take, ExitStack]] = {}
"""In a worker process: name of its present step -> the step's `Take`, and what closes it."""


@dataclass(slots=True)
class Runner:
    """Runs steps in local processes, or on Ray.

    Processes are reused from step to step, since each takes seconds to start.
    """

    kind: Literal["native", "ray"] = "native"
    workers: int | None = None
    """Parallel processes, on Ray per node; None: one per core."""
    _pool: ProcessPoolExecutor | None = field(default=None, init=False, repr=False)

    def close(self) -> None:
        """End the local worker processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def run(
        self,
        step: Step,
        inputs: Sequence[Any],
        paths: Sequence[Path],
    ) -> Iterator[tuple[int, Looks]]:
        """Run a step, or a barrier's `look`, on each shard, in up to `workers` processes.

        Args:
            inputs: for each shard the path of the part that the step reads; for the first step, the
                shard's `place`.
            paths: for each shard the path of the part that the step writes; unused for a barrier.

        Yields:
            A shard's index in `inputs`, and its looks, empty without a barrier; in any order.
            Nothing runs before the first `next`.
        """
        if self.kind == "ray":
            yield from run_on_nodes(step, inputs, paths, self.workers)
            return
        num_workers = self.workers or count_processors()
        # Nothing to share: such a step spreads over the cores itself, or there is one shard, or one
        # worker.
        if step.runs == "alone" or num_workers == 1 or len(inputs) == 1:
            # The step may need the memory of the others.
            self.close()
            yield from _run_here(step, inputs, paths)
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                num_workers,
                # Spawned, not forked: this process has threads.
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_start_worker,
            )
        index_of = {}
        shards = zip(inputs, paths, strict=True)
        for index, (shard_input, path) in enumerate(shards):
            future = self._pool.submit(_take, (step.name, step), shard_input, path)
            index_of[future] = index
        try:
            for future in as_completed(index_of):
                # Taken out, so that what was found is not held here until the last shard is done.
                yield index_of.pop(future), future.result()
        except BrokenProcessPool:
            raise EvaluatorFault(
                "a worker process was killed, as a rule for want of memory; type the same command "
                "again with fewer --workers or less --rows-per-shard, what is done is kept"
            ) from None


def _run_here(
    step: Step,
    inputs: Sequence[Any],
    paths: Sequence[Path],
) -> Iterator[tuple[int, Looks]]:
    """Run a step on each shard in this process, one after the other."""
    with ExitStack() as opened:
        take = _open(step, opened)
        shards = zip(inputs, paths, strict=True)
        for index, (shard_input, path) in enumerate(shards):
            yield index, take(shard_input, path)


def _start_worker() -> None:
    # Ctrl-C is for the build: it waits for the shards at hand and tells of them once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _take(named_step: tuple[str, Step], shard_input: object, path: Path) -> Looks:
    """Run a step on one shard, in a worker process that keeps the step open for further shards."""
    name, step = named_step
    if name not in _OPENED:
        # The step before is done: what it opened, such as an index in memory, is let go.
        for _, opened in _OPENED.values():
            opened.close()
        _OPENED.clear()
        opened = ExitStack()
        _OPENED[name] = (_open(step, opened), opened)
    take, _ = _OPENED[name]
    return take(shard_input, path)


def _open(step: Step, opened: ExitStack) -> Take:
    """Open a step in this process and return the function that takes its shards.

    Args:
        opened: closes what the step opens.
    """
    if not isinstance(step, MapStep):

        def look(shard_input: object, path: Path) -> Looks:
            # Only a first step, which is no barrier, reads places.
            assert isinstance(shard_input, Path)
            opened_step = step.opens(step.settings)
            rows = list(KeptRows(shard_input))
            return opened_step.look(rows)

        return look
    work = step.opens(step.settings, opened)

    def make(shard_input: object) -> Iterator[Row]:
        """Yield the rows of the step's work; DataError if some were lost, added or reordered."""
        # The first step reads raw rows, which have no ids to compare yet.
        if not isinstance(shard_input, Path):
            yield from map(step.keep, work(shard_input))
            return
        kept = KeptRows(shard_input)
        ids = []
        for row in work(kept):
            ids.append(row.id)
            yield step.keep(row)
        if kept.ids != ids:
            raise DataError(
                f"step {step.name} lost, added or reordered rows; this is a bug: please report it"
            )

    def take(shard_input: object, path: Path) -> Looks:
        write_part(path, make(shard_input))
        return ()

    return take


def run_on_nodes(
    step: Step,
    inputs: Sequence[Any],
    paths: Sequence[Path],
    workers: int | None,
) -> Iterator[tuple[int, Looks]]:
    """Run a step on each shard as a Ray task.

    If a node is lost, its tasks are run again on another node.

    Args:
        workers: parallel tasks per node; None: one per core.

    Yields:
        A shard's index in `inputs`, and its looks; in any order.
    """
    # A start of any verb that does without Ray need not wait for it.
    import ray
    from ray.exceptions import RayError, RayTaskError

    from microcoder.judge.fleet.ray import find_nodes

    _start_ray()
    take = ray.remote(
        num_cpus=_cores_of_a_task(step, workers),
        max_retries=_MOST_RETRIES,
        scheduling_strategy="SPREAD",
    )(_take)
    # Under a name that no other run has: a worker may still have a step of the same name open.
    named_step = ray.put((uuid.uuid4().hex, step))
    waiting = iter(enumerate(zip(inputs, paths, strict=True)))
    running: dict[Any, int] = {}
    try:
        while True:
            # Nodes that join are used.
            most = len(find_nodes()) if step.runs == "alone" else len(inputs)
            # Where several nodes are lost at once, more shards run than there are nodes left.
            num_free = max(0, max(1, most) - len(running))
            for index, (shard_input, path) in islice(waiting, num_free):
                running[take.remote(named_step, shard_input, path)] = index
            if not running:
                return
            (done,), _ = ray.wait(list(running))
            index = running.pop(done)
            try:
                yield index, ray.get(done)
            except RayTaskError as error:
                # Our own error comes out as itself, not as a fault of Ray's.
                if isinstance(error.cause, MicroCoderError):
                    raise error.cause from None
                raise
            except RayError as error:
                raise EvaluatorFault(
                    f"{inputs[index]}: lost {_MOST_RETRIES + 1} times with its node "
                    f"({type(error).__name__}); look into Ray's logs, "
                    "then type the same command again"
                ) from None
    finally:
        if ray.is_initialized():
            for reference in running:
                ray.cancel(reference, force=True)


def _start_ray() -> None:
    """Connect to the cluster that RAY_ADDRESS names, or start Ray on this machine."""
    import ray

    from microcoder.judge.fleet.ray import allow_slow_start

    if ray.is_initialized():
        return
    if os.environ.get("RAY_ADDRESS", "local") == "local":
        allow_slow_start(os.environ)
    ray.init(log_to_driver=False)


def _cores_of_a_task(step: Step, workers: int | None) -> int:
    """Return how many cores a task of a step asks Ray for.

    A step that runs alone is given a whole node; if nodes differ, as many cores as the smallest
    has.
    """
    from microcoder.judge.fleet.ray import find_nodes

    nodes = find_nodes()
    if not nodes:
        raise EvaluatorFault(
            "no node of the Ray cluster has a processor; start one with `ray start --num-cpus`"
        )
    least = min(nodes.values())
    if step.runs == "alone":
        return least
    # So many cores a task that `workers` of them fill the smallest node.
    return max(1, least // min(least, workers or least))
