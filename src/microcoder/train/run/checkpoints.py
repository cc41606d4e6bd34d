"""Checkpoints (Hugging Face folders, written atomically), observers and clocks of a run, and its Ctrl-C."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from microcoder.judge.core.errors import DataError, TrainingError
from microcoder.judge.core.files import new_folder, read_json, write_json
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.run.model_files import check_files
from microcoder.train.run.progress import SamplingProgress
from microcoder.train.runs import RunDirectory, steps_in


class Observer:
    """Receives the events of a run or an evaluation and ignores them; subclasses show them, and change no result."""

    def phase(self, name: str, *, done: int = 0, total: int = 0) -> None:
        """Called as a phase begins; if `advance` counts its units of work, `done` of `total` are done already."""

    def advance(self, label: str) -> None:
        """Called when one more unit of the phase's work is done; `label` is its kind."""

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Called when a training step is done."""

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Called when an evaluation on held-out problems is done."""

    def probe(self, probe: Any) -> None:
        """Called when a probe of the untrained model (`probe.Probe`) has chosen a temperature."""

    def sampling(self, progress: SamplingProgress) -> None:
        """Called now and then while a batch of responses is sampled."""

    def note(self, text: str) -> None:
        """Called with a message for the user."""


class PhaseClock:
    """Wall time by phase since the last reading; time outside any phase counts as `update`, the engine's own work."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Within the body, count the wall time for the phase `name`."""
        self._observer.phase(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start
            self._observer.phase("update")

    def read(self) -> dict[str, float]:
        """Return the seconds by phase and their total, and reset."""
        now = time.perf_counter()
        total = now - self._since
        seconds = {
            **self._seconds,
            "update": max(0.0, total - sum(self._seconds.values())),
            "total": total,
        }
        self._seconds, self._since = {}, now
        return {name: round(value, 4) for name, value in seconds.items()}


class RunClock:
    """Wall and CPU seconds of a run, earlier attempts included; steps lost to a kill do not count."""

    def __init__(self, *, wall_seconds: float = 0.0, cpu_seconds: float = 0.0) -> None:
        self._wall_before, self._cpu_before = wall_seconds, cpu_seconds
        self._wall_start, self._cpu_start = time.perf_counter(), sum(os.times()[:4])

    def read(self) -> dict[str, float]:
        """Return `wall_seconds` and `cpu_seconds` up to now; ended child processes are counted."""
        return {
            "wall_seconds": round(self._wall_before + time.perf_counter() - self._wall_start, 3),
            "cpu_seconds": round(self._cpu_before + sum(os.times()[:4]) - self._cpu_start, 3),
        }


@contextmanager
def stop_between_steps(ask: Callable[[], bool], observer: Observer) -> Iterator[None]:
    """Within the body, let Ctrl-C call `ask`, to stop after the step; if it returns False, stop at once."""

    def request(signum: int, frame: FrameType | None) -> None:
        if not ask():
            raise KeyboardInterrupt
        observer.note("stopping after this step; press Ctrl-C again to stop at once")

    before = signal.signal(signal.SIGINT, request)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


STATE_FILE = "microcoder.json"
"""File in a checkpoint, beside the engine's state, with the step and the run's clock."""
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_IS_GGUF = "is GGUF, llama.cpp's format, which is not read here; use the safetensors files that it was made of"
_MODEL_FILES = (
    "*.safetensors",
    "*.safetensors.index.json",
    "pytorch_model*",
    "*.json",
    "*.jinja",
    "*.txt",
    "*.model",
)


def model_folder(name: str) -> Path | None:
    """Return the local folder of a model name; None for a Hub id."""
    is_folder = Path(name).exists() or name.startswith((".", "/", "~")) or name.count("/") > 1
    return Path(name).expanduser() if is_folder else None


def check_model_folder(path: Path) -> None:
    """Raise DataError unless a folder holds the whole files of a causal language model and its tokenizer."""
    if path.name.endswith(".gguf"):
        raise DataError(f"model {path} {_IS_GGUF}")
    if not path.is_dir():
        raise DataError(
            f"model {path} is no folder here; use a checkpoint folder or a hub id such as Qwen/Qwen3-4B"
        )
    if (path / "adapter_config.json").exists() and not (path / "config.json").exists():
        raise DataError(
            f"model {path} is an adapter (adapter_config.json), not a model; merge it into its base model with PEFT's "
            "merge_and_unload(), save that and the tokenizer, and use the new folder"
        )
    parts = {
        "config.json": ("config.json",),
        "weights (*.safetensors or pytorch_model.bin)": _WEIGHTS,
        "tokenizer (tokenizer.json)": ("tokenizer.json", "tokenizer.model", "vocab.json"),
    }
    if any(path.glob("*.gguf")) and not any(any(path.glob(name)) for name in _WEIGHTS):
        raise DataError(f"checkpoint folder {path} {_IS_GGUF}")
    if lacks := [
        what for what, names in parts.items() if not any(any(path.glob(name)) for name in names)
    ]:
        raise DataError(
            f"checkpoint folder {path} has no {' and no '.join(lacks)}; use a folder written by save_pretrained() of "
            "model and tokenizer, or another with --model.path"
        )
    check_files(path)


def publish_checkpoint(
    staged: Path, run: RunDirectory, *, step: int, clock: Mapping[str, float], keep: int
) -> Path:
    """Rename an engine's folder to the step's checkpoint, delete the oldest beyond `keep`, and return the new path."""
    write_json(staged / STATE_FILE, {"step": step, **clock})
    published = run.checkpoints / f"step_{step:06d}"
    published.parent.mkdir(exist_ok=True)
    if published.exists():
        shutil.rmtree(published)
    staged.replace(published)
    for old in steps_in(run.checkpoints)[:-keep]:
        shutil.rmtree(run.checkpoint(old))
    return published


def read_clock(run: RunDirectory, step: int) -> dict[str, float]:
    """Return the run's `wall_seconds` and `cpu_seconds` at a checkpoint; of a verl run only the steps' wall time."""
    if not (path := run.checkpoint(step) / STATE_FILE).exists():
        return {
            "wall_seconds": sum(
                row["seconds"]["total"] for row in run.read_metrics() if row["step"] <= step
            )
        }
    state: dict[str, Any] = read_json(path, what="checkpoint state")
    return {name: state[name] for name in ("wall_seconds", "cpu_seconds")}


def copy_model(checkpoint: Path, target: Path) -> None:
    """Copy a checkpoint's weights and tokenizer, without the engine's state, to `target`, atomically."""
    if not any(file for pattern in _WEIGHTS for file in checkpoint.glob(pattern)):
        raise TrainingError(
            f"{checkpoint} has no weights in Hugging Face format (sharded?); consolidate it with "
            "`accelerate merge-weights`, or train with FSDP's FULL_STATE_DICT"
        )
    with new_folder(target) as partial:
        for file in {file for pattern in _MODEL_FILES for file in checkpoint.glob(pattern)}:
            if file.name not in ("trainer_state.json", STATE_FILE):
                shutil.copy2(file, partial / file.name)
