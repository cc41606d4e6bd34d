"""Measurements of a study without training runs: a function, its settings and a seed give paired rows.

A measurement of one seed is a unit of work like a run: it has a folder named after what decides it, is done once, and
its `summary.json`, written last, says that it is finished. The function is handed a `Job` and yields `MeasuredValue`s:

    def judge_both_ways(job: Job, *, samples: int = 4) -> Iterator[MeasuredValue]: ...

Rows of one unit (a problem, a rollout, a pair) under several levels are compared with each other. The published
studies' functions are in `studies/measures.py`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.extensions import load_extension
from microcoder.judge.core.files import read_json, read_rows, write_json, write_text
from microcoder.lab.studies.design import Measurement
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.manifest import read_git


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """One value of one unit under one level."""

    metric: str
    level: str
    unit: str
    """A problem, a rollout, a pair: what the levels are compared on. Of the same name in several seeds, it is the same
    unit there, such as a held-out problem; what is drawn anew for a seed has the seed in its name."""
    value: float


@dataclass(frozen=True, slots=True)
class Job:
    """The input of a measuring function."""

    seed: int
    config: TrainConfig
    """The scale's baseline with the study's and the measurement's keys, and this seed."""
    folder: Path
    """A folder of its own, kept between restarts."""
    runs: Mapping[str, Path] = field(default_factory=dict)
    """Level -> folder of the finished run of this seed, for the levels that the measurement `uses`."""


def run_measurement(measurement: Measurement, job: Job) -> dict[str, Any]:
    """Take one measurement and write its rows; return its summary."""
    function = load_extension("measurement", measurement.function, builtins={}, options=measurement.settings)
    started, cpu_started = time.monotonic(), time.process_time()
    job.folder.mkdir(parents=True, exist_ok=True)
    found = function(job)
    if not isinstance(found, Iterable):
        raise ConfigError(f"measurement {measurement.function} returned {type(found).__name__}; it must yield rows")
    rows = [_check_row(row, measurement) for row in found]
    if not rows:
        raise DataError(f"measurement {measurement.function} yielded no row")
    write_text(job.folder / "rows.jsonl", "".join(json.dumps(asdict(row)) + "\n" for row in rows))
    summary = {
        "function": measurement.function,
        "settings": measurement.settings,
        "seed": job.seed,
        "config": job.config.model_dump(mode="json"),
        "num_rows": len(rows),
        "git": read_git(Path(__file__).parent),
        "wall_seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(time.process_time() - cpu_started, 1),
    }
    write_json(job.folder / "summary.json", summary)
    return summary


def _check_row(row: MeasuredValue, measurement: Measurement) -> MeasuredValue:
    if row.metric not in measurement.metrics or row.level not in measurement.levels:
        raise DataError(
            f"measurement {measurement.function} yielded {row.metric!r} at {row.level!r}; the study names the metrics "
            f"{', '.join(measurement.metrics)} and the levels {', '.join(measurement.levels)}"
        )
    if not math.isfinite(row.value):
        raise DataError(f"measurement {measurement.function} yielded {row.value} for {row.unit}; leave such rows out")
    if measurement.metrics[row.metric].unit == "share" and not 0 <= row.value <= 1:
        raise DataError(f"measurement {measurement.function}: {row.metric} is a share, and {row.value} is none")
    return row


def is_measured(folder: Path) -> bool:
    """The measurement was finished."""
    return (folder / "summary.json").exists()


def read_measured(folder: Path) -> tuple[list[MeasuredValue], dict[str, Any]]:
    """Return the rows and the summary of a finished measurement."""
    summary = read_json(folder / "summary.json", what="measurement")
    try:
        return [MeasuredValue(**row) for row in read_rows(folder / "rows.jsonl")], summary
    except TypeError as error:
        raise DataError(f"{folder / 'rows.jsonl'} was not written by this version: {error}") from None
