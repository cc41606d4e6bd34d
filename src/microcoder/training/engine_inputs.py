"""What a run hands to its engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from microcoder.evaluator.protocols import BatchJudge
from microcoder.runs import RunDirectory
from microcoder.training.config import TrainConfig
from microcoder.training.observer import Observer
from microcoder.training.tasks import Tasks


@dataclass(frozen=True, slots=True)
class EngineInputs:
    """What is trained, on what, judged by whom, and where it is written."""

    config: TrainConfig
    policy: Any
    """The starting weights, as the engine's own `load_policy` returned them."""
    tasks: Tasks
    judge: BatchJudge
    run: RunDirectory
    observer: Observer
