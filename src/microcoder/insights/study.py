"""A study: one question, a baseline recipe, one factor with its levels, seeds, and the claims it tests.

A study file (TOML) names everything; `plan_runs` turns it into runs. A run's folder is named after the code that
decides its results and its config digest, so that equal runs of several studies are one, a finished study has nothing
left to do, and a changed recipe or a changed algorithm gets folders of its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from microcoder.config import Config, load_config
from microcoder.errors import ConfigError
from microcoder.insights.catalogue import INSIGHTS
from microcoder.insights.features import Metric, parse_feature
from microcoder.insights.provenance import digest_code
from microcoder.runs import RunDirectory
from microcoder.training.config import TrainConfig
from microcoder.training.manifest import digest_config

Direction = Literal["higher", "lower", "same"]

MICRO, QUICK = "micro", "quick"
STUDIES = Path("studies")
MIN_SEEDS = 3
SEED = "{seed}"
"""What stands for the run's seed in the values of a level."""


class Predicate(Config):
    """One measurable part of a claim: a feature of a metric at some levels against others."""

    metric: Metric
    feature: str
    """Such as `late` or `early - late`, see `microcoder.insights.features`."""
    of: tuple[str, ...] = Field(min_length=1)
    """Levels; of several, their mean."""
    against: tuple[str, ...] = ()
    """Levels that are subtracted; none: the feature itself is compared with zero."""
    against_feature: str | None = None
    """Where it is another than `feature`."""
    direction: Direction
    least: float = Field(gt=0)
    """Smallest effect of interest, in the metric's unit; for `same`, the largest difference that counts as none."""

    @model_validator(mode="after")
    def _features_exist(self) -> Predicate:
        for text in (self.feature, self.against_feature or self.feature):
            parse_feature(text)
        return self


class Claim(Config):
    """A claim of the paper as predicates that must all hold, or the reason why it cannot appear here."""

    id: str = Field(pattern=r"^[A-Z]\d+$")
    """Of the catalogue of 34, or X1, X2 ... for a claim beyond it."""
    says: str = ""
    """The claim in words; only for one beyond the catalogue."""
    paper: str = Field(min_length=1)
    """What the paper's figures show."""
    predicates: tuple[Predicate, ...] = ()
    cannot: str = ""
    """Why it cannot appear on the micro lab."""
    note: str = ""
    """What a reader of the verdict must know."""

    @property
    def sentence(self) -> str:
        """The claim in words."""
        return INSIGHTS.get(self.id) or self.says

    @model_validator(mode="after")
    def _is_testable_or_says_why_not(self) -> Claim:
        if (self.id in INSIGHTS) == self.id.startswith("X"):
            raise ValueError(f"claim {self.id} is none of the 34 ({', '.join(INSIGHTS)}); name others X1, X2 ...")
        if (self.id in INSIGHTS) == bool(self.says):
            raise ValueError(f"claim {self.id}: `says` is for claims beyond the catalogue, and needed there")
        if bool(self.predicates) == bool(self.cannot):
            raise ValueError(f"claim {self.id} needs predicates, or `cannot` with the reason, and not both")
        return self


class Level(Config):
    """One setting of the factor."""

    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys over the baseline; the value `"{seed}"` is the run's seed."""
    at: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """By scale: keys over `set`, for steps and lengths that another scale counts otherwise."""
    says: str = ""
    """For figures, where the name is not enough."""


class Scale(Config):
    """The same study at another size."""

    baseline: Path
    """Recipe, from the study's folder."""
    seeds: tuple[int, ...] = Field(min_length=1)
    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys of all levels at this scale."""


class Study(Config):
    """What is asked, what is varied, and what is claimed."""

    question: str = Field(min_length=1)
    factor: str = Field(min_length=1)
    """What is varied, in words."""
    baseline: Path
    """Recipe of the micro lab, from the study's folder."""
    reference: str
    """The level that is the baseline, or the one that others are seen against."""
    seeds: tuple[int, ...] = Field(min_length=MIN_SEEDS)
    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys of all levels at every scale."""
    metrics: tuple[Metric, ...] = Field(min_length=1)
    """Curves that the report draws."""
    levels: dict[str, Level] = Field(min_length=2)
    scales: dict[str, Scale] = Field(default_factory=dict)
    """`quick`, and model sizes for `microcoder study plan`."""
    claims: tuple[Claim, ...] = ()

    @model_validator(mode="after")
    def _names_are_levels(self) -> Study:
        named = {self.reference}.union(*(p.of + p.against for claim in self.claims for p in claim.predicates))
        if unknown := sorted(named - self.levels.keys()):
            raise ValueError(f"{', '.join(unknown)}: no such level; levels are {', '.join(self.levels)}")
        scales = {scale for level in self.levels.values() for scale in level.at}
        if unknown := sorted(scales - self.scales.keys() - {MICRO}):
            raise ValueError(f"levels set keys at {', '.join(unknown)}, no scale; add [scales.{unknown[0]}]")
        return self

    def scale(self, name: str) -> Scale:
        """Return a scale.

        Raises:
            ConfigError: the study has none of that name.
        """
        if name == MICRO:
            return Scale(baseline=self.baseline, seeds=self.seeds)
        if name not in self.scales:
            raise ConfigError(f"no scale {name!r} in this study; use one of {', '.join([MICRO, *self.scales])}")
        return self.scales[name]


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A study and where it stands."""

    path: Path
    study: Study

    @property
    def name(self) -> str:
        """The file's name without suffix."""
        return self.path.stem


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
        """The run ended by itself."""
        return RunDirectory(self.folder).is_finished

    @property
    def label(self) -> str:
        """Study, level and seed."""
        return f"{self.study}, {self.level}, seed {self.seed}"


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
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}".removeprefix(": ")
            for fault in error.errors()
        )
        raise ConfigError(f"study {path}: {faults}") from None
    return StudyFile(path, study)


def find_studies(name: str | None, *, folder: Path = STUDIES) -> list[StudyFile]:
    """Return the study of a name (a file, or the start or a part of a name in `folder`); None: all of the folder.

    Raises:
        ConfigError: there is none of that name, or several.
    """
    if name is not None and Path(name).suffix == ".toml":
        return [load_study(Path(name))]
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ConfigError(f"no studies in {folder.absolute()}; run this where {folder}/ is, or give a file")
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
    chosen = file.study.scale(scale)
    return load_config(
        TrainConfig,
        [file.path.parent / chosen.baseline],
        layers=[
            file.study.set,
            chosen.set,
            _fill_in(level_keys(file.study, scale=scale, level=level), seed),
            {"seed": seed},
        ],
    )


def _fill_in(value: Any, seed: int) -> Any:
    """Put the run's seed where a level says SEED: for what a seed is to vary besides the run."""
    match value:
        case dict():
            return {key: _fill_in(item, seed) for key, item in value.items()}
        case list() | tuple():
            return [_fill_in(item, seed) for item in value]
        case _:
            return seed if value == SEED else value


def level_keys(study: Study, *, scale: str, level: str) -> dict[str, Any]:
    """Return what a level sets at a scale."""
    return {**study.levels[level].set, **study.levels[level].at.get(scale, {})}


def plan_runs(file: StudyFile, *, scale: str, root: Path, code: str | None = None) -> list[StudyRun]:
    """Return the study's runs, seed by seed, so that a part of them compares all levels.

    Args:
        file: the study.
        scale: `micro`, `quick`, or another of the study.
        root: folder of all studies' runs.
        code: the digest whose runs are meant; None: that of the code at hand.
    """
    runs = []
    for seed in file.study.scale(scale).seeds:
        for level in file.study.levels:
            config = resolve_config(file, scale=scale, level=level, seed=seed)
            folder = root / (code or digest_code(config.engine)) / f"seed{seed}-{digest_config(config)}"
            runs.append(StudyRun(file.name, level, seed, config, folder))
    return runs


def distinct_runs(runs: Sequence[StudyRun]) -> list[StudyRun]:
    """Return each run once, of those that several studies share the first; low seeds come first."""
    first: dict[Path, StudyRun] = {}
    for run in runs:
        first.setdefault(run.folder, run)
    return sorted(first.values(), key=lambda run: run.seed)
