"""Early warnings: the most frequent problems of a run, each with its cause and its fix."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import correlation, linear_regression
from typing import NamedTuple

from microcoder.judge.core.types import Repeat
from microcoder.train.metrics import SANDBOX, StepMetrics

TRUNCATED_SHARE = 0.9
"""Share of truncated responses from which on there is a warning."""
NO_CODE_SHARE = 0.5
"""Share without a whole code block, of the responses that ended, from which on there is a
warning."""
FLAT_SHARE = 0.95
"""Share of groups of equal rewards from which on there is a warning."""
LOOPING_SHARE = 0.1
"""Share of responses that end in a loop from which on there is a warning (our choice)."""
UNSCORED_SHARE = 0.01
"""Share of unscored rollouts above which there is a warning."""
WEIGHT_RANGE = (0.9, 1.1)
"""Mean importance weights that are taken as usual; others mean that the sampler differs."""
DROPPED_SHARE = 0.05
"""Share of tokens dropped for the sampler's mismatch above which there is a warning."""
IDLE_STEPS = 20
"""Steps without effect that make a mechanism idle.

The chance to miss one that affects 1 rollout in 3,000 is 3 %.
"""
STEADINESS = 0.7
"""A fall counts as steady if the correlation of diversity with the step is below minus this."""
WINDOW_STEPS = 50
"""Number of latest steps over which diversity's trend is fitted."""
_SHORTEST_WINDOW = 8
"""Least number of steps of a window, since fewer are all noise."""
_WINDOWS_A_RUN = 3
"""In a short run the window is a third of the steps."""
MIN_DROP = 0.05
"""Relative loss of diversity over the window that counts as a decline (our choice).

The run at 0.6 that fails in the paper's figure 3 lost about 6 %.
"""
MIN_RISE = 0.5
"""Relative gain of entropy over the window that counts as a rise (our choice).

A policy that spreads out, and does not come back, grows by more.
"""
_NOT_REPEATED = (Repeat.KILLED,)
"""Reasons for not counting a test run of an accepted program that neither time nor company
explains."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """An early warning about a step: its name, the cause seen in the metrics, and the fix."""

    name: str
    cause: str
    fix: str

    def __str__(self) -> str:
        return f"{self.name}: {self.cause}; {self.fix}"


def find_alarms(
    metrics: StepMetrics,
    *,
    history: Sequence[StepMetrics] = (),
    num_steps: int | None = None,
    mechanisms: Collection[str] = (),
) -> list[Alarm]:
    """Return the warnings about a step.

    Args:
        metrics: the step's row.
        history: the steps before.
        num_steps: length of the run; in a short one the window of a decline is shorter.
        mechanisms: those that should have an effect, see `AlgorithmConfig.mechanisms`.
    """
    return [
        *_find_signal_alarms(metrics),
        *_find_trend_alarms(metrics, history, num_steps=num_steps),
        *_find_idle_alarms(metrics, history, mechanisms),
        *_find_machine_alarms(metrics),
    ]


def _find_trend_alarms(
    metrics: StepMetrics, history: Sequence[StepMetrics], *, num_steps: int | None
) -> Iterator[Alarm]:
    """Yield the warnings about a fall of diversity and a rise of entropy."""
    window_steps = WINDOW_STEPS
    if num_steps is not None:
        window_steps = min(window_steps, max(_SHORTEST_WINDOW, num_steps // _WINDOWS_A_RUN))
    steps = [*history, metrics]
    decline = find_decline([step.diversity for step in steps], window_steps=window_steps)
    if decline:
        start, end = decline
        yield Alarm(
            "diversity_falling",
            f"diversity fell steadily from {start:.3f} to {end:.3f} in {window_steps} steps; "
            "a run in which it keeps falling stops improving",
            "train at a higher temperature, or let a probe choose it (rollout.temperature.kind = "
            '"diversity")',
        )
    # Only where the engine reports it.
    entropies = [step.optimizer.get("entropy") for step in steps]
    rise = find_rise(entropies, window_steps=window_steps)
    if rise:
        start, end = rise
        yield Alarm(
            "entropy_rising",
            f"entropy rose steadily from {start:.3f} to {end:.3f} in {window_steps} steps; "
            "responses lose their form that way",
            "lower optimizer.learning_rate or algorithm.loss.clip_high, or train at a lower "
            "temperature; read some of the newest rollouts first",
        )


def _find_idle_alarms(
    metrics: StepMetrics, history: Sequence[StepMetrics], mechanisms: Collection[str]
) -> Iterator[Alarm]:
    """Yield the warning about mechanisms that had no effect in the last steps."""
    # In a single step a mechanism may have nothing to do.
    steps = [*history[1 - IDLE_STEPS :], metrics]
    if len(steps) < IDLE_STEPS:
        return
    idle = [mechanism for mechanism in mechanisms if not _has_acted(mechanism, steps)]
    if idle:
        yield Alarm(
            "idle",
            f"the {' and the '.join(idle)} of algorithm had no effect in {IDLE_STEPS} steps, "
            "so this trains as without",
            "leave it out, or give it something to do: a clip more updates a step or a higher "
            "rate, a mask or a penalty responses that reach the limit in groups whose rewards "
            "differ",
        )


def find_decline(
    diversities: Sequence[float | None], *, window_steps: int
) -> tuple[float, float] | None:
    """Return start and end of a line through the last values if it falls steadily; else None.

    A steady fall precedes failure: a least-squares line loses at least `MIN_DROP` of its level, and
    follows the values closely (correlation below -0.7). So noise and a single jump do not count.
    Steps without a value are left out; half of the window must have one.
    """
    # A trend that the values do not follow, or that is small, is noise.
    line = _fit_line(diversities, window_steps=window_steps)
    if line is None or line.correlation >= -STEADINESS:
        return None
    if line.start - line.end < MIN_DROP * line.start:
        return None
    return line.start, line.end


def find_rise(
    entropies: Sequence[float | None], *, window_steps: int
) -> tuple[float, float] | None:
    """Return start and end of a line through the last values if it rises steadily; else None.

    It must rise by half or more.
    """
    line = _fit_line(entropies, window_steps=window_steps)
    if line is None or line.correlation <= STEADINESS:
        return None
    if line.end - line.start < MIN_RISE * max(line.start, 0.0):
        return None
    return line.start, line.end


class _Line(NamedTuple):
    """A least-squares line through the values of a window."""

    start: float
    end: float
    correlation: float
    """Of the values with the step."""


def _fit_line(values: Sequence[float | None], *, window_steps: int) -> _Line | None:
    """Return the line through the last values; None where they are too few, or all equal."""
    if len(values) < window_steps:
        return None
    points = [(x, y) for x, y in enumerate(values[-window_steps:]) if y is not None]
    if len(points) < max(4, window_steps / 2):
        return None
    xs, ys = zip(*points, strict=True)
    # A correlation of equal values is not defined.
    if len(set(ys)) == 1:
        return None
    slope, start = linear_regression(xs, ys)
    return _Line(start, start + slope * (window_steps - 1), correlation(xs, ys))


def _has_acted(mechanism: str, steps: Sequence[StepMetrics]) -> bool:
    """Return whether a mechanism had an effect in any of some steps."""
    return any(_acts(mechanism, step) for step in steps)


def _acts(mechanism: str, step: StepMetrics) -> bool:
    """Return whether a mechanism had an effect in a step.

    A clip that the engine does not report counts as acting.
    """
    if mechanism == "clip":
        shares = step.optimizer
        return shares.get("clip_high_share", shares.get("clip_share", 1.0)) > 0
    # The keys are such as `mask_positive`.
    return any(name.startswith(mechanism) for name in step.doses)


def _find_signal_alarms(metrics: StepMetrics) -> Iterator[Alarm]:
    """Yield the warnings about what a model learns from: responses and rewards."""
    if metrics.truncated_share >= TRUNCATED_SHARE:
        yield Alarm(
            "everything_truncated",
            f"{metrics.truncated_share:.0%} of the responses reached the limit of "
            f"{metrics.max_response_tokens} tokens",
            "raise rollout.max_response_tokens; if responses continue after their answer, the "
            "model's end-of-sequence token is not the tokenizer's",
        )
    if metrics.looping_share >= LOOPING_SHARE:
        yield Alarm(
            "responses_loop",
            f"{metrics.looping_share:.0%} of the responses end in a loop, the same tokens again "
            "and again",
            f"read some of rollouts/step_{metrics.step:06d}.parquet; where the share grows, lower "
            "optimizer.learning_rate or begin again from an earlier checkpoint; a mask that spares "
            "truncated responses lets loops stay",
        )
    no_code_share = _bound_no_code_share(metrics)
    if no_code_share >= NO_CODE_SHARE:
        yield Alarm(
            "no_code",
            f"at least {no_code_share:.0%} of the responses that ended hold no whole code block",
            f"read some of rollouts/step_{metrics.step:06d}.parquet; prompt.style = "
            '"instruct" asks for the block, and a base model needs a warm start',
        )
    if metrics.zero_variance_share >= FLAT_SHARE:
        # The samples of a flat group are all right or all wrong: accuracy tells which.
        is_right = (metrics.sampled_accuracy or 0.0) > 0.5
        verdict = "right" if is_right else "wrong"
        wanted = "harder" if is_right else "easier"
        yield Alarm(
            "all_groups_flat",
            f"in {metrics.zero_variance_share:.0%} of the problems all samples got one reward, so "
            f"no gradient: nearly all are {verdict}",
            f"train on {wanted} problems; more rollout.num_samples or algorithm.group_filtering "
            "dynamic find the few that differ",
        )


def _bound_no_code_share(metrics: StepMetrics) -> float:
    """Return the least share of the responses that ended, and that hold no code.

    One that was truncated is no surprise without code, and is counted by its own metric.
    """
    ended_share = 1.0 - metrics.truncated_share
    if ended_share <= 0.0:
        return 0.0
    # Some of the truncated hold a whole block, so that this is a lower bound.
    return max(0.0, metrics.no_code_share - metrics.truncated_share) / ended_share


def _find_machine_alarms(metrics: StepMetrics) -> Iterator[Alarm]:
    """Yield the warnings about the judge and the sampler."""
    yield from _find_unscored_alarms(metrics)
    yield from _find_repeat_alarms(metrics)
    mismatch = metrics.mismatch
    if mismatch and not _is_small(mismatch):
        yield Alarm(
            "sampler_differs",
            f"responses count {mismatch['weight']:.2f} times on average and "
            f"{mismatch['dropped_share']:.1%} not at all, since the sampler's log-probs are "
            f"{mismatch['logp_difference']:.3g} from the trainer's (mean over tokens)",
            'rollout.mismatch.correction = "token" does not grow with length; if that is what you '
            "have, the sampler has other weights, temperature or precision than the trainer",
        )


def _find_unscored_alarms(metrics: StepMetrics) -> Iterator[Alarm]:
    """Yield the warnings about rollouts without a reward, and what left them without."""
    # Rows of earlier versions do not say by whom.
    unscored = metrics.unscored_by or {SANDBOX: metrics.unscored_share}
    if unscored.get(SANDBOX, 0.0) > UNSCORED_SHARE:
        yield Alarm(
            "sandbox_faults",
            f"the sandbox could not judge {unscored[SANDBOX]:.1%} of the rollouts; they are in no "
            "mean or advantage",
            "look at the machine: memory, process limits, disk; fewer evaluator.workers need less "
            "of all",
        )
    # What is left are rewards that returned None.
    by_reward = {name: share for name, share in unscored.items() if name != SANDBOX}
    if any(share > UNSCORED_SHARE for share in by_reward.values()):
        named = ", ".join(f"{name} for {share:.1%}" for name, share in by_reward.items())
        yield Alarm(
            "reward_is_none",
            f"rewards returned None, which is unscored: {named} of the rollouts, whose programs "
            "the sandbox had judged",
            "return a number where a program was judged, 0.0 for a wrong one; None leaves a "
            "rollout out of every mean and advantage",
        )


def _find_repeat_alarms(metrics: StepMetrics) -> Iterator[Alarm]:
    """Yield the warning about verdicts that another run of the same program did not repeat."""
    not_repeated: dict[str, float] = {}
    for reason in _NOT_REPEATED:
        if reason in metrics.uncounted:
            not_repeated[reason] = metrics.uncounted[reason]
    if metrics.unrepeated_share:
        not_repeated[Repeat.DIFFERS] = metrics.unrepeated_share
    if not_repeated:
        shares = ", ".join(f"{reason} {share:.2%}" for reason, share in not_repeated.items())
        yield Alarm(
            "rewards_do_not_repeat",
            f"accepted programs failed a test and passed it in another run, or the other way round "
            f"({shares}): of two runs of a test the worse one counts",
            "look at them in the log: programs that guess are not an error; report any other, and "
            "resume with --evaluator.batch_tests false",
        )


def _is_small(mismatch: Mapping[str, float]) -> bool:
    """Return whether sampler and trainer agree as far as is usual."""
    low, high = WEIGHT_RANGE
    return low <= mismatch["weight"] <= high and mismatch["dropped_share"] <= DROPPED_SHARE
