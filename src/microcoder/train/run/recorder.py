"""The loop of a run but for sampling and updates, the same on every engine: temperature, metrics, alarms, files."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from microcoder.judge.core.errors import EvaluatorFault, TrainingError
from microcoder.judge.core.files import append_row
from microcoder.judge.core.types import Outcome, Repeat
from microcoder.train.algorithm.active import ActiveChoice, PassCount, choose_problems, count_passes
from microcoder.train.algorithm.advantages import has_signal
from microcoder.train.algorithm.diversity import measure_diversity
from microcoder.train.algorithm.sampling import DiversityWatch, TemperatureSchedule
from microcoder.train.algorithm.schedules import scheduled_temperature, transitions
from microcoder.train.algorithm.scoring import loses_advantage, measure_doses
from microcoder.train.metrics import (
    EvaluationMetrics,
    ScoredRollout,
    StepMetrics,
    average_rewards,
    count_methods,
    count_outcomes,
    rollout_row,
    share_uncounted,
    share_unrepeated,
    summarise_accuracy,
    summarise_mismatch,
)
from microcoder.train.run.alarms import Alarm, find_alarms, select_new
from microcoder.train.run.probe import read_probe
from microcoder.train.runs import RunDirectory, read_rollouts, write_rollouts

Groups = Sequence[Sequence[ScoredRollout]]


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """The record of a step."""

    metrics: StepMetrics
    new_alarms: Sequence[Alarm]
    """Alarms that are new at this step."""


class Recorder:
    """Decides the temperature of each step, and writes steps and evaluations."""

    def __init__(
        self,
        run: RunDirectory,
        *,
        schedule: TemperatureSchedule,
        watch: DiversityWatch,
        learning_rate: float,
        num_steps: int | None,
        ideas: Collection[str],
    ) -> None:
        self._run, self._schedule, self._watch, self._learning_rate = run, schedule, watch, learning_rate
        self._num_steps, self._ideas = num_steps, ideas
        self._passes: dict[int, list[PassCount]] = {}

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """The metrics rows so far; read when first asked for, after the run was rewound."""
        return self._run.read_metrics()

    def step_temperature(self, step: int) -> float:
        """Return the temperature of a step, from its schedule or the run's probe where that chose it."""
        chosen = read_probe(self._run).choice.temperature if self._schedule.kind == "diversity" else None
        return scheduled_temperature(self._schedule, step=step, chosen=chosen)

    def choose_problems(
        self, choice: ActiveChoice, problem_ids: Sequence[str], *, number: int, seed: int, step: int
    ) -> list[str]:
        """Return the problems that a step asks, by the rollouts of the steps before (`active.choose_problems`)."""
        for before in (one for one in self._run.rollout_steps() if one < step and one not in self._passes):
            rows = read_rollouts(self._run.rollout_file(before), columns=["problem_id", "verdict"])
            self._passes[before] = count_passes(rows, step=before)
        counts = [count for before in sorted(self._passes) for count in self._passes[before]]
        return choose_problems(
            problem_ids, counts, number=number, half_life_steps=choice.half_life_steps, seed=seed, step=step
        )

    def refuse_divergence(self, optimizer: Mapping[str, float], *, step: int) -> None:
        """Refuse an update whose loss or gradient is not finite."""
        for name in ("loss", "grad_norm"):
            if not math.isfinite(optimizer.get(name, 0.0)):
                raise TrainingError(
                    f"{name} is {optimizer[name]} in step {step}; lower optimizer.learning_rate (now "
                    f"{self._learning_rate}) and start another --run-dir with --model.kind hugging_face --model.path "
                    f"{self._run.checkpoints}/step_N"
                )

    def record_step(self, scored_P_G: Groups, metrics: StepMetrics) -> RecordedStep:
        """Write a step's rollouts and its row (`summarise_step`); return the row with its alarms, and the new ones."""
        alarms = find_alarms(
            metrics,
            history=self.history,
            watch=self._watch,
            breaks=transitions(self._schedule),
            num_steps=self._num_steps,
            ideas=self._ideas,
        )
        metrics = replace(metrics, alarms=[alarm.name for alarm in alarms])
        _write_samples(self._run.rollout_file(metrics.step), scored_P_G, metrics)
        append_row(self._run.metrics, metrics.as_row())
        new = select_new(alarms, self.history)
        self.history.append(metrics.as_row())
        return RecordedStep(metrics, new)

    def record_evaluation(
        self, scored_P_G: Groups, *, step: int, temperature: float, seconds: float
    ) -> EvaluationMetrics | None:
        """Write the held-out samples and the evaluation's row; return the row, None if the step has one already.

        Accuracy is the mean over problems of the mean over a problem's scored samples; a problem without a scored
        sample is in no mean.
        """
        if any(row["step"] == step for row in self._run.read_evaluations()):
            return None  # an engine that resumes may evaluate the step that it starts from again
        metrics = summarise_evaluation(scored_P_G, step=step, temperature=temperature, seconds=seconds)
        _write_samples(self._run.evaluation_file(step), scored_P_G, metrics)
        append_row(self._run.evaluations, metrics.as_row())
        return metrics


def summarise_step(
    scored_P_G: Groups,
    *,
    step: int,
    temperature: float,
    max_response_tokens: int,
    optimizer: Mapping[str, float],
    seconds: Mapping[str, float],
    filtered_P_G: Groups = (),
    num_filtered: int = 0,
) -> StepMetrics:
    """Return a step's row but for its alarms.

    Args:
        scored_P_G: the rollouts that are trained on, of all processes.
        step: the training step, from 1.
        temperature: of sampling.
        max_response_tokens: the limit of this step.
        optimizer: means over the step's updates.
        seconds: wall time by phase.
        filtered_P_G: groups that dynamic filtering left out; counted, and in no other figure and no file.
        num_filtered: number of groups that the engine has dropped itself.
    """
    samples = [sample for group in scored_P_G for sample in group]
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    lengths = [len(sample.rollout.token_ids) for sample in samples]
    verdicts = [sample.verdict for sample in samples]
    masked = [sample.masked_why for sample in samples if sample.masked_why]
    return StepMetrics(
        step=step,
        reward_mean=fmean(rewards) if rewards else None,
        accuracy_by_tier=summarise_accuracy(samples)[1],
        length_mean=fmean(lengths),
        length_max=max(lengths),
        diversity=_diversity(scored_P_G),
        temperature=temperature,
        max_response_tokens=max_response_tokens,
        truncated_share=_share(sample.rollout.is_truncated for sample in samples),
        masked_share=_share(bool(sample.masked_why) for sample in samples),
        masked_effective_share=_share(loses_advantage(sample.masked_why, sample.lost) for sample in samples),
        doses=measure_doses(samples),
        no_code_share=_share(sample.verdict.outcome is Outcome.NO_CODE for sample in samples),
        unread_fence_share=_share(_has_unread_fence(sample) for sample in samples),
        unscored_share=_share(sample.reward is None for sample in samples),
        zero_variance_share=_share(not has_signal([s.reward for s in group]) for group in scored_P_G),
        outcomes=count_outcomes(samples),
        methods=count_methods(samples),
        masked={reason: masked.count(reason) for reason in sorted(set(masked))},
        optimizer=dict(optimizer),
        seconds=dict(seconds),
        staleness_mean=fmean(sample.staleness for sample in samples),
        staleness_max=max(sample.staleness for sample in samples),
        mismatch=summarise_mismatch(samples),
        filtered_groups=len(filtered_P_G) + num_filtered,
        sampled_accuracy=summarise_accuracy([*samples, *(s for group in filtered_P_G for s in group)])[0],
        rewards=average_rewards(samples),
        uncounted=share_uncounted(verdicts),
        anew_share=_share(any(run.reason is Repeat.JUDGED_ANEW for run in verdict.uncounted) for verdict in verdicts),
        unrepeated_share=share_unrepeated(verdicts),
    )


def summarise_evaluation(scored_P_G: Groups, *, step: int, temperature: float, seconds: float) -> EvaluationMetrics:
    """Return the row of an evaluation; see `Recorder.record_evaluation`."""
    samples = [sample for group in scored_P_G for sample in group]
    accuracies: dict[str, list[float]] = {}
    for group in scored_P_G:
        solved = [sample.reward for sample in group if sample.reward is not None]
        if solved:
            accuracies.setdefault(group[0].tier or "untiered", []).append(fmean(solved))
    known = [accuracy for tier in accuracies.values() for accuracy in tier]
    if not known:
        raise EvaluatorFault(
            f"the sandbox could judge none of the {len(samples)} held-out samples (first: {samples[0].verdict.detail})"
        )
    return EvaluationMetrics(
        step=step,
        accuracy=fmean(known),
        accuracy_by_tier={tier: fmean(values) for tier, values in sorted(accuracies.items())},
        num_problems=len(scored_P_G),
        num_problems_by_tier={tier: len(values) for tier, values in sorted(accuracies.items())},
        samples_per_problem=len(scored_P_G[0]),
        num_unscored=sum(sample.reward is None for sample in samples),
        solved={
            group[0].rollout.problem_id: [None if s.reward is None else s.verdict.is_accepted for s in group]
            for group in scored_P_G
        },
        length_mean=fmean(len(sample.rollout.token_ids) for sample in samples),
        diversity=_diversity(scored_P_G),
        truncated_share=_share(sample.rollout.is_truncated for sample in samples),
        temperature=temperature,
        outcomes=count_outcomes(samples),
        seconds={"total": round(seconds, 4)},
    )


def _write_samples(path: Path, scored_P_G: Groups, metrics: StepMetrics | EvaluationMetrics) -> None:
    samples = (sample for group in scored_P_G for sample in group)
    write_rollouts(
        path, [rollout_row(sample, step=metrics.step, temperature=metrics.temperature) for sample in samples]
    )


def _diversity(scored_P_G: Groups) -> float | None:
    return measure_diversity([[sample.rollout.token_ids for sample in group] for group in scored_P_G])


def _has_unread_fence(sample: ScoredRollout) -> bool:
    has_fence = any(fence in sample.rollout.completion for fence in ("```", "~~~"))
    return sample.program.code is None and has_fence and not sample.rollout.is_truncated


def _share(claims: Iterable[bool]) -> float:
    return fmean(map(float, claims))
