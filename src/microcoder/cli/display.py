"""What commands show while they work, on standard error: bars on a terminal, lines that stay anywhere else."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

    from microcoder.lab.studies.study import Work

_SECONDS_BETWEEN_LINES = 5.0
_MOST_SECONDS_OF_SILENCE = 30.0


@dataclass(slots=True)
class Bar:
    """A row of a terminal: what is done, how much of it, and in words."""

    name: str
    done: float = 0.0
    total: float = 1.0
    text: Callable[[], str] = str
    """Called whenever the bars are drawn, so that times in it move on."""


class Display:
    """Bars that are drawn anew, and lines that stay; a context manager.

    A display that can no longer be written to, because its reader has gone, falls silent: it never stops a command.
    """

    is_transient = False
    """Whether the bars go when the work is done."""

    def __init__(self, *, console: Console | None = None) -> None:
        """Write to a console; by default to standard error."""
        self.bars: list[Bar] = []
        if console is None and sys.stderr.isatty():
            # Only a terminal pays for its import.
            from rich.console import Console

            console = Console(stderr=True)
        self._console = console
        self.is_live = console is not None and console.is_terminal and not console.is_dumb_terminal
        self._live: Live | None = None
        self._is_muted = False

    def __enter__(self) -> Self:
        if self.is_live:
            from rich.live import Live

            self._live = Live(
                console=self._console, get_renderable=self._draw, refresh_per_second=4, transient=self.is_transient
            )
            self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def note(self, text: str) -> None:
        """Show one line that stays."""
        line = printable(text).rstrip()
        if self._is_muted:
            return
        try:
            if self._live:
                self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
            else:
                file = self._console.file if self._console else sys.stderr
                file.write(line + "\n")
                file.flush()
        except OSError:
            self._is_muted = True

    def details(self) -> list[str]:
        """Return lines to draw below the bars."""
        return []

    def _draw(self) -> Group:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for bar in list(self.bars):
            drawn = ProgressBar(total=bar.total or 1.0, completed=bar.done, width=30)
            table.add_row(Text(bar.name, style="bold"), drawn, Text(bar.text(), no_wrap=True, overflow="ellipsis"))
        return Group(table, *map(Text, self.details()))


@dataclass(slots=True)
class _Step:
    bar: Bar
    started: float
    first: int
    """What was done of it before."""
    counts: Counter[str] = field(default_factory=Counter)
    shown: int | None = None


class StepDisplay(Display):
    """A bar for each step of the work; elsewhere a line when more of it is done, and at least twice a minute."""

    def __init__(self, *, unit: str = "") -> None:
        """Count in a unit, such as `rows`."""
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
            self._steps.pop(name, None)
            self.show(name, done, total)
            self._steps[name].counts.update(counts or {})

    def advance(self, label: str) -> None:
        """Count one more of the step that was begun last, of this kind."""
        with self._lock:
            assert self._latest is not None
            self._latest.counts[label] += 1
            self.show(self._latest.bar.name, int(self._latest.bar.done) + 1, int(self._latest.bar.total))

    def show(self, name: str, done: int, total: int) -> None:
        """Show how much of a step is done; called also when nothing changed."""
        with self._lock:
            step = self._steps.get(name)
            if step is None:
                step = self._steps[name] = _Step(Bar(name), time.monotonic(), done)
                if total:
                    self.bars.append(step.bar)
            step.bar.done, step.bar.total = done, total
            # Time stops for a step that is done, and while another one is reported.
            for one in filter(None, (self._latest, step)):
                one.bar.text = partial(str, self._describe(one))
            if done < total:
                step.bar.text = partial(self._describe, step)
            self._latest = step
            self._print(step)

    def _beat(self) -> None:
        """Repeat the last state while nothing is reported, as when a step takes long over a batch."""
        while not self._is_over.wait(1.0):
            with self._lock:
                if self._latest is not None:
                    self._print(self._latest)

    def _print(self, step: _Step) -> None:
        done, is_whole = step.bar.done, step.bar.done >= step.bar.total
        silence = time.monotonic() - self._last_line
        is_new = done != step.shown and (is_whole or silence >= _SECONDS_BETWEEN_LINES)
        if not self.is_live and step.bar.total and (is_new or (not is_whole and silence >= _MOST_SECONDS_OF_SILENCE)):
            step.shown, self._last_line = int(done), time.monotonic()
            self.note(f"{step.bar.name}: {self._describe(step)}")

    def _describe(self, step: _Step) -> str:
        done, total, seconds = int(step.bar.done), int(step.bar.total), time.monotonic() - step.started
        left = describe_left(seconds, done - step.first, total - done)
        parts = [f"{done:,} of {total:,}{self._unit}", describe_seconds(seconds), left, describe_counts(step.counts)]
        return ", ".join(filter(None, parts))


class StudyDisplay(Display):
    """A bar for all runs and one for each worker; a line when a run ends."""

    is_transient = True

    def __init__(self, missing: Sequence[Work], *, jobs: int, seconds_of: Callable[[Work], float]) -> None:
        super().__init__()
        self._seconds_of = seconds_of
        self._work = {work.folder: seconds_of(work) for work in missing}
        self._share: dict[Path, float] = {}
        self._since: dict[Path, float] = {}
        self._num_ended = 0
        self._started = time.monotonic()
        self.bars = [Bar("all runs", text=lambda: f"{self._num_ended} done, {self._left} left"), *map(Bar, [""] * jobs)]

    def started(self, work: Work, *, worker: int) -> None:
        """Give it a bar; what later rounds bring is added to the whole."""
        self._work.setdefault(work.folder, self._seconds_of(work))
        self._since[work.folder] = time.monotonic()
        self.bars[1 + worker] = Bar(work.label, text=lambda: "starting")

    def advanced(self, work: Work, event: dict[str, Any], *, worker: int) -> None:
        """Move its bar."""
        bar = self.bars[1 + worker]
        if event["kind"] == "step":
            bar.done = self._share[work.folder] = event["step"] / event["num_steps"]
            bar.text = lambda: f"step {event['step']}/{event['num_steps']}"
        elif event["kind"] == "phase":
            bar.text = lambda: event["name"]
        self.bars[0].done = self._done

    def ended(self, work: Work, event: dict[str, Any], *, worker: int) -> None:
        """Write a line that stays."""
        self._num_ended += 1
        self._share[work.folder] = 1.0
        self.bars[0].done = self._done
        seconds = describe_seconds(time.monotonic() - self._since[work.folder])
        result = f"FAILED: {event['error']}" if "error" in event else event["result"]
        self.note(f"{self._num_ended}/{len(self._work)} {work.label}: {result}, {seconds}; {self._left} left")

    @property
    def _done(self) -> float:
        total = sum(self._work.values())
        return sum(self._work[folder] * share for folder, share in self._share.items()) / total if total else 1.0

    @property
    def _left(self) -> str:
        elapsed = time.monotonic() - self._started
        return describe_seconds(elapsed / self._done * (1 - self._done)) if self._done else "?"


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
