"""Runs steps over shards, in worker processes or as Ray tasks, and computes only results that are missing.

The file name of each result holds the key of everything that decides it. A run that was killed finds its files and
resumes; a changed step has other keys and is computed again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from microcoder.data.pipeline.steps import (
    BarrierStep,
    InputShard,
    KeptRows,
    MapStep,
    Part,
    Row,
    Spilled,
    Step,
    count_reasons,
    digest,
    step_key,
    write_part,
)
from microcoder.judge.core.errors import DataError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.machine import count_processors, end_with_parent

Looks = Sequence[Any]
"""What a barrier's `look` returns for the rows of a shard; empty for other steps."""
_MOST_LOSSES = 3
"""Retries of a shard that was lost with its worker or node."""


def run_on_nodes(
    step: Step, given: Sequence[Any], paths: Sequence[Path], runner: Runner
) -> Iterator[tuple[int, Looks]]:
    """Run a step on each shard as a Ray task, which is retried on another node if its node is lost.

    Yields:
        A shard's index in `given`, and its looks; in any order.
    """
    # A start of any verb that does without Ray need not wait for it.
    import ray
    from ray.exceptions import RayError, RayTaskError

    from microcoder.judge.fleet.ray import allow_slow_start, find_nodes

    if not ray.is_initialized():
        if os.environ.get("RAY_ADDRESS", "local") == "local":
            allow_slow_start(os.environ)
        ray.init(log_to_driver=False)
    nodes = find_nodes()
    if not nodes:
        raise EvaluatorFault("no node of the Ray cluster has a processor; start one with `ray start --num-cpus`")
    least = min(nodes.values())
    # A step that runs alone is given a whole node, of unequal ones as much as the smallest has.
    cores = least if step.runs == "alone" else max(1, least // min(least, runner.workers or least))
    take = ray.remote(num_cpus=cores, max_retries=_MOST_LOSSES, scheduling_strategy="SPREAD")(_take)
    known = ray.put((uuid.uuid4().hex, step))
    waiting = iter(enumerate(zip(given, paths, strict=True)))
    running: dict[Any, int] = {}
    try:
        while True:
            # Nodes that join are used.
            most = len(find_nodes()) if step.runs == "alone" else _MOST_WAITING
            # Where several nodes are lost at once, more shards are running than there are nodes left.
            for place, (one, path) in islice(waiting, max(0, max(1, most) - len(running))):
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
"""Most shards that are submitted to Ray at a time."""
Take = Callable[[Any, Path], Looks]
"""Writes the part of a shard, from its input to a path; for a barrier, returns the shard's looks instead."""
_TAKES: dict[str, tuple[Take, ExitStack]] = {}
"""In a worker process: the `Take` of its present step by a name of it, and what closes it."""


def _take(known: tuple[str, Step], given: Any, path: Path) -> Looks:
    name, step = known
    if name not in _TAKES:
        for _, opened in _TAKES.values():
            opened.close()
        _TAKES.clear()
        opened = ExitStack()
        _TAKES[name] = _open(step, opened), opened
    return _TAKES[name][0](given, path)


@dataclass(slots=True)
class Runner:
    """Runs steps in local processes, reused from step to step since each takes seconds to start, or on Ray."""

    kind: Literal["native", "ray"] = "native"
    workers: int | None = None
    """Parallel processes, on Ray per node; None: one per core."""
    _pool: ProcessPoolExecutor | None = field(default=None, init=False, repr=False)

    def close(self) -> None:
        """End the local worker processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def run(self, step: Step, given: Sequence[Any], paths: Sequence[Path]) -> Iterator[tuple[int, Looks]]:
        """Run a step, or a barrier's `look`, on each shard, in up to `workers` processes.

        Args:
            given: for each shard the path of the part that the step reads; for the first step, the shard's `place`.
            paths: for each shard the path of the part that the step writes; unused for a barrier.

        Yields:
            A shard's index in `given`, and its looks, empty without a barrier; in any order. Nothing runs before the
            first `next`.
        """
        shards, num = enumerate(zip(given, paths, strict=True)), self.workers or count_processors()
        if self.kind == "ray":
            yield from run_on_nodes(step, given, paths, self)
            return
        if step.runs == "alone" or num == 1 or len(given) == 1:
            # The step may need the memory of the others.
            self.close()
            with ExitStack() as opened:
                take = _open(step, opened)
                yield from ((place, take(*of_shard)) for place, of_shard in shards)
            return
        if self._pool is None:
            # Spawned, not forked: this process has threads.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(num, mp_context=context, initializer=_start_worker)
        places = {self._pool.submit(_take, (step.name, step), *of_shard): place for place, of_shard in shards}
        try:
            for future in as_completed(places):
                # Taken out, so that what was found is not held here until the last shard is through.
                yield places.pop(future), future.result()
        except BrokenProcessPool:
            raise EvaluatorFault(
                "a worker process was killed, as a rule for want of memory; type the same command again with fewer "
                "--workers or less --bytes-per-shard, what is done is kept"
            ) from None


def _start_worker() -> None:
    # Ctrl-C is for the build: it waits for the shards at hand and tells of them once.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def _open(step: Step, opened: ExitStack) -> Take:
    """Open a step in this process and return its `Take`; `opened` closes what the step opens."""
    if not isinstance(step, MapStep):
        return lambda given, path: step.opens(step.settings).look(list(KeptRows(given)))
    work = step.opens(step.settings, opened)

    def make(given: Any) -> Iterator[Row]:
        """Yield the rows of a step as they come."""
        if not isinstance(given, Path):
            yield from map(step.keep, work(given))
            return
        kept = KeptRows(given)
        found = []
        for row in work(kept):
            found.append(row.id)
            yield step.keep(row)
        if kept.ids != found:
            raise DataError(f"step {step.name} lost, added or reordered rows; this is a bug: please report it")

    def take(given: Any, path: Path) -> Looks:
        write_part(path, make(given))
        return ()

    return take


OnProgress = Callable[[str, int, int], None]
"""Called with a step's name, the number of input rows in shards that it has done, and in all shards."""


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Row counts of one step: rows in are rows kept plus rows rejected."""

    step: str
    stage: str
    num_in: int
    num_kept: int
    num_rejected: int
    reasons: Mapping[str, int]
    """Why rows were rejected, the commonest first."""
    num_redone: int
    """Shards computed in this run; the others existed already."""


def run_steps(
    shards: Sequence[InputShard],
    collect: MapStep,
    steps: Sequence[Step],
    *,
    work: Path,
    runner: Runner,
    on_progress: OnProgress = lambda step, done, total: None,
) -> tuple[list[list[Part]], list[StepCounts]]:
    """Run all steps over all shards; return, by step, the parts and the row counts.

    Args:
        collect: the first step; its work gets a shard's `place` instead of candidates.
    """
    everything = (collect, *steps)
    plan = _plan(everything, shards, work)
    redone = {name: sum(not part.is_there for part in parts) for name, parts in plan.items()}
    num_rows = sum(shard.num_rows for shard in shards)

    before: list[Part] = []
    with closing(runner):
        for step in everything:
            parts = plan[step.name]
            missing = [index for index, part in enumerate(parts) if not part.is_there]
            done = num_rows - sum(shards[index].num_rows for index in missing)
            on_progress(step.name, done, num_rows)
            places: Iterator[int] = iter(())
            if isinstance(step, BarrierStep) and missing:
                looks = Spilled()
                of_rows = [part.path.absolute() for part in before]
                for place, found in runner.run(step, of_rows, of_rows):
                    looks.add(place, found)
                places = _decide(step, looks, before, parts)
            elif missing:
                given = [before[index].path.absolute() if before else shards[index].place for index in missing]
                made = runner.run(step, given, [parts[index].path.absolute() for index in missing])
                places = (missing[place] for place, _ in made)
            for index in places:
                done += shards[index].num_rows
                on_progress(step.name, done, num_rows)
            before = parts
    return list(plan.values()), _count(shards, everything, plan, redone)


def count_missing(
    shards: Sequence[InputShard], collect: MapStep, steps: Sequence[Step], *, work: Path
) -> dict[str, int]:
    """Return, by step, the number of input rows in shards that it has not done yet."""
    return {
        name: sum(shard.num_rows for shard, part in zip(shards, parts, strict=True) if not part.is_there)
        for name, parts in _plan((collect, *steps), shards, work).items()
    }


def _plan(steps: Sequence[Step], shards: Sequence[InputShard], work: Path) -> dict[str, list[Part]]:
    """Return the parts of every step; each key is a digest of the step's key and its input's."""
    plan: dict[str, list[Part]] = {}
    keys = [digest("input", shard.digest) for shard in shards]
    for step in steps:
        own = step_key(step)
        if isinstance(step, BarrierStep):
            everything = digest(own, *keys)
            keys = [digest(everything, str(shard.number)) for shard in shards]
        else:
            keys = [digest(own, key) for key in keys]
        folder = work / step.name
        # With the key in its name a stale part is never taken.
        paths = [folder / f"{shard.number:06d}-{key}.parquet" for shard, key in zip(shards, keys, strict=True)]
        plan[step.name] = list(map(Part, keys, paths))
    return plan


def _count(
    shards: Sequence[InputShard], steps: Sequence[Step], plan: Mapping[str, list[Part]], redone: Mapping[str, int]
) -> list[StepCounts]:
    step_counts = []
    num_in = sum(shard.num_rows for shard in shards)
    for step in steps:
        reasons = sum((count_reasons(part.path) for part in plan[step.name]), Counter())
        kept = reasons.pop("", 0)
        rejected = reasons.total()
        if kept + rejected != num_in:
            raise DataError(
                f"step {step.name} was given {num_in} rows and left {kept} + {rejected}; "
                "this is a bug: please report it with the config"
            )
        why = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
        step_counts.append(StepCounts(step.name, step.stage, num_in, kept, rejected, why, redone[step.name]))
        num_in = kept
    return step_counts


def _decide(step: Step, looks: Spilled, before: Sequence[Part], parts: Sequence[Part]) -> Iterator[int]:
    """Let a barrier decide from all looks, then write the missing parts and yield the index of each.

    In memory are the rows of one shard and, for one of them at a time, the other rows that it needs.
    """
    barrier = step.opens(step.settings)
    barrier.decide(looks)
    missing = [index for index, part in enumerate(parts) if not part.is_there]
    wanted = {name for index in missing for own in KeptRows(before[index].path).ids for name in barrier.needs(own)}
    aside = Spilled()
    for kept in (KeptRows(part.path) for part in before):
        for one in kept if wanted.intersection(kept.ids) else ():
            if one.id in wanted:
                aside.add(one.id, one)
    for index in missing:
        rows = list(KeptRows(before[index].path))
        decided = (barrier.apply(one, {name: aside.find(name) for name in barrier.needs(one.id)}) for one in rows)
        write_part(parts[index].path, map(step.keep, decided))
        yield index
