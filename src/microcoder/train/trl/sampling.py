"""Sampling settings of a live TRL trainer.

TRL 1.16 keeps the temperature in three places: the generation config, the vLLM client, and a closure that
`add_fused_lm_head` makes for the log-probs. Changing fewer than all three leaves the loss at the old
temperature, silently. Ratios must be taken at the sampling temperature (paper, equation 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import nn
from trl import GRPOTrainer

from microcoder.judge.core.errors import TrainingError
from microcoder.train.metrics import ScoredRollout


def set_sampling(trainer: GRPOTrainer, *, temperature: float, max_response_tokens: int) -> None:
    """Sample, and take log-probs, at this temperature and length from now on."""
    trainer.temperature = temperature
    trainer.max_completion_length = max_response_tokens
    if trainer.use_vllm:
        trainer.vllm_generation.temperature = temperature
        trainer.vllm_generation.max_completion_length = max_response_tokens
    else:
        trainer.generation_config.temperature = temperature
        trainer.generation_config.max_new_tokens = max_response_tokens
        trainer.generation_kwargs.update(temperature=temperature, max_new_tokens=max_response_tokens)
    for model in (trainer.model, trainer.ref_model):
        if isinstance(model, nn.Module):
            _temperature_cell(model).cell_contents = temperature


@contextmanager
def apart(trainer: GRPOTrainer, *, seed: int) -> Iterator[None]:
    """Sample with separate random state, without changing that of training.

    A colocated vLLM draws from the process's own generators (torch's, or a seed a response from numpy's); a server
    has its own, and gets a seed: all its prompts are then sampled with the same random numbers.
    """
    state = np.random.get_state()
    is_server = trainer.use_vllm and trainer.vllm_mode == "server"
    with torch.random.fork_rng():
        _seed_sampler(trainer, seed)
        if is_server:
            trainer.vllm_generation.generation_kwargs["seed"] = seed
        try:
            yield
        finally:
            if is_server:
                del trainer.vllm_generation.generation_kwargs["seed"]
            np.random.set_state(state)


def start_sampler(trainer: GRPOTrainer) -> None:
    """Seed the sampler with the run's seed and set the tokens that end a response.

    vLLM seeds the process with its own number as it loads, and ends a response where the checkpoint's files say so.
    """
    if trainer.use_vllm:
        _seed_sampler(trainer, trainer.args.seed)
        trainer.vllm_generation.generation_kwargs["stop_token_ids"] = list(trainer.eos_token_ids)


def _seed_sampler(trainer: GRPOTrainer, seed: int) -> None:
    # Processes that share a colocated vLLM must draw the same numbers; all others must not.
    sharing = trainer.vllm_tensor_parallel_size if trainer.use_vllm and trainer.vllm_mode == "colocate" else 1
    seed += trainer.accelerator.process_index // sharing
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)


def _temperature_cell(model: nn.Module) -> CellType:
    """Find where the fused LM head keeps its temperature, under whatever wrapped the forward since."""
    for function in _wrapped_functions(model):
        if function.__code__.co_name == "_fused_forward" and function.__closure__:
            cells = dict(zip(function.__code__.co_freevars, function.__closure__, strict=True))
            if "temperature" in cells:
                return cells["temperature"]
    raise TrainingError(
        "cannot find the temperature of TRL's fused LM head, so the log-probs would be taken at the wrong "
        "temperature; install a TRL this version was tested with: pip install 'trl>=1.16,<1.17'"
    )


def _wrapped_functions(model: nn.Module) -> Iterator[FunctionType]:
    todo: list[object] = [
        module.__dict__[name]
        for module in model.modules()
        for name in ("forward", "_original_forward")
        if name in module.__dict__
    ]
    seen: set[int] = set()
    while todo:
        candidate = todo.pop()
        function = getattr(candidate, "__func__", candidate)
        if not isinstance(function, FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        yield function
        todo.extend(cell.cell_contents for cell in function.__closure__ or () if callable(cell.cell_contents))


@dataclass(frozen=True, slots=True)
class SampledGroup:
    """One problem's samples: TRL's rows, what TRL generated for them, and our decisions."""

    inputs: Sequence[dict[str, Any]]
    generated: Sequence[tuple[Any, ...]]
    """A row each: prompt ids, completion ids, completion, log-probs of the sampler or None."""
    scored: list[ScoredRollout]


def split_generated(generated: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Cut what `GRPOTrainer._generate` returns into rows."""
    prompt_ids, completion_ids, _, completions, logprobs, *_ = generated
    return list(zip(prompt_ids, completion_ids, completions, logprobs or [None] * len(completion_ids), strict=True))


def join_generated(groups: Sequence[SampledGroup]) -> tuple[Any, ...]:
    """Return the rows of groups as `GRPOTrainer._generate` would (no tools, no images: we use neither)."""
    rows = [row for group in groups for row in group.generated]
    prompt_ids, completion_ids, completions, logprobs = (list(column) for column in zip(*rows, strict=True))
    return prompt_ids, completion_ids, None, completions, None if logprobs[0] is None else logprobs, {}, None, []
