"""Runs are called what they are: each loss, advantage and mask of a recipe has a name that tells it from the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from microcoder.judge.core.config import load_config
from microcoder.lab.studies.names import algorithm_name
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.recipe.recipe import TrainConfig

RECIPES = Path(__file__).parents[2] / "recipes"


def name(**keys: Any) -> str:
    return algorithm_name(load_config(AlgorithmConfig, layers=[keys]).model_dump(mode="json"))


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, "MicroCoder-GRPO"),
        ({"masking": {"kind": "none"}}, "DAPO"),
        ({"masking": {"kind": "all"}}, "DAPO, all truncated masked"),
        (
            {"masking": {"kind": "all", "leave_out_of": "denominator"}},
            "DAPO, all truncated masked (out of the denominator)",
        ),
        ({"masking": {"kind": "soft_penalty", "window_tokens": 8}}, "DAPO, soft length penalty"),
        ({"masking": {"kind": "stop_properly"}}, "DAPO, stop-properly penalty"),
        ({"loss": "gspo", "masking": {"kind": "none"}}, "GSPO"),
        ({"loss": "cispo"}, "CISPO, conditional truncation mask"),
        ({"advantage": "rloo", "masking": {"kind": "none"}}, "DAPO, RLOO's advantage"),
        ({"advantage": "maxrl"}, "DAPO, MaxRL's advantage, conditional truncation mask"),
        ({"loss": "dr_grpo", "masking": {"kind": "none"}}, "Dr. GRPO"),
        ({"loss": "grpo", "kl_coefficient": 0.001, "masking": {"kind": "none"}}, "GRPO"),
        ({"loss": "grpo", "masking": {"kind": "none"}}, "GRPO, no KL"),
        (
            {"loss": {"kind": "dapo", "clip_high": 0.2}, "kl_coefficient": 0.01, "masking": {"kind": "none"}},
            "DAPO, symmetric clip, KL",
        ),
        ({"group_filtering": {"kind": "dynamic"}}, "MicroCoder-GRPO, dynamic sampling"),
    ],
)
def test_settings_are_called_what_they_are(keys: dict[str, Any], expected: str) -> None:
    assert name(**keys) == expected


def test_recipes_to_compare_have_names_of_their_own() -> None:
    recipes = sorted((RECIPES / "algorithms").glob("*.toml"))
    configs = [load_config(TrainConfig, [Path("micro"), path]) for path in recipes]
    named = [algorithm_name(config.algorithm.model_dump(mode="json")) for config in configs]
    assert len(recipes) == len(set(named)) > 5
    assert algorithm_name({}) == ""
