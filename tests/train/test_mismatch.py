"""What sampler and trainer disagree about, and what is done about it."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from microcoder.judge.core.config import load_config
from microcoder.train.algorithm.sampling import MismatchConfig
from microcoder.train.algorithm.scoring import note_mismatch
from microcoder.train.metrics import summarise_mismatch
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.rollouts import SamplerMismatch
from microcoder.train.run.mismatch import correct_mismatch
from microcoder.train.trl.vllm import vllm_arguments
from tests.train.small_runs import scored

ROWS = st.lists(st.lists(st.floats(-3, 3), min_size=1, max_size=5), min_size=1, max_size=4)


@given(
    rows=ROWS,
    correction=st.sampled_from(["token", "sequence", "geometric"]),
    mode=st.sampled_from(["truncate", "mask"]),
    threshold=st.floats(1.01, 5),
    lower=st.floats(0, 0.99),
)
def test_every_rule_is_its_equation_a_response_at_a_time(
    rows: list[list[float]],
    correction: Any,
    mode: Any,
    threshold: float,
    lower: float,
) -> None:
    settings = MismatchConfig(
        correction=correction,
        mode=mode,
        threshold=threshold,
        lower_threshold=lower,
    )
    # Padding has a log-prob of 7: a ratio of e^7, if it were counted, would show.
    width = max(map(len, rows))
    trainer = torch.tensor([row + [7.0] * (width - len(row)) for row in rows], dtype=torch.float64)
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    found = correct_mismatch(trainer, torch.zeros_like(trainer), mask, settings=settings)
    for row, given_weights, seen in zip(
        rows,
        found.weights.expand_as(trainer).tolist(),
        found.rows,
        strict=True,
    ):
        total = sum(row)
        logs = {
            "token": row,
            "sequence": [total] * len(row),
            "geometric": [total / len(row)] * len(row),
        }[correction]
        for log, weight in zip(logs, given_weights, strict=False):
            ratio = math.exp(log)
            inside = lower <= ratio <= threshold
            if mode == "mask":
                bound = 0.0
            else:
                bound = threshold if ratio > threshold else lower
            # At a bound itself, rounding decides.
            near_bound = min(abs(ratio - threshold), abs(ratio - lower)) < 1e-9
            assert near_bound or weight == pytest.approx(ratio if inside else bound)
        assert seen.weight == pytest.approx(sum(given_weights[: len(row)]) / len(row))
        assert seen.logp_difference == pytest.approx(sum(map(abs, row)) / len(row))


def test_what_the_sampler_did_not_report_counts_once() -> None:
    sampler = torch.tensor([[-1.0, float("nan"), -3.0]])
    trainer = torch.tensor([[-0.5, -1.0, -2.9]])
    corrected = correct_mismatch(
        trainer,
        sampler,
        torch.ones_like(sampler),
        settings=MismatchConfig(),
    )
    assert float(corrected.weights[0, 1]) == 1.0
    # e^0.5, 1 and e^0.1: 1.25 on average.
    assert corrected.rows[0].weight < 2


def test_a_response_of_which_nothing_is_left_is_masked() -> None:
    one = scored(advantage=0.7)
    cut = scored(masked_why="truncated")
    rows = [SamplerMismatch(0.1, weight) for weight in (1.1, 0.0, 0.0)]
    (kept, dropped), (masked,) = note_mismatch([[one, one], [cut]], rows)
    assert kept.advantage == 0.7
    assert kept.masked_why == ""
    assert dropped.advantage == 0.0
    assert dropped.masked_why == "sampler_mismatch"
    assert masked.masked_why == "truncated"
    figures = summarise_mismatch([kept, dropped, masked])
    # Two of three have a weight of 0, for whatever reason they are masked.
    assert figures["dropped_share"] == pytest.approx(2 / 3)
    assert figures["weight"] == pytest.approx(1.1 / 3)
    assert summarise_mismatch([replace(kept, mismatch=None)]) == {}


def config(**changes: str) -> TrainConfig:
    recipe = {"model.kind": "micro", "problems.kind": "micro", "rollout.backend": "vllm"}
    return load_config(TrainConfig, overrides={**recipe, **changes})


def test_trl_gets_what_the_recipe_says_and_room_is_made_for_the_run_and_not_for_the_model() -> None:
    longer = config(**{"evaluation.max_response_tokens": "16384"})
    assert vllm_arguments(longer, longest_prompt_tokens=700)["vllm_max_model_length"] == 16384 + 700
    here = vllm_arguments(
        config(**{"rollout.vllm.enable_sleep_mode": "true"}), longest_prompt_tokens=9
    )
    assert here["vllm_enable_sleep_mode"] is True
    # A prompt of 9 tokens, and the default limit of 8,192.
    assert here["vllm_max_model_length"] == 8201
    plain = vllm_arguments(
        config(**{"rollout.mismatch.correction": "off"}), longest_prompt_tokens=9
    )
    assert not plain["vllm_importance_sampling_correction"]
