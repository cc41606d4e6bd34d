"""Disk space: the size of a run's checkpoints, and the free space for them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from microcoder.errors import TrainingError
from microcoder.runs import RunDirectory
from microcoder.training.architectures import count_model
from microcoder.training.config import TrainConfig
from microcoder.training.model_config import WEIGHT_BYTES

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Disk space that checkpoints need, and that is free."""

    folder: Path
    """The nearest folder that exists."""
    free_bytes: int
    checkpoint_bytes: float | None
    """Of one, at least: weights and the optimizer's state; None for adapters, or where the model's size is unknown."""
    num_checkpoints: int
    """Most that are there at a time: those kept, the best, and the one that is being written."""

    def __str__(self) -> str:
        here = f"{self.folder} has {show_bytes(self.free_bytes)} free"
        if self.checkpoint_bytes is None:
            return f"{here}; the size of a checkpoint is unknown"
        return (
            f"{here}; a checkpoint takes about {show_bytes(self.checkpoint_bytes)}, "
            f"and up to {self.num_checkpoints} are there at a time"
        )


def measure_room(config: TrainConfig, root: Path) -> DiskSpace:
    """Return the disk space of a run's checkpoints, measured on the latest if there is one, and the free space."""
    run = RunDirectory(root)
    step = run.latest_checkpoint_step()
    size = _folder_bytes(run.checkpoint(step)) if step is not None else _least_checkpoint_bytes(config)
    nearest = next(path for path in (root.absolute(), *root.absolute().parents) if path.is_dir())
    kept = config.checkpoint.keep + config.checkpoint.keep_best + 1
    return DiskSpace(nearest, shutil.disk_usage(nearest).free, size, kept)


def check_room(config: TrainConfig, root: Path) -> None:
    """Refuse to start a run whose first checkpoint does not fit on the disk.

    Raises:
        TrainingError: how much there is, how much is needed.
    """
    room = measure_room(config, root)
    if not RunDirectory(root).checkpoint_steps() and room.free_bytes < (room.checkpoint_bytes or 0):
        raise TrainingError(f"no room for a checkpoint: {room}; free some space, or use a --run-dir on another disk")


def show_bytes(number: float) -> str:
    """Return a size in MiB, or in GiB from one on."""
    return f"{number / 2**30:,.1f} GiB" if number >= 2**30 else f"{number / _MIB:,.1f} MiB"


def _least_checkpoint_bytes(config: TrainConfig) -> float | None:
    if config.weights.lora is not None:
        return None
    parameters, each = count_model(config.model), WEIGHT_BYTES[config.weights.dtype]
    return None if parameters is None else parameters * (each + config.optimizer.moment_bytes(each))


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
