"""How the work of studies is shown while it is done: bars on a terminal, elsewhere a line when something ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microcoder.cli.display import describe_seconds

if TYPE_CHECKING:
    from microcoder.insights.study import Work


class StudyDisplay:
    """Bars on a terminal; elsewhere a line when a run ends."""

    def __init__(self, missing: Sequence[Work], *, jobs: int, seconds_of: Callable[[Work], float]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        self._console, self._seconds_of = Console(stderr=True), seconds_of
        self._work = {work.folder: seconds_of(work) for work in missing}
        self._share: dict[Path, float] = {}
        self._since: dict[Path, float] = {}
        self._num_ended = 0
        self._started = time.monotonic()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._whole = self._bars.add_task("all runs", total=1.0, state="")
        self._rows = [self._bars.add_task("", total=1.0, state="starting") for _ in range(jobs)]

    def __enter__(self) -> StudyDisplay:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def started(self, work: Work, *, worker: int) -> None:
        """Give it a bar; what later rounds bring is added to the whole."""
        self._work.setdefault(work.folder, self._seconds_of(work))
        self._since[work.folder] = time.monotonic()
        self._bars.update(self._rows[worker], description=work.label, completed=0.0, state="starting")

    def advanced(self, work: Work, event: dict[str, Any], *, worker: int) -> None:
        """Move its bar."""
        if event["kind"] == "step":
            share = event["step"] / event["num_steps"]
            self._share[work.folder] = share
            state = f"step {event['step']}/{event['num_steps']}"
            self._bars.update(self._rows[worker], completed=share, state=state)
        elif event["kind"] == "phase":
            self._bars.update(self._rows[worker], state=event["name"])
        self._bars.update(self._whole, completed=self._done, state=f"{self._num_ended} done, {self._left} left")

    def ended(self, work: Work, event: dict[str, Any], *, worker: int) -> None:
        """Write a line that stays."""
        self._num_ended += 1
        self._share[work.folder] = 1.0
        seconds = describe_seconds(time.monotonic() - self._since[work.folder])
        result = f"FAILED: {event['error']}" if "error" in event else event["result"]
        line = f"{self._num_ended}/{len(self._work)} {work.label}: {result}, {seconds}; {self._left} left"
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    @property
    def _done(self) -> float:
        total = sum(self._work.values())
        return sum(self._work[folder] * share for folder, share in self._share.items()) / total if total else 1.0

    @property
    def _left(self) -> str:
        elapsed = time.monotonic() - self._started
        return describe_seconds(elapsed / self._done * (1 - self._done)) if self._done else "?"
