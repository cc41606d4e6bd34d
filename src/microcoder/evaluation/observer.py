"""Observers of an evaluation."""

from __future__ import annotations

from typing import Protocol


class EvaluationObserver(Protocol):
    """A display."""

    def phase(self, name: str, *, done: int, total: int) -> None:
        """Begin a phase with its total amount of work."""

    def advance(self, label: str) -> None:
        """Count one more unit of this kind."""

    def note(self, text: str) -> None:
        """Show a message."""


class SilentEvaluation:
    """Shows nothing."""

    def phase(self, name: str, *, done: int, total: int) -> None:
        """Do nothing."""

    def advance(self, label: str) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""
