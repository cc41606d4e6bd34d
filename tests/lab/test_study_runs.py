"""A real tiny study, killed in the middle: nothing is lost or done twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from microcoder.cli import main
from microcoder.lab.studies.design import MICRO, load_study
from microcoder.lab.studies.work import plan_runs
from microcoder.train.runs import RunDirectory

ROOT = Path(__file__).parents[2]
STUDY = """
question = "Does more masking matter?"
done = "A tiny model was trained with and without a mask."
next = "Train a larger one."
factor = "mask"
baseline = "recipe.toml"
reference = "none"
seeds = [0, 1, 2]
[levels.none]
[levels.all]
set = { "algorithm.masking.kind" = "all", "evaluation.sweep_temperatures" = [0.5, 1.5] }
[levels.nothing]
says = "the same run as none"
set = { "algorithm.masking.kind" = "none" }
[scales.quick]
baseline = "recipe.toml"
seeds = [0]
[[claims]]
id = "M6"
says = "A mask helps."
short = "a mask helps"
paper = "..."
family = "training"
design = "Runs with and without."
primary = { metric = "accuracy", feature = "late", of = ["all"], against = ["none"], direction = "same", least = 0.1 }
check = { metric = "masked", feature = "mean", of = ["all"] }
spread = { sd = 0.02, where = "a guess, for a test of the machinery" }
"""
RECIPE = """
prompt.style = "bare"
num_steps = 2
cpu_threads = 1
model = {{kind = "hugging_face", path = "{path}", compute_dtype = "float32", gradient_checkpointing = false}}
problems = {{kind = "micro", num_train = 8, num_heldout = 2, tiers = ["easy"]}}
rollout = {{num_samples = 2, max_response_tokens = 20}}
batch = {{train_batch_size = 4, ppo_mini_batch_size = 2, micro_batch_rollouts = 4}}
evaluator = {{workers = 1}}
evaluation = {{samples_per_problem = 1}}
checkpoint = {{every_steps = 1, keep = 1, keep_best = false}}
[algorithm.masking]
kind = "none"
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_study_resumes_after_a_kill_and_does_nothing_twice(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE.format(path=tiny_checkpoint))
    (tmp_path / "study.toml").write_text(STUDY)
    runs = plan_runs(load_study(tmp_path / "study.toml"), scale="quick", root=tmp_path / "runs")
    words = [sys.executable, "-m", "microcoder", "study"]
    command = [*words, "run", str(tmp_path / "study.toml"), "--quick", "--jobs", "1", "--runs", str(tmp_path / "runs")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    killed = subprocess.Popen(command, env=environment, cwd=tmp_path)
    while not RunDirectory(runs[0].folder).read_metrics():
        assert killed.poll() is None
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not all(run.is_finished for run in runs)

    # The worker sees that nobody is there, and lets go of its run.
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert all(run.is_finished for run in runs)
    assert "2 distinct" in done.stdout
    assert [row["step"] for row in RunDirectory(runs[0].folder).read_metrics()] == [1, 2]
    evaluations = RunDirectory(next(run.folder for run in runs if run.name == "all")).read_evaluations()
    assert [point["temperature"] for point in evaluations[0]["sweep"]] == [0.5, 1.5]
    assert not any(RunDirectory(run.folder).checkpoints.exists() for run in runs)

    main(command[3:])
    again = capsys.readouterr().out
    assert "2 distinct" in again
    assert "2 finished; next 0" in again
    (runs[1].folder / "summary.json").unlink()
    main([*command[3:], "--dry-run"])
    once = capsys.readouterr().out
    assert [line for line in once.splitlines() if line.startswith("missing")] == [
        f"missing   {runs[1].folder}  {runs[1].label}"
    ]
    assert "1 finished; next 1" in once
    micro = plan_runs(load_study(tmp_path / "study.toml"), scale=MICRO, root=tmp_path / "runs")
    assert {run.folder for run in runs} < {run.folder for run in micro}
