"""What the verl tests train: the smallest runs with a stage of temperature and one of length.

Most of a run is the start: its processes import torch or verl one after the other.
So there are few, started at once.
"""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from microcoder.train.runs import RunDirectory
from tests.train.small_runs import SMALL, finish, start_training

# verl asks for its device as it is imported, by whichever test comes first.
os.environ.setdefault("VERL_USE_EXTERNAL_MODULES", "verl_on_cpu.hooks")
ON_CPU = Path(__file__).parents[3] / "examples" / "cluster" / "micro_on_cpu.toml"

# Not importorskip: importing verl takes many seconds, also where its tests are not selected. Asked
# of a package that verl needs, since this very folder answers to the name verl.
needs_verl = pytest.mark.skipif(
    find_spec("transfer_queue") is None, reason="verl is not installed: make test-verl"
)

RECIPE = {
    **SMALL,
    "engine": "verl",
    # Of the first few seeds the one whose first step has most mixed groups.
    "seed": "5",
    "problems.seed": "5",
    "cpu_threads": "1",
    "num_steps": "3",
    "problems.num_train": "16",
    "problems.num_heldout": "4",
    "rollout.length_stages": "[{from_step = 2, max_response_tokens = 32}]",
    "rollout.temperature.kind": "staged",
    "rollout.temperature.stages": "[{from_step = 1, value = 0.4}, {from_step = 2, value = 1.2}]",
    "algorithm.masking.rho": "0.5",
    "algorithm.masking.repeat_window_tokens": "4",
    "algorithm.masking.leave_out_of": "denominator",
    "evaluation.every_steps": "3",
    "checkpoint.every_steps": "1",
    "checkpoint.keep": "3",
}


ONE_UPDATE = {"batch.ppo_mini_batch_size": "8", "algorithm.loss.clip_high": "0.2"}
"""Which rollouts share an update is each engine's shuffle: of one they can be compared."""
ADAPTED = {
    "verl.trainer.n_gpus_per_node": "2",
    "verl.+ray_kwargs.ray_init.num_gpus": "2",
    "verl.actor_rollout_ref.rollout.tensor_model_parallel_size": "2",
    "evaluator.backend": "ray",
    "model.lora.rank": "8",
    "model.lora.alpha": "16",
    "num_steps": "2",
    "rollout.length_stages": "[]",
    "evaluation.every_steps": "2",
    "verl.algorithm.rollout_correction.rollout_is": "token",
}
"""Two FSDP2 ranks, an adapter, verl's own rollout correction, reward workers by node."""


AHEAD = {
    "verl.trainer.v1.trainer_mode": "microcoder_separate_async",
    "verl.actor_rollout_ref.rollout.nnodes": "1",
    "verl.actor_rollout_ref.rollout.n_gpus_per_node": "1",
    "verl.actor_rollout_ref.rollout.checkpoint_engine.backend": "file",
    "verl.actor_rollout_ref.rollout.checkpoint_engine.custom_backend_module": "verl_on_cpu.weights",
    "verl.+ray_kwargs.ray_init.num_gpus": "2",
    "verl.+microcoder.seeded_sampling": "false",
    "batch.ppo_mini_batch_size": "4",
    "rollout.temperature.kind": "diversity",
    "rollout.temperature.grid": "[0.6, 0.9]",
    "rollout.temperature.num_problems": "4",
    "rollout.temperature.stages": "",
}
"""A server with a device of its own samples while another trains, two updates a step,
at a probe's temperature.
"""


def compose_verl(words: Sequence[str]) -> Any:
    """Return verl's whole configuration, as hydra composes it of options."""
    from hydra import compose, initialize_config_dir

    with initialize_config_dir(config_dir=str(files("verl.trainer") / "config"), version_base=None):
        return compose(config_name="ppo_trainer", overrides=list(words))


def start(
    checkpoint: Path, run: RunDirectory, paused_step: str = "", **changes: str
) -> subprocess.Popen[str]:
    """Start a training: verl changes the process it is loaded in; "" drops a key."""
    recipe = {**RECIPE, **ONE_UPDATE, "model.path": str(checkpoint), **changes}
    # A cluster of its own, whatever else runs on this machine.
    own = {
        "PYTHONPATH": str(Path(__file__).parent),
        "RAY_ADDRESS": "local",
        "PAUSED_STEP": paused_step,
    }
    filled = {}
    for key, value in recipe.items():
        if value:
            filled[key] = value
    return start_training(
        filled,
        run.root,
        config=ON_CPU,
        **own,
    )


def train(
    checkpoint: Path, run: RunDirectory, paused_step: str = "", **changes: str
) -> RunDirectory:
    """Train to the end."""
    finish(start(checkpoint, run, paused_step, **changes), run.root)
    return run


@dataclass
class Runs:
    """What was trained, at the same time."""

    resumed: RunDirectory
    """Killed after its first step, and started again."""
    adapted: RunDirectory
    dump: Path
    """Where verl itself wrote the rollouts of `adapted`."""
    ahead: RunDirectory
    """Sampled ahead of its updates; killed and started again, too."""


def kill_and_resume(
    checkpoint: Path, run: RunDirectory, paused_step: str = "", **changes: str
) -> None:
    """Kill a training once its first step is saved, and train to the end."""
    first = start(checkpoint, run, paused_step, **changes)
    while run.latest_checkpoint_step() != 1:
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait(timeout=60)
    assert not run.is_finished
    train(checkpoint, run, paused_step, **changes)


def make_runs(checkpoint: Path, root: Path) -> Runs:
    """Train what these tests look at."""
    dump = root / "dump"
    found = Runs(
        resumed=RunDirectory(root / "resumed"),
        adapted=RunDirectory(root / "adapted"),
        dump=dump,
        ahead=RunDirectory(root / "ahead"),
    )
    dumps = {"verl.trainer.rollout_data_dir": str(dump)}
    adapted = start(checkpoint, found.adapted, **ADAPTED, **dumps)
    with ThreadPoolExecutor(2) as beside:
        killed = [
            beside.submit(kill_and_resume, checkpoint, found.resumed),
            # The second step trains on what is left of the first,
            # and its own prompts wait for its weights.
            beside.submit(kill_and_resume, checkpoint, found.ahead, "1", **AHEAD),
        ]
        finish(adapted, found.adapted.root)
        for one in killed:
            one.result()
    return found
