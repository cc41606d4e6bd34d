"""Runs steps over shards with Daft, natively or on Ray, and does only what is missing.

Daft spreads the work; what was done is ours to know: each result is a file whose name holds the key of everything
that decides it. A run that was killed finds its files and goes on; a changed step finds none of its own.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from microcoder.dataset.candidates import Candidate
from microcoder.dataset.pipeline.parts import Part, count_rows, read_kept, write_part
from microcoder.dataset.pipeline.steps import (
    Barrier,
    BarrierStep,
    InputShard,
    MapStep,
    Row,
    Step,
    Work,
    digest,
    load,
    open_work,
    step_key,
)
from microcoder.errors import DataError

OnProgress = Callable[[str, int, int], None]
"""Called with a step's name, its finished shards and all its shards."""

_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True, slots=True)
class Runner:
    """Where steps run."""

    kind: Literal["native", "ray"] = "native"
    workers: int | None = None
    """Processes at the same time; None: one a core."""
    address: str | None = None
    """Of a Ray cluster; None starts one here."""

    @property
    def num_workers(self) -> int:
        """Processes at the same time."""
        return self.workers or len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class Passage:
    """What came of one step: rows in are rows kept and rows rejected, to the row."""

    step: str
    stage: str
    num_in: int
    num_kept: int
    num_rejected: int
    num_redone: int
    """Shards that were worked on in this run; the others were there already."""


def run_steps(
    shards: Sequence[InputShard],
    collect: MapStep,
    steps: Sequence[Step],
    *,
    work: Path,
    runner: Runner,
    on_progress: OnProgress = lambda step, done, total: None,
) -> tuple[list[list[Part]], list[Passage]]:
    """Run all steps over all shards; return every step's parts and what came of it.

    Args:
        shards: the input.
        collect: the first step; its work is given the shards themselves.
        steps: the others, in order.
        work: folder of the parts.
        runner: where to run.
        on_progress: told of every finished shard.

    Raises:
        DataError: a step lost a row or made one up.
    """
    plan = _plan((collect, *steps), shards, work)
    redone = {name: sum(not part.is_there for part in parts) for name, parts in plan.items()}
    for chain in _chains((collect, *steps)):
        parts = [plan[step.name] for step in chain]
        before = _parts_before(chain[0], (collect, *steps), plan)
        missing = [index for index in range(len(shards)) if not all(of_step[index].is_there for of_step in parts)]
        for step, of_step in zip(chain, parts, strict=True):
            on_progress(step.name, sum(part.is_there for part in of_step), len(shards))
        if not missing:
            continue
        if isinstance(chain[0], BarrierStep):
            _run_barrier(chain[0], before, parts[0], on_progress)
        else:
            given = [str(before[index].path.absolute()) if before else _describe(shards[index]) for index in missing]
            paths = [[str(of_step[index].path.absolute()) for of_step in parts] for index in missing]
            with _watched(dict(zip((step.name for step in chain), parts, strict=True)), on_progress):
                _run_chain([step for step in chain if isinstance(step, MapStep)], given, paths, runner)
    return list(plan.values()), _count(shards, (collect, *steps), plan, redone)


def count_missing(
    shards: Sequence[InputShard], collect: MapStep, steps: Sequence[Step], *, work: Path
) -> dict[str, int]:
    """Return, for each step, the raw rows of the shards that it has still to do."""
    plan = _plan((collect, *steps), shards, work)
    return {
        name: sum(shard.num_rows for shard, part in zip(shards, parts, strict=True) if not part.is_there)
        for name, parts in plan.items()
    }


def _plan(steps: Sequence[Step], shards: Sequence[InputShard], work: Path) -> dict[str, list[Part]]:
    """Name every part of every step: each key holds the step's own and its input's."""
    plan: dict[str, list[Part]] = {}
    keys = [digest("input", shard.place, shard.digest) for shard in shards]
    for step in steps:
        own = step_key(step)
        if isinstance(step, BarrierStep):
            everything = digest(own, *keys)
            keys = [digest(everything, str(shard.number)) for shard in shards]
        else:
            keys = [digest(own, key) for key in keys]
        plan[step.name] = [Part.of(work, step.name, s.number, key) for s, key in zip(shards, keys, strict=True)]
    return plan


def _chains(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Group steps that a worker can do one after the other while it has a shard at hand."""
    chain: list[Step] = []
    for step in steps:
        is_free = isinstance(step, MapStep) and step.runs == "on_every_core"
        if chain and not is_free:
            yield chain
            chain = []
        chain.append(step)
        if not is_free:
            yield chain
            chain = []
    if chain:
        yield chain


def _parts_before(step: Step, steps: Sequence[Step], plan: Mapping[str, list[Part]]) -> list[Part]:
    """Return the parts that a step reads; the first step reads the input itself."""
    position = steps.index(step)
    return plan[steps[position - 1].name] if position else []


def _count(
    shards: Sequence[InputShard], steps: Sequence[Step], plan: Mapping[str, list[Part]], redone: Mapping[str, int]
) -> list[Passage]:
    passages = []
    num_in = sum(shard.num_rows for shard in shards)
    for step in steps:
        counts = [count_rows(part.path) for part in plan[step.name]]
        kept, rejected = sum(kept for kept, _ in counts), sum(rejected for _, rejected in counts)
        if kept + rejected != num_in:
            raise DataError(
                f"step {step.name} was given {num_in} rows and left {kept} + {rejected}; "
                "this is a fault of ours: please report it with the config"
            )
        passages.append(Passage(step.name, step.stage, num_in, kept, rejected, redone[step.name]))
        num_in = kept
    return passages


def _run_chain(steps: Sequence[MapStep], given: Sequence[str], paths: Sequence[list[str]], runner: Runner) -> None:
    """Have each shard taken through some steps, by as many worker processes as there may be."""
    workers = min(1 if steps[0].runs == "alone" else runner.num_workers, len(given))
    if workers == 1 and runner.kind == "native":
        with ExitStack() as opened:
            worker = ShardWorker(steps, opened)
            for place, of_shard in zip(given, paths, strict=True):
                worker(place, of_shard)
        return
    import daft

    # Natively is how Daft runs where nothing else was said; it can be said only once in a process.
    if runner.kind == "ray":
        daft.set_runner_ray(address=runner.address, noop_if_initialized=True)
    work = daft.cls(ShardWorker, max_concurrency=workers, use_process=True)(steps)
    frame = daft.from_pydict({"given": list(given), "paths": list(paths)})
    frame = frame.into_batches(1) if runner.kind == "native" else frame.into_partitions(len(given))
    frame.select(work(frame["given"], frame["paths"]).alias("rows")).collect()


class ShardWorker:
    """One worker process: set up once for some steps, then one shard after the other."""

    def __init__(self, steps: Sequence[MapStep], opened: ExitStack | None = None) -> None:
        # Daft never closes its workers; what they opened ends with the process.
        self._opened = opened or ExitStack()
        self._steps = steps
        self._works: dict[str, Work] = {}

    def __call__(self, given: str, paths: list[str]) -> int:
        """Make the parts of a shard that are missing; return the rows of the last."""
        rows: list[Row] | None = None
        before = given
        for step, path in zip(self._steps, map(Path, paths), strict=True):
            if path.exists():
                rows, before = None, str(path)
                continue
            if before.startswith("{"):
                rows = list(self._work(step)(json.loads(before)))
            else:
                kept = read_kept(Path(before)) if rows is None else [row for row in rows if isinstance(row, Candidate)]
                rows = list(self._work(step)(kept))
                _check_order(step.name, kept, rows)
            write_part(path, rows)
            before = str(path)
        return len(rows or ())

    def _work(self, step: MapStep) -> Work:
        """Set a step up when its first shard comes."""
        if step.name not in self._works:
            self._works[step.name] = self._opened.enter_context(open_work(step))
        return self._works[step.name]


def _check_order(step: str, candidates: Sequence[Candidate], rows: Sequence[Row]) -> None:
    if [candidate.id for candidate in candidates] != [row.id for row in rows]:
        raise DataError(f"step {step} lost, added or reordered rows; this is a fault of ours: please report it")


def _run_barrier(step: BarrierStep, before: Sequence[Part], parts: Sequence[Part], on_progress: OnProgress) -> None:
    """Look at every row, decide, then write the parts; only looks are held in memory."""
    barrier: Barrier = load(step.opens)(step.settings)
    looks: list[Any] = []
    home: dict[str, int] = {}
    for index, part in enumerate(before):
        for candidate in read_kept(part.path):
            looks.append(barrier.look(candidate))
            home[candidate.id] = index
    barrier.decide(looks)
    del looks
    for index, part in enumerate(parts):
        if not part.is_there:
            candidates = read_kept(before[index].path)
            needed = {name for candidate in candidates for name in barrier.needs(candidate)}
            others = _read_some(before, home, needed, {candidate.id: candidate for candidate in candidates})
            write_part(part.path, [barrier.apply(candidate, others) for candidate in candidates])
        on_progress(step.name, index + 1, len(parts))


def _read_some(
    before: Sequence[Part], home: dict[str, int], needed: set[str], at_hand: dict[str, Candidate]
) -> dict[str, Candidate]:
    found = {name: at_hand[name] for name in needed if name in at_hand}
    for index in sorted({home[name] for name in needed if name not in found}):
        found |= {candidate.id: candidate for candidate in read_kept(before[index].path) if candidate.id in needed}
    return found


def _describe(shard: InputShard) -> str:
    return json.dumps({"source": shard.source, "place": shard.place, "num_rows": shard.num_rows})


@contextmanager
def _watched(parts_of: Mapping[str, Sequence[Part]], on_progress: OnProgress) -> Iterator[None]:
    """Tell of finished shards by looking for their files: the same on one machine and on a cluster."""
    is_over = threading.Event()

    def tell() -> None:
        for step, parts in parts_of.items():
            on_progress(step, sum(part.is_there for part in parts), len(parts))

    def look() -> None:
        while not is_over.wait(_SECONDS_BETWEEN_LOOKS):
            tell()

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
        tell()
