"""What `microcoder train` shows while it works: a line a step."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from microcoder.cli.display import LineDisplay, describe_seconds
from microcoder.train.metrics import EvaluationMetrics, StepMetrics, describe_row
from microcoder.train.run.checkpoints import Observer

if TYPE_CHECKING:
    from microcoder.train.run.probe import Probe

_NUM_RECENT = 10
"""Steps that the time left is estimated from."""


class Progress(LineDisplay, Observer):
    """A line for each step, evaluation and message of a training run."""

    def __init__(self) -> None:
        self._recent_seconds: deque[float] = deque(maxlen=_NUM_RECENT)

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Show a finished training step."""
        seconds = metrics.seconds
        total = seconds.get("total", sum(seconds.values()))
        self._recent_seconds.append(total)
        mean = sum(self._recent_seconds) / len(self._recent_seconds)
        phases = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items() if name != "total")
        took = f"{total:.1f} s" + (f" ({phases})" if phases else "")
        left = f"left {describe_seconds(mean * max(0, num_steps - metrics.step))}"
        self.note("  ".join([f"step {metrics.step}/{num_steps}", *describe_row(metrics), took, left]))

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Show a finished evaluation on held-out problems."""
        self.note("  ".join([f"held-out after step {metrics.step}", *describe_row(metrics)]))

    def probe(self, probe: Probe) -> None:
        """Show what temperature was chosen for the run, and why."""
        for reason in probe.choice.reasons:
            self.note(reason)
        self.note(f"training at temperature {probe.choice.temperature:g}")
