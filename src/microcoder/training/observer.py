"""Observers of a run, such as the command line's progress display."""

from __future__ import annotations

from typing import Protocol

from microcoder.metrics import EvaluationMetrics, StepMetrics
from microcoder.training.probe import Probe


class Observer(Protocol):
    """Receives the events of a run; must not change it."""

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


class Silent:
    """Shows nothing."""

    def phase(self, name: str) -> None:
        """Ignore."""

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Ignore."""

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Ignore."""

    def probe(self, probe: Probe) -> None:
        """Ignore."""

    def note(self, text: str) -> None:
        """Ignore."""
