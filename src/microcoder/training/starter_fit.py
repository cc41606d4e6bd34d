"""The largest settings that fit on a GPU: full or adapter training, length, rollouts per pass; for `microcoder init`.

Rules of thumb (`count_gib`) find the candidates, for any model whose size is known; where its shape is known too, the
count of the dry run (`memory`) decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType

from microcoder.errors import ConfigError
from microcoder.training.starter_model import StarterModel

GPUS: Mapping[str, float | None] = MappingProxyType(
    {
        "h200": 141,
        "h100": 80,
        "a100-80": 80,
        "a100-40": 40,
        "l40s": 48,
        "a6000": 48,
        "rtx-5090": 32,
        "rtx-4090": 24,
        "l4": 24,
        "cpu": None,
    }
)
"""Memory in GB, as sold. No GPU: to try a recipe out with a tiny model."""
RESPONSE_TOKENS = (8192, 4096, 2048, 1024)
"""The published limit, and what is tried where it does not fit."""
PROMPT_TOKENS = 1024
"""Room for the statement; longer ones are cut by no one and take more."""
PASSES = (8, 4, 2, 1)
"""Rollouts in one forward and backward pass."""
_SEQUENCES = 8
"""The sampler's cache must hold at least so many whole sequences, or sampling crawls."""
_RESERVE_GIB = 4.0
"""CUDA's context, fragmentation, and the logits of one chunk."""
_LAYER_VALUES = 34
"""Values per token and unit of width that one layer holds for its backward pass, the layers being recomputed."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Settings that fit."""

    is_whole: bool
    """All weights are trained, in float32; otherwise LoRA adapters on bfloat16 weights."""
    max_response_tokens: int
    micro_batch_rollouts: int
    gib: float
    """What it takes."""


def fit_model(
    model: StarterModel, gpu: str, *, holds: Callable[[Fit, float], bool | None] = lambda fit, gib: None
) -> Fit | None:
    """Return the setting nearest to the published one that fits on one GPU; None on the CPU, if nothing is fitted.

    All weights at 4K tokens or more come before adapters, a longer limit before larger passes.

    Args:
        model: what it is fitted for.
        gpu: one of `GPUS`.
        holds: whether a GPU of so many GiB holds a setting, by an exact count; None if that cannot be counted.

    Raises:
        ConfigError: the GPU is unknown, or nothing fits.
    """
    if gpu not in GPUS:
        raise ConfigError(f"gpu {gpu!r} is unknown; use one of {', '.join(GPUS)}, the one with as much memory")
    memory_gb = GPUS[gpu]
    if memory_gb is None:
        return None
    has_gib = memory_gb * 1e9 / 2**30
    limits = [n for n in RESPONSE_TOKENS if n + PROMPT_TOKENS <= (model.max_context_tokens or n + PROMPT_TOKENS)]
    settings = [
        *product((True,), [n for n in limits if n >= 4096], PASSES),
        *product((False,), limits, PASSES),
    ]
    for is_whole, tokens, rollouts in settings:
        gib = count_gib(model, is_whole=is_whole, response_tokens=tokens, rollouts_per_pass=rollouts)
        fit = Fit(is_whole, tokens, rollouts, round(gib, 1))
        if gib <= has_gib and holds(fit, has_gib) is not False:
            return fit
    raise ConfigError(
        f"{model.name} ({model.parameters / 1e9:.1f} B parameters) does not fit on one {gpu} even with adapters; "
        "choose a larger GPU, or several: --engine verl (docs/cluster.md)"
    )


def count_gib(model: StarterModel, *, is_whole: bool, response_tokens: int, rollouts_per_pass: int) -> float:
    """Return about how much memory training and sampling take on one GPU that holds both.

    Weights, gradients and two AdamW moments in float32 (16 bytes a parameter), or bfloat16 weights (2) with adapters
    (0.2); the sampler's own bfloat16 weights and its cache; what gradient checkpointing keeps, and one layer whole.
    """
    tokens = response_tokens + PROMPT_TOKENS
    weights = model.parameters * (16 if is_whole else 2.2)
    sampler = model.parameters * 2 + _SEQUENCES * tokens * model.num_layers * model.kv_size * 2 * 2
    kept = rollouts_per_pass * tokens * model.hidden_size * 2 * (model.num_layers + _LAYER_VALUES)
    return (weights + sampler + kept) / 2**30 + _RESERVE_GIB


def detect_gpu() -> str:
    """Return the name in `GPUS` of this machine's first GPU, by NVIDIA's driver; `cpu` if there is none."""
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        lines = file.read_text(encoding="utf-8", errors="replace").lower().splitlines()
        words = next((line for line in lines if line.startswith("model")), "").replace("rtx ", "rtx-")
        for name in GPUS:
            family, _, size = name.partition("-") if name.startswith("a100") else (name, "", "")
            if family in words and size in words:
                return name
    return "cpu"
