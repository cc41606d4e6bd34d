"""verl's losses as our recipes set them, against the equations that TRL's are held against."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from loss_equations import LOSSES, policy_loss
from test_verl_translate import translated
from verl_runs import needs_verl

from microcoder.train.algorithm.losses import Loss

pytestmark = needs_verl

OF_VERL = sorted(name for name, loss in LOSSES.items() if "verl" in loss.engines)
LENGTHS = [3, 7, 5, 2, 8, 4]


def actor_config(loss: Loss, **changes: str) -> Any:
    """Return verl's actor configuration of a recipe with this loss, as its workers get it."""
    from verl.utils.config import omega_conf_to_dataclass

    options = {f"algorithm.loss.{name}": str(value) for name, value in loss if value is not None}
    whole_update = {"batch.micro_batch_rollouts": "32"} if loss.kind == "geo_mean" else {}
    verl = translated(
        **{
            "rollout.length_stages": "[]",
            "algorithm.masking.leave_out_of": "gradient",
            **options,
            **whole_update,
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


def covariances(logps: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Each token's part of the covariance of advantage and log-prob, over the tokens in the loss."""
    spread = advantages[:, None].expand_as(logps)
    return (spread - spread[mask].mean()) * (logps - logps[mask].mean())


def test_clip_cov_and_kl_cov_touch_the_tokens_of_high_covariance_alone() -> None:
    from verl.trainer.ppo.core_algos import get_policy_loss_fn

    from microcoder.train.algorithm.losses import ClipCovLoss, KlCovLoss

    logps, old, advantages, _, mask = made_up(1)
    gradients = {}
    for loss in (
        LOSSES["dapo"],
        ClipCovLoss(kind="clip_cov", clip_high=0.28, share=1.0, covariance_low=0.2, covariance_high=50.0),
        LOSSES["gpg"],
        KlCovLoss(kind="kl_cov", share=0.2, coefficient=0.7),
    ):
        config = actor_config(loss)
        config.global_batch_info.update(dp_size=1, batch_num_tokens=int(mask.sum()), global_batch_size=len(LENGTHS))
        value, _ = get_policy_loss_fn(config.policy_loss.loss_mode)(
            old_log_prob=old,
            log_prob=logps,
            advantages=advantages[:, None].expand_as(logps),
            response_mask=mask,
            loss_agg_mode=config.loss_agg_mode,
            config=config,
        )
        gradients[loss.kind] = torch.autograd.grad(value, logps)[0] * int(mask.sum())
    covariance = covariances(logps.detach(), advantages, mask)
    drawn = mask & (covariance > 0.2) & (gradients["dapo"] != 0)
    assert bool(drawn.any())
    assert not bool((gradients["clip_cov"][drawn] != 0).any())
    torch.testing.assert_close(gradients["clip_cov"][~drawn], gradients["dapo"][~drawn])
    highest = torch.zeros_like(mask)
    places = mask.nonzero()[covariance[mask].topk(int(0.2 * int(mask.sum()))).indices]
    highest[places[:, 0], places[:, 1]] = True
    ratio = (logps - old).exp().detach()
    plain = -advantages[:, None] * ratio
    penalty = 0.7 * torch.sign(logps - old).detach()
    expected = torch.where(highest, plain + penalty, plain) * mask
    torch.testing.assert_close(gradients["kl_cov"], expected)


def test_what_verl_computes_otherwise_is_refused() -> None:
    from microcoder.judge.core.errors import ConfigError

    with pytest.raises(ConfigError, match=r"it would be too large; use --batch\.micro_batch_rollouts 32"):
        translated(**{"algorithm.loss": "geo_mean", "algorithm.masking.leave_out_of": "gradient"})


def test_an_entropy_bonus_is_verls_own() -> None:
    assert actor_config(LOSSES["dapo"]).entropy_coeff == 0
    bonus = {"algorithm.entropy": "{kind = 'bonus', coefficient = 0.01}"}
    assert actor_config(LOSSES["gspo"], **bonus).entropy_coeff == 0.01
