"""What `microcoder train` shows while it works: a live panel on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from microcoder.cli.display import Bar, Display, describe_seconds, printable
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.run.observer import Observer

if TYPE_CHECKING:
    from rich.console import Console

    from microcoder.train.run.probe import Probe

_NUM_RECENT = 10
"""Steps that the time left is estimated from."""


class Progress(Display, Observer):
    """Live display of one training run: a bar with the latest figures; elsewhere one whole line a step."""

    def __init__(self, *, console: Console | None = None, run_directory: Path | None = None) -> None:
        super().__init__(console=console)
        self._run_directory = run_directory
        self._phase, self._phase_started = "starting", time.monotonic()
        self._metrics: StepMetrics | None = None
        self._num_steps = 0
        self._recent_seconds: deque[float] = deque(maxlen=_NUM_RECENT)
        self._evaluations: list[EvaluationMetrics] = []
        self.bars = [Bar("step 0/?", text=self._describe_phase)]

    def __exit__(self, *raised: object) -> None:
        self.phase("stopped" if any(raised) else "done")
        super().__exit__(*raised)

    def phase(self, name: str) -> None:
        """Say what the run does from now on."""
        self._phase, self._phase_started = _plain(name), time.monotonic()

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Show a finished training step."""
        self._metrics, self._num_steps = metrics, num_steps
        if "total" in metrics.seconds:
            self._recent_seconds.append(metrics.seconds["total"])
        self.bars = [Bar(f"step {metrics.step}/{num_steps}", metrics.step, num_steps, self._describe_phase)]
        if not self.is_live:
            parts = [self.bars[0].name, *_step_facts(metrics), _seconds(metrics.seconds)]
            self.note("  ".join([*parts, f"left {self._time_left()}"]))

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Show a finished evaluation on held-out problems."""
        self._evaluations.append(metrics)
        self.note(_evaluation_line(metrics))

    def probe(self, probe: Probe) -> None:
        """Show what temperature was chosen for the run, and why; draw it beside the record."""
        if self._run_directory is None:
            return
        for reason in probe.choice.reasons:
            self.note(reason)
        self.note(f"training at temperature {probe.choice.temperature:g}")
        from microcoder.lab.studies.figures import write_probe_figure

        write_probe_figure(self._run_directory)

    def details(self) -> list[str]:
        """Return the figures of the latest step, and of the first and last evaluation."""
        latest = self._metrics
        lines = ["  ".join(_step_facts(latest)), _seconds(latest.seconds)] if latest else []
        if self._evaluations:
            first, last = self._evaluations[0], self._evaluations[-1]
            arrow = f" -> {last.accuracy:.3f} (step {last.step})" if last is not first else ""
            lines.append(f"held-out {first.accuracy:.3f} (step {first.step}){arrow}")
        return lines

    def _describe_phase(self) -> str:
        return f"{self._phase} {describe_seconds(time.monotonic() - self._phase_started)}  left {self._time_left()}"

    def _time_left(self) -> str:
        if not self._metrics or not self._recent_seconds:
            return "unknown"
        mean = sum(self._recent_seconds) / len(self._recent_seconds)
        return describe_seconds(mean * max(0, self._num_steps - self._metrics.step))


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
    if metrics.unscored_share:
        facts.append(f"UNSCORED {metrics.unscored_share:.1%}")
    if metrics.unrepeated_share:
        facts.append(f"REWARDS THAT DO NOT REPEAT {metrics.unrepeated_share:.1%}")
    return facts


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
    """Return one line without control characters, whatever a model or a file put into it."""
    return " ".join(printable(text).split())
