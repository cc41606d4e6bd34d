"""Changing how a running TRL trainer samples; arguments, version check and patches of vLLM.

TRL 1.16 keeps the temperature in three places: the generation config, the vLLM client, and a closure that
`add_fused_lm_head` makes for the log-probs. Changing fewer than all three leaves the loss at the old
temperature, silently. Ratios must be taken at the sampling temperature (paper, equation 1).
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from types import CellType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import nn
from trl import GRPOTrainer

from microcoder.judge.core.errors import ConfigError, TrainingError
from microcoder.judge.core.machine import how_to_install
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.rollouts import ScoredRollout


def set_sampling(trainer: GRPOTrainer, *, temperature: float, max_response_tokens: int) -> None:
    """From now on, sample at this temperature and length limit, and take log-probs at this temperature."""
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
    """Within the body, sample from a random state of `seed`; that of training is restored after it.

    vLLM draws from the process's own generators: torch's, or a seed a response from numpy's.
    """
    state = np.random.get_state()
    with torch.random.fork_rng():
        _seed_sampler(trainer, seed)
        try:
            yield
        finally:
            np.random.set_state(state)


def start_sampler(trainer: GRPOTrainer) -> None:
    """Seed the sampler with the run's seed and set the tokens that end a response.

    vLLM seeds the process with its own number as it loads, and ends a response where the checkpoint's files say so.
    """
    if trainer.use_vllm:
        _seed_sampler(trainer, trainer.args.seed)
        trainer.vllm_generation.generation_kwargs["stop_token_ids"] = list(trainer.eos_token_ids)


def _seed_sampler(trainer: GRPOTrainer, seed: int) -> None:
    # Processes that share a vLLM must draw the same numbers; all others must not.
    sharing = trainer.vllm_tensor_parallel_size if trainer.use_vllm else 1
    seed += trainer.accelerator.process_index // sharing
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)


def _temperature_cell(model: nn.Module) -> CellType:
    """Return the closure cell of the fused LM head's temperature, however `forward` was wrapped since."""
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
    """One tuple per sample: prompt ids, completion ids, completion, log-probs of the sampler or None."""
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


INSTALL = how_to_install("vllm")


def require_vllm(config: TrainConfig) -> None:
    """Raise ConfigError if a recipe needs vLLM and it cannot run here; patch its CPU backend for training on a CPU."""
    if config.rollout.backend != "vllm":
        return
    if find_spec("vllm") is None:
        raise ConfigError(
            f"rollout.backend = 'vllm', but vLLM is not installed; type: {INSTALL} (GPU machines only), "
            "or pass --rollout.backend transformers"
        )
    from vllm.platforms import current_platform  # pyrefly: ignore[missing-import]

    if current_platform.is_cpu():
        make_trainable()


def vllm_arguments(config: TrainConfig, *, longest_prompt_tokens: int) -> dict[str, Any]:
    """Return TRL's arguments for vLLM as the sampler of a recipe, with room for the longest prompt and response."""
    rollout, vllm = config.rollout, config.rollout.vllm
    longest = max(rollout.longest_response_tokens, config.evaluation.max_response_tokens or 0)
    return {
        "use_vllm": True,
        "vllm_mode": "colocate",
        # For the sampler's log-probs: the weights are ours (`mismatch.py`).
        "vllm_importance_sampling_correction": rollout.corrects_mismatch,
        "vllm_max_model_length": longest_prompt_tokens + longest,
        "vllm_gpu_memory_utilization": vllm.gpu_memory_utilization,
        "vllm_enable_sleep_mode": vllm.enable_sleep_mode,
        "vllm_tensor_parallel_size": vllm.tensor_parallel_size,
    }


# vLLM's own progress and notes would break into our display.
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")


def make_trainable() -> None:
    """Patch vLLM, before it is loaded, to take new weights repeatedly on a CPU, in the checkpoint's precision.

    Only to try a recipe, and for the tests. vLLM's CPU backend packs each weight for its own kernels and throws the
    original away, so that weights cannot be sent a second time ("'Parameter' object has no attribute
    'weight_loader'"); here it keeps them and multiplies as torch does. It also samples in 16 bits whatever the
    checkpoint's precision; here it keeps to the checkpoint's.
    """
    import vllm.model_executor.layers.utils as layers  # pyrefly: ignore[missing-import]
    from vllm.platforms.cpu import CpuPlatform  # pyrefly: ignore[missing-import]

    def multiply_plainly(layer: torch.nn.Module, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear  # type: ignore[assignment]

    layers.dispatch_cpu_unquantized_gemm = multiply_plainly
    CpuPlatform.supported_dtypes = property(lambda _: [torch.float32, torch.bfloat16, torch.float16])
    # GiB; vLLM would take half of the machine's memory.
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
