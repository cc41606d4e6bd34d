"""The schema of a study file: levels to train at, measurements, claims and their contrasts.

Everything that could be chosen to suit a result is written before the runs: the one contrast that
decides a claim, its smallest effect of interest, the check that the treatment reached the
rollouts, and the spread behind its power.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from microcoder.judge.core.config import SHIPPED, Config
from microcoder.judge.core.errors import ConfigError, explain_fault
from microcoder.lab.studies.features import LABELS, SHARES, parse_feature

Direction = Literal["higher", "lower", "same"]
"""The claimed sign of an effect; `same`: that it is small."""

Family = Literal["measuring", "mechanism", "training"]
"""`measuring`: what was sampled, judged or counted in two ways. `mechanism`: one or few updates
under several settings. `training`: whole runs."""

Unit = Literal["share", "tokens", "nats", "1"]
"""`share`: between 0 and 1, shown in percent with differences in points. `1`: a number without a
unit."""

MICRO = "micro"
"""Scale of the micro lab, which every study has."""

QUICK = "quick"
"""Scale at which a study's way is tried in minutes."""

MIN_SEEDS = 3
"""Fewest seeds that a study file may name."""

LEAST_REACHED = 0.05
"""Smallest effect of interest where a contrast names none."""

LEAST_GAIN = 0.12
"""Gain in held-out accuracy of the reference level, below which training claims "cannot appear
here"."""

STUDIES = Path("studies")
"""Folder of the published studies, beside the package or in it."""

_INSIGHTS_OF_ASPECT = {
    # Evaluator.
    "E": 4,
    # Temperature.
    "T": 10,
    # Data.
    "D": 4,
    # Context length.
    "C": 6,
    # Truncation mask.
    "M": 6,
    # Batch size.
    "B": 3,
    # KL and clip.
    "K": 1,
}
"""Letter of an aspect -> number of the paper's insights on it."""


def _number_insights() -> tuple[str, ...]:
    ids = []
    for aspect, num_insights in _INSIGHTS_OF_ASPECT.items():
        ids += [f"{aspect}{number}" for number in range(1, num_insights + 1)]
    return tuple(ids)


INSIGHTS = _number_insights()
"""Ids of the paper's 34 insights (arXiv 2603.07777, sections 2, 3, 4, 7). X1, X2 ... are claims
beyond them."""


class Contrast(Config):
    """A comparison: the metric, the levels, and the claimed effect.

    It has one value per seed, or per seed and unit.
    """

    metric: str = Field(min_length=1)
    """Metric of the runs (accuracy, length, ...), or one that the measurement names."""
    measurement: str = ""
    """The study's measurement that yields the metric; empty: the training runs."""
    feature: str = ""
    """For runs: the summary of the curve, such as `late`, see `microcoder.lab.studies.features`."""
    of: tuple[str, ...] = Field(min_length=1)
    """Levels whose mean is compared."""
    against: tuple[str, ...] = ()
    """Levels whose mean is subtracted; empty: the mean of `of` is compared with zero."""
    against_feature: str = ""
    """Feature of the subtracted levels, if not `feature`."""
    dose: str = ""
    """Metric of the runs whose mean up to the time of `feature` (`at 40/120`) is each level's dose;
    the effect is then the slope of `metric` over the dose."""
    at_equal: str = ""
    """A second metric of the runs: the levels are compared where it is equal in both. The level in
    which it is lower at the feature's time is read then, the other one earlier. For one level
    against another, `late` or `at 40/120`."""
    per: str = ""
    """A metric of the runs by which the metric is divided, at the same time: the contrast is then
    of shares."""
    per_level: str = ""
    """Of a measurement whose levels are times (`early`, `late`): the level of the runs that `per`
    is read from."""
    direction: Direction = "higher"
    """Claimed sign of the difference; `same`: that it is small."""
    least: float = Field(default=LEAST_REACHED, gt=0)
    """Smallest effect of interest, in the metric's unit; for `same`, the smallest difference that
    would matter. Of a check, the mean over seeds under which the claim cannot appear here."""
    paper: float | None = Field(default=None, gt=0)
    """The paper's effect in the same unit, as claimed; none where the paper has no figure for it.
    If `least` is above it, an interval that excludes `least` does not contradict the claim."""

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels that the contrast names, each once."""
        return tuple(dict.fromkeys(self.of + self.against))

    @property
    def is_above_paper(self) -> bool:
        """Whether the smallest effect of interest is larger than the paper's own."""
        return self.paper is not None and self.least > self.paper

    def _contradictions(self) -> Iterator[str]:
        if self.dose and not self._has_slope:
            yield (
                "dose: name two levels or more, no `against`, and a feature `at 40/120`, "
                f"not {self.feature!r}"
            )
        if self.at_equal:
            yield from self._faults_of_equality()
        if bool(self.per_level) != bool(self.per and self.measurement):
            yield (
                "per_level goes with `per` of a measurement: name the level whose runs `per` is "
                "read from"
            )
        if self.measurement:
            feature = self.feature or self.against_feature
            if feature:
                yield f"a measurement has no feature; leave {feature!r} out"
            return
        yield from self._faults_of_runs()

    @property
    def _has_slope(self) -> bool:
        """Whether the contrast has the levels and the feature that a slope over the dose needs."""
        if self.against or len(self.of) < 2:
            return False
        return self.feature.startswith("at ")

    def _faults_of_runs(self) -> Iterator[str]:
        """Yield what runs do not have; raises ValueError for an unknown feature."""
        for metric in (self.metric, self.dose, self.at_equal, self.per):
            if metric and metric not in LABELS:
                yield (
                    f"no metric {metric!r} of runs; use one of {', '.join(LABELS)}, or name a "
                    "measurement"
                )
        parse_feature(self.feature)
        parse_feature(self.against_feature or self.feature)

    def _faults_of_equality(self) -> Iterator[str]:
        if self.measurement or len(self.of) != 1 or len(self.against) != 1:
            yield (
                "at_equal compares runs of one level with those of one other: name one in `of` "
                "and one in `against`"
            )
        if self.feature != "late" and not self.feature.startswith("at "):
            yield f"at_equal: name a feature `late` or `at 40/120`, not {self.feature!r}"
        if self.against_feature or self.dose or self.per:
            yield (
                "at_equal decides the time of both levels: leave against_feature, dose and per out"
            )


class Control(Contrast):
    """A contrast that rules out another explanation of a claim's effect.

    The claim must hold under it, too. Sign and smallest effect of interest are those of the claim's
    primary contrast.
    """

    says: str = Field(min_length=1)
    """What is held equal, as a clause: `at equal accuracy`, `after as many rounds under the long
    limit`."""


class Spread(Config):
    """The spread between seeds, measured before the study."""

    sd: float = Field(gt=0)
    """Standard deviation over seeds of the primary contrast's paired difference."""
    where: str = Field(min_length=1)
    """Origin of the figure: the pilot and its number of seeds."""


class Claim(Config):
    """A claim of the paper: its contrasts, or why it is not decidable here."""

    id: str = Field(pattern=r"^[A-Z]\d+$")
    """Id in the catalogue of 34; X1, X2 ... for a claim beyond it."""
    says: str = Field(min_length=1)
    """The claim in words."""
    short: str = Field(min_length=1, max_length=90)
    """The tested statement as a clause for sentences and figures: `a mask makes responses grow`."""
    paper: str = Field(min_length=1)
    """The paper's result in its figures."""
    family: Family
    design: str = Field(min_length=1)
    """The test in one sentence."""
    primary: Contrast | None = None
    """The contrast that decides the claim; None for a claim that is not asked or not decidable
    here."""
    secondary: tuple[Contrast, ...] = ()
    """Contrasts that are reported and decide nothing."""
    controls: tuple[Control, ...] = ()
    """Contrasts that only take away: a claim that reverses or vanishes under one is "undone by its
    control"."""
    check: Contrast | None = None
    """Manipulation check: the treatment reached the rollouts if this is at least `least`."""
    spread: Spread | None = None
    undecidable: str = ""
    """The reason why no hours of the micro model decide the claim, and what would: model, steps,
    seeds, hours."""
    unasked: str = ""
    """The reason why this study does not ask the claim though the micro model could decide it, and
    what that takes."""
    construction: str = ""
    """The reason why no other sign was possible here, if so; the verdict is then "by
    construction"."""
    note: str = ""
    """A caveat for readers of the verdict."""

    @property
    def is_catalogued(self) -> bool:
        """Whether the claim belongs to the catalogue's 34, which are corrected together."""
        return self.id in INSIGHTS

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The primary contrast, if there is one, and the secondary ones."""
        if self.primary is None:
            return self.secondary
        return (self.primary, *self.secondary)

    def _contradictions(self) -> Iterator[str]:
        if self.is_catalogued == self.id.startswith("X"):
            yield (
                f"claim {self.id} is none of the 34 ({', '.join(INSIGHTS)}); name others X1, X2 ..."
            )
        for contrast in self.contrasts:
            # A default would be a choice that nobody wrote down before the runs.
            lacking = sorted({"direction", "least"} - contrast.model_fields_set)
            if lacking:
                yield (
                    f"claim {self.id}: its contrast of {contrast.metric} needs "
                    f"{' and '.join(lacking)}"
                )
        ways_to_decide = (self.primary, self.undecidable, self.unasked)
        # Two ways would let a result choose the way that it is decided by.
        if sum(map(bool, ways_to_decide)) != 1:
            yield (
                f"claim {self.id} needs either `primary`, or `unasked` with the reason and what it "
                "would take, or `undecidable` where no hours of the micro model would do"
            )
        yield from self._faults_of_controls()
        if self.primary:
            yield from self._faults_of_test(self.primary)

    def _faults_of_controls(self) -> Iterator[str]:
        if self.controls and not self.primary:
            yield f"claim {self.id} has controls and no `primary` that they would control"
        for control in self.controls:
            # A bound of its own could be set so that the control takes nothing away.
            repeated = sorted({"direction", "least"} & control.model_fields_set)
            if repeated:
                yield (
                    f"claim {self.id}: a control takes {' and '.join(repeated)} from `primary`; "
                    "leave them out"
                )

    def _faults_of_test(self, primary: Contrast) -> Iterator[str]:
        """Yield what is missing in a claim that a contrast decides."""
        # Without it nobody could say before the runs whether they can decide anything.
        if self.spread is None:
            yield f"claim {self.id} needs `spread`: measure it on a pilot, and say where"
        # A treatment that never reached the rollouts would look like one without an effect.
        if self.family != "measuring" and self.check is None:
            yield f"claim {self.id} needs a `check`: that the treatment reached the rollouts"
        if self.family == "training" and primary.measurement:
            yield (
                f"claim {self.id}: a contrast over a measurement is of family "
                '"measuring" or "mechanism"'
            )


class MeasuredMetric(Config):
    """A quantity that a measurement yields."""

    says: str = Field(min_length=1)
    """Name in tables and figures: `change of log-probability, truncated less whole responses`."""
    unit: Unit = "1"


class Measurement(Config):
    """A measurement that needs no whole training runs: one unit of work per seed of the study."""

    function: str = Field(min_length=1)
    """`path/to/file.py:function`, from the study's folder, or `module:function`: it takes its
    `Work` and yields `MeasuredValue`s (`microcoder.lab.studies.work`)."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Keyword-only parameters of the function."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys that override the scale's baseline and the study's `set`."""
    uses: tuple[str, ...] = ()
    """Levels whose finished run of the same seed the function reads."""
    levels: tuple[str, ...] = Field(min_length=1)
    """Names of the levels that its rows are under."""
    over: Literal["starts", "seeds", "units"] = "starts"
    """What was drawn, so that another draw could give other values. `starts`: the models that runs
    start from, which several seeds may share. `seeds`: every seed, for what begins with no model.
    `units`: the units of the rows, such as problems, whatever the seed."""
    metrics: dict[str, MeasuredMetric] = Field(min_length=1)
    """Name -> metric, for the metrics of its rows."""


class FigureChoice(Config):
    """The figure that a page shows: a metric of a few levels over a run."""

    metric: str
    levels: tuple[str, ...] = Field(min_length=2, max_length=5)


class Level(Config):
    """One setting of the factor that a study varies."""

    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys that override the baseline; the value `"{seed}"` is the run's seed,
    `"{seed % 3}"` its remainder."""
    at: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Scale -> keys that override `set` at that scale, such as steps and lengths."""
    says: str = ""
    """Label for tables, if the name is not enough."""


class Scale(Config):
    """A size at which a study can be run: a recipe, seeds, and keys to set in the recipe."""

    baseline: Path
    """Path of the recipe, relative to the study's folder."""
    seeds: tuple[int, ...] = Field(min_length=1)
    """Seeds in the order in which they are run."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys of all levels at this scale."""


class Study(Config):
    """A study: question, levels or measurements, and claims."""

    path: Path = Path()
    """The file that the study was read from."""
    question: str = Field(min_length=1)
    done: str = Field(min_length=1)
    """The experiment in one sentence for the page: `The same tiny model was trained with and
    without a mask.`"""
    next: str = Field(min_length=1)
    """The next step in one sentence."""
    factor: str = Field(min_length=1)
    """The factor, in words."""
    baseline: Path
    """Path of the recipe of the micro lab, relative to the study's folder."""
    reference: str = ""
    """The level that is the baseline, or the one that others are compared with; none without
    levels."""
    seeds: tuple[int, ...] = Field(min_length=MIN_SEEDS)
    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys of all levels at every scale."""
    figure: FigureChoice | None = None
    """The figure of the page."""
    levels: dict[str, Level] = Field(default_factory=dict)
    """Name -> level: the configurations that are trained."""
    measurements: dict[str, Measurement] = Field(default_factory=dict)
    """Measurements without whole training runs."""
    scales: dict[str, Scale] = Field(default_factory=dict)
    """Name -> scale, such as `quick` or a model's size; `micro` is the study's own baseline and
    seeds, if not named."""
    claims: tuple[Claim, ...] = ()
    """Claims; empty for a study whose results are reported elsewhere."""

    @property
    def name(self) -> str:
        """The file's name without suffix."""
        return self.path.stem

    def at_scale(self, name: str) -> Scale:
        """Return a scale; raises ConfigError if the study has none of that name."""
        if name == MICRO and MICRO not in self.scales:
            return Scale(baseline=self.baseline, seeds=self.seeds)
        if name not in self.scales:
            names = dict.fromkeys([MICRO, *self.scales])
            raise ConfigError(f"no scale {name!r} in {self.name}; use one of {', '.join(names)}")
        return self.scales[name]

    def unit_of(self, contrast: Contrast) -> Unit:
        """Return the unit of a contrast's metric."""
        metric = contrast.metric
        # A quotient has lost the unit of the metric that is divided.
        if contrast.per:
            return "share"
        if contrast.measurement:
            return self.measurements[contrast.measurement].metrics[metric].unit
        if metric in SHARES:
            return "share"
        return "tokens" if "length" in metric else "1"

    def describe(self, contrast: Contrast) -> str:
        """Return a contrast in words: metric, levels, and what they are compared with."""
        metric = _spaced(contrast.metric).replace("heldout", "held-out")
        if contrast.feature:
            metric += f", {_spaced(contrast.feature)}"
        if contrast.measurement:
            metric = self.measurements[contrast.measurement].metrics[contrast.metric].says
        if contrast.per:
            metric += f", as a share of {_spaced(contrast.per)}"
        if contrast.at_equal:
            metric += f", at equal {_spaced(contrast.at_equal)}"
        if contrast.dose and len(contrast.of) > 2:
            # The page's table of runs lists the doses between.
            ends = f"{contrast.of[0]} to {contrast.of[-1]}"
            return f"{metric}: {ends}, slope over {_spaced(contrast.dose)}"
        text = f"{metric}: {' and '.join(contrast.of)}"
        if contrast.dose:
            return f"{text}, slope over {_spaced(contrast.dose)}"
        if contrast.against:
            text += f" against {' and '.join(contrast.against)}"
            if contrast.against_feature:
                text += f" ({_spaced(contrast.against_feature)})"
        return text

    def _contradictions(self) -> Iterator[str]:
        yield from self._faults_of_levels()
        yield from self._faults_of_measurements()
        for claim in self.claims:
            for contrast in (*claim.contrasts, *claim.controls, claim.check):
                if contrast is not None:
                    yield from self._faults_of_contrast(contrast, claim.id)

    def _faults_of_levels(self) -> Iterator[str]:
        if not self.levels and not self.measurements:
            yield "a study needs [levels] to train at, or [measurements]"
        if len(self.levels) == 1:
            yield "one level compares nothing; add another, or leave levels to [measurements]"
        if self.levels and self.reference not in self.levels:
            yield f"{self.reference}: no such level; levels are {', '.join(self.levels)}"
        scales: set[str] = set()
        for level in self.levels.values():
            scales.update(level.at)
        unknown = sorted(scales - self.scales.keys() - {MICRO})
        if unknown:
            yield f"levels set keys at {', '.join(unknown)}, no scale; add [scales.{unknown[0]}]"

    def _faults_of_measurements(self) -> Iterator[str]:
        labels: list[str] = []
        for name, measurement in self.measurements.items():
            unknown = [level for level in measurement.uses if level not in self.levels]
            if unknown:
                yield (
                    f"measurement {name} uses {unknown[0]}, no level; levels are "
                    f"{', '.join(self.levels)}"
                )
            labels += [metric.says for metric in measurement.metrics.values()]
        repeated = sorted({label for label in labels if labels.count(label) > 1})
        if repeated:
            yield (
                f"two metrics of measurements say {repeated[0]!r}; records name effects by these "
                "words"
            )

    def _faults_of_contrast(self, contrast: Contrast, claim: str) -> Iterator[str]:
        """Yield the levels, measurement and metric of a claim's contrast that the study lacks."""
        if contrast.per_level and contrast.per_level not in self.levels:
            yield (
                f"{claim}: {contrast.per_level}: no such level; levels are {', '.join(self.levels)}"
            )
        if contrast.measurement and contrast.measurement not in self.measurements:
            yield f"{claim}: no measurement {contrast.measurement!r} in this study"
            return
        measurement = self.measurements.get(contrast.measurement)
        known = measurement.levels if measurement else tuple(self.levels)
        unknown = [level for level in contrast.levels if level not in known]
        if unknown:
            yield f"{claim}: {', '.join(unknown)}: no such level; levels are {', '.join(known)}"
        if measurement and contrast.metric not in measurement.metrics:
            yield (
                f"{claim}: no metric {contrast.metric!r}; use one of "
                f"{', '.join(measurement.metrics)}"
            )


def _spaced(name: str) -> str:
    """Return a name of code as words."""
    return name.replace("_", " ")


def load_study(path: Path) -> Study:
    """Read a study file; raises ConfigError if it is missing, not TOML, or not a valid study."""
    try:
        keys = tomllib.loads(path.read_text(encoding="utf-8"))
        # The path comes last: a file does not say itself where it is.
        return Study.model_validate({**keys, "path": path})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"study {path} cannot be read: {error}") from None
    except ValidationError as error:
        faults = []
        for fault in error.errors():
            key = ".".join(map(str, fault["loc"]))
            faults.append(explain_fault(fault, key))
        raise ConfigError(f"study {path}: {'; '.join(faults)}") from None


def find_studies(name: str | None) -> list[Study]:
    """Return the study of a name, or all studies.

    Args:
        name: a TOML file, or a name or a part of one in ./studies (or in the package's own
            folder); None: all.

    Raises:
        ConfigError: there is none of that name, or several.
    """
    if name is not None and Path(name).suffix == ".toml":
        return [load_study(Path(name))]
    # The user's own studies hide those of the package.
    folder = STUDIES if STUDIES.is_dir() else SHIPPED / STUDIES
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ConfigError(f"no studies in {folder.absolute()}; pass a file")
    if name is None:
        return [load_study(path) for path in paths]
    # A whole name first, since it may be a part of others.
    matches = [path for path in paths if name == path.stem]
    if not matches:
        matches = [path for path in paths if name in path.stem]
    if len(matches) != 1:
        number = "more than one" if matches else "no"
        names = ", ".join(path.stem for path in paths)
        raise ConfigError(f"{number} study is called {name!r}; studies: {names}")
    return [load_study(matches[0])]
