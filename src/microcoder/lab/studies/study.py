"""Study files and their work: runs at levels and seeds, and measurements.

A piece of work has a folder that is named after the code that decides its results and a digest of its config, so that
equal work of several studies is done once, a finished study has nothing left to do, and a changed recipe or a changed
algorithm gets folders of its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from microcoder.judge.core.config import SHIPPED, load_config
from microcoder.judge.core.errors import ConfigError, explain_fault
from microcoder.lab.studies.design import MICRO, SEED, Measurement, Scale, Study
from microcoder.lab.studies.jobs import Job
from microcoder.lab.studies.measure import digest_measurement, is_measured
from microcoder.lab.studies.provenance import digest_code
from microcoder.train.algorithm.masking import ConditionalMasking, NoMasking
from microcoder.train.algorithm.sampling import AblationRamp, ConstantTemperature, StagedTemperature
from microcoder.train.algorithm.schedules import scheduled_temperature
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.manifest import digest_config
from microcoder.train.runs import RunDirectory

STUDIES = Path("studies")


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A study and where it stands."""

    path: Path
    study: Study

    @property
    def name(self) -> str:
        """The file's name without suffix."""
        return self.path.stem

    def scale(self, name: str) -> Scale:
        """Return a scale.

        Raises:
            ConfigError: the study has none of that name.
        """
        study = self.study
        if name == MICRO:
            return Scale(baseline=study.baseline, seeds=study.seeds)
        if name not in study.scales:
            raise ConfigError(f"no scale {name!r} in {self.name}; use one of {', '.join([MICRO, *study.scales])}")
        return study.scales[name]


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One run of a study."""

    study: str
    level: str
    seed: int
    config: TrainConfig
    folder: Path

    @property
    def is_finished(self) -> bool:
        """Whether the run is complete."""
        return RunDirectory(self.folder).is_finished

    @property
    def label(self) -> str:
        """Study, level and seed."""
        return f"{self.study}, {self.level}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class StudyMeasurement:
    """One measurement of a study, of one seed."""

    study: str
    name: str
    measurement: Measurement
    seed: int
    config: TrainConfig
    folder: Path
    runs: Mapping[str, Path]
    """Level -> folder of the run that it reads, finished or not."""

    @property
    def is_finished(self) -> bool:
        """Whether its rows are written."""
        return is_measured(self.folder)

    @property
    def is_ready(self) -> bool:
        """Whether the runs that it reads are finished."""
        return all(RunDirectory(folder).is_finished for folder in self.runs.values())

    @property
    def job(self) -> Job:
        """Input of its function."""
        return Job(self.seed, self.config, self.folder, self.runs)

    @property
    def label(self) -> str:
        """Study, measurement and seed."""
        return f"{self.study}, {self.name}, seed {self.seed}"


Work = StudyRun | StudyMeasurement


def load_study(path: Path) -> StudyFile:
    """Read a study file.

    Raises:
        ConfigError: it is missing, not TOML, or holds something else.
    """
    try:
        study = Study.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"study {path} cannot be read: {error}") from None
    except ValidationError as error:
        faults = "; ".join(explain_fault(fault, ".".join(map(str, fault["loc"]))) for fault in error.errors())
        raise ConfigError(f"study {path}: {faults}") from None
    return StudyFile(path, study)


def find_studies(name: str | None, *, folder: Path | None = None) -> list[StudyFile]:
    """Return the study of a name (a file, or the start or a part of a name in `folder`); None: all of the folder.

    Args:
        name: of the study.
        folder: where studies are; None: `studies` here, or the package's own where there is no such folder.

    Raises:
        ConfigError: there is none of that name, or several.
    """
    if name is not None and Path(name).suffix == ".toml":
        return [load_study(Path(name))]
    folder = folder or (STUDIES if STUDIES.is_dir() else SHIPPED / STUDIES)
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ConfigError(f"no studies in {folder.absolute()}; pass a file")
    if name is None:
        return [load_study(path) for path in paths]
    found = [path for path in paths if name == path.stem] or [path for path in paths if name in path.stem]
    if len(found) != 1:
        raise ConfigError(
            f"{'no' if not found else 'more than one'} study is called {name!r}; "
            f"studies: {', '.join(path.stem for path in paths)}"
        )
    return [load_study(found[0])]


def resolve_config(file: StudyFile, *, scale: str, level: str, seed: int) -> TrainConfig:
    """Return the recipe of one level and seed."""
    keys = _fill_in(level_keys(file.study, scale=scale, level=level), seed)
    return _resolve(file, scale=scale, keys=keys, seed=seed)


def _fill_in(value: Any, seed: int) -> Any:
    match value:
        case dict():
            return {key: _fill_in(item, seed) for key, item in value.items()}
        case list() | tuple():
            return [_fill_in(item, seed) for item in value]
        case _:
            return seed if value == SEED else value


def level_keys(study: Study, *, scale: str, level: str) -> dict[str, Any]:
    """Return a level's keys at a scale."""
    return {**study.levels[level].set, **study.levels[level].at.get(scale, {})}


def plan_runs(
    file: StudyFile, *, scale: str, root: Path, code: str | None = None, seeds_from: int = 0
) -> list[StudyRun]:
    """Return the study's runs, seed by seed, so that a part of them compares all levels.

    Args:
        file: the study.
        scale: `micro`, `quick`, or another of the study.
        root: folder of all studies' runs.
        code: code digest of the runs; None: that of the installed code.
        seeds_from: added to every seed, for a replication.
    """
    runs = []
    seeds = [seed + seeds_from for seed in file.scale(scale).seeds]
    recipes = {level: _recipes(file, scale, level, seeds) for level in file.study.levels}
    for index, seed in enumerate(seeds):
        for level, configs in recipes.items():
            config = configs[index]
            folder = root / (code or digest_code(config.engine)) / f"seed{config.seed}-{digest_config(config)}"
            runs.append(StudyRun(file.name, level, seed, config, folder))
    return runs


def _recipes(file: StudyFile, scale: str, level: str, seeds: Sequence[int]) -> list[TrainConfig]:
    """Return a level's recipe for each seed: resolved once, unless the level names the seed."""
    keys = level_keys(file.study, scale=scale, level=level)
    if _fill_in(keys, seeds[0]) != keys:
        return [simplify_config(resolve_config(file, scale=scale, level=level, seed=seed)) for seed in seeds]
    recipe = simplify_config(resolve_config(file, scale=scale, level=level, seed=seeds[0]))
    return [recipe.model_copy(update={"seed": seed}) for seed in seeds]


def plan_measurements(
    file: StudyFile, *, scale: str, root: Path, code: str | None = None, seeds_from: int = 0
) -> list[StudyMeasurement]:
    """Return the study's measurements, seed by seed; arguments as in `plan_runs`."""
    runs = {
        (run.level, run.seed): run.folder
        for run in plan_runs(file, scale=scale, root=root, code=code, seeds_from=seeds_from)
    }
    planned = []
    for name, measurement in file.study.measurements.items():
        recipe = _resolve(file, scale=scale, keys=measurement.set, seed=0)
        for seed in (seed + seeds_from for seed in measurement.seeds):
            if lacking := [level for level in measurement.uses if (level, seed) not in runs]:
                raise ConfigError(
                    f"study {file.name}: measurement {name} reads the run at {lacking[0]} of seed {seed - seeds_from}, "
                    f"which is not among the {scale} seeds; choose the measurement's seeds from those"
                )
            config = recipe.model_copy(update={"seed": seed})
            used = {level: runs[level, seed] for level in measurement.uses}
            digest = digest_measurement(measurement, config, used)
            folder = root / (code or digest_code(config.engine)) / f"{name}-seed{seed}-{digest}"
            planned.append(StudyMeasurement(file.name, name, measurement, seed, config, folder, used))
    return sorted(planned, key=lambda work: work.seed)


def plan_work(file: StudyFile, *, scale: str, root: Path, code: str | None = None, seeds_from: int = 0) -> list[Work]:
    """Return all of a study's work, low seeds first; a measurement comes after the runs that it reads."""
    runs = plan_runs(file, scale=scale, root=root, code=code, seeds_from=seeds_from)
    measurements = plan_measurements(file, scale=scale, root=root, code=code, seeds_from=seeds_from)
    return sorted([*runs, *measurements], key=lambda work: work.seed)


def distinct_work(planned: Sequence[Work]) -> list[Work]:
    """Return the distinct work; low seeds come first."""
    first: dict[Path, Work] = {}
    for work in planned:
        first.setdefault(work.folder, work)
    return sorted(first.values(), key=lambda work: work.seed)


def simplify_config(config: TrainConfig) -> TrainConfig:
    """Return the canonical recipe with the same training, so that equivalent runs are done once.

    A mask of share 0 is none, a schedule that gives every step one temperature is that constant, and a longer limit
    from a step after the last one never comes.
    """
    masking, rollout = config.algorithm.masking, config.rollout
    if isinstance(masking, ConditionalMasking) and masking.rho == 0:
        algorithm = config.algorithm.model_copy(update={"masking": NoMasking(kind="none")})
        config = config.model_copy(update={"algorithm": algorithm})
    stages = tuple(stage for stage in rollout.length_stages if stage.from_step <= config.num_steps)
    rollout = rollout.model_copy(update={"length_stages": stages})
    if isinstance(rollout.temperature, StagedTemperature | AblationRamp):
        steps = range(1, config.num_steps + 1)
        values = {scheduled_temperature(rollout.temperature, step=step) for step in steps}
        if len(values) == 1:
            constant = ConstantTemperature(kind="constant", value=values.pop())
            rollout = rollout.model_copy(update={"temperature": constant})
    return config.model_copy(update={"rollout": rollout})


def _resolve(file: StudyFile, *, scale: str, keys: Mapping[str, Any], seed: int) -> TrainConfig:
    chosen = file.scale(scale)
    return load_config(
        TrainConfig,
        [file.path.parent / chosen.baseline],
        layers=[file.study.set, chosen.set, keys, {"seed": seed}],
    )
