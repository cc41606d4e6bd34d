"""Parts of a pipeline: numbered shards of input, and steps that keep or reject each row.

A step declares what decides its result: its settings, and the modules that hold its code. A digest of these and of
the key of its input is the key of each result, so that a result is found again without reading it.

Between steps there is one file per step and shard, whole or absent, with the same bytes for the same rows.
"""

import hashlib
import importlib.util
import math
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.data.formats.candidates import Candidate, Lineage, Rejection, Stage
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError

Row = Candidate | Rejection
"""A row at any stage of a build."""

Work = Callable[[Iterable[Candidate]], Iterable[Row]]
"""Takes a shard's candidates, returns one row for each, in order. They are read from a file on each iteration, so a
generator holds few of them in memory."""

WOULD_REJECT = "would_reject"
"""Step in the lineage of a row that stayed though a step would have rejected it; its field is the reason."""
_KEY_CHARACTERS = 16
_ALWAYS = "microcoder.data.pipeline.steps"


@dataclass(frozen=True, slots=True)
class InputShard:
    """Successive rows of one source; the same in every run."""

    number: int
    """Position among all shards, from 0."""
    source: int
    """Index of the source in the config."""
    place: Any
    """What the first step finds the rows by; not part of any key."""
    digest: str
    """Digest of the content and of the rows' names."""
    num_rows: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the pipeline, and everything but its input that decides its result."""

    name: str
    stage: Stage
    settings: Config
    opens: Callable[..., Any]
    """Called with the settings in each process that runs the step; it is pickled, so a function of a module."""
    code: tuple[str, ...]
    """Modules and packages whose source decides the result."""
    inputs: tuple[str, ...] = ()
    """Digests of what else decides it, such as files that the settings do not name."""
    runs: Literal["on_every_core", "alone"] = "on_every_core"
    """`alone`: one shard at a time on a machine, for work that spreads over the cores itself."""
    turns_away: bool = True
    """False: a row that would be rejected stays as it was, with a line of lineage that says why."""

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
    """A decision over all rows; the rows and what `look` returns for each are kept on disk."""

    def look(self, candidates: Sequence[Candidate]) -> Sequence[Any]:
        """Return the small part of each row that the decision needs; runs in a worker."""
        raise NotImplementedError

    def decide(self, looks: Iterable[Any]) -> None:
        """Decide, from all looks in the order of the rows; they can be iterated more than once."""
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
    return digest(*(part for path in wanted for part in (path.name, hashlib.sha256(path.read_bytes()).hexdigest())))


T = TypeVar("T")
_SCHEMA = pa.schema([("id", pa.string()), ("is_kept", pa.bool_()), ("reason", pa.string()), ("record", pa.string())])

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
        """Whether the part's file is there and complete; a truncated one is not."""
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
        with pq.ParquetWriter(partial, _SCHEMA, compression="zstd", use_dictionary=["reason"]) as writer:
            for group in cut(map(_record, rows), lambda one: len(one["record"]), size=_GROUP_CHARACTERS):
                writer.write_table(pa.Table.from_pylist(group, _SCHEMA))
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    partial.replace(path)


def _record(row: Row) -> dict[str, Any]:
    reason = row.reason if isinstance(row, Rejection) else ""
    record = row.model_dump_json(exclude_defaults=True)
    return {"id": row.id, "is_kept": isinstance(row, Candidate), "reason": reason, "record": record}


def cut(items: Iterable[T], size_of: Callable[[T], int], *, size: int, most: float = math.inf) -> Iterator[list[T]]:
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
        return (Candidate.model_validate_json(text) for is_kept, text in _column(self._path, "record") if is_kept)


def read_rows(path: Path) -> Iterator[Row]:
    """Yield all rows of a part, in order."""
    for is_kept, text in _column(path, "record"):
        yield (Candidate if is_kept else Rejection).model_validate_json(text)


def read_rejected(path: Path) -> list[Rejection]:
    """Return the rejected rows of a part."""
    return [Rejection.model_validate_json(text) for is_kept, text in _column(path, "record") if not is_kept]


def count_reasons(path: Path) -> Counter[str]:
    """Return how many rows of a part were rejected by reason; kept ones count under an empty text."""
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
    """Yield, for each row of a part, whether it was kept, and one of its fields."""
    try:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                table = file.read_row_group(number, columns=["is_kept", name])
                yield from zip(table["is_kept"].to_pylist(), table[name].to_pylist(), strict=True)
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split())
        raise DataError(f"{path} is damaged ({said}); delete it and type the same command again") from None
