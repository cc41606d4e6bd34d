"""Engines translate and decide nothing: what each offers, and what a run hands to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from microcoder.judge.fleet.protocols import BatchJudge
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer, RunClock
from microcoder.train.run.tasks import Tasks
from microcoder.train.runs import RunDirectory


@dataclass(frozen=True, slots=True)
class EngineInputs:
    """The model, problems, judge and run directory that an engine is given."""

    config: TrainConfig
    policy: Any
    """The starting weights, as the engine's own `load_policy` returned them."""
    tasks: Tasks
    judge: BatchJudge
    run: RunDirectory
    observer: Observer


class Engine(Protocol):
    """An engine's module `engine`."""

    def is_main_process(self) -> bool:
        """Return whether this process writes the run's files; of several, one does."""

    def wait_for_everyone(self) -> None:
        """Wait until all processes of the run have come here."""

    def describe_machine(self, config: TrainConfig) -> dict[str, Any]:
        """Return the machine's properties that results may depend on: devices, processes, threads."""

    def load_policy(self, config: TrainConfig, *, observer: Observer) -> Any:
        """Load or build the starting weights; they are passed to `train`."""

    def train(
        self, inputs: EngineInputs, *, run_clock: RunClock, resume_step: int | None, callbacks: Sequence[Any]
    ) -> None:
        """Run the missing steps; `callbacks` are of the engine's own type."""

    def probe(self, inputs: EngineInputs) -> None:
        """Sample the untrained model over a grid of temperatures and record which one was chosen."""

    def export_model(self, config: TrainConfig, *, policy: Any, checkpoint: Path, target: Path) -> None:
        """Write a checkpoint's weights and tokenizer as an ordinary Hugging Face folder."""


def load_engine(config: TrainConfig) -> Engine:
    """Return the module of a recipe's engine; nothing of torch is imported before."""
    engine: Any = import_module(f"microcoder.train.{config.engine}.engine")
    return engine
