"""Observers of a run, such as the command line's progress display."""

from __future__ import annotations

from typing import TYPE_CHECKING

from microcoder.train.metrics import EvaluationMetrics, StepMetrics

if TYPE_CHECKING:
    from microcoder.train.run.probe import Probe


class Observer:
    """Receives the events of a run, and must not change it; shows nothing, but for what a subclass does."""

    def phase(self, name: str) -> None:
        """A phase of a step has begun."""

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """A step is done."""

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """An evaluation on held-out problems is done."""

    def probe(self, probe: Probe) -> None:
        """A probe of the untrained model has chosen a temperature."""

    def note(self, text: str) -> None:
        """A message to show."""
