"""The TRL engine against plain TRL: the same distribution and log-probs, and what a masked response is left out of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import build_small, rows_of, samples_of
from trl import GRPOTrainer

from microcoder.judge import Judge
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.algorithm.masking import MaskAll, NoMasking
from microcoder.train.algorithm.scoring import build_rules
from microcoder.train.trl.sampling import set_sampling
from microcoder.train.trl.trainer import MicroCoderTrainer


def reference_logps(model: Any, ids: torch.Tensor, mask: torch.Tensor, temperature: float) -> torch.Tensor:
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float() / temperature
    return torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None])[..., 0]


@pytest.mark.parametrize(
    "changes",
    [
        {"model.compute_dtype": "bfloat16", "model.dtype": "bfloat16", "algorithm.kl_coefficient": "0.1"},
        {"model.compute_dtype": "bfloat16", "model.lora.rank": "4"},
    ],
    ids=["bf16 weights, kl", "bf16, lora"],
)
def test_logps_in_bfloat16_follow_the_sampling_temperature(
    tiny_checkpoint: Path, tmp_path: Path, judge: Judge, changes: dict[str, str]
) -> None:
    trainer = build_small(tiny_checkpoint, tmp_path, judge, **changes)
    # Another shape rounds otherwise in bfloat16: without padding to trim, the shapes are the same.
    ids = torch.randint(10, 300, (6, 32), generator=torch.Generator().manual_seed(0)).to(trainer.accelerator.device)
    mask = torch.ones_like(ids)
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
                logps, _, _ = trainer._get_per_token_logps_and_entropies(model, ids, mask, 20)
            expected = reference_logps(model, ids, mask, temperature)[:, -20:]
            torch.testing.assert_close(logps, expected, atol=1e-5, rtol=0)
        assert trainer.generation_config.temperature == temperature


# ----- The table of docs/algorithms.md: what a masked response is left out of, in tokens of a sampled step.


@pytest.fixture(scope="module")
def trainer(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory, judge: Judge) -> MicroCoderTrainer:
    trainer = build_small(tiny_checkpoint, tmp_path_factory.mktemp("run"), judge)
    trainer.current_gradient_accumulation_steps = 4
    return trainer


def sample_step(trainer: MicroCoderTrainer, algorithm: AlgorithmConfig) -> dict[str, Any]:
    """Sample and score a step; the same responses each time."""
    trainer.config = trainer.config.model_copy(update={"algorithm": algorithm})
    trainer.rules = build_rules(algorithm, max_response_tokens=trainer.rules.max_response_tokens)
    torch.manual_seed(1)
    return trainer._generate_and_score_completions(rows_of(trainer))


OUT_OF_THE_DENOMINATOR = AlgorithmConfig(masking=MaskAll(kind="all", leave_out_of="denominator"))


def test_out_of_the_denominator_is_what_trl_users_run(trainer: MicroCoderTrainer) -> None:
    """The same step by TRL's mask_truncated_completions; its advantages are ours, since its std has another epsilon."""
    ours = sample_step(trainer, OUT_OF_THE_DENOMINATOR)
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


def losses(trainer: MicroCoderTrainer, loss_of: Any, output: dict[str, Any]) -> torch.Tensor:
    """Return the loss of each pass of the step."""
    trainer.beta = 0.0
    passes = [
        {name: value[start : start + 8] if value.ndim else value for name, value in output.items()}
        for start in range(0, 32, 8)
    ]
    return torch.stack([loss_of(trainer, trainer.model, one).detach() for one in passes])


def test_a_pass_of_masked_responses_alone_teaches_nothing(trainer: MicroCoderTrainer) -> None:
    """KL and entropy terms go with the tokens, and there is a gradient, of zeros."""
    output = sample_step(trainer, OUT_OF_THE_DENOMINATOR)
    masked = ~torch.tensor([sample.counts for sample in samples_of(trainer)])
    trainer.entropy_coef, trainer._entropy_bonus_enabled = 0.5, True
    try:
        alone = {name: value[masked] if value.ndim else value for name, value in output.items()}
        loss = trainer._compute_loss(trainer.model, alone)
    finally:
        trainer.entropy_coef, trainer._entropy_bonus_enabled = 0.0, False
    loss.backward()
    assert loss.item() == 0
    gradients = [weight.grad for weight in trainer.model.parameters() if weight.grad is not None]  # type: ignore[union-attr]
    assert gradients
    assert not any(bool(gradient.any()) for gradient in gradients)
