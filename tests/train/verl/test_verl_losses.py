"""verl's losses as our recipes set them, against the equations that TRL's are held against."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from microcoder.train.algorithm.config import DrGrpoLoss, Loss, LuspoLoss
from tests.train.loss_equations import (
    LOSSES,
    Rows,
    gradient_error,
    largest_change,
    policy_loss,
    read_responses,
    reduce_rows,
    update_both,
)
from tests.train.verl.test_verl_translate import translated
from tests.train.verl.verl_runs import needs_verl

pytestmark = needs_verl

LENGTHS = [3, 7, 5, 2, 8, 4]


def actor_config(loss: Loss, **changes: str) -> Any:
    """Return verl's actor configuration of a recipe with this loss, as its workers get it."""
    from verl.utils.config import omega_conf_to_dataclass

    options = {}
    for name, value in loss:
        if value is not None:
            options[f"algorithm.loss.{name}"] = str(value)
    usual = {"rollout.length_stages": "[]", "algorithm.masking.leave_out_of": "gradient"}
    verl = translated(**{**usual, **options, **changes})
    return omega_conf_to_dataclass(verl.actor_rollout_ref.actor)


TEMPERATURE = 0.8
KL = 0.04
BONUS = 0.05
VOCABULARY = 300


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One process, as verl's workers are: they divide a loss by what all of them count."""
    store = torch.distributed.FileStore(str(tmp_path_factory.mktemp("alone") / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


class Update:
    """Responses to train on, in verl's engine and in plain transformers, both in float64."""

    def __init__(self, checkpoint: Path) -> None:
        from transformers import AutoModelForCausalLM
        from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

        generator = torch.Generator().manual_seed(3)
        self.prompts, self.responses = (
            [torch.randint(20, VOCABULARY, (length,), generator=generator) for length in lengths]
            for lengths in ([4, 2, 5, 3, 3, 2], LENGTHS)
        )
        # Some idle, of which one is out of the denominator too.
        self.advantages = [1.5, 0.0, 1.6, -1.5, 0.0, -0.2]
        self.counts = [True, True, True, True, False, True]
        self.exact, self.model = (
            AutoModelForCausalLM.from_pretrained(checkpoint).double() for _ in range(2)
        )
        # What it needs beside sharded weights, which are float32 at most: no cast,
        # no packed sequences.
        self.engine: Any = object.__new__(FSDPEngineWithLMHead)
        self.engine.module, self.engine._autocast_dtype = self.model, torch.float32
        self.engine.ulysses_device_mesh = None
        self.engine.ulysses_sequence_parallel_size = 1
        self.engine.use_ulysses_sp = self.engine.pad_to_length = False
        self.engine.engine_config = type("Plain", (), {"entropy_checkpointing": False})
        with torch.no_grad():
            self.old, _ = self.read()

    def read(self) -> tuple[Rows, Rows]:
        """Return log-probs and entropies of each response's tokens, by plain transformers."""
        return read_responses(self.exact, self.prompts, self.responses, TEMPERATURE)

    def run_verl(self, config: Any) -> None:
        """Let verl's engine compute the gradients of an update in two passes,
        by its own loss function.
        """
        from tensordict import TensorDict
        from verl.utils import tensordict_utils
        from verl.workers.utils.losses import ppo_loss

        whole = [torch.cat(pair) for pair in zip(self.prompts, self.responses, strict=True)]
        masks = []
        for r, c in zip(self.responses, self.counts, strict=True):
            masks.append(torch.full((len(r),), int(c)))
        advantages = []
        for row, a in zip(self.old, self.advantages, strict=True):
            advantages.append(torch.full_like(row, a))
        columns = {
            "input_ids": whole,
            "position_ids": [torch.arange(len(ids)) for ids in whole],
            "prompts": self.prompts,
            "responses": self.responses,
            "response_mask": masks,
            "loss_mask": masks,
            "old_log_probs": self.old,
            "ref_log_prob": self.old,
            "advantages": advantages,
        }
        nested = {}
        for name, rows in columns.items():
            nested[name] = torch.nested.nested_tensor(rows, layout=torch.jagged)
        data = TensorDict(nested, batch_size=len(whole))
        tensordict_utils.assign_non_tensor(
            data,
            temperature=TEMPERATURE,
            use_remove_padding=False,
            use_dynamic_bsz=False,
            micro_batch_size_per_gpu=3,
            global_batch_size=len(whole),
            calculate_entropy=config.entropy_coeff != 0,
        )
        self.engine._gradient_sync_context = lambda is_last_micro_batch: contextlib.nullcontext()
        self.engine.forward_backward_batch(data, partial(ppo_loss, config))


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("has_terms", [False, True], ids=["alone", "with KL and entropy"])
def test_three_updates_on_one_batch_have_the_gradient_of_the_equation(
    alone: None,
    tiny_checkpoint: Path,
    name: str,
    has_terms: bool,
) -> None:
    """By verl's engine, passes and loss, with weights of the sampler,
    and one and two updates later: to 1e-5.
    """
    loss = LOSSES[name]
    update = Update(tiny_checkpoint)
    has_bonus = has_terms and not isinstance(loss, DrGrpoLoss | LuspoLoss)  # refused with these
    changes = {"algorithm.kl_coefficient": str(KL)} if has_terms else {}
    if has_bonus:
        changes["verl.actor_rollout_ref.actor.entropy_coeff"] = str(BONUS)
    config = actor_config(loss, **changes)
    counted = sum(n for n, counts in zip(LENGTHS, update.counts, strict=True) if counts)
    divided = {"tokens_per_update": counted, "max_response_tokens": 28}
    furthest = []
    for _ in range(3):
        update.exact.zero_grad()
        update.model.zero_grad()
        logps, entropies = update.read()
        kept = {"counts": update.counts, "kl_coefficient": KL * has_terms, **divided}
        expected = policy_loss(loss, logps, update.old, update.advantages, **kept)
        entropies = [
            row if counts else 0 * row for row, counts in zip(entropies, update.counts, strict=True)
        ]
        (expected - BONUS * has_bonus * reduce_rows(loss, entropies, **divided)).backward()
        update.run_verl(config)
        assert gradient_error(update.model, update.exact) < 1e-5
        furthest.append(largest_change(logps, update.old))
        # Small: verl bounds a KL term beyond 10, and sequences that are all clipped have no
        # gradient.
        update_both(update.model, update.exact, 0.015)
    assert furthest[0] < 1e-9
    assert furthest[2] > 0.3, "no ratio came near a clip"
