"""How responses are sampled under TRL, and the random states that they are drawn from.

There is one state for training, and others for the rest.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel
from trl import GRPOConfig, GRPOTrainer

from microcoder.train.run.responses import (
    CommonDraws,
    Report,
    Sampling,
    replacing_generate,
    sample_responses,
)
from microcoder.train.run.slots import find_obstacle


def samples_here(arguments: GRPOConfig) -> bool:
    """Return whether our sampler answers in place of transformers' `generate`.

    A user's own options of `generate` are for that alone, and vLLM has a sampler of its own.
    """
    if arguments.use_vllm or arguments.generation_kwargs:
        return False
    return arguments.cache_implementation is None


def fits_slots(model: PreTrainedModel, note: Callable[[str], None]) -> bool:
    """Return whether a model can be sampled in slots; note why not."""
    obstacle = find_obstacle(model)
    if obstacle is None:
        return True
    note(
        f"responses are sampled by transformers' generate, which waits for the longest: {obstacle}"
    )
    return False


@contextmanager
def answering_generate(
    trainer: GRPOTrainer,
    *,
    pad_id: int,
    in_slots: bool,
    report: Report,
) -> Iterator[None]:
    """Within the body, our sampler answers for the model's `generate`, without dropout."""
    policy = trainer.model
    assert isinstance(policy, torch.nn.Module)
    was_training = policy.training
    sample = partial(
        _sample_together,
        trainer,
        pad_id=pad_id,
        in_slots=in_slots,
        report=report,
    )
    # TRL leaves dropout on, and the responses would be those of another policy than is trained.
    policy.eval()
    try:
        with replacing_generate(policy, sample, pad_id=pad_id):
            yield
    finally:
        policy.train(was_training)


def _sample_together(
    trainer: GRPOTrainer,
    prompts: list[list[int]],
    *,
    pad_id: int,
    in_slots: bool,
    report: Report,
) -> list[list[int]]:
    """Return a response to each prompt, all sampled at a time by torch's generator."""
    limit = trainer.max_completion_length
    assert limit is not None
    sampling = Sampling(
        temperature=trainer.temperature,
        top_p=1.0,
        max_tokens=limit,
        end_ids=trainer.eos_token_ids,
        pad_id=pad_id,
    )
    responses: list[list[int]] = [[] for _ in prompts]
    # With adapters, it is PEFT's.
    policy: Any = trainer.model
    # Around all steps: weights are cast to the format of products once, and not for every token.
    with trainer.accelerator.autocast():
        sampled = sample_responses(
            policy,
            prompts,
            sampling,
            draws=CommonDraws(len(prompts)),
            batch_size=len(prompts),
            in_slots=in_slots,
            report=report,
        )
        for index, ids in sampled:
            responses[index] = ids
    return responses


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
