"""What an evaluation tells while it works."""

from __future__ import annotations

from typing import Protocol


class EvaluationObserver(Protocol):
    """A display."""

    def phase(self, name: str, *, done: int, total: int) -> None:
        """Say what is done from now on, and how much of it there is."""

    def advance(self, label: str) -> None:
        """Count one more, of this kind."""

    def note(self, text: str) -> None:
        """Show one line that stays."""


class SilentEvaluation:
    """Tells nothing."""

    def phase(self, name: str, *, done: int, total: int) -> None:
        """Do nothing."""

    def advance(self, label: str) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""
