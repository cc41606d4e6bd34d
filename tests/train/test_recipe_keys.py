"""Keys of a recipe, what TRL, transformers and verl offer among them: they act,
or are refused with what to type.
"""

import dataclasses
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from transformers.optimization import get_scheduler
from trl import GRPOConfig, GRPOTrainer

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, TrainingError
from microcoder.train.recipe.recipe import (
    TrainConfig,
    cut_batches,
    require_optimizer,
)
from microcoder.train.recipe.refused import REFUSED_OF_TRL
from microcoder.train.run.manifest import digest_config
from microcoder.train.trl import engine
from microcoder.train.trl.adapter import find_changes, require_known
from microcoder.train.trl.engine import build_arguments

MICRO = {"model.kind": "micro", "problems.kind": "micro"}
VLLM = {"rollout__backend": "vllm"}


def load(*recipes: Path, **keys: str) -> TrainConfig:
    changes = {name.replace("__", "."): value for name, value in keys.items()}
    return load_config(TrainConfig, recipes, overrides={**MICRO, **changes})


def arguments(**keys: str) -> GRPOConfig:
    config = load(**keys)
    return build_arguments(config, cut_batches(config, num_processes=1), output_dir=Path("unused"))


def test_what_a_schedule_counts_counts_training_steps() -> None:
    """The learning rate of each update of a run."""
    counted = {
        "num_steps": "10",
        "batch__ppo_mini_batch_size": "16",
        "optimizer__warmup_steps": "2",
    }
    training = arguments(optimizer__learning_rate="1.0", optimizer__schedule="cosine", **counted)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=training.learning_rate)
    scheduler = get_scheduler(
        training.lr_scheduler_type,
        optimizer,
        num_warmup_steps=int(training.warmup_steps),
        num_training_steps=training.max_steps,
        scheduler_specific_kwargs=training.lr_scheduler_kwargs,  # type: ignore[arg-type]
    )
    seen = []
    for _ in range(training.max_steps):
        seen.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert len(seen) == 40
    assert seen[4] == 0.5
    assert seen[8] == 1.0 > seen[9]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"optimizer__schedule": "cosin"}, "optimizer.schedule = 'cosin'"),
        ({"optimizer__name": "adam8"}, "'adamw_8bit'"),
        ({"learning_rate": "1e-5"}, "optimizer.learning_rate?"),
        ({"trl__hub_token": "hf_secret"}, "hub_token is the recipe's to decide"),
        ({"trl__beta": "1"}, "[trl] beta is the recipe's to decide; look for its key"),
        ({"trl__use_bias_correction_kl": "1"}, "the recipe's to decide"),
        ({"trl__top_p": "1"}, "top_p would sample from another policy"),
        ({"trl__zzzz": "1"}, "unexpected keyword argument 'zzzz'"),
        ({"rewards": "[]"}, "rewards is empty"),
        # Options of one engine are refused with another, before anything is loaded.
        ({"verl__trainer__balance_batch": "false"}, "add --engine verl"),
        ({"rollout__backend": "sglang"}, "add --engine verl"),
        ({"evaluator__backend": "ray"}, "--engine verl"),
        # Where programs are judged.
        ({"evaluator__backend": "[]"}, "names no address"),
        ({"evaluator__backend": "http://judge:8077", "evaluator__workers": "2"}, "the service"),
        ({"evaluator__backend": "judge:8077"}, "evaluator.backend"),
        ({"evaluator__backend": '["http://a", "b:1"]'}, "evaluator.backend"),
        # What would do nothing.
        ({"rollout__vllm__enable_sleep_mode": "true"}, "add --rollout.backend vllm"),
        ({"rollout__mismatch__correction": "off"}, "add --rollout.backend vllm"),
        (
            {**VLLM, "rollout__mismatch__correction": "off", "rollout__mismatch__mode": "mask"},
            "leave them out",
        ),
        (
            {
                **VLLM,
                "rollout__mismatch__correction": "off",
                "rollout__mismatch__lower_threshold": "0.5",
            },
            "leave them out",
        ),
        (
            {**VLLM, "engine": "verl", "rollout__vllm__gpu_memory_utilization": "0.5"},
            "is for engine trl",
        ),
        # What cannot be, or contradicts itself.
        ({**VLLM, "rollout__mismatch__threshold": "0.5"}, "must be more than 1"),
        ({**VLLM, "rollout__mismatch__lower_threshold": "1.5"}, "must be less than 1"),
        ({"rollout__temperature": '{kind = "diversity", grid = [1.0, 0.5]}'}, "must ascend"),
        (
            {"rollout__length_stages": "[{from_step = 5, max_response_tokens = 99}]"},
            "each must be later and longer",
        ),
        ({"model__warm_start__hidden_size": "130"}, "multiple of 8"),
        ({"algorithm__advantage": "gropo"}, "unknown advantage 'gropo'; did you mean grpo"),
        ({"algorithm__loss": "my.py:loss"}, "no place for a loss of your own"),
        (
            {
                "algorithm__advantage": "maxrl",
                "algorithm__masking": '{kind = "soft_penalty", window_tokens = 4}',
            },
            "can make zero or negative",
        ),
        (
            {
                "algorithm__loss": "gspo",
                "algorithm__masking": '{kind = "all", leave_out_of = "denominator"}',
            },
            'with loss = "gspo"',
        ),
    ],
)
def test_a_mistake_says_what_to_type(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        arguments(**keys)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_trl_is_told_its_own_options() -> None:
    assert (
        arguments(
            trl__disable_dropout="true",
            trl__torch_empty_cache_steps="4",
        ).torch_empty_cache_steps
        == 4
    )


def test_every_name_that_is_refused_is_one_of_trls() -> None:
    names = {field.name for field in dataclasses.fields(GRPOConfig)}
    # transformers has it up to 5.10 or so; a recipe that names it is told the same with each.
    gone_in_newer_ones = {"warmup_ratio"}
    assert names >= REFUSED_OF_TRL - gone_in_newer_ones


def test_what_the_recipe_decides_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    decided: dict[str, object] = {}

    class Noted(GRPOConfig):
        def __init__(self, **given: object) -> None:
            decided.update(given)

    monkeypatch.setattr(engine, "GRPOConfig", Noted)
    arguments(rollout__backend="vllm")
    assert decided.keys() - {"report_to", "run_name"} <= REFUSED_OF_TRL


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_an_optimizer_without_its_package_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match="pip install bitsandbytes"):
        require_optimizer(load(optimizer__name="adamw_8bit").optimizer)


def test_a_kind_and_its_options_may_come_from_two_places(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[algorithm]\nloss = "cispo"\n')
    loss = load(recipe, algorithm__loss__max_ratio="4").algorithm.loss
    assert loss.model_dump() == {"kind": "cispo", "max_ratio": 4.0}
    recipe.write_text('[algorithm.loss]\nkind = "cispo"\nmax_ratio = 4\n')
    assert load(recipe, algorithm__loss="cispo").algorithm.loss == loss
    assert load(recipe, algorithm__loss="gspo").algorithm.loss.kind == "gspo"


def test_verl_options_are_one_level_however_they_are_written() -> None:
    nested = load(engine="verl", verl__trainer__balance_batch="false")
    dotted = load(engine="verl", verl='{"trainer.balance_batch" = false}')
    assert nested.verl == dotted.verl == {"trainer.balance_batch": False}
    assert digest_config(nested) == digest_config(dotted)


def test_where_programs_are_judged_changes_no_result() -> None:
    elsewhere = load(evaluator__backend="http://judge:8077")
    assert digest_config(load()) == digest_config(elsewhere)


class OtherTrl(GRPOTrainer):
    """A TRL in which a private method has another parameter."""

    def _compute_loss(  # type: ignore[override]
        self, model: object, inputs: object, num_items: int
    ) -> None:
        raise NotImplementedError

    def _tokenize_prompts(self, texts: object) -> None:  # type: ignore[override]
        raise NotImplementedError


def test_the_installed_trl_is_the_one_that_is_known() -> None:
    assert find_changes(GRPOTrainer) == []


def test_a_changed_or_missing_method_of_trl_is_named_with_what_to_install() -> None:
    assert find_changes(OtherTrl) == ["_tokenize_prompts takes (texts), not (prompts, ...)"]
    assert "_generate is gone" in find_changes(object)
    with pytest.raises(TrainingError, match=r"_generate is gone.*pip install 'trl>=1\.16,<1\.17'"):
        require_known(find_changes(object))
