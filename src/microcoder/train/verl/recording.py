"""verl's figures of a step by our names, and ours of a batch by names for verl's loggers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from microcoder.train.run.recorder import Groups, summarise_step

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


def choose_rows(dataset: Any, *, number: int, seed: int) -> list[int]:
    """Return rows of different problems, the same for the same seed: a run's data may ask a problem many times."""
    first: dict[Any, int] = {}
    for place in range(len(dataset)):
        first.setdefault(dataset.dataframe[place]["extra_info"].get("index", place), place)
    return random.Random(f"probe-{seed}").sample(list(first.values()), min(number, len(first)))


def describe(scored_P_G: Groups, *, temperature: float, limit: int) -> dict[str, float]:
    """Return what verl's own loggers show of a batch."""
    step = summarise_step(
        scored_P_G, step=0, temperature=temperature, max_response_tokens=limit, optimizer={}, seconds={}
    )
    shown = {
        "truncated_share": step.truncated_share,
        "masked_share": step.masked_share,
        "unscored_share": step.unscored_share,
        "accepted_share": step.sampled_accuracy,
        "temperature": temperature,
        "response_limit": float(limit),
        "diversity": step.diversity,
        "anew_share": step.anew_share,
        "unrepeated_share": step.unrepeated_share,
        **{f"uncounted/{reason}": share for reason, share in step.uncounted.items()},
    }
    return {f"microcoder/{name}": value for name, value in shown.items() if value is not None}


def read_seconds(timing: Mapping[str, float]) -> dict[str, float]:
    """Return the wall time of a step by our phases."""
    seconds = {
        "generate": timing.get("gen", 0.0),
        "update": sum(timing.get(name, 0.0) for name in UPDATE_PHASES),
        "evaluate": timing.get("testing", 0.0),
        "total": timing.get("step", 0.0) + timing.get("testing", 0.0),
    }
    return {name: round(value, 4) for name, value in seconds.items()}
