"""Our names in verl's registries, and how a step's prompts are sampled, as it travels with them; without verl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microcoder.train.algorithm.masking import draw_uniform

PACKAGE = "microcoder.train.verl"
TRAINER_MODE = "microcoder"
SEPARATE_ASYNC = f"{TRAINER_MODE}_separate_async"
TRAINER_MODES = {
    TRAINER_MODE: "sync",
    f"{TRAINER_MODE}_colocate_async": "colocate_async",
    SEPARATE_ASYNC: "separate_async",
}
"""Ours -> verl's mode that it is around."""
AGENT_LOOP = "microcoder"
REWARD_MANAGER = "microcoder"
COLUMN = "microcoder_sampling"
MANAGER = "microcoder.train.verl.sampling.SamplingManager"
"""Path by which verl finds the agent loop manager."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a round of prompts is sampled; a column of the batch, so that whoever reads a response knows."""

    temperature: float
    max_response_tokens: int
    step: int
    """0 outside of training."""
    num_samples: int | None
    """Samples of each prompt; None: as the row or verl's configuration says."""
    seed: int | None
    """Seed of sampling; None: the servers' own random numbers."""


def problem_name(extra_info: Mapping[str, Any] | None, data_source: str) -> str:
    """Return what tells a row's problem from others, the same in each step and on each resume."""
    known = extra_info or {}
    return str(known.get("problem_id", f"{data_source}-{known.get('index', 0)}"))


def sampling_seed(seed: int, *, step: int, problem_id: str, sample_index: int) -> int:
    """Return a request's own seed: so the responses of a step depend on the weights alone."""
    return int(draw_uniform(seed=seed, step=step, problem_id=f"sample-{problem_id}", sample_index=sample_index) * 2**31)
