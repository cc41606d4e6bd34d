"""Runs that are replayed: short ones of the real engine on the tiny model."""

import shutil
from pathlib import Path

import pytest

from microcoder.judge.core.config import load_config
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.runs import RunDirectory, steps_in
from tests.train.small_runs import SMALL

# Mask, active choice and a stage of temperature: the first seed with a mixed group of which
# something is masked.
MASKED = {
    **SMALL,
    "num_steps": "4",
    "seed": "2",
    "problems.num_train": "12",
    "rollout.temperature.kind": "staged",
    "rollout.temperature.stages": "[{from_step = 1, value = 0.8}, {from_step = 3, value = 1.2}]",
    "algorithm.masking.rho": "1",
    "algorithm.masking.repeat_window_tokens": "4",
    "algorithm.problem_choice": "active",
    "evaluation.every_steps": "4",
    "checkpoint.every_steps": "2",
}
# A probe, a stage of length, dynamic filtering and a penalty.
ADAPTIVE = {
    **SMALL,
    "num_steps": "4",
    "seed": "2",
    "problems.num_train": "24",
    "rollout.temperature.kind": "diversity",
    "rollout.temperature.grid": "[0.6, 0.9]",
    "rollout.temperature.num_problems": "3",
    "rollout.temperature.converged_diversity": "0.3",
    "rollout.max_response_tokens": "20",
    "rollout.length_stages": "[{from_step = 3, max_response_tokens = 28}]",
    "algorithm.masking.kind": "soft_penalty",
    "algorithm.masking.window_tokens": "8",
    "algorithm.group_filtering": "dynamic",
    "evaluation.every_steps": "4",
    "checkpoint.every_steps": "2",
}
# Several rewards, a mask that leaves the baseline, and DAPO's filter by reward.
REWARDED = {
    **SMALL,
    "num_steps": "2",
    "seed": "2",
    "problems.num_train": "24",
    "rollout.temperature.value": "0.9",
    "rewards": '[{name = "all_tests"}, {name = "format", weight = 0.3}]',
    "algorithm.advantage": "rloo",
    "algorithm.masking.kind": "all",
    "algorithm.masking.leave_out_of": "baseline",
    "algorithm.group_filtering": "dynamic_reward",
    "evaluation.every_steps": "2",
    "checkpoint.every_steps": "2",
}


def train_run(checkpoint: Path, folder: Path, recipe: dict[str, str]) -> Path:
    """Train, or go on, by TRL's engine in this process."""
    import torch

    from microcoder.train.run.checkpoints import Observer
    from microcoder.train.run.training import run_training

    torch.set_num_threads(1)
    config = load_config(TrainConfig, overrides={**recipe, "model.path": str(checkpoint)})
    run_training(config, run_directory=folder, observer=Observer(), command=["test"])
    return folder


@pytest.fixture(scope="session")
def masked_run(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_run(tiny_checkpoint, tmp_path_factory.mktemp("replay") / "masked", MASKED)


@pytest.fixture(scope="session")
def adaptive_run(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_run(tiny_checkpoint, tmp_path_factory.mktemp("replay") / "adaptive", ADAPTIVE)


@pytest.fixture(scope="session")
def rewarded_run(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_run(tiny_checkpoint, tmp_path_factory.mktemp("replay") / "rewarded", REWARDED)


@pytest.fixture(scope="session")
def resumed_run(
    masked_run: Path, tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The masked run as a kill before its last checkpoint leaves it, gone on with."""
    folder = tmp_path_factory.mktemp("replay") / "resumed"
    shutil.copytree(masked_run, folder)
    cut = RunDirectory(folder)
    cut.summary.unlink()
    shutil.rmtree(cut.model)
    shutil.rmtree(cut.checkpoint(max(steps_in(cut.checkpoints))))
    return train_run(tiny_checkpoint, folder, MASKED)
