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
from microcoder.train.run.estimate import advise, count_memory
from microcoder.train.run.shapes import KNOWN, PassMemory, count_model, count_parameters, count_pass

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


@pytest.mark.parametrize(
    ("name", "billions"),
    [("Qwen/Qwen3-1.7B", 1.72), ("Qwen/Qwen3-8B", 8.19), ("Qwen/Qwen3-4B", 4.02)],
)
def test_known_shapes_have_the_parameters_of_their_model_cards(name: str, billions: float) -> None:
    counted = count(dict(KNOWN[name]))
    assert counted.parameters == count_parameters(KNOWN[name])
    assert counted.parameters == pytest.approx(billions * 1e9, rel=0.005)


def test_a_size_alone_makes_a_shape() -> None:
    for name, billions in (("me/own-14B", 14), ("me/Qwen2.5-Coder-1.5B-Instruct", 1.5)):
        parameters = count_model(HuggingFaceModel(kind="hugging_face", path=name))
        assert parameters == pytest.approx(billions * 1e9, rel=0.15)
    assert count_model(HuggingFaceModel(kind="hugging_face", path="me/own")) is None


def test_a_recipe_that_cannot_fit_gets_advice() -> None:
    recipe = ROOT / "recipes/models/qwen3-4b-4k.toml"
    config = load_config(TrainConfig, [recipe])
    table = count_memory(config, device_memory_gib=79.6)
    assert table is not None
    assert table.parts["weights"] == pytest.approx(4.02e9 * 4 / 2**30, rel=0.005)
    assert table.fits is False
    advice = advise(config, table)
    assert advice.startswith("try --")
    words = advice.removeprefix("try ").split()
    changes = {key.removeprefix("--"): value for key, value in zip(words[::2], words[1::2], strict=True)}
    changed = count_memory(load_config(TrainConfig, [recipe], changes), device_memory_gib=79.6)
    assert changed is not None
    assert changed.fits
    sharded = count_memory(config, device_memory_gib=79.6, num_shards=8)
    assert sharded is not None
    assert sharded.fits
