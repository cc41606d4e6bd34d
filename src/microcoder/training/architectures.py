"""The shapes of models, without their weights: of a folder, of the micro lab, and of models known by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from microcoder.training.model_config import HuggingFaceModel, MicroModel

Architecture = Mapping[str, Any]
"""A config.json, as far as it decides shapes."""


def _qwen(
    kind: str,
    hidden: int,
    layers: int,
    heads: int,
    kv_heads: int,
    intermediate: int,
    *,
    tied: bool,
    vocab: int = 151936,
) -> Architecture:
    head = {"head_dim": 128} if kind == "qwen3" else {}
    return MappingProxyType(
        {
            "model_type": kind,
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "intermediate_size": intermediate,
            "vocab_size": vocab,
            "tie_word_embeddings": tied,
            **head,
        }
    )


_QWEN3_8B = _qwen("qwen3", 4096, 36, 32, 8, 12288, tied=False)
# From the models' config.json on the hub, so that an estimate needs no network.
KNOWN: Mapping[str, Architecture] = MappingProxyType(
    {
        "Qwen/Qwen3-0.6B": _qwen("qwen3", 1024, 28, 16, 8, 3072, tied=True),
        "Qwen/Qwen3-1.7B": _qwen("qwen3", 2048, 28, 16, 8, 6144, tied=True),
        "Qwen/Qwen3-4B": _qwen("qwen3", 2560, 36, 32, 8, 9728, tied=True),
        "Qwen/Qwen3-4B-Instruct-2507": _qwen("qwen3", 2560, 36, 32, 8, 9728, tied=True),
        "Qwen/Qwen3-8B": _QWEN3_8B,
        "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": _QWEN3_8B,
        "Qwen/Qwen2.5-0.5B-Instruct": _qwen("qwen2", 896, 24, 14, 2, 4864, tied=True),
        "Qwen/Qwen2.5-1.5B-Instruct": _qwen("qwen2", 1536, 28, 12, 2, 8960, tied=True),
        "Qwen/Qwen2.5-3B-Instruct": _qwen("qwen2", 2048, 36, 16, 2, 11008, tied=True),
        "Qwen/Qwen2.5-7B-Instruct": _qwen("qwen2", 3584, 28, 28, 4, 18944, tied=False, vocab=152064),
        "Qwen/Qwen2.5-Coder-7B-Instruct": _qwen("qwen2", 3584, 28, 28, 4, 18944, tied=False, vocab=152064),
    }
)


def find_architecture(model: MicroModel | HuggingFaceModel) -> Architecture | None:
    """Return the shape of a recipe's model; None for a hub id that is not known here."""
    if isinstance(model, MicroModel):
        dims = model.warm_start
        return {
            "model_type": "qwen3",
            "hidden_size": dims.hidden_size,
            "num_hidden_layers": dims.num_layers,
            "num_attention_heads": dims.num_heads,
            "num_key_value_heads": dims.num_kv_heads,
            "head_dim": dims.hidden_size // dims.num_heads,
            "intermediate_size": dims.intermediate_size,
            "vocab_size": dims.vocab_size,
            "tie_word_embeddings": True,
        }
    if model.path in KNOWN:
        return KNOWN[model.path]
    try:
        found = json.loads((Path(model.path).expanduser() / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        return None
    return found if isinstance(found, dict) and "num_hidden_layers" in found else None


def count_model(model: MicroModel | HuggingFaceModel) -> int | None:
    """Return how many parameters a recipe's model has; None if its shape is not known here."""
    architecture = find_architecture(model)
    return None if architecture is None else count_parameters(architecture)


def count_parameters(architecture: Architecture) -> int | None:
    """Return the parameters of a decoder like Llama, Qwen2 or Qwen3; None if a dimension is not said."""
    try:
        hidden, layers = architecture["hidden_size"], architecture["num_hidden_layers"]
        heads, kv_heads = architecture["num_attention_heads"], architecture["num_key_value_heads"]
        size = head_size(architecture)
        attention = hidden * size * (2 * heads + 2 * kv_heads)
        attention += {"qwen2": size * (heads + 2 * kv_heads), "qwen3": 2 * size}.get(
            architecture.get("model_type", ""), 0
        )
        mlp = 3 * hidden * architecture["intermediate_size"]
        embeddings = 1 if architecture.get("tie_word_embeddings", False) else 2
        return layers * (attention + mlp + 2 * hidden) + embeddings * architecture["vocab_size"] * hidden + hidden
    except (KeyError, TypeError):
        return None


def head_size(architecture: Architecture) -> int:
    """Return the size of an attention head."""
    return architecture.get("head_dim") or architecture["hidden_size"] // architecture["num_attention_heads"]


def cache_bytes_per_token(architecture: Architecture, *, bytes_per_value: int) -> int:
    """Return what keys and values of one token take, over all layers."""
    heads = architecture.get("num_key_value_heads") or architecture["num_attention_heads"]
    return 2 * architecture["num_hidden_layers"] * heads * head_size(architecture) * bytes_per_value
