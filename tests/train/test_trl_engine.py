"""The TRL engine against plain TRL: the same distribution, log-probs and gradient, with less work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from trl import GRPOTrainer

from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.train.algorithm.filtering import is_mixed
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer, RunClock
from microcoder.train.run.session import load_tasks
from microcoder.train.run.tasks import EngineInputs
from microcoder.train.runs import RunDirectory
from microcoder.train.trl import engine
from microcoder.train.trl.engine import load_policy
from microcoder.train.trl.sampling import set_sampling
from microcoder.train.trl.trainer import MicroCoderTrainer

RECIPE = {
    "prompt.style": "bare",
    "num_steps": "2",
    "model.kind": "hugging_face",
    "model.compute_dtype": "float32",
    "model.gradient_checkpointing": "false",
    "problems.kind": "micro",
    "problems.num_train": "16",
    "problems.num_heldout": "6",
    "rollout.num_samples": "4",
    "rollout.max_response_tokens": "40",
    "rollout.temperature.value": "0.9",
    "batch.train_batch_size": "8",
    "batch.ppo_mini_batch_size": "4",
    "batch.micro_batch_rollouts": "8",
    "optimizer.learning_rate": "1e-3",
    "evaluation.samples_per_problem": "2",
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=1, stop="first_failure") as judge:
        yield judge


def build_trainer(checkpoint: Path, run: Path, judge: Judge, **changes: str) -> MicroCoderTrainer:
    config = load_config(TrainConfig, overrides={**RECIPE, "model.path": str(checkpoint), **changes})
    policy = load_policy(config, observer=Observer())
    inputs = EngineInputs(config, policy, load_tasks(config), judge, RunDirectory(run), Observer())
    return engine.build_trainer(inputs, RunClock())


@pytest.fixture
def rollout_batch() -> dict[str, torch.Tensor]:
    """Left-padded prompts and right-padded completions of very unequal lengths."""
    generator = torch.Generator().manual_seed(0)
    rows, prompt, completion = 6, 12, 20
    prompt_mask = torch.ones(rows, prompt, dtype=torch.long)
    completion_mask = torch.zeros(rows, completion, dtype=torch.long)
    for row in range(rows):
        prompt_mask[row, : 2 * (row % 4) + 2] = 0
        completion_mask[row, : 3 + 2 * row] = 1
    return {
        "prompt_ids": torch.randint(10, 300, (rows, prompt), generator=generator) * prompt_mask,
        "prompt_mask": prompt_mask,
        "completion_ids": torch.randint(10, 300, (rows, completion), generator=generator) * completion_mask,
        "completion_mask": completion_mask,
        "advantages": torch.tensor([0.0, 1.0, 0.0, -0.7, 0.0, 0.4]),
        "num_items_in_batch": completion_mask.sum(),
    }


def reference_logps(model: Any, ids: torch.Tensor, mask: torch.Tensor, temperature: float) -> torch.Tensor:
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float() / temperature
    return torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None])[..., 0]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model.lora.rank": "4"},
        {"algorithm.kl_coefficient": "0.1"},
        {"model.compute_dtype": "bfloat16"},
        {"model.compute_dtype": "bfloat16", "model.dtype": "bfloat16", "algorithm.kl_coefficient": "0.1"},
        {"model.compute_dtype": "bfloat16", "model.lora.rank": "4"},
    ],
    ids=["float32", "lora", "kl", "bf16", "bf16 weights, kl", "bf16, lora"],
)
def test_logps_follow_the_sampling_temperature(
    tiny_checkpoint: Path,
    tmp_path: Path,
    judge: Judge,
    rollout_batch: dict[str, torch.Tensor],
    changes: dict[str, str],
) -> None:
    trainer = build_trainer(tiny_checkpoint, tmp_path, judge, **changes)
    ids = torch.cat([rollout_batch["prompt_ids"], rollout_batch["completion_ids"]], 1)
    mask = torch.cat([rollout_batch["prompt_mask"], rollout_batch["completion_mask"]], 1)
    used = rollout_batch["completion_mask"].bool()
    if "model.compute_dtype" in changes:
        # Another shape rounds otherwise in bfloat16; without padding to trim, the shapes are the same.
        mask, used = torch.ones_like(mask), torch.ones_like(used)
    for name, weight in trainer.model.named_parameters():  # type: ignore[union-attr]
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.02)  # zero at first: the adapter would do nothing
    models = [
        # As training wraps it: with autocast where the recipe computes in bfloat16.
        trainer.accelerator.prepare_model(model) if model is trainer.model else model
        for model in (trainer.model, trainer.ref_model)
        if isinstance(model, torch.nn.Module)
    ]
    for temperature in (0.6, 1.7, 1.0):
        set_sampling(trainer, temperature=temperature, max_response_tokens=40)
        for model in models:
            model.eval()
            with torch.no_grad():
                logps, _, _ = trainer._get_per_token_logps_and_entropies(model, ids, mask, used.size(1))
            expected = reference_logps(model, ids, mask, temperature)[:, -used.size(1) :]
            torch.testing.assert_close(logps[used], expected[used], atol=1e-5, rtol=0)
        assert trainer.generation_config.temperature == temperature


def test_trimmed_padding_changes_no_logp(
    tiny_checkpoint: Path, tmp_path: Path, judge: Judge, rollout_batch: dict[str, torch.Tensor]
) -> None:
    trainer = build_trainer(tiny_checkpoint, tmp_path, judge)
    ids = torch.cat([rollout_batch["prompt_ids"], rollout_batch["completion_ids"]], 1)
    mask = torch.cat([rollout_batch["prompt_mask"], rollout_batch["completion_mask"]], 1)
    used = rollout_batch["completion_mask"].bool()
    arguments = (trainer.model, ids, mask, used.size(1), 2, True)
    with torch.no_grad():
        plain = GRPOTrainer._get_per_token_logps_and_entropies(trainer, *arguments)
        frugal = trainer._get_per_token_logps_and_entropies(*arguments)
    for ours, theirs in zip(frugal[:2], plain[:2], strict=True):
        assert ours is not None
        assert theirs is not None
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours[used], theirs[used], atol=1e-5, rtol=0)


@pytest.mark.parametrize("advantages", [None, torch.zeros(6)])
def test_leaving_out_idle_rows_changes_no_gradient(
    tiny_checkpoint: Path,
    tmp_path: Path,
    judge: Judge,
    rollout_batch: dict[str, torch.Tensor],
    advantages: torch.Tensor | None,
) -> None:
    trainer = build_trainer(tiny_checkpoint, tmp_path, judge)
    model = trainer.model
    assert model is not None
    model.train()
    trainer.current_gradient_accumulation_steps = 1
    inputs = rollout_batch if advantages is None else {**rollout_batch, "advantages": advantages}
    inputs["old_per_token_logps"] = torch.full((6, 20), -5.0)
    gradients = []
    for loss_of in (GRPOTrainer._compute_loss, MicroCoderTrainer._compute_loss):
        model.zero_grad()
        loss_of(trainer, model, dict(inputs)).backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    torch.testing.assert_close(gradients[1], gradients[0], atol=1e-6, rtol=1e-4)
    assert bool((gradients[0] != 0).any()) == (advantages is None)


def test_a_step_uses_the_advantages_that_were_decided(tiny_checkpoint: Path, tmp_path: Path, judge: Judge) -> None:
    trainer = build_trainer(tiny_checkpoint, tmp_path, judge)
    model = trainer.model
    assert model is not None
    model.train()
    rows = [trainer.train_dataset[index] for index in range(8) for _ in range(4)]  # type: ignore[index]
    output = trainer._generate_and_score_completions(rows)
    scored = [sample for group in trainer._scored_P_G for sample in group]
    assert output["advantages"].tolist() == pytest.approx([sample.advantage for sample in scored])
    assert [sample.rollout.problem_id for sample in scored] == [row["problem_id"] for row in rows]
    assert output["completion_mask"].sum(1).tolist() == [len(sample.rollout.token_ids) for sample in scored]
    assert output["old_per_token_logps"].shape == output["completion_ids"].shape


def test_flat_groups_give_way_to_others(tiny_checkpoint: Path, tmp_path: Path, judge: Judge) -> None:
    changes = {
        "algorithm.group_filtering.kind": "dynamic",
        "batch.train_batch_size": "4",
        "batch.ppo_mini_batch_size": "2",
        "problems.tiers": '["easy"]',
    }
    trainer = build_trainer(tiny_checkpoint, tmp_path, judge, **changes)
    model = trainer.model
    assert model is not None
    model.train()
    rows = [trainer.train_dataset[index] for index in range(4) for _ in range(4)]  # type: ignore[index]
    torch.manual_seed(0)
    output = trainer._generate_and_score_completions(rows)
    groups, left_out = trainer._scored_P_G, trainer._filtered_P_G
    scored = [sample for group in groups for sample in group]
    assert len(groups) == 4
    assert left_out, "no group was flat: the test shows nothing"
    assert not any(is_mixed(group) for group in left_out[: sum(map(is_mixed, groups))])
    asked = [group[0].rollout.problem_id for group in (*groups, *left_out)]
    assert len(set(asked)) == len(asked)
    assert output["advantages"].tolist() == pytest.approx([sample.advantage for sample in scored])
    assert output["completion_mask"].sum(1).tolist() == [len(sample.rollout.token_ids) for sample in scored]
    ids = [
        tuple(row[mask.bool()].tolist())
        for row, mask in zip(output["completion_ids"], output["completion_mask"], strict=True)
    ]
    assert ids == [sample.rollout.token_ids for sample in scored]
