"""Options of one engine are refused with another, before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.manifest import digest_config

RECIPE = {"model.kind": "micro", "problems.kind": "micro"}


@pytest.mark.parametrize("changes", [{"verl.trainer.balance_batch": "false"}, {"rollout.backend": "sglang"}])
def test_options_of_verl_need_verl(changes: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="add --engine verl"):
        load_config(TrainConfig, overrides={**RECIPE, **changes})
    assert load_config(TrainConfig, overrides={**RECIPE, "engine": "verl", **changes}).engine == "verl"


@pytest.mark.parametrize(
    ("engine", "changes", "message"),
    [
        ("verl", {"algorithm.entropy": "{kind = 'bonus', coefficient = 0.1}", "algorithm.loss": "luspo"}, "verl sums"),
    ],
)
def test_what_an_engine_lacks_of_an_algorithm_is_refused_by_name(
    engine: str, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(TrainConfig, overrides={**RECIPE, "engine": engine, **changes})


def test_a_kind_and_its_options_may_come_from_two_places(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[algorithm]\nloss = "cispo"\n')
    loss = load_config(TrainConfig, [recipe], {**RECIPE, "algorithm.loss.max_ratio": "4"}).algorithm.loss
    assert loss.model_dump() == {"kind": "cispo", "max_ratio": 4.0}
    recipe.write_text('[algorithm.loss]\nkind = "cispo"\nmax_ratio = 4\n')
    assert load_config(TrainConfig, [recipe], {**RECIPE, "algorithm.loss": "cispo"}).algorithm.loss == loss
    assert load_config(TrainConfig, [recipe], {**RECIPE, "algorithm.loss": "gspo"}).algorithm.loss.kind == "gspo"


def test_verl_options_are_one_level_however_they_are_written() -> None:
    nested = load_config(TrainConfig, overrides={**RECIPE, "engine": "verl", "verl.trainer.balance_batch": "false"})
    dotted = load_config(
        TrainConfig, overrides={**RECIPE, "engine": "verl", "verl": '{"trainer.balance_batch" = false}'}
    )
    assert nested.verl == dotted.verl == {"trainer.balance_batch": False}
    assert digest_config(nested) == digest_config(dotted)
