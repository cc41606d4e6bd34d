"""Options of one engine are refused with another, before anything is loaded."""

from __future__ import annotations

import pytest

from microcoder.config import load_config
from microcoder.errors import ConfigError
from microcoder.training.config import TrainConfig
from microcoder.training.manifest import digest_config

RECIPE = {"model.kind": "micro", "problems.kind": "micro"}


@pytest.mark.parametrize(
    "changes", [{"ray.address": "auto"}, {"verl.trainer.balance_batch": "false"}, {"rollout.backend": "sglang"}]
)
def test_options_of_verl_need_verl(changes: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="add --engine verl"):
        load_config(TrainConfig, overrides={**RECIPE, **changes})
    assert load_config(TrainConfig, overrides={**RECIPE, "engine": "verl", **changes}).engine == "verl"


def test_verl_options_are_one_level_however_they_are_written() -> None:
    nested = load_config(TrainConfig, overrides={**RECIPE, "engine": "verl", "verl.trainer.balance_batch": "false"})
    dotted = load_config(
        TrainConfig, overrides={**RECIPE, "engine": "verl", "verl": '{"trainer.balance_batch" = false}'}
    )
    assert nested.verl == dotted.verl == {"trainer.balance_batch": False}
    assert digest_config(nested) == digest_config(dotted)


def test_where_ray_runs_changes_no_result() -> None:
    here = load_config(TrainConfig, overrides={**RECIPE, "engine": "verl"})
    there = load_config(TrainConfig, overrides={**RECIPE, "engine": "verl", "ray.address": "auto"})
    assert digest_config(here) == digest_config(there)
