"""vLLM in the training process: it samples with the weights,
at the temperature and to the length it is told.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from trl import GRPOTrainer

from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.trl.adapter import set_sampling
from microcoder.train.trl.sampler import apart, start_sampler
from microcoder.train.trl.trainer import MicroCoderTrainer
from tests.train.small_runs import build_trainer, rows_of, samples_of
from tests.train.vllm_backend.vllm_runs import RECIPE, needs_vllm

pytestmark = [needs_vllm, pytest.mark.slow]


def build(checkpoint: Path, run: Path, judge: Judge, **changes: str) -> MicroCoderTrainer:
    config = load_config(
        TrainConfig, overrides={**RECIPE, "model.path": str(checkpoint), **changes}
    )
    return build_trainer(config, run, judge)


@pytest.fixture(scope="module")
def trainer(
    tiny_checkpoint: Path,
    tmp_path_factory: pytest.TempPathFactory,
    judge: Judge,
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
    model: Any = trainer.model
    kept = {name: weight.clone() for name, weight in model.state_dict().items()}
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
    tokens = []
    for response in responses:
        tokens.extend(response[1:-1])
    frequent = max(set(tokens), key=tokens.count)
    own = list(trainer.eos_token_ids)
    for end in own:
        assert end not in tokens
    try:
        trainer.eos_token_ids = [*own, frequent]
        start_sampler(trainer)
        _, responses, _ = sample(trainer)
    finally:
        trainer.eos_token_ids = own
        start_sampler(trainer)
    ends = {*own, frequent}
    assert any(response[-1] == frequent for response in responses)
    for response in responses:
        for token in response[:-1]:
            assert token not in ends
    for response in responses:
        assert response[-1] in ends or len(response) == 24


def test_what_a_step_learns_from_is_what_vllm_sampled(trainer: MicroCoderTrainer) -> None:
    trainer.state.global_step = 0
    output = trainer._generate_and_score_completions(rows_of(trainer))
    scored = samples_of(trainer)
    masks = output["completion_mask"].bool()
    ids = []
    for row, mask in zip(output["completion_ids"], masks, strict=True):
        ids.append(tuple(row[mask].tolist()))
    assert ids == [sample.rollout.token_ids for sample in scored]
    ends = set(trainer.eos_token_ids)
    assert [sample.rollout.is_truncated for sample in scored] == [
        row[-1] not in ends for row in ids
    ]
    assert {sample.rollout.is_truncated for sample in scored} == {True, False}
    assert output["advantages"].tolist() == pytest.approx([sample.advantage for sample in scored])
    # float32 on both sides: next to no mismatch, and every token's loss counts once.
    for sample in scored:
        assert sample.mismatch
        assert sample.mismatch.logp_difference < 1e-4
    torch.testing.assert_close(
        output["importance_sampling_ratio"][masks].cpu(),
        torch.ones(int(masks.sum())),
        atol=1e-3,
        rtol=0,
    )


def test_held_out_samples_have_random_numbers_of_their_own(trainer: MicroCoderTrainer) -> None:
    def held_out(seed: int) -> list[Any]:
        groups = trainer._sample_apart(
            trainer.heldout_tasks,
            num_samples=2,
            temperature=1.0,
            limit=24,
            seed=seed,
        )
        responses = []
        for group in groups:
            for s in group:
                responses.append(s.rollout.token_ids)
        return responses

    first = held_out(7)
    sample(trainer)  # training goes on
    state = torch.get_rng_state()
    numpy_state = np.random.get_state()
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
"""Tokens that are drawn for a chi-square."""


class Beginning(NamedTuple):
    """Where a prompt is cut off, and how its next token is distributed."""

    prompt: list[int]
    expected: torch.Tensor
    """Shares at the temperature that is asked for."""
    wrong: torch.Tensor
    """Shares at a temperature that is a fifth off."""

    def rank(self) -> tuple[bool, float]:
        """Return whether many tokens may follow, and how well a wrong temperature would show.

        An even choice hardly knows a temperature.
        """
        is_open = int((NUM_DRAWS * self.expected >= 5).sum()) > 6
        shows = float(((self.wrong - self.expected) ** 2 / self.wrong).sum())
        return is_open, shows


def list_beginnings(
    sampler: MicroCoderTrainer, ids: list[int], temperature: float
) -> list[Beginning]:
    """Return every beginning of a prompt."""
    beginnings = []
    for end in range(1, len(ids) + 1):
        logits = logits_of(sampler, ids[:end])[-1] / temperature
        expected = torch.softmax(logits, -1)
        wrong = torch.softmax(logits / 1.2, -1)
        beginnings.append(Beginning(ids[:end], expected, wrong))
    return beginnings


def join_rarest(values: torch.Tensor, is_own: torch.Tensor) -> torch.Tensor:
    """Return the values of tokens that are counted by themselves, and the sum of all others."""
    return torch.cat([values[is_own], values[~is_own].sum()[None]])


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
    """First tokens of one prompt by a chi-square; the seeds are fixed,
    so that it passes always or never.
    """
    sampler = trainer
    if backend == "transformers":
        sampler = build(tiny_checkpoint, tmp_path, judge, **{"rollout.backend": backend})
    dataset: Any = trainer.train_dataset
    (ids, *_), images, fields = sampler._tokenize_prompts([dataset[0]["prompt"]])
    prompt, expected, wrong = max(list_beginnings(sampler, ids, temperature), key=Beginning.rank)
    set_sampling(sampler, temperature=temperature, max_response_tokens=1)
    start_sampler(sampler)
    with apart(sampler, seed=11):
        drawn, _ = sampler._generate_single_turn([prompt] * NUM_DRAWS, images, fields, 4)
    first_tokens = torch.tensor([first for (first,) in drawn])
    counts = torch.bincount(first_tokens, minlength=len(expected)).double()
    due = NUM_DRAWS * expected
    # The rarest with five draws due goes with all that are rarer, so that five are due together,
    # however few are rarer.
    is_own = due > due[due >= 5].min()
    seen = join_rarest(counts, is_own)
    due = join_rarest(due, is_own)
    assert len(seen) > 5, "nearly one token alone is ever drawn, so the test shows little"
    assert due.min() >= 5
    assert chisquare(seen.numpy(), due.numpy()).pvalue > 1e-3
    due = NUM_DRAWS * join_rarest(wrong, is_own)
    assert chisquare(seen.numpy(), due.numpy()).pvalue < 1e-3
