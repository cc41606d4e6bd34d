"""Worker processes: one shard after the other through a chain of steps, natively or on Ray, by Daft.

On Ray, steps that run alone have a worker on each node (`nodes.py`).
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from microcoder.dataset.pipeline.parts import read_kept, write_part
from microcoder.dataset.pipeline.steps import Barrier, BarrierStep, MapStep, Row, Step, Work, load, open_work
from microcoder.dataset.pipeline.ticks import Ticker
from microcoder.errors import DataError, MicroCoderError
from microcoder.formats.candidates import Candidate
from microcoder.machine import count_processors
from microcoder.serving.ray_start import allow_slow_start


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
        return self.workers or count_processors()


@dataclass(frozen=True, slots=True)
class Chain:
    """Steps that a worker does one after the other while it has a shard at hand."""

    steps: tuple[MapStep, ...]
    barrier: BarrierStep | None = None
    """What the rows are looked at for once they are through."""

    @property
    def first(self) -> Step:
        """What reads what came before."""
        step = self.steps[0] if self.steps else self.barrier
        assert step is not None
        return step

    @property
    def is_alone(self) -> bool:
        """One shard at a time on a machine."""
        return any(step.runs == "alone" for step in self.steps)


class Looks(NamedTuple):
    """What a barrier has to know of a shard's rows."""

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
        MicroCoderError: what a step itself raises, from a worker process as from this one.
    """
    if chain.is_alone and runner.kind == "ray":
        from microcoder.dataset.pipeline.nodes import run_on_nodes

        yield from run_on_nodes(chain, given, paths, runner.address)
        return
    workers = min(1 if chain.is_alone else runner.num_workers, len(given))
    if workers == 1 and runner.kind == "native":
        with ExitStack() as opened:
            worker = ShardWorker(chain, opened)
            for place, (first, of_shard) in enumerate(zip(given, paths, strict=True)):
                yield place, worker.take(first, of_shard)
        return
    import daft

    # Natively is how Daft runs where nothing else was said; it can be said only once in a process.
    if runner.kind == "ray":
        if runner.address is None:
            allow_slow_start(os.environ)
        daft.set_runner_ray(address=runner.address, noop_if_initialized=True)
    work = daft.cls(ShardWorker, max_concurrency=workers, use_process=True)(chain)
    frame = daft.from_pydict({"place": list(range(len(given))), "given": list(given), "paths": list(paths)})
    frame = frame.into_batches(1) if runner.kind == "native" else frame.into_partitions(len(given))
    for row in frame.select(frame["place"], work(frame["given"], frame["paths"]).alias("looks")).iter_rows():
        # Written by our own worker a moment ago, and kept in no file.
        found: Looks | MicroCoderError = pickle.loads(row["looks"])
        if isinstance(found, MicroCoderError):
            raise found
        yield row["place"], found


class ShardWorker:
    """One worker process: set up once for a chain, then one shard after the other."""

    def __init__(self, chain: Chain, opened: ExitStack | None = None, shared: Mapping[str, Any] | None = None) -> None:
        # Daft never closes its workers; what they opened ends with the process.
        self._opened = opened or ExitStack()
        self._shared = dict(shared or {})
        self._chain = chain
        self._works: dict[str, Work] = {}
        self._barrier: Barrier | None = None

    def __call__(self, given: str, paths: list[str]) -> bytes:
        """Do what `work` does, by the name that Daft knows."""
        return self.work(given, paths)

    def work(self, given: str, paths: list[str]) -> bytes:
        """Take a shard, and return its looks, or our own error, as they travel between processes."""
        try:
            return pickle.dumps(self.take(given, paths))
        except MicroCoderError as error:
            # Raised here, it would come out of Daft as a fault of Daft's, and out of Ray as one of Ray's.
            return pickle.dumps(error)

    def take(self, given: str, paths: list[str]) -> Looks:
        """Make the parts of a shard that are missing; return what the barrier has to know of the last."""
        rows: list[Row] | None = None
        before = given
        for step, path in zip(self._chain.steps, map(Path, paths), strict=True):
            if path.exists():
                rows, before = None, str(path)
                continue
            if before.startswith("{"):
                described = json.loads(before)
                rows = _take(self._work(step)(described), Ticker(path, described["num_rows"]))
            else:
                kept = _kept(rows, before)
                rows = _take(self._work(step)(kept), Ticker(path, len(kept)))
                _check_order(step.name, kept, rows)
            write_part(path, rows)
            Ticker(path, len(rows)).end()
            before = str(path)
        return self._look(_kept(rows, before)) if self._chain.barrier else Looks([], [])

    def _work(self, step: MapStep) -> Work:
        """Set a step up when its first shard comes."""
        if step.name not in self._works:
            if step.shares and step.name not in self._shared:
                self._shared[step.name] = self._opened.enter_context(load(step.shares)(step.settings))
            shared = (self._shared[step.name],) if step.shares else ()
            self._works[step.name] = self._opened.enter_context(open_work(step, *shared))
        return self._works[step.name]

    def _look(self, candidates: list[Candidate]) -> Looks:
        if self._barrier is None:
            assert self._chain.barrier is not None
            self._barrier = open_barrier(self._chain.barrier)
        return Looks([candidate.id for candidate in candidates], self._barrier.look(candidates))


def _take(made: Iterable[Row], ticker: Ticker) -> list[Row]:
    """Return the rows of a step, telling of each as it comes."""
    rows: list[Row] = []
    for row in made:
        rows.append(row)
        ticker.tell(len(rows))
    return rows


def open_barrier(step: BarrierStep) -> Barrier:
    """Set a barrier up in this process."""
    return load(step.opens)(step.settings)


def _kept(rows: list[Row] | None, path: str) -> list[Candidate]:
    """Return the rows that go on: those at hand, or those of a part."""
    return read_kept(Path(path)) if rows is None else [row for row in rows if isinstance(row, Candidate)]


def _check_order(step: str, candidates: Sequence[Candidate], rows: Sequence[Row]) -> None:
    if [candidate.id for candidate in candidates] != [row.id for row in rows]:
        raise DataError(f"step {step} lost, added or reordered rows; this is a fault of ours: please report it")
