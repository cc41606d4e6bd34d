"""What `microcoder train` shows while it works: a live panel on a terminal, plain lines anywhere else."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from microcoder.cli.display import describe_seconds
from microcoder.metrics import EvaluationMetrics, StepMetrics
from microcoder.training.observer import Observer

if TYPE_CHECKING:
    from microcoder.training.probe import Probe

_NUM_RECENT = 10
"""Steps that the time left is estimated from."""


class Progress(Observer):
    """Live display of one training run, on standard error; a context manager.

    A terminal gets a panel that is drawn anew; a pipe or a file gets one whole line a step, without control
    characters. A display that can no longer be written to (its reader has gone) falls silent: it never stops a run.
    """

    def __init__(self, *, console: Console | None = None, run_directory: Path | None = None) -> None:
        self._run_directory = run_directory
        self._console = console or Console(stderr=True)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._is_muted = False
        self._live: Live | None = None
        self._phase = "starting"
        self._phase_started = time.monotonic()
        self._metrics: StepMetrics | None = None
        self._num_steps = 0
        self._recent_seconds: deque[float] = deque(maxlen=_NUM_RECENT)
        self._evaluations: list[EvaluationMetrics] = []

    def __enter__(self) -> Progress:
        if self._is_live:
            self._live = Live(console=self._console, get_renderable=self._panel, refresh_per_second=4)
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._phase = "done" if kind is None else "stopped"
        self._phase_started = time.monotonic()
        if self._live:
            self._live.stop()
            self._live = None

    def phase(self, name: str) -> None:
        """Say what the run does from now on."""
        self._phase, self._phase_started = _plain(name), time.monotonic()

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Show a finished training step."""
        self._metrics, self._num_steps = metrics, num_steps
        if "total" in metrics.seconds:
            self._recent_seconds.append(metrics.seconds["total"])
        if not self._live:
            parts = [f"step {metrics.step}/{num_steps}", *_step_facts(metrics), _seconds(metrics.seconds)]
            self._write("  ".join([*parts, f"left {self._time_left()}"]))

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Show a finished evaluation on held-out problems."""
        self._evaluations.append(metrics)
        self._write(_evaluation_line(metrics))

    def probe(self, probe: Probe) -> None:
        """Show what temperature was chosen for the run, and why; draw it beside the record."""
        if self._run_directory is None:
            return
        for reason in probe.choice.reasons:
            self._write(reason)
        self._write(f"training at temperature {probe.choice.temperature:g}")
        from microcoder.insights.probe import write_probe_figure

        write_probe_figure(self._run_directory)

    def note(self, text: str) -> None:
        """Show one line that stays; the columns of a table keep their places."""
        self._write(_printable(text).rstrip())

    def _write(self, line: str) -> None:
        if self._is_muted:
            return
        try:
            if self._live:
                self._console.print(Text(line))
            else:
                self._console.file.write(line + "\n")
                self._console.file.flush()
        except OSError:
            self._is_muted = True

    def _time_left(self) -> str:
        """Mean of the recent steps times the steps that are left."""
        if not self._metrics or not self._recent_seconds:
            return "unknown"
        mean = sum(self._recent_seconds) / len(self._recent_seconds)
        return describe_seconds(mean * max(0, self._num_steps - self._metrics.step))

    def _panel(self) -> Group:
        metrics = self._metrics
        done = metrics.step if metrics else 0
        head = Table.grid(padding=(0, 2))
        head.add_row(
            ProgressBar(total=max(self._num_steps, 1), completed=done, width=30),
            Text(f"step {done}/{self._num_steps or '?'}", style="bold"),
            Text(f"{self._phase} {describe_seconds(time.monotonic() - self._phase_started)}", style="cyan"),
            Text(f"left {self._time_left()}"),
        )
        lines: list[Text] = []
        if metrics:
            lines = [Text("  ".join(_step_facts(metrics))), Text(_seconds(metrics.seconds), style="dim")]
        if self._evaluations:
            first, last = self._evaluations[0], self._evaluations[-1]
            arrow = f" -> {last.accuracy:.3f} (step {last.step})" if last is not first else ""
            lines.append(Text(f"held-out {first.accuracy:.3f} (step {first.step}){arrow}", style="green"))
        return Group(head, *lines)


def _step_facts(metrics: StepMetrics) -> list[str]:
    facts = [
        f"reward {_number(metrics.reward_mean)}",
        f"accuracy {_by_tier(metrics.accuracy_by_tier)}",
        f"length {metrics.length_mean:.0f} of {metrics.max_response_tokens}",
        f"truncated {metrics.truncated_share:.0%}",
        f"diversity {_number(metrics.diversity)}",
        f"temperature {metrics.temperature:.2f}",
        f"masked {metrics.masked_share:.0%}",
        f"no code {metrics.no_code_share:.0%}",
        f"same reward {metrics.zero_variance_share:.0%}",
    ]
    return [*facts, f"UNSCORED {metrics.unscored_share:.1%}"] if metrics.unscored_share else facts


def _evaluation_line(metrics: EvaluationMetrics) -> str:
    parts = [
        f"held-out after step {metrics.step}",
        f"accuracy {metrics.accuracy:.3f}",
        f"{metrics.num_problems} problems x {metrics.samples_per_problem}",
        _by_tier(metrics.accuracy_by_tier),
        f"length {metrics.length_mean:.0f}",
        f"truncated {metrics.truncated_share:.0%}",
        f"diversity {_number(metrics.diversity)}",
    ]
    return "  ".join([*parts, f"UNSCORED {metrics.num_unscored}"] if metrics.num_unscored else parts)


def _seconds(seconds: Mapping[str, float]) -> str:
    phases = ", ".join(f"{_plain(name)} {value:.1f}" for name, value in seconds.items() if name != "total")
    total = seconds.get("total", sum(seconds.values()))
    return f"{total:.1f} s" + (f" ({phases})" if phases else "")


def _by_tier(accuracy: Mapping[str, float]) -> str:
    return " ".join(f"{_plain(tier)} {value:.2f}" for tier, value in accuracy.items()) or "-"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _plain(text: str) -> str:
    """One line without control characters, whatever a model or a file put into it."""
    return " ".join(_printable(text).split())


def _printable(text: str) -> str:
    """The same, but for the spaces of a table."""
    return re.sub(" *\0[\0 ]*", " ", "".join(c if c.isprintable() else "\0" for c in text))
