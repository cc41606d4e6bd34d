"""TRL's losses as our recipes set them: against the equations in float64, and against plain TRL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_equations import LOSSES, policy_loss, reduce_rows
from test_trl_engine import build_trainer
from trl import GRPOTrainer

from microcoder.judge import Judge
from microcoder.train.algorithm.config import AlgorithmConfig, EntropyBonus, NoEntropyTerm
from microcoder.train.trl.arguments import translate_loss
from microcoder.train.trl.trainer import MicroCoderTrainer

PROMPT_TOKENS = 2
PLAIN = {"algorithm.masking.kind": "none", "problems.tiers": '["easy"]', "rollout.temperature.value": "0.5"}
OF_TRL = sorted(LOSSES)


class GivenLogps(MicroCoderTrainer):
    """Takes log-probs and entropies as given instead of from a model: the loss alone is under test."""

    given_logps: torch.Tensor
    given_entropies: torch.Tensor

    def _get_per_token_logps_and_entropies(self, model: Any, input_ids: torch.Tensor, *_: Any, **__: Any) -> Any:
        rows = input_ids[:, PROMPT_TOKENS]
        return self.given_logps[rows], self.given_entropies[rows], None


@pytest.fixture(scope="module")
def trainer(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MicroCoderTrainer]:
    with Judge(workers=1) as judge:
        trainer = build_trainer(tiny_checkpoint, tmp_path_factory.mktemp("run"), judge)
        assert trainer.model is not None
        trainer.model.train()
        trainer.current_gradient_accumulation_steps = 1
        yield trainer


def set_loss(trainer: MicroCoderTrainer, algorithm: AlgorithmConfig) -> None:
    """Give a trainer another loss than that it was built with."""
    arguments = translate_loss(algorithm)
    for name, value in arguments.items():
        setattr(trainer.args, name, value)
    trainer.loss_type, trainer.beta = arguments["loss_type"], algorithm.kl_coefficient
    trainer.importance_sampling_level = arguments["importance_sampling_level"]
    trainer.epsilon_low, trainer.epsilon_high = arguments.get("epsilon", 0.2), arguments.get("epsilon_high", 0.2)
    trainer.entropy_coef = arguments.get("entropy_coef", 0.0)
    trainer._entropy_bonus_enabled = trainer.entropy_coef != 0


class Batch:
    """Made-up responses of unequal length in one backward pass: some masked, some out of the denominator."""

    def __init__(self, lengths: list[int], seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        rows, width = len(lengths), max(lengths)

        def draw() -> torch.Tensor:
            return torch.rand(rows, width, dtype=torch.float64, generator=generator)

        self.lengths = lengths
        self.logps, self.reference, self.entropies = -3 * draw(), -3 * draw(), 2 * draw()
        self.old = self.logps + 0.8 * (draw() - 0.5)
        self.advantages = torch.randn(rows, dtype=torch.float64, generator=generator)
        self.advantages[torch.rand(rows, generator=generator) < 0.3] = 0.0  # our trainer leaves them out
        self.counts = (torch.rand(rows, generator=generator) < 0.8) | (self.advantages != 0)
        self.mask = (torch.arange(width) < torch.tensor(lengths)[:, None]).long()
        self.loss_mask = self.mask * self.counts[:, None].long()
        self.logps.requires_grad_()

    def loss_by(self, trainer: MicroCoderTrainer, algorithm: AlgorithmConfig) -> tuple[torch.Tensor, torch.Tensor]:
        """Return our trainer's loss and its gradient."""
        ids = torch.zeros_like(self.mask)
        ids[:, 0] = torch.arange(len(self.lengths))
        inputs = {
            "prompt_ids": torch.zeros(len(ids), PROMPT_TOKENS, dtype=torch.long),
            "prompt_mask": torch.ones(len(ids), PROMPT_TOKENS, dtype=torch.long),
            "completion_ids": ids,
            "completion_mask": self.mask,
            "tool_mask": self.loss_mask,
            "advantages": self.advantages,
            "old_per_token_logps": self.old,
            "ref_per_token_logps": self.reference,
            "num_items_in_batch": self.loss_mask.sum(),
        }
        set_loss(trainer, algorithm)
        trainer.__class__ = GivenLogps
        trainer.given_logps, trainer.given_entropies = self.logps, self.entropies  # type: ignore[attr-defined]
        try:
            loss = trainer._compute_loss(trainer.model, inputs)
        finally:
            trainer.__class__ = MicroCoderTrainer
        return loss, self._gradient(loss)

    def loss_by_hand(self, trainer: MicroCoderTrainer, algorithm: AlgorithmConfig) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the equation's loss and its gradient."""
        denominators: dict[str, Any] = {
            "counts": self.counts.tolist(),
            # TRL's window of one backward pass, of a step's many; gradient accumulation adds them up to the update.
            "tokens_per_update": max(1, self.loss_mask.sum().item())
            / (trainer.batches.rollouts_per_step / trainer.batches.micro_batch_rollouts),
            "max_response_tokens": trainer.max_completion_length or 0,
        }
        logps, old, reference, entropies = (
            [row[:length] for row, length in zip(values, self.lengths, strict=True)]
            for values in (self.logps, self.old, self.reference, self.entropies)
        )
        loss = policy_loss(algorithm.loss, logps, old, self.advantages.tolist(), **denominators)
        if algorithm.kl_coefficient:
            kl = [
                counted * ((theirs - ours).exp() - (theirs - ours) - 1)
                for ours, theirs, counted in zip(logps, reference, self.counts.tolist(), strict=True)
            ]
            loss = loss + algorithm.kl_coefficient * reduce_rows(
                algorithm.loss,
                kl,
                tokens_per_update=denominators["tokens_per_update"],
                max_response_tokens=denominators["max_response_tokens"],
            )
        if isinstance(algorithm.entropy, EntropyBonus):
            counted = [row for row, counts in zip(entropies, self.counts.tolist(), strict=True) if counts]
            loss = loss - algorithm.entropy.coefficient * (torch.cat(counted).mean() if counted else 0.0)
        return loss, self._gradient(loss)

    def _gradient(self, loss: torch.Tensor) -> torch.Tensor:
        if not loss.requires_grad:
            return torch.zeros_like(self.logps)
        (gradient,) = torch.autograd.grad(loss, self.logps)
        return gradient


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    name=st.sampled_from(OF_TRL),
    beta=st.sampled_from([0.0, 0.05]),
    entropy=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 10_000),
)
def test_the_loss_is_the_equation(
    trainer: MicroCoderTrainer, lengths: list[int], name: str, beta: float, entropy: float, seed: int
) -> None:
    """Every loss, with rows left out of the pass and out of the denominator, value and gradient."""
    batch = Batch(lengths, seed)
    term = EntropyBonus(kind="bonus", coefficient=entropy) if entropy else NoEntropyTerm()
    algorithm = AlgorithmConfig(loss=LOSSES[name], kl_coefficient=beta, entropy=term)
    loss, gradient = batch.loss_by(trainer, algorithm)
    expected, expected_gradient = batch.loss_by_hand(trainer, algorithm)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    torch.testing.assert_close(gradient, expected_gradient, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", OF_TRL)
def test_rows_are_left_out_of_the_pass_of_every_loss(trainer: MicroCoderTrainer, name: str) -> None:
    """The saving is made, and changes nothing: the whole pass by plain TRL gives the same."""
    batch = Batch([3, 7, 5, 2, 8, 4], seed=3)
    assert 0 < int((batch.advantages == 0).sum()) < 6
    algorithm = AlgorithmConfig(loss=LOSSES[name])
    rows_seen: list[int] = []
    plain = GRPOTrainer._compute_loss

    def counting(self: Any, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        rows_seen.append(len(inputs["advantages"]))
        return plain(self, model, inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GRPOTrainer, "_compute_loss", counting)
        ours, our_gradient = batch.loss_by(trainer, algorithm)
        patch.setattr(MicroCoderTrainer, "_compute_loss", counting)
        theirs, their_gradient = batch.loss_by(trainer, algorithm)
    assert rows_seen == [int((batch.advantages != 0).sum()), 6]
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-9)
    torch.testing.assert_close(our_gradient, their_gradient, atol=1e-12, rtol=1e-9)


def test_the_tokens_of_highest_entropy_are_chosen_among_all_rows(trainer: MicroCoderTrainer) -> None:
    batch = Batch([3, 7, 5, 2, 8, 4], seed=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "top_entropy_quantile", 0.25)
        _, gradient = batch.loss_by(trainer, AlgorithmConfig())
    counted = batch.entropies[batch.loss_mask.bool()]
    among_all = batch.entropies >= torch.quantile(counted, 0.75)
    teaches = (batch.advantages != 0)[:, None] & batch.loss_mask.bool()
    assert bool((gradient[teaches & among_all] != 0).any())
    assert not bool((gradient[~(teaches & among_all)] != 0).any())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"algorithm.loss": "grpo", "algorithm.kl_coefficient": "0.04"},
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
