"""The part of the training loop that all engines share: temperature, choice of problems, metrics, alarms, files."""

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
    """Decides the temperature of each step; writes steps and evaluations, and shows them to the observer."""

    run: RunDirectory
    schedule: TemperatureSchedule
    learning_rate: float
    num_steps: int | None
    ideas: Collection[str]
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
            ideas=config.algorithm.ideas,
            observer=observer,
        )

    @cached_property
    def history(self) -> list[StepMetrics]:
        """The steps so far; read on first use, which must come after a rewind of the run."""
        return read_steps(self.run)

    def step_temperature(self, step: int) -> float:
        """Return the temperature of a step, from its schedule or the run's probe where that chose it."""
        if isinstance(self.schedule, DiversityTemperature):
            return read_probe(self.run).choice.temperature
        return self.schedule.at(step)

    def choose_problems(
        self, problem_ids: Sequence[str], *, number: int, seed: int, step: int
    ) -> list[str]:
        """Return the problems that a step samples, by the earlier steps' rollouts (see `selection.choose_problems`)."""
        for before in (
            one for one in steps_in(self.run.rollouts) if one < step and one not in self._passes
        ):
            rows = read_rollouts(self.run.rollout_file(before), columns=["problem_id", "verdict"])
            self._passes[before] = count_passes(rows, step=before)
        counts = [count for before in sorted(self._passes) for count in self._passes[before]]
        return choose_problems(problem_ids, counts, number=number, seed=seed, step=step)

    def refuse_divergence(self, optimizer: Mapping[str, float], *, step: int) -> None:
        """Raise TrainingError if an update's loss or gradient norm is not finite."""
        for name in ("loss", "grad_norm"):
            if not math.isfinite(optimizer.get(name, 0.0)):
                raise TrainingError(
                    f"{name} is {optimizer[name]} in step {step}; lower optimizer.learning_rate (now "
                    f"{self.learning_rate}) and start another --run-dir, from a checkpoint (--model.path) or anew"
                )

    def record_step(self, scored_P_G: Groups, metrics: StepMetrics) -> StepMetrics:
        """Write a step's rollouts and its row (`summarise_step`), and show it; return the row with its alarms."""
        alarms = self.find_alarms(metrics, self.history)
        metrics = replace(metrics, alarms=[alarm.name for alarm in alarms])
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
        known = history[-1].alarms if history else ()
        for alarm in alarms:
            if alarm.name not in known:
                self.observer.note(f"step {metrics.step}: {alarm}")

    def find_alarms(self, metrics: StepMetrics, history: Sequence[StepMetrics]) -> list[Alarm]:
        """Return the early warnings that hold at a step; `history` are the steps before."""
        return find_alarms(metrics, history=history, num_steps=self.num_steps, ideas=self.ideas)

    def record_evaluation(
        self, scored_P_G: Groups, *, step: int, temperature: float, seconds: float
    ) -> EvaluationMetrics | None:
        """Write the held-out samples and the evaluation's row; return the row, None if the step has one already."""
        if any(row["step"] == step for row in self.run.read_evaluations()):
            return None  # an engine that resumes may evaluate the step that it starts from again
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
    samples = (sample for group in scored_P_G for sample in group)
    write_rollouts(
        path,
        [
            rollout_row(sample, step=metrics.step, temperature=metrics.temperature)
            for sample in samples
        ],
    )
