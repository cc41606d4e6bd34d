"""TRL's losses as our recipes set them: made-up and sampled steps against the equations in float64, and plain TRL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from loss_equations import LOSSES, policy_loss, reduce_rows, token_losses
from small_runs import build_small, rows_of, samples_of
from transformers import AutoModelForCausalLM
from trl import GRPOTrainer

from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.train.algorithm.config import AlgorithmConfig, GspoLoss, Loss, LuspoLoss
from microcoder.train.algorithm.masking import ConditionalMasking
from microcoder.train.algorithm.scoring import build_rules
from microcoder.train.rollouts import measure_doses
from microcoder.train.trl.clipping import note_clipped, translate_loss
from microcoder.train.trl.trainer import MicroCoderTrainer

PROMPT_TOKENS = 2
TEMPERATURE = 0.8


class FaultySandbox:
    """A judge whose machine fails on every fifth program."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge(self, programs: Sequence[Program], problems: Sequence[Problem], **options: Any) -> list[Verdict]:
        verdicts = self._judge.judge(programs, problems, **options)
        return [Verdict(Outcome.SANDBOX_FAULT, (), 0) if n % 5 == 3 else one for n, one in enumerate(verdicts)]


@pytest.fixture(scope="module")
def trainer(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MicroCoderTrainer]:
    with Judge(workers=1) as judge:
        changes = {"rollout.temperature.value": str(TEMPERATURE)}
        trainer = build_small(tiny_checkpoint, tmp_path_factory.mktemp("run"), judge, **changes)
        trainer.judge = FaultySandbox(judge)  # type: ignore[assignment]
        yield trainer


def set_loss(trainer: MicroCoderTrainer, algorithm: AlgorithmConfig, entropy: float = 0.0) -> None:
    """Give a trainer another loss than that it was built with."""
    arguments = translate_loss(algorithm)
    for name, value in arguments.items():
        setattr(trainer.args, name, value)
    trainer.loss_type, trainer.beta = arguments["loss_type"], algorithm.kl_coefficient
    trainer.importance_sampling_level = arguments["importance_sampling_level"]
    trainer.epsilon_low, trainer.epsilon_high = arguments.get("epsilon", 0.2), arguments.get("epsilon_high", 0.2)
    # `[trl] entropy_coef`.
    trainer.entropy_coef, trainer._entropy_bonus_enabled = entropy, entropy != 0


def whole_loss(
    algorithm: AlgorithmConfig,
    logps: Sequence[torch.Tensor],
    old: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
    entropies: Sequence[torch.Tensor],
    *,
    advantages: list[float],
    counts: list[bool],
    entropy: float = 0.0,
    **divided: Any,
) -> torch.Tensor:
    """Return the equation's loss with its KL and entropy terms; each row is as long as its response."""
    loss = policy_loss(algorithm.loss, [*logps], [*old], advantages, counts=counts, **divided)
    kl = [c * ((r - now).exp() - (r - now) - 1) for now, r, c in zip(logps, reference, counts, strict=True)]
    loss = loss + algorithm.kl_coefficient * reduce_rows(algorithm.loss, kl, **divided)
    counted = [row for row, is_counted in zip(entropies, counts, strict=True) if is_counted]
    if entropy and counted:
        loss = loss - entropy * torch.cat(counted).mean()
    return loss


def passes_a_step(trainer: MicroCoderTrainer) -> float:
    """TRL's window is one backward pass of a step's many; gradient accumulation adds them up to the update."""
    return trainer.batches.rollouts_per_step / trainer.batches.micro_batch_rollouts


# ----- Made-up responses: the loss alone.


class GivenLogps(MicroCoderTrainer):
    """Takes log-probs and entropies as given instead of from a model."""

    given_logps: torch.Tensor
    given_entropies: torch.Tensor

    def _get_per_token_logps_and_entropies(self, model: Any, input_ids: torch.Tensor, *_: Any, **__: Any) -> Any:
        rows = input_ids[:, PROMPT_TOKENS]
        return self.given_logps[rows], self.given_entropies[rows], None


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

    def loss_by(
        self, trainer: MicroCoderTrainer, algorithm: AlgorithmConfig, entropy: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
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
        set_loss(trainer, algorithm, entropy)
        trainer.__class__ = GivenLogps
        trainer.given_logps, trainer.given_entropies = self.logps, self.entropies  # type: ignore[attr-defined]
        try:
            loss = trainer._compute_loss(trainer.model, inputs)
        finally:
            trainer.__class__ = MicroCoderTrainer
        return loss, self._gradient(loss)

    def loss_by_hand(
        self, trainer: MicroCoderTrainer, algorithm: AlgorithmConfig, entropy: float = 0.0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the equation's loss and its gradient."""
        rows = (
            [row[:length] for row, length in zip(values, self.lengths, strict=True)]
            for values in (self.logps, self.old, self.reference, self.entropies)
        )
        loss = whole_loss(
            algorithm,
            *rows,
            advantages=self.advantages.tolist(),
            counts=self.counts.tolist(),
            entropy=entropy,
            tokens_per_update=max(1, self.loss_mask.sum().item()) / passes_a_step(trainer),
            max_response_tokens=trainer.max_completion_length or 0,
        )
        return loss, self._gradient(loss)

    def _gradient(self, loss: torch.Tensor) -> torch.Tensor:
        if not loss.requires_grad:
            return torch.zeros_like(self.logps)
        (gradient,) = torch.autograd.grad(loss, self.logps)
        return gradient


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    name=st.sampled_from(sorted(LOSSES)),
    beta=st.sampled_from([0.0, 0.05]),
    entropy=st.sampled_from([0.0, 0.1]),
    seed=st.integers(0, 10_000),
)
def test_the_loss_is_the_equation(
    trainer: MicroCoderTrainer, lengths: list[int], name: str, beta: float, entropy: float, seed: int
) -> None:
    """Every loss, with rows left out of the pass and out of the denominator, value and gradient."""
    batch = Batch(lengths, seed)
    algorithm = AlgorithmConfig(loss=LOSSES[name], kl_coefficient=beta)
    loss, gradient = batch.loss_by(trainer, algorithm, entropy)
    expected, expected_gradient = batch.loss_by_hand(trainer, algorithm, entropy)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    torch.testing.assert_close(gradient, expected_gradient, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", sorted(LOSSES))
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


# ----- Sampled responses.


@pytest.mark.parametrize(
    "changes",
    [{"algorithm.loss": "grpo", "algorithm.kl_coefficient": "0.04"}, {"algorithm.advantage": "dr_grpo"}],
    ids=["grpo with kl", "dr_grpo"],
)
def test_without_our_additions_the_step_is_plain_trl(
    tiny_checkpoint: Path, tmp_path: Path, changes: dict[str, str]
) -> None:
    """The advantages and the loss of a sampled step, by TRL's own code and by ours."""
    plain_keys = {"algorithm.masking.kind": "none", "rollout.temperature.value": "0.5"}
    with Judge(workers=1) as judge:
        trainer = build_small(tiny_checkpoint, tmp_path, judge, **plain_keys, **changes)
        torch.manual_seed(0)
        batch = trainer._generate_and_score_completions(rows_of(trainer))
    plain_advantages = torch.tensor(list(trainer._logs["advantages"]))
    assert bool((plain_advantages != 0).any()), "all groups were flat: the test shows nothing"
    # TRL divides by std + 1e-4, we by std + 1e-6.
    torch.testing.assert_close(batch["advantages"], plain_advantages, rtol=5e-4, atol=1e-6)
    batch["old_per_token_logps"] = batch["old_per_token_logps"] - 0.3 * torch.rand_like(batch["old_per_token_logps"])
    plain = GRPOTrainer._compute_loss(trainer, trainer.model, {**batch, "advantages": plain_advantages})
    ours = trainer._compute_loss(trainer.model, batch)
    torch.testing.assert_close(ours, plain, rtol=5e-4, atol=1e-5)
    exact = GRPOTrainer._compute_loss(trainer, trainer.model, dict(batch))
    torch.testing.assert_close(ours, exact, rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def exact(tiny_checkpoint: Path) -> Any:
    """Plain transformers, in float64."""
    return AutoModelForCausalLM.from_pretrained(tiny_checkpoint).double()


def advantages_by_hand(trainer: MicroCoderTrainer, algorithm: AlgorithmConfig) -> list[float]:
    """Equation 2 of each sampled response (Dr. GRPO: without the std), from its reward and whether it was masked."""
    leave_out_of = algorithm.masking.excluded_from
    found = []
    for group in trainer._scored_P_G:
        has_no_baseline = [leave_out_of == "baseline" and bool(one.masked_why) for one in group]
        rewards = [None if out else one.reward for one, out in zip(group, has_no_baseline, strict=True)]
        known = torch.tensor([reward for reward in rewards if reward is not None], dtype=torch.float64)
        std = 1.0 if algorithm.advantage == "dr_grpo" else float(known.std(correction=int(len(known) > 1))) + 1e-6
        for one, reward in zip(group, rewards, strict=True):
            is_zero = reward is None or bool(one.masked_why) or len(known) < 2
            found.append(0.0 if is_zero else (reward - float(known.mean())) / std)
    return found


def read_rows(
    model: Any, batch: Mapping[str, torch.Tensor], lengths: Sequence[int]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return log-probs and entropies of each response's tokens, a response at a time and without padding."""
    logps, entropies = [], []
    for row, length in enumerate(lengths):
        prompt = batch["prompt_ids"][row][batch["prompt_mask"][row].bool()]
        ids = torch.cat([prompt, batch["completion_ids"][row][:length]])
        shares = torch.log_softmax(model(input_ids=ids[None]).logits[0, -length - 1 : -1] / TEMPERATURE, -1)
        logps.append(shares.gather(-1, ids[-length:, None])[:, 0])
        entropies.append(-(shares.exp() * shares).sum(-1))
    return logps, entropies


def gradient_of(model: Any) -> torch.Tensor:
    """Return all gradients as one vector; weights that share a tensor count once."""
    named = sorted((name, weight.grad) for name, weight in model.named_parameters())
    return torch.cat([grad.flatten().double() for _, grad in named])


def taken_by_clip(loss: Loss, now: torch.Tensor, then: torch.Tensor, advantage: float) -> float:
    """Return the share of -w A that is not in the loss's own gradient by the token, mean over a response's tokens."""
    if not advantage:
        return 0.0
    now = now.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(token_losses(loss, now, then, advantage).sum(), now)
    logs = (now - then).detach()
    ratios = (logs.mean() if isinstance(loss, GspoLoss | LuspoLoss) else logs).exp()
    return float((1 + gradient / (ratios * advantage)).mean())


KL: dict[str, Any] = {"kl_coefficient": 0.04}
BONUS = {"entropy": 0.05}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "cispo": ("baseline", {}),
    "dapo": ("denominator", KL | BONUS),
    "dapo, dual clip": ("gradient", BONUS),
    "dr_grpo": ("gradient", {}),
    "grpo": ("gradient", KL),
    "gspo": ("gradient", {}),
    "luspo": ("gradient", {}),
    "sapo": ("gradient", KL | BONUS),
}
"""For each loss what masked responses are left out of, and its terms."""


@pytest.mark.parametrize("name", LOSSES)
def test_two_updates_on_one_batch_have_the_gradient_of_the_equation(
    trainer: MicroCoderTrainer, exact: Any, tiny_checkpoint: Path, name: str
) -> None:
    """With weights of the sampler, and an update later: relative to 1e-5, the trainer being in float32."""
    model: Any = trainer.model
    leave_out_of, terms = CASES[name][0], dict(CASES[name][1])
    entropy = terms.pop("entropy", 0.0)
    start = AutoModelForCausalLM.from_pretrained(tiny_checkpoint).state_dict()
    model.load_state_dict(start)
    masking = ConditionalMasking(rho=0.7, repeat_window_tokens=4, leave_out_of=leave_out_of)  # type: ignore[arg-type]
    algorithm = AlgorithmConfig(loss=LOSSES[name], masking=masking, **terms)
    trainer.config = trainer.config.model_copy(update={"algorithm": algorithm})
    trainer.rules = build_rules(algorithm, max_response_tokens=trainer.rules.max_response_tokens)
    trainer.beta = 0.0  # no reference model was loaded: the KL term is to the weights that sample
    torch.manual_seed(1)
    rows = rows_of(trainer, 5)
    batch = trainer._generate_and_score_completions(rows)
    set_loss(trainer, algorithm, entropy)
    samples = samples_of(trainer)
    assert [sample.rollout.problem_id for sample in samples] == [row["problem_id"] for row in rows]
    lengths, counts = [len(one.rollout.token_ids) for one in samples], [one.counts for one in samples]
    advantages = advantages_by_hand(trainer, algorithm)
    assert batch["advantages"].tolist() == pytest.approx(advantages, abs=1e-6)
    assert any(one.masked_why for one in samples)
    assert any(one.reward is None for one in samples)
    assert all(counts) == (leave_out_of == "gradient")
    exact.load_state_dict(start)
    with torch.no_grad():
        old, _ = read_rows(exact, batch, lengths)
    batch["ref_per_token_logps"] = batch["old_per_token_logps"]
    counted = sum(n for n, is_counted in zip(lengths, counts, strict=True) if is_counted)
    divided = {
        "tokens_per_update": counted / passes_a_step(trainer),
        "max_response_tokens": trainer.rules.max_response_tokens,
    }
    furthest, doses = [], []
    for _ in range(2):
        model.zero_grad()
        exact.zero_grad()
        trainer._compute_loss(model, dict(batch)).backward()
        logps, entropies = read_rows(exact, batch, lengths)
        taken_by = {"advantages": advantages, "counts": counts, "entropy": entropy}
        whole_loss(algorithm, logps, old, old, entropies, **taken_by, **divided).backward()
        ours, theirs = gradient_of(model), gradient_of(exact)
        assert float((ours - theirs).norm() / theirs.norm()) < 1e-5
        taken = [taken_by_clip(algorithm.loss, *row) for row in zip(logps, old, advantages, strict=True)]
        noted = note_clipped(trainer._scored_P_G, trainer._clipped)
        lost = [one.lost.get("clip", 0.0) for group in noted for one in group]
        assert lost == pytest.approx([share * a for share, a in zip(taken, advantages, strict=True)], abs=1e-4)
        recorded = measure_doses([one for group in noted for one in group])
        total = sum(abs(a or one.lost.get("mask", 0.0)) for a, one in zip(advantages, samples, strict=True))
        doses.append([recorded.get(f"clip_{sign}", 0.0) for sign in ("positive", "negative")])
        assert doses[-1] == pytest.approx([sum(max(0.0, s * one) for one in lost) / total for s in (1, -1)])
        furthest.append(
            max(float((now.detach() - then).exp().sub(1).abs().max()) for now, then in zip(logps, old, strict=True))
        )
        with torch.no_grad():
            for weight, same in zip(model.parameters(), exact.parameters(), strict=True):
                weight -= (0.4 / theirs.norm() * same.grad).float()
                same.copy_(weight.double())
    assert furthest[0] < 1e-9
    assert sum(doses[0]) < 1e-6 < sum(doses[1]), "the clip took nothing, so the test shows nothing of its dose"
    assert furthest[1] > 0.3, "no ratio came near a clip"
