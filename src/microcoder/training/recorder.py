"""Scored rollouts -> metrics -> run directory: the same files from every engine."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from microcoder.errors import EvaluatorFault, TrainingError
from microcoder.files import append_row
from microcoder.metrics import (
    EvaluationMetrics,
    ScoredRollout,
    StepMetrics,
    average_rewards,
    count_methods,
    count_outcomes,
    rollout_row,
    summarise_accuracy,
    summarise_mismatch,
)
from microcoder.runs import RunDirectory, write_rollouts
from microcoder.training.alarms import Alarm, find_alarms
from microcoder.training.algorithm.advantages import has_signal
from microcoder.training.algorithm.diversity import measure_diversity
from microcoder.training.sampling_config import DiversityWatch
from microcoder.types import Outcome

Groups = Sequence[Sequence[ScoredRollout]]


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """The record of a step."""

    metrics: StepMetrics
    new_alarms: Sequence[Alarm]
    """Alarms that are new at this step."""


def refuse_divergence(run: RunDirectory, optimizer: Mapping[str, float], *, step: int, learning_rate: float) -> None:
    """Refuse an update whose loss or gradient is not finite.

    Raises:
        TrainingError: which, and what to type.
    """
    for name in ("loss", "grad_norm"):
        if not math.isfinite(optimizer.get(name, 0.0)):
            raise TrainingError(
                f"{name} is {optimizer[name]} in step {step}; lower optimizer.learning_rate (now {learning_rate}) and "
                f"start another --run-dir with --model.kind hugging_face --model.path {run.checkpoints}/step_N"
            )


def record_step(
    run: RunDirectory,
    scored_P_G: Groups,
    *,
    step: int,
    temperature: float,
    max_response_tokens: int,
    optimizer: Mapping[str, float],
    seconds: Mapping[str, float],
    filtered_P_G: Groups = (),
    num_filtered: int = 0,
    history: Sequence[Mapping[str, Any]] = (),
    watch: DiversityWatch | None = None,
    breaks: Collection[int] = (),
) -> RecordedStep:
    """Write a step's rollouts and its metrics row; return the row, and the alarms that are new with it.

    Args:
        run: where to write.
        scored_P_G: the rollouts that are trained on, of all processes.
        step: the training step, from 1.
        temperature: of sampling.
        max_response_tokens: the limit of this step.
        optimizer: means over the step's updates.
        seconds: wall time by phase.
        filtered_P_G: groups that dynamic filtering left out; counted, and in no other figure and no file.
        num_filtered: number of groups that the engine has dropped itself.
        history: the metrics rows of the steps before.
        watch: how a decline of diversity is detected.
        breaks: steps at which the temperature schedule jumps.
    """
    samples = [sample for group in scored_P_G for sample in group]
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    lengths = [len(sample.rollout.token_ids) for sample in samples]
    masked = [sample.masked_why for sample in samples if sample.masked_why]
    metrics = StepMetrics(
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
        no_code_share=_share(sample.verdict.outcome is Outcome.NO_CODE for sample in samples),
        unscored_share=_share(sample.reward is None for sample in samples),
        zero_variance_share=_share(not has_signal([s.reward for s in group]) for group in scored_P_G),
        outcomes=count_outcomes(samples),
        methods=count_methods(samples),
        masked={reason: masked.count(reason) for reason in sorted(set(masked))},
        optimizer=dict(optimizer),
        seconds=dict(seconds),
        mismatch=summarise_mismatch(samples),
        filtered_groups=len(filtered_P_G) + num_filtered,
        sampled_accuracy=summarise_accuracy([*samples, *(s for group in filtered_P_G for s in group)])[0],
        rewards=average_rewards(samples),
    )
    diversities = [*(row["diversity"] for row in history), metrics.diversity]
    alarms = find_alarms(metrics, diversities=diversities, watch=watch or DiversityWatch(), breaks=breaks)
    metrics = replace(metrics, alarms=[alarm.name for alarm in alarms])
    write_rollouts(
        run.rollout_file(step), [rollout_row(sample, step=step, temperature=temperature) for sample in samples]
    )
    append_row(run.metrics, metrics.as_row())
    known = history[-1].get("alarms", ()) if history else ()
    return RecordedStep(metrics, [alarm for alarm in alarms if alarm.name not in known])


def record_evaluation(
    run: RunDirectory,
    scored_P_G: Groups,
    *,
    step: int,
    temperature: float,
    seconds: Mapping[str, float],
    sweep: Sequence[Mapping[str, Any]] = (),
) -> EvaluationMetrics:
    """Write the held-out samples and the evaluation's row; return the row.

    Accuracy is the mean over problems of the mean over a problem's scored samples; a problem without a scored
    sample is in no mean.

    Raises:
        EvaluatorFault: not one sample could be judged.
    """
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
    metrics = EvaluationMetrics(
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
        seconds=dict(seconds),
        sweep=list(sweep),
    )
    write_rollouts(
        run.evaluation_file(step), [rollout_row(sample, step=step, temperature=temperature) for sample in samples]
    )
    append_row(run.evaluations, metrics.as_row())
    return metrics


def _diversity(scored_P_G: Groups) -> float | None:
    return measure_diversity([[sample.rollout.token_ids for sample in group] for group in scored_P_G])


def _share(claims: Iterable[bool]) -> float:
    return fmean(map(float, claims))
