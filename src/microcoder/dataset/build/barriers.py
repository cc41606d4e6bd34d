"""The two decisions that need every row: what is a duplicate, and what is kept for its difficulty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from microcoder.dataset.build.config import DifficultySettings
from microcoder.dataset.difficulty.calibration import (
    Calibration,
    MeasuredOn,
    calibrate,
    fit_calibration,
    published_attempts,
)
from microcoder.dataset.difficulty.selection import select
from microcoder.dataset.filter import DuplicateGroup, DuplicateSettings, Fingerprint, describe, find_duplicates, merge
from microcoder.dataset.pipeline.steps import Barrier, Row
from microcoder.dataset.rejections import reject
from microcoder.dataset.verify.store import evaluator_version
from microcoder.errors import DataError
from microcoder.formats.candidates import Candidate, Rejection

_DECIDING = ("id", "dataset", "difficulty", "pass_rates")


class DuplicateBarrier(Barrier):
    """Of the records of one problem keeps the best, with the tests and solutions of all."""

    def __init__(self, settings: DuplicateSettings) -> None:
        self._settings = settings
        self._groups: dict[str, DuplicateGroup] = {}

    def look(self, candidates: Sequence[Candidate]) -> list[Fingerprint]:
        """Return what shows that two records are one problem."""
        return describe(candidates, self._settings)

    def decide(self, looks: Iterable[Fingerprint]) -> None:
        """Find the groups."""
        for group in find_duplicates(looks, self._settings):
            self._groups |= dict.fromkeys((group.kept, *group.dropped), group)

    def needs(self, name: str) -> Sequence[str]:
        """Return the duplicates that a record stands for."""
        group = self._groups.get(name)
        return group.dropped if group and group.kept == name else ()

    def apply(self, candidate: Candidate, others: Mapping[str, Candidate]) -> Row:
        """Merge into the record that is kept; reject the others."""
        group = self._groups.get(candidate.id)
        if group is None:
            return candidate
        if group.kept == candidate.id:
            return merge(candidate, [others[name] for name in group.dropped])
        return reject(candidate, "filter", "duplicate_of", f"{group.kept} by {group.why[candidate.id]}")


class SelectionBarrier(Barrier):
    """Calibrates predicted difficulties by pass rates, and keeps the wanted distribution."""

    def __init__(self, settings: DifficultySettings) -> None:
        self._settings = settings
        self._calibration: Calibration | None = None
        self._rejected: dict[str, Rejection] = {}

    def look(self, candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
        """Return the fields that decide."""
        return [{name: getattr(one, name) for name in _DECIDING} for one in candidates]

    def decide(self, looks: Iterable[Mapping[str, Any]]) -> None:
        """Fit, then choose.

        Raises:
            DataError: no problem has a pass rate of the model that calibrates.
        """
        settings = self._settings
        if not (settings.calibrate_by or settings.selects):
            return
        rows = [Candidate(**look) for look in looks]
        if settings.calibrate_by and rows:
            samples = published_attempts(rows, settings.calibrate_by)
            if len(samples) < 2:
                raise DataError(
                    f"difficulty.calibrate_by = {settings.calibrate_by!r}, but {len(samples)} problems have a pass "
                    "rate of it; leave it out, or give its attempts with difficulty.responses"
                )
            measured_on = MeasuredOn(
                model=settings.calibrate_by,
                checkpoint=settings.checkpoint,
                max_tokens=settings.max_tokens,
                # Published rates were judged elsewhere.
                evaluator=evaluator_version() if settings.responses else "",
            )
            self._calibration = fit_calibration(samples, measured_on, settings.calibration)
            rows = [calibrate(row, self._calibration) for row in rows]
        if settings.selects:
            found = select(rows, settings.selection)
            self._rejected = {row.id: row for row in found if isinstance(row, Rejection)}

    def apply(self, candidate: Candidate, others: Mapping[str, Candidate]) -> Row:
        """Write the calibrated pass rate; reject what was not chosen."""
        if self._calibration is not None:
            candidate = calibrate(candidate, self._calibration)
        rejection = self._rejected.get(candidate.id)
        if rejection is None:
            return candidate
        return rejection.model_copy(update={"source_row": candidate.source_row, "candidate": candidate})
