"""vLLM as TRL's sampler: what must hold before it starts, its arguments, and what its failures mean."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import torch
from packaging.version import Version

from microcoder.judge.core.errors import ConfigError, MicroCoderError, TrainingError
from microcoder.judge.core.installation import how_to_install
from microcoder.train.algorithm.sampling import VllmConfig
from microcoder.train.recipe.recipe import TrainConfig

OLDEST, NEWEST = "0.22.0", "0.31.0"
"""The versions of vLLM that TRL 1.16 supports."""
INSTALL = how_to_install("vllm")


def require_vllm(config: TrainConfig) -> None:
    """Check that vLLM can run here; patch its CPU backend for training on a CPU."""
    if config.rollout.backend != "vllm":
        return
    if find_spec("vllm") is None:
        raise ConfigError(
            f"rollout.backend = 'vllm', but vLLM is not installed; type: {INSTALL} (GPU machines only), "
            "or pass --rollout.backend transformers"
        )
    from vllm import __version__ as installed  # pyrefly: ignore[missing-import]

    if not Version(OLDEST) <= Version(Version(installed).base_version) <= Version(NEWEST):
        raise ConfigError(f"vLLM {installed} is installed; TRL 1.16 works with {OLDEST} to {NEWEST}; type: {INSTALL}")
    if config.rollout.vllm.mode == "server" and not torch.cuda.is_available():
        raise ConfigError(
            'rollout.vllm.mode = "server" sends the weights over NCCL, which needs a GPU in the training process too; '
            'this machine has none: use rollout.vllm.mode = "colocate"'
        )
    from vllm.platforms import current_platform  # pyrefly: ignore[missing-import]

    if current_platform.is_cpu():
        make_trainable()


def vllm_arguments(config: TrainConfig, *, longest_prompt_tokens: int) -> dict[str, Any]:
    """Return TRL's arguments for the sampler of a recipe; empty if transformers samples."""
    rollout = config.rollout
    if rollout.backend != "vllm":
        return {}
    vllm, mismatch = rollout.vllm, rollout.mismatch
    shared = {
        "use_vllm": True,
        "vllm_mode": vllm.mode,
        "vllm_importance_sampling_correction": rollout.corrects_mismatch,
        # The weights are ours (`mismatch.py`); set all the same, for TRL's log.
        "vllm_importance_sampling_mode": f"{'token' if mismatch.correction == 'off' else mismatch.correction}_"
        f"{mismatch.mode}",
        "vllm_importance_sampling_clip_max": mismatch.threshold,
    }
    if vllm.mode == "server":
        return shared | {"vllm_server_base_url": vllm.server_url}
    return shared | {
        "vllm_max_model_length": context_tokens(config, longest_prompt_tokens=longest_prompt_tokens),
        "vllm_gpu_memory_utilization": vllm.gpu_memory_utilization,
        "vllm_enable_sleep_mode": vllm.enable_sleep_mode,
        "vllm_tensor_parallel_size": vllm.tensor_parallel_size,
    }


def context_tokens(config: TrainConfig, *, longest_prompt_tokens: int) -> int:
    """Return how many tokens of prompt and response vLLM makes room for."""
    longest = max(config.rollout.longest_response_tokens, config.evaluation.max_response_tokens or 0)
    return longest_prompt_tokens + longest


def check_model_length(config: TrainConfig, *, model_tokens: int | None, longest_prompt_tokens: int) -> None:
    """Refuse a run whose prompts and responses are longer than the model, or the server, can take."""
    if config.rollout.backend != "vllm":
        return
    needed = context_tokens(config, longest_prompt_tokens=longest_prompt_tokens)
    if model_tokens is not None and needed > model_tokens:
        raise ConfigError(
            f"the longest prompt ({longest_prompt_tokens} tokens) and response need {needed} tokens, the model's "
            f"positions end at {model_tokens}; lower rollout.max_response_tokens (or evaluation.max_response_tokens)"
        )
    vllm = config.rollout.vllm
    if vllm.mode == "server" and (served := _served_tokens(vllm)) is not None and served < needed:
        raise ConfigError(
            f"the longest prompt and response need {needed} tokens, the vLLM server at {vllm.server_url} takes "
            f"{served}; start it with --max-model-len {needed}"
        )


def check_sampler_logps(trainer: Any, config: TrainConfig) -> None:
    """Refuse a server whose log-probs ignore the sampling temperature."""
    rollout = config.rollout
    if rollout.backend != "vllm" or rollout.vllm.mode != "server" or rollout.mismatch.correction == "off":
        return
    if not trainer.accelerator.is_main_process:
        return
    said = trainer.vllm_generation.vllm_client.get_server_info()["model_config"]["logprobs_mode"]
    if said != "processed_logprobs":
        raise ConfigError(
            f"the vLLM server at {rollout.vllm.server_url} reports {said}, without the temperature; start it with "
            '--logprobs-mode processed_logprobs, or use rollout.mismatch.correction = "off"'
        )


@contextmanager
def name_lost_server(config: TrainConfig) -> Iterator[None]:
    """Turn the exceptions of a lost server into one line that says how to resume (GPU failures: `failures`)."""
    try:
        yield
    except MicroCoderError:
        raise
    except Exception as error:
        names = {kind.__name__ for kind in type(error).__mro__}
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        if config.rollout.backend == "vllm" and config.rollout.vllm.mode == "server":
            url = config.rollout.vllm.server_url
            # TRL raises a bare Exception where the server answers with an error.
            if names & {"RequestException", "ConnectionError"} or reason.startswith("Request failed"):
                raise TrainingError(
                    f"the vLLM server at {url} does not answer ({reason}); start it (docs/training.md, vLLM) and type "
                    "the same command again to resume from the last checkpoint"
                ) from None
            if reason.startswith(f"The vLLM server at {url}"):
                raise ConfigError(reason) from None
        raise


def _served_tokens(vllm: VllmConfig) -> int | None:
    """Ask a server how long a request may be; None if it does not answer (yet)."""
    try:
        with urlopen(f"{vllm.server_url}/v1/models", timeout=10) as answer:
            return int(json.load(answer)["data"][0]["max_model_len"])
    except (URLError, OSError, ValueError, KeyError, IndexError, TypeError):
        return None


# vLLM's own progress and notes would break into our display.
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")


def make_trainable() -> None:
    """Let a vLLM that is loaded from now on on a CPU take weights again and again, in the precision they have.

    Only to try a recipe, and for the tests. vLLM's CPU backend packs each weight for its own kernels and throws the
    original away, so that weights cannot be sent a second time ("'Parameter' object has no attribute
    'weight_loader'"); here it keeps them and multiplies as torch does. It also samples in 16 bits whatever the
    checkpoint's precision; here it keeps to the checkpoint's.
    """
    import vllm.model_executor.layers.utils as layers  # pyrefly: ignore[missing-import]
    from vllm.platforms.cpu import CpuPlatform  # pyrefly: ignore[missing-import]

    layers.dispatch_cpu_unquantized_gemm = _multiply_plainly
    CpuPlatform.supported_dtypes = property(lambda _: [torch.float32, torch.bfloat16, torch.float16])
    # GiB; vLLM would take half of the machine's memory.
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")


def _multiply_plainly(layer: torch.nn.Module, remove_weight: bool) -> None:
    layer.cpu_linear = torch.nn.functional.linear  # type: ignore[assignment]
