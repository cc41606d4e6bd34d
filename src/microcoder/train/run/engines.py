"""Engines translate and decide nothing: what each offers, and what a run hands to it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from microcoder.judge.fleet.protocols import BatchJudge
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.checkpoints import Observer
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


def load_engine(config: TrainConfig) -> Any:
    """Return the module of a recipe's engine; nothing of torch is imported before.

    It has `is_main_process`, `wait_for_everyone`, `describe_machine`, `load_policy`, `train`, `probe`, `export_model`.
    """
    return import_module(f"microcoder.train.{config.engine}.engine")
