"""The work of a study: runs at levels and seeds, and measurements.

A piece of work has a folder that is named after the code that decides its results and a digest of
its config. So equal work of several studies is done once, a finished study has nothing left to do,
and a changed recipe or a changed algorithm gets folders of its own.

In a measurement a function, its settings and a seed give paired rows, without a training run of
its own. A measurement of one seed is a unit of work like a run: it has a folder named after what
decides it, is done once, and its `summary.json`, written last, shows that it is finished. The
function takes its `Work` and yields `MeasuredValue`s:

    def judge_both_ways(work: Work, *, samples: int = 4) -> Iterator[MeasuredValue]: ...

Rows of one unit (a problem, a rollout, a pair) under several levels are compared with each other.
The published studies' functions are in `studies/measures.py`.
"""

import hashlib
import io
import json
import lzma
import math
import re
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import microcoder
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.extensions import load_extension
from microcoder.judge.core.files import new_file, read_json, read_rows, write_json, write_rows
from microcoder.judge.core.syntax import dump_meaning
from microcoder.lab.studies.design import Measurement, Study
from microcoder.train.recipe.recipe import MicroModel, TrainConfig
from microcoder.train.run.manifest import digest_config, read_git
from microcoder.train.runs import CATALOGUE, RunDirectory, steps_in

_SOURCE = Path(microcoder.__file__).parent
"""Folder of the installed package."""

_ROOMS = ("judge", "data/micro", "train")
"""Folders of the code that decides the results of a run of the micro lab."""

SUFFIX = ".tar.xz"
"""Suffix of a file of records, from which a study's pages can be written."""

_SEED = re.compile(r'"\{seed(?: % ([1-9]\d*))?\}"')
"""A seed to be filled in: `"{seed}"`, or its remainder, `"{seed % 3}"`."""


@cache
def digest_code() -> str:
    """Return the digest of the code that runs depend on, without comments, docstrings and layout.

    Reports and commands are left out: they cannot change a result.
    """
    paths: list[Path] = []
    for room in _ROOMS:
        paths += [path for path in (_SOURCE / room).rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted(paths):
        if path.suffix in (".py", ".toml"):
            name = path.relative_to(_SOURCE).as_posix()
            # Null bytes and names between them, so that no other set of files gives the same text.
            digest.update(f"{name}\0{dump_meaning(path)}\0".encode())
    return digest.hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """One value of one unit under one level."""

    metric: str
    level: str
    unit: str
    """What the levels are compared on: a problem, a rollout, a pair. Under one name in several
    seeds it is the same unit, such as a held-out problem. A unit that each seed draws for itself
    has the seed in its name."""
    value: float


@dataclass(frozen=True, slots=True)
class Work:
    """One unit of a study's work: a training run or a measurement, with one seed.

    Measuring functions get it as their argument.
    """

    study: str
    name: str
    """The level, or the measurement."""
    seed: int
    config: TrainConfig
    """The scale's baseline with the keys of the study and of the level or measurement, and this
    seed."""
    folder: Path
    """The folder of this work's files, kept between restarts."""
    measurement: Measurement | None = None
    """The measurement; None for a training run."""
    runs: Mapping[str, Path] = field(default_factory=dict)
    """Of a measurement: level -> folder of this seed's run, for the levels that it `uses`; these
    runs are finished before it starts."""

    @property
    def is_finished(self) -> bool:
        """Whether the run is complete, or the measurement's rows are written.

        Both end with a summary.json.
        """
        return RunDirectory(self.folder).is_finished

    @property
    def is_ready(self) -> bool:
        """Whether all runs that this work reads are finished."""
        return all(RunDirectory(folder).is_finished for folder in self.runs.values())

    @property
    def label(self) -> str:
        """Name for the user: study, level or measurement, and seed."""
        return f"{self.study}, {self.name}, seed {self.seed}"


def run_measurement(work: Work, measurement: Measurement) -> dict[str, Any]:
    """Run one measurement, write its rows and its summary, and return the summary.

    Raises:
        DataError: a row is invalid, or there is no row.
    """
    function = load_extension(
        "measurement",
        measurement.function,
        builtins={},
        options=measurement.settings,
    )
    started = time.process_time()
    work.folder.mkdir(parents=True, exist_ok=True)
    measured = function(work)
    if not isinstance(measured, Iterable):
        raise DataError(
            f"measurement {measurement.function} returned a {type(measured).__name__}; "
            "let it yield rows"
        )
    rows = [_check_row(row, measurement) for row in measured]
    if not rows:
        raise DataError(f"measurement {measurement.function} yielded no row")
    write_rows(work.folder / "rows.jsonl", map(asdict, rows))
    summary = {
        "function": measurement.function,
        "settings": measurement.settings,
        "seed": work.seed,
        "config": work.config.model_dump(mode="json"),
        "num_rows": len(rows),
        "git": read_git(Path(__file__).parent),
        "cpu_seconds": round(time.process_time() - started, 1),
    }
    # Last: a summary is what shows that the work is finished.
    write_json(work.folder / "summary.json", summary)
    return summary


def _check_row(row: MeasuredValue, measurement: Measurement) -> MeasuredValue:
    if row.metric not in measurement.metrics or row.level not in measurement.levels:
        raise DataError(
            f"measurement {measurement.function} yielded {row.metric!r} at {row.level!r}; the "
            f"study names the metrics {', '.join(measurement.metrics)} and the levels "
            f"{', '.join(measurement.levels)}"
        )
    is_share = measurement.metrics[row.metric].unit == "share"
    is_outside = is_share and not 0 <= row.value <= 1
    # One such value would spoil every mean that it is in.
    if is_outside or not math.isfinite(row.value):
        value = f"{row.value} for {row.metric}"
        if is_share:
            value += ", a share"
        raise DataError(f"measurement {measurement.function} yielded {value}; leave such rows out")
    return row


def read_measured(folder: Path) -> tuple[list[MeasuredValue], dict[str, Any]]:
    """Return the rows and the summary of a finished measurement."""
    summary = read_json(folder / "summary.json", what="measurement")
    try:
        return [MeasuredValue(**row) for row in read_rows(folder / "rows.jsonl")], summary
    except TypeError as error:
        raise DataError(
            f"{folder / 'rows.jsonl'} was not written by this version: {error}"
        ) from None


def level_keys(study: Study, *, scale: str, level: str) -> dict[str, Any]:
    """Return the recipe keys that a level sets at a scale."""
    chosen = study.levels[level]
    return {**chosen.set, **chosen.at.get(scale, {})}


def fill_seed(keys: str, seed: int) -> str:
    """Return keys as JSON with the seed filled in."""

    def number(match: re.Match[str]) -> str:
        divisor = match[1]
        return str(seed % int(divisor)) if divisor else str(seed)

    return _SEED.sub(number, keys)


def _move_start(config: TrainConfig, first: TrainConfig, seeds_from: int) -> TrainConfig:
    """Return a replication's config, with the seed of its warm start moved too.

    With the warm start of the replicated study it would draw the same start again.

    Args:
        config: with the replication's seed.
        first: the same with the seed that it replicates.
        seeds_from: how far the replication's seeds are from the others.
    """
    if not isinstance(config.model, MicroModel):
        return config
    if not isinstance(first.model, MicroModel):
        return config
    start = config.model.warm_start
    # The recipe names the run's seed there, so it has moved already.
    if start.seed == first.model.warm_start.seed + seeds_from:
        return config
    moved = start.model_copy(update={"seed": start.seed + seeds_from})
    model = config.model.model_copy(update={"warm_start": moved})
    return config.model_copy(update={"model": model})


def _resolver(
    study: Study,
    scale: str,
    seeds_from: int,
) -> Callable[[Mapping[str, Any], int], TrainConfig]:
    """Return a function that makes a config from a seed and the keys of a level or a measurement.

    `"{seed}"` is filled in everywhere: in keys of the study, the scale and the level.
    """
    chosen = study.at_scale(scale)

    # Reading a recipe takes a while: once for all seeds, unless the keys name the seed.
    @cache
    def read(keys: str) -> TrainConfig:
        baseline = study.path.parent / chosen.baseline
        return load_config(TrainConfig, [baseline], layers=json.loads(keys))

    def resolve(keys: Mapping[str, Any], seed: int) -> TrainConfig:
        text = json.dumps([study.set, chosen.set, keys])
        config = read(fill_seed(text, seed))
        if seeds_from and isinstance(config.model, MicroModel):
            first = read(fill_seed(text, seed - seeds_from))
            config = _move_start(config, first, seeds_from)
        return config.model_copy(update={"seed": seed})

    return resolve


def _identify(
    study: Study,
    measurement: Measurement,
    config: TrainConfig,
    runs: Mapping[str, Path],
) -> tuple[str, str]:
    """Return a measurement's function by its absolute path, and a digest of what decides its rows.

    A function of an installed module keeps its name, and its code is not in the digest.
    """
    path, _, function = measurement.function.rpartition(":")
    code = path
    if path.endswith(".py"):
        source = (study.path.parent / path).absolute()
        path = str(source)
        if source.is_file():
            code = hashlib.sha256(source.read_bytes()).hexdigest()
    parts = {
        "function": function,
        "code": code,
        "settings": measurement.settings,
        "config": digest_config(config),
        # A run's folder is named by what decides it, so its name stands for its content.
        "runs": {level: runs[level].name for level in sorted(runs)},
    }
    text = json.dumps(parts, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{path}:{function}", digest[:16]


def plan_work(
    study: Study,
    *,
    scale: str,
    root: Path,
    code: str | None = None,
    seeds_from: int = 0,
) -> list[Work]:
    """Return a study's work, seed by seed, and of a seed its measurements after its runs.

    So a part of the work compares all levels.

    Args:
        study: whose work it is.
        scale: `micro`, `quick`, or another of the study.
        root: folder of all studies' runs.
        code: code digest of the runs; None: that of the installed code. Work that the catalogue of
            a code lists is in the folder given there.
        seeds_from: added to every seed, also to that of a micro model's warm start, for a
            replication.
    """
    resolve = _resolver(study, scale, seeds_from)
    folder = root / (code or digest_code())
    works = []
    for planned_seed in study.at_scale(scale).seeds:
        seed = planned_seed + seeds_from
        runs = {}
        for level in study.levels:
            config = resolve(level_keys(study, scale=scale, level=level), seed)
            runs[level] = folder / f"seed{seed}-{digest_config(config)}"
            works.append(Work(study.name, level, seed, config, runs[level]))
        for name, measurement in study.measurements.items():
            config = resolve(measurement.set, seed)
            used = {level: runs[level] for level in measurement.uses}
            function, digest = _identify(study, measurement, config, used)
            works.append(
                Work(
                    study=study.name,
                    name=name,
                    seed=seed,
                    config=config,
                    folder=folder / f"{name}-seed{seed}-{digest}",
                    measurement=measurement.model_copy(update={"function": function}),
                    runs=used,
                )
            )
    return _find_in_catalogue(works, folder) if code else works


def _find_in_catalogue(works: Sequence[Work], folder: Path) -> list[Work]:
    """Return work with the folders that the catalogue of another code gives it.

    That code's recipes have other digests than they would have today: only its catalogue says
    which run is which.
    """
    names = read_catalogue(folder)
    relocated = []
    for work in works:
        if work.label in names:
            work = replace(work, folder=folder / names[work.label])
        relocated.append(work)
    return relocated


def read_catalogue(folder: Path) -> dict[str, str]:
    """Return the name of each run's folder by the run's labels; empty without a catalogue."""
    path = folder / CATALOGUE
    if not path.exists():
        return {}
    names = {}
    for name, labels in read_json(path, what="catalogue of runs").items():
        names.update(dict.fromkeys(labels, name))
    return names


def write_catalogue(works: Sequence[Work]) -> None:
    """Add work to the catalogues of its folders.

    A label belongs to the folder that it was planned for last.
    """
    for folder in {work.folder.parent for work in works}:
        names = {work.label: work.folder.name for work in works if work.folder.parent == folder}
        write_json(folder / CATALOGUE, _group_labels(read_catalogue(folder) | names))


def _group_labels(names: Mapping[str, str]) -> dict[str, list[str]]:
    """Return a catalogue by folder (folder -> its labels), given one by label."""
    by_name: dict[str, list[str]] = {}
    for label, name in names.items():
        by_name.setdefault(name, []).append(label)
    return dict(sorted(by_name.items()))


def distinct_work(planned: Sequence[Work]) -> list[Work]:
    """Return the work, low seeds first, each folder once."""
    first: dict[Path, Work] = {}
    for work in planned:
        first.setdefault(work.folder, work)
    # A study that is stopped early then has some seeds at all levels.
    return sorted(first.values(), key=lambda work: work.seed)


# ----- The records of a study's runs in one small file, without programs and weights.


def pack_records(works: Sequence[Work], path: Path) -> None:
    """Write the records of finished runs and measurements, and their catalogue.

    Of a run these are manifest, summary, metrics and evaluations, and each held-out problem's
    tier. Equal records give equal bytes.
    """
    done = [work for work in works if work.is_finished]
    code = done[0].folder.parent.name
    names = {work.label: work.folder.name for work in done}
    labels = _group_labels(names)
    with new_file(path) as partial, tarfile.open(partial, "w:xz") as archive:
        catalogue = json.dumps(labels, indent=2)
        _add(archive, f"{code}/{CATALOGUE}", catalogue.encode())
        for work in distinct_work(done):
            for name, content in _read_records(work):
                _add(archive, f"{code}/{work.folder.name}/{name}", content)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yield a temporary folder of what `pack_records` wrote, named after the runs' code digest.

    Raises:
        DataError: for another file.
    """
    with TemporaryDirectory() as folder:
        try:
            # All of it is read: an archive without its last bytes would give its files all the
            # same.
            content = io.BytesIO(lzma.decompress(path.read_bytes()))
            with tarfile.open(fileobj=content) as archive:
                # The file may be a stranger's: this filter refuses paths outside of the folder.
                archive.extractall(folder, filter="data")
            # A ValueError unless there is exactly one.
            (catalogue,) = Path(folder).glob(f"*/{CATALOGUE}")
        except (OSError, ValueError, lzma.LZMAError, tarfile.TarError) as error:
            raise DataError(
                f"{path} holds no records of a study ({error}); pass a NAME-records{SUFFIX} that "
                "a report wrote, or a folder of runs"
            ) from None
        yield catalogue.parent


def _read_records(work: Work) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the files of finished work that its records keep."""
    if work.measurement is not None:
        for name in ("summary.json", "rows.jsonl"):
            yield name, (work.folder / name).read_bytes()
        return
    run = RunDirectory(work.folder)
    for path in (run.manifest, run.summary, run.metrics, run.evaluations):
        yield path.name, path.read_bytes()
    # The tiers are the same in every evaluation.
    for step in steps_in(run.evaluation_samples)[:1]:
        import pyarrow.parquet as pq

        path = run.evaluation_file(step)
        light = io.BytesIO()
        tiers = pq.read_table(path, columns=["problem_id", "tier"])
        pq.write_table(tiers, light)
        yield path.relative_to(work.folder).as_posix(), light.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    # Neither time nor owner, so that equal records give equal bytes.
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def name_seeds(seeds: Sequence[int]) -> str:
    """Return seeds as text: `0 to 7` where none is left out, else all of them."""
    first = min(seeds, default=0)
    if len(seeds) > 2 and sorted(seeds) == list(range(first, first + len(seeds))):
        return f"{first} to {first + len(seeds) - 1}"
    return ", ".join(map(str, seeds))
