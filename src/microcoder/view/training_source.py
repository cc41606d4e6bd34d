"""A training run in the viewer: one Parquet file of rollouts per step.

Its small columns are read at once, texts later. Its curves are plain numbers: the page overlays
the charts of several runs that have the same id.
"""

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import DataError, MicroCoderError
from microcoder.judge.core.files import read_json
from microcoder.judge.core.prompts import BUILTINS
from microcoder.lab.studies.accuracy import estimate_accuracy
from microcoder.train.metrics import (
    EvaluationMetrics,
    Group,
    ShownMetric,
    StepMetrics,
    shown_metrics,
)
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.tasks import load_tasks
from microcoder.train.runs import (
    CATALOGUE,
    History,
    RunDirectory,
    problems_digest,
    read_history,
    steps_in,
)
from microcoder.view.files import (
    ROWS_AT_ONCE,
    ProblemTests,
    Row,
    ShownProblem,
    present,
    read_row,
    stamp_of,
    tests_of_run,
)
from microcoder.view.index import (
    COLUMN_NAMES,
    SPLITS,
    Index,
    IndexPart,
    RunInfo,
    RunSource,
    Texts,
    pc,
)
from microcoder.view.replays import SavedAnswer
from microcoder.view.statements import (
    FoundTests,
    PromptFrame,
    explain_other,
    find_frame,
    is_asked_by,
    is_of_this_version,
    is_small,
    note_change,
)

_LIGHT = (*COLUMN_NAMES, "tests.list.element.cpu_seconds")
"""Columns that are read for all rollouts."""

_SEARCHED = (
    "prompt",
    "completion",
    "program",
    "tests.list.element.detail",
    "tests.list.element.output",
)
"""Columns that are read for a search."""

_TEXT_COLUMNS = {
    "prompt": "prompt",
    "response": "completion",
    "program": "program",
}
"""Field that is searched (see `FIELDS` of the index) -> the column that holds it."""

_HEAVY = (
    "prompt",
    "completion",
    "program",
    "extraction",
    "temperature",
    "tests",
    "length_penalty",
    "lost",
)
"""Columns that are read for a rollout which is shown."""


class TrainingSource(RunSource):
    """A folder that `microcoder train` wrote, finished or not; every engine writes the same."""

    kind = "training"

    def __init__(self, root: Path, manifest: Row, tests: ProblemTests | None) -> None:
        super().__init__()
        self._run = RunDirectory(root)
        self.replay = SavedAnswer(self._run)
        self._manifest = manifest
        self.name = _name_run(root.resolve(), manifest)
        self.tests = tests or tests_of_run(manifest.get("config") or {})
        self._seen: dict[str, tuple[int, int]] = {}
        self._frame: PromptFrame | None = None
        self._reads_own_files = tests is None
        self._changed: bool | None = None
        self._drawn: tuple[object, History, list[Row]] | None = None
        """Kept between calls: stamp of the metrics' files, their history, and its charts."""

    def stamp(self) -> str:
        """Return a text that changes with the rollouts or the metrics."""
        return f"{self.index().version} {self._draw()[0]} {self.replay.stamp()}"

    def parts(self, index: Index) -> list[IndexPart]:
        """Return the rollouts in one part per file, whose texts are read when needed."""
        with self._lock:
            parts = []
            for name, columns in self._builder.parts.items():
                split, _, step = name.partition("/")
                path = self._path(split, int(step))
                read = functools.partial(_read_texts, path)
                part = IndexPart(len(columns["row"]), read)
                parts.append((int(step), SPLITS.index(split), part))
        parts.sort(key=lambda row: row[:2])
        return [part for _, _, part in parts]

    def read(self, record: Row) -> Row:
        """Return a rollout's texts and tests."""
        path = self._path(record["split"], record["step"])
        return _with_facts(read_row(path, record["row"], _HEAVY))

    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield every rollout's texts and tests, which are read in batches of rows."""
        words = index.words["split"]
        position = 0
        # The rollouts of a file follow each other in the index.
        while position < len(index):
            split = words[index.columns["split"][position]]
            step = int(index.columns["step"][position])
            with pq.ParquetFile(self._path(split, step)) as file:
                for batch in file.iter_batches(ROWS_AT_ONCE, columns=present(file, _HEAVY)):
                    yield from map(_with_facts, batch.to_pylist())
                position += file.metadata.num_rows

    def explain_difference(self, problem_id: str, problem: ShownProblem) -> str:
        """Return why a file's problem is not the one of this run, judged by the recorded prompt."""
        index = self.index()
        positions = index.positions_of(problem_id)
        if not positions:
            return "Not shown: no rollout of this run answers this problem."
        record = index.record(positions[0])
        path = self._path(record["split"], record["step"])
        row = read_row(path, record["row"], ["prompt"])
        prompt = row.get("prompt")
        if not prompt:
            return "Not shown: this run recorded no prompt to compare the problem's statement with."
        config = self._manifest.get("config") or {}
        style = config.get("prompt") or {}
        frame = self._find_frame()
        if is_asked_by(prompt, problem, style=style, frame=frame):
            return ""
        return explain_other(problem)

    def find_tests(self, problem_id: str) -> FoundTests:
        """Return the tests of a problem, or why they are not shown.

        Tests of a file that has changed come with a note.
        """
        found = super().find_tests(problem_id)
        if found.problem and self._has_changed_files():
            return note_change(found)
        return found

    def _has_changed_files(self) -> bool:
        """Whether the config's problem files are known to differ from what the run recorded."""
        if self._changed is None:
            self._changed = False
            if self._may_compare_files():
                try:
                    tasks = load_tasks(TrainConfig.model_validate(self._manifest["config"]))
                    self._changed = tasks.as_record()["digest"] != self.problems_digest
                except (MicroCoderError, ValueError, OSError):
                    # A config of another version: nothing is known.
                    self._changed = False
        return self._changed

    def _may_compare_files(self) -> bool:
        """Whether the run names its files, digested them as this version does, and they are
        quick to read."""
        config = self._manifest.get("config") or {}
        problems = config.get("problems") or {}
        if not self._reads_own_files or problems.get("kind") != "files":
            return False
        # A style of the user's own is code that a viewer does not run.
        prompt = config.get("prompt") or {}
        if prompt.get("style") not in BUILTINS:
            return False
        if self.problems_digest is None or not is_of_this_version(self._manifest):
            return False
        names = (problems.get("train"), problems.get("heldout"))
        return is_small([Path(str(name)) for name in names])

    def _find_frame(self) -> PromptFrame | None:
        """Return how much text stands around the problem in every prompt.

        It is read off the first file of rollouts and that of evaluations.
        """
        if self._frame is None:
            prompts: set[str] = set()
            for folder in (self._run.rollouts, self._run.evaluation_samples):
                # One file of each kind is enough: all prompts of a run have one frame.
                for step in sorted(steps_in(folder))[:1]:
                    path = folder / self._run.rollout_file(step).name
                    column = pq.read_table(path, columns=["prompt"])["prompt"]
                    prompts.update(filter(None, column.unique().to_pylist()))
            self._frame = find_frame(prompts)
        return self._frame

    @property
    def problems_digest(self) -> str | None:
        """Digest of the run's problems; None if unknown."""
        return problems_digest(self._manifest)

    def history(self) -> History:
        """Return the run's metrics; files that grew are read again."""
        return self._draw()[1]

    def about(self) -> RunInfo:
        """Return state, facts, notices and charts of the run."""
        _, history, charts = self._draw()
        state = "finished" if history.is_finished else f"{len(history.steps)} steps so far"
        notices = list_alarms(history.steps)
        if self.tests.missing:
            notices.append(self.tests.missing)
        return RunInfo(
            state,
            facts=self._list_facts(),
            notices=notices,
            charts=charts,
            clock=time_steps(history),
        )

    def _list_facts(self) -> list[tuple[str, str]]:
        """Return the facts of the run in its manifest, as texts; empty ones are left out."""
        manifest = self._manifest
        git = manifest.get("git") or {}
        commit = str(git.get("commit") or "")
        if git.get("is_dirty"):
            commit += " with changes"
        facts: Row = {
            "started": manifest.get("started"),
            "commit": commit,
            "microcoder": manifest.get("microcoder_version"),
            "digest": manifest.get("digest"),
            "seed": manifest.get("seed"),
        }
        for table in ("isolation", "machine", "config", "packages"):
            facts |= flatten({table: manifest.get(table) or {}})
        shown = []
        for key, value in facts.items():
            text = "not set" if value is None else str(value)
            if text:
                shown.append((key, text))
        return shown

    def _draw(self) -> tuple[object, History, list[Row]]:
        """Return the stamp of the metrics' files, their history, and its charts."""
        stamp = stamp_of(self._run.metrics, self._run.evaluations, self._run.summary)
        with self._lock:
            # Drawn again only after a change: pages ask every few seconds, and intervals take a
            # while.
            if self._drawn is None or self._drawn[0] != stamp:
                history = read_history(self._run.root)
                self._drawn = (stamp, history, draw_training(history))
            return self._drawn

    def _refresh(self) -> bool:
        files: dict[str, tuple[str, int]] = {}
        for step in steps_in(self._run.rollouts):
            files[f"train/{step}"] = ("train", step)
        for step in steps_in(self._run.evaluation_samples):
            files[f"heldout/{step}"] = ("heldout", step)
        stamps = {}
        for name, (split, step) in files.items():
            stamps[name] = stamp_of(self._path(split, step))[0]
        changed = [name for name, stamp in stamps.items() if self._seen.get(name) != stamp]
        # A run that was rewound to a checkpoint has fewer files than before.
        gone = self._builder.parts.keys() - files.keys()
        if not changed and not gone:
            return False
        for name in gone:
            del self._builder.parts[name]
        for name in changed:
            split, step = files[name]
            rows = self._read_light(self._path(split, step), split, step)
            self._builder.put_rows(name, rows)
        # Last: files that cannot be read are an error each time.
        self._seen = stamps
        return True

    def _read_light(self, path: Path, split: str, step: int) -> list[Row]:
        """Return the small columns of a file's rollouts, with the time of each slowest test."""
        try:
            with pq.ParquetFile(path) as file:
                table = file.read(columns=present(file, _LIGHT), use_threads=False)
        except (OSError, ValueError) as error:
            raise DataError(
                f"{path} cannot be read ({error}); remove it, or resume the run"
            ) from None
        slowest = np.full(table.num_rows, np.nan)
        if "tests" in table.column_names:
            # In Arrow: a list of Python objects for each test takes three times as long as all
            # the rest.
            tests = table["tests"].combine_chunks()
            seconds = pc.list_flatten(tests).field("cpu_seconds")
            seconds = seconds.cast(pa.float64())
            numbers = pc.list_parent_indices(tests).to_numpy()
            # `fmax` passes over NaN: both the start, and a test without a time.
            np.fmax.at(slowest, numbers, seconds.to_numpy(zero_copy_only=False))
            table = table.drop_columns("tests")
        rows = table.to_pylist()
        timed_rows = zip(rows, slowest.tolist(), strict=True)
        for number, (row, seconds) in enumerate(timed_rows):
            row["split"] = split
            row["step"] = step
            row["row"] = number
            row["cpu_seconds"] = seconds
        return rows

    def _path(self, split: str, step: int) -> Path:
        if split == "train":
            return self._run.rollout_file(step)
        return self._run.evaluation_file(step)


def _name_run(folder: Path, manifest: Row) -> str:
    """Return a run's name; for a run of a study, its study, level and seed."""
    catalogue = folder.parent / CATALOGUE
    if catalogue.is_file():
        labels = read_json(catalogue, what="list of a study's runs").get(folder.name)
        if labels:
            return str(labels[0])
    return str(manifest.get("name") or folder.name)


def _read_texts(path: Path) -> Texts:
    """Return a file's texts by field, for a search.

    Prompts and errors that rows share are stored once.
    """
    try:
        with pq.ParquetFile(path, read_dictionary=["prompt"]) as file:
            columns = present(file, _SEARCHED)
            # A search reads several files at once, each in a thread already.
            table = file.read(columns=columns, use_threads=False).combine_chunks()
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); was the run resumed or moved?") from None
    texts = {}
    for field, name in _TEXT_COLUMNS.items():
        if name in table.column_names:
            texts[field] = _join_chunks(table[name])
    if "tests" in table.column_names:
        texts["errors"] = _join_errors(_join_chunks(table["tests"]))
    return texts


def _join_errors(tests: pa.ListArray) -> pa.DictionaryArray:
    """Return the messages and output of each rollout's tests as one text, in Arrow."""
    # Offsets and values from the same beginning.
    tests = tests.slice(0)
    details = pc.list_flatten(tests)
    columns = []
    for name in ("detail", "output"):
        if details.type.get_field_index(name) >= 0:
            columns.append(details.field(name).fill_null(""))
    lines = pc.binary_join_element_wise(*columns, "\n")
    counts = pc.list_value_length(tests).fill_null(0)
    counts = counts.to_numpy(zero_copy_only=False)
    # Where each rollout's lines begin, and the end of the last.
    ends = np.cumsum(counts)
    begins = np.concatenate([[0], ends])
    offsets = pa.array(begins.astype(np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, lines), "\n")
    return joined.dictionary_encode()


def _join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; of one chunk nothing is copied."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _with_facts(row: Row) -> Row:
    penalty = row.pop("length_penalty", None)
    if penalty:
        row["facts"] = {"length penalty": f"{penalty:.3f}"}
    return row


# ----- Charts.


def draw_training(history: History) -> list[Row]:
    """Return the charts of those metrics of a run that have values.

    A chart has id, title, unit, group and series. They stand by group, accuracy first.
    """
    charts: dict[str, Row] = {}
    for metric in shown_metrics(StepMetrics):
        _draw_metric(charts, metric, history.steps, history, "training")
    for metric in shown_metrics(EvaluationMetrics):
        _draw_metric(charts, metric, history.evaluations, history, "held out")
    groups = get_args(Group)
    in_order = sorted(charts.values(), key=lambda chart: groups.index(chart["group"]))
    return sorted(in_order, key=lambda chart: chart["id"] != "accuracy")


def time_steps(history: History) -> list[tuple[int, float]]:
    """Return each training step with the seconds from the run's start to its row.

    They are the sums of the rows' wall times, so a pause before a resumption is not in them. Empty
    for a run whose rows have no times.
    """
    steps = []
    seconds = 0.0
    for row in history.steps:
        seconds += row.seconds.get("total", 0.0)
        steps.append((row.step, round(seconds, 1)))
    return steps if seconds > 0 else []


def _draw_metric(
    charts: dict[str, Row],
    metric: ShownMetric,
    rows: Sequence[StepMetrics | EvaluationMetrics],
    history: History,
    label: str,
) -> None:
    """Add a metric's series to the charts, one for each of its keys.

    Args:
        charts: by name, in the order of their first series.
        metric: of the rows.
        rows: of the run.
        history: the run.
        label: of the series, if the metric has none.
    """
    values = [getattr(row, metric.name) for row in rows]
    if not metric.chart or (metric.is_rare and not any(values)):
        return
    # A title with a place for a key is of a metric with several values.
    keys = _list_keys(values, history) if "{}" in metric.title else [""]
    for key in keys:
        steps = []
        known = []
        for row, value in zip(rows, values, strict=True):
            number = value.get(key) if key else value
            # A loss that overflowed is a gap.
            if number is not None and math.isfinite(number):
                steps.append(row.step)
                # More digits than a chart shows would only make the page's data longer.
                known.append(round(number, 6))
        if not known:
            continue
        series: Row = {"label": metric.label or label, "steps": steps, "values": known}
        if label == "held out" and metric.chart == "accuracy":
            series |= _intervals(history, key, steps)
        name = f"{metric.chart}-{key}" if key else metric.chart
        title = metric.title.format(key.replace("_", " "))
        chart = {
            "id": name,
            "title": title[:1].upper() + title[1:],
            "unit": metric.unit,
            "group": metric.group,
            "series": [],
        }
        charts.setdefault(name, chart)["series"].append(series)


def _list_keys(values: Iterable[Mapping[str, Any]], history: History) -> list[str]:
    """Return the keys of a metric with several values a row; tiers by difficulty come last."""
    keys: dict[str, None] = {}
    for value in values:
        keys.update(dict.fromkeys(value))

    def rank(key: str) -> int:
        return history.tiers.index(key) if key in history.tiers else -1

    return sorted(keys, key=rank)


def list_alarms(steps: Sequence[StepMetrics]) -> list[str]:
    """Return a line of text for each early warning of a run: its name, and where it held."""
    held: dict[str, list[int]] = {}
    for step in steps:
        for name in dict.fromkeys(step.alarms):
            held.setdefault(name, []).append(step.step)
    lines = []
    for name, numbers in held.items():
        where = f"step {numbers[0]}"
        if len(numbers) > 1:
            where = f"{len(numbers)} steps between {numbers[0]} and {numbers[-1]}"
        lines.append(f"Early warning {name.replace('_', ' ')}: {where}.")
    return lines


def _intervals(history: History, tier: str, steps: Sequence[int]) -> Row:
    """Return `low` and `high` of held-out accuracy at each step; None where unknown.

    They are of a tier, or (empty) of all problems.
    """
    of_step = {evaluation.step: evaluation.solved for evaluation in history.evaluations}
    low = []
    high = []
    for step in steps:
        estimate = estimate_accuracy(history.of_tier(of_step[step], tier))
        if estimate is None:
            low.append(None)
            high.append(None)
        else:
            low.append(estimate.low)
            high.append(estimate.high)
    return {"low": low, "high": high}
