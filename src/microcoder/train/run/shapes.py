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
from typing import Any

from microcoder.judge.core.errors import ConfigError
from microcoder.train.recipe.recipe import (
    MICRO_HEADS,
    MICRO_INTERMEDIATE_SIZE,
    WEIGHT_BYTES,
    HuggingFaceModel,
    LoraAdapter,
    MicroModel,
)
from microcoder.train.run.checkpoints import model_folder

Architecture = Mapping[str, Any]
"""A config.json, as far as it decides shapes."""
_DIMENSIONS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size")
_QWEN3 = {"model_type": "qwen3", "vocab_size": 151936, "head_dim": 128}
# From the models' config.json on the hub, so that an estimate needs no network.
KNOWN: Mapping[str, Architecture] = {
    name: {**_QWEN3, **dict(zip(_DIMENSIONS, dimensions, strict=True)), "tie_word_embeddings": dimensions[0] < 4096}
    for name, dimensions in {
        "Qwen/Qwen3-0.6B": (1024, 28, 16, 8, 3072),
        "Qwen/Qwen3-1.7B": (2048, 28, 16, 8, 6144),
        "Qwen/Qwen3-4B": (2560, 36, 32, 8, 9728),
        "Qwen/Qwen3-4B-Instruct-2507": (2560, 36, 32, 8, 9728),
        "Qwen/Qwen3-8B": (4096, 36, 32, 8, 12288),
        "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": (4096, 36, 32, 8, 12288),
    }.items()
}


def find_architecture(model: MicroModel | HuggingFaceModel) -> Architecture | None:
    """Return the shape of a recipe's model, from its files or the table; None if neither is known here."""
    if isinstance(model, MicroModel):
        dims = model.warm_start
        values = (dims.hidden_size, dims.num_layers, MICRO_HEADS, MICRO_HEADS, MICRO_INTERMEDIATE_SIZE)
        return {
            "model_type": "qwen3",
            **dict(zip(_DIMENSIONS, values, strict=True)),
            "vocab_size": dims.vocab_size,
            "tie_word_embeddings": True,
        }
    if model.path in KNOWN:
        return KNOWN[model.path]
    found = read_json(find_file(model.path, "config.json"))
    return found if "num_hidden_layers" in found else None


def find_file(model: str, name: str) -> Path | None:
    """Return a file of a model's folder, or of a hub id as far as it was downloaded; None if it is not here."""
    if (folder := model_folder(model)) is not None:
        return folder / name if (folder / name).is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(model, name)
    except HFValidationError as error:
        raise ConfigError(f"model {model!r} is neither a folder here nor an id of the Hub ({error})") from None
    return Path(found) if isinstance(found, str) else None


def read_json(path: Path | None) -> dict[str, Any]:
    """Return a model's file; empty without one."""
    if path is None:
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read ({error}); download the model again") from None
    return value if isinstance(value, dict) else {}


def count_model(model: MicroModel | HuggingFaceModel) -> int | None:
    """Return how many parameters a recipe's model has; None if its shape is not known here."""
    architecture = find_architecture(model)
    return None if architecture is None else count_parameters(architecture)


def count_parameters(architecture: Architecture) -> int | None:
    """Return the parameters of a decoder like Llama, Qwen2 or Qwen3; None for experts or an unknown dimension."""
    if architecture.get("num_experts") or architecture.get("num_local_experts"):
        return None
    try:
        hidden, layers, heads, kv_heads, intermediate = (architecture[name] for name in _DIMENSIONS)
        size = head_size(architecture)
        attention = hidden * size * (2 * heads + 2 * kv_heads)
        biases = {"qwen2": size * (heads + 2 * kv_heads), "qwen3": 2 * size}
        attention += biases.get(architecture.get("model_type", ""), 0)
        embeddings = 1 if architecture.get("tie_word_embeddings", False) else 2
        per_layer = attention + 3 * hidden * intermediate + 2 * hidden
        return layers * per_layer + embeddings * architecture["vocab_size"] * hidden + hidden
    except (KeyError, TypeError):
        return None


def head_size(architecture: Architecture) -> int:
    """Return the size of an attention head."""
    return architecture.get("head_dim") or architecture["hidden_size"] // architecture["num_attention_heads"]


_TILE_ROWS, _TILE_COLUMNS = 4096, 32768
"""Tile of TRL's fused head: logits are made for so many tokens and so much of the vocabulary at a time."""
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
    peak: int
    """Most bytes at a time, `kept` included."""


def count_pass(
    architecture: Architecture,
    model: HuggingFaceModel,
    *,
    rows: int,
    prompt_tokens: int,
    response_tokens: int,
) -> PassMemory | None:
    """Count a forward and backward pass of a decoder like Qwen's; None if a dimension is not said.

    Args:
        architecture: its shape.
        model: precision, adapters and checkpointing.
        rows: rollouts of the pass.
        prompt_tokens: of each rollout.
        response_tokens: of each rollout.
    """
    parameters = count_parameters(architecture)
    if parameters is None:
        return None
    hidden, layers, heads, kv_heads, mlp = (int(architecture[name]) for name in _DIMENSIONS)
    queries, keys = head_size(architecture) * heads, head_size(architecture) * kv_heads
    stored, product = WEIGHT_BYTES[model.dtype], WEIGHT_BYTES[model.compute_dtype]
    vocabulary, trains_all = int(architecture["vocab_size"]), model.lora is None
    embeddings = vocabulary * hidden * (1 if architecture.get("tie_word_embeddings") else 2)
    length = prompt_tokens + response_tokens
    tokens = rows * length

    def of_layer(coefficients: Mapping[tuple[int, int, bool], tuple[float, float, float]]) -> float:
        of_hidden, of_mlp, of_heads = coefficients[stored, product, trains_all]
        return tokens * (of_hidden * hidden + of_mlp * mlp + of_heads * (queries + keys))

    # The ends of the stack: embeddings, the last norm; with checkpointing the mask is counted apart from the layers.
    kept = tokens * hidden * (2 * stored + 4.0)
    if model.gradient_checkpointing:
        kept += layers * tokens * hidden * stored + rows * length**2
        worked = of_layer(_RECOMPUTED)
    else:
        kept += layers * of_layer(_KEPT)
        worked = tokens * max(20 * hidden, 2 * product * mlp)
    forward = tokens * product * mlp
    if product < stored and trains_all:
        forward += product * parameters  # autocast keeps its casts of weights until the pass has ended
    elif product < stored:
        casts = product * (parameters - embeddings)  # of frozen weights it keeps none, but backward needs them
        worked, kept = (worked + casts / layers, kept) if model.gradient_checkpointing else (worked, kept + casts)
    head_gradient = 4 * vocabulary * hidden if trains_all else 0
    scored = rows * response_tokens
    tile = product * min(scored, _TILE_ROWS) * min(vocabulary, _TILE_COLUMNS)
    head = tile + scored * hidden * (product + stored + 4) + head_gradient
    adapters = 0 if model.lora is None else layers * _count_adapters(model.lora, hidden, mlp, queries, keys)
    return PassMemory(
        parameters=parameters + adapters,
        trained_parameters=parameters if trains_all else adapters,
        embedding_parameters=embeddings,
        kept=round(kept),
        peak=round(kept + max(forward, head, worked + head_gradient)),
    )


def _count_adapters(lora: LoraAdapter, hidden: int, mlp: int, queries: int, keys: int) -> int:
    """Return the parameters of one layer's adapters."""
    ends = {"q_proj": hidden + queries, "k_proj": hidden + keys, "v_proj": hidden + keys, "o_proj": queries + hidden}
    ends |= dict.fromkeys(("gate_proj", "up_proj", "down_proj"), hidden + mlp)
    is_all = lora.target_modules == "all-linear"
    return lora.rank * sum(size for name, size in ends.items() if is_all or name.endswith(tuple(lora.target_modules)))
