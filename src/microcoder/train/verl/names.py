"""Our names in verl's registries, and the sampling settings that travel with prompts.

Imports nothing of verl.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from microcoder.train.algorithm.masking import draw_uniform

PACKAGE = "microcoder.train.verl"
"""Package of the modules that verl loads by name."""
TRAINER_MODE = "microcoder"
"""Our trainer mode that trains step by step."""
SEPARATE_ASYNC = f"{TRAINER_MODE}_separate_async"
"""Our trainer mode that samples on GPUs of its own, ahead of the updates."""
TRAINER_MODES = {
    TRAINER_MODE: "sync",
    f"{TRAINER_MODE}_colocate_async": "colocate_async",
    SEPARATE_ASYNC: "separate_async",
}
"""Our trainer mode -> verl's mode that it extends."""
AGENT_LOOP = "microcoder"
"""Our agent loop, `sampling.SingleTurn`."""
REWARD_MANAGER = "microcoder"
"""Our reward manager, `reward.JudgeRewardManager`."""
COLUMN = "microcoder_sampling"
"""Column of verl's batches that holds a row's `Sampling`."""
MANAGER = "microcoder"
COLUMN = "microcoder_sampling"
MANAGER = "microcoder.train.verl.sampling.SamplingManager"
"""Path by which verl finds the agent loop manager."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings of a round of prompts.

    They are stored as a column of the batch, and so with each response.
    """

    temperature: float
    max_response_tokens: int
    step: int
    """The training step, from 1; 0 outside of training."""
    num_samples: int | None
    """Samples of each prompt; None: as the row or verl's configuration says."""
    seed: int | None
    """Seed of sampling; None: the servers' own random numbers."""


def problem_name(extra_info: Mapping[str, Any] | None, data_source: str) -> str:
    """Return a row's problem name, the same in every step.

    It is unique if the row has a `problem_id` or an `index`.
    """
    info = extra_info or {}
    return str(info.get("problem_id", f"{data_source}-{info.get('index', 0)}"))


def sampling_seed(seed: int, *, step: int, problem_id: str, sample_index: int) -> int:
    """Return the seed of one request, a hash of the arguments.

    Responses then depend only on the weights.
    """
    draw = draw_uniform(
        seed=seed, step=step, problem_id=f"sample-{problem_id}", sample_index=sample_index
    )
    return int(draw * 2**31)
