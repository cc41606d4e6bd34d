"""Who watches a run: the command line's progress display, or nobody."""

from __future__ import annotations

from typing import Protocol

from microcoder.metrics import EvaluationMetrics, StepMetrics
from microcoder.training.probe import Probe


class Observer(Protocol):
    """Told what happens, when it happens; must not change it."""

    def phase(self, name: str) -> None:
        """A phase of a step has begun."""

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """A step is done."""

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """An evaluation on held-out problems is done."""

    def probe(self, probe: Probe) -> None:
        """The untrained model was probed, and a temperature chosen."""

    def note(self, text: str) -> None:
        """Something worth a line has happened."""


class Silent:
    """Nobody watches."""

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
