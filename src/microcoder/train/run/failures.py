"""The disk that checkpoints need, and failures of the machine in one line: a full disk, a lost GPU, a dead process.

The run directory is whole in any case: what was half written is never taken for whole, and the same command resumes.
"""

from __future__ import annotations

import re
import shutil
import tempfile
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


_LITTLE_BYTES = 64 << 20
_WRITING = re.compile(r"inline_container|PytorchStreamWriter", re.IGNORECASE)
"""torch.save, which says nothing of the reason."""
_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|CUBLAS_STATUS_ALLOC_FAILED", re.IGNORECASE)
_LOST_GPU = re.compile(r"CUDA error|CUBLAS_STATUS|CUDNN_STATUS|GPU is lost|HIP error|Xid", re.IGNORECASE)
_LOST_SAMPLER = re.compile(r"EngineDeadError|EngineCore .*died")
"""Messages by which the end of vLLM's engine process is known."""
_LOST_PEER = re.compile(r"gloo/transport|\bNCCL\b|Dist(?:Backend|Network|Store)Error|ProcessGroup")
"""Words of torch.distributed's transports, by which a lost peer is known."""


@contextmanager
def explain_failures(config: TrainConfig, run: RunDirectory) -> Iterator[None]:
    """Turn failures of the machine into one line; other exceptions pass unchanged."""
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
    """Return which failure of the machine an exception means, and what to do; None if none."""
    chain = list(_chain(error))
    said = " ".join(f"{type(one).__name__}: {one}" for one in chain)
    if any(is_disk_full(one) for one in chain) or (_WRITING.search(said) and _is_full(run.root)):
        return _explain_disk(chain, config, run)
    reason = " ".join(str(error).split("\n")[0].split())[:200]
    if any(type(one).__name__ == "OutOfMemoryError" for one in chain) or _OUT_OF_MEMORY.search(said):
        return f"out of memory ({reason}); {how_to_shrink(config)}"
    if _LOST_GPU.search(said):
        return f"the GPU failed ({reason}); look at `nvidia-smi` and at Xid lines of `dmesg`, or restart the machine"
    if _LOST_SAMPLER.search(said):
        return f"vLLM's engine ended ({reason}); its own output says why"
    if _LOST_PEER.search(said):
        return f"another process of the run ended ({reason}); its own output says why"
    return None


def _explain_disk(chain: list[BaseException], config: TrainConfig, run: RunDirectory) -> str:
    named = [Path(one.filename) for one in chain if isinstance(one, OSError) and isinstance(one.filename, str)]
    temporary = Path(tempfile.gettempdir())
    place = next((path.parent for path in named), run.root)
    if not named and not _is_full(run.root) and _is_full(temporary):
        place = temporary
    if place.is_relative_to(run.root) or place == run.root:
        room, *_ = measure_room(config, run.root)
        return f"the disk is full: {room}; free some space, or lower checkpoint.keep (now {config.checkpoint.keep})"
    return f"the disk of {place} is full ({show_bytes(shutil.disk_usage(place).free)} free); free some space"


def how_to_shrink(config: TrainConfig) -> str:
    """Return which keys make a run need less memory, the mildest first."""
    ways = []
    if config.rollout.backend == "vllm" and config.rollout.vllm.mode == "colocate":
        share = config.rollout.vllm.gpu_memory_utilization
        ways.append(f"lower rollout.vllm.gpu_memory_utilization (now {share}; resumes as well)")
        if not config.rollout.vllm.enable_sleep_mode:
            ways.append("set rollout.vllm.enable_sleep_mode = true")
    if (
        config.rollout.backend == "transformers"
        and config.engine == "trl"
        and isinstance(config.model, HuggingFaceModel)
    ):
        ways.append('use rollout.backend = "vllm"')
    if config.batch.micro_batch_rollouts > 1:
        ways.append(f"lower batch.micro_batch_rollouts (now {config.batch.micro_batch_rollouts}; resumes as well)")
    if isinstance(config.model, HuggingFaceModel):
        if not config.model.gradient_checkpointing:
            ways.append("set model.gradient_checkpointing = true (resumes as well)")
        if config.optimizer.name.startswith("adamw_torch"):
            ways.append('use optimizer.name = "adamw_8bit"')
        if config.model.lora is None:
            ways.append("train adapters ([model.lora])")
    ways.append(f"lower rollout.max_response_tokens (now {config.rollout.max_response_tokens})")
    ways.append(f"in evaluations, evaluation.batch_rollouts (now {config.evaluation.batch_rollouts})")
    return ", or ".join(ways)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _is_full(place: Path) -> bool:
    return shutil.disk_usage(place).free < _LITTLE_BYTES
