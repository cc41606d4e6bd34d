"""Sampling with transformers that keeps its batch full: rows that have ended leave it, waiting prompts enter.

`generate` runs until the last row of a batch has ended, and copies the keys and values of all of them at each token.
Here it is called for some tokens at a time on one cache that goes from call to call and has room to grow; between two
calls, ended rows are cut out of the cache and waiting prompts are put in. Nothing is computed twice, and each token is
drawn by `generate` itself, so that the distribution is its own. Samples of one prompt share its prefill.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, GenerationConfig
from transformers.cache_utils import DynamicLayer

SEGMENT_TOKENS = 32
"""Tokens between two looks at which rows have ended; such a row idles for half as many on average."""
REFILL_SHARE = 0.25
"""Prompts enter when this share of the places is free: a prefill of a few costs more a row than one of many."""
_ROOM_TOKENS = 128
_ROWS_ON_CPU = 128
"""Larger batches fall out of the processor's cache."""
_FEWEST_ROWS, _MOST_ROWS = 8, 512
_CACHE_SHARE = 0.4
"""Of a GPU's memory beside weights, gradients and optimizer; cutting rows out needs a second copy of one layer."""

OnLanded = Callable[[Sequence[int], Sequence[list[int]]], None]
"""Called with the responses that have just ended, and their token ids."""


def can_continue(model: Any) -> bool:
    """Whether a model has a plain key-value cache with explicit positions."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    if "position_ids" not in inspect.signature(type(inner).forward).parameters:
        return False
    layers = DynamicCache(config=model.config.get_text_config(decoder=True)).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def count_rows(model: Any, *, max_tokens: int) -> int:
    """Return how many responses to sample at a time, each with its prompt up to `max_tokens` long.

    The same for the same model and device, whatever else is in memory: the samples depend on it.
    """
    if model.device.type != "cuda":
        return _ROWS_ON_CPU
    config = model.config.get_text_config(decoder=True)
    head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    # Keys may be float32 where autocast computes in bfloat16: a norm with float32 weights comes after the product.
    bytes_per_row = 8 * config.num_hidden_layers * heads * head_size * max_tokens
    trained = sum(weight.numel() * weight.element_size() for weight in model.parameters() if weight.requires_grad)
    held = 3 * trained + sum(weight.numel() * weight.element_size() for weight in model.parameters())
    free = torch.cuda.get_device_properties(model.device).total_memory - held
    return max(_FEWEST_ROWS, min(_MOST_ROWS, int(free * _CACHE_SHARE) // bytes_per_row))


@torch.no_grad()
def sample_responses(
    model: Any,
    prompts: Sequence[Sequence[int]],
    *,
    settings: GenerationConfig,
    max_response_tokens: int,
    end_ids: Collection[int],
    rows_at_once: int,
    on_landed: OnLanded | None = None,
) -> list[list[int]]:
    """Return a response to each prompt: token ids, up to and with the one that ended it.

    A model without a cache that can be cut by rows (`can_continue`) samples all of them in one batch.

    Args:
        model: a causal language model.
        prompts: token ids; equal ones that enter together are read once.
        settings: how a token is drawn; `max_new_tokens` is set here.
        max_response_tokens: where a response is cut.
        end_ids: tokens that end a response.
        rows_at_once: responses sampled at a time; bounds memory.
        on_landed: called between two segments.
    """
    if not can_continue(model):
        ids, mask = _pad_left(prompts, model.device, fill=settings.pad_token_id)
        drawn = _generate(model, ids, mask, settings, num_tokens=max_response_tokens)
        return [tokens[: _find_end(tokens, end_ids)] for tokens in drawn]
    responses: list[list[int]] = [[] for _ in prompts]
    # Neighbours of similar length share little padding, and samples of one prompt stay together.
    waiting = deque(sorted(range(len(prompts)), key=lambda row: (len(prompts[row]), row)))
    live: list[int] = []
    parts: list[_Part] = []
    while live or waiting:
        free = rows_at_once - len(live)
        if waiting and free >= REFILL_SHARE * rows_at_once:
            fresh = [waiting.popleft() for _ in range(min(len(waiting), free))]
            parts.append(_prefill(model, [prompts[row] for row in fresh]))
            live += fresh
        texts = [[*prompts[row], *responses[row]] for row in live]
        cache = _join(parts, width=max(map(len, texts)) - 1)
        num_tokens = min(SEGMENT_TOKENS, max_response_tokens - min(len(responses[row]) for row in live))
        ids, mask = _pad_left(texts, model.device, fill=settings.pad_token_id)
        drawn = _generate(model, ids, mask, settings, num_tokens=num_tokens, past_key_values=cache)
        for row, tokens in zip(live, drawn, strict=True):
            tokens = tokens[: max_response_tokens - len(responses[row])]
            responses[row] += tokens[: _find_end(tokens, end_ids)]
        landed = [row for row in live if responses[row][-1] in end_ids or len(responses[row]) == max_response_tokens]
        if landed and on_landed is not None:
            on_landed(landed, [responses[row] for row in landed])
        over = set(landed)
        places = [place for place, row in enumerate(live) if row not in over]
        live = [live[place] for place in places]
        parts = [_Part(cache, places)] if live else []
    return responses


def _find_end(tokens: Sequence[int], end_ids: Collection[int]) -> int | None:
    return next((index + 1 for index, token in enumerate(tokens) if token in end_ids), None)


class _GrowingLayer(DynamicLayer):
    """Keys and values of one layer at the front of a larger tensor, so that a token is written and nothing copied."""

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if not self.is_initialized or end > self._roomy[0].shape[-2]:
            old = (self.keys, self.values) if start else (None, None)
            self._roomy = [_grow(part, new, end) for part, new in zip(old, (key_states, value_states), strict=True)]
            self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True
        for roomy, new in zip(self._roomy, (key_states, value_states), strict=True):
            roomy[:, :, start:end] = new
        self.keys, self.values = (roomy[:, :, :end] for roomy in self._roomy)
        return self.keys, self.values


def _grow(old: torch.Tensor | None, new: torch.Tensor, end: int) -> torch.Tensor:
    rows, heads, _, size = new.shape
    roomy = new.new_zeros((rows, heads, end + _ROOM_TOKENS, size))
    if old is not None:
        roomy[:, :, : old.shape[-2]] = old
    return roomy


class _Cache(DynamicCache):
    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.growing = [_GrowingLayer() for _ in range(num_layers)]
        self.layers = list(self.growing)

    def take(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a layer's keys and values and drop them here, so that they are freed once copied."""
        layer = self.growing[index]
        self.growing[index] = self.layers[index] = _GrowingLayer()
        assert layer.keys is not None
        assert layer.values is not None
        return layer.keys, layer.values

    @property
    def num_rows(self) -> int:
        keys = self.growing[0].keys
        return 0 if keys is None else keys.shape[0]


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a cache that continue: for each of them its place there, some places more than once."""

    cache: _Cache
    places: Sequence[int]


def _prefill(model: Any, prompts: Sequence[Sequence[int]]) -> _Part:
    """Read prompts but for their last token, each once."""
    distinct = {tuple(prompt): None for prompt in prompts}
    place_of = {prompt: place for place, prompt in enumerate(distinct)}
    # One column more than needed where all prompts are one token long: there is no forward pass over nothing.
    ids, mask = _pad_left([prompt[:-1] for prompt in distinct], model.device, min_width=1)
    cache = _Cache(model.config.get_text_config(decoder=True).num_hidden_layers)
    keeps = {"logits_to_keep": 1} if model._supports_logits_to_keep() else {}
    model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(1) - 1).clamp(min=0),
        past_key_values=cache,
        use_cache=True,
        **keeps,
    )
    return _Part(cache, [place_of[tuple(prompt)] for prompt in prompts])


def _join(parts: Sequence[_Part], *, width: int) -> _Cache:
    """Return one cache of the rows of all parts, `width` tokens wide, right-aligned.

    Parts are wider by columns that are padding in the rows that continue, or narrower by padding that they lack.
    """
    first, *others = parts
    is_whole = list(first.places) == list(range(first.cache.num_rows))
    if not others and is_whole and first.cache.get_seq_length() == width:
        return first.cache
    joined = _Cache(len(first.cache.growing))
    places = [part.places for part in parts]
    for index, layer in enumerate(joined.growing):
        keys, values = zip(*(part.cache.take(index) for part in parts), strict=True)
        layer.update(_align(keys, places, width), _align(values, places, width))
    return joined


def _align(tensors: Sequence[torch.Tensor], places: Sequence[Sequence[int]], width: int) -> torch.Tensor:
    _, heads, _, size = tensors[0].shape
    aligned = tensors[0].new_zeros((sum(map(len, places)), heads, width, size))
    start = 0
    for tensor, rows in zip(tensors, places, strict=True):
        used = min(width, tensor.shape[-2])
        index = torch.tensor(rows, device=tensor.device)
        aligned[start : start + len(rows), :, width - used :] = tensor[:, :, tensor.shape[-2] - used :][index]
        start += len(rows)
    return aligned


def _generate(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, settings: GenerationConfig, *, num_tokens: int, **cache: Any
) -> list[list[int]]:
    """Draw tokens; what follows an end is padding. A cache lacks the last token of each text."""
    settings.max_new_tokens = num_tokens
    drawn = model.generate(input_ids=ids, attention_mask=mask, generation_config=settings, **cache)
    return drawn[:, ids.shape[1] :].tolist()


def _pad_left(
    rows: Sequence[Sequence[int]], device: torch.device, *, fill: int | None = 0, min_width: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(min_width, *map(len, rows))
    ids = torch.tensor([[fill or 0] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return ids, mask
