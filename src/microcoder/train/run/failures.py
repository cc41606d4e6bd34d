"""The disk that checkpoints need, and a full disk or memory in one line.

The run directory is whole in any case: what was half written is never taken for whole, and the same command resumes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from microcoder.judge.core.errors import MicroCoderError, TrainingError
from microcoder.judge.core.machine import is_disk_full
from microcoder.train.recipe.recipe import WEIGHT_BYTES, HuggingFaceModel, TrainConfig
from microcoder.train.run.estimate import count_model
from microcoder.train.runs import RunDirectory

_MIB = 2**20


def measure_room(config: TrainConfig, root: Path) -> tuple[str, int, float]:
    """Return what the disk has and a run's checkpoints take, in words; the free bytes; and the least bytes of one.

    A checkpoint has weights and the optimizer's state, measured on the latest if there is one; 0 bytes where that is
    not known: for adapters, or a model whose size is unknown.
    """
    run = RunDirectory(root)
    step, size = run.latest_checkpoint_step(), 0.0
    if step is not None:
        size = sum(path.stat().st_size for path in run.checkpoint(step).rglob("*") if path.is_file())
    elif config.weights.lora is None and (parameters := count_model(config.model)) is not None:
        each = WEIGHT_BYTES[config.weights.dtype]
        size = parameters * (each + config.optimizer.moment_bytes(each))
    nearest = next(path for path in (root.absolute(), *root.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(nearest).free
    takes = (
        f"a checkpoint takes about {show_bytes(size)}, and up to {most_checkpoints(config)} are there at a time"
        if size
        else "the size of a checkpoint is unknown"
    )
    return f"{nearest} has {show_bytes(free)} free; {takes}", free, size


def most_checkpoints(config: TrainConfig) -> int:
    """Return how many checkpoints are there at a time: those kept, the best, and the one that is being written."""
    return config.checkpoint.keep + config.checkpoint.keep_best + 1


def check_room(config: TrainConfig, root: Path) -> None:
    """Refuse to start a run whose checkpoints, all that are there at a time, do not fit on the disk."""
    room, free, size = measure_room(config, root)
    if free < (most_checkpoints(config) - len(RunDirectory(root).checkpoint_steps())) * size:
        raise TrainingError(
            f"no room for the checkpoints: {room}; free some space, use a --run-dir on another disk, or lower "
            f"checkpoint.keep (now {config.checkpoint.keep})"
        )


def show_bytes(number: float) -> str:
    """Return a size in MiB, or in GiB from one on."""
    return f"{number / 2**30:,.1f} GiB" if number >= 2**30 else f"{number / _MIB:,.1f} MiB"


_WRITING = re.compile(r"inline_container|PytorchStreamWriter")
"""torch.save, which says nothing of the reason."""
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|out of memory|can't allocate memory", re.IGNORECASE)


@contextmanager
def explain_failures(config: TrainConfig, run: RunDirectory) -> Iterator[None]:
    """Turn a full disk and a lack of memory into one line; other exceptions pass unchanged."""
    try:
        yield
    except MicroCoderError:
        raise
    except Exception as error:
        if (cause := explain_failure(error, config, run)) is None:
            raise
        step = run.latest_checkpoint_step()
        then = "starts the run again" if step is None else f"resumes the run after step {step}"
        raise TrainingError(f"{cause}; the same command {then}") from error


def explain_failure(error: BaseException, config: TrainConfig, run: RunDirectory) -> str | None:
    """Return whether an exception means that disk or memory are full, and what to do; None if neither."""
    if is_disk_full(error) or _WRITING.search(str(error)):
        room, *_ = measure_room(config, run.root)
        return f"the disk is full: {room}; free some space, or lower checkpoint.keep (now {config.checkpoint.keep})"
    if _OUT_OF_MEMORY.search(f"{type(error).__name__}: {error}"):
        reason = " ".join(str(error).split("\n")[0].split())[:200]
        return f"out of memory ({reason}); {how_to_shrink(config)}"
    return None


def how_to_shrink(config: TrainConfig) -> str:
    """Return which keys make a run need less memory, the mildest first."""
    model, rollout, vllm, ways = config.model, config.rollout, config.rollout.vllm, []
    if rollout.backend == "vllm":
        ways.append(f"lower rollout.vllm.gpu_memory_utilization (now {vllm.gpu_memory_utilization}; resumes as well)")
        if not vllm.enable_sleep_mode:
            ways.append("set rollout.vllm.enable_sleep_mode = true")
    if config.batch.micro_batch_rollouts > 1:
        ways.append(f"lower batch.micro_batch_rollouts (now {config.batch.micro_batch_rollouts}; resumes as well)")
    if isinstance(model, HuggingFaceModel):
        if rollout.backend == "transformers":
            ways.insert(0, 'use rollout.backend = "vllm"')
        if not model.gradient_checkpointing:
            ways.append("set model.gradient_checkpointing = true (resumes as well)")
        ways += ['use optimizer.name = "adamw_8bit"', "train adapters ([model.lora])"]
    return ", or ".join([*ways, f"lower rollout.max_response_tokens (now {rollout.max_response_tokens})"])
