"""Which problems go in, by difficulty: bands between boundaries, and the share that each may have.

The paper publishes two boundaries, 2.5 and 2.75, and what came of it: the easy share fell from 40 % to 20 % and the
size from 100 to 70. That only easy problems are dropped, and the easiest first, is our reading of it.

A pass rate is a problem's own: of a model's attempts that our evaluator judged, or published with the problem.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field, model_validator

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.judge import Judge
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.extract import extract_program

_NORMAL = 1.96
"""Standard deviations on each side of an interval of 95 %."""


class SelectionSettings(Config):
    """Which problems are kept by their difficulty."""

    by: Literal["predicted", "pass_rate"] = "predicted"
    """What is banded: a model's score of the difficulty, or the share of attempts that failed, 0 to 1."""
    boundaries: tuple[float, ...] = (2.5, 2.75)
    """Rising; a value on a boundary belongs above it. 2.5 and 2.75 are the paper's, on its own scale."""
    easy_share: float = Field(default=0.2, ge=0, lt=1)
    """Share of the first band at most: easy problems are dropped, the easiest first. The paper's number."""
    shares: tuple[float, ...] = ()
    """Share of each band, in place of `easy_share`; as many problems are kept as these shares allow."""

    @model_validator(mode="after")
    def _bands_fit(self) -> SelectionSettings:
        if list(self.boundaries) != sorted(set(self.boundaries)) or not self.boundaries:
            raise ValueError(f"boundaries = {self.boundaries}; give at least one, in rising order")
        if self.by == "pass_rate" and not 0 < self.boundaries[0] <= self.boundaries[-1] < 1:
            raise ValueError(f"boundaries = {self.boundaries} of shares of wrong answers; give numbers between 0 and 1")
        if not self.shares:
            return self
        if len(self.shares) != len(self.boundaries) + 1:
            raise ValueError(f"{len(self.shares)} shares for {len(self.boundaries) + 1} bands; give one share per band")
        if min(self.shares) < 0 or not math.isclose(sum(self.shares), 1.0, abs_tol=1e-6):
            raise ValueError(f"shares = {self.shares}; give shares of 0 to 1 that add up to 1")
        return self


def judge_attempts(
    candidates: Sequence[Candidate], responses: Mapping[str, Sequence[str]], judge: Judge
) -> dict[str, tuple[int, int]]:
    """Judge a model's responses, by candidate id, and return how many passed, of how many attempts.

    Attempts that the sandbox could not score are left out; so are candidates without an attempt.
    """
    asked = [candidate for candidate in candidates if responses.get(candidate.id)]
    pairs = [(candidate, text) for candidate in asked for text in responses[candidate.id]]
    programs = [extract_program(text, language=candidate.programming_language) for candidate, text in pairs]
    problems = {candidate.id: candidate.to_problem() for candidate in asked}
    verdicts = judge.judge(programs, [problems[candidate.id] for candidate, _ in pairs])
    counts = {candidate.id: (0, 0) for candidate in asked}
    for (candidate, _), verdict in zip(pairs, verdicts, strict=True):
        passed, attempts = counts[candidate.id]
        counts[candidate.id] = (passed + verdict.is_accepted, attempts + verdict.is_scorable)
    return {name: (passed, attempts) for name, (passed, attempts) in counts.items() if attempts}


def with_pass_rate(candidate: Candidate, model: str, measured_on: str) -> Candidate:
    """Return a candidate with the pass rate of a model out of its `pass_rates`; unchanged if it has none.

    Of counted attempts there is a 95 % interval (Wilson 1927): four attempts that all passed are no certainty.
    """
    for entry in candidate.pass_rates:
        name, _, text = entry.rpartition("=")
        if name != model:
            continue
        passed, _, attempts = text.partition("/")
        try:
            rate, num = float(passed) / int(attempts or 1), int(attempts or 0)
        except (ValueError, ZeroDivisionError):
            rate, num = -1.0, 0
        if not 0 <= rate <= 1:
            raise DataError(f"pass rate {entry!r}; write model=rate with a rate of 0 to 1, or model=passed/attempts")
        low, high = _find_interval(rate, num) if num else (None, None)
        fields = {"pass_rate": round(rate, 4), "pass_rate_low": low, "pass_rate_high": high}
        difficulty = candidate.difficulty.model_copy(update={**fields, "measured_on": measured_on})
        return candidate.change("filter", "with_pass_rate/1", measured_on, difficulty=difficulty)
    return candidate


def _find_interval(rate: float, num: int) -> tuple[float, float]:
    spread = _NORMAL**2 / num
    middle = rate + spread / 2
    width = _NORMAL * math.sqrt(rate * (1 - rate) / num + spread / (4 * num))
    return round(max(0.0, (middle - width) / (1 + spread)), 4), round(min(1.0, (middle + width) / (1 + spread)), 4)


def band_of(value: float, settings: SelectionSettings) -> int:
    """Return the number of the band that a value is in; 0 is the easiest."""
    return sum(value >= boundary for boundary in settings.boundaries)


def select(candidates: Sequence[Candidate], settings: SelectionSettings | None = None) -> list[Candidate | Rejection]:
    """Return each candidate, or why it is left out (`no_difficulty`, `too_easy`, `not_selected`), in their order."""
    settings = settings or SelectionSettings()
    bands: list[list[tuple[float, str]]] = [[] for _ in range(len(settings.boundaries) + 1)]
    for candidate in candidates:
        value = _value(candidate, settings)
        if value is not None:
            bands[band_of(value, settings)].append((value, candidate.id))
    kept = _keep_shares(bands, settings.shares) if settings.shares else _drop_easy(bands, settings.easy_share)
    return [_answer(candidate, kept, settings) for candidate in candidates]


def _drop_easy(bands: Sequence[list[tuple[float, str]]], easy_share: float) -> set[str]:
    easy, others = bands[0], [item for band in bands[1:] for item in band]
    allowed = math.floor(easy_share / (1 - easy_share) * len(others) + 1e-9)
    hardest_first = sorted(easy, key=lambda item: (-item[0], _draw(item[1])))
    return {name for _, name in (*others, *hardest_first[:allowed])}


def _keep_shares(bands: Sequence[list[tuple[float, str]]], shares: Sequence[float]) -> set[str]:
    wanted = [(band, share) for band, share in zip(bands, shares, strict=True) if share > 0]
    total = min(len(band) / share for band, share in wanted)
    kept: set[str] = set()
    for band, share in wanted:
        size = min(math.floor(total * share + 1e-9), len(band))
        kept |= {name for _, name in sorted(band, key=lambda item: _draw(item[1]))[:size]}
    return kept


def _value(candidate: Candidate, settings: SelectionSettings) -> float | None:
    difficulty = candidate.difficulty
    if settings.by == "predicted":
        return difficulty.predicted
    return None if difficulty.pass_rate is None else 1 - difficulty.pass_rate


def _answer(candidate: Candidate, kept: set[str], settings: SelectionSettings) -> Candidate | Rejection:
    if candidate.id in kept:
        return candidate
    value = _value(candidate, settings)
    if value is None:
        return candidate.reject("filter", "no_difficulty", f"no {settings.by}")
    reason = "not_selected" if settings.shares else "too_easy"
    return candidate.reject("filter", reason, f"{settings.by} {value:.3g}, band {band_of(value, settings)}")


def _draw(name: str) -> str:
    """Return what orders candidates of a band, and depends on nothing but a candidate's id."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
