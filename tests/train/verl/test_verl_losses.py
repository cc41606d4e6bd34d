"""verl's losses as our recipes set them, against the equations that TRL's are held against."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from loss_equations import LOSSES, policy_loss
from test_verl_translate import translated
from verl_runs import needs_verl

from microcoder.train.algorithm.config import Loss

pytestmark = needs_verl

OF_VERL = sorted(LOSSES)
LENGTHS = [3, 7, 5, 2, 8, 4]


def actor_config(loss: Loss, **changes: str) -> Any:
    """Return verl's actor configuration of a recipe with this loss, as its workers get it."""
    from verl.utils.config import omega_conf_to_dataclass

    options = {f"algorithm.loss.{name}": str(value) for name, value in loss if value is not None}
    verl = translated(
        **{
            "rollout.length_stages": "[]",
            "algorithm.masking.leave_out_of": "gradient",
            **options,
            **changes,
        }
    )
    return omega_conf_to_dataclass(verl.actor_rollout_ref.actor)


def made_up(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return log-probs now and then, advantages, which rows count, and the tokens in the loss."""
    generator = torch.Generator().manual_seed(seed)
    rows, width = len(LENGTHS), max(LENGTHS)
    logps = -3 * torch.rand(rows, width, dtype=torch.float64, generator=generator)
    old = logps + 0.8 * (torch.rand(rows, width, dtype=torch.float64, generator=generator) - 0.5)
    advantages = torch.randn(rows, dtype=torch.float64, generator=generator)
    advantages[torch.rand(rows, generator=generator) < 0.4] = 0.0
    counts = (torch.rand(rows, generator=generator) < 0.5) | (advantages != 0)
    mask = (torch.arange(width) < torch.tensor(LENGTHS)[:, None]) & counts[:, None]
    return logps.requires_grad_(), old, advantages, counts, mask


@pytest.mark.parametrize("name", OF_VERL)
@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_the_equation(name: str, seed: int) -> None:
    """Value and gradient, with responses that are left out of the denominator."""
    from verl.trainer.ppo.core_algos import get_policy_loss_fn

    logps, old, advantages, counts, mask = made_up(seed)
    config = actor_config(LOSSES[name])
    config.global_batch_info.update(
        dp_size=1,
        batch_num_tokens=int(mask.sum()),
        global_batch_size=len(LENGTHS),
        loss_scale_factor=config.loss_scale_factor,
    )
    loss, _ = get_policy_loss_fn(config.policy_loss.loss_mode)(
        old_log_prob=old,
        log_prob=logps,
        advantages=advantages[:, None].expand_as(logps),
        response_mask=mask,
        loss_agg_mode=config.loss_agg_mode,
        config=config,
    )
    cut = lambda values: [row[:length] for row, length in zip(values, LENGTHS, strict=True)]  # noqa: E731
    expected = policy_loss(
        LOSSES[name],
        cut(logps),
        cut(old),
        advantages.tolist(),
        counts=counts.tolist(),
        tokens_per_update=int(mask.sum()),
        max_response_tokens=28,
    )
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    ours, theirs = (torch.autograd.grad(each, logps, retain_graph=True)[0] for each in (expected, loss))
    torch.testing.assert_close(theirs, ours, atol=1e-6, rtol=1e-6)


def test_an_entropy_bonus_is_verls_own() -> None:
    assert actor_config(LOSSES["dapo"]).entropy_coeff == 0
    bonus = {"algorithm.entropy": "{kind = 'bonus', coefficient = 0.01}"}
    assert actor_config(LOSSES["gspo"], **bonus).entropy_coeff == 0.01
