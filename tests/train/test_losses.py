"""TRL as our recipes set it: sampled steps against the losses' equations in float64,
and against plain TRL.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from transformers import AutoModelForCausalLM
from trl import GRPOTrainer

from microcoder.judge import Judge
from microcoder.judge.core.errors import TrainingError
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.train.algorithm.config import AlgorithmConfig, DapoLoss, GspoLoss
from microcoder.train.algorithm.masking import ConditionalMasking, MaskAll, NoMasking
from microcoder.train.algorithm.scoring import build_rules
from microcoder.train.trl.adapter import set_sampling
from microcoder.train.trl.engine import translate_loss
from microcoder.train.trl.trainer import MicroCoderTrainer
from tests.train.loss_equations import (
    LOSSES,
    Rows,
    gradient_error,
    largest_change,
    policy_loss,
    read_responses,
    reduce_rows,
    token_losses,
    update_both,
)
from tests.train.small_runs import build_small, rows_of, samples_of

TEMPERATURE = 0.8


class FaultySandbox:
    """A judge whose machine fails on every fifth program."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge(
        self, programs: Sequence[Program], problems: Sequence[Problem], **options: Any
    ) -> list[Verdict]:
        verdicts = self._judge.judge(programs, problems, **options)
        changed = []
        for n, one in enumerate(verdicts):
            # With groups of four: sometimes one, sometimes none is unscored.
            changed.append(Verdict(Outcome.SANDBOX_FAULT, (), 0) if n % 5 == 3 else one)
        return changed


@pytest.fixture(scope="module")
def trainer(
    tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MicroCoderTrainer]:
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
    trainer.epsilon_low, trainer.epsilon_high = (
        arguments.get("epsilon", 0.2),
        arguments.get("epsilon_high", 0.2),
    )
    # `[trl] entropy_coef`.
    trainer.entropy_coef = entropy
    trainer._entropy_bonus_enabled = entropy != 0


def passes_a_step(trainer: MicroCoderTrainer) -> float:
    """TRL's window is one backward pass of a step's many;
    gradient accumulation adds them up to the update.
    """
    return trainer.batches.rollouts_per_step / trainer.config.batch.micro_batch_rollouts


@pytest.fixture(scope="module")
def exact(tiny_checkpoint: Path) -> Any:
    """Plain transformers, in float64, where the trainer is."""
    model = AutoModelForCausalLM.from_pretrained(tiny_checkpoint).double()
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def advantages_by_hand(trainer: MicroCoderTrainer, algorithm: AlgorithmConfig) -> list[float]:
    """Equation 2 of each sampled response (Dr. GRPO: without the std),
    from its reward and whether it was masked.
    """
    leave_out_of = algorithm.masking.excluded_from
    found = []
    for group in trainer._scored_P_G:
        has_no_baseline = []
        for one in group:
            has_no_baseline.append(leave_out_of == "baseline" and bool(one.masked_why))
        rewards = []
        for one, out in zip(group, has_no_baseline, strict=True):
            rewards.append(None if out else one.reward)
        known = torch.tensor(
            [reward for reward in rewards if reward is not None], dtype=torch.float64
        )
        if algorithm.advantage == "dr_grpo":
            std = 1.0
        else:
            std = float(known.std(correction=int(len(known) > 1))) + 1e-6
        for one, reward in zip(group, rewards, strict=True):
            is_zero = reward is None or bool(one.masked_why) or len(known) < 2
            found.append(0.0 if is_zero else (reward - float(known.mean())) / std)
    return found


def read_rows(
    model: Any,
    batch: Mapping[str, torch.Tensor],
    lengths: Sequence[int],
) -> tuple[Rows, Rows]:
    """Return log-probs and entropies of each response's tokens."""
    rows = zip(batch["prompt_ids"], batch["prompt_mask"].bool(), strict=True)
    responses = [ids[:length] for ids, length in zip(batch["completion_ids"], lengths, strict=True)]
    return read_responses(model, [ids[mask] for ids, mask in rows], responses, TEMPERATURE)


def sample_step(
    trainer: MicroCoderTrainer,
    exact: Any,
    checkpoint: Path,
    algorithm: AlgorithmConfig,
) -> dict[str, Any]:
    """Return a sampled and scored step of five problems,
    both models being at the weights that sampled it.
    """
    start = AutoModelForCausalLM.from_pretrained(checkpoint).state_dict()
    for model in (trainer.model, exact):
        model.load_state_dict(start)  # type: ignore[union-attr]
        model.zero_grad()  # type: ignore[union-attr]
    trainer.config = trainer.config.model_copy(update={"algorithm": algorithm})
    trainer.rules = build_rules(algorithm, max_response_tokens=trainer.rules.max_response_tokens)
    trainer.beta = 0.0  # no reference model was loaded: the KL term is to the weights that sample
    torch.manual_seed(1)
    rows = rows_of(trainer, 5)
    batch = trainer._generate_and_score_completions(rows)
    assert [one.rollout.problem_id for one in samples_of(trainer)] == [
        row["problem_id"] for row in rows
    ]
    return batch


CASES = {
    "cispo": ("baseline", 0.04, 0.05),
    "dapo": ("denominator", 0.04, 0.05),
    "dr_grpo": ("gradient", 0.0, 0.0),
    "grpo": ("gradient", 0.04, 0.0),
    "gspo": ("gradient", 0.0, 0.0),
    "luspo": ("gradient", 0.0, 0.0),
    "sapo": ("gradient", 0.04, 0.05),
}
"""For each loss what masked responses are left out of,
and the coefficients of its KL and entropy terms.
"""


def count_rows_of_passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of rows of every further pass of TRL's loss."""
    rows_seen: list[int] = []
    plain = GRPOTrainer._compute_loss

    def count_rows(self: GRPOTrainer, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        rows_seen.append(len(inputs["advantages"]))
        return plain(self, model, inputs)

    monkeypatch.setattr(GRPOTrainer, "_compute_loss", count_rows)
    return rows_seen


class Step(NamedTuple):
    """A sampled and scored step, as both models learn from it."""

    batch: dict[str, Any]
    lengths: list[int]
    counts: list[bool]
    """Whether a response counts in the loss's denominator."""
    advantages: list[float]
    old: list[torch.Tensor]
    """The log-probs of the weights that sampled."""


def read_step(
    trainer: MicroCoderTrainer, exact: Any, batch: dict[str, Any], algorithm: AlgorithmConfig
) -> Step:
    """Return a step with what the equation needs of it, read at the weights that sampled."""
    samples = samples_of(trainer)
    lengths = [len(sample.rollout.token_ids) for sample in samples]
    counts = [sample.counts for sample in samples]
    with torch.no_grad():
        old, _ = read_rows(exact, batch, lengths)
    return Step(batch, lengths, counts, advantages_by_hand(trainer, algorithm), old)


def update_on(
    trainer: MicroCoderTrainer, exact: Any, step: Step, algorithm: AlgorithmConfig, entropy: float
) -> float:
    """Hold the trainer's gradient against the equation's, and update both models by it.

    Returns:
        How far the log-probs had moved from those of the weights that sampled.
    """
    model: Any = trainer.model
    set_loss(trainer, algorithm, entropy)
    model.zero_grad()
    exact.zero_grad()
    trainer._compute_loss(model, dict(step.batch)).backward()
    logps, entropies = read_rows(exact, step.batch, step.lengths)
    num_counted = sum(compress(step.lengths, step.counts))
    loss = policy_loss(
        algorithm.loss,
        logps,
        step.old,
        step.advantages,
        counts=step.counts,
        kl_coefficient=algorithm.kl_coefficient,
        tokens_per_update=num_counted / passes_a_step(trainer),
        max_response_tokens=trainer.rules.max_response_tokens,
    )
    bonus = entropy * torch.cat([*compress(entropies, step.counts)]).mean()
    (loss - bonus).backward()
    assert gradient_error(model, exact) < 1e-5
    moved = largest_change(logps, step.old)
    update_both(model, exact, 0.4)
    return moved


@pytest.mark.parametrize("name", LOSSES)
def test_two_updates_on_one_batch_have_the_gradient_of_the_equation(
    trainer: MicroCoderTrainer,
    exact: Any,
    tiny_checkpoint: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With weights of the sampler, and, with its terms, an update later: to 1e-5,
    the trainer being in float32.

    Without the terms rows of no advantage are left out of the pass, which changes nothing.
    """
    leave_out_of, beta, bonus = CASES[name]
    masking = ConditionalMasking.model_validate(
        {"rho": 0.7, "repeat_window_tokens": 4, "leave_out_of": leave_out_of}
    )
    algorithm = AlgorithmConfig(loss=LOSSES[name], masking=masking)
    batch = sample_step(trainer, exact, tiny_checkpoint, algorithm)
    samples = samples_of(trainer)
    rows_seen = count_rows_of_passes(monkeypatch)
    step = read_step(trainer, exact, batch, algorithm)
    assert batch["advantages"].tolist() == pytest.approx(step.advantages, abs=1e-6)
    assert any(sample.masked_why for sample in samples)
    assert any(sample.reward is None for sample in samples)
    assert all(step.counts) == (leave_out_of == "gradient")
    batch["ref_per_token_logps"] = batch["old_per_token_logps"]
    without = algorithm.model_copy(update={"kl_coefficient": 0.0})
    assert update_on(trainer, exact, step, without, 0.0) < 1e-9
    with_terms = algorithm.model_copy(update={"kl_coefficient": beta})
    moved = update_on(trainer, exact, step, with_terms, bonus)
    assert moved > 0.3, "no ratio came near a clip"
    num_teaching = sum(map(bool, step.advantages))
    if beta or bonus:
        num_with_terms = len(samples)
    else:
        num_with_terms = num_teaching
    assert 0 < num_teaching < len(samples)
    assert rows_seen == [num_teaching, num_with_terms]


def count_clipped(
    loss: DapoLoss | GspoLoss,
    new: Sequence[torch.Tensor],
    old: Sequence[torch.Tensor],
    advantages: Sequence[float],
) -> tuple[int, int]:
    """Return how many ratios are clipped below and above: of tokens, or of responses under GSPO."""
    num_low = 0
    num_high = 0
    for now, before, advantage in zip(new, old, advantages, strict=True):
        difference = now - before
        if isinstance(loss, GspoLoss):
            difference = difference.mean()[None]
        ratio = difference.exp()
        if advantage < 0:
            num_low += int((ratio < 1 - loss.clip_low).sum())
        if advantage > 0:
            num_high += int((ratio > 1 + loss.clip_high).sum())
    return num_low, num_high


@pytest.mark.parametrize("loss", [DapoLoss(), GspoLoss(kind="gspo", clip_low=0.01, clip_high=0.01)])
def test_clip_shares_and_entropy_do_not_hang_on_the_size_of_a_pass(
    trainer: MicroCoderTrainer,
    exact: Any,
    tiny_checkpoint: Path,
    loss: DapoLoss | GspoLoss,
) -> None:
    """Shares of all tokens of the update, of all responses for a response's ratio;
    the entropy of those that teach.
    """
    algorithm = AlgorithmConfig(loss=loss, masking=NoMasking(kind="none"))
    batch = sample_step(trainer, exact, tiny_checkpoint, algorithm)
    samples = samples_of(trainer)
    lengths = [len(one.rollout.token_ids) for one in samples]
    advantages = advantages_by_hand(trainer, algorithm)
    set_loss(trainer, algorithm)
    with torch.no_grad():
        old, _ = read_rows(exact, batch, lengths)
    # Far enough that ratios are clipped on both sides.
    exact.zero_grad()
    trainer._compute_loss(trainer.model, dict(batch)).backward()
    logps, _ = read_rows(exact, batch, lengths)
    policy_loss(
        loss,
        logps,
        old,
        advantages,
        counts=[True] * len(samples),
        tokens_per_update=float(sum(lengths)),
        max_response_tokens=28,
    ).backward()
    update_both(trainer.model, exact, 0.4)
    with torch.no_grad():
        new, entropies = read_rows(exact, batch, lengths)
    num_low, num_high = count_clipped(loss, new, old, advantages)
    whole = len(samples) if isinstance(loss, GspoLoss) else sum(lengths)
    teaching = [*compress(entropies, advantages)]
    trainer._metrics["train"].clear()
    trainer.take_shares()
    for rows_a_pass in (20, 5, 2, 1):
        with torch.no_grad():
            for rows in torch.arange(20).split(rows_a_pass):
                trainer._compute_loss(trainer.model, cut_rows(batch, rows))
        shares = trainer.take_shares()
        assert shares["clip_ratio/low_mean"] == pytest.approx(num_low / whole)
        assert shares["clip_ratio/high_mean"] == pytest.approx(num_high / whole)
        assert shares["entropy"] == pytest.approx(float(torch.cat(teaching).mean()), rel=1e-4)
    assert num_low + num_high > 0


def test_the_tokens_of_highest_entropy_are_chosen_among_all_rows(
    trainer: MicroCoderTrainer,
    exact: Any,
    tiny_checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also among those of rows that teach nothing."""
    algorithm = AlgorithmConfig(masking=NoMasking(kind="none"))
    batch = sample_step(trainer, exact, tiny_checkpoint, algorithm)
    monkeypatch.setattr(trainer, "top_entropy_quantile", 0.25)
    set_loss(trainer, algorithm)
    trainer._compute_loss(trainer.model, dict(batch)).backward()
    lengths = [len(one.rollout.token_ids) for one in samples_of(trainer)]
    logps, entropies = read_rows(exact, batch, lengths)
    least = torch.quantile(torch.cat(entropies).detach(), 0.75)
    rows = []
    for now, entropy, advantage in zip(
        logps,
        entropies,
        advantages_by_hand(trainer, algorithm),
        strict=True,
    ):
        rows.append(
            token_losses(algorithm.loss, now, now.detach(), advantage) * (entropy.detach() >= least)
        )
    divided = {
        "tokens_per_update": sum(lengths) / passes_a_step(trainer),
        "max_response_tokens": 28,
    }
    reduce_rows(algorithm.loss, rows, **divided).backward()  # type: ignore[arg-type]
    assert gradient_error(trainer.model, exact) < 1e-5


OUT_OF_THE_DENOMINATOR = AlgorithmConfig(masking=MaskAll(kind="all", leave_out_of="denominator"))


def test_out_of_the_denominator_is_what_trl_users_run(
    trainer: MicroCoderTrainer,
    exact: Any,
    tiny_checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same step by TRL's mask_truncated_completions; its advantages are ours,
    since its std has another epsilon.
    """
    ours = sample_step(trainer, exact, tiny_checkpoint, OUT_OF_THE_DENOMINATOR)
    monkeypatch.setattr(trainer, "mask_truncated_completions", True)
    theirs = sample_step(
        trainer,
        exact,
        tiny_checkpoint,
        AlgorithmConfig(masking=NoMasking(kind="none")),
    )
    assert "tool_mask" not in theirs
    assert theirs["num_items_in_batch"] == ours["num_items_in_batch"]
    assert bool((theirs["advantages"] != ours["advantages"]).any()), (
        "nothing truncated had an advantage"
    )
    set_loss(trainer, OUT_OF_THE_DENOMINATOR)
    our_losses, their_losses = (
        torch.stack(
            [
                loss_of(trainer, trainer.model, cut_rows(step, rows))
                for rows in torch.arange(20).split(5)
            ]
        )
        for loss_of, step in (
            (MicroCoderTrainer._compute_loss, ours),
            (GRPOTrainer._compute_loss, theirs),
        )
    )
    torch.testing.assert_close(our_losses, their_losses, atol=1e-6, rtol=1e-5)


def cut_rows(step: dict[str, Any], rows: Any) -> dict[str, Any]:
    """Return some rows of a step; a figure of the whole step has none."""
    cut = {}
    for name, value in step.items():
        cut[name] = value[rows] if value.ndim else value
    return cut


def test_a_pass_of_masked_responses_alone_teaches_nothing(
    trainer: MicroCoderTrainer,
    exact: Any,
    tiny_checkpoint: Path,
) -> None:
    """KL and entropy terms go with the tokens, and there is a gradient, of zeros."""
    output = sample_step(trainer, exact, tiny_checkpoint, OUT_OF_THE_DENOMINATOR)
    masked = ~torch.tensor([sample.counts for sample in samples_of(trainer)])
    set_loss(trainer, OUT_OF_THE_DENOMINATOR, 0.5)
    loss = trainer._compute_loss(trainer.model, cut_rows(output, masked))
    loss.backward()
    assert loss.item() == 0
    model: Any = trainer.model
    gradients = []
    for weight in model.parameters():
        if weight.grad is not None:
            gradients.append(weight.grad)
    assert gradients
    for gradient in gradients:
        assert not bool(gradient.any())


def reference_logps(
    model: Any,
    ids: torch.Tensor,
    mask: torch.Tensor,
    temperature: float,
) -> torch.Tensor:
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float() / temperature
    return torch.log_softmax(logits, -1).gather(-1, ids[:, 1:, None])[..., 0]


@pytest.mark.parametrize(
    "changes",
    [
        {
            "model.compute_dtype": "bfloat16",
            "model.dtype": "bfloat16",
            "algorithm.kl_coefficient": "0.1",
        },
        {"model.compute_dtype": "bfloat16", "model.lora.rank": "4"},
    ],
    ids=["bf16 weights, kl", "bf16, lora"],
)
def test_logps_in_bfloat16_follow_the_sampling_temperature(
    tiny_checkpoint: Path,
    tmp_path: Path,
    judge: Judge,
    changes: dict[str, str],
) -> None:
    trainer = build_small(tiny_checkpoint, tmp_path, judge, **changes)
    # Another shape rounds otherwise in bfloat16: without padding to trim, the shapes are the same.
    ids = torch.randint(10, 300, (6, 32), generator=torch.Generator().manual_seed(0)).to(
        trainer.accelerator.device
    )
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


def test_an_update_that_diverges_is_of_the_step_that_it_is_in(
    trainer: MicroCoderTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step has two updates."""
    for update, step in ((1, 1), (2, 1), (3, 2)):
        monkeypatch.setattr(trainer.state, "global_step", update)
        with pytest.raises(TrainingError, match=f"loss is nan in step {step};"):
            trainer.log({"loss": float("nan")})
