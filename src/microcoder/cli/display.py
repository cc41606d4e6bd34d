"""Shared by commands: config keys as flags, and progress on stderr."""

from __future__ import annotations

import difflib
import json
import re
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

from cyclopts import Parameter

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import ConfigError
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.progress import SamplingProgress, UpdateProgress

Flag = Annotated[bool, Parameter(negative="")]
"""Type of a parameter that is set by naming it."""

Overrides = Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]
"""Type of a command's parameter that takes keys of the configuration as flags."""

_RECIPES = (
    "A TOML file, or the name of a recipe in the package. Repeat to override it with further ones."
)
"""What `--help` says of recipes."""

Recipes = Annotated[
    tuple[Path, ...], Parameter(name=["--config", "-c"], negative="", help=_RECIPES)
]
"""Type of the parameter that takes recipes."""

DryRun = Annotated[
    bool,
    Parameter(negative="", help="Print the resolved config, what it costs if known, and stop."),
]
"""Type of the parameter that asks for a dry run."""

Json = Annotated[bool, Parameter(negative="", help="Print one JSON object instead of text.")]
"""Type of the parameter that asks for JSON."""

_OPTIONS = ("--config", "--run-dir", "--dry-run", "--gpu-memory-gib", "--json")
"""Options of the commands that take configuration keys as flags."""


def parse_overrides(words: tuple[str, ...]) -> dict[str, str]:
    """Return `--dotted.key value` and `--dotted.key=value` words as a mapping.

    Raises:
        ConfigError: for other words.
    """
    overrides: dict[str, str] = {}
    rest = list(words)
    while rest:
        flag = rest.pop(0)
        if not flag.startswith("--") or len(flag) == 2:
            raise ConfigError(
                f"unexpected argument {flag!r}; keys of the config are given as --dotted.key VALUE"
            )
        key, has_value, value = flag[2:].partition("=")
        option = f"--{key.replace('_', '-')}"
        # A misspelt option would pass for a key of the configuration, which is then unknown.
        close = difflib.get_close_matches(option, _OPTIONS, n=1, cutoff=0.8)
        if close:
            raise ConfigError(f"unknown option {flag}; did you mean {close[0]}?")
        if not has_value:
            if not rest:
                raise ConfigError(f"{flag} has no value; type {flag} VALUE")
            value = rest.pop(0)
        # Dashes are taken, too, as all other options have them.
        overrides[key.replace("-", "_")] = value
    return overrides


def print_resolved(config: Mapping[str, Any]) -> None:
    """Print a resolved configuration, one key per line."""
    for key, value in flatten(config).items():
        print(f"{key} = {json.dumps(value)}")


_SECONDS_BETWEEN_LINES = 5.0
"""Least time between two lines while something is done."""

_MOST_SECONDS_OF_SILENCE = 30.0
"""Time after which a line is printed though nothing was done."""

_SECONDS_BETWEEN_BARS = 0.2
"""Least time between two drawings of a bar."""

_BAR_CELLS = 20
"""Width of a bar, in characters."""


class LineDisplay:
    """Prints lines to stderr. If stderr is closed, it stops printing; it never stops a command.

    While responses are sampled and weights are updated, a terminal has a bar below the lines;
    elsewhere there is a line twice a minute.
    """

    # Of the class, so that a display needs no `__init__` that calls this one's.
    _is_muted = False
    _bar: Bar | None = None
    _last_progress = 0.0
    _sampled_for = "sampling"
    """What a batch of responses is sampled for, the first word of its line."""

    def note(self, text: str) -> None:
        """Print one line."""
        if self._is_muted:
            return
        try:
            if self._bar is not None:
                self._bar.clear()
            sys.stderr.write(printable(text).rstrip() + "\n")
            sys.stderr.flush()
        except OSError:
            # Nobody reads stderr any more: that is no reason to end a command.
            self._is_muted = True

    def sampling(self, progress: SamplingProgress) -> None:
        """Show how far a batch of responses is."""
        text = describe_sampling(progress)
        if self._draw_progress(progress.ended, progress.total, text):
            return
        if progress.ended < progress.total:
            self._note_progress(f"{self._sampled_for}: {text}", progress.seconds)

    def updating(self, progress: UpdateProgress) -> None:
        """Show how far a step's updates are."""
        text = f"update: pass {progress.number} of {progress.total}, {progress.seconds:.0f} s"
        if not self._draw_progress(progress.number - 1, progress.total, text):
            self._note_progress(text, progress.seconds)

    def _draw_progress(self, done: int, total: int, text: str) -> bool:
        """Draw the bar, or remove it where all is done; return False outside of a terminal."""
        if self._is_muted:
            return False
        try:
            if not sys.stderr.isatty():
                return False
            self._bar = self._bar or Bar()
            if done == total:
                self._bar.clear()
            else:
                self._bar.draw(done, total, text)
        except OSError:
            self._is_muted = True
        return True

    def _note_progress(self, text: str, seconds: float) -> None:
        """Print a line if none was printed for long, in the `seconds` since this began."""
        now = time.monotonic()
        # The silence begins with the batch or the updates, not with the line before them.
        self._last_progress = max(self._last_progress, now - seconds)
        if now - self._last_progress >= _MOST_SECONDS_OF_SILENCE:
            self._last_progress = now
            self.note(text)


class Bar:
    """A bar in a terminal with words next to it, drawn again and again in the same place."""

    def __init__(self) -> None:
        """Begin with nothing drawn."""
        self._is_drawn = False

    def draw(self, done: int, total: int, text: str) -> None:
        """Draw the bar over the one before, as wide as the terminal at most."""
        # A full line would wrap, and the next bar could not be drawn over it.
        width = shutil.get_terminal_size().columns - 1
        full = round(_BAR_CELLS * done / total)
        cells = "#" * full + "." * (_BAR_CELLS - full)
        line = f"[{cells}] {printable(text)}"
        # The line is cleared first, as the bar before may have been longer.
        sys.stderr.write(f"\r\x1b[K{line[:width]}")
        sys.stderr.flush()
        self._is_drawn = True

    def clear(self) -> None:
        """Remove the bar, so that a line can take its place."""
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_drawn = False


def describe_sampling(progress: SamplingProgress) -> str:
    """Return a batch's progress as text.

    The time that is left is a bound, since a response may end at any token.
    """
    parts = [
        f"{progress.ended} of {progress.total} responses ended",
        f"{progress.longest:,} of at most {progress.limit:,} tokens",
        f"{progress.tokens_per_second:,.0f} tokens/s",
    ]
    left = progress.most_seconds_left
    if left is not None:
        parts.append(f"at most {describe_seconds(left)} left")
    return ", ".join(parts)


@dataclass(slots=True)
class _Step:
    name: str
    first: int
    """Number of the step's units that earlier commands have done."""
    started: float = field(default_factory=lambda: time.monotonic())
    done: int = 0
    total: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    shown: int | None = None


class StepDisplay(LineDisplay, Observer):
    """Shows the progress of the current step on stderr.

    A terminal has a bar below the lines, and a line for each step that has ended; elsewhere a line
    is printed every few seconds while something is done, and at least twice a minute.
    """

    def __init__(self, *, unit: str = "") -> None:
        """Start with nothing to show; `unit` is what is counted, such as `rows`."""
        self._unit = f" {unit}" if unit else ""
        self._steps: dict[str, _Step] = {}
        self._latest: _Step | None = None
        self._last_line = time.monotonic()
        self._batch: SamplingProgress | None = None
        # One method calls another, and the heart draws from a thread of its own.
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        self._heart = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self._heart.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        # It must not draw over what the command prints next.
        self._heart.join()
        with self._lock:
            self._clear_bar()

    def phase(
        self, name: str, *, done: int = 0, total: int = 0, counts: Mapping[str, int] | None = None
    ) -> None:
        """Begin a step.

        Args:
            name: of the step.
            done: number of its units that earlier commands have done.
            total: number of its units.
            counts: kind -> number of the done units of that kind.
        """
        with self._lock:
            self._batch = None
            self._steps[name] = _Step(name, done, counts=Counter(counts or {}))
            self.show(name, done, total)

    def advance(self, label: str) -> None:
        """Count one more unit of the step that was begun last; `label` is its kind."""
        with self._lock:
            assert self._latest is not None
            self._latest.counts[label] += 1
            self.show(self._latest.name, self._latest.done + 1, self._latest.total)

    def sampling(self, progress: SamplingProgress) -> None:
        """Show how far a batch is, in a terminal at once, elsewhere with the next line."""
        with self._lock:
            self._batch = None if progress.ended == progress.total else progress
            if sys.stderr.isatty():
                super().sampling(progress)

    def show(self, name: str, done: int, total: int) -> None:
        """Set the progress of a step, begun if it is new; print a line if one is due."""
        with self._lock:
            step = self._steps.setdefault(name, _Step(name, done))
            step.done = done
            step.total = total
            self._latest = step
            self._draw(step)

    def _beat(self) -> None:
        """Print the last progress again while nothing is reported, such as during a long batch."""
        while not self._is_over.wait(1.0):
            with self._lock:
                if self._latest is not None:
                    self._draw(self._latest)

    def _draw(self, step: _Step) -> None:
        # Nothing to do is nothing to show, and has no share to draw.
        if not step.total:
            return
        is_whole = step.done >= step.total
        silence = time.monotonic() - self._last_line
        if not is_whole and self._draw_bar(step, silence):
            return
        is_new = step.done != step.shown
        if is_whole:
            # An ended step has one line.
            is_due = is_new
        else:
            is_due = is_new and silence >= _SECONDS_BETWEEN_LINES
            # Long silence looks like a command that hangs.
            is_due = is_due or silence >= _MOST_SECONDS_OF_SILENCE
        if is_due:
            step.shown = step.done
            self._last_line = time.monotonic()
            self.note(f"{step.name}: {self._describe(step)}")

    def _draw_bar(self, step: _Step, silence: float) -> bool:
        """Draw a step's bar if one is due.

        Returns:
            Whether this is a terminal, which has bars in place of lines.
        """
        if self._is_muted:
            return False
        try:
            if not sys.stderr.isatty():
                return False
            # While a batch is sampled, its own bar is there.
            if self._batch is None and silence >= _SECONDS_BETWEEN_BARS:
                self._bar = self._bar or Bar()
                self._bar.draw(step.done, step.total, f"{step.name}: {self._describe(step)}")
                self._last_line = time.monotonic()
        except OSError:
            self._is_muted = True
        return True

    def _clear_bar(self) -> None:
        if self._bar is None or self._is_muted:
            return
        try:
            self._bar.clear()
        except OSError:
            self._is_muted = True

    def _describe(self, step: _Step) -> str:
        """Return a step's progress as text: units, time, kinds, and the current batch."""
        seconds = time.monotonic() - step.started
        # Of what this command has done: the rate of earlier ones is unknown.
        num_done = step.done - step.first
        num_left = step.total - step.done
        parts = [f"{step.done:,} of {step.total:,}{self._unit}", describe_seconds(seconds)]
        # Before the first unit there is no rate to go by.
        if num_done > 0 and num_left > 0:
            parts.append(f"about {describe_seconds(seconds / num_done * num_left)} left")
        if step.counts:
            parts.append(describe_counts(step.counts))
        if self._batch is not None:
            parts.append(f"now {describe_sampling(self._batch)}")
        return ", ".join(parts)


def describe_counts(counts: Mapping[str, int]) -> str:
    """Return counts by kind as text, the most frequent first."""
    return ", ".join(f"{count} {label}" for label, count in Counter(counts).most_common())


def describe_seconds(seconds: float) -> str:
    """Return a duration as text, in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:,.1f} h"


def printable(text: str) -> str:
    """Return a text as one line without control characters.

    Other runs of spaces, as in a table, are kept.
    """
    # Texts of models and files may hold codes that move a cursor or hide lines.
    marked = "".join(character if character.isprintable() else "\0" for character in text)
    return re.sub(" *\0[\0 ]*", " ", marked)
