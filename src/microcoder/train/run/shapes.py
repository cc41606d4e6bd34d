"""Shapes of models without their weights, and what a forward and backward pass over one holds, by formula.

The coefficients were fitted to Qwen2.5 and Qwen3 models of 0.6 to 8 billion parameters in transformers 5, whose
storages were counted operation by operation: the peak is within 4 % of that count where a pass has several rows, and
up to 20 % above it for one row, whose attention needs no mask.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from microcoder.train.recipe.recipe import WEIGHT_BYTES, HuggingFaceModel, LoraAdapter, MicroModel

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
    """Return the parameters of a decoder like Llama, Qwen2 or Qwen3; None for experts or an unknown dimension."""
    if architecture.get("num_experts") or architecture.get("num_local_experts"):
        return None
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


_TILE_ROWS, _TILE_COLUMNS = 4096, 32768
"""Tile of TRL's fused head: logits are made for so many tokens and so much of the vocabulary at a time."""
_CPU_TILE_COPIES = 7
"""Float32 tiles beside it where torch folds a tile without Triton, as measured."""
_KEPT = {
    (2, 2, True): (20.0, 6.0, 18.5), (2, 2, False): (19.5, 7.0, 17.5), (4, 2, True): (32.5, 6.4, 17.5),
    (4, 2, False): (22.5, 7.4, 16.5), (4, 4, True): (27.0, 14.0, 32.0), (4, 4, False): (14.5, 16.0, 27.0),
}  # fmt: skip
"""Bytes that a layer keeps for backward, for each token and value of the hidden state, the MLP and the heads; by bytes
of a weight, bytes of a product, and whether all weights are trained."""
_RECOMPUTED = {
    (2, 2, True): (17.6, 9.8, 18.3), (2, 2, False): (27.5, 13.0, 17.5), (4, 2, True): (27.6, 10.1, 17.7),
    (4, 2, False): (32.0, 13.4, 16.5), (4, 4, True): (22.7, 21.8, 31.6), (4, 4, False): (14.5, 24.0, 27.0),
}  # fmt: skip
"""`_KEPT` of a layer that backward computes again, with its gradients."""


@dataclass(frozen=True, slots=True)
class PassMemory:
    """Bytes of one micro batch, beside weights and their gradients."""

    parameters: int
    trained_parameters: int
    embedding_parameters: int
    """Parameters of the embeddings and the head."""
    kept: int
    """Bytes between forward and backward: what backward needs (with checkpointing, the input of each layer)."""
    forward: int
    head: int
    backward: int

    @property
    def peak(self) -> int:
        """Most bytes at a time, `kept` included."""
        return max(self.forward, self.head, self.backward)


@dataclass(frozen=True, slots=True)
class PassSettings:
    """Options that decide the memory of a pass, besides the architecture."""

    rows: int
    prompt_tokens: int
    response_tokens: int
    weight_dtype: str
    compute_dtype: str
    gradient_checkpointing: bool
    lora: LoraAdapter | None = None
    """None trains all weights."""
    has_triton: bool = True
    """A GPU: TRL's head then scores a tile in place."""


def count_pass(architecture: Architecture, settings: PassSettings) -> PassMemory | None:
    """Count a forward and backward pass of a decoder like Qwen's; None if a dimension is not said."""
    parameters = count_parameters(architecture)
    if parameters is None:
        return None
    hidden, layers = int(architecture["hidden_size"]), int(architecture["num_hidden_layers"])
    mlp, vocabulary = int(architecture["intermediate_size"]), int(architecture["vocab_size"])
    queries, keys = (
        head_size(architecture) * int(architecture[f"num_{kind}_heads"]) for kind in ("attention", "key_value")
    )
    stored, product = WEIGHT_BYTES[settings.weight_dtype], WEIGHT_BYTES[settings.compute_dtype]
    trains_all = settings.lora is None
    embeddings = vocabulary * hidden * (1 if architecture.get("tie_word_embeddings") else 2)
    length = settings.prompt_tokens + settings.response_tokens
    tokens = settings.rows * length

    def of_layer(coefficients: Mapping[tuple[int, int, bool], tuple[float, float, float]]) -> float:
        of_hidden, of_mlp, of_heads = coefficients[stored, product, trains_all]
        return tokens * (of_hidden * hidden + of_mlp * mlp + of_heads * (queries + keys))

    # The ends of the stack: embeddings, the last norm; with checkpointing the mask is counted apart from the layers.
    kept = tokens * hidden * (2 * stored + 4.0)
    if settings.gradient_checkpointing:
        kept += layers * tokens * hidden * stored + settings.rows * length**2
        worked = of_layer(_RECOMPUTED)
    else:
        kept += layers * of_layer(_KEPT)
        worked = tokens * max(20 * hidden, 2 * product * mlp)
    forward = tokens * product * mlp
    if product < stored and trains_all:
        forward += product * parameters  # autocast keeps its casts of weights until the pass has ended
    elif product < stored:
        casts = product * (parameters - embeddings)  # of frozen weights it keeps none, but backward needs them
        worked, kept = (worked + casts / layers, kept) if settings.gradient_checkpointing else (worked, kept + casts)
    head_gradient = 4 * vocabulary * hidden if trains_all else 0
    scored = settings.rows * settings.response_tokens if settings.has_triton else tokens
    tile = min(scored, _TILE_ROWS) * min(vocabulary, _TILE_COLUMNS)
    tiles = tile * (product if settings.has_triton else product + 4 * _CPU_TILE_COPIES)
    trained = parameters
    if settings.lora is not None:
        trained = layers * _count_adapters(settings.lora, hidden, mlp, queries, keys)
    return PassMemory(
        parameters=parameters if trains_all else parameters + trained,
        trained_parameters=trained,
        embedding_parameters=embeddings,
        kept=round(kept),
        forward=round(kept + forward),
        head=round(kept + tiles + scored * hidden * (product + stored + 4) + head_gradient),
        backward=round(kept + worked + head_gradient),
    )


def _count_adapters(lora: LoraAdapter, hidden: int, mlp: int, queries: int, keys: int) -> int:
    """Return the parameters of one layer's adapters."""
    ends = {
        "q_proj": hidden + queries, "k_proj": hidden + keys, "v_proj": hidden + keys, "o_proj": queries + hidden,
        "gate_proj": hidden + mlp, "up_proj": hidden + mlp, "down_proj": mlp + hidden,
    }  # fmt: skip
    is_all = lora.target_modules == "all-linear"
    return lora.rank * sum(size for name, size in ends.items() if is_all or name.endswith(tuple(lora.target_modules)))
