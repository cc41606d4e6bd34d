"""Measurements of a study without training runs: a function, its settings and a seed give paired rows.

A measurement of one seed is a unit of work like a run: it has a folder named after what decides it, is done once, and
its `summary.json`, written last, says that it is finished. The function is handed a `Job` and yields `MeasuredValue`s:

    def judge_both_ways(job: Job, *, samples: int = 4) -> Iterator[MeasuredValue]: ...

Rows of one unit (a problem, a rollout, a pair) under several levels are compared with each other. Units that have the
same name in several seeds are the same unit there, such as a held-out problem.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from microcoder.errors import ConfigError, DataError
from microcoder.extensions import load_extension
from microcoder.files import read_json, read_rows, write_json, write_text
from microcoder.insights.design import Measurement
from microcoder.insights.jobs import Job, MeasuredValue
from microcoder.insights.provenance import digest_code
from microcoder.training.config import TrainConfig
from microcoder.training.manifest import digest_config, read_git

NOUN = "measurement"


def digest_measurement(measurement: Measurement, config: TrainConfig, runs: Mapping[str, Path]) -> str:
    """Return a digest of everything that determines a measurement's rows besides the code that training imports."""
    reference = measurement.function.rpartition(":")[0]
    parts = {
        "function": measurement.function,
        "code": _digest_function(reference),
        "settings": measurement.settings,
        "config": digest_config(config),
        "runs": {level: folder.name for level, folder in sorted(runs.items())},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def run_measurement(measurement: Measurement, job: Job) -> dict[str, Any]:
    """Take one measurement and write its rows; return its summary.

    Raises:
        ConfigError: there is no such function, or it has no such setting.
        DataError: it yielded a row that the study does not know, or no row.
    """
    function = load_extension(NOUN, measurement.function, builtins={}, options=measurement.settings)
    started, cpu_started = time.monotonic(), time.process_time()
    job.folder.mkdir(parents=True, exist_ok=True)
    rows = [check_row(row, measurement) for row in _iterate(function(job), measurement.function)]
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


def check_row(row: MeasuredValue, measurement: Measurement) -> MeasuredValue:
    """Return a row that the study knows.

    Raises:
        DataError: another metric or level, or a value that is no number.
    """
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
    """Return the rows and the summary of a finished measurement.

    Raises:
        DataError: they are missing or damaged.
    """
    summary = read_json(folder / "summary.json", what="measurement")
    try:
        return [MeasuredValue(**row) for row in read_rows(folder / "rows.jsonl")], summary
    except TypeError as error:
        raise DataError(f"{folder / 'rows.jsonl'} was not written by this version: {error}") from None


def _iterate(found: object, reference: str) -> Iterable[MeasuredValue]:
    if not isinstance(found, Iterable):
        raise ConfigError(f"measurement {reference} returned {type(found).__name__}; it must yield rows")
    return found


def _digest_function(reference: str) -> str:
    """Return a digest of the function's file, and of what it imports of this package."""
    if reference.endswith(".py"):
        path = Path(reference).expanduser()
        return hashlib.sha256(path.read_bytes()).hexdigest()[:8] if path.is_file() else ""
    if reference.partition(".")[0] == "microcoder":
        return digest_code("trl", module=reference)
    return ""
