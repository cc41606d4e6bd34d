"""The same rollouts under several rules: the effect of one step each on held-out responses.

Runs of one model and one seed sample the same rollouts in their first step, so that between runs of one step nothing
differs but the rule (a mask, a clip, an advantage). What the step did is read from the change of log-probability of
responses to held-out problems, which is far more precise than sampling anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from microcoder.config import load_config
from microcoder.errors import DataError
from microcoder.insights.jobs import Job, MeasuredValue
from microcoder.runs import RunDirectory, read_rollouts
from microcoder.training.config import TrainConfig


def step_under_rules(
    job: Job, *, rules: dict[str, dict[str, Any]], repeat_window_tokens: int = 10
) -> Iterator[MeasuredValue]:
    """Take one step under each rule, and yield its effect on held-out responses of the untrained model.

    Metrics, a value a seed: `length_shift`, the mean change of log-probability of truncated responses less
    that of whole ones; `repeat_shift`, of truncated responses that repeat themselves less that of the other truncated
    ones; `right_shift`, of the right ones; `masked`, the share of rollouts whose advantage the rule set to zero.

    Args:
        job: a recipe of one step.
        rules: level -> recipe keys over the job's.
        repeat_window_tokens: longest period that counts as repeating.

    Raises:
        DataError: two rules were given different rollouts, so that they cannot be compared.
    """
    first: RunDirectory | None = None
    # Held-out problems are sampled under one seed in all runs; here each seed is to have its own responses.
    one_step = {"num_steps": 1, "evaluation.seed": job.config.evaluation.seed + 1000 * job.seed}
    for level, keys in rules.items():
        config = load_config(TrainConfig, layers=[job.config.model_dump(mode="json"), keys, one_step])
        run = _train(config, job.folder / re.sub(r"\W+", "_", level))
        first = first or run
        _check_alike(first, run, level)
        for metric, value in _measure(config, run, repeat_window_tokens).items():
            if value is not None:
                yield MeasuredValue(metric, level, f"seed{job.seed}", value)


def _train(config: TrainConfig, folder: Path) -> RunDirectory:
    from microcoder.training.observer import Observer
    from microcoder.training.session import run_training

    run_training(config, run_directory=folder, observer=Observer())
    return RunDirectory(folder)


def _check_alike(first: RunDirectory, other: RunDirectory, level: str) -> None:
    ours, theirs = (
        [
            (row["problem_id"], row["completion"])
            for path in (run.rollout_file(1), run.evaluation_file(0))
            for row in read_rollouts(path)
        ]
        for run in (first, other)
    )
    if ours != theirs:
        raise DataError(
            f"the rollouts under rule {level!r} are not those under the first: sampling is not reproducible here"
        )


def _measure(config: TrainConfig, run: RunDirectory, repeat_window_tokens: int) -> dict[str, float | None]:
    from microcoder.training.observer import Observer
    from microcoder.training.shifts import contrast_length, contrast_repeats, measure_shifts
    from microcoder.training.warmstart import find_model

    before = Path(find_model(config, Observer()))
    shifts = measure_shifts(before, run.model, read_rollouts(run.evaluation_file(0)))
    right: Sequence[float] = [shift.change for shift in shifts if shift.response.is_accepted]
    return {
        "length_shift": contrast_length(shifts),
        "repeat_shift": contrast_repeats(shifts, window_tokens=repeat_window_tokens),
        "right_shift": fmean(right) if right else None,
        "masked": run.read_metrics()[0]["masked_share"],
    }
