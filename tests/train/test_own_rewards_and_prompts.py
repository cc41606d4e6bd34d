"""Runs with rewards and prompts of the user's own, which train adapters."""

import json
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, TrainingError
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.tasks import load_tasks
from microcoder.train.run.training import run_training
from microcoder.train.run.weights import encode_chats
from microcoder.train.runs import RunDirectory, read_rollouts
from tests.train.small_runs import SMALL, build_trainer
from tests.train.test_chat import QWEN_LIKE

OWN = """\
def brevity(problem, rollout, program, verdict, *, limit: int):
    return 1 - len(rollout.token_ids) / limit


def ask(problem, *, ending: str = "?"):
    return problem.statement + ending
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def recipe(checkpoint: Path, own: Path, **changes: str) -> TrainConfig:
    keys = {
        **SMALL,
        "num_steps": "2",
        "model.path": str(checkpoint),
        "model.attn_implementation": "eager",
        "model.lora.rank": "4",
        "problems.num_train": "8",
        "problems.num_heldout": "2",
        "prompt.style": f"{own}:ask",
        "prompt.options.ending": "!",
        "rewards": (
            f'[{{name = "fraction"}}, {{name = "{own}:brevity", weight = 0.5, options = '
            f"{{limit = 28}}}}]"
        ),
        "rollout.temperature.value": "0.8",
        "batch.train_batch_size": "4",
        "algorithm.loss.clip_high": "0.2",
        "optimizer.name": "adamw_torch",
        "optimizer.schedule": "cosine",
        "evaluation.samples_per_problem": "1",
        "evaluator.stop": "never",
        "checkpoint.every_steps": "1",
    }
    return load_config(TrainConfig, overrides={**keys, **changes})


def test_a_run_records_each_reward_and_refuses_to_go_on_with_an_edited_one(
    tiny_checkpoint: Path,
    tmp_path: Path,
    own: Path,
) -> None:
    run = RunDirectory(tmp_path / "run")

    def train(**changes: str) -> None:
        config = recipe(tiny_checkpoint, own, **{"model.lora.rank": "16", **changes})
        run_training(config, run_directory=run.root, observer=Observer())

    with pytest.raises(ConfigError, match=r"\[trl\] nowhere is no option of the installed TRL"):
        train(**{"trl.nowhere": "1"})
    # A start that failed binds nobody.
    train()
    merged = load_file(run.model / "model.safetensors")
    base = load_file(tiny_checkpoint / "model.safetensors")
    changed = set()
    for name in base:
        if not torch.equal(base[name], merged[name]):
            changed.add(name)
    assert changed
    for name in changed:
        assert "proj" in name
    rows = read_rollouts(run.rollout_file(1))
    for row in rows:
        assert row["prompt"].endswith("!<|sep|>")
    for row in rows:
        parts = dict(row["rewards"])
        assert parts == {
            "fraction": row["tests_passed"] / row["tests_total"],
            "brevity": 1 - row["num_tokens"] / 28,
        }
        assert row["reward"] == pytest.approx(parts["fraction"] + 0.5 * parts["brevity"])
    first, second = run.read_metrics()
    assert first["rewards"]["brevity"] == pytest.approx(
        fmean(dict(row["rewards"])["brevity"] for row in rows)
    )
    assert first["reward_mean"] == pytest.approx(fmean(row["reward"] for row in rows))
    assert first["optimizer"]["learning_rate"] == pytest.approx(1e-3)
    assert second["optimizer"]["learning_rate"] == pytest.approx(5e-4)
    # Held-out accuracy stays what it is, whatever is learnt from.
    held_out = read_rollouts(run.evaluation_file(2))
    expected = [float(row["verdict"] == "accepted") for row in held_out]
    assert [row["reward"] for row in held_out] == expected
    manifest = run.read_manifest()
    assert [record["reference"] for record in manifest["extensions"]] == [
        f"{own}:brevity",
        f"{own}:ask",
    ]
    run.summary.unlink()
    shutil.rmtree(run.checkpoint(2))
    own.write_text(OWN.replace("1 - len", "2 - len"))
    with pytest.raises(TrainingError, match=r"began with reward .*own\.py:brevity \"\w+\", now"):
        train()
    own.write_text(OWN)
    train()
    assert run.read_metrics()[0] == first
    assert {**run.read_metrics()[1], "seconds": None} == {**second, "seconds": None}


def test_trl_asks_what_the_recipe_says(
    tiny_checkpoint: Path,
    tmp_path: Path,
    own: Path,
    judge: Judge,
) -> None:
    """System turn and template options reach TRL's prompts as they reach verl's and
    evaluations'.
    """
    thinker = tmp_path / "thinker"
    shutil.copytree(tiny_checkpoint, thinker)
    (thinker / "chat_template.jinja").write_text(QWEN_LIKE)
    settings = json.loads((thinker / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (thinker / "tokenizer_config.json").write_text(json.dumps(settings))
    options = {"prompt.system": "Be brief.", "model.dtype": "bfloat16"}
    options["prompt.chat_template_options.enable_thinking"] = "false"
    config = recipe(thinker, own, **options)
    tasks = load_tasks(config)
    trainer = build_trainer(config, tmp_path / "run", judge)
    chats = [task.prompt.as_chat() for task in tasks.train]
    dataset: Any = trainer.train_dataset
    asked, *_ = trainer._tokenize_prompts([row["prompt"] for row in dataset])
    expected = encode_chats(trainer.tokenizer, chats, config.prompt.chat_template_options)
    assert sorted(map(tuple, asked)) == sorted(map(tuple, expected))
    text = str(trainer.tokenizer.decode(expected[0]))
    assert text.rstrip().endswith("<think>\n\n</think>")
    assert text.index("Be brief.") < text.index(tasks.train[0].problem.statement)
    assert not trainer.opens_thinking
    # Frozen weights in bfloat16, adapters and so their optimizer in float32.
    model: Any = trainer.model
    kinds = {(weight.requires_grad, weight.dtype) for weight in model.parameters()}
    assert kinds == {(False, torch.bfloat16), (True, torch.float32)}
