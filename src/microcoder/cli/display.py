"""What commands show while they work: a bar on a terminal, a line every few seconds elsewhere; both on stderr."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress

_SECONDS_BETWEEN_LINES = 5.0


class Display:
    """A bar for each phase, with a count of each kind of what was done; an `Observer` of evaluations."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._name = ""
        self._total = 0
        self._counts: Counter[str] = Counter()
        self._done = 0
        self._last_line = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def phase(self, name: str, *, done: int, total: int, counts: Mapping[str, int] | None = None) -> None:
        """Begin a new bar; `counts` are of what was done before."""
        self._stop()
        self._name, self._done, self._total, self._counts = name, done, total, Counter(counts)
        if total and sys.stderr.isatty():
            # Only a terminal pays for its import.
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.fields[phase]}"),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.description}", markup=False),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(describe_counts(self._counts), total=total, completed=done, phase=name)
            self._bar.start()

    def advance(self, label: str) -> None:
        """Count one more, of this kind."""
        self._done += 1
        self._counts[label] += 1
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=describe_counts(self._counts))
        elif time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            text = f"{self._name} {self._done}/{self._total}: {describe_counts(self._counts)}"
            print(text.lstrip(), file=sys.stderr)

    def note(self, text: str) -> None:
        """Show one line that stays."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(f"microcoder: {text}", file=sys.stderr)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def describe_counts(counts: Mapping[str, int]) -> str:
    """Return how many there are of each kind, the most frequent first."""
    return ", ".join(f"{count} {label}" for label, count in Counter(counts).most_common())


def describe_seconds(seconds: float) -> str:
    """Return seconds in the unit that people would use."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
