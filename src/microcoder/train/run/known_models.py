"""The shapes of some published models, for estimates without their files."""

from collections.abc import Mapping
from typing import Any

Architecture = Mapping[str, Any]
"""The entries of a model's config.json that determine its shapes."""
DIMENSIONS = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
)
"""Entries of an architecture that count parameters, in the order of the table below."""


def _qwen3(*dimensions: int) -> Architecture:
    """Return the architecture of a published Qwen3 from its dimensions, in the order above."""
    return {
        "model_type": "qwen3",
        "vocab_size": 151936,
        "head_dim": 128,
        **dict(zip(DIMENSIONS, dimensions, strict=True)),
        # Only the smaller ones share a matrix between embedding and head.
        "tie_word_embeddings": dimensions[0] < 4096,
    }


KNOWN: Mapping[str, Architecture] = {
    "Qwen/Qwen3-0.6B": _qwen3(1024, 28, 16, 8, 3072),
    "Qwen/Qwen3-1.7B": _qwen3(2048, 28, 16, 8, 6144),
    "Qwen/Qwen3-4B": _qwen3(2560, 36, 32, 8, 9728),
    "Qwen/Qwen3-4B-Instruct-2507": _qwen3(2560, 36, 32, 8, 9728),
    "Qwen/Qwen3-8B": _qwen3(4096, 36, 32, 8, 12288),
    "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": _qwen3(4096, 36, 32, 8, 12288),
    "HuggingFaceTB/SmolLM2-135M-Instruct": {
        "model_type": "llama",
        "vocab_size": 49152,
        **dict(zip(DIMENSIONS, (576, 30, 9, 3, 1536), strict=True)),
        "tie_word_embeddings": True,
    },
    "Qwen/Qwen2.5-Coder-0.5B-Instruct": {
        "model_type": "qwen2",
        "vocab_size": 151936,
        **dict(zip(DIMENSIONS, (896, 24, 14, 2, 4864), strict=True)),
        "tie_word_embeddings": True,
    },
}
"""Hub id -> architecture, from config.json on the Hub, so that an estimate needs no network."""
