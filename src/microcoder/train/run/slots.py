"""Keys and values of responses that are being sampled, each response in a slot of its own.

transformers copies its cache for every token, and repeats keys for each head that shares them. Here
both stay where they were written. A slot is free as soon as its response has ended, and a prompt
that waits is read into it. Responses to one prompt share its reading.

A slot holds its response's tokens from its first column on, without padding. So positions are those
of a response that is sampled alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, Cache, DynamicCache, PreTrainedModel
from transformers.cache_utils import CacheLayerMixin, DynamicLayer

ATTENTION = "microcoder_slots"
"""Our name for `attend` among transformers' attention functions."""
TOKENS_PER_READING = 2048
"""Most tokens of prompts, padding included, that are read in one pass."""
_FIRST_COLUMNS = 64
"""Columns with which slots begin; they grow by half when these are full."""
_PROBE_TOKENS = 24
"""Tokens that `find_obstacle` reads in both ways."""
_MOST_DIFFERENCE = {torch.float32: 0.01, torch.bfloat16: 0.25}
"""Largest difference between both ways, in standard deviations of the logits."""


class _Reading(NamedTuple):
    """A pass that reads prompts."""

    targets: list[tuple[int, int, int]]
    """A row of the pass, a slot that it is for, and its tokens without padding."""


class _Step(NamedTuple):
    """A pass that reads a token in each taken slot."""

    rows: torch.Tensor
    positions: torch.Tensor
    """The column of each slot's new token."""
    width: int
    """Columns up to that of the longest."""


class _SlotLayer(CacheLayerMixin):
    """Keys and values of one layer: (slots, heads, columns, size of a head)."""

    is_sliding = False

    def __init__(self, slots: "Slots") -> None:
        super().__init__()
        self._slots = slots

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Make room, in the shapes and the number format of the first keys and values."""
        self.keys = self._make_room(key_states)
        self.values = self._make_room(value_states)
        self.is_initialized = True

    def _make_room(self, states: torch.Tensor) -> torch.Tensor:
        _, heads, _, size = states.shape
        # Zeros: what attention masks must still be a number.
        shape = (self._slots.number, heads, self._slots.columns, size)
        dtype = states.dtype
        device_type = states.device.type
        if torch.is_autocast_enabled(device_type):
            # Attention would convert all of them with each token.
            dtype = torch.get_autocast_dtype(device_type)
        return states.new_zeros(shape, dtype=dtype)

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        *_: object,
        **__: object,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write keys and values of a pass; return those that its tokens look at."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None
        assert self.values is not None
        plan = self._slots.plan
        if isinstance(plan, _Reading):
            for row, slot, length in plan.targets:
                self.keys[slot, :, :length] = key_states[row, :, :length]
                self.values[slot, :, :length] = value_states[row, :, :length]
            # Prompts look at themselves only.
            return key_states, value_states
        self.keys[plan.rows, :, plan.positions] = key_states[:, :, 0].to(self.keys.dtype)
        self.values[plan.rows, :, plan.positions] = value_states[:, :, 0].to(self.values.dtype)
        number = len(plan.rows)
        keys = self.keys[:number, :, : plan.width]
        values = self.values[:number, :, : plan.width]
        return keys, values

    def widen(self, columns: int) -> None:
        """Take up to so many tokens a slot."""
        if self.keys is None or self.values is None:
            return
        added = (0, 0, 0, columns - self.keys.shape[2])
        self.keys = torch.nn.functional.pad(self.keys, added)
        self.values = torch.nn.functional.pad(self.values, added)

    def copy_slot(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` columns of a slot into another."""
        if self.keys is None or self.values is None:
            return
        self.keys[target, :, :length] = self.keys[source, :, :length]
        self.values[target, :, :length] = self.values[source, :, :length]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return what transformers would make a mask for; ours is made already."""
        return query_length, 0

    def get_seq_length(self) -> int:
        """Return 0: positions are passed, and none is counted from here."""
        return 0

    def get_max_cache_shape(self) -> int:
        """Return -1: there is no bound."""
        return -1


class Slots(Cache):
    """Keys and values of up to `number` responses; the first `len(lengths)` slots are taken."""

    def __init__(self, model: PreTrainedModel, number: int) -> None:
        config = model.config.get_text_config()
        super().__init__(layers=[_SlotLayer(self) for _ in range(config.num_hidden_layers)])
        self.number = number
        self.columns = _FIRST_COLUMNS
        self.lengths: list[int] = []
        """Tokens that each taken slot holds."""
        self._model = model
        self._device = model.device
        self.plan: _Reading | _Step = _Reading([])
        """Where the layers write what the next pass gives."""

    def read_prompts(self, prompts: Sequence[Sequence[int]]) -> None:
        """Read prompts into the next free slots; equal ones are read once."""
        first = len(self.lengths)
        slots_of: dict[tuple[int, ...], list[int]] = {}
        for number, prompt in enumerate(prompts):
            slots_of.setdefault(tuple(prompt), []).append(first + number)
            self.lengths.append(len(prompt))
        self._widen(max(self.lengths))
        # Long ones first, so that those of like length share a pass.
        distinct = sorted(slots_of, key=len, reverse=True)
        for batch in _cut(distinct):
            self._read_batch(batch, slots_of)

    def _read_batch(
        self,
        batch: Sequence[tuple[int, ...]],
        slots_of: dict[tuple[int, ...], list[int]],
    ) -> None:
        width = len(batch[0])
        if width == 0:
            return
        targets = []
        rows = []
        for row, prompt in enumerate(batch):
            # Padding is behind the tokens: none of them looks at it.
            rows.append([*prompt, *[0] * (width - len(prompt))])
            targets.extend((row, slot, len(prompt)) for slot in slots_of[prompt])
        self.plan = _Reading(targets)
        positions = torch.arange(width, device=self._device).expand(len(batch), width)
        self._run(torch.tensor(rows, device=self._device), positions, mask=None)

    def read_tokens(self, tokens: Sequence[int]) -> torch.Tensor:
        """Read the next token of each taken slot; return the logits behind it (slots, words)."""
        number = len(tokens)
        assert number == len(self.lengths)
        self._widen(max(self.lengths) + 1)
        positions = torch.tensor(self.lengths, device=self._device)
        self.lengths = [length + 1 for length in self.lengths]
        width = max(self.lengths)
        self.plan = _Step(torch.arange(number, device=self._device), positions, width)
        columns = torch.arange(width, device=self._device)
        mask = columns[None, :] <= positions[:, None]
        ids = torch.tensor(tokens, device=self._device)
        logits = self._run(
            ids[:, None],
            positions[:, None],
            mask=mask[:, None, None, :],
        )
        return logits[:, -1]

    def free(self, slot: int) -> None:
        """Free a slot: the last taken one moves into it."""
        last = len(self.lengths) - 1
        if slot != last:
            self._copy(last, slot, self.lengths[last])
            self.lengths[slot] = self.lengths[last]
        self.lengths.pop()

    def take_copy(self, source: int, length: int) -> None:
        """Take the next free slot, with the first `length` tokens of another."""
        self.lengths.append(length)
        self._copy(source, len(self.lengths) - 1, length)

    def _run(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        *,
        mask: torch.Tensor | None,
    ) -> torch.Tensor:
        with torch.inference_mode():
            return self._model(
                input_ids=ids,
                position_ids=positions,
                attention_mask=mask,
                past_key_values=self,
                use_cache=True,
                logits_to_keep=1,
            ).logits

    def _widen(self, columns: int) -> None:
        if columns <= self.columns:
            return
        self.columns = max(columns, self.columns * 3 // 2)
        with torch.inference_mode():
            for layer in self._own_layers():
                layer.widen(self.columns)

    def _copy(self, source: int, target: int, length: int) -> None:
        with torch.inference_mode():
            for layer in self._own_layers():
                layer.copy_slot(source, target, length)

    def _own_layers(self) -> Iterator[_SlotLayer]:
        for layer in self.layers:
            assert isinstance(layer, _SlotLayer)
            yield layer


def _cut(prompts: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Cut prompts, the longest first, into batches of one pass each."""
    batch: list[tuple[int, ...]] = []
    for prompt in prompts:
        if batch and (len(batch) + 1) * len(batch[0]) > TOKENS_PER_READING:
            yield batch
            batch = []
        batch.append(prompt)
    if batch:
        yield batch


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **options: object,
) -> tuple[torch.Tensor, None]:
    """Attend as transformers' functions do, without a copy of keys that several heads share.

    Shapes: `query` (rows, heads, tokens, size), `key` and `value` (rows, fewer heads, columns,
    size), the result (rows, tokens, heads, size).
    """
    for name in ("softcap", "sliding_window", "s_aux", "position_bias"):
        if options.get(name) is not None:
            raise NotImplementedError(f"attention with {name}")
    rows, heads, tokens, size = query.shape
    if tokens > 1:
        out = scaled_dot_product_attention(
            query,
            key,
            value,
            is_causal=True,
            scale=scaling,
            enable_gqa=heads > key.shape[1],
        )
        return out.transpose(1, 2).contiguous(), None
    # Heads with the same keys look at them together, like several tokens of one head.
    shared = query.reshape(rows, key.shape[1], heads // key.shape[1], size)
    out = scaled_dot_product_attention(
        shared,
        key,
        value,
        attn_mask=attention_mask,
        scale=scaling,
    )
    return out.reshape(rows, 1, heads, -1), None


AttentionInterface.register(ATTENTION, attend)


@contextmanager
def attending_in_slots(model: PreTrainedModel) -> Iterator[None]:
    """Within the body, the model's layers attend by `attend`."""
    config = model.config.get_text_config()
    before = config._attn_implementation
    config._attn_implementation = ATTENTION
    try:
        yield
    finally:
        config._attn_implementation = before


def find_obstacle(model: PreTrainedModel) -> str | None:
    """Return why a model cannot be sampled in slots, None if it can.

    It can if it reads some tokens in slots as it reads them at once.
    """
    was_training = model.training
    # Without dropout.
    model.train(False)
    try:
        return _find_obstacle(model)
    finally:
        model.train(was_training)


def _find_obstacle(model: PreTrainedModel) -> str | None:
    kind = model.config.model_type
    if not getattr(model, "_supports_attention_backend", False):
        return f"{kind} has an attention of its own"
    config = model.config.get_text_config()
    layers = DynamicCache(config=config).layers
    if any(type(layer) is not DynamicLayer for layer in layers):
        return f"{kind} has layers that keep no keys, or those of a window only"
    tokens = []
    for position in range(_PROBE_TOKENS):
        # Any will do, as long as they differ.
        tokens.append((7 * position + 3) % config.vocab_size)
    half = _PROBE_TOKENS // 2
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([tokens], device=model.device)).logits[0].float()
    try:
        with attending_in_slots(model):
            slots = Slots(model, 2)
            # Two lengths, so that padding and free columns are there.
            slots.read_prompts([tokens[:half], tokens[: half - 3]])
            found = []
            for position in range(half, _PROBE_TOKENS):
                newest = [tokens[position], tokens[position - 3]]
                found.append(slots.read_tokens(newest).float())
    except Exception as error:  # models of others refuse in many ways
        return f"{kind} takes no such cache ({type(error).__name__})"
    read = torch.stack(found)
    most = float((read[:, 0] - expected[half:]).abs().max())
    # The shorter one is three tokens behind.
    behind = expected[half - 3 : -3]
    most = max(most, float((read[:, 1] - behind).abs().max()))
    if most > _MOST_DIFFERENCE.get(model.dtype, 0.25) * float(expected.std()):
        return f"{kind} gives other logits there, by up to {most:.2g}"
    return None
