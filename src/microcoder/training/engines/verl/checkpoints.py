"""verl's checkpoints as ours: a Hugging Face folder, with verl's sharded state in `verl/` beside the weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microcoder.runs import RunDirectory
from microcoder.training.checkpoints import STAGING, publish_checkpoint


def state_folder(checkpoint: Path) -> Path:
    """Return where verl's own state is within a checkpoint: one file a training process."""
    return checkpoint / "verl"


def save_checkpoint(
    workers: Any, run: RunDirectory, *, step: int, clock: Mapping[str, float], keep: int, best: int | None
) -> None:
    """Have all training processes write their state, then publish it as the step's checkpoint.

    Every machine with training processes must see the run directory under the same path.
    """
    staged = (run.checkpoints / STAGING / f"step_{step}").absolute()
    shutil.rmtree(staged, ignore_errors=True)
    state = state_folder(staged)
    workers.save_checkpoint(str(state), None, step, max_ckpt_to_keep=None)
    weights = state / "huggingface"
    for file in weights.iterdir():
        file.replace(staged / file.name)
    weights.rmdir()
    _say_stored_type(staged)
    publish_checkpoint(staged, run, step=step, clock=clock, keep=keep, best=best)


def _say_stored_type(folder: Path) -> None:
    # verl builds the model it saves with in bfloat16 and says so in the config, whatever type the weights have.
    from safetensors import safe_open

    file = next(iter(sorted(folder.glob("*.safetensors"))))
    with safe_open(str(file), framework="pt") as tensors:
        stored = str(tensors.get_tensor(next(iter(tensors.keys()))).dtype).removeprefix("torch.")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["dtype"] = stored
    config.pop("torch_dtype", None)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
