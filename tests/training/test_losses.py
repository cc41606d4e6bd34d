"""TRL's loss as our recipes set it: against the equations in float64, and against plain TRL."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_trl_engine import build_trainer
from trl import GRPOTrainer

from microcoder.evaluator import Judge
from microcoder.training.engines.trl.trainer import MicroCoderTrainer

CLIP_LOW, CLIP_HIGH = 0.2, 0.28
PROMPT_TOKENS = 2
PLAIN = {"algorithm.masking.kind": "none", "problems.tiers": '["easy"]', "rollout.temperature.value": "0.5"}


class GivenLogps(MicroCoderTrainer):
    """Takes log-probs as given instead of from a model: the loss alone is under test."""

    given_logps: torch.Tensor

    def _get_per_token_logps_and_entropies(self, model: Any, input_ids: torch.Tensor, *_: Any, **__: Any) -> Any:
        logps = self.given_logps[input_ids[:, PROMPT_TOKENS]]
        return logps, torch.zeros_like(logps), None


@pytest.fixture(scope="module")
def trainer(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MicroCoderTrainer]:
    with Judge(workers=1) as judge:
        trainer = build_trainer(tiny_checkpoint, tmp_path_factory.mktemp("run"), judge)
        assert trainer.model is not None
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 1
        yield trainer


def equation(
    logps: list[list[float]],
    old: list[list[float]],
    reference: list[list[float]],
    advantages: list[float],
    *,
    loss_type: str,
    beta: float,
    tokens_per_update: float,
    max_response_tokens: int,
) -> float:
    """Equation 1 token by token, with the three normalisations; rows are as long as their responses."""
    rows = []
    for row_logps, row_old, row_reference, advantage in zip(logps, old, reference, advantages, strict=True):
        losses = []
        for logp, old_logp, reference_logp in zip(row_logps, row_old, row_reference, strict=True):
            ratio = math.exp(logp - old_logp)
            clipped = min(max(ratio, 1 - CLIP_LOW), 1 + CLIP_HIGH)
            kl = math.exp(reference_logp - logp) - (reference_logp - logp) - 1
            losses.append(-min(ratio * advantage, clipped * advantage) + beta * kl)
        rows.append(losses)
    everything = math.fsum(loss for row in rows for loss in row)
    if loss_type == "dapo":
        return everything / tokens_per_update
    if loss_type == "grpo":
        return math.fsum(math.fsum(row) / len(row) for row in rows) / len(rows)
    return everything / (len(rows) * max_response_tokens)


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    loss_type=st.sampled_from(["dapo", "grpo", "dr_grpo"]),
    beta=st.sampled_from([0.0, 0.05]),
    seed=st.integers(0, 10_000),
)
def test_the_loss_is_equation_1(
    trainer: MicroCoderTrainer, lengths: list[int], loss_type: str, beta: float, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows, width = len(lengths), max(lengths)
    logps, old, reference = (-3 * torch.rand(rows, width, dtype=torch.float64, generator=generator) for _ in range(3))
    advantages = torch.randn(rows, dtype=torch.float64, generator=generator)
    advantages[torch.rand(rows, generator=generator) < 0.3] = 0.0  # masked rows: our trainer leaves them out
    mask = (torch.arange(width) < torch.tensor(lengths)[:, None]).long()
    ids = torch.zeros(rows, width, dtype=torch.long)
    ids[:, 0] = torch.arange(rows)
    inputs = {
        "prompt_ids": torch.zeros(rows, PROMPT_TOKENS, dtype=torch.long),
        "prompt_mask": torch.ones(rows, PROMPT_TOKENS, dtype=torch.long),
        "completion_ids": ids,
        "completion_mask": mask,
        "advantages": advantages,
        "old_per_token_logps": old,
        "ref_per_token_logps": reference,
        "num_items_in_batch": mask.sum(),
    }
    trainer.loss_type, trainer.beta = loss_type, beta
    trainer.epsilon_low, trainer.epsilon_high = CLIP_LOW, CLIP_HIGH
    trainer.__class__, trainer.given_logps = GivenLogps, logps  # type: ignore[attr-defined]
    try:
        loss = trainer._compute_loss(trainer.model, inputs)
    finally:
        trainer.__class__ = MicroCoderTrainer
    cut = lambda values: [row[:length] for row, length in zip(values.tolist(), lengths, strict=True)]  # noqa: E731
    expected = equation(
        cut(logps),
        cut(old),
        cut(reference),
        advantages.tolist(),
        loss_type=loss_type,
        beta=beta,
        # TRL's window of one backward pass, of a step's many; gradient accumulation adds them up to the update.
        tokens_per_update=sum(lengths) / (trainer.batches.rollouts_per_step / trainer.batches.micro_batch_rollouts),
        max_response_tokens=trainer.max_completion_length or 0,
    )
    assert loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"algorithm.loss_normalisation": "grpo", "algorithm.clip_high": "0.2", "algorithm.kl_coefficient": "0.04"},
        {"algorithm.advantage": "dr_grpo"},
    ],
    ids=["dapo", "grpo with kl", "dr_grpo"],
)
def test_without_our_additions_the_step_is_plain_trl(
    tiny_checkpoint: Path, tmp_path: Path, changes: dict[str, str]
) -> None:
    """The advantages and the loss of a sampled step, by TRL's own code and by ours."""
    with Judge(workers=1) as judge:
        trainer = build_trainer(tiny_checkpoint, tmp_path, judge, **PLAIN, **changes)
        model = trainer.model
        assert model is not None
        model.train()
        trainer.current_gradient_accumulation_steps = 1
        rows = [trainer.train_dataset[index] for index in range(8) for _ in range(4)]  # type: ignore[index]
        torch.manual_seed(0)
        batch = trainer._generate_and_score_completions(rows)
    plain_advantages = torch.tensor(list(trainer._logs["advantages"]))
    assert bool((plain_advantages != 0).any()), "all groups were flat: the test shows nothing"
    # TRL divides by std + 1e-4, we by std + 1e-6.
    torch.testing.assert_close(batch["advantages"], plain_advantages, rtol=5e-4, atol=1e-6)
    batch["old_per_token_logps"] = batch["old_per_token_logps"] - 0.3 * torch.rand_like(batch["old_per_token_logps"])
    plain = GRPOTrainer._compute_loss(trainer, model, {**batch, "advantages": plain_advantages})
    ours = trainer._compute_loss(model, batch)
    torch.testing.assert_close(ours, plain, rtol=5e-4, atol=1e-5)
    exact = GRPOTrainer._compute_loss(trainer, model, dict(batch))
    torch.testing.assert_close(ours, exact, rtol=0, atol=1e-5)
