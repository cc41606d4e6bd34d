"""What a recipe becomes in verl's terms, and what is refused."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import pytest
import torch
from pydantic import BaseModel

from microcoder.judge.core.config import list_keys, load_config
from microcoder.judge.core.errors import ConfigError
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.runs import RunDirectory
from tests.train.verl.verl_runs import ON_CPU, RECIPE, compose_verl, needs_verl

pytestmark = needs_verl

if TYPE_CHECKING:
    from omegaconf import DictConfig


GPUS = {"rollout.backend": "vllm"}
"""Without the recipe of a run on a CPU."""
OF_THE_GRADIENT = {"algorithm.masking.leave_out_of": "gradient"}
"""For losses that do not divide by tokens."""
ONE_LENGTH = {"rollout.length_stages": "[]"}


def options_of(**changes: str) -> dict[str, Any]:
    from microcoder.train.verl.translate import translate

    recipes = [] if changes.get("rollout.backend") == "vllm" else [ON_CPU]
    overrides = {**RECIPE, "model.path": "tiny", **changes}
    changed = {}
    for key, value in overrides.items():
        if value:
            changed[key] = value
    config = load_config(
        TrainConfig,
        recipes,
        overrides=changed,
    )
    return translate(config, RunDirectory(Path("runs/test")), model="/tiny")


def check(options: dict[str, Any]) -> Any:
    """Let hydra and verl check options; return verl's whole configuration."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException
    from verl.trainer.ppo.utils import need_reference_policy
    from verl.utils.config import validate_config

    from microcoder.train.verl.settings import read_settings, refuse_idle
    from microcoder.train.verl.translate import as_words

    try:
        composed = compose_verl(as_words(options))
        with redirect_stdout(io.StringIO()):
            validate_config(
                composed,
                use_reference_policy=need_reference_policy(composed),
                use_critic=False,
            )
        refuse_idle(composed, read_settings(composed))
    except (HydraException, OmegaConfBaseException, ValueError, AssertionError) as error:
        raise ConfigError(
            f"verl refuses this recipe: {' '.join(str(error).split())[:300]}"
        ) from None
    return composed


def translated(**changes: str) -> DictConfig:
    """verl's whole configuration, as its command line makes it of a recipe."""
    return check(options_of(**changes))


SEPARATE = {
    "verl.trainer.v1.trainer_mode": "microcoder_separate_async",
    "verl.actor_rollout_ref.rollout.nnodes": "1",
    "batch.ppo_mini_batch_size": "2",
    "rollout.temperature.kind": "constant",
    "rollout.temperature.stages": "",
    "optimizer.schedule": "constant_with_warmup",
    "optimizer.warmup_steps": "3",
}
CORRECTED = (
    "+microcoder.mismatch={correction:token,mode:truncate,threshold:2.0,lower_threshold:0.0}"
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"algorithm.kl_coefficient": "0.01", "optimizer.beta2": "0.95"},
            (
                "data.train_batch_size=8 data.max_prompt_length=128 "
                "data.max_response_length=32 trainer.n_gpus_per_node=1 "
                "actor_rollout_ref.rollout.n=4 actor_rollout_ref.actor.clip_ratio_low=0.2 "
                "actor_rollout_ref.actor.clip_ratio_high=0.28 "
                "actor_rollout_ref.actor.loss_agg_mode=token-mean "
                "actor_rollout_ref.actor.use_kl_loss=true "
                "actor_rollout_ref.actor.kl_loss_coef=0.01 "
                "actor_rollout_ref.actor.optim.lr=0.001 "
                "actor_rollout_ref.actor.optim.betas=[0.9,0.95] "
                "actor_rollout_ref.actor.optim.lr_scheduler_type=constant "
                "+actor_rollout_ref.model.override_config.attn_implementation=sdpa "
                "trainer.max_actor_ckpt_to_keep=3"
            ),
        ),
        (
            {
                **GPUS,
                "optimizer.name": "adamw_8bit",
                "optimizer.schedule": "cosine",
                "model.attn_implementation": "eager",
                "model.lora.rank": "4",
            },
            (
                "actor_rollout_ref.actor.optim.optimizer_impl=bitsandbytes.optim "
                "actor_rollout_ref.actor.optim.optimizer=AdamW8bit "
                "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine "
                "actor_rollout_ref.actor.optim.num_cycles=0.5 "
                "actor_rollout_ref.actor.optim.min_lr_ratio=0.0 "
                "+actor_rollout_ref.model.override_config.attn_implementation=eager "
                "actor_rollout_ref.model.use_remove_padding=false "
                "actor_rollout_ref.model.lora_rank=4 actor_rollout_ref.model.lora_alpha=32"
            ),
        ),
        # What runs on GPUs never holds whole logits or padding.
        (
            {**GPUS, **ONE_LENGTH, "rollout.max_response_tokens": "8192"},
            (
                "actor_rollout_ref.model.use_remove_padding=true "
                "actor_rollout_ref.model.use_fused_kernels=true "
                "actor_rollout_ref.actor.use_dynamic_bsz=true "
                "actor_rollout_ref.rollout.calculate_log_probs=true "
                f"actor_rollout_ref.actor.ppo_max_token_len_per_gpu={8 * (128 + 8192)}"
            ),
        ),
        # Sampling on GPUs of its own is a whole configuration; a step is four updates.
        (
            {**GPUS, **SEPARATE},
            (
                "data.train_batch_size=8 trainer.v1.separate_async.parameter_sync_step=4 "
                "actor_rollout_ref.actor.ppo_mini_batch_size=2 "
                "actor_rollout_ref.actor.optim.lr_warmup_steps=12 "
                "actor_rollout_ref.rollout.checkpoint_engine.backend=nccl "
                f"actor_rollout_ref.rollout.calculate_log_probs=true {CORRECTED}"
            ),
        ),
        # Old weights are another policy, whatever samples.
        ({**SEPARATE, "verl.+microcoder.seeded_sampling": "false"}, CORRECTED),
        # Options and features of verl are reached by its names.
        (
            {
                "verl": '{"+actor_rollout_ref.new.one" = 3}',
                "verl.algorithm.rollout_correction.rollout_is": "token",
                "verl.actor_rollout_ref.rollout.agent.default_agent_loop": "tool_agent",
            },
            "+actor_rollout_ref.new.one=3 algorithm.rollout_correction.rollout_is=token "
            "actor_rollout_ref.rollout.calculate_log_probs=true "
            "actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent",
        ),
    ],
)
def test_what_a_recipe_becomes(changes: dict[str, str], words: str) -> None:
    """These words of verl's command line, which verl takes."""
    from microcoder.train.verl.translate import as_words

    options = options_of(**changes)
    assert set(words.split()) - set(as_words(options)) == set()
    check(options)
    on_gpus = changes.get("rollout.backend") == "vllm"
    assert (
        ("+microcoder.seeded_sampling" in options)
        == ("trainer.n_gpus_per_node" in options)
        == (not on_gpus)
    )


def test_verls_cosine_is_transformers_cosine() -> None:
    from transformers.optimization import get_scheduler
    from verl.utils.torch_functional import get_cosine_schedule_with_warmup

    def optimizer() -> torch.optim.Optimizer:
        return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)

    ours = get_scheduler("cosine", optimizer(), num_warmup_steps=3, num_training_steps=20)
    theirs = get_cosine_schedule_with_warmup(optimizer(), 3, 20, min_lr_ratio=0.0)
    for step in range(20):
        assert theirs.lr_lambdas[0](step) == pytest.approx(ours.lr_lambdas[0](step), abs=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verl.data.train_batch_size": "4"}, "is decided by the recipe"),
        ({"verl.actor_rollout_ref.rollout.temperature": "0.5"}, "is decided by the recipe"),
        (
            {"verl.algorithm.norm_adv_by_std_in_grpo": "false"},
            "would change nothing; use algorithm.advantage",
        ),
        (
            {"verl.reward.custom_reward_function.path": "mine.py"},
            r"would change nothing; use \[\[rewards\]\]",
        ),
        (
            {"verl.actor_rollout_ref.actor.clip_ratio_hihg": "0.3"},
            "Could not override .*clip_ratio_hihg",
        ),
        (
            {"algorithm.advantage": "dr_grpo", **OF_THE_GRADIENT},
            "cannot follow rollout.length_stages",
        ),
        ({"verl.model_engine": "megatron"}, "asks for megatron, .* a verl command of your own"),
        ({"verl.actor_rollout_ref.actor.strategy": "megatron"}, "a verl command of your own"),
        ({"verl.actor_rollout_ref.actor.loss_agg_mode": "sum"}, "is decided by the recipe"),
        ({"model.revision": "main"}, "hf download MODEL"),
        (
            {"verl.trainer.v1.trainer_mode": "sync"},
            "would train without our decisions; use one of microcoder, ",
        ),
        (
            {"verl.trainer.v1.trainer_mode": "microcoder_colocate_async"},
            "where verl takes log-probs at one temperature",
        ),
    ],
)
def test_what_cannot_be_mapped_is_an_error(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        translated(**changes)


def test_values_survive_hydras_grammar() -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from microcoder.train.verl.translate import as_literal

    texts = ["a b", "7", "true", 'say "x"', "a,b", "{x}", "file.py:f", "", "é", r"C:\\x"]
    values: list[Any] = [*texts, 1e-06, None, False]
    for value in [*values, values, {"a": values}]:
        (found,) = OverridesParser.create().parse_overrides([f"+x={as_literal(value)}"])
        assert found.value() == value


ELSEWHERE = {
    "engine": "chooses verl",
    "evaluator.comparison": "the problems that are written for verl",
    "evaluator.languages": "read with the recipe",
    "cpu_threads": "the environment of verl's processes",
    "model.kind": "the folder of the model",
    "model.path": "the folder of the model",
    "problems": "the rows that are written for verl",
    "prompt": "the rows that are written for verl",
    "trl": "refused where it is not empty",
    "verl": "passed on",
}
"""Keys that act before or beside verl's command line."""
AS_IT_WAS = {
    "optimizer.name = adamw_torch": "verl runs it for the fused one, too",
    "evaluator.backend = ray": "one node has one judge either way",
    "rollout.temperature.kind = staged": "what the recipe says",
    "algorithm.loss.kind = dapo": "what the recipe says",
    "algorithm.masking.kind = conditional": "what the recipe says",
}
"""Changes that change nothing."""


def changes_of(table: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each number, switch and choice of a recipe with another value."""
    for name, field in type(table).model_fields.items():
        value = getattr(table, name)
        key = prefix + name
        if isinstance(value, BaseModel):
            yield from changes_of(value, f"{key}.")
        elif isinstance(value, bool):
            yield key, str(not value).lower()
        elif isinstance(value, int | float):
            yield key, str(value * 2 if value else 1)
        elif get_origin(field.annotation) is Literal:
            yield from ((key, choice) for choice in get_args(field.annotation) if choice != value)
    if not prefix:
        found = (re.fullmatch(r'(\S+) = "(\w+)"', key.name) for key in list_keys(type(table)))
        yield from ((kind[1], kind[2]) for kind in found if kind)


@pytest.mark.parametrize("backend", ["vllm", "transformers"])
def test_every_key_of_the_recipe_acts_or_is_refused(backend: str) -> None:
    """Change each key: the command changes, or the error says why it cannot."""
    base = {
        "model.lora.rank": "8",
        "algorithm.kl_coefficient": "0.1",
        "rollout.backend": backend,
        **ONE_LENGTH,
    }
    config = load_config(TrainConfig, overrides={**RECIPE, "model.path": "tiny", **base})
    usual = options_of(**base)
    silent = []
    changed = 0
    for key, other in changes_of(config):
        if any(key == name or key.startswith(f"{name}.") for name in ELSEWHERE):
            continue
        try:
            options = options_of(**{**base, key: other})
        except ConfigError:
            continue
        changed += 1
        if options == usual and f"{key} = {other}" not in AS_IT_WAS:
            silent.append(f"{key} = {other}")
    assert silent == []
    assert changed >= 50


def test_every_key_of_verl_acts_or_is_refused() -> None:
    """Set each number and switch of verl's by [verl]: it reaches verl's own configuration,
    or the error names it.
    """
    from omegaconf import OmegaConf

    from microcoder.judge.core.config import flatten
    from microcoder.train.verl.translate import as_words, translate

    config = load_config(TrainConfig, [ON_CPU], overrides={**RECIPE, "model.path": "tiny"})
    run = RunDirectory(Path("runs/test"))
    accepted: dict[str, Any] = {}
    refused: dict[str, str] = {}
    plain: Any = OmegaConf.to_container(compose_verl([]), resolve=False)
    for key, value in flatten(plain).items():
        if not isinstance(value, bool | int | float):
            continue
        other = not value if isinstance(value, bool) else value * 2 + 1
        try:
            translate(
                config.model_copy(update={"verl": {"trainer.device": "cpu", key: other}}), run
            )
        except ConfigError as error:
            refused[key] = str(error)
        else:
            accepted[key] = other
    options = translate(
        config.model_copy(update={"verl": {"trainer.device": "cpu", **accepted}}), run
    )
    composed = compose_verl(as_words(options))
    assert {key: OmegaConf.select(composed, key) for key in accepted} == accepted
    for key, message in refused.items():
        assert key in message
    assert len(accepted) > 200
