"""Checkpoints of a run, its observers and clocks, and its Ctrl-C.

A checkpoint is a Hugging Face folder, written atomically.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from microcoder.judge.core.errors import DataError, TrainingError
from microcoder.judge.core.files import new_folder, read_json, write_json
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.run.gguf_header import SUFFIX, check_gguf, find_gguf
from microcoder.train.run.model_files import WEIGHTS, check_files
from microcoder.train.run.progress import SamplingProgress, UpdateProgress
from microcoder.train.runs import RunDirectory, steps_in

if TYPE_CHECKING:
    from microcoder.train.run.probe import Probe


class Observer:
    """Receives the events of a run or an evaluation and ignores them.

    Subclasses show them, and change no result.
    """

    def phase(self, name: str, *, done: int = 0, total: int = 0) -> None:
        """Called as a phase begins.

        If `advance` counts its units of work, `done` of `total` are done already.
        """

    def advance(self, label: str) -> None:
        """Called when one more unit of the phase's work is done; `label` is its kind."""

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Called when a training step is done."""

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Called when an evaluation on held-out problems is done."""

    def probe(self, probe: "Probe") -> None:
        """Called when a probe of the untrained model has chosen a temperature."""

    def sampling(self, progress: SamplingProgress) -> None:
        """Called now and then while a batch of responses is sampled."""

    def updating(self, progress: UpdateProgress) -> None:
        """Called now and then while the weights are updated."""

    def note(self, text: str) -> None:
        """Called with a message for the user."""


class PhaseClock:
    """Wall time by phase since the last reading.

    Time outside any phase counts as `update`, the engine's own work.
    """

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
            # What follows is the engine's own work, until the next phase.
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
        self._seconds = {}
        self._since = now
        return {name: round(value, 4) for name, value in seconds.items()}


class RunClock:
    """Wall and CPU seconds of a run, earlier attempts included.

    Steps lost to a kill do not count.
    """

    def __init__(self, *, wall_seconds: float = 0.0, cpu_seconds: float = 0.0) -> None:
        self._wall_before = wall_seconds
        self._cpu_before = cpu_seconds
        self._wall_start = time.perf_counter()
        self._cpu_start = _read_cpu_seconds()

    def read(self) -> dict[str, float]:
        """Return `wall_seconds` and `cpu_seconds` up to now; ended child processes are counted."""
        wall_seconds = self._wall_before + time.perf_counter() - self._wall_start
        cpu_seconds = self._cpu_before + _read_cpu_seconds() - self._cpu_start
        return {"wall_seconds": round(wall_seconds, 3), "cpu_seconds": round(cpu_seconds, 3)}


def _read_cpu_seconds() -> float:
    """Return the CPU seconds of this process and its ended children, in user and system mode."""
    times = os.times()
    return sum((times.user, times.system, times.children_user, times.children_system))


@contextmanager
def stop_between_steps(ask: Callable[[], bool], observer: Observer) -> Iterator[None]:
    """Within the body, let Ctrl-C call `ask`, to stop after the step.

    If `ask` returns False, the run stops at once.
    """

    def request(signum: int, frame: FrameType | None) -> None:
        if not ask():
            raise KeyboardInterrupt
        observer.note("stopping after this step; press Ctrl-C again to stop at once")

    # Python's own handler would interrupt in the middle of an update.
    before = signal.signal(signal.SIGINT, request)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


STATE_FILE = "microcoder.json"
"""File in a checkpoint, beside the engine's state, with the step and the run's clock."""
_MODEL_FILES = (
    "*.safetensors",
    "*.safetensors.index.json",
    "pytorch_model*",
    "*.json",
    "*.jinja",
    "*.txt",
    "*.model",
)
"""Patterns of the files of a model, among those of an engine's checkpoint."""
_NOT_OF_MODEL = ("trainer_state.json", STATE_FILE)
"""Files that match the patterns, and hold the run's state."""


def model_folder(name: str) -> Path | None:
    """Return the local folder or GGUF file of a model name; None for a Hub id."""
    # An id of the Hub is a name, or owner/name; a path may be mistyped, and is one still.
    looks_like_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    # Of a GGUF file too, which no id names.
    looks_like_path = looks_like_path or name.endswith(SUFFIX)
    if Path(name).exists() or looks_like_path:
        return Path(name).expanduser()
    return None


def check_model_folder(path: Path) -> None:
    """Raise DataError unless a path holds a causal language model and its tokenizer, whole.

    It is a checkpoint folder, a GGUF file, or a folder with one.
    """
    gguf = find_gguf(path)
    if gguf is not None:
        check_gguf(gguf)
        return
    if not path.is_dir():
        raise DataError(
            f"model {path} is no folder here; use a checkpoint folder, a GGUF file or a hub id "
            "such as Qwen/Qwen3-4B"
        )
    # PEFT writes such a folder; it needs the base model.
    if (path / "adapter_config.json").exists() and not (path / "config.json").exists():
        raise DataError(
            f"model {path} is an adapter (adapter_config.json), not a model; merge it into its "
            "base model with PEFT's merge_and_unload(), save that and the tokenizer, and use the "
            "new folder"
        )
    parts = {
        "config.json": ("config.json",),
        "weights (*.safetensors or pytorch_model.bin)": WEIGHTS,
        "tokenizer (tokenizer.json)": ("tokenizer.json", "tokenizer.model", "vocab.json"),
    }
    missing = [part for part, patterns in parts.items() if not _has_any(path, patterns)]
    if missing:
        raise DataError(
            f"checkpoint folder {path} has no {' and no '.join(missing)}; use a folder written by "
            "save_pretrained() of model and tokenizer, or another with --model.path"
        )
    # The parts are there; now whether they belong together.
    check_files(path)


def _has_any(folder: Path, patterns: Iterable[str]) -> bool:
    """Return whether a folder has a file that matches any of some patterns."""
    return any(any(folder.glob(pattern)) for pattern in patterns)


def publish_checkpoint(
    staged: Path, run: RunDirectory, *, step: int, clock: Mapping[str, float], keep: int
) -> Path:
    """Rename an engine's folder to the step's checkpoint, and return the new path.

    The oldest checkpoints beyond `keep` are deleted.
    """
    write_json(staged / STATE_FILE, {"step": step, **clock})
    published = run.checkpoints / f"step_{step:06d}"
    published.parent.mkdir(exist_ok=True)
    # A resumed run may write a step again.
    if published.exists():
        shutil.rmtree(published)
    # Renamed, so that a checkpoint is there whole or not at all.
    staged.replace(published)
    for old in steps_in(run.checkpoints)[:-keep]:
        shutil.rmtree(run.checkpoint(old))
    return published


def read_clock(run: RunDirectory, step: int) -> dict[str, float]:
    """Return the run's `wall_seconds` and `cpu_seconds` at a checkpoint.

    A verl run has only the wall time, which is the sum of its steps'.
    """
    path = run.checkpoint(step) / STATE_FILE
    if path.exists():
        state: dict[str, Any] = read_json(path, what="checkpoint state")
        return {name: state[name] for name in ("wall_seconds", "cpu_seconds")}
    rows = [row for row in run.read_metrics() if row["step"] <= step]
    return {"wall_seconds": sum(row["seconds"]["total"] for row in rows)}


def copy_model(checkpoint: Path, target: Path) -> None:
    """Copy a checkpoint's weights and tokenizer to `target`, atomically.

    The engine's state is left out.
    """
    if not _has_any(checkpoint, WEIGHTS):
        raise TrainingError(
            f"{checkpoint} has no weights in Hugging Face format (sharded?); consolidate it with "
            "`accelerate merge-weights`, or train with FSDP's FULL_STATE_DICT"
        )
    files: set[Path] = set()
    for pattern in _MODEL_FILES:
        files.update(checkpoint.glob(pattern))
    # A file may match several patterns, and is copied once.
    with new_folder(target) as partial:
        for file in files:
            if file.name not in _NOT_OF_MODEL:
                shutil.copy2(file, partial / file.name)
