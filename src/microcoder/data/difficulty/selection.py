"""Which problems go in, by difficulty: bands between boundaries, and the share that each may have.

The paper publishes two boundaries, 2.5 and 2.75, and what came of it: the easy share fell from 40 % to 20 % and the
size from 100 to 70. That only easy problems are dropped, and the easiest first, is our reading of it.

From a predicted difficulty to a pass rate: isotonic regression with intervals, for one model and one budget.

A harder problem is not solved more often: that is all that is assumed. Pass rates come from attempts judged by our
evaluator, or from rates that were published with the problems.
"""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from microcoder.data.difficulty.predictor import with_difficulty
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.judge import Judge
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.installation import how_to_install
from microcoder.judge.core.types import Record


class CalibrationSettings(Config):
    """How a calibration is made. The paper makes 4 attempts with a 4B thinking model; the rest is our choice."""

    attempts: int = Field(default=4, ge=1)
    """Attempts a problem."""
    num_resamples: int = Field(default=500, ge=50)
    """Resampled sets of problems behind an interval."""
    interval: float = Field(default=0.95, gt=0, lt=1)
    seed: int = 0


class MeasuredOn(Record):
    """What a pass rate belongs to."""

    model: str
    checkpoint: str = ""
    max_tokens: int | None = None
    """Budget of an answer; None if it was not published."""
    evaluator: str = ""
    """`evaluator_version()`, or who judged."""

    def __str__(self) -> str:
        budget = "unknown" if self.max_tokens is None else str(self.max_tokens)
        return (
            f"{self.model}@{self.checkpoint or 'unknown'} max_tokens={budget} evaluator={self.evaluator or 'unknown'}"
        )


class Attempts(Record):
    """How often a model solved one problem."""

    id: str
    predicted: float
    passed: float = Field(ge=0)
    """Attempts that passed; a published rate counts as one attempt that passed in part."""
    attempts: int = Field(ge=1)

    @model_validator(mode="after")
    def _passed_at_most_all(self) -> Attempts:
        if self.passed > self.attempts:
            raise ValueError(f"passed = {self.passed} of attempts = {self.attempts}; at most all can pass")
        return self


class RateWithInterval(NamedTuple):
    """A pass rate and the ends of its interval."""

    rate: float
    low: float
    high: float


class Calibration(Record):
    """Pass rate by predicted difficulty: falling, linear between knots, level beyond them."""

    measured_on: MeasuredOn
    num_problems: int
    predicted: tuple[float, ...]
    rate: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def find_rate(self, predicted: float) -> RateWithInterval:
        """Return the pass rate at a predicted difficulty, and the ends of its interval."""
        return RateWithInterval(
            rate=_interpolate(self.predicted, self.rate, predicted),
            low=_interpolate(self.predicted, self.low, predicted),
            high=_interpolate(self.predicted, self.high, predicted),
        )


def fit_calibration(
    samples: Sequence[Attempts], measured_on: MeasuredOn, settings: CalibrationSettings | None = None
) -> Calibration:
    """Fit pass rates to predicted difficulties.

    The interval resamples problems, and draws each one's rate from what its attempts leave open (Jeffreys' prior), so
    that four attempts that all passed are no certainty.
    """
    if len(samples) < 2:
        raise DataError(f"{len(samples)} problems with attempts; calibration needs two at least, better hundreds")
    settings = settings or CalibrationSettings()
    try:
        import numpy as np
        from sklearn.isotonic import IsotonicRegression
    except ImportError:
        raise ConfigError(f"calibration needs scikit-learn; {how_to_install('data')}") from None
    predicted = np.array([sample.predicted for sample in samples])
    attempts = np.array([float(sample.attempts) for sample in samples])
    passed = np.array([float(sample.passed) for sample in samples])
    knots = np.unique(predicted)

    def fit(where: Any, rates: Any) -> Any:
        model = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=False, out_of_bounds="clip")
        return model.fit(predicted[where], rates, sample_weight=attempts[where]).predict(knots)

    everything = np.arange(len(samples))
    rate = fit(everything, passed / attempts)
    generator = np.random.default_rng(settings.seed)
    resampled = []
    for _ in range(settings.num_resamples):
        drawn = generator.integers(0, len(samples), len(samples))
        rates = generator.beta(passed[drawn] + 0.5, attempts[drawn] - passed[drawn] + 0.5)
        resampled.append(fit(drawn, rates))
    tail = (1 - settings.interval) / 2
    low, high = np.quantile(np.array(resampled), [tail, 1 - tail], axis=0)
    return Calibration(
        measured_on=measured_on,
        num_problems=len(samples),
        predicted=tuple(map(float, knots)),
        rate=tuple(map(float, rate)),
        low=tuple(map(float, np.minimum(low, rate))),
        high=tuple(map(float, np.maximum(high, rate))),
    )


def calibrate(candidate: Candidate, calibration: Calibration) -> Candidate:
    """Return a candidate with the pass rate that belongs to its predicted difficulty; unchanged if it has none."""
    predicted = candidate.difficulty.predicted
    if predicted is None:
        return candidate
    rate, low, high = (round(value, 4) for value in calibration.find_rate(predicted))
    name = str(calibration.measured_on)
    return with_difficulty(candidate, name, pass_rate=rate, pass_rate_low=low, pass_rate_high=high, measured_on=name)


def judge_attempts(
    candidates: Sequence[Candidate], responses: Mapping[str, Sequence[str]], judge: Judge
) -> list[Attempts]:
    """Judge a model's responses, by candidate id, and count how many pass.

    Attempts that the sandbox could not score are left out; so are candidates without a prediction or an attempt.
    """
    asked = [c for c in candidates if c.difficulty.predicted is not None and responses.get(c.id)]
    pairs = [(candidate, text) for candidate in asked for text in responses[candidate.id]]
    programs = [extract_program(text, language=candidate.programming_language) for candidate, text in pairs]
    problems = {candidate.id: candidate.to_problem() for candidate in asked}
    verdicts = judge.judge(programs, [problems[candidate.id] for candidate, _ in pairs])
    counts = {candidate.id: [0, 0] for candidate in asked}
    for (candidate, _), verdict in zip(pairs, verdicts, strict=True):
        counts[candidate.id][0] += verdict.is_accepted
        counts[candidate.id][1] += verdict.is_scorable
    return [
        Attempts(id=c.id, predicted=c.difficulty.predicted or 0.0, passed=counts[c.id][0], attempts=counts[c.id][1])
        for c in asked
        if counts[c.id][1]
    ]


def published_attempts(candidates: Sequence[Candidate], model: str) -> list[Attempts]:
    """Return the pass rates of a model that came with the problems."""
    found = []
    for candidate in candidates:
        predicted = candidate.difficulty.predicted
        if predicted is None:
            continue
        for entry in candidate.pass_rates:
            name, _, text = entry.rpartition("=")
            if name == model:
                passed, attempts = _read_rate(entry, text)
                found.append(Attempts(id=candidate.id, predicted=predicted, passed=passed, attempts=attempts))
    return found


def _read_rate(entry: str, text: str) -> tuple[float, int]:
    """Return what passed and of how many attempts; a bare rate is one attempt that passed in part."""
    passed, _, attempts = text.partition("/")
    try:
        found = float(passed), int(attempts or 1)
    except ValueError:
        found = -1.0, 1
    if not 0 <= found[0] <= found[1]:
        raise DataError(f"pass rate {entry!r}; write model=rate with a rate of 0 to 1, or model=passed/attempts")
    return found


def _interpolate(knots: Sequence[float], values: Sequence[float], at: float) -> float:
    place = bisect.bisect_left(knots, at)
    if place == 0:
        return values[0]
    if place == len(knots):
        return values[-1]
    left, right = knots[place - 1], knots[place]
    share = (at - left) / (right - left)
    return values[place - 1] + share * (values[place] - values[place - 1])


PAPER_BOUNDARIES = (2.5, 2.75)


class SelectionSettings(Config):
    """What is wanted."""

    mode: Literal["paper", "target"] = "paper"
    """`paper`: easy problems are dropped, the easiest first, until they have `easy_share`; `target`: `shares`."""
    by: Literal["predicted", "pass_rate"] = "predicted"
    """What is banded: the predicted difficulty, or the calibrated share of wrong answers, 0 to 1."""
    boundaries: tuple[float, ...] = PAPER_BOUNDARIES
    """Rising; a value on a boundary belongs above it. The paper's are 2.5 and 2.75 on its own scale."""
    easy_share: float = Field(default=0.2, ge=0, lt=1)
    """`paper`: share of the first band at most. The paper's number."""
    shares: tuple[float, ...] = (0.2, 0.3, 0.5)
    """`target`: share of each band (our choice); as many problems as these shares allow."""
    seed: int = 0
    """`target`: which problems of a band are taken; neither order nor number of files change it."""

    @property
    def has_the_papers_boundaries(self) -> bool:
        """Whether predicted difficulties are banded as published."""
        return self.by == "predicted" and self.boundaries == PAPER_BOUNDARIES

    @model_validator(mode="after")
    def _bands_fit(self) -> SelectionSettings:
        if list(self.boundaries) != sorted(set(self.boundaries)) or not self.boundaries:
            raise ValueError(f"boundaries = {self.boundaries}; give at least one, in rising order")
        if self.by == "pass_rate" and not 0 < self.boundaries[0] <= self.boundaries[-1] < 1:
            raise ValueError(f"boundaries = {self.boundaries} of shares of wrong answers; give numbers between 0 and 1")
        if len(self.shares) != len(self.boundaries) + 1:
            raise ValueError(f"{len(self.shares)} shares for {len(self.boundaries) + 1} bands; give one share per band")
        if min(self.shares) < 0 or not math.isclose(sum(self.shares), 1.0, abs_tol=1e-6):
            raise ValueError(f"shares = {self.shares}; give shares of 0 to 1 that add up to 1")
        return self


def band_of(value: float, settings: SelectionSettings) -> int:
    """Return the number of the band that a value is in; 0 is the easiest."""
    return sum(value >= boundary for boundary in settings.boundaries)


def select(candidates: Sequence[Candidate], settings: SelectionSettings | None = None) -> list[Candidate | Rejection]:
    """Return each candidate, or why it is left out (`no_difficulty`, `too_easy`, `not_selected`), in their order."""
    settings = settings or SelectionSettings()
    bands: dict[int, list[tuple[float, str]]] = {number: [] for number in range(len(settings.boundaries) + 1)}
    for candidate in candidates:
        value = _value(candidate, settings)
        if value is not None:
            bands[band_of(value, settings)].append((value, candidate.id))
    kept = _keep_paper(bands, settings) if settings.mode == "paper" else _keep_target(bands, settings)
    reason = "too_easy" if settings.mode == "paper" else "not_selected"
    return [_answer(candidate, kept, reason, settings) for candidate in candidates]


def _keep_paper(bands: dict[int, list[tuple[float, str]]], settings: SelectionSettings) -> set[str]:
    easy, others = bands[0], [item for number, band in bands.items() if number for item in band]
    allowed = math.floor(settings.easy_share / (1 - settings.easy_share) * len(others) + 1e-9)
    hardest_first = sorted(easy, key=lambda item: (-item[0], _draw(item[1], settings.seed)))
    return {name for _, name in (*others, *hardest_first[:allowed])}


def _keep_target(bands: dict[int, list[tuple[float, str]]], settings: SelectionSettings) -> set[str]:
    wanted = {number: share for number, share in enumerate(settings.shares) if share > 0}
    total = min(len(bands[number]) / share for number, share in wanted.items())
    kept: set[str] = set()
    for number, share in wanted.items():
        size = min(math.floor(total * share + 1e-9), len(bands[number]))
        drawn = sorted(bands[number], key=lambda item: _draw(item[1], settings.seed))
        kept |= {name for _, name in drawn[:size]}
    return kept


def _value(candidate: Candidate, settings: SelectionSettings) -> float | None:
    difficulty = candidate.difficulty
    if settings.by == "predicted":
        return difficulty.predicted
    return None if difficulty.pass_rate is None else 1 - difficulty.pass_rate


def _answer(candidate: Candidate, kept: set[str], reason: str, settings: SelectionSettings) -> Candidate | Rejection:
    if candidate.id in kept:
        return candidate
    value = _value(candidate, settings)
    return candidate.reject(
        "filter",
        "no_difficulty" if value is None else reason,
        f"no {settings.by}" if value is None else f"{settings.by} {value:.3g}, band {band_of(value, settings)}",
    )


def _draw(name: str, seed: int) -> str:
    """Return a number between candidates that depends on nothing else."""
    return hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()
