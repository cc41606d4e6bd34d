"""The measured speeds of a run, for the dry run of the same model on the same machine."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from microcoder.errors import ConfigError
from microcoder.runs import RunDirectory


@dataclass(frozen=True, slots=True)
class Speeds:
    """Medians over the steps of a run."""

    sampled_per_second: float
    """Response tokens."""
    trained_per_second: float
    """Response tokens of an update, its log-prob passes included."""
    judge_seconds_per_rollout: float
    """Wall time, waited for or beside the sampling: an upper bound of what one core takes."""
    mean_length: float
    """Response tokens, as they were and not at their limit."""
    max_response_tokens: int
    num_steps: int
    source: str


def read_speeds(run: RunDirectory) -> Speeds:
    """Return the speeds of a run, its first step left out where there are more: it warms up.

    Raises:
        ConfigError: the folder has no measured step.
    """
    rows = run.read_metrics() if run.metrics.exists() else []
    rows = rows[1:] or rows
    measured = [row for row in rows if row["seconds"].get("generate") and row["seconds"].get("update")]
    if not measured:
        raise ConfigError(f"{run.root} has no measured step; pass the folder of a run that has, or leave it out")
    return Speeds(
        sampled_per_second=median(_tokens(row) / row["seconds"]["generate"] for row in measured),
        trained_per_second=median(_tokens(row) / row["seconds"]["update"] for row in measured),
        judge_seconds_per_rollout=median(_judge_seconds(row) / _rollouts(row) for row in measured),
        mean_length=median(row["length_mean"] for row in measured),
        max_response_tokens=int(median(row["max_response_tokens"] for row in measured)),
        num_steps=len(measured),
        source=f"measured over {len(measured)} steps of {run.root}",
    )


def _rollouts(row: dict[str, Any]) -> int:
    return sum(row["outcomes"].values())


def _tokens(row: dict[str, Any]) -> float:
    return row["length_mean"] * _rollouts(row)


def _judge_seconds(row: dict[str, Any]) -> float:
    return row["seconds"].get("judge", 0.0) + row["seconds"].get("judge_beside", 0.0)
