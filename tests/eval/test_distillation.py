"""Fine-tuning on answers: what is kept, what is in the loss, what is written and refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from microcoder.cli import main
from microcoder.data.micro import generate_problems
from microcoder.data.release.problems import write_problems
from microcoder.eval.config import DistillConfig, EvalConfig
from microcoder.eval.distillation import plan_distillation, run_distillation
from microcoder.eval.evaluation import run_evaluation
from microcoder.eval.report import EvaluationFolder
from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer, check_model_folder
from microcoder.train.run.kept_answers import Answer, keep_answers
from microcoder.train.run.training import run_training
from microcoder.train.run.weights import load_checkpoint
from microcoder.train.trl.fine_tuning import _encode, _find_end
from tests.train.small_runs import SMALL

RECIPES = Path(__file__).parents[2] / "recipes/distill"


class Notes(Observer):
    """Keeps what the user is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of easy problems."""
    path = tmp_path_factory.mktemp("problems") / "problems.jsonl"
    easy = generate_problems(split="heldout", num_problems=8, seed=0, tiers=["easy"])
    write_problems(path, easy)
    return path


@pytest.fixture(scope="module")
def answers(
    tiny_checkpoint: Path, problems: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An evaluation of the tiny model, whose answers are right now and then."""
    torch.set_num_threads(1)
    keys = {
        "benchmark.kind": "problems",
        "benchmark.path": str(problems),
        "generation.model": str(tiny_checkpoint),
        "generation.dtype": "float32",
        "sampling.num_samples": "8",
        "sampling.temperature": "0.9",
        "sampling.top_k": "20",
        "sampling.max_tokens": "40",
        "prompt.style": "bare",
        "judging.workers": "1",
    }
    folder = tmp_path_factory.mktemp("answers") / "answers"
    run_evaluation(load_config(EvalConfig, overrides=keys), run_directory=folder, observer=Notes())
    return folder


def plan(source: Path, **keys: str) -> DistillConfig:
    given = {
        "source": str(source),
        "keep": "all",
        "learning_rate": "1e-3",
        "batch_size": "16",
        "micro_batch_size": "8",
        "compute_dtype": "float32",
        "gradient_checkpointing": "false",
        **keys,
    }
    return load_config(DistillConfig, overrides=given)


def test_a_model_is_fine_tuned_and_measured(
    answers: Path, tiny_checkpoint: Path, problems: Path, tmp_path: Path
) -> None:
    heldout = {
        "num_epochs": "2",
        "heldout.benchmark.kind": "problems",
        "heldout.benchmark.path": str(problems),
        "heldout.sampling.num_samples": "1",
        "heldout.sampling.max_tokens": "8",
        "heldout.dtype": "float32",
        "heldout.prompt.style": "bare",
        "heldout.judging.workers": "1",
    }
    config = plan(answers, **heldout)
    target = tmp_path / "distilled"
    notes = Notes()
    summary = run_distillation(config, run_directory=target, observer=notes)
    assert summary["num_answers"] == 64
    assert summary["num_updates"] == 8
    assert len(summary["losses"]) == 8
    assert all(0 < loss < 10 for loss in summary["losses"])
    assert notes.texts[0] == "64 of 64 answers are kept"
    check_model_folder(target / "model")
    before = load_file(tiny_checkpoint / "model.safetensors")
    after = load_file(target / "model" / "model.safetensors")
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    for name, accuracy in (("before", "accuracy_before"), ("after", "accuracy_after")):
        assert EvaluationFolder(target / "heldout" / name).results.is_file()
        assert 0 <= summary[accuracy] <= 1
    # Nothing is done twice.
    again = run_distillation(config, run_directory=target, observer=notes)
    assert again == summary
    assert "already finished" in notes.texts[-1]
    with pytest.raises(DataError, match=r"learning_rate: 0\.001 -> 0\.002"):
        run_distillation(
            plan(answers, **{**heldout, "learning_rate": "2e-3"}),
            run_directory=target,
            observer=notes,
        )


def test_a_fine_tuning_that_was_killed_begins_anew(answers: Path, tmp_path: Path) -> None:
    target = tmp_path / "distilled"
    config = plan(answers, keep="accepted")
    whole = run_distillation(config, run_directory=tmp_path / "whole", observer=Notes())
    # As a kill leaves it: weights half written, in the folder that is renamed in the end.
    target.mkdir()
    shutil.copy(tmp_path / "whole" / "manifest.json", target)
    partial = target / ".model.partial"
    partial.mkdir()
    (partial / "model.safetensors").write_bytes(b"half")
    resumed = run_distillation(config, run_directory=target, observer=Notes())
    assert resumed["losses"] == whole["losses"]
    assert not partial.exists()
    weights = load_file(tmp_path / "whole" / "model" / "model.safetensors")
    for name, weight in load_file(target / "model" / "model.safetensors").items():
        assert torch.equal(weight, weights[name])


def test_prompts_are_in_no_loss_and_only_whole_answers_end(tiny_checkpoint: Path) -> None:
    checkpoint = load_checkpoint(str(tiny_checkpoint), revision=None, dtype="float32")
    tokenizer: Any = checkpoint.tokenizer
    end_id = _find_end(checkpoint)
    prompt = "Read x, print x.<|sep|>"
    whole = _encode(Answer("p", prompt, "print(1)", False, True), tokenizer, end_id, {})
    prompt_ids = tokenizer(prompt)["input_ids"]
    answer_ids = tokenizer("print(1)")["input_ids"]
    assert whole["input_ids"] == [*prompt_ids, *answer_ids, tokenizer.eos_token_id]
    assert whole["labels"] == [-100] * len(prompt_ids) + [*answer_ids, tokenizer.eos_token_id]
    cut = _encode(Answer("p", prompt, "print(1)", True, True), tokenizer, end_id, {})
    assert cut["input_ids"] == [*prompt_ids, *answer_ids]
    chat = [{"role": "user", "content": "Read x, print x."}]
    assert _encode(Answer("p", chat, "print(1)", False, True), tokenizer, end_id, {}) == whole


def test_what_is_kept() -> None:
    right = Answer("p", "?", "print(1)", False, True)
    wrong = Answer("p", "?", "print(2)", False, False)
    empty = Answer("p", "?", " \n", False, False)
    elsewhere = Answer("q", "?", "print(1)", False, True)
    given = [right, wrong, empty, right, elsewhere]
    accepted = keep_answers(given, "accepted")
    assert accepted.answers == [right, elsewhere]
    assert accepted.left_out == {"empty": 1, "not accepted": 1, "the same again": 1}
    unverified = keep_answers(given, "all")
    assert unverified.answers == [right, wrong, right, elsewhere]
    assert unverified.left_out == {"empty": 1}


def test_the_rollouts_of_a_run_are_a_source(tiny_checkpoint: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    keys = {**SMALL, "num_steps": "1", "problems.num_heldout": "2"}
    config = load_config(TrainConfig, overrides={**keys, "model.path": str(tiny_checkpoint)})
    run_training(config, run_directory=tmp_path / "run", observer=Observer())
    distillation = plan_distillation(plan(tmp_path / "run"))
    assert distillation.model == str(tiny_checkpoint)
    assert distillation.num_answers == 32
    words = ["distill", "--from", str(tmp_path / "run"), "--keep", "all"]
    words += ["--batch-size", "32", "--compute-dtype", "float32"]
    main([*words, "--run-dir", str(tmp_path / "distilled")])
    check_model_folder(tmp_path / "distilled" / "model")


def test_mistakes_are_named(
    answers: Path, tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DataError, match="is neither a training run nor an evaluation"):
        plan_distillation(plan(tmp_path))
    wrong = shutil.copytree(answers, tmp_path / "wrong")
    text = (wrong / "verdicts.jsonl").read_text()
    (wrong / "verdicts.jsonl").write_text(text.replace('"accepted"', '"wrong_answer"'))
    with pytest.raises(DataError, match=r"none of the 64 answers .* is kept .*or --keep all"):
        plan_distillation(plan(wrong, keep="accepted"))
    run = tmp_path / "distilled"
    with pytest.raises(ConfigError, match="micro_batch_size=3 does not divide batch_size=16"):
        run_distillation(plan(answers, micro_batch_size="3"), run_directory=run, observer=Notes())
    with pytest.raises(DataError, match="no answer fits: the shortest has"):
        run_distillation(
            plan(answers, max_tokens="2"), run_directory=tmp_path / "short", observer=Notes()
        )
    assert not (tmp_path / "short" / "model").exists()
    other = shutil.copytree(tiny_checkpoint, tmp_path / "other")
    template = "{% for m in messages %}{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}"
    (other / "chat_template.jinja").write_text(template + "ANSWER:{% endif %}")
    with pytest.raises(DataError, match="are of another chat template than that of"):
        run_distillation(
            plan(answers, model=str(other)), run_directory=tmp_path / "o", observer=Notes()
        )
    with pytest.raises(SystemExit):
        main(["distill"])
    assert "no answers; type: microcoder distill --from RUN_OR_EVAL" in capsys.readouterr().err


def test_answers_of_a_server_are_asked_with_the_models_own_template(
    answers: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    served = shutil.copytree(answers, tmp_path / "served")
    rows = [json.loads(line) for line in (served / "samples.jsonl").read_text().splitlines()]
    lines = []
    prompts = {}
    for row in rows:
        prompts[row["problem_id"]] = row.pop("prompt")
        lines.append(json.dumps(row))
    (served / "samples.jsonl").write_text("\n".join(lines) + "\n")
    manifest = json.loads((served / "manifest.json").read_text())
    manifest["config"]["generation"] = {
        "kind": "endpoint",
        "base_url": "http://localhost:1/v1",
        "model": "m",
    }
    (served / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="does not say which model here answered"):
        plan_distillation(plan(served))
    distillation = plan_distillation(plan(served, model=str(tiny_checkpoint)))
    checkpoint = load_checkpoint(str(tiny_checkpoint), revision=None, dtype="float32")
    tokenizer: Any = checkpoint.tokenizer
    for answer in distillation.selection.answers:
        end_id = _find_end(checkpoint)
        row = _encode(answer, tokenizer, end_id, distillation.template_options)
        ids = row["input_ids"]
        expected = tokenizer(prompts[answer.problem_id])["input_ids"]
        assert ids[: len(expected)] == expected


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_recipe_is_read(recipe: Path) -> None:
    if recipe.stem.endswith("-answers"):
        config = load_config(EvalConfig, [recipe], {"generation.model": "m"})
        assert config.generation.kind == "transformers"
        return
    assert load_config(DistillConfig, [recipe], {"source": "answers"}).heldout is not None
