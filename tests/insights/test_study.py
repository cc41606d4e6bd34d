"""Studies: what is planned, and the table of what is finished."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_run import Recipe, write_run

from microcoder.cli import main
from microcoder.errors import ConfigError
from microcoder.insights.study import load_study, plan_runs, write_table

ROOT = Path(__file__).parents[2]
STUDIES = sorted(ROOT.glob("studies/*.toml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_plans_a_run_for_each_variant_and_seed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    study = load_study(path)
    runs = plan_runs(study, root=tmp_path)
    assert len(study.seeds) >= 3
    assert len(runs) == len(study.seeds) * len(study.variants)
    assert len({run.folder for run in runs}) == len(runs)
    assert {run.config.seed for run in runs} == set(study.seeds)
    main(["study", str(path), "--runs", str(tmp_path), "--dry-run"])
    assert capsys.readouterr().out.count("steps") == len(runs)


def test_the_table_pools_seeds_and_names_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    study = load_study(STUDIES[0])
    runs = plan_runs(study, root=tmp_path)
    for run in runs:
        if run.variant != "grpo":
            write_run(run.folder, Recipe(num_steps=6, num_heldout=12, seed=run.seed))
    table = write_table(study, runs)
    rows = {line.split(" | ")[0].strip("| "): line for line in table.splitlines() if line.startswith("| ")}
    assert "0 of 3" in rows["grpo"]
    assert "3 of 3" in rows["dapo"]
    assert rows["dapo"].split(" | ")[5] == "baseline"
    # The same seeds pretend the same learning: no difference to find.
    assert rows["microcoder-grpo"].split(" | ")[5].startswith("+0.000 [")
    assert study.question in table


def test_a_wrong_study_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text('question = "?"\nbaseline = "a"\nseeds = [0]\n[variants]\nb = "recipe.toml"\n')
    with pytest.raises(ConfigError, match="baseline 'a' is no variant; use one of b"):
        load_study(path)
    path.write_text("question = 1")
    with pytest.raises(ConfigError, match="keys are question, baseline"):
        load_study(path)


@pytest.mark.slow
def test_a_study_runs_what_is_missing_and_writes_its_table(tiny_checkpoint: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f"""prompt_style = "bare"
num_steps = 1
model = {{kind = "hugging_face", path = "{tiny_checkpoint}", compute_dtype = "float32"}}
problems = {{kind = "micro", num_train = 8, num_heldout = 2, tiers = ["easy"]}}
rollout = {{num_samples = 2, max_response_tokens = 20}}
batch = {{train_batch_size = 4, ppo_mini_batch_size = 4, micro_batch_rollouts = 8}}
evaluator = {{workers = 1}}
"""
    )
    study = tmp_path / "study.toml"
    study.write_text(f'question = "?"\nbaseline = "a"\nseeds = [0, 1]\n[variants]\na = "{recipe}"\n')
    command = [sys.executable, "-m", "microcoder", "study", str(study), "--runs", str(tmp_path / "runs")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=250)
    assert done.returncode == 0, done.stderr
    assert "| a | 2 of 2 |" in done.stdout
    assert (tmp_path / "runs" / "table.md").read_text(encoding="utf-8") in done.stdout
