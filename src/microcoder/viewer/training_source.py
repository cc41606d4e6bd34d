"""A training run: its rollouts lie in one Parquet file a step, of which the light columns are read at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.config import flatten
from microcoder.errors import DataError
from microcoder.insights.history import read_history
from microcoder.runs import RunDirectory
from microcoder.viewer.charts import draw_training, list_alarms
from microcoder.viewer.index import FLAGS, FLOATS, INTEGERS, UNKNOWN, WORDS, Columns, Index, IndexBuilder
from microcoder.viewer.problem_tests import tests_of_run
from microcoder.viewer.sources import Row, RunInfo

_WORDS = tuple(name for name in WORDS if name != "split")
_LIGHT = (*_WORDS, *(name for name in INTEGERS if name not in ("step", "row")), *FLOATS, *FLAGS)
_HEAVY = ("prompt", "completion", "program", "extraction", "temperature", "tests", "length_penalty")
_ROWS_AT_ONCE = 64
_SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What the metrics say, and of which state of the files."""

    stamp: object
    state: str
    charts: Sequence[Row]
    alarms: Sequence[str]


class TrainingSource:
    """A folder that `microcoder train` wrote, finished or not; every engine writes the same."""

    kind = "training"

    def __init__(self, root: Path, manifest: Row, problem_files: Sequence[Path]) -> None:
        self._run = RunDirectory(root)
        self._manifest = manifest
        self.name = str(manifest.get("name") or root.resolve().name)
        self.tests = tests_of_run(manifest.get("config") or {}, problem_files)
        self._builder = IndexBuilder()
        self._index = self._builder.build()
        self._seen: dict[str, tuple[int, int]] = {}
        self._damaged: dict[str, str] = {}
        self._looked = -_SECONDS_BETWEEN_LOOKS
        self._lock = threading.Lock()
        self._charts: _Drawn | None = None

    def index(self) -> Index:
        """Return the light columns; files written or rewound since the last look are read again."""
        with self._lock:
            if time.monotonic() - self._looked >= _SECONDS_BETWEEN_LOOKS:
                self._refresh()
                self._looked = time.monotonic()
            return self._index

    def read(self, record: Row) -> Row:
        """Return a rollout's texts and tests, from its row group alone."""
        path = self._path(record["split"], record["step"])
        try:
            with pq.ParquetFile(path) as file:
                first = 0
                for group in range(file.metadata.num_row_groups):
                    num_rows = file.metadata.row_group(group).num_rows
                    if record["row"] < first + num_rows:
                        return _row_of_group(file, group, record["row"] - first)
                    first += num_rows
        except (OSError, ValueError) as error:
            raise DataError(f"{path} cannot be read ({error}); was the run resumed or moved?") from None
        raise DataError(f"{path} has no row {record['row']} any more; reload the page")

    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield every rollout's texts and tests, some rows at a time."""
        words, columns = index.words["split"], index.columns
        place = 0
        while place < len(index):
            split, step = words[columns["split"][place]], int(columns["step"][place])
            with pq.ParquetFile(self._path(split, step)) as file:
                for batch in file.iter_batches(_ROWS_AT_ONCE, columns=_present(file, _HEAVY)):
                    yield from map(_with_facts, batch.to_pylist())
                place += file.metadata.num_rows

    def about(self) -> RunInfo:
        """Return curves and facts."""
        drawn = self._draw()
        manifest, notices = self._manifest, list(drawn.alarms)
        if self.tests.missing:
            names = ", ".join(str(path) for path in self.tests.missing)
            notices.append(f"Tests' inputs are not shown: {names} is not here. Name the file with --problems.")
        notices += [f"{name} is no readable Parquet ({why}) and is left out." for name, why in self._damaged.items()]
        git = manifest.get("git") or {}
        facts = [
            ("started", str(manifest.get("started", ""))),
            ("commit", str(git.get("commit", "")) + (" with changes" if git.get("is_dirty") else "")),
            ("isolation", str((manifest.get("isolation") or {}).get("level", ""))),
            *((f"config.{key}", str(value)) for key, value in flatten(manifest.get("config") or {}).items()),
        ]
        return RunInfo(drawn.state, [(key, value) for key, value in facts if value], notices, drawn.charts)

    def _draw(self) -> _Drawn:
        """Read the metrics again when they have grown."""
        files = (self._run.metrics, self._run.evaluations, self._run.summary)
        stamp = tuple(_stamp(path) for path in files)
        with self._lock:
            if self._charts is None or self._charts.stamp != stamp:
                history = read_history(self._run.root)
                state = "finished" if history.is_finished else f"{len(history.steps)} steps so far"
                self._charts = _Drawn(stamp, state, draw_training(history), list_alarms(history.steps))
            return self._charts

    def _refresh(self) -> None:
        files = {
            f"{split}/{step}": (split, step)
            for split, steps in (("train", self._run.rollout_steps()), ("heldout", self._run.evaluation_steps()))
            for step in steps
        }
        stamps = {name: _stamp(self._path(*place)) for name, place in files.items()}
        changed = [name for name, stamp in stamps.items() if self._seen.get(name) != stamp]
        gone = self._builder.files - files.keys()
        if not changed and not gone:
            return
        self._builder.drop(gone)
        for name in changed:
            split, step = files[name]
            path = self._path(split, step)
            self._damaged.pop(path.name, None)
            try:
                self._builder.put(name, self._read_light(path, split, step))
            except (OSError, ValueError) as error:
                self._damaged[path.name] = str(error).splitlines()[0]
                self._builder.drop({name} & self._builder.files)
        self._seen = stamps
        self._index = self._builder.build()

    def _read_light(self, path: Path, split: str, step: int) -> Columns:
        metadata = pq.read_metadata(path)
        words = [name for name in _WORDS if name in metadata.schema.to_arrow_schema().names]
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=words) as file:
            table = file.read(columns=_present(file, _LIGHT), use_threads=False)
        num_rows = table.num_rows
        columns: dict[str, Any] = {
            "split": np.repeat(self._builder.encode("split", [split]), num_rows),
            "step": np.full(num_rows, step, dtype=np.int32),
            "row": np.arange(num_rows, dtype=np.int32),
        }
        for name in _LIGHT:
            column = table[name] if name in table.column_names else pa.nulls(num_rows)
            if name in _WORDS:
                columns[name] = self._codes(name, column)
            elif name in FLAGS:
                columns[name] = _numbers(column, pa.bool_(), False).astype(bool)
            elif name in FLOATS:
                columns[name] = _numbers(column, pa.float64(), float("nan"))
            else:
                columns[name] = _numbers(column, pa.int64(), UNKNOWN).astype(np.int32)
        return columns

    def _codes(self, name: str, column: Any) -> Any:
        if not pa.types.is_dictionary(column.type):
            return self._builder.encode(name, column.cast(pa.string()).to_pylist())
        column = column.combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        codes = self._builder.encode(name, [*column.dictionary.to_pylist(), None])
        return codes[column.indices.fill_null(len(codes) - 1).to_numpy(zero_copy_only=False)]

    def _path(self, split: str, step: int) -> Path:
        return self._run.rollout_file(step) if split == "train" else self._run.evaluation_file(step)


def _row_of_group(file: pq.ParquetFile, group: int, row: int) -> Row:
    """Skip to a row some rows at a time, so that a large row group is never in memory whole."""
    for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=_present(file, _HEAVY)):
        if row < batch.num_rows:
            return _with_facts(batch.slice(row, 1).to_pylist()[0])
        row -= batch.num_rows
    raise ValueError("the file is shorter than it says")


def _with_facts(row: Row) -> Row:
    penalty = row.pop("length_penalty", None)
    return {**row, "facts": {"length penalty": f"{penalty:.3f}"}} if penalty else row


def _present(file: pq.ParquetFile, names: Sequence[str]) -> list[str]:
    held = set(file.schema_arrow.names)
    return [name for name in names if name in held]


def _numbers(column: Any, kind: pa.DataType, unknown: object) -> Any:
    return column.cast(kind).fill_null(unknown).to_numpy()


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)
