"""Observers of a run, such as the command line's progress display.

Metrics to TensorBoard, trackio or Weights & Biases, besides the run directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from typing import TYPE_CHECKING, Any

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.installation import how_to_install
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.recipe.recipe import LoggingConfig
from microcoder.train.runs import RunDirectory

if TYPE_CHECKING:
    from microcoder.train.run.probe import Probe


class Observer:
    """Receives the events of a run, and must not change it; shows nothing, but for what a subclass does."""

    def phase(self, name: str) -> None:
        """A phase of a step has begun."""

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """A step is done."""

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """An evaluation on held-out problems is done."""

    def probe(self, probe: Probe) -> None:
        """A probe of the untrained model has chosen a temperature."""

    def note(self, text: str) -> None:
        """A message to show."""


class Relay(Observer):
    """Passes each event to several observers, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def phase(self, name: str) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.phase(name)

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.step(metrics, num_steps=num_steps)

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.evaluation(metrics)

    def probe(self, probe: Probe) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.probe(probe)

    def note(self, text: str) -> None:
        """Pass on."""
        for observer in self._observers:
            observer.note(text)


@dataclass(frozen=True, slots=True)
class Logger:
    """A sink of metrics."""

    log: Callable[[Mapping[str, float], int], None]
    """Called with the metrics of a step, and its number."""
    close: Callable[[], object]
    """Flush and close."""


def check_loggers(config: LoggingConfig) -> None:
    """Refuse loggers whose package is missing."""
    for name in config.to:
        if find_spec(name) is None:
            raise ConfigError(f"logging.to names {name}, which is not installed; type: {how_to_install(name)}")


def open_loggers(config: LoggingConfig, run: RunDirectory, *, resume_step: int) -> list[Logger]:
    """Open the loggers of a run, at the step that it resumes from (0: a new run)."""
    openers: dict[str, Callable[[LoggingConfig, RunDirectory, int], Logger]] = {
        "tensorboard": _open_tensorboard,
        "trackio": _open_trackio,
        "wandb": _open_wandb,
    }
    return [openers[name](config, run, resume_step) for name in config.to]


class LoggingObserver(Observer):
    """Sends metrics to loggers."""

    def __init__(self, loggers: Sequence[Logger]) -> None:
        self._loggers = loggers

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Log a training step."""
        self._log(metrics.as_row(), prefix="train", step=metrics.step)

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Log an evaluation on held-out problems."""
        self._log(metrics.as_row(), prefix="heldout", step=metrics.step)

    def _log(self, row: Mapping[str, Any], *, prefix: str, step: int) -> None:
        values = flatten_figures({key: value for key, value in row.items() if key not in ("step", "solved")}, prefix)
        for logger in self._loggers:
            logger.log(values, step)


def flatten_figures(row: Mapping[str, Any], prefix: str) -> dict[str, float]:
    """Return the numbers of a row under names like `train/accuracy_by_tier/easy`; lists are counted."""
    figures: dict[str, float] = {}
    for key, value in row.items():
        name = f"{prefix}/{key}"
        if isinstance(value, Mapping):
            figures |= flatten_figures(value, name)
        elif isinstance(value, list | tuple):
            figures[name] = float(len(value))
        elif isinstance(value, Real):
            figures[name] = float(value)
    return figures


def _open_tensorboard(config: LoggingConfig, run: RunDirectory, resume_step: int) -> Logger:
    from torch.utils.tensorboard import SummaryWriter

    # What a killed attempt logged beyond the checkpoint is hidden.
    writer = SummaryWriter(str(run.logs / "tensorboard"), purge_step=resume_step + 1 if resume_step else None)

    def log(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, global_step=step)
        writer.flush()

    return Logger(log, writer.close)


def _open_wandb(config: LoggingConfig, run: RunDirectory, resume_step: int) -> Logger:
    manifest = run.read_manifest()
    run.logs.mkdir(parents=True, exist_ok=True)
    logged = import_module("wandb").init(
        project=config.project,
        name=manifest["name"],
        # One run over all attempts; its own steps only go up, so ours is a figure of its own.
        id=f"{manifest['digest']}-{manifest['started']}".replace(":", "-").replace("+", "-"),
        resume="allow",
        dir=str(run.logs),
        config=manifest["config"],
    )
    logged.define_metric("step")
    logged.define_metric("*", step_metric="step")
    return Logger(lambda values, step: logged.log({**values, "step": step}), logged.finish)


def _open_trackio(config: LoggingConfig, run: RunDirectory, resume_step: int) -> Logger:
    manifest = run.read_manifest()
    logged = import_module("trackio").init(
        project=config.project, name=manifest["name"], resume="allow", config=manifest["config"], embed=False
    )
    return Logger(lambda values, step: logged.log(dict(values), step=step), logged.finish)
