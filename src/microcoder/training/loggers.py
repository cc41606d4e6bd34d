"""Metrics to TensorBoard, trackio or Weights & Biases, besides the run directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from numbers import Real
from typing import Any, Protocol

from microcoder.errors import ConfigError
from microcoder.metrics import EvaluationMetrics, StepMetrics
from microcoder.runs import RunDirectory
from microcoder.training.config import LoggingConfig
from microcoder.training.observer import Observer
from microcoder.training.probe import Probe


class Logger(Protocol):
    """A sink of metrics."""

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """Log the metrics of a step."""

    def close(self) -> None:
        """Flush and close."""


def check_loggers(config: LoggingConfig) -> None:
    """Refuse loggers whose package is missing.

    Raises:
        ConfigError: what to install.
    """
    for name in config.to:
        if find_spec(name) is None:
            raise ConfigError(
                f"logging.to names {name}, which is not installed; type: pip install 'microcoder[{name}]'"
            )


def open_loggers(config: LoggingConfig, run: RunDirectory, *, resume_step: int) -> list[Logger]:
    """Open the loggers of a run, at the step that it resumes from (0: a new run)."""
    openers: dict[str, Callable[[LoggingConfig, RunDirectory, int], Logger]] = {
        "tensorboard": _TensorBoard,
        "trackio": _Trackio,
        "wandb": _Wandb,
    }
    return [openers[name](config, run, resume_step) for name in config.to]


class LoggingObserver:
    """An observer that sends metrics to loggers and forwards all events."""

    def __init__(self, observer: Observer, loggers: Sequence[Logger]) -> None:
        self._observer, self._loggers = observer, loggers
        self.phase, self.note = observer.phase, observer.note

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Log a training step."""
        self._log(metrics.as_row(), prefix="train", step=metrics.step)
        self._observer.step(metrics, num_steps=num_steps)

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Log an evaluation on held-out problems."""
        self._log(metrics.as_row(), prefix="heldout", step=metrics.step)
        self._observer.evaluation(metrics)

    def probe(self, probe: Probe) -> None:
        """Pass on."""
        self._observer.probe(probe)

    def _log(self, row: Mapping[str, Any], *, prefix: str, step: int) -> None:
        values = flatten_figures({key: value for key, value in row.items() if key not in ("step", "solved")}, prefix)
        for logger in self._loggers:
            logger.log(values, step=step)


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


class _TensorBoard:
    def __init__(self, config: LoggingConfig, run: RunDirectory, resume_step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # What a killed attempt logged beyond the checkpoint is hidden.
        self._writer = SummaryWriter(str(run.logs / "tensorboard"), purge_step=resume_step + 1 if resume_step else None)

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, global_step=step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    def __init__(self, config: LoggingConfig, run: RunDirectory, resume_step: int) -> None:
        manifest = run.read_manifest()
        run.logs.mkdir(parents=True, exist_ok=True)
        self._run = import_module("wandb").init(
            project=config.project,
            name=manifest["name"],
            # One run over all attempts; its own steps only go up, so ours is a figure of its own.
            id=f"{manifest['digest']}-{manifest['started']}".replace(":", "-").replace("+", "-"),
            resume="allow",
            dir=str(run.logs),
            config=manifest["config"],
        )
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        self._run.log({**values, "step": step})

    def close(self) -> None:
        self._run.finish()


class _Trackio:
    def __init__(self, config: LoggingConfig, run: RunDirectory, resume_step: int) -> None:
        manifest = run.read_manifest()
        self._run = import_module("trackio").init(
            project=config.project, name=manifest["name"], resume="allow", config=manifest["config"], embed=False
        )

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()
