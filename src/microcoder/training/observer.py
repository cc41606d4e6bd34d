"""Observers of a run, such as the command line's progress display."""

from __future__ import annotations

from typing import TYPE_CHECKING

from microcoder.metrics import EvaluationMetrics, StepMetrics

if TYPE_CHECKING:
    from microcoder.training.probe import Probe


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


class Relay(Observer):
    """Passes each event to several observers, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def phase(self, name: str) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.phase(name)

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.step(metrics, num_steps=num_steps)

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.evaluation(metrics)

    def probe(self, probe: Probe) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.probe(probe)

    def note(self, text: str) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.note(text)
