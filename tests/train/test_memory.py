"""The dry run's figures of memory: the formula against a real pass's storages;
and the benchmark that reads them.
"""

import json
import os
import subprocess
import sys
import weakref
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, AutoModelForCausalLM

from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run import estimate
from microcoder.train.run.estimate import KNOWN, MemoryTable, count_memory, count_parameters

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
        """Count nothing for tensors that are there already, `apart`,
        whose views operations make too.
        """
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


def count(**changes: Any) -> MemoryTable:
    recipe = {"rollout.max_response_tokens": 44, "model.path": "Qwen/Qwen3-4B"} | changes
    keys = {}
    for name, value in recipe.items():
        keys[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return count_whole(load_config(TrainConfig, [ROOT / "recipes/models/qwen3-4b-4k.toml"], keys))


def count_whole(config: TrainConfig, **options: Any) -> MemoryTable:
    table = count_memory(config, **options)
    assert table is not None
    return table


@pytest.mark.parametrize("checkpointing", [True, False])
def test_the_formula_is_no_less_than_what_a_real_pass_holds(
    checkpointing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**SMALL))
    if checkpointing:
        model.gradient_checkpointing_enable()
    model.train()
    weights = list(model.parameters())
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    ids = torch.zeros(4, 1024 + 44, dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[0, :5] = 0  # Without padding transformers makes no mask of it.
    tracker = StorageCounter([*weights, *(weight.grad for weight in weights)])
    with tracker:
        hidden = model.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        hidden.backward(torch.zeros_like(hidden))
    monkeypatch.setattr(estimate, "KNOWN", {"Qwen/Qwen3-4B": SMALL})
    counted = count(
        **{
            "model.compute_dtype": "float32",
            "model.gradient_checkpointing": checkpointing,
            "batch.micro_batch_rollouts": 4,
        }
    )
    assert counted.parts["weights"] == 4 * sum(weight.numel() for weight in weights) / 2**30
    # Masks of attention are not counted: of 1,068 tokens, they matter beside so small a model.
    masks = 4 * 4 * 1068**2 / 2**30
    assert tracker.peak / 2**30 <= counted.parts["activations of a pass"] + 2 * masks


def test_more_rows_tokens_and_weights_take_more_and_savings_less() -> None:
    def activations(**changes: Any) -> float:
        return count(**changes).parts["activations of a pass"]

    base = activations()
    assert activations(**{"batch.micro_batch_rollouts": 16}) == pytest.approx(2 * base)
    assert activations(**{"rollout.max_response_tokens": 2092}) > 2.5 * base
    assert activations(**{"model.gradient_checkpointing": False}) > 3 * base
    adapted = count(**{"model.lora.rank": 4})
    assert adapted.parts["gradients"] < 0.01 * count().parts["gradients"]
    assert count_parameters({**SMALL, "num_experts": 8}) is None


def test_known_shapes_have_the_parameters_of_their_model_cards() -> None:
    for name, billions in (
        ("Qwen/Qwen3-1.7B", 1.72),
        ("Qwen/Qwen3-8B", 8.19),
        ("Qwen/Qwen3-4B", 4.02),
    ):
        assert count_parameters(KNOWN[name]) == pytest.approx(billions * 1e9, rel=0.005)


def test_parts_are_held_together_or_in_turns() -> None:
    recipe = ROOT / "recipes/models/qwen3-4b-4k.toml"
    on_h100 = partial(count_whole, device_memory_gib=79.6)
    awake = on_h100(load_config(TrainConfig, [recipe], {"rollout.vllm.enable_sleep_mode": "false"}))
    asleep = on_h100(load_config(TrainConfig, [recipe], {"rollout.vllm.enable_sleep_mode": "true"}))
    assert awake.parts["weights"] == pytest.approx(4.02e9 * 4 / 2**30, rel=0.005)
    assert awake.total == pytest.approx(sum(awake.parts.values()))
    # While weights are updated, vLLM keeps its graphs; while it samples,
    # there are no gradients and no activations.
    assert asleep.total == pytest.approx(awake.total - 0.3 * 79.6 + asleep.parts["sampler, asleep"])
    assert asleep.cached_responses == awake.cached_responses
    assert not awake.fits
    assert on_h100(load_config(TrainConfig, [recipe]), num_shards=8).fits
    plain = load_config(TrainConfig, [recipe], {"rollout.backend": "transformers"})
    assert on_h100(plain).total > 600, "keys and values of a whole step at a time"
    large = load_config(TrainConfig, [ROOT / "recipes/models/r1-qwen3-8b-16k.toml"])
    assert not on_h100(large).fits


@pytest.mark.long
def test_the_gpu_benchmark_runs_whole_on_a_cpu() -> None:
    command = [sys.executable, "benchmarks/gpu.py", "--tiny", "--steps", "2", "--mini", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["steps"] == 2
    for name in ("sampled_per_second", "trained_per_second", "counted_gib"):
        assert found[name] > 0
