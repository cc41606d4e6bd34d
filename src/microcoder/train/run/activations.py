"""What a forward and backward pass holds in memory, counted on the real architecture without allocating any of it.

The model is built from its config on fake tensors: torch runs every operation for its shapes alone, and each storage is
counted from its making to its end. Layers are alike, so the memory of any number follows from that of two and three.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, astuple, dataclass
from functools import cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_TILE_ROWS, _TILE_COLUMNS = 4096, 32768
"""Of TRL's fused head: logits are made for so many tokens and so much of the vocabulary at a time."""
_CPU_TILE_COPIES = 7
"""Without Triton the head folds a tile by torch: float32 tiles that are there at a time beside it, as measured."""


@dataclass(frozen=True, slots=True)
class PassMemory:
    """Bytes of one micro batch, beside weights and their gradients; each linear in the number of layers."""

    parameters: int
    trained_parameters: int
    embedding_parameters: int
    """Of those, in the embeddings and the head."""
    kept: int
    """Between forward and backward: what backward needs (with checkpointing, the input of each layer)."""
    forward: int
    head: int
    backward: int

    @property
    def peak(self) -> int:
        """At most, `kept` included."""
        return max(self.forward, self.head, self.backward)


@dataclass(frozen=True, slots=True)
class PassSettings:
    """What decides the memory of a pass, besides the architecture."""

    rows: int
    prompt_tokens: int
    response_tokens: int
    weight_dtype: str
    compute_dtype: str
    gradient_checkpointing: bool
    lora: Mapping[str, Any] | None = None
    """As `peft.LoraConfig` takes it; None trains all weights."""
    has_triton: bool = True
    """A GPU: TRL's head then scores a tile in place."""


def count_pass(architecture: Mapping[str, Any], settings: PassSettings) -> PassMemory:
    """Count a forward and backward pass of a causal language model by its config.json."""
    num_layers = int(architecture["num_hidden_layers"])
    is_uniform = len(set(architecture.get("layer_types") or [None])) == 1
    said = json.dumps(dict(architecture)), json.dumps(asdict(settings))
    if num_layers <= 3 or not is_uniform:
        return _count_once(*said, num_layers)
    two, three = (astuple(_count_once(*said, number)) for number in (2, 3))
    return PassMemory(*(small + (num_layers - 2) * (large - small) for small, large in zip(two, three, strict=True)))


@cache
def _count_once(architecture: str, settings: str, num_layers: int) -> PassMemory:
    """Count what JSON says: fitting a recipe to a GPU asks for the same passes again and again."""
    return _count(json.loads(architecture), num_layers, PassSettings(**json.loads(settings)))


def _count(architecture: Mapping[str, Any], num_layers: int, settings: PassSettings) -> PassMemory:
    whole = _build(architecture, num_layers, settings)
    with FakeTensorMode(allow_non_fake_inputs=True):
        _make_fake(whole)
        model = whole.get_base_model() if settings.lora is not None else whole
        if settings.gradient_checkpointing:
            model.gradient_checkpointing_enable()
            if settings.lora is not None:
                model.enable_input_require_grads()
        whole.train()
        weights = list(whole.parameters())
        trained = [weight for weight in weights if weight.requires_grad]
        # Gradients are there from the micro batch before.
        for weight in trained:
            weight.grad = torch.zeros_like(weight)
        ids = torch.zeros(settings.rows, settings.prompt_tokens + settings.response_tokens, dtype=torch.long)
        tracker = StorageCounter([*weights, *(weight.grad for weight in trained)])
        computes_low = settings.compute_dtype == "bfloat16"
        with tracker:
            with torch.autocast("cpu", dtype=torch.bfloat16) if computes_low else nullcontext():
                # The name differs between models: TRL takes the part without the head by it as well.
                backbone = getattr(model, model.base_model_prefix)
                output = backbone(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
            hidden = output.last_hidden_state
            forward, kept = tracker.peak, tracker.live
            tracker.peak = kept
            head_weight = model.get_output_embeddings().weight
            head = kept + _head_bytes(head_weight, hidden, settings)
            hidden.backward(torch.zeros_like(hidden))
        # The head's gradient in float32 lives until that of the embeddings, the same weights where tied, is added.
        head_gradient = head_weight.numel() * 4 if head_weight.requires_grad else 0
        return PassMemory(
            parameters=sum(weight.numel() for weight in weights),
            trained_parameters=sum(weight.numel() for weight in trained),
            embedding_parameters=sum(weight.numel() for weight in {model.get_input_embeddings().weight, head_weight}),
            kept=kept,
            forward=forward,
            head=head,
            backward=tracker.peak + head_gradient,
        )


def _head_bytes(weight: torch.Tensor, hidden: torch.Tensor, settings: PassSettings) -> int:
    """What TRL's fused head adds: the logits of a tile, and gradients of hidden states and weights in float32."""
    size = 2 if settings.compute_dtype == "bfloat16" else 4
    rows = settings.rows * settings.response_tokens if settings.has_triton else hidden.shape[0] * hidden.shape[1]
    width, vocabulary = hidden.shape[2], weight.shape[0]
    tile = min(rows, _TILE_ROWS) * min(vocabulary, _TILE_COLUMNS) * size
    if not settings.has_triton:
        tile += _CPU_TILE_COPIES * min(rows, _TILE_ROWS) * min(vocabulary, _TILE_COLUMNS) * 4
    gradients = rows * width * 4 + (weight.numel() * 4 if weight.requires_grad else 0)
    return rows * width * (size + hidden.element_size()) + tile + gradients


def _build(architecture: Mapping[str, Any], num_layers: int, settings: PassSettings) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    values = {name: value for name, value in architecture.items() if name not in ("model_type", "layer_types")}
    kinds = architecture.get("layer_types")
    kept = {"layer_types": list(kinds)[:num_layers]} if kinds else {}
    config = AutoConfig.for_model(architecture["model_type"], **{**values, **kept, "num_hidden_layers": num_layers})
    # On the meta device nothing is allocated; peft moves its adapters about, which fake tensors do not allow.
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, settings.weight_dtype))
        if settings.lora is not None:
            from peft import LoraConfig, get_peft_model

            return get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings.lora), low_cpu_mem_usage=True)
    return model


def _make_fake(model: Any) -> None:
    """Put a fake tensor of this device in the place of each weight and buffer; tied ones stay tied."""
    made: dict[int, torch.nn.Parameter] = {}
    adapted = any(not weight.requires_grad for weight in model.parameters())
    for module in model.modules():
        for name, weight in list(module._parameters.items()):
            if weight is None:
                continue
            if id(weight) not in made:
                # peft keeps adapters in float32.
                dtype = torch.float32 if adapted and weight.requires_grad else weight.dtype
                empty = torch.empty(weight.shape, dtype=dtype)
                made[id(weight)] = torch.nn.Parameter(empty, requires_grad=weight.requires_grad)
            module._parameters[name] = made[id(weight)]
        for name, buffer in list(module._buffers.items()):
            if buffer is not None:
                module._buffers[name] = torch.empty(buffer.shape, dtype=buffer.dtype)


class StorageCounter(TorchDispatchMode):
    """Counts the bytes of storages that operations make, until they are gone."""

    def __init__(self, apart: Iterable[torch.Tensor | None]) -> None:
        """Count nothing for tensors that are there already, `apart`, whose views operations make too."""
        super().__init__()
        self.live = self.peak = 0
        self._sizes = {tensor.untyped_storage()._cdata: 0 for tensor in apart if tensor is not None}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count what it made."""
        result = func(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            if isinstance(value, torch.Tensor):
                storage = value.untyped_storage()
                key = storage._cdata
                if key not in self._sizes:
                    self._sizes[key] = storage.nbytes()
                    self.live += storage.nbytes()
                    self.peak = max(self.peak, self.live)
                    weakref.finalize(storage, self._drop, key)
        return result

    def _drop(self, key: int) -> None:
        self.live -= self._sizes.pop(key, 0)
