"""The files of a run as typed values; all of insights reads runs through this."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.installation import how_to_install
from microcoder.judge.core.types import Outcome
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.runs import RunDirectory, read_rollouts

Row = dict[str, Any]
RowT = TypeVar("RowT", StepMetrics, EvaluationMetrics)

_TIERS_BY_DIFFICULTY = ("trivial", "intro", "introductory", "easy", "medium", "interview", "hard", "competition")


@dataclass(frozen=True)
class History:
    """One run, finished or not."""

    run: RunDirectory
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any] | None
    steps: Sequence[StepMetrics]
    evaluations: Sequence[EvaluationMetrics]
    """One an evaluated step, ascending."""

    @property
    def name(self) -> str:
        """The run's own name, or its folder's."""
        return str(self.manifest.get("name") or self.run.root.resolve().name)

    @property
    def is_finished(self) -> bool:
        """Whether the run is complete."""
        return self.summary is not None

    @property
    def before(self) -> EvaluationMetrics | None:
        """The evaluation of the untrained model."""
        return next((e for e in self.evaluations if e.step == 0), None)

    @property
    def after(self) -> EvaluationMetrics | None:
        """The latest evaluation after training began."""
        return next((e for e in reversed(self.evaluations) if e.step > 0), None)

    @property
    def num_unscored(self) -> tuple[int, int, int]:
        """Numbers of samples that the sandbox could not judge, in training, before and after; they are in no mean."""
        training = sum(step.outcomes.get(str(Outcome.SANDBOX_FAULT), 0) for step in self.steps)
        before, after = (one.num_unscored if one else 0 for one in (self.before, self.after))
        return training, before, after

    @cached_property
    def tier_of(self) -> dict[str, str]:
        """Tier of every held-out problem that a sample file names; of a file that cannot be read, none."""
        paths = [self.run.evaluation_file(one.step) for one in (self.before, self.after) if one]
        for path in (path for path in paths if path.exists()):
            try:
                rows = read_rollouts(path, columns=["problem_id", "tier"])
            except (OSError, ValueError):
                continue
            return {row["problem_id"]: row["tier"] or "untiered" for row in rows}
        return {}

    @cached_property
    def tiers(self) -> list[str]:
        """Every tier of the run, easiest first where the names say so."""
        seen = {tier for rows in (self.steps, self.evaluations) for row in rows for tier in row.accuracy_by_tier}
        return sorted(seen, key=_difficulty)


def read_history(run_directory: Path) -> History:
    """Read one run directory."""
    run = RunDirectory(run_directory)
    return History(
        run=run,
        manifest=run.read_manifest(),
        summary=run.read_summary(),
        steps=_parse(run.read_metrics(), StepMetrics, run.metrics),
        evaluations=_parse(run.read_evaluations(), EvaluationMetrics, run.evaluations),
    )


def missing_extra(error: ImportError) -> ConfigError:
    """Say what to install for the part of the report that needs more than the core."""
    return ConfigError(f"the report needs {error.name}; type: {how_to_install('insights')}")


def _parse(rows: Sequence[Row], row_type: type[RowT], path: Path) -> list[RowT]:
    """Turn rows into metrics: keys of a later version are ignored, a missing key is an error; ascending by step."""
    fields = dataclasses.fields(row_type)
    required = [f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING]
    parsed: dict[int, RowT] = {}
    for number, row in enumerate(rows, 1):
        lacking = [name for name in required if name not in row] if isinstance(row, dict) else ["all keys"]
        if lacking:
            raise DataError(f"{path} line {number} lacks {', '.join(lacking)}; it was not written by this version")
        parsed[row["step"]] = row_type(**{f.name: row[f.name] for f in fields if f.name in row})
    return [parsed[step] for step in sorted(parsed)]


def _difficulty(tier: str) -> tuple[int, str]:
    known = tier in _TIERS_BY_DIFFICULTY
    return (_TIERS_BY_DIFFICULTY.index(tier) if known else len(_TIERS_BY_DIFFICULTY), tier)
