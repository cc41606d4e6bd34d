"""The part of the training loop that all engines share.

It chooses temperature and problems, and writes metrics, alarms and files.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

from microcoder.judge.core.errors import TrainingError
from microcoder.judge.core.files import append_row
from microcoder.train.algorithm.sampling import DiversityTemperature, TemperatureSchedule
from microcoder.train.algorithm.selection import PassCount, choose_problems, count_passes
from microcoder.train.metrics import EvaluationMetrics, Groups, StepMetrics, summarise_evaluation
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.alarms import Alarm, find_alarms
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.probe import read_probe
from microcoder.train.runs import (
    RunDirectory,
    read_rollouts,
    read_steps,
    rollout_row,
    steps_in,
    write_rollouts,
)


@dataclass(kw_only=True)
class Recorder:
    """Decides how each step samples, writes steps and evaluations, and shows them.

    They are shown to the observer.
    """

    run: RunDirectory
    schedule: TemperatureSchedule
    learning_rate: float
    num_steps: int | None
    mechanisms: Collection[str]
    observer: Observer = field(default_factory=Observer)
    _passes: dict[int, list[PassCount]] = field(default_factory=dict, init=False)

    @classmethod
    def of_recipe(cls, run: RunDirectory, config: TrainConfig, observer: Observer) -> Recorder:
        """Return the recorder of a recipe's run."""
        return cls(
            run=run,
            schedule=config.rollout.temperature,
            learning_rate=config.optimizer.learning_rate,
            num_steps=config.num_steps,
            mechanisms=config.algorithm.mechanisms,
            observer=observer,
        )

    @cached_property
    def history(self) -> list[StepMetrics]:
        """The steps so far; read on first use, which must come after a rewind of the run."""
        return read_steps(self.run)

    def step_temperature(self, step: int) -> float:
        """Return the temperature of a step, from its schedule or the run's probe."""
        if isinstance(self.schedule, DiversityTemperature):
            return read_probe(self.run).choice.temperature
        return self.schedule.at(step)

    def choose_problems(
        self, problem_ids: Sequence[str], *, number: int, seed: int, step: int
    ) -> list[str]:
        """Return the problems that a step samples, by the earlier steps' rollouts.

        See `selection.choose_problems`.
        """
        for earlier in steps_in(self.run.rollouts):
            # A step's file is read once: it has no more rows later.
            if earlier >= step or earlier in self._passes:
                continue
            rows = read_rollouts(self.run.rollout_file(earlier), columns=["problem_id", "verdict"])
            self._passes[earlier] = count_passes(rows, step=earlier)
        counts: list[PassCount] = []
        for earlier in sorted(self._passes):
            counts.extend(self._passes[earlier])
        return choose_problems(problem_ids, counts, number=number, seed=seed, step=step)

    def refuse_divergence(self, optimizer: Mapping[str, float], *, step: int) -> None:
        """Raise TrainingError if an update's loss or gradient norm is not finite."""
        for name in ("loss", "grad_norm"):
            # All later steps would be NaN, too.
            if not math.isfinite(optimizer.get(name, 0.0)):
                raise TrainingError(
                    f"{name} is {optimizer[name]} in step {step}; lower optimizer.learning_rate "
                    f"(now {self.learning_rate}) and start another --run-dir, from a checkpoint "
                    "(--model.path) or anew"
                )

    def record_step(self, scored_P_G: Groups, metrics: StepMetrics) -> StepMetrics:
        """Write a step's rollouts and its row (`summarise_step`), and show it.

        Return the row with its alarms.
        """
        alarms = self.find_alarms(metrics, self.history)
        metrics = replace(metrics, alarms=[alarm.name for alarm in alarms])
        # Rollouts first: a row in the metrics says that a step is whole.
        _write_samples(self.run.rollout_file(metrics.step), scored_P_G, metrics)
        append_row(self.run.metrics, asdict(metrics))
        self.show_step(metrics, alarms, self.history)
        self.history.append(metrics)
        return metrics

    def show_step(
        self, metrics: StepMetrics, alarms: Sequence[Alarm], history: Sequence[StepMetrics]
    ) -> None:
        """Show the observer a step, and its warnings that the step before did not have."""
        self.observer.step(metrics, num_steps=self.num_steps or metrics.step)
        # A warning that goes on is told once.
        names_before = history[-1].alarms if history else ()
        for alarm in alarms:
            if alarm.name not in names_before:
                self.observer.note(f"step {metrics.step}: {alarm}")

    def find_alarms(self, metrics: StepMetrics, history: Sequence[StepMetrics]) -> list[Alarm]:
        """Return the early warnings about a step; `history` are the steps before."""
        return find_alarms(
            metrics, history=history, num_steps=self.num_steps, mechanisms=self.mechanisms
        )

    def record_evaluation(
        self, scored_P_G: Groups, *, step: int, temperature: float, seconds: float
    ) -> EvaluationMetrics | None:
        """Write the held-out samples and the evaluation's row, and show it.

        Return the row; None if the step has one already.
        """
        # An engine that resumes may evaluate the step that it starts from again.
        if any(row["step"] == step for row in self.run.read_evaluations()):
            return None
        metrics = summarise_evaluation(
            scored_P_G, step=step, temperature=temperature, seconds=seconds
        )
        _write_samples(self.run.evaluation_file(step), scored_P_G, metrics)
        append_row(self.run.evaluations, asdict(metrics))
        self.observer.evaluation(metrics)
        return metrics


def _write_samples(
    path: Path, scored_P_G: Groups, metrics: StepMetrics | EvaluationMetrics
) -> None:
    """Write a file of rollouts, a row for each."""
    rows = []
    for scored_G in scored_P_G:
        for sample in scored_G:
            row = rollout_row(sample, step=metrics.step, temperature=metrics.temperature)
            rows.append(row)
    write_rollouts(path, rows)
