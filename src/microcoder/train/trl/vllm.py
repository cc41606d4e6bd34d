"""vLLM as TRL's sampler: its arguments, whether it is installed, and patches for training on a
CPU."""

import os
from importlib.util import find_spec
from typing import Any

import torch

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.machine import how_to_install
from microcoder.train.recipe.recipe import TrainConfig

# vLLM's own progress and notes would break into our display.
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")


def require_vllm(config: TrainConfig) -> None:
    """Raise ConfigError if a recipe needs vLLM and it cannot run here.

    On a CPU its backend is patched for training.
    """
    if config.rollout.backend != "vllm":
        return
    if find_spec("vllm") is None:
        raise ConfigError(
            f"rollout.backend = 'vllm', but vLLM is not installed; type: {how_to_install('vllm')} "
            "(GPU machines only), or pass --rollout.backend transformers"
        )
    from vllm.platforms import current_platform  # pyrefly: ignore[missing-import]

    if current_platform.is_cpu():
        make_trainable()


def vllm_arguments(config: TrainConfig, *, longest_prompt_tokens: int) -> dict[str, Any]:
    """Return TRL's arguments for vLLM as the sampler of a recipe.

    Its context takes the longest prompt and response.
    """
    rollout = config.rollout
    vllm = rollout.vllm
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


def make_trainable() -> None:
    """Patch vLLM, before it is loaded, to take new weights repeatedly on a CPU.

    It then samples in the checkpoint's precision, too.

    Only to try a recipe, and for the tests. vLLM's CPU backend packs each weight for its own
    kernels and throws the original away. So weights cannot be sent a second time ("'Parameter'
    object has no attribute 'weight_loader'"); here it keeps them and multiplies as torch does. It
    also samples in 16 bits whatever the checkpoint's precision; here it keeps to the checkpoint's.
    """
    import vllm.model_executor.layers.utils as layers  # pyrefly: ignore[missing-import]
    from vllm.platforms.cpu import CpuPlatform  # pyrefly: ignore[missing-import]

    def multiply_plainly(layer: torch.nn.Module, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear  # type: ignore[assignment]

    layers.dispatch_cpu_unquantized_gemm = multiply_plainly
    CpuPlatform.supported_dtypes = property(
        lambda _: [torch.float32, torch.bfloat16, torch.float16]
    )
    # GiB; vLLM would take half of the machine's memory.
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
