"""A training run in the viewer: one Parquet file of rollouts per step; its small columns are read at once, texts later.

Its curves are plain numbers: the page overlays the charts of several runs that have the same id.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import DataError, MicroCoderError
from microcoder.judge.core.files import read_json
from microcoder.judge.core.prompts import BUILTINS
from microcoder.lab.studies.accuracy import estimate_accuracy
from microcoder.train.metrics import EvaluationMetrics, StepMetrics, shown_metrics
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
    Asked,
    ProblemTests,
    Row,
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

_SECONDS, _DETAIL, _OUTPUT = (
    f"tests.list.element.{name}" for name in ("cpu_seconds", "detail", "output")
)
_LIGHT = (*COLUMN_NAMES, _SECONDS)
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


class TrainingSource(RunSource):
    """A folder that `microcoder train` wrote, finished or not; every engine writes the same."""

    kind = "training"

    def __init__(self, root: Path, manifest: Row, tests: ProblemTests | None) -> None:
        super().__init__()
        self._run = RunDirectory(root)
        self._manifest = manifest
        # Of a study's run: the study, level and seed.
        folder, beside = root.resolve(), root.resolve().parent / CATALOGUE
        labels = (
            read_json(beside, what="list of a study's runs").get(folder.name)
            if beside.is_file()
            else None
        )
        self.name = str(labels[0] if labels else manifest.get("name") or folder.name)
        self.tests = tests or tests_of_run(manifest.get("config") or {})
        self._seen: dict[str, tuple[int, int]] = {}
        self._frame: PromptFrame | None = None
        self._reads_own_files = tests is None
        self._changed: bool | None = None
        self._drawn: tuple[object, History, list[Row]] | None = None
        """Kept between calls: stamp of the metrics' files, their history, and its charts."""

    def stamp(self) -> str:
        """Return a text that changes with the rollouts or the metrics."""
        return f"{self.index().version} {self._draw()[0]}"

    def parts(self, index: Index) -> list[IndexPart]:
        """Return the rollouts in one part per file, whose texts are read when needed."""
        with self._lock:
            found = []
            for name, columns in self._builder.parts.items():
                split, _, step = name.partition("/")
                path = self._path(split, int(step))
                part = IndexPart(len(columns["row"]), functools.partial(_read_texts, path))
                found.append(((int(step), SPLITS.index(split)), part))
        return [part for _, part in sorted(found, key=lambda pair: pair[0])]

    def read(self, record: Row) -> Row:
        """Return a rollout's texts and tests."""
        return _with_facts(
            read_row(self._path(record["split"], record["step"]), record["row"], _HEAVY)
        )

    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield every rollout's texts and tests, which are read in batches of rows."""
        words, columns = index.words["split"], index.columns
        place = 0
        while place < len(index):
            split, step = words[columns["split"][place]], int(columns["step"][place])
            with pq.ParquetFile(self._path(split, step)) as file:
                for batch in file.iter_batches(ROWS_AT_ONCE, columns=present(file, _HEAVY)):
                    yield from map(_with_facts, batch.to_pylist())
                place += file.metadata.num_rows

    def explain_difference(self, problem_id: str, asked: Asked) -> str:
        """Return why a problem of a file is not the one of this run, by the prompt that the run recorded."""
        index = self.index()
        places = index.places_of(problem_id)
        if not places:
            return "Not shown: no rollout of this run answers this problem."
        record = index.record(places[0])
        path = self._path(record["split"], record["step"])
        prompt = read_row(path, record["row"], ["prompt"]).get("prompt")
        if not prompt:
            return "Not shown: this run recorded no prompt to compare the problem's statement with."
        style = (self._manifest.get("config") or {}).get("prompt") or {}
        if is_asked_by(prompt, asked, style=style, frame=self._find_frame()):
            return ""
        return explain_other(asked)

    def find_tests(self, problem_id: str) -> FoundTests:
        """Return the tests of a problem, or why they are not shown; a file that changed since is named as such."""
        found = super().find_tests(problem_id)
        return note_change(found) if found.asked and self._has_changed_files() else found

    def _has_changed_files(self) -> bool:
        """Whether the problem files of the run's config are known to hold something else than the run recorded."""
        if self._changed is None:
            self._changed = False
            config = self._manifest.get("config") or {}
            problems = config.get("problems") or {}
            paths = [Path(str(problems.get(split))) for split in ("train", "heldout")]
            is_ours = self._reads_own_files and problems.get("kind") == "files"
            is_known = (
                self.asked is not None and (config.get("prompt") or {}).get("style") in BUILTINS
            )
            is_comparable = is_of_this_version(self._manifest) and is_small(paths)
            if is_ours and is_known and is_comparable:
                try:
                    tasks = load_tasks(TrainConfig.model_validate(config))
                    self._changed = tasks.as_record()["digest"] != self.asked
                except (MicroCoderError, ValueError, OSError):
                    # A config of another version: nothing is known.
                    self._changed = False
        return self._changed

    def _find_frame(self) -> PromptFrame | None:
        """Return what stands around the problem in every prompt, by the first file of rollouts and of evaluations."""
        if self._frame is None:
            prompts: set[str] = set()
            for folder in (self._run.rollouts, self._run.evaluation_samples):
                for step in sorted(steps_in(folder))[:1]:
                    path = folder / self._run.rollout_file(step).name
                    column = pq.read_table(path, columns=["prompt"])["prompt"]
                    prompts.update(filter(None, column.unique().to_pylist()))
            self._frame = find_frame(prompts)
        return self._frame

    @property
    def asked(self) -> str | None:
        """Digest of the run's problems; None if unknown."""
        return problems_digest(self._manifest)

    def history(self) -> History:
        """Return the run's metrics; files that grew are read again."""
        return self._draw()[1]

    def about(self) -> RunInfo:
        """Return state, facts, notices and charts of the run."""
        _, history, charts = self._draw()
        state = "finished" if history.is_finished else f"{len(history.steps)} steps so far"
        manifest, notices = self._manifest, list_alarms(history.steps)
        if self.tests.missing:
            notices.append(self.tests.missing)
        git = manifest.get("git") or {}
        facts = {
            "started": manifest.get("started"),
            "commit": str(git.get("commit") or "")
            + (" with changes" if git.get("is_dirty") else ""),
            "microcoder": manifest.get("microcoder_version"),
            "digest": manifest.get("digest"),
            "seed": manifest.get("seed"),
            **flatten(
                {
                    key: manifest.get(key) or {}
                    for key in ("isolation", "machine", "config", "packages")
                }
            ),
        }
        shown = [(key, "not set" if value is None else str(value)) for key, value in facts.items()]
        return RunInfo(state, [(key, value) for key, value in shown if value], notices, charts)

    def _draw(self) -> tuple[object, History, list[Row]]:
        stamp = stamp_of(self._run.metrics, self._run.evaluations, self._run.summary)
        with self._lock:
            if self._drawn is None or self._drawn[0] != stamp:
                history = read_history(self._run.root)
                self._drawn = stamp, history, draw_training(history)
            return self._drawn

    def _refresh(self) -> bool:
        files = {
            f"{split}/{step}": (split, step)
            for split, folder in (
                ("train", self._run.rollouts),
                ("heldout", self._run.evaluation_samples),
            )
            for step in steps_in(folder)
        }
        stamps = {name: stamp_of(self._path(*place))[0] for name, place in files.items()}
        changed = [name for name, stamp in stamps.items() if self._seen.get(name) != stamp]
        gone = self._builder.parts.keys() - files.keys()
        if not changed and not gone:
            return False
        for name in gone:
            del self._builder.parts[name]
        for name in changed:
            split, step = files[name]
            self._builder.put_rows(name, self._read_light(self._path(split, step), split, step))
        self._seen = stamps
        return True

    def _read_light(self, path: Path, split: str, step: int) -> list[Row]:
        try:
            with pq.ParquetFile(path) as file:
                table = file.read(columns=present(file, _LIGHT), use_threads=False)
        except (OSError, ValueError) as error:
            raise DataError(
                f"{path} cannot be read ({error}); remove it, or resume the run"
            ) from None
        slowest = np.full(table.num_rows, np.nan)
        if "tests" in table.column_names:
            # In Arrow: a list of Python objects for each test takes three times as long as all the rest.
            tests = table["tests"].combine_chunks()
            seconds = (
                pc.list_flatten(tests)
                .field("cpu_seconds")
                .cast(pa.float64())
                .to_numpy(zero_copy_only=False)
            )
            np.fmax.at(slowest, pc.list_parent_indices(tests).to_numpy(), seconds)
            table = table.drop_columns("tests")
        own = {"split": split, "step": step}
        return [
            {**row, **own, "row": place, "cpu_seconds": seconds}
            for place, (row, seconds) in enumerate(
                zip(table.to_pylist(), slowest.tolist(), strict=True)
            )
        ]

    def _path(self, split: str, step: int) -> Path:
        return self._run.rollout_file(step) if split == "train" else self._run.evaluation_file(step)


def _read_texts(path: Path) -> Texts:
    """Return a file's texts by field, for a search; prompts and errors that rows share are stored once."""
    try:
        with pq.ParquetFile(path, read_dictionary=["prompt"]) as file:
            names = ("prompt", "completion", "program", _DETAIL, _OUTPUT)
            table = file.read(columns=present(file, names), use_threads=False).combine_chunks()
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); was the run resumed or moved?") from None
    named = (("prompt", "prompt"), ("response", "completion"), ("program", "program"))
    texts = {field: _one(table[name]) for field, name in named if name in table.column_names}
    if "tests" in table.column_names:
        tests = _one(table["tests"])
        tests = tests.slice(0)  # Offsets and values from the same beginning.
        details = pc.list_flatten(tests)
        held = [name for name in ("detail", "output") if details.type.get_field_index(name) >= 0]
        lines = pc.binary_join_element_wise(
            *(details.field(name).fill_null("") for name in held), "\n"
        )
        counts = pc.list_value_length(tests).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        joined = pc.binary_join(pa.ListArray.from_arrays(offsets, lines), "\n")
        texts["errors"] = joined.dictionary_encode()
    return texts


def _one(column: Any) -> Any:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _with_facts(row: Row) -> Row:
    penalty = row.pop("length_penalty", None)
    return {**row, "facts": {"length penalty": f"{penalty:.3f}"}} if penalty else row


def draw_training(history: History) -> list[Row]:
    """Return the charts of a run's metrics, those that have values: id, title, unit and series."""
    charts: dict[str, Row] = {}
    for kind, rows, label in (
        (StepMetrics, history.steps, "training"),
        (EvaluationMetrics, history.evaluations, "held out"),
    ):
        for shown in (one for one in shown_metrics(kind) if one.chart):
            values = [getattr(row, shown.name) for row in rows]
            if shown.is_rare and not any(values):
                continue
            keys = (
                [""]
                if "{}" not in shown.title
                else list(dict.fromkeys(key for value in values for key in value))
            )
            for key in sorted(
                keys, key=lambda key: history.tiers.index(key) if key in history.tiers else -1
            ):
                points = [
                    (row.step, value.get(key) if key else value)
                    for row, value in zip(rows, values, strict=True)
                ]
                # A loss that overflowed is a gap.
                known = [
                    (step, value)
                    for step, value in points
                    if value is not None and math.isfinite(value)
                ]
                if not known:
                    continue
                title = shown.title.format(key.replace("_", " "))
                empty = {"title": title[:1].upper() + title[1:], "unit": shown.unit, "series": []}
                name = f"{shown.chart}-{key}" if key else shown.chart
                series: Row = {
                    "label": shown.label or label,
                    "steps": [step for step, _ in known],
                    "values": [round(value, 6) for _, value in known],
                }
                if label == "held out" and shown.chart == "accuracy":
                    series |= _intervals(history, key, series["steps"])
                charts.setdefault(name, {"id": name, **empty})["series"].append(series)
    return sorted(charts.values(), key=lambda chart: chart["id"] != "accuracy")


def list_alarms(steps: Sequence[StepMetrics]) -> list[str]:
    """Return a line of text for each early warning of a run: its name, and the steps at which it held."""
    lines = []
    for name in dict.fromkeys(name for step in steps for name in step.alarms):
        held = [step.step for step in steps if name in step.alarms]
        where = (
            f"step {held[0]}"
            if len(held) == 1
            else f"{len(held)} steps between {held[0]} and {held[-1]}"
        )
        lines.append(f"Early warning {name.replace('_', ' ')}: {where}.")
    return lines


def _intervals(
    history: History, tier: str, steps: Sequence[int]
) -> Mapping[str, list[float | None]]:
    """Return `low` and `high` of held-out accuracy at each step, of a tier or (empty) all; None where unknown."""
    of_step = {evaluation.step: evaluation.solved for evaluation in history.evaluations}
    estimates = [estimate_accuracy(history.of_tier(of_step[step], tier)) for step in steps]
    return {
        bound: [getattr(one, bound) if one else None for one in estimates]
        for bound in ("low", "high")
    }
