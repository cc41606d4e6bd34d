"""A worker process of a study: reads runs and measurements from standard input, one JSON line each, and writes events
to standard output.

It stays for much work, since loading torch and TRL takes longer than a short run's first steps. It ends when its input
does, also in the middle of a run: the parent has gone, and finished steps are in checkpoints.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import threading
import traceback
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TextIO

from microcoder.insights.design import Measurement
from microcoder.insights.jobs import Job
from microcoder.insights.measurements import run_measurement
from microcoder.metrics import EvaluationMetrics, StepMetrics
from microcoder.runs import RunDirectory
from microcoder.training.config import TrainConfig
from microcoder.training.observer import Observer


class _Events(Observer):
    """An observer that writes events to standard output."""

    def __init__(self, channel: TextIO) -> None:
        self._channel = channel

    def emit(self, kind: str, **facts: Any) -> None:
        """Write one line; if nobody reads it, the end of standard input ends the process."""
        self._channel.write(json.dumps({"kind": kind, **facts}) + "\n")
        self._channel.flush()

    def phase(self, name: str) -> None:
        """Building the micro model is the one phase that takes minutes."""
        if name == "warm start":
            self.emit("phase", name=name)

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """A step is done."""
        self.emit("step", step=metrics.step, num_steps=num_steps)

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """An evaluation is done."""
        self.emit("evaluation", step=metrics.step, accuracy=metrics.accuracy)

    def note(self, text: str) -> None:
        """To the log."""
        print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Do the incoming work until the input ends."""
    # Libraries print; what is read as our lines must be ours alone.
    channel = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    events = _Events(channel)
    waiting: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read, args=(waiting,), daemon=True).start()
    while True:
        if not _run(json.loads(waiting.get()), events):
            return


def _read(waiting: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        waiting.put(line)
    os._exit(0)


def _run(order: dict[str, Any], events: _Events) -> bool:
    """Do one unit of work; return whether to take more."""
    try:
        result = _measure(order) if order["kind"] == "measurement" else _train(order, events)
    except KeyboardInterrupt:
        events.emit("stopped")
        return False
    except Exception as error:
        traceback.print_exc()
        events.emit("failed", error=" ".join(f"{type(error).__name__}: {error}".split()))
        return True
    gc.collect()
    events.emit("done", result=result)
    return True


def _train(order: dict[str, Any], events: _Events) -> str:
    from microcoder.training.session import run_training

    folder = Path(order["folder"])
    config = TrainConfig.model_validate(order["config"])
    summary = run_training(config, run_directory=folder, observer=events, command=order["command"])
    # A finished run is never resumed, and its weights are in model/: a catalogue would keep gigabytes of moments.
    shutil.rmtree(RunDirectory(folder).checkpoints, ignore_errors=True)
    return f"{summary['accuracy_before']:.3f} -> {summary['accuracy_after']:.3f}"


def _measure(order: dict[str, Any]) -> str:
    config = TrainConfig.model_validate(order["config"])
    runs = {level: Path(folder) for level, folder in order["runs"].items()}
    job = Job(order["seed"], config, Path(order["folder"]), runs)
    summary = run_measurement(Measurement.model_validate(order["measurement"]), job)
    return f"{summary['num_rows']} rows"


if __name__ == "__main__":
    main()
