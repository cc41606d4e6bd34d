"""The schema of a study file: levels to train at, measurements, and claims with the contrasts that decide them.

Everything that could be chosen to suit a result is written before the runs: the one contrast that decides a claim, its
smallest effect of interest, the check that the treatment reached the rollouts, and the spread behind its power.
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
Family = Literal["measuring", "mechanism", "training"]
"""`measuring`: what was sampled, judged or counted in two ways. `mechanism`: one or few updates under several settings.
`training`: whole runs."""
Unit = Literal["share", "tokens", "nats", "1"]
"""`share`: between 0 and 1, shown in percent with differences in points; `1`: a number without a unit."""

MICRO, QUICK = "micro", "quick"
MIN_SEEDS = 3
LEAST_REACHED = 0.05
LEAST_GAIN = 0.12
"""Gain in held-out accuracy of the reference level, below which training claims "cannot appear here"."""
STUDIES = Path("studies")
INSIGHTS = tuple(
    f"{aspect}{number + 1}"
    for aspect, num in (("E", 4), ("T", 10), ("D", 4), ("C", 6), ("M", 6), ("B", 3), ("K", 1))
    for number in range(num)
)
"""Ids of the paper's 34 insights (arXiv 2603.07777, sections 2, 3, 4, 7): evaluator, temperature, data, context length,
truncation mask, batch size, KL and clip. X1, X2 ... are claims beyond them."""


class Contrast(Config):
    """A comparison: the metric, the levels, and the claimed effect; one value per seed, or per seed and unit."""

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
    """Metric of the runs whose mean up to the time of `feature` (`at 40/120`) is each level's dose; the effect is then
    the slope of `metric` over the dose."""
    at_equal: str = ""
    """A second metric of the runs: the levels are compared where it is equal in both. The level in which it is lower at
    the feature's time is read then, the other one earlier. For one level against another, `late` or `at 40/120`."""
    per: str = ""
    """A metric of the runs by which the metric is divided, at the same time: the contrast is then of shares."""
    per_level: str = ""
    """Of a measurement whose levels are times (`early`, `late`): the level of the runs that `per` is read from."""
    direction: Direction = "higher"
    """Claimed sign of the difference; `same`: that it is small."""
    least: float = Field(default=LEAST_REACHED, gt=0)
    """Smallest effect of interest, in the metric's unit; for `same`, the smallest difference that would matter. Of a
    check, the mean over seeds under which the claim cannot appear here."""
    paper: float | None = Field(default=None, gt=0)
    """The paper's effect in the same unit, as claimed; none where the paper has no figure for it. If `least` is above
    it, an interval that excludes `least` does not contradict the claim."""

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels that the contrast names, each once."""
        return tuple(dict.fromkeys(self.of + self.against))

    @property
    def is_above_paper(self) -> bool:
        """Whether the smallest effect of interest is larger than the paper's own."""
        return self.paper is not None and self.least > self.paper

    def _contradictions(self) -> Iterator[str]:
        if self.dose and (self.against or len(self.of) < 2 or not self.feature.startswith("at ")):
            yield f"dose: name two levels or more, no `against`, and a feature `at 40/120`, not {self.feature!r}"
        if self.at_equal:
            yield from self._faults_of_equality()
        if bool(self.per_level) != bool(self.per and self.measurement):
            yield "per_level goes with `per` of a measurement: name the level whose runs `per` is read from"
        if self.measurement:
            if self.feature or self.against_feature:
                yield f"a measurement has no feature; leave {self.feature or self.against_feature!r} out"
            return
        for metric in filter(None, (self.metric, self.dose, self.at_equal, self.per)):
            if metric not in LABELS:
                yield f"no metric {metric!r} of runs; use one of {', '.join(LABELS)}, or name a measurement"
        for text in (self.feature, self.against_feature or self.feature):
            parse_feature(text)

    def _faults_of_equality(self) -> Iterator[str]:
        if self.measurement or len(self.of) != 1 or len(self.against) != 1:
            yield "at_equal compares runs of one level with those of one other: name one in `of` and one in `against`"
        if self.feature != "late" and not self.feature.startswith("at "):
            yield f"at_equal: name a feature `late` or `at 40/120`, not {self.feature!r}"
        if self.against_feature or self.dose or self.per:
            yield "at_equal decides the time of both levels: leave against_feature, dose and per out"


class Control(Contrast):
    """A contrast that a claim has to hold under, too: another explanation of its effect is taken away.

    Sign and smallest effect of interest are those of the claim's primary contrast.
    """

    says: str = Field(min_length=1)
    """What is held equal, as a clause: `at equal accuracy`, `after as many rounds under the long limit`."""


class Spread(Config):
    """The spread between seeds, measured before the study."""

    sd: float = Field(gt=0)
    """Standard deviation over seeds of the primary contrast's paired difference."""
    where: str = Field(min_length=1)
    """Origin of the figure: the pilot and its number of seeds."""


class Claim(Config):
    """A claim of the paper: its primary and secondary contrasts, or why it is not decidable here."""

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
    """The contrast that decides the claim; None for a claim that is not asked or not decidable here."""
    secondary: tuple[Contrast, ...] = ()
    """Contrasts that are reported and decide nothing."""
    controls: tuple[Control, ...] = ()
    """Contrasts that only take away: a claim that reverses or vanishes under one is "undone by its control"."""
    check: Contrast | None = None
    """Manipulation check: the treatment reached the rollouts if this is at least `least`."""
    spread: Spread | None = None
    undecidable: str = ""
    """The reason why no hours of the micro model decide the claim, and what would: model, steps, seeds, hours."""
    unasked: str = ""
    """The reason why this study does not ask the claim though the micro model could decide it, and what that takes."""
    construction: str = ""
    """The reason why no other sign was possible here, if so; the verdict is then "by construction"."""
    note: str = ""
    """A caveat for readers of the verdict."""

    @property
    def is_catalogued(self) -> bool:
        """Whether the claim is one of the catalogue's 34, which are corrected together."""
        return self.id in INSIGHTS

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The primary contrast, if there is one, and the secondary ones."""
        return (*((self.primary,) if self.primary else ()), *self.secondary)

    def _contradictions(self) -> Iterator[str]:
        if self.is_catalogued == self.id.startswith("X"):
            yield f"claim {self.id} is none of the 34 ({', '.join(INSIGHTS)}); name others X1, X2 ..."
        for contrast in self.contrasts:
            if lacking := {"direction", "least"} - contrast.model_fields_set:
                yield f"claim {self.id}: its contrast of {contrast.metric} needs {' and '.join(sorted(lacking))}"
        if sum(map(bool, (self.primary, self.undecidable, self.unasked))) != 1:
            yield (
                f"claim {self.id} needs either `primary`, or `unasked` with the reason and what it would take, or "
                "`undecidable` where no hours of the micro model would do"
            )
        if self.controls and not self.primary:
            yield f"claim {self.id} has controls and no `primary` that they would control"
        for control in self.controls:
            if given := sorted({"direction", "least"} & control.model_fields_set):
                yield f"claim {self.id}: a control takes {' and '.join(given)} from `primary`; leave them out"
        if self.primary and self.spread is None:
            yield f"claim {self.id} needs `spread`: measure it on a pilot, and say where"
        if self.primary and self.family != "measuring" and self.check is None:
            yield f"claim {self.id} needs a `check`: that the treatment reached the rollouts"
        if self.primary and self.family == "training" and self.primary.measurement:
            yield f'claim {self.id}: a contrast over a measurement is of family "measuring" or "mechanism"'


class MeasuredMetric(Config):
    """A quantity that a measurement yields."""

    says: str = Field(min_length=1)
    """Name in tables and figures: `change of log-probability, truncated less whole responses`."""
    unit: Unit = "1"


class Measurement(Config):
    """A measurement without whole training runs: one unit of work per seed of the study."""

    function: str = Field(min_length=1)
    """`path/to/file.py:function`, from the study's folder, or `module:function`: it takes its `Work` and yields
    `MeasuredValue`s (`microcoder.lab.studies.work`)."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Keyword-only parameters of the function."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys that override the scale's baseline and the study's `set`."""
    uses: tuple[str, ...] = ()
    """Levels whose finished run of the same seed the function reads."""
    levels: tuple[str, ...] = Field(min_length=1)
    """Names of the levels that its rows are under."""
    over: Literal["starts", "seeds", "units"] = "starts"
    """What was drawn, so that another draw could give other values. `starts`: the models that runs start from, which
    several seeds may share. `seeds`: every seed, for what begins with no model. `units`: the units of the rows, such as
    problems, whatever the seed."""
    metrics: dict[str, MeasuredMetric] = Field(min_length=1)
    """Name -> metric, for the metrics of its rows."""


class FigureChoice(Config):
    """The one figure of a page: a metric of a few levels over a run."""

    metric: str
    levels: tuple[str, ...] = Field(min_length=2, max_length=5)


class Level(Config):
    """One setting of the factor that a study varies."""

    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys that override the baseline; the value `"{seed}"` is the run's seed, `"{seed % 3}"` its remainder."""
    at: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Scale -> keys that override `set` at that scale, such as steps and lengths."""
    says: str = ""
    """Label for tables, if the name is not enough."""


class Scale(Config):
    """A size at which a study can be run: its recipe, seeds and keys."""

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
    """The experiment in one sentence for the page: `The same tiny model was trained with and without a mask.`"""
    next: str = Field(min_length=1)
    """The next step in one sentence."""
    factor: str = Field(min_length=1)
    """The factor, in words."""
    baseline: Path
    """Path of the recipe of the micro lab, relative to the study's folder."""
    reference: str = ""
    """The level that is the baseline, or the one that others are compared with; none without levels."""
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
    """Name -> scale, such as `quick` or a model's size; `micro` is the study's own baseline and seeds, if not named."""
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
            raise ConfigError(
                f"no scale {name!r} in {self.name}; use one of {', '.join(dict.fromkeys([MICRO, *self.scales]))}"
            )
        return self.scales[name]

    def unit_of(self, contrast: Contrast) -> Unit:
        """Return the unit of a contrast's metric."""
        metric = contrast.metric
        if contrast.per:
            return "share"
        if contrast.measurement:
            return self.measurements[contrast.measurement].metrics[metric].unit
        return "share" if metric in SHARES else "tokens" if "length" in metric else "1"

    def describe(self, contrast: Contrast) -> str:
        """Return a contrast in words: metric, levels, and what they are compared with."""
        feature, other, dose = (
            text.replace("_", " ")
            for text in (contrast.feature, contrast.against_feature, contrast.dose)
        )
        metric = contrast.metric.replace("_", " ").replace("heldout", "held-out") + (
            f", {feature}" if feature else ""
        )
        if contrast.measurement:
            metric = self.measurements[contrast.measurement].metrics[contrast.metric].says
        if contrast.per:
            metric += f", as a share of {contrast.per.replace('_', ' ')}"
        if contrast.at_equal:
            metric += f", at equal {contrast.at_equal.replace('_', ' ')}"
        text = f"{metric}: {' and '.join(contrast.of)}"
        if dose:
            return f"{text}, slope over the dose: {dose}"
        against = " and ".join(contrast.against) + (f" ({other})" if other else "")
        return f"{text} against {against}" if contrast.against else text

    def _contradictions(self) -> Iterator[str]:
        if not self.levels and not self.measurements:
            yield "a study needs [levels] to train at, or [measurements]"
        if len(self.levels) == 1:
            yield "one level compares nothing; add another, or leave levels to [measurements]"
        if self.levels and self.reference not in self.levels:
            yield f"{self.reference}: no such level; levels are {', '.join(self.levels)}"
        scales = {scale for level in self.levels.values() for scale in level.at}
        if unknown := sorted(scales - self.scales.keys() - {MICRO}):
            yield f"levels set keys at {', '.join(unknown)}, no scale; add [scales.{unknown[0]}]"
        for name, measurement in self.measurements.items():
            if unknown := [level for level in measurement.uses if level not in self.levels]:
                yield f"measurement {name} uses {unknown[0]}, no level; levels are {', '.join(self.levels)}"
        metrics = [
            metric.says
            for measurement in self.measurements.values()
            for metric in measurement.metrics.values()
        ]
        if twice := sorted({said for said in metrics if metrics.count(said) > 1}):
            yield f"two metrics of measurements say {twice[0]!r}; records name effects by these words"
        named = [
            (claim.id, one)
            for claim in self.claims
            for one in (*claim.contrasts, *claim.controls, claim.check)
            if one
        ]
        for where, one in named:
            known = tuple(self.levels)
            if one.per_level and one.per_level not in self.levels:
                yield f"{where}: {one.per_level}: no such level; levels are {', '.join(self.levels)}"
            if one.measurement:
                if one.measurement not in self.measurements:
                    yield f"{where}: no measurement {one.measurement!r} in this study"
                    continue
                known = self.measurements[one.measurement].levels
            if unknown := [level for level in one.levels if level not in known]:
                yield f"{where}: {', '.join(unknown)}: no such level; levels are {', '.join(known)}"
            if one.measurement and one.metric not in (
                metrics := self.measurements[one.measurement].metrics
            ):
                yield f"{where}: no metric {one.metric!r}; use one of {', '.join(metrics)}"


def load_study(path: Path) -> Study:
    """Read a study file; raises ConfigError if it is missing, not TOML, or not a valid study."""
    try:
        return Study.model_validate(
            {**tomllib.loads(path.read_text(encoding="utf-8")), "path": path}
        )
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"study {path} cannot be read: {error}") from None
    except ValidationError as error:
        faults = "; ".join(
            explain_fault(fault, ".".join(map(str, fault["loc"]))) for fault in error.errors()
        )
        raise ConfigError(f"study {path}: {faults}") from None


def find_studies(name: str | None) -> list[Study]:
    """Return the study of `name`, a TOML file or part of a name in ./studies (or the package's own); None: all. Raises
    ConfigError if there is none of that name, or several."""
    if name is not None and Path(name).suffix == ".toml":
        return [load_study(Path(name))]
    folder = STUDIES if STUDIES.is_dir() else SHIPPED / STUDIES
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ConfigError(f"no studies in {folder.absolute()}; pass a file")
    if name is None:
        return [load_study(path) for path in paths]
    found = [path for path in paths if name == path.stem] or [
        path for path in paths if name in path.stem
    ]
    if len(found) != 1:
        raise ConfigError(
            f"{'no' if not found else 'more than one'} study is called {name!r}; "
            f"studies: {', '.join(path.stem for path in paths)}"
        )
    return [load_study(found[0])]
