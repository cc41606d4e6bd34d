"""What commands show while they work, on standard error: bars on a terminal, lines that stay anywhere else."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, TaskID

_SECONDS_BETWEEN_LINES = 5.0
_MOST_SECONDS_OF_SILENCE = 30.0


class Display:
    """Bars that are drawn anew, and lines that stay; a context manager.

    A display that can no longer be written to, because its reader has gone, falls silent: it never stops a command.
    """

    details: Sequence[str] = ()
    """Lines to draw below the bars."""

    def __init__(self, *, console: Console | None = None) -> None:
        """Write to a console; by default to standard error."""
        if console is None and sys.stderr.isatty():
            # Only a terminal pays for its import.
            from rich.console import Console

            console = Console(stderr=True)
        self._console = console
        is_live = console is not None and console.is_terminal and not console.is_dumb_terminal
        self._bars = _open_bars(self, console) if console and is_live else None
        self._tasks: dict[object, TaskID] = {}
        self._is_muted = False

    @property
    def is_live(self) -> bool:
        """Whether bars are drawn."""
        return self._bars is not None

    def __enter__(self) -> Self:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars:
            self._bars.stop()

    def bar(self, key: object, name: str, done: float, total: float, text: Callable[[], str] = str) -> None:
        """Draw a bar, or move the one of this key; its text is asked for at each draw, so that times in it move on."""
        if self._bars is None:
            return
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(name, total=total, text=text)
        self._bars.update(self._tasks[key], description=name, completed=done, total=total, text=text)

    def note(self, text: str) -> None:
        """Show one line that stays."""
        line = printable(text).rstrip()
        if self._is_muted:
            return
        try:
            if self._bars:
                self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
            else:
                file = self._console.file if self._console else sys.stderr
                file.write(line + "\n")
                file.flush()
        except OSError:
            self._is_muted = True


def _open_bars(display: Display, console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Words(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(task.fields["text"](), no_wrap=True, overflow="ellipsis")

    class Bars(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            yield from super().get_renderables()
            yield from (Text(printable(line)) for line in display.details)

    columns = (TextColumn("{task.description}", style="bold", markup=False), BarColumn(30), Words())
    return Bars(*columns, console=console, refresh_per_second=4)


@dataclass(slots=True)
class _Step:
    name: str
    started: float
    first: int
    """What was done of it before."""
    done: int = 0
    total: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    shown: int | None = None
    stopped: float | None = None


class StepDisplay(Display):
    """A bar for each step of the work; elsewhere a line when more of it is done, and at least twice a minute."""

    def __init__(self, *, unit: str = "") -> None:
        """Start without bars; `unit` is what is counted, such as `rows`."""
        super().__init__()
        self._unit = f" {unit}" if unit else ""
        self._steps: dict[str, _Step] = {}
        self._latest: _Step | None = None
        self._last_line = time.monotonic()
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        super().__enter__()
        self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._heart.join()
        super().__exit__()

    def phase(self, name: str, *, done: int, total: int, counts: Mapping[str, int] | None = None) -> None:
        """Begin a step; `counts` are of what was done of it before."""
        with self._lock:
            self._steps[name] = _Step(name, time.monotonic(), done, counts=Counter(counts or {}))
            self.show(name, done, total)

    def advance(self, label: str) -> None:
        """Count one more of the step that was begun last, of this kind."""
        with self._lock:
            assert self._latest is not None
            self._latest.counts[label] += 1
            self.show(self._latest.name, self._latest.done + 1, self._latest.total)

    def show(self, name: str, done: int, total: int) -> None:
        """Show how much of a step is done; called also when nothing changed."""
        with self._lock:
            step, now = self._steps.setdefault(name, _Step(name, time.monotonic(), done)), time.monotonic()
            # Time stops for a step that is done, and while another one is reported.
            if self._latest is not None:
                self._latest.stopped = now
            step.done, step.total, step.stopped = done, total, now if done >= total else None
            if total:
                self.bar(name, name, done, total, partial(self._describe, step))
            self._latest = step
            self._print(step)

    def _beat(self) -> None:
        """Repeat the last state while nothing is reported, as when a step takes long over a batch."""
        while not self._is_over.wait(1.0):
            with self._lock:
                if self._latest is not None:
                    self._print(self._latest)

    def _print(self, step: _Step) -> None:
        is_whole, silence = step.done >= step.total, time.monotonic() - self._last_line
        is_new = step.done != step.shown and (is_whole or silence >= _SECONDS_BETWEEN_LINES)
        if not self.is_live and step.total and (is_new or (not is_whole and silence >= _MOST_SECONDS_OF_SILENCE)):
            step.shown, self._last_line = step.done, time.monotonic()
            self.note(f"{step.name}: {self._describe(step)}")

    def _describe(self, step: _Step) -> str:
        seconds = (step.stopped or time.monotonic()) - step.started
        left = describe_left(seconds, step.done - step.first, step.total - step.done)
        done = f"{step.done:,} of {step.total:,}{self._unit}"
        return ", ".join(filter(None, (done, describe_seconds(seconds), left, describe_counts(step.counts))))


def describe_counts(counts: Mapping[str, int]) -> str:
    """Return how many there are of each kind, the most frequent first."""
    return ", ".join(f"{count} {label}" for label, count in Counter(counts).most_common())


def describe_seconds(seconds: float) -> str:
    """Return seconds in the unit that people would use."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def describe_left(seconds: float, num_done: int, num_left: int) -> str:
    """Return about how long the rest takes, from what was done in these seconds; empty if nothing was or is left."""
    return f"about {describe_seconds(seconds / num_done * num_left)} left" if num_done > 0 and num_left > 0 else ""


def printable(text: str) -> str:
    """Return a text as one line without control characters; the columns of a table keep their places."""
    return re.sub(" *\0[\0 ]*", " ", "".join(c if c.isprintable() else "\0" for c in text))
