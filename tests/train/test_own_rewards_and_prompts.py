"""Runs with rewards and prompts of the user's own: one short run, and what each way to begin it wrongly says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from statistics import fmean

import pytest
import torch
from test_chat import QWEN_LIKE

from microcoder.data import write_problems
from microcoder.data.micro import generate_problems
from microcoder.judge import Judge
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError, TrainingError
from microcoder.judge.core.rewards import load_rewards
from microcoder.judge.core.types import Problem, Rollout, TestCase
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.algorithm.scoring import build_rules, score_rollouts
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer, RunClock
from microcoder.train.run.session import run_training
from microcoder.train.run.tasks import EngineInputs, load_tasks
from microcoder.train.run.weights import encode_chats
from microcoder.train.runs import RunDirectory, read_rollouts
from microcoder.train.trl.engine import build_trainer, load_policy

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
        "num_steps": "2",
        "model.kind": "hugging_face",
        "model.path": str(checkpoint),
        "model.compute_dtype": "float32",
        "model.attn_implementation": "eager",
        "problems.kind": "micro",
        "problems.num_train": "8",
        "problems.num_heldout": "2",
        "problems.tiers": "easy",
        "prompt.style": f"{own}:ask",
        "prompt.options.ending": "!",
        "rewards": f'[{{name = "fraction"}}, {{name = "{own}:brevity", weight = 0.5, options = {{limit = 28}}}}]',
        "rollout.num_samples": "4",
        "rollout.max_response_tokens": "28",
        "rollout.temperature.value": "0.8",
        "batch.train_batch_size": "4",
        "batch.ppo_mini_batch_size": "4",
        "algorithm.loss.clip_high": "0.2",
        "optimizer.name": "adamw_torch",
        "optimizer.schedule": "cosine",
        "optimizer.learning_rate": "1e-3",
        "evaluation.samples_per_problem": "1",
        "evaluator.workers": "1",
        "evaluator.stop": "never",
        "checkpoint.every_steps": "1",
    }
    return load_config(TrainConfig, overrides={**keys, **changes})


def test_a_run_records_each_reward_and_refuses_to_go_on_with_an_edited_one(
    tiny_checkpoint: Path, tmp_path: Path, own: Path
) -> None:
    run = RunDirectory(tmp_path / "run")
    run_training(recipe(tiny_checkpoint, own), run_directory=run.root, observer=Observer())
    rows = read_rollouts(run.rollout_file(1))
    assert all(row["prompt"].endswith("!") for row in rows)
    for row in rows:
        parts = dict(row["rewards"])
        assert parts == {"fraction": row["tests_passed"] / row["tests_total"], "brevity": 1 - row["num_tokens"] / 28}
        assert row["reward"] == pytest.approx(parts["fraction"] + 0.5 * parts["brevity"])
    first, second = run.read_metrics()
    assert first["rewards"]["brevity"] == pytest.approx(fmean(dict(row["rewards"])["brevity"] for row in rows))
    assert first["reward_mean"] == pytest.approx(fmean(row["reward"] for row in rows))
    assert (first["optimizer"]["learning_rate"], second["optimizer"]["learning_rate"]) == pytest.approx((1e-3, 5e-4))
    # Held-out accuracy stays what it is, whatever is learnt from.
    held_out = read_rollouts(run.evaluation_file(2))
    assert [row["reward"] for row in held_out] == [float(row["verdict"] == "accepted") for row in held_out]
    manifest = run.read_manifest()
    assert [record["reference"] for record in manifest["extensions"]] == [f"{own}:brevity", f"{own}:ask"]
    run.summary.unlink()
    shutil.rmtree(run.checkpoint(2))
    own.write_text(OWN.replace("1 - len", "2 - len"))
    with pytest.raises(TrainingError, match=r"began with another version of reward .*own\.py:brevity"):
        run_training(recipe(tiny_checkpoint, own), run_directory=run.root, observer=Observer())
    own.write_text(OWN)
    run_training(recipe(tiny_checkpoint, own), run_directory=run.root, observer=Observer())
    assert run.read_metrics()[0] == first
    assert {**run.read_metrics()[1], "seconds": None} == {**second, "seconds": None}


def test_a_wrong_start_writes_nothing(tiny_checkpoint: Path, tmp_path: Path, own: Path) -> None:
    shown = tmp_path / "shown.jsonl"
    write_problems(shown, generate_problems(split="train", num_problems=8, seed=0, tiers=("easy",)))
    own.write_text(OWN + "\nbrevity.needs_all_tests = True\n")
    brevity = f'{{name = "{own}:brevity", options = {{limit = 28}}}}'
    mistakes: list[tuple[dict[str, str], type[Exception], str]] = [
        ({"rewards": f"{own}:nothing"}, ConfigError, "it has brevity, ask"),
        ({"rewards": brevity, "evaluator.stop": "first_failure"}, ConfigError, "add --evaluator.stop never"),
        ({"prompt.options.ending": "[1]"}, ConfigError, r"line 5\) option ending = \[1\]"),
        ({"prompt.chat_template_options.enable_thinking": "false"}, ConfigError, "would change nothing"),
        ({"prompt.examples": str(shown)}, DataError, "is also asked"),
        ({"model.attn_implementation": "flash_attention_2"}, ConfigError, "is not available here"),
        ({"trl.disable_droput": "true"}, ConfigError, "did you mean disable_dropout"),
    ]
    for changes, error, message in mistakes:
        with pytest.raises(error, match=message):
            run_training(recipe(tiny_checkpoint, own, **changes), run_directory=tmp_path / "run", observer=Observer())
        assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_weights_come_before_the_groups_mean(own: Path) -> None:
    """Advantages of a weighted sum are those of its totals, not a sum of each reward's own advantages."""
    problem = Problem(id="p", statement="s", tests=(TestCase(input="1", output="1"), TestCase(input="2", output="2")))
    programs = ("print(input())", "print(1)", "print(0)", None)
    rollouts = [
        Rollout("p", "s", f"```python\n{code}\n```" if code else "no", tuple(range(3 + place)), False)
        for place, code in enumerate(programs)
    ]
    rewards = load_rewards([("fraction", 1.0, {}), ("format", 0.25, {})])
    rules = build_rules(AlgorithmConfig(), max_response_tokens=99, rewards=rewards)
    with Judge(workers=1, stop="never") as judge:
        (scored,) = score_rollouts([rollouts], [problem], judge=judge, rules=rules, seed=0, step=1)
    totals = torch.tensor([sample.reward for sample in scored])
    assert totals.tolist() == [1.25, 0.75, 0.25, 0.0]
    expected = (totals - totals.mean()) / (totals.std() + 1e-6)
    assert [sample.advantage for sample in scored] == pytest.approx(expected.tolist(), abs=1e-5)


def test_trl_asks_what_the_recipe_says(tiny_checkpoint: Path, tmp_path: Path, own: Path) -> None:
    """System turn, examples and template options reach TRL's prompts as they reach verl's and evaluations'."""
    thinker = tmp_path / "thinker"
    shutil.copytree(tiny_checkpoint, thinker)
    (thinker / "chat_template.jinja").write_text(QWEN_LIKE)
    settings = json.loads((thinker / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (thinker / "tokenizer_config.json").write_text(json.dumps(settings))
    shown = tmp_path / "shown.jsonl"
    (example,) = generate_problems(split="train", num_problems=1, seed=99, tiers=("easy",))
    write_problems(shown, [example.model_copy(update={"id": "shown"})])
    options = {"prompt.system": "Be brief.", "prompt.examples": str(shown)}
    options["prompt.chat_template_options.enable_thinking"] = "false"
    options["model.lora.rank"], options["model.dtype"] = "4", "bfloat16"
    config = recipe(thinker, own, **options)
    tasks = load_tasks(config)
    policy = load_policy(config, observer=Observer())
    with Judge(workers=1, stop="never") as judge:
        inputs = EngineInputs(config, policy, tasks, judge, RunDirectory(tmp_path / "run"), Observer())
        trainer = build_trainer(inputs, RunClock())
    prompts = [task.prompt for task in tasks.train]
    asked, *_ = trainer._tokenize_prompts([row["prompt"] for row in trainer.train_dataset])  # type: ignore[union-attr]
    expected = encode_chats(
        policy.tokenizer, [prompt.as_chat() for prompt in prompts], config.prompt.chat_template_options
    )
    assert sorted(map(tuple, asked)) == sorted(map(tuple, expected))
    text = str(policy.tokenizer.decode(expected[0]))
    assert text.rstrip().endswith("<think>\n\n</think>")
    assert text.index("Be brief.") < text.index("```python") < text.index(tasks.train[0].problem.statement)
    assert not trainer.opens_thinking
    # Frozen weights in bfloat16, adapters and so their optimizer in float32.
    kinds = {(weight.requires_grad, weight.dtype) for weight in trainer.model.parameters()}  # type: ignore[union-attr]
    assert kinds == {(False, torch.bfloat16), (True, torch.float32)}
