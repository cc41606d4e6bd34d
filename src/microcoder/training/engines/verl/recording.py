"""A step of verl -> the files of a run directory, so that report, viewer and studies read it like any other run."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from microcoder.metrics import ScoredRollout
from microcoder.runs import RunDirectory
from microcoder.training.algorithm.diversity import measure_diversity
from microcoder.training.probe import read_probe, summarise_sweep
from microcoder.training.recorder import record_evaluation, record_step, refuse_divergence
from microcoder.training.sampling_config import DiversityWatch, TemperatureSchedule

Groups = Sequence[Sequence[ScoredRollout]]
# verl's names -> ours.
OPTIMIZER_METRICS = {
    "actor/loss": "loss",
    "actor/grad_norm": "grad_norm",
    "actor/lr": "learning_rate",
    "actor/entropy": "entropy",
    "actor/kl_loss": "kl",
    "actor/pg_clipfrac": "clip_share",
}
FILTERED = "training/filter_groups/evicted_samples"
UPDATE_PHASES = ("reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor", "update_weights")


def stop_file(run: RunDirectory) -> Path:
    """Return the file whose presence asks a run to end after its step."""
    return run.root / ".stop"


def chosen_temperature(run: RunDirectory, schedule: TemperatureSchedule) -> float | None:
    """Return what the run's probe chose, where the schedule leaves it to one."""
    return read_probe(run).choice.temperature if schedule.kind == "diversity" else None


def choose_rows(dataset: Any, *, number: int, seed: int) -> list[int]:
    """Return rows of different problems, the same for the same seed: a run's data may ask a problem many times."""
    first: dict[Any, int] = {}
    for place in range(len(dataset)):
        first.setdefault(dataset.dataframe[place]["extra_info"].get("index", place), place)
    return random.Random(f"probe-{seed}").sample(list(first.values()), min(number, len(first)))


def describe(scored_P_G: Groups, *, temperature: float, limit: int) -> dict[str, float]:
    """Return what verl's own loggers show of a batch."""
    samples = [sample for group in scored_P_G for sample in group]
    number = max(1, len(samples))
    diversity = measure_diversity([[sample.rollout.token_ids for sample in group] for group in scored_P_G])
    return {
        "microcoder/truncated_share": sum(sample.rollout.is_truncated for sample in samples) / number,
        "microcoder/masked_share": sum(bool(sample.masked_why) for sample in samples) / number,
        "microcoder/unscored_share": sum(sample.reward is None for sample in samples) / number,
        "microcoder/accepted_share": sum(sample.verdict.is_accepted for sample in samples) / number,
        "microcoder/temperature": temperature,
        "microcoder/response_limit": float(limit),
        **({} if diversity is None else {"microcoder/diversity": diversity}),
    }


def dump_columns(samples: Sequence[ScoredRollout]) -> dict[str, list[Any]]:
    """Return the columns that a dump of rollouts gets."""
    return {
        "outcome": [str(sample.verdict.outcome) for sample in samples],
        "detail": [sample.verdict.detail for sample in samples],
        "tests_passed": [sample.verdict.tests_passed for sample in samples],
        "tests_total": [sample.verdict.tests_total for sample in samples],
        "reward": [sample.reward for sample in samples],
        "advantage": [sample.advantage for sample in samples],
        "masked_why": [sample.masked_why for sample in samples],
        "is_truncated": [sample.rollout.is_truncated for sample in samples],
    }


def write_step(
    run: RunDirectory,
    scored_P_G: Groups,
    *,
    step: int,
    temperature: float,
    max_response_tokens: int,
    metrics: Mapping[str, Any],
    timing: Mapping[str, float],
    history: Sequence[Mapping[str, Any]],
    watch: DiversityWatch,
    breaks: Collection[int],
    learning_rate: float,
) -> dict[str, Any]:
    """Write a step's rollouts and metrics row; return the row."""
    optimizer = {ours: float(metrics[theirs]) for theirs, ours in OPTIMIZER_METRICS.items() if theirs in metrics}
    refuse_divergence(run, optimizer, step=step, learning_rate=learning_rate)
    seconds = {
        "generate": timing.get("gen", 0.0),
        "update": sum(timing.get(name, 0.0) for name in UPDATE_PHASES),
        "checkpoint": timing.get("save_checkpoint", 0.0),
        "evaluate": timing.get("testing", 0.0),
        "total": timing.get("step", 0.0) + timing.get("testing", 0.0),
    }
    recorded = record_step(
        run,
        scored_P_G,
        step=step,
        temperature=temperature,
        max_response_tokens=max_response_tokens,
        optimizer=optimizer,
        seconds={name: round(value, 4) for name, value in seconds.items()},
        num_filtered=int(metrics.get(FILTERED, 0)),
        history=history,
        watch=watch,
        breaks=breaks,
    )
    return recorded.metrics.as_row()


def record_validation(
    run: RunDirectory,
    groups: Groups,
    sweep: Sequence[Groups],
    *,
    step: int,
    temperature: float,
    sweep_temperatures: Sequence[float],
    seconds: float,
) -> None:
    """Write the held-out samples of a step, once: a resumed run may validate the step it starts from again."""
    if any(row["step"] == step for row in run.read_evaluations()):
        return
    record_evaluation(
        run,
        groups,
        step=step,
        temperature=temperature,
        seconds={"total": round(seconds, 4)},
        sweep=summarise_sweep(sweep, temperatures=sweep_temperatures),
    )
