"""What `microcoder data` shows while it works: rows done and time left, on a terminal and in a log alike."""

from __future__ import annotations

import sys
import threading
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from microcoder.cli.display import describe_seconds

_SECONDS_BETWEEN_LINES = 5.0
_MOST_SECONDS_OF_SILENCE = 30.0


class BuildDisplay:
    """A bar a step on a terminal; elsewhere a line when rows were done, and at least twice a minute."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._started: dict[str, tuple[float, int]] = {}
        self._shown: dict[str, int] = {}
        self._last = time.monotonic()
        self._current: tuple[str, int, int] | None = None
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)
        self._tasks: dict[str, TaskID] = {}
        self._bars = (
            Progress(
                TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TextColumn("rows"),
                TimeElapsedColumn(), TextColumn("{task.fields[left]}"), console=console,
            )
            if console.is_terminal
            else None
        )  # fmt: skip

    def __enter__(self) -> Self:
        if self._bars:
            self._bars.start()
        self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._heart.join()
        if self._bars:
            self._bars.stop()

    def _beat(self) -> None:
        """Repeat the last state while nothing is reported, as when a step takes long over a batch."""
        while not self._is_over.wait(1.0):
            if self._current is not None:
                self.show(*self._current)

    def show(self, step: str, done: int, total: int) -> None:
        """Show that a step has seen so many of its rows; called also where nothing changed."""
        with self._lock:
            self._current = (step, done, total)
            self._print(step, done, total)

    def _print(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        started, first = self._started.setdefault(step, (now, done))
        left = describe_left(now - started, done - first, total - done)
        if self._bars:
            if step not in self._tasks:
                self._tasks[step] = self._bars.add_task(step, total=total, left="")
            self._bars.update(self._tasks[step], completed=done, left=left)
            return
        shown = self._shown.get(step)
        is_new = done != shown and (done == total or now - self._last >= _SECONDS_BETWEEN_LINES)
        is_silent = done < total and now - self._last >= _MOST_SECONDS_OF_SILENCE
        if is_new or is_silent:
            self._shown[step], self._last = done, now
            after = f", {left}" if left else ""
            print(
                f"{step}: {done:,} of {total:,} rows, {describe_seconds(now - started)}{after}",
                file=sys.stderr,
                flush=True,
            )


def describe_left(seconds: float, num_done: int, num_left: int) -> str:
    """Return about how long the rest takes, from what was done in these seconds; empty if nothing was or is left."""
    return f"about {describe_seconds(seconds / num_done * num_left)} left" if num_done > 0 and num_left > 0 else ""
