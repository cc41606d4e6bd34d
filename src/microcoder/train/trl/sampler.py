"""The random states that TRL's sampler draws from: one for training, and others for the rest."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from trl import GRPOTrainer


@contextmanager
def apart(trainer: GRPOTrainer, *, seed: int) -> Iterator[None]:
    """Within the body, sample from a random state made of `seed`; afterwards restore that of
    training.

    vLLM draws from the process's own generators: torch's, or numpy's for a seed of each response.
    """
    # torch's is restored by the fork, numpy's by hand.
    state = np.random.get_state()
    with torch.random.fork_rng():
        _seed_sampler(trainer, seed)
        try:
            yield
        finally:
            np.random.set_state(state)


def start_sampler(trainer: GRPOTrainer) -> None:
    """Under vLLM, seed the process with the run's seed again, and set what ends a response.

    As it loads, vLLM seeds the process with a number of its own, and takes the end tokens from the
    checkpoint's files.
    """
    if trainer.use_vllm:
        _seed_sampler(trainer, trainer.args.seed)
        trainer.vllm_generation.generation_kwargs["stop_token_ids"] = list(trainer.eos_token_ids)


def _seed_sampler(trainer: GRPOTrainer, seed: int) -> None:
    """Seed the generators of torch and numpy, with another seed in each process of a run."""
    # Processes that share a vLLM must draw the same numbers; all others must not.
    sharing = trainer.vllm_tensor_parallel_size if trainer.use_vllm else 1
    seed += trainer.accelerator.process_index // sharing
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
