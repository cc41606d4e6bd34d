"""From a predicted difficulty to a pass rate: isotonic regression with intervals, for one model and one budget.

A harder problem is not solved more often: that is all that is assumed. Pass rates come from attempts judged by our
evaluator, or from rates that were published with the problems.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import Field, model_validator

from microcoder.config import Config
from microcoder.dataset.difficulty.predictor import with_difficulty
from microcoder.errors import ConfigError, DataError
from microcoder.evaluator import Judge
from microcoder.extract import extract_program
from microcoder.formats.candidates import Candidate
from microcoder.installation import how_to_install
from microcoder.types import Record


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

    Raises:
        DataError: there are fewer than two problems.
        ConfigError: scikit-learn is not installed.
    """
    if len(samples) < 2:
        raise DataError(f"{len(samples)} problems with attempts; calibration needs two at least, better hundreds")
    settings = settings or CalibrationSettings()
    np, isotonic = _libraries()
    predicted = np.array([sample.predicted for sample in samples])
    attempts = np.array([float(sample.attempts) for sample in samples])
    passed = np.array([float(sample.passed) for sample in samples])
    knots = np.unique(predicted)

    def fit(where: Any, rates: Any) -> Any:
        model = isotonic(y_min=0.0, y_max=1.0, increasing=False, out_of_bounds="clip")
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
    """Return the pass rates of a model that came with the problems.

    Raises:
        DataError: a published rate is no share.
    """
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


def _libraries() -> tuple[Any, Any]:
    try:
        import numpy
        from sklearn.isotonic import IsotonicRegression
    except ImportError:
        raise ConfigError(f"calibration needs scikit-learn; {how_to_install('data')}") from None
    return numpy, IsotonicRegression
