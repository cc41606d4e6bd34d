"""The dry run's figures of memory: the formula against the storages of a real pass."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, AutoModelForCausalLM

from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import HuggingFaceModel, LoraAdapter, TrainConfig
from microcoder.train.run.estimate import KNOWN, MemoryTable, PassMemory, count_memory, count_parameters, count_pass
from microcoder.train.run.failures import how_to_shrink

ROOT = Path(__file__).parents[2]
SMALL = {
    "model_type": "qwen3",
    "hidden_size": 64,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 160,
    "vocab_size": 500,
    "tie_word_embeddings": True,
}


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


def count(architecture: dict[str, Any] = SMALL, **changes: Any) -> PassMemory:
    rows, response_tokens = changes.pop("rows", 3), changes.pop("response_tokens", 44)
    model = HuggingFaceModel(kind="hugging_face", path="small", compute_dtype="float32", **changes)
    counted = count_pass(architecture, model, rows=rows, prompt_tokens=20, response_tokens=response_tokens)
    assert counted is not None
    return counted


@pytest.mark.parametrize("checkpointing", [True, False])
def test_the_formula_says_what_a_real_pass_holds(checkpointing: bool) -> None:
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**SMALL))
    if checkpointing:
        model.gradient_checkpointing_enable()
    model.train()
    weights = list(model.parameters())
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    ids = torch.zeros(3, 64, dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[0, :5] = 0  # Without padding transformers makes no mask of it.
    tracker = StorageCounter([*weights, *(weight.grad for weight in weights)])
    with tracker:
        hidden = model.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        kept = tracker.live
        hidden.backward(torch.zeros_like(hidden))
    counted = count(gradient_checkpointing=checkpointing)
    assert counted.parameters == sum(weight.numel() for weight in weights) == count_parameters(SMALL)
    assert counted.kept == pytest.approx(kept, rel=0.15)
    assert tracker.peak <= counted.peak


def test_more_rows_tokens_and_logits_take_more_and_savings_less() -> None:
    base = count()
    assert count(rows=6).kept == pytest.approx(2 * base.kept, rel=0.01)
    assert count(response_tokens=108).kept > 1.8 * base.kept
    assert count(gradient_checkpointing=False).kept > 3 * base.kept
    adapted = count(lora=LoraAdapter(rank=4))
    assert adapted.trained_parameters == 5 * 4 * (2 * (64 + 64) + 2 * (64 + 32) + 3 * (64 + 160))
    assert count(lora=LoraAdapter(rank=4, target_modules=("q_proj",))).trained_parameters == 5 * 4 * 128
    assert count({**SMALL, "vocab_size": 50_000}).peak > base.peak
    assert count_parameters({**SMALL, "num_experts": 8}) is None


def test_known_shapes_have_the_parameters_of_their_model_cards() -> None:
    for name, billions in (("Qwen/Qwen3-1.7B", 1.72), ("Qwen/Qwen3-8B", 8.19), ("Qwen/Qwen3-4B", 4.02)):
        counted = count(dict(KNOWN[name]))
        assert counted.parameters == count_parameters(KNOWN[name])
        assert counted.parameters == pytest.approx(billions * 1e9, rel=0.005)


def on_h100(config: TrainConfig, **options: int) -> MemoryTable:
    table = count_memory(config, device_memory_gib=79.6, **options)
    assert table is not None
    return table


def test_parts_are_held_together_or_in_turns_and_a_recipe_that_does_not_fit_says_what_saves_memory() -> None:
    recipe = ROOT / "recipes/models/qwen3-4b-4k.toml"
    awake, asleep = (
        on_h100(load_config(TrainConfig, [recipe], {"rollout.vllm.enable_sleep_mode": sleeps}))
        for sleeps in ("false", "true")
    )
    assert awake.parts["weights"] == pytest.approx(4.02e9 * 4 / 2**30, rel=0.005)
    assert awake.total == pytest.approx(sum(awake.parts.values()))
    # While weights are updated, vLLM keeps its graphs; while it samples, there are no gradients and no activations.
    assert asleep.total == pytest.approx(awake.total - 0.3 * 79.6 + asleep.parts["vLLM, asleep"])
    assert asleep.cached_responses == awake.cached_responses
    assert not awake.fits
    assert on_h100(load_config(TrainConfig, [recipe]), num_shards=8).fits
    plain = load_config(TrainConfig, [recipe], {"rollout.backend": "transformers"})
    assert on_h100(plain).total > 600, "keys and values of a whole step at a time"
    large = load_config(TrainConfig, [ROOT / "recipes/models/r1-qwen3-8b-16k.toml"])
    assert not on_h100(large).fits
    assert how_to_shrink(plain).startswith('use rollout.backend = "vllm"')
    assert "rollout.vllm.enable_sleep_mode = true" in how_to_shrink(load_config(TrainConfig, [recipe]))
    assert "train adapters ([model.lora])" in how_to_shrink(large)
