"""Keys for what TRL and transformers offer: they act, or are refused with what to type."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from transformers.optimization import get_scheduler
from trl import GRPOConfig

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError
from microcoder.train.recipe.batching import cut_batches
from microcoder.train.recipe.recipe import TrainConfig, require_optimizer
from microcoder.train.recipe.trl_options import RECIPE_KEYS, WITHOUT_EFFECT
from microcoder.train.trl.arguments import build_arguments

MICRO = {"model.kind": "micro", "problems.kind": "micro"}
OWN_MODEL = {"model.kind": "hugging_face", "model.path": "somewhere", "problems.kind": "micro"}
FROM_THE_RUN = {"optimizer", "last_epoch", "num_warmup_steps", "num_training_steps"}


def arguments(**keys: str) -> GRPOConfig:
    config = load_config(TrainConfig, overrides={**MICRO, **{k.replace("__", "."): v for k, v in keys.items()}})
    return build_arguments(config, cut_batches(config, num_processes=1), output_dir=Path("unused"))


def refused(**keys: str) -> str:
    with pytest.raises(ConfigError) as error:
        arguments(**keys)
    assert "\n" not in str(error.value)
    return str(error.value)


def rates(training: GRPOConfig) -> list[float]:
    """The learning rate of each update of a run."""
    options = training.lr_scheduler_kwargs
    assert isinstance(options, dict)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=training.learning_rate)
    scheduler = get_scheduler(
        training.lr_scheduler_type,
        optimizer,
        num_warmup_steps=int(training.warmup_steps),
        num_training_steps=training.max_steps,
        scheduler_specific_kwargs=options,
    )
    seen = []
    for _ in range(training.max_steps):
        seen.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    return seen


def test_what_a_schedule_counts_counts_training_steps() -> None:
    seen = rates(
        arguments(
            num_steps="10",
            batch__ppo_mini_batch_size="16",
            optimizer__learning_rate="1.0",
            optimizer__schedule="linear",
            optimizer__warmup_steps="2",
        )
    )
    assert len(seen) == 40
    assert seen[4] == 0.5
    assert seen[8] == 1.0 > seen[9]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"optimizer__schedule": "cosin"}, "optimizer.schedule = 'cosin'"),
        ({"optimizer__schedule": "cosine", "optimizer__schedule_options__min_lr": "0"}, "it has num_cycles"),
        ({"optimizer__schedule": "cosine_with_min_lr"}, "needs one of schedule_options.min_lr"),
        ({"optimizer__schedule": "constant", "optimizer__warmup_steps": "3"}, 'use "constant_with_warmup"'),
        ({"optimizer__name": "adafactor", "optimizer__beta2": "0.95"}, "takes no beta2"),
        ({"optimizer__name": "adam8"}, "'adamw_8bit'"),
        ({"optimizer__lr": "1e-5"}, "did you mean optimizer.learning_rate?"),
        ({"lr": "1e-5"}, "optimizer.learning_rate?"),
        ({"learning_rate": "1e-5"}, "optimizer.learning_rate?"),
        ({"trl__hub_token": "hf_secret"}, "it would be in the manifest; type `hf auth login`"),
        ({"trl__hub_strategy": "all_checkpoints"}, 'use "end"'),
        ({"rewards": "fraction"}, "add --evaluator.stop never"),
        ({"rewards": "[]"}, "rewards is empty"),
        ({"rewards": '{name = "format", weight = 0}'}, "leaves the reward out"),
    ],
)
def test_a_mistake_says_what_to_type(keys: dict[str, str], message: str) -> None:
    assert message in refused(**keys)


def test_trls_own_options_reach_it() -> None:
    assert arguments(trl__disable_dropout="true", trl__torch_empty_cache_steps="4").torch_empty_cache_steps == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("beta", "decided by the recipe; use algorithm.kl_coefficient"),
        ("use_bias_correction_kl", "decided by the recipe"),
        ("top_p", "MicroCoder does this itself"),
        ("eval_steps", "use evaluation.every_steps"),
        ("disable_droput", "did you mean disable_dropout?"),
        ("zzzz", "is not an option of TRL"),
    ],
)
def test_trls_other_options_are_refused_with_what_to_use(name: str, message: str) -> None:
    assert message in refused(**{f"trl__{name}": "1"})


def test_every_name_that_is_refused_is_one_of_trls() -> None:
    known = {field.name for field in dataclasses.fields(GRPOConfig)}
    assert (RECIPE_KEYS.keys() | WITHOUT_EFFECT.keys()) <= known
    assert not RECIPE_KEYS.keys() & WITHOUT_EFFECT.keys()


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_an_optimizer_without_its_package_says_what_to_install() -> None:
    config = load_config(TrainConfig, overrides={**MICRO, "optimizer.name": "adamw_8bit"})
    with pytest.raises(ConfigError, match="pip install bitsandbytes"):
        require_optimizer(config.optimizer)
