"""A process of a study: takes runs and measurements from standard input, one JSON line each, and tells on
standard output.

It stays for much work, since loading torch and TRL takes longer than a short run's first steps. It ends when its input
does, also in the middle of a run: whoever started it has gone, and what is done lies in checkpoints.
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
from microcoder.training.observer import Silent


class _Teller(Silent):
    """Passes on what the one who waits wants to see."""

    def __init__(self, channel: TextIO) -> None:
        self._channel = channel

    def tell(self, kind: str, **facts: Any) -> None:
        """Write one line; nobody there to read it ends the process by its input."""
        self._channel.write(json.dumps({"kind": kind, **facts}) + "\n")
        self._channel.flush()

    def phase(self, name: str) -> None:
        """Building the micro model is the one phase that takes minutes."""
        if name == "warm start":
            self.tell("phase", name=name)

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """A step is done."""
        self.tell("step", step=metrics.step, num_steps=num_steps)

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """An evaluation is done."""
        self.tell("evaluation", step=metrics.step, accuracy=metrics.accuracy)

    def note(self, text: str) -> None:
        """To the log."""
        print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Do what comes in until the input ends."""
    # Libraries print; what is read as our lines must be ours alone.
    channel = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    teller = _Teller(channel)
    waiting: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read, args=(waiting,), daemon=True).start()
    while True:
        if not _run(json.loads(waiting.get()), teller):
            return


def _read(waiting: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        waiting.put(line)
    os._exit(0)


def _run(order: dict[str, Any], teller: _Teller) -> bool:
    """Do one piece of work; return whether to take others."""
    try:
        result = _measure(order) if order["kind"] == "measurement" else _train(order, teller)
    except KeyboardInterrupt:
        teller.tell("stopped")
        return False
    except Exception as error:
        traceback.print_exc()
        teller.tell("failed", error=" ".join(f"{type(error).__name__}: {error}".split()))
        return True
    gc.collect()
    teller.tell("done", result=result)
    return True


def _train(order: dict[str, Any], teller: _Teller) -> str:
    from microcoder.training.session import run_training

    folder = Path(order["folder"])
    config = TrainConfig.model_validate(order["config"])
    summary = run_training(config, run_directory=folder, observer=teller, command=order["command"])
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
