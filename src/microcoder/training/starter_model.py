"""Size and chat template of a model for a starter recipe, from local files, without network."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.errors import ConfigError
from microcoder.training.architectures import KNOWN, count_parameters
from microcoder.training.checkpoints import check_model_folder, model_folder

_BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)B(?![a-z])", re.IGNORECASE)
_HYBRID = re.compile(r"Qwen3-\d+(\.\d+)?B(-A\d+B)?", re.IGNORECASE)
"""Qwen3 of 2025-04 thinks unless told not to; the models of 2025-07 are either -Instruct or -Thinking."""
# Qwen3-1.7B, which models whose config.json is not here are scaled from.
_REFERENCE_PARAMETERS, _REFERENCE_LAYERS, _REFERENCE_HIDDEN, _REFERENCE_KV = 1.72e9, 28, 2048, 1024


@dataclass(frozen=True, slots=True)
class StarterModel:
    """The known properties of a model."""

    name: str
    """A folder or an id of the Hub, as it was given."""
    parameters: float
    num_layers: int
    hidden_size: int
    kv_size: int
    """Keys of one token in one layer: heads times their size."""
    max_context_tokens: int | None
    """None without a config.json."""
    is_hybrid: bool
    """It thinks before it answers unless `enable_thinking = false` is given."""
    has_chat_template: bool | None
    """None if unknown."""


def inspect_model(name: str) -> StarterModel:
    """Return a model's properties from its folder, the Hub's cache or its name.

    Raises:
        DataError: a folder that holds no model.
        ConfigError: its size is unknown.
    """
    folder = model_folder(name)
    if folder is not None:
        check_model_folder(folder)
    dims = _read_json(_find_file(name, folder, "config.json"))
    parameters = _count(name, dims)
    if parameters is None:
        raise ConfigError(
            f"the size of {name} is unknown: no folder here, not in the Hub's cache, no size such as 1.7B in its "
            f"name; type: hf download {name}, and try again"
        )
    scale = (parameters / _REFERENCE_PARAMETERS) ** (1 / 3)
    hidden = dims.get("hidden_size") or round(_REFERENCE_HIDDEN * scale)
    head_size = dims.get("head_dim") or hidden // (dims.get("num_attention_heads") or 16)
    return StarterModel(
        name,
        parameters,
        dims.get("num_hidden_layers") or round(_REFERENCE_LAYERS * scale),
        hidden,
        (dims["num_key_value_heads"] * head_size) if dims.get("num_key_value_heads") else _REFERENCE_KV,
        dims.get("max_position_embeddings"),
        *_read_template(name, folder),
    )


def _count(name: str, dims: Mapping[str, Any]) -> float | None:
    counted = count_parameters(KNOWN.get(name) or dims)
    if counted is None and (said := _BILLIONS.search(name.replace("_", "-").rpartition("/")[2])):
        return float(said[1]) * 1e9
    return counted


def _read_template(name: str, folder: Path | None) -> tuple[bool, bool | None]:
    """Return whether the chat template can switch thinking off, and whether there is one."""
    file = _find_file(name, folder, "chat_template.jinja")
    settings = _find_file(name, folder, "tokenizer_config.json")
    if file is not None:
        return "enable_thinking" in file.read_text(encoding="utf-8"), True
    if settings is not None:
        template = _read_json(settings).get("chat_template")
        return "enable_thinking" in json.dumps(template), template is not None
    return _HYBRID.fullmatch(name.rpartition("/")[2]) is not None, None


def _find_file(name: str, folder: Path | None, file: str) -> Path | None:
    if folder is not None:
        return folder / file if (folder / file).is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(name, file)
    except HFValidationError as error:
        raise ConfigError(f"model {name!r} is neither a folder here nor an id of the Hub ({error})") from None
    return Path(found) if isinstance(found, str) else None


def _read_json(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read ({error}); download the model again") from None
    return value if isinstance(value, dict) else {}
