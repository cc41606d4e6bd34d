"""What a masked response is left out of, counted in tokens on a sampled step: docs/algorithms.md's table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from test_trl_engine import build_trainer
from trl import GRPOTrainer

from microcoder.judge import Judge
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.algorithm.masking import LeaveOutOf, MaskAll, NoMasking
from microcoder.train.trl.trainer import MicroCoderTrainer

LIMIT = 28


@pytest.fixture(scope="module")
def trainer(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MicroCoderTrainer]:
    short = {
        "rollout.max_response_tokens": str(LIMIT),
        "problems.tiers": '["easy"]',
        "rollout.temperature.value": "0.9",
    }
    with Judge(workers=1) as judge:
        trainer = build_trainer(tiny_checkpoint, tmp_path_factory.mktemp("run"), judge, **short)
        assert trainer.model is not None
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 4
        yield trainer


def sample_step(trainer: MicroCoderTrainer, algorithm: AlgorithmConfig) -> dict[str, Any]:
    """Sample and score a step; the same responses each time."""
    trainer.config = trainer.config.model_copy(update={"algorithm": algorithm})
    rows = [trainer.train_dataset[index] for index in range(8) for _ in range(4)]  # type: ignore[index]
    torch.manual_seed(1)
    return trainer._generate_and_score_completions(rows)


def mask_all(leave_out_of: LeaveOutOf) -> AlgorithmConfig:
    return AlgorithmConfig(masking=MaskAll(kind="all", leave_out_of=leave_out_of))


def counted_tokens(trainer: MicroCoderTrainer) -> tuple[int, int]:
    """Return the tokens of all responses of the step, and of those that ended by themselves."""
    lengths = [(len(s.rollout.token_ids), s.rollout.is_truncated) for group in trainer._scored_P_G for s in group]
    return sum(length for length, _ in lengths), sum(length for length, is_truncated in lengths if not is_truncated)


@pytest.mark.parametrize("leave_out_of", ["gradient", "denominator", "baseline"])
def test_tokens_in_the_denominator(trainer: MicroCoderTrainer, leave_out_of: LeaveOutOf) -> None:
    output = sample_step(trainer, mask_all(leave_out_of))
    everything, whole = counted_tokens(trainer)
    assert 0 < whole < everything, "all or none were truncated: the test shows nothing"
    assert output["num_items_in_batch"].item() == (everything if leave_out_of == "gradient" else whole)
    rows = [sample for group in trainer._scored_P_G for sample in group]
    loss_tokens = (output["completion_mask"] * output.get("tool_mask", 1)).sum(1).tolist()
    assert loss_tokens == [len(s.rollout.token_ids) if s.counts else 0 for s in rows]
    assert output["completion_mask"].sum().item() == everything, "what the model attends to has changed"
    assert all(s.advantage == 0 for s in rows if s.rollout.is_truncated)


def test_responses_in_the_baseline(trainer: MicroCoderTrainer) -> None:
    sample_step(trainer, mask_all("baseline"))
    groups = trainer._scored_P_G
    for group in groups:
        whole = [sample.advantage for sample in group if not sample.rollout.is_truncated]
        assert sum(whole) == pytest.approx(0, abs=1e-6)
    sample_step(trainer, mask_all("gradient"))
    sums = [sum(sample.advantage for sample in group) for group in trainer._scored_P_G]
    assert any(abs(value) > 1e-3 for value in sums), "no group had truncated and right responses"


def test_out_of_the_denominator_is_what_trl_users_run(trainer: MicroCoderTrainer) -> None:
    """The same step by TRL's mask_truncated_completions; its advantages are ours, since its std has another epsilon."""
    ours = sample_step(trainer, mask_all("denominator"))
    our_losses = losses(trainer, MicroCoderTrainer._compute_loss, ours)
    trainer.mask_truncated_completions = True
    try:
        theirs = sample_step(trainer, AlgorithmConfig(masking=NoMasking(kind="none")))
    finally:
        trainer.mask_truncated_completions = False
    assert "tool_mask" not in theirs
    assert theirs["num_items_in_batch"] == ours["num_items_in_batch"]
    assert bool((theirs["advantages"] != ours["advantages"]).any()), "nothing truncated had an advantage"
    their_losses = losses(trainer, GRPOTrainer._compute_loss, theirs)
    torch.testing.assert_close(our_losses, their_losses, atol=1e-6, rtol=1e-5)
    kept = losses(trainer, MicroCoderTrainer._compute_loss, sample_step(trainer, mask_all("gradient")))
    everything, whole = counted_tokens(trainer)
    torch.testing.assert_close(kept * everything, our_losses * whole, atol=1e-4, rtol=1e-4)


def test_kl_and_entropy_terms_go_with_the_tokens(trainer: MicroCoderTrainer) -> None:
    """Also where nothing but masked responses is in a pass."""
    output = sample_step(trainer, mask_all("denominator"))
    masked = ~torch.tensor([sample.counts for group in trainer._scored_P_G for sample in group])
    trainer.entropy_coef, trainer._entropy_bonus_enabled = 0.5, True
    try:
        alone = {name: value[masked] if value.ndim else value for name, value in output.items()}
        assert trainer._compute_loss(trainer.model, alone).item() == 0
    finally:
        trainer.entropy_coef, trainer._entropy_bonus_enabled = 0.0, False


def losses(trainer: MicroCoderTrainer, loss_of: Any, output: dict[str, Any]) -> torch.Tensor:
    """Return the loss of each pass of the step."""
    trainer.beta = 0.0
    passes = [
        {name: value[start : start + 8] if value.ndim else value for name, value in output.items()}
        for start in range(0, 32, 8)
    ]
    return torch.stack([loss_of(trainer, trainer.model, one).detach() for one in passes])
