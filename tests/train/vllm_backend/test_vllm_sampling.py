"""vLLM in the training process: it samples with the weights, at the temperature and to the length it is told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from small_runs import build_trainer, rows_of, samples_of
from trl import GRPOTrainer
from vllm_runs import RECIPE, needs_vllm

from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.trl.adapter import set_sampling
from microcoder.train.trl.sampler import apart, start_sampler
from microcoder.train.trl.trainer import MicroCoderTrainer

pytestmark = [needs_vllm, pytest.mark.slow]


def build(checkpoint: Path, run: Path, judge: Judge, **changes: str) -> MicroCoderTrainer:
    config = load_config(
        TrainConfig, overrides={**RECIPE, "model.path": str(checkpoint), **changes}
    )
    return build_trainer(config, run, judge)


@pytest.fixture(scope="module")
def trainer(
    tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory, judge: Judge
) -> MicroCoderTrainer:
    """One for all tests of this file: vLLM takes long to load."""
    return build(tiny_checkpoint, tmp_path_factory.mktemp("trainer"), judge)


def sample(trainer: MicroCoderTrainer) -> tuple[Any, Any, Any]:
    """Return prompt ids, response ids, and the log-probs that vLLM reports."""
    set_sampling(trainer, temperature=1.0, max_response_tokens=24)
    prompts = [row["prompt"] for row in rows_of(trainer)]
    prompt_ids, completion_ids, _, _, logps, *_ = GRPOTrainer._generate(trainer, prompts)
    return prompt_ids, completion_ids, logps


@torch.no_grad()
def logits_of(trainer: MicroCoderTrainer, ids: list[int]) -> torch.Tensor:
    """Return the logits behind each token, by the weights that are trained."""
    base: Any = trainer.model
    hidden = base.model(input_ids=torch.tensor([ids], device=base.device)).last_hidden_state
    return base.lm_head(hidden)[0].double().cpu()


def assert_sampled_by(trainer: MicroCoderTrainer, sampled: tuple[Any, Any, Any]) -> None:
    for prompt, response, logps in zip(*sampled, strict=True):
        shares = torch.log_softmax(
            logits_of(trainer, [*prompt, *response])[len(prompt) - 1 : -1], -1
        )
        expected = shares.gather(-1, torch.tensor(response)[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(logps).double(), expected, atol=2e-4, rtol=0)


def test_it_samples_with_the_weights_of_the_update_before(trainer: MicroCoderTrainer) -> None:
    kept = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}  # type: ignore[union-attr]
    for _ in range(2):  # the second time is where vLLM's CPU backend has thrown its weights away
        before = sample(trainer)
        with torch.no_grad():
            for weight in trainer.model.parameters():  # type: ignore[union-attr]
                weight.add_(
                    0.05 * weight.std() * torch.randn_like(weight) if weight.numel() > 1 else 0
                )
        with pytest.raises(AssertionError):
            assert_sampled_by(trainer, before)
        trainer.state.global_step += 1
        assert_sampled_by(trainer, sample(trainer))
    trainer.model.load_state_dict(kept)  # type: ignore[union-attr]
    trainer.state.global_step = 0


def test_a_response_ends_at_any_end_token_and_holds_it(trainer: MicroCoderTrainer) -> None:
    _, responses, _ = sample(trainer)
    tokens = [token for response in responses for token in response[1:-1]]
    frequent = max(set(tokens), key=tokens.count)
    own = list(trainer.eos_token_ids)
    assert not any(end in tokens for end in own)
    try:
        trainer.eos_token_ids = [*own, frequent]
        start_sampler(trainer)
        _, responses, _ = sample(trainer)
    finally:
        trainer.eos_token_ids = own
        start_sampler(trainer)
    ends = {*own, frequent}
    assert any(response[-1] == frequent for response in responses)
    assert not any(token in ends for response in responses for token in response[:-1])
    assert all(response[-1] in ends or len(response) == 24 for response in responses)


def test_what_a_step_learns_from_is_what_vllm_sampled(trainer: MicroCoderTrainer) -> None:
    trainer.state.global_step = 0
    output = trainer._generate_and_score_completions(rows_of(trainer))
    scored = samples_of(trainer)
    masks = output["completion_mask"].bool()
    ids = [
        tuple(row[mask].tolist()) for row, mask in zip(output["completion_ids"], masks, strict=True)
    ]
    assert ids == [sample.rollout.token_ids for sample in scored]
    ends = set(trainer.eos_token_ids)
    assert [sample.rollout.is_truncated for sample in scored] == [
        row[-1] not in ends for row in ids
    ]
    assert {sample.rollout.is_truncated for sample in scored} == {True, False}
    assert output["advantages"].tolist() == pytest.approx([sample.advantage for sample in scored])
    # float32 on both sides: next to no mismatch, and every token's loss counts once.
    assert all(sample.mismatch and sample.mismatch.logp_difference < 1e-4 for sample in scored)
    torch.testing.assert_close(
        output["importance_sampling_ratio"][masks].cpu(),
        torch.ones(int(masks.sum())),
        atol=1e-3,
        rtol=0,
    )


def test_held_out_samples_have_random_numbers_of_their_own(trainer: MicroCoderTrainer) -> None:
    def held_out(seed: int) -> list[Any]:
        groups = trainer._sample_apart(
            trainer.heldout_tasks, num_samples=2, temperature=1.0, limit=24, seed=seed
        )
        return [s.rollout.token_ids for group in groups for s in group]

    first = held_out(7)
    sample(trainer)  # training goes on
    state, numpy_state = torch.get_rng_state(), np.random.get_state()
    expected = np.random.random()
    np.random.set_state(numpy_state)
    assert held_out(7) == first
    assert held_out(8) != first
    assert torch.equal(torch.get_rng_state(), state)
    assert np.random.random() == expected


def test_the_seed_of_the_run_decides_what_vllm_samples(trainer: MicroCoderTrainer) -> None:
    drawn = []
    for seed in (0, 0, 1):
        trainer.args.seed = seed
        start_sampler(trainer)
        drawn.append(sample(trainer)[1])
    assert drawn[0] == drawn[1] != drawn[2]
    with apart(trainer, seed=3):
        other = sample(trainer)[1]
    assert other not in drawn


NUM_DRAWS = 4096


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("backend", ["vllm", "transformers"])
def test_both_samplers_draw_from_the_trainers_distribution(
    trainer: MicroCoderTrainer,
    tiny_checkpoint: Path,
    tmp_path: Path,
    judge: Judge,
    backend: str,
    temperature: float,
) -> None:
    """First tokens of one prompt by a chi-square; the seeds are fixed, so that it passes always or never."""
    sampler = trainer
    if backend == "transformers":
        sampler = build(tiny_checkpoint, tmp_path, judge, **{"rollout.backend": backend})
    (ids, *_), images, fields = sampler._tokenize_prompts([trainer.train_dataset[0]["prompt"]])  # type: ignore[index]
    # Where many tokens may follow, and a temperature that is a fifth off shows most: an even choice hardly knows one.
    begins = [ids[:end] for end in range(1, len(ids) + 1)]
    logits = [logits_of(sampler, begin)[-1] / temperature for begin in begins]
    shares = [[torch.softmax(one / factor, -1) for factor in (1, 1.2)] for one in logits]
    is_open = [int((NUM_DRAWS * right >= 5).sum()) > 6 for right, _ in shares]
    shows = [float(((wrong - right) ** 2 / wrong).sum()) for right, wrong in shares]
    place = max(range(len(begins)), key=lambda place: (is_open[place], shows[place]))
    prompt, (expected, wrong) = begins[place], shares[place]
    set_sampling(sampler, temperature=temperature, max_response_tokens=1)
    start_sampler(sampler)
    with apart(sampler, seed=11):
        drawn, _ = sampler._generate_single_turn([prompt] * NUM_DRAWS, images, fields, 4)
    counts = torch.bincount(
        torch.tensor([first for (first,) in drawn]), minlength=len(expected)
    ).double()
    due = NUM_DRAWS * expected
    # The rarest with five draws due goes with all that are rarer, so that five are due together, however few are rarer.
    is_own = due > due[due >= 5].min()
    seen, due = (
        torch.cat([values[is_own], values[~is_own].sum()[None]]) for values in (counts, due)
    )
    assert len(seen) > 5, "nearly one token alone is ever drawn, so the test shows little"
    assert due.min() >= 5
    assert chisquare(seen.numpy(), due.numpy()).pvalue > 1e-3
    due = NUM_DRAWS * torch.cat([wrong[is_own], wrong[~is_own].sum()[None]])
    assert chisquare(seen.numpy(), due.numpy()).pvalue < 1e-3
