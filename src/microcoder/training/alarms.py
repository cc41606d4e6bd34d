"""Early warnings: the most frequent problems of a run, each with its cause and its fix."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from microcoder.metrics import StepMetrics
from microcoder.training.algorithm.trend import follow_trend
from microcoder.training.sampling_config import DiversityWatch
from microcoder.types import NOT_ALONE

TRUNCATED_SHARE = 0.9
NO_CODE_SHARE = 0.5
FLAT_SHARE = 0.95
UNSCORED_SHARE = 0.01
WEIGHT_RANGE = (0.9, 1.1)
DROPPED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Alarm:
    """A warning about a step."""

    name: str
    cause: str
    fix: str

    def __str__(self) -> str:
        return f"{self.name}: {self.cause}; {self.fix}"


def find_alarms(
    metrics: StepMetrics,
    *,
    diversities: Sequence[float | None],
    watch: DiversityWatch,
    breaks: Collection[int] = (),
) -> list[Alarm]:
    """Return the warnings about a step.

    Args:
        metrics: the step's row.
        diversities: of all steps up to and with this one.
        watch: how a decline of diversity is detected.
        breaks: steps at which the temperature schedule jumps.
    """
    checks = (
        _everything_truncated(metrics),
        _no_code(metrics),
        _all_groups_flat(metrics),
        _diversity_falling(diversities, watch, breaks),
        _sandbox_faults(metrics),
        _shared_processes_differ(metrics),
        _sampler_differs(metrics),
    )
    return [alarm for alarm in checks if alarm]


def _everything_truncated(metrics: StepMetrics) -> Alarm | None:
    if metrics.truncated_share < TRUNCATED_SHARE:
        return None
    return Alarm(
        "everything_truncated",
        f"{metrics.truncated_share:.0%} of the responses reached the limit of {metrics.max_response_tokens} tokens",
        "raise rollout.max_response_tokens; if responses go on after their answer, the model's end-of-sequence token "
        "is not the tokenizer's",
    )


def _no_code(metrics: StepMetrics) -> Alarm | None:
    if metrics.no_code_share < NO_CODE_SHARE:
        return None
    return Alarm(
        "no_code",
        f"{metrics.no_code_share:.0%} of the responses hold no whole code block",
        f'read some of rollouts/step_{metrics.step:06d}.parquet; prompt.style = "instruct" asks for the block, a base '
        "model needs a warm start, and truncated responses need room",
    )


def _all_groups_flat(metrics: StepMetrics) -> Alarm | None:
    if metrics.zero_variance_share < FLAT_SHARE:
        return None
    solved = metrics.sampled_accuracy
    if solved is not None and solved > 0.5:
        cause, fix = "nearly all samples are right", "train on harder problems"
    else:
        cause, fix = "nearly all samples are wrong", "train on easier problems, or look at no_code and truncated first"
    return Alarm(
        "all_groups_flat",
        f"in {metrics.zero_variance_share:.0%} of the problems all samples got one reward, so no gradient: {cause}",
        f"{fix}; more rollout.num_samples or algorithm.group_filtering.kind dynamic find the few that differ",
    )


def _diversity_falling(
    diversities: Sequence[float | None], watch: DiversityWatch, breaks: Collection[int]
) -> Alarm | None:
    decline = follow_trend(diversities, watch=watch, breaks=breaks).decline
    if decline is None:
        return None
    return Alarm(
        "diversity_falling",
        f"diversity fell steadily from {decline.start:.3f} to {decline.end:.3f} in {watch.window_steps} steps; at this "
        f"rate it halves in {decline.steps_to_half}, and runs fail that way",
        "train at a higher temperature (microcoder probe), or let rollout.diversity_watch.answers change to one",
    )


def _sandbox_faults(metrics: StepMetrics) -> Alarm | None:
    if metrics.unscored_share <= UNSCORED_SHARE:
        return None
    return Alarm(
        "sandbox_faults",
        f"the sandbox could not judge {metrics.unscored_share:.1%} of the rollouts; they are in no mean or advantage",
        "look at the machine: memory, process limits, disk; fewer evaluator.workers need less of all",
    )


def _shared_processes_differ(metrics: StepMetrics) -> Alarm | None:
    num_tests = metrics.methods.get(NOT_ALONE, 0)
    if not num_tests:
        return None
    return Alarm(
        "shared_processes_differ",
        f"{num_tests} tests were accepted in a process that tests share, and not in one of their own",
        "resume with --evaluator.batch_tests false and report the program in the log: this should never happen",
    )


def _sampler_differs(metrics: StepMetrics) -> Alarm | None:
    seen = metrics.mismatch
    if not seen or (WEIGHT_RANGE[0] <= seen["weight"] <= WEIGHT_RANGE[1] and seen["dropped_share"] <= DROPPED_SHARE):
        return None
    return Alarm(
        "sampler_differs",
        f"responses count {seen['weight']:.2f} times on average and {seen['dropped_share']:.1%} not at all, since the "
        f"sampler's log-probs are {seen['logp_difference']:.3g} from the trainer's (mean over tokens)",
        'rollout.mismatch.correction = "token" does not grow with length; if that is what you have, the sampler has '
        "other weights, temperature or precision than the trainer",
    )
