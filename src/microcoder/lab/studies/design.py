"""The schema of a study file: levels to train at, measurements, and claims with their predicates.

Everything that could be chosen to suit a result is written here before the runs: the one predicate that decides a
claim, its smallest effect of interest, the check that the treatment reached the rollouts, and the spread from which its
power is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field

from microcoder.judge.core.config import Config
from microcoder.lab.studies.features import LABELS, parse_feature

Direction = Literal["higher", "lower", "same"]
Family = Literal["measuring", "mechanism", "training"]
"""`measuring`: what was sampled, judged or counted in two ways. `mechanism`: one or few updates under several settings.
`training`: whole runs."""
Unit = Literal["share", "tokens", "nats", "1"]
"""`share`: between 0 and 1, shown in percent with differences in points; `1`: a number without a unit."""

MICRO, QUICK = "micro", "quick"
MIN_SEEDS = 3
SEED = "{seed}"
"""Placeholder of the run's seed in the values of a level."""
LEAST_REACHED = 0.05
LEAST_GAIN = 0.12
"""Held-out accuracy that the reference level must gain; under it, training claims cannot appear here."""

# The paper's 34 insights, by aspect, in our own words (arXiv 2603.07777, sections 2, 3, 4 and 7).
ASPECTS: Mapping[str, str] = MappingProxyType(
    {
        "E": "Evaluator",
        "T": "Temperature",
        "D": "Data",
        "C": "Context length",
        "M": "Truncation masking",
        "B": "Batch size and on-policy",
        "K": "KL and clip",
        "X": "Beyond the 34",
    }
)

INSIGHTS: Mapping[str, str] = MappingProxyType(
    {
        "E1": "A checker that recognises valid answers in other forms measures a higher accuracy, closer to the truth.",
        "E2": "The robust evaluator gives higher critic reward in training.",
        "E3": "Training with the robust evaluator reaches higher test accuracy, sooner.",
        "E4": "The difference between the evaluators is largest early in training.",
        "T1": "The highest temperature at which sampling stays accurate grows during training.",
        "T2": "Higher temperature, higher diversity.",
        "T3": "At a fixed temperature diversity falls as training goes on.",
        "T4": "If diversity starts below the value it would converge to, it keeps falling and training fails.",
        "T5": "The once-standard temperature 0.6 can fail.",
        "T6": "Modern models train stably even at temperature 1.8, with little effect on the final value.",
        "T7": "Diversity converges to similar values whatever the temperature.",
        "T8": "The temperature should be chosen from diversity: neither steady decline nor drastic swings.",
        "T9": "Staged low-to-high beats the high temperature from the start.",
        "T10": "Continuous uniform change destabilises; even a brief ramp leaves lasting damage.",
        "D1": "The harder dataset gives fast test gains; the easy one nearly none.",
        "D2": "The harder dataset gives lower critic reward.",
        "D3": "Both rewards grow alike; only the hard one's growth carries over to the test set.",
        "D4": "On harder problems responses grow faster and end longer, though they start no longer.",
        "C1": "Longer maximum output, higher final accuracy.",
        "C2": "Longer maximum output, faster growth and longer final outputs.",
        "C3": "Longer (maximum) outputs go with higher diversity.",
        "C4": "A short limit at the start harms length and diversity, and so accuracy, even after extension.",
        "C5": "The shorter the first limit, the greater the harm.",
        "C6": "The longer one trains under a short limit, the less is recovered; past a threshold, nothing.",
        "M1": "Masking gives a rapid rise, then a decline, then a plateau.",
        "M2": "More masking, faster length growth toward the limit; 30 % grows as fast as all.",
        "M3": "More masking reaches the first peak sooner.",
        "M4": "Less masking improves for longer and peaks higher.",
        "M5": "More masking, faster diversity decline, lower final diversity; all: a brief rise, then collapse.",
        "M6": "Conditional masking is the most stable and ends highest.",
        "B1": "More on-policy: less stable, diversity converges faster, length rises then falls.",
        "B2": "More off-policy: more stable on both diversity and length.",
        "B3": "The middle batch size performs best.",
        "K1": "No KL with high clip: more diversity, longer responses, sustained gains; KL with symmetric clip: early "
        "gain, then decline.",
    }
)


class Contrast(Config):
    """A metric at some levels minus the same at others; one value per seed, or one per problem."""

    metric: str = Field(min_length=1)
    """Metric of the runs (accuracy, length, ...), or one that the measurement names."""
    measurement: str = ""
    """The study's measurement that yields the metric; none: the training runs."""
    feature: str = ""
    """For runs: the summary of the curve, such as `late`, see `microcoder.lab.studies.features`."""
    of: tuple[str, ...] = Field(min_length=1)
    """Levels; the mean of several."""
    against: tuple[str, ...] = ()
    """Levels that are subtracted; none: the quantity itself is compared with zero."""
    against_feature: str = ""
    """Feature of the subtracted levels, if not `feature`."""

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels that it names."""
        return tuple(dict.fromkeys(self.of + self.against))

    def _contradictions(self) -> Iterator[str]:
        if self.measurement:
            if self.feature or self.against_feature:
                yield f"a measurement has no feature; leave {self.feature or self.against_feature!r} out"
            return
        if self.metric not in LABELS:
            yield (f"no metric {self.metric!r} of runs; use one of {', '.join(LABELS)}, or name a measurement")
        for text in (self.feature, self.against_feature or self.feature):
            parse_feature(text)


class Predicate(Contrast):
    """A measurable statement: the contrast has a direction and a smallest effect of interest."""

    direction: Direction
    least: float = Field(gt=0)
    """Smallest effect of interest, in the metric's unit; for `same`, the smallest difference that would matter."""


class Check(Contrast):
    """A manipulation check: below `least`, the claim cannot appear here."""

    least: float = Field(default=LEAST_REACHED, gt=0)
    """Smallest effect of interest, as the mean over seeds."""


class Spread(Config):
    """The spread between seeds, measured before the study."""

    sd: float = Field(gt=0)
    """Standard deviation over seeds of the primary predicate's paired difference."""
    where: str = Field(min_length=1)
    """Origin of the figure: the pilot and its number of seeds."""


class Undecidable(Config):
    """Why a claim is not decidable at this scale, written before the runs."""

    reason: str = Field(min_length=1)
    compute: str = Field(min_length=1)
    """Compute that would decide it: model, steps, seeds, GPU-hours."""


class Claim(Config):
    """A claim of the paper: its primary and secondary predicates, or why it is not decidable here."""

    id: str = Field(pattern=r"^[A-Z]\d+$")
    """Id in the catalogue of 34; X1, X2 ... for a claim beyond it."""
    says: str = ""
    """The claim in words; only for claims beyond the catalogue."""
    short: str = Field(min_length=1, max_length=90)
    """The tested statement as a clause for sentences and figures: `a mask makes responses grow`."""
    paper: str = Field(min_length=1)
    """The paper's result in its figures."""
    family: Family
    design: str = Field(min_length=1)
    """The test in one sentence."""
    primary: Predicate | None = None
    """Decides the claim; none for a claim that is not decidable here."""
    secondary: tuple[Predicate, ...] = ()
    """Reported, without deciding anything."""
    check: Check | None = None
    spread: Spread | None = None
    undecidable: Undecidable | None = None
    note: str = ""
    """A caveat for readers of the verdict."""

    @property
    def sentence(self) -> str:
        """The claim in words."""
        return INSIGHTS.get(self.id) or self.says

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The primary one first."""
        return (*((self.primary,) if self.primary else ()), *self.secondary)

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """All contrasts that are read from runs and measurements."""
        return (*self.predicates, *((self.check,) if self.check else ()))

    def _contradictions(self) -> Iterator[str]:
        if (self.id in INSIGHTS) == self.id.startswith("X"):
            yield f"claim {self.id} is none of the 34 ({', '.join(INSIGHTS)}); name others X1, X2 ..."
        if (self.id in INSIGHTS) == bool(self.says):
            yield f"claim {self.id}: `says` is for claims beyond the catalogue, and needed there"
        if (self.primary is None) == (self.undecidable is None):
            yield f"claim {self.id} needs either `primary`, or `undecidable` with reason and compute"
        if self.primary and self.spread is None:
            yield f"claim {self.id} needs `spread`: measure it on a pilot, and say where"
        if self.primary and self.family != "measuring" and self.check is None:
            yield f"claim {self.id} needs a `check`: that the treatment reached the rollouts"
        if self.primary and self.family == "training" and self.primary.measurement:
            yield f'claim {self.id}: a predicate over a measurement is of family "measuring" or "mechanism"'


class MeasuredMetric(Config):
    """A quantity that a measurement yields."""

    says: str = Field(min_length=1)
    """For tables and figures: `change of log-probability, truncated less whole responses`."""
    unit: Unit = "1"


class Measurement(Config):
    """A measurement without whole training runs: one unit of work per seed."""

    function: str = Field(min_length=1)
    """`module:function` or `path/to/file.py:function` of one `Job`; it yields `MeasuredValue`s
    (`microcoder.lab.studies.measure`)."""
    says: str = Field(min_length=1)
    """Description as a clause for the page."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Keyword-only parameters of the function."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys that override the scale's baseline and the study's `set`."""
    uses: tuple[str, ...] = ()
    """Levels whose finished run of the same seed the function reads."""
    seeds: tuple[int, ...] = Field(min_length=MIN_SEEDS)
    levels: tuple[str, ...] = Field(min_length=1)
    """Levels of its rows."""
    metrics: dict[str, MeasuredMetric] = Field(min_length=1)
    """Metrics of its rows."""


class FigureChoice(Config):
    """The one figure of a page: a metric of a few levels, over a run or as measured; without it, the effects."""

    metric: str
    measurement: str = ""
    levels: tuple[str, ...] = Field(min_length=2, max_length=5)


class Level(Config):
    """One setting of the factor."""

    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys that override the baseline; the value `"{seed}"` is the run's seed."""
    at: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """By scale: keys that override `set`, such as steps and lengths."""
    says: str = ""
    """Label for tables, if the name is not enough."""


class Scale(Config):
    """The same study at another size."""

    baseline: Path
    """Recipe, from the study's folder."""
    seeds: tuple[int, ...] = Field(min_length=1)
    """Seeds in the order in which they are run; later ones only if the first do not suffice."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys of all levels at this scale."""


class Study(Config):
    """A study: question, levels or measurements, and claims."""

    question: str = Field(min_length=1)
    done: str = Field(min_length=1)
    """The experiment in one sentence for the page: `The same tiny model was trained with and without a mask.`"""
    next: str = Field(min_length=1)
    """The next step in one sentence."""
    factor: str = Field(min_length=1)
    """The factor, in words."""
    baseline: Path
    """Recipe of the micro lab, from the study's folder."""
    reference: str = ""
    """The level that is the baseline, or the one that others are seen against; none without levels."""
    seeds: tuple[int, ...] = Field(min_length=MIN_SEEDS)
    first_look: int = Field(default=5, ge=2)
    """Seeds that are run before any interval is looked at; its width decides on further ones."""
    precision: float = Field(default=1.0, gt=0)
    """Half width of a primary effect's 95 % interval, in units of its `least`, above which further seeds are run."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Recipe keys of all levels at every scale."""
    figure: FigureChoice | None = None
    """The figure of the page; none: the primary effects of all claims."""
    levels: dict[str, Level] = Field(default_factory=dict)
    """Configurations that are trained."""
    measurements: dict[str, Measurement] = Field(default_factory=dict)
    """Measurements without whole training runs."""
    scales: dict[str, Scale] = Field(default_factory=dict)
    """`quick`, and model sizes for `microcoder study plan`."""
    claims: tuple[Claim, ...] = ()
    """Claims; None for a study whose results are reported elsewhere."""

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
        for claim in self.claims:
            for contrast in claim.contrasts:
                yield from self._unknown_names(claim.id, contrast.measurement, contrast.metric, contrast.levels)
        if self.figure is not None:
            yield from self._unknown_names("figure", self.figure.measurement, self.figure.metric, self.figure.levels)

    def _unknown_names(self, where: str, measurement: str, metric: str, levels: tuple[str, ...]) -> Iterator[str]:
        known, metrics = tuple(self.levels), tuple(LABELS)
        if measurement:
            if measurement not in self.measurements:
                yield f"{where}: no measurement {measurement!r} in this study"
                return
            known = self.measurements[measurement].levels
            metrics = tuple(self.measurements[measurement].metrics)
        if unknown := [level for level in levels if level not in known]:
            yield f"{where}: {', '.join(unknown)}: no such level; levels are {', '.join(known)}"
        if metric not in metrics:
            yield f"{where}: no metric {metric!r}; use one of {', '.join(metrics)}"
