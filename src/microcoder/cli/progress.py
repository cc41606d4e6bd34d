"""What `microcoder train` shows while it works: a live panel on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from microcoder.cli.display import Display, describe_seconds, printable
from microcoder.train.metrics import EvaluationMetrics, StepMetrics, describe_row
from microcoder.train.run.checkpoints import Observer

if TYPE_CHECKING:
    from rich.console import Console

    from microcoder.train.run.probe import Probe

_NUM_RECENT = 10
"""Steps that the time left is estimated from."""


class Progress(Display, Observer):
    """Live display of one training run: a bar with the latest figures; elsewhere one whole line a step."""

    def __init__(self, *, console: Console | None = None) -> None:
        super().__init__(console=console)
        self._phase, self._phase_started = "starting", time.monotonic()
        self._metrics: StepMetrics | None = None
        self._num_steps = 0
        self._recent_seconds: deque[float] = deque(maxlen=_NUM_RECENT)
        self._evaluations: list[EvaluationMetrics] = []
        self.bar("", "step 0/?", 0, 1, self._describe_phase)

    def __exit__(self, *raised: object) -> None:
        self.phase("stopped" if any(raised) else "done")
        super().__exit__(*raised)

    def phase(self, name: str) -> None:
        """Say what the run does from now on."""
        self._phase, self._phase_started = printable(name), time.monotonic()

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Show a finished training step."""
        self._metrics, self._num_steps = metrics, num_steps
        if "total" in metrics.seconds:
            self._recent_seconds.append(metrics.seconds["total"])
        name = f"step {metrics.step}/{num_steps}"
        self.bar("", name, metrics.step, num_steps, self._describe_phase)
        self._draw_details()
        if not self.is_live:
            self.note("  ".join([name, *describe_row(metrics), _seconds(metrics), f"left {self._time_left()}"]))

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Show a finished evaluation on held-out problems."""
        self._evaluations.append(metrics)
        self._draw_details()
        self.note("  ".join([f"held-out after step {metrics.step}", *describe_row(metrics)]))

    def probe(self, probe: Probe) -> None:
        """Show what temperature was chosen for the run, and why."""
        for reason in probe.choice.reasons:
            self.note(reason)
        self.note(f"training at temperature {probe.choice.temperature:g}")

    def _draw_details(self) -> None:
        latest, held_out = self._metrics, self._evaluations
        self.details = ["  ".join(describe_row(latest)), _seconds(latest)] if latest else []
        if held_out:
            ends = [f"{one.accuracy:.3f} (step {one.step})" for one in (held_out[0], *held_out[1:][-1:])]
            self.details.append(f"held-out {' -> '.join(ends)}")

    def _describe_phase(self) -> str:
        return f"{self._phase} {describe_seconds(time.monotonic() - self._phase_started)}  left {self._time_left()}"

    def _time_left(self) -> str:
        if not self._metrics or not self._recent_seconds:
            return "unknown"
        mean = sum(self._recent_seconds) / len(self._recent_seconds)
        return describe_seconds(mean * max(0, self._num_steps - self._metrics.step))


def _seconds(metrics: StepMetrics) -> str:
    seconds = metrics.seconds
    phases = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items() if name != "total")
    return f"{seconds.get('total', sum(seconds.values())):.1f} s" + (f" ({phases})" if phases else "")
