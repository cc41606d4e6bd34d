"""Runs steps over shards, in worker processes or as Ray tasks, and computes only results that are missing.

A pipeline is numbered shards of input, and steps that keep or reject each row. A step declares what decides its result:
its settings, and the modules that hold its code. The file name of each result holds a digest of these and of the key of
its input: a run that was killed finds its files and resumes; a changed step has other keys and is computed again.

Between steps there is one file per step and shard, whole or absent, with the same bytes for the same rows.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import multiprocessing
import os
import pickle
import signal
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.data.formats.candidates import Candidate, Lineage, Rejection, Stage
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError, EvaluatorFault, MicroCoderError
from microcoder.judge.core.machine import count_processors, end_with_parent

Row = Candidate | Rejection
"""A row at any stage of a build."""

Work = Callable[[Iterable[Candidate]], Iterable[Row]]
"""Takes a shard's candidates, returns one row for each, in order. They are read from a file on each iteration, so a
generator holds few of them in memory."""

WOULD_REJECT = "would_reject"
"""Step in the lineage of a row that stayed though a step would have rejected it; its field is the reason."""
_KEY_CHARACTERS = 16
_ALWAYS = __name__


@dataclass(frozen=True, slots=True)
class InputShard:
    """Successive rows of one source; the same in every run."""

    number: int
    """Position among all shards, from 0."""
    source: int
    """Index of the source in the config."""
    place: Any
    """What the first step reads the rows from, such as a source and parts of files; not part of any key."""
    digest: str
    """Digest of the rows' content and ids."""
    num_rows: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the pipeline, and everything but its input that decides its result."""

    name: str
    stage: Stage
    settings: Config
    opens: Callable[..., Any]
    """Called with the settings in each process that runs the step (see `MapStep`); pickled, so a module's function."""
    code: tuple[str, ...]
    """Modules and packages whose source decides the result."""
    inputs: tuple[str, ...] = ()
    """Digests of what else decides the result, such as files that the settings do not name."""
    runs: Literal["on_every_core", "alone"] = "on_every_core"
    """`alone`: one shard at a time on a machine, for work that spreads over the cores itself."""
    turns_away: bool = True
    """Whether rows are rejected; if not, such a row stays unchanged, with a line of lineage that says why."""

    def keep(self, row: Row) -> Row:
        """Return the row for the next step; in an audit (not `turns_away`), a rejection's candidate with a note."""
        if self.turns_away or isinstance(row, Candidate) or row.candidate is None:
            return row
        line = Lineage(stage=row.stage, step=WOULD_REJECT, field=row.reason, detail=row.detail)
        return row.candidate.model_copy(update={"lineage": (*row.candidate.lineage, line)})


class MapStep(Step):
    """A step that works on one shard at a time; `opens(settings, exit_stack)` returns its `Work`."""


class BarrierStep(Step):
    """A step that needs to see all rows before it decides on any; `opens(settings)` returns its `Barrier`."""


class Barrier:
    """Decides on rows after it has seen all: `look` at each, `decide`, `apply`; rows and looks are kept on disk."""

    def look(self, candidates: Sequence[Candidate]) -> Sequence[Any]:
        """Return the small part of each row that the decision needs; runs in a worker."""
        raise NotImplementedError

    def decide(self, looks: Iterable[Any]) -> None:
        """Decide from the looks of all rows, in order, and store the decision for `needs` and `apply`."""
        raise NotImplementedError

    def needs(self, name: str) -> Sequence[str]:
        """Return the ids of the other rows that `apply` needs for the row of this id."""
        return ()

    def apply(self, candidate: Candidate, others: Mapping[str, Candidate]) -> Row:
        """Return the candidate for the next step, or its rejection; `others` are the rows of `needs`, by id."""
        raise NotImplementedError


def step_key(step: Step) -> str:
    """Return the digest of what decides a step's result besides its input."""
    sources = map(source_digest, (_ALWAYS, *step.code))
    kept = () if step.turns_away else (WOULD_REJECT,)
    return digest(step.name, step.settings.model_dump_json(), *step.inputs, *sources, *kept)


def digest(*parts: str) -> str:
    """Return a digest of some texts and their lengths, as 16 hexadecimal digits."""
    found = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        found.update(len(encoded).to_bytes(8, "big") + encoded)
    return found.hexdigest()[:_KEY_CHARACTERS]


@cache
def source_digest(name: str) -> str:
    """Return the digest of a module, or of all files of a package: data files decide as much as code."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(name)
    origin = Path(spec.origin)
    files = [origin] if origin.name != "__init__.py" else sorted(origin.parent.rglob("*"))
    wanted = [path for path in files if path.is_file() and path.suffix != ".pyc"]
    return digest(
        *(
            part
            for path in wanted
            for part in (path.name, hashlib.sha256(path.read_bytes()).hexdigest())
        )
    )


T = TypeVar("T")
_SCHEMA = pa.schema(
    [("id", pa.string()), ("is_kept", pa.bool_()), ("reason", pa.string()), ("record", pa.string())]
)

_GROUP_CHARACTERS = 4 << 20
"""Characters of rows from which on they are written as one row group of the Parquet file."""
_MAGIC = b"PAR1"
"""The last bytes of a Parquet file."""


@dataclass(frozen=True, slots=True)
class Part:
    """One shard's rows after one step."""

    key: str
    """Digest of everything that decides these rows."""
    path: Path

    @property
    def is_there(self) -> bool:
        """Whether the part's file is there and complete; a crash of the machine may truncate it."""
        try:
            with open(self.path, "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - len(_MAGIC)))
                return file.read() == _MAGIC
        except FileNotFoundError:
            return False


def write_part(path: Path, rows: Iterable[Row]) -> None:
    """Write a part by an atomic rename, one row group at a time, so that few rows are in memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        # A dictionary of texts that are all different would only be built in vain.
        with pq.ParquetWriter(
            partial, _SCHEMA, compression="zstd", use_dictionary=["reason"]
        ) as writer:
            for group in cut(
                map(_record, rows), lambda one: len(one["record"]), size=_GROUP_CHARACTERS
            ):
                writer.write_table(pa.Table.from_pylist(group, _SCHEMA))
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)


def _record(row: Row) -> dict[str, Any]:
    reason = row.reason if isinstance(row, Rejection) else ""
    record = row.model_dump_json(exclude_defaults=True)
    return {"id": row.id, "is_kept": isinstance(row, Candidate), "reason": reason, "record": record}


def cut(
    items: Iterable[T], size_of: Callable[[T], int], *, size: int, most: float = math.inf
) -> Iterator[list[T]]:
    """Yield lists of successive items: `most` of them, or fewer as soon as their sizes add up to `size`."""
    piece, held = list[T](), 0
    for item in items:
        piece.append(item)
        held += size_of(item)
        if len(piece) >= most or held >= size:
            yield piece
            piece, held = [], 0
    if piece:
        yield piece


class KeptRows(Iterable[Candidate]):
    """The candidates of a part, without its rejections; read from the file on each iteration, few in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ids = [name for is_kept, name in _column(path, "id") if is_kept]
        """Ids of the candidates, in order."""

    def __iter__(self) -> Iterator[Candidate]:
        return (
            Candidate.model_validate_json(text)
            for is_kept, text in _column(self._path, "record")
            if is_kept
        )


def read_rows(path: Path) -> Iterator[Row]:
    """Yield all rows of a part, in order."""
    for is_kept, text in _column(path, "record"):
        yield (Candidate if is_kept else Rejection).model_validate_json(text)


def read_rejected(path: Path) -> list[Rejection]:
    """Return the rejected rows of a part."""
    return [
        Rejection.model_validate_json(text)
        for is_kept, text in _column(path, "record")
        if not is_kept
    ]


def count_reasons(path: Path) -> Counter[str]:
    """Return {reason: number of rejected rows} of a part; kept rows count under an empty reason."""
    return Counter(reason for _, reason in _column(path, "reason"))


class Spilled:
    """Values by key in a temporary file that is deleted with this object; only their offsets are in memory."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - it ends with this object.
        self._starts: dict[Any, int] = {}

    def add(self, key: str | int, value: Any) -> None:
        """Store a value under a key."""
        self._starts[key] = self._file.seek(0, os.SEEK_END)
        pickle.dump(value, self._file)

    def find(self, key: str | int) -> Any:
        """Return the value of a key."""
        self._file.seek(self._starts[key])
        # Written by ourselves a moment ago, to a file without a name.
        return pickle.load(self._file)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the items of all values, which are lists, in the order of their keys; may be repeated."""
        return chain.from_iterable(map(self.find, sorted(self._starts)))


def _column(path: Path, name: str) -> Iterator[tuple[bool, str]]:
    """Yield, for each row of a part, whether it was kept, and its column `name`; DataError if the file is damaged."""
    try:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                table = file.read_row_group(number, columns=["is_kept", name])
                yield from zip(table["is_kept"].to_pylist(), table[name].to_pylist(), strict=True)
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise DataError(
            f"{path} is damaged ({said}); delete it and type the same command again"
        ) from None


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
        raise EvaluatorFault(
            "no node of the Ray cluster has a processor; start one with `ray start --num-cpus`"
        )
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
            most = len(find_nodes()) if step.runs == "alone" else len(given)
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


Take = Callable[[Any, Path], Looks]
"""Writes the part of a shard, from its input to a path; for a barrier, returns the shard's looks instead."""
_TAKES: dict[str, tuple[Take, ExitStack]] = {}
"""In a worker process: name of its present step -> the step's `Take`, and a stack that closes what it opened."""


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

    def run(
        self, step: Step, given: Sequence[Any], paths: Sequence[Path]
    ) -> Iterator[tuple[int, Looks]]:
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
        places = {
            self._pool.submit(_take, (step.name, step), *of_shard): place
            for place, of_shard in shards
        }
        try:
            for future in as_completed(places):
                # Taken out, so that what was found is not held here until the last shard is through.
                yield places.pop(future), future.result()
        except BrokenProcessPool:
            raise EvaluatorFault(
                "a worker process was killed, as a rule for want of memory; type the same command again with fewer "
                "--workers or less --rows-per-shard, what is done is kept"
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
        """Yield the rows that the step's work returns; DataError if some were lost, added or reordered."""
        if not isinstance(given, Path):
            yield from map(step.keep, work(given))
            return
        kept = KeptRows(given)
        found = []
        for row in work(kept):
            found.append(row.id)
            yield step.keep(row)
        if kept.ids != found:
            raise DataError(
                f"step {step.name} lost, added or reordered rows; this is a bug: please report it"
            )

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
    """Reason -> number of rejected rows, the commonest first."""
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
                given = [
                    before[index].path.absolute() if before else shards[index].place
                    for index in missing
                ]
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
        name: sum(
            shard.num_rows for shard, part in zip(shards, parts, strict=True) if not part.is_there
        )
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
        paths = [
            folder / f"{shard.number:06d}-{key}.parquet"
            for shard, key in zip(shards, keys, strict=True)
        ]
        plan[step.name] = list(map(Part, keys, paths))
    return plan


def _count(
    shards: Sequence[InputShard],
    steps: Sequence[Step],
    plan: Mapping[str, list[Part]],
    redone: Mapping[str, int],
) -> list[StepCounts]:
    step_counts = []
    num_in = sum(shard.num_rows for shard in shards)
    for step in steps:
        reasons = sum((count_reasons(part.path) for part in plan[step.name]), Counter())
        kept = reasons.pop("", 0)
        rejected = reasons.total()
        why = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
        step_counts.append(
            StepCounts(step.name, step.stage, num_in, kept, rejected, why, redone[step.name])
        )
        num_in = kept
    return step_counts


def _decide(
    step: Step, looks: Spilled, before: Sequence[Part], parts: Sequence[Part]
) -> Iterator[int]:
    """Let a barrier decide from all looks, then write the missing parts and yield the index of each.

    In memory are the rows of one shard and, for one of them at a time, the other rows that it needs.
    """
    barrier = step.opens(step.settings)
    barrier.decide(looks)
    missing = [index for index, part in enumerate(parts) if not part.is_there]
    wanted = {
        name
        for index in missing
        for own in KeptRows(before[index].path).ids
        for name in barrier.needs(own)
    }
    aside = Spilled()
    for kept in (KeptRows(part.path) for part in before):
        for one in kept if wanted.intersection(kept.ids) else ():
            if one.id in wanted:
                aside.add(one.id, one)
    for index in missing:
        rows = list(KeptRows(before[index].path))
        decided = (
            barrier.apply(one, {name: aside.find(name) for name in barrier.needs(one.id)})
            for one in rows
        )
        write_part(parts[index].path, map(step.keep, decided))
        yield index
