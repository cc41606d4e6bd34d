"""What the dry run says of memory: the count on fake tensors against the same pass on real ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.activations import PassMemory, PassSettings, StorageCounter, count_pass
from microcoder.train.run.estimate import KNOWN, advise, count_memory, count_parameters

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


def settings(**changes: object) -> PassSettings:
    values = {
        "rows": 3,
        "prompt_tokens": 20,
        "response_tokens": 44,
        "weight_dtype": "float32",
        "compute_dtype": "float32",
        "gradient_checkpointing": True,
    }
    return PassSettings(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("checkpointing", [True, False])
def test_fake_tensors_hold_what_real_ones_hold(checkpointing: bool) -> None:
    """A real pass over five layers, its storages counted, against two and three layers of fake ones."""
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**SMALL))
    if checkpointing:
        model.gradient_checkpointing_enable()
    model.train()
    weights = list(model.parameters())
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    ids = torch.zeros(3, 64, dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[0, :5] = 0  # without padding transformers makes no mask of it, which fake tensors cannot tell
    tracker = StorageCounter([*weights, *(weight.grad for weight in weights)])
    with tracker:
        hidden = model.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        kept = tracker.live
        hidden.backward(torch.zeros_like(hidden))
    counted = count_pass(SMALL, settings(gradient_checkpointing=checkpointing))
    assert counted.parameters == sum(weight.numel() for weight in weights) == count_parameters(SMALL)
    assert counted.kept == pytest.approx(kept, rel=0.02)
    assert tracker.peak <= counted.peak


def test_more_rows_tokens_and_logits_take_more_and_savings_less() -> None:
    base = count_pass(SMALL, settings())
    doubled = count_pass(SMALL, settings(rows=6))
    assert 1.8 * base.kept < doubled.kept < 2.2 * base.kept
    assert count_pass(SMALL, settings(response_tokens=108)).kept > 1.8 * base.kept
    assert count_pass(SMALL, settings(gradient_checkpointing=False)).kept > 3 * base.kept
    adapted = count_pass(SMALL, settings(lora={"r": 4, "target_modules": "all-linear"}))
    assert adapted.trained_parameters < base.trained_parameters / 5
    assert isinstance(adapted, PassMemory)
    assert count_pass({**SMALL, "vocab_size": 50_000}, settings()).peak > base.peak


@pytest.mark.parametrize(
    ("name", "billions"),
    [("Qwen/Qwen3-1.7B", 1.72), ("Qwen/Qwen3-8B", 8.19), ("Qwen/Qwen2.5-7B-Instruct", 7.62)],
)
def test_known_shapes_have_the_parameters_of_their_model_cards(name: str, billions: float) -> None:
    counted = count_pass(KNOWN[name], settings())
    assert counted.parameters == count_parameters(KNOWN[name])
    assert counted.parameters == pytest.approx(billions * 1e9, rel=0.005)


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
