"""The only module that knows metric names: one row a step, one row an evaluation.

A metric is declared once, where its row is defined. `metric` gives its title, its chart and its
text in the terminal's line, for terminal, page and studies. `summarise_step` computes it from the
rollouts.

Everything but `seconds` is a function of the config and its seed, so two runs of one config write
equal rows.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from itertools import chain
from statistics import fmean
from typing import Any, Literal

from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Repeat, Verdict
from microcoder.train.rollouts import (
    ScoredRollout,
    ends_in_loop,
    has_signal,
    loses_advantage,
    measure_diversity,
    share_removed_advantages,
)

SANDBOX = "sandbox"
"""Key in `StepMetrics.unscored_by` of rollouts that the sandbox could not judge."""

Unit = Literal["share", "count", "number", "seconds"]
Group = Literal["reward", "length", "diversity", "doses", "optimisation", "judging", "time"]
"""Groups of charts, in the order of the page."""


@dataclass(frozen=True, slots=True)
class ShownMetric:
    """How a metric appears on the page and in the terminal.

    The fields are the arguments of `metric`.
    """

    title: str
    unit: Unit
    chart: str
    group: Group
    line: str
    is_rare: bool
    label: str
    name: str = ""
    """Name of its field in the row."""


def metric(
    title: str,
    unit: Unit,
    *,
    chart: str = "",
    group: Group = "reward",
    line: str = "",
    is_rare: bool = False,
    label: str = "",
    **default: Any,  # noqa: ANN401 - as of `dataclasses.field`
) -> Any:  # noqa: ANN401 - stands for a default of any type
    """Declare a field of a row as a metric that is shown.

    Args:
        title: its chart's title; a mapping has one chart per key, which stands for `{}`.
        unit: how the page writes its values.
        chart: the chart's name in links and studies; metrics of steps and evaluations with the same
            name are drawn in one chart. Empty: it is not drawn.
        group: the charts that this one stands with.
        line: its text in the terminal's line; `{}` is its value, `{name}` that of another field.
            Empty: not shown.
        is_rare: whether it is left out of the line if it is 0, and of the page if it is 0 in every
            row.
        label: the name of its curve; empty: "training" or "held out".
        default: the field's `default` or `default_factory`.
    """
    return field(
        metadata={"shown": ShownMetric(title, unit, chart, group, line, is_rare, label)}, **default
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMetrics:
    """Metrics of one training step (a sampling round and its updates); row of `metrics.jsonl`."""

    step: int
    """The training step, from 1."""
    reward_mean: float | None = metric("Reward", "share", chart="reward", line="reward {:.3f}")
    """Mean reward of the scored rollouts; None when all were unscored."""
    accuracy_by_tier: Mapping[str, float] = metric(
        "Accuracy, {}", "share", chart="accuracy", line="accuracy {:.2f}"
    )
    """Share of scored training rollouts solved, by tier."""
    length_mean: float = metric(
        "Response length (tokens)",
        "count",
        chart="length",
        group="length",
        line="length {:.0f} of {max_response_tokens}",
    )
    """Mean number of tokens of a response."""
    max_response_tokens: int = metric(
        "Limit of response tokens", "count", chart="length", group="length", label="limit"
    )
    truncated_share: float = metric(
        "Truncated share", "share", chart="truncated", group="length", line="truncated {:.0%}"
    )
    diversity: float | None = metric(
        "Diversity (unique 4-grams)",
        "share",
        chart="diversity",
        group="diversity",
        line="diversity {:.3f}",
    )
    """Share of distinct 4-grams among those of a problem's samples, averaged over problems; None if
    there are none."""
    temperature: float = metric(
        "Sampling temperature",
        "number",
        chart="temperature",
        group="diversity",
        line="temperature {:.2f}",
    )
    masked_share: float = metric(
        "Masked share",
        "share",
        chart="masked",
        group="doses",
        line="masked {:.1%} ({masked_effective_share:.1%} with an advantage)",
    )
    """Share of rollouts whose advantage was set to zero, by the truncation mask or for the
    sampler's mismatch."""
    masked_effective_share: float = metric(
        "Masked share",
        "share",
        chart="masked",
        group="doses",
        label="with an advantage to lose",
        default=0.0,
    )
    """Share of rollouts that were masked and would otherwise have had an advantage other than 0."""
    doses: Mapping[str, float] = metric(
        "Share of the advantages taken: {}",
        "share",
        chart="dose",
        group="doses",
        default_factory=dict,
    )
    """Share of the step's summed absolute advantages that each mechanism removed: `mask`, `penalty`
    and `mismatch`, each `_positive` (credit) or `_negative` (blame)."""
    no_code_share: float = metric(
        "No-code share", "share", chart="no-code", group="judging", line="no code {:.0%}"
    )
    """Share of rollouts without a program."""
    zero_variance_share: float = metric(
        "Problems without a gradient",
        "share",
        chart="no-signal",
        group="doses",
        line="same reward {:.0%}",
    )
    """Share of problems whose samples all have the same reward, and so give no gradient."""
    filtered_groups: int = metric(
        "Problems filtered out", "count", chart="filtered", group="doses", is_rare=True, default=0
    )
    """Problems dropped by dynamic filtering: all or none of their samples were right, or all had
    one reward (`algorithm.group_filtering`)."""
    sampled_accuracy: float | None = metric(
        "Accuracy of all sampled", "share", chart="sampled", default=None
    )
    """Share of everything sampled and scored that was solved, filtered groups included."""
    unscored_share: float = metric(
        "Unscored share",
        "share",
        chart="unscored",
        group="judging",
        line="UNSCORED {:.1%}",
        is_rare=True,
    )
    """Share of rollouts without a reward; they are in no mean. `unscored_by` says why."""
    unscored_by: Mapping[str, float] = metric(
        "Unscored by {}",
        "share",
        chart="unscored",
        group="judging",
        is_rare=True,
        default_factory=dict,
    )
    """Share of rollouts that each left unscored: `sandbox`, which could not judge them, or the
    label of a reward that returned None."""
    looping_share: float = metric(
        "Ends in a loop", "share", chart="looping", group="length", default=0.0
    )
    """Share of responses that end in a loop: the same tokens at least three times, 48 or more in
    all."""
    unrepeated_share: float | None = metric(
        "Rewards that do not repeat",
        "share",
        chart="unrepeated",
        group="judging",
        line="REWARDS THAT DO NOT REPEAT {:.1%}",
        is_rare=True,
        default=None,
    )
    """Share of the programs judged twice, a process a test, that were accepted once; None if none
    was judged twice."""
    uncounted: Mapping[str, float] = metric(
        "Accepted programs with a run that did not count: {}",
        "share",
        chart="uncounted",
        group="judging",
        default_factory=dict,
    )
    """Share of the accepted programs of which a test was run once more, by reason (`types.Repeat`);
    some reasons depend on how busy the machine was."""
    outcomes: Mapping[str, int]
    """Rollouts by verdict."""
    masked: Mapping[str, int]
    """Masked rollouts by reason."""
    staleness_mean: float = metric(
        "Age of the sampler's weights (steps)",
        "number",
        chart="staleness",
        group="optimisation",
        line="weights {:.1f} steps old",
        is_rare=True,
        default=0.0,
    )
    """Mean over responses of the age, in steps, of the oldest weights that sampled a part of it;
    above 0 only where sampling runs ahead of training."""
    mismatch: Mapping[str, float] = field(default_factory=dict)
    """Mismatch of sampler and trainer: means over responses of `logp_difference` and `weight` (see
    `SamplerMismatch`), and `dropped_share`; empty unless `rollout.mismatch` corrects it."""
    rewards: Mapping[str, float | None] = field(default_factory=dict)
    """Mean of each of several rewards, without its weight; empty if there is one."""
    optimizer: Mapping[str, float] = metric("{}", "number", chart="optimizer", group="optimisation")
    """Means over the step's updates, as the engine reports them: loss, grad_norm, learning_rate,
    clip ratios."""
    seconds: Mapping[str, float] = metric(
        "Seconds a step: {}", "seconds", chart="seconds", group="time"
    )
    """Wall time since the row before, by phase: generate, judge, update, evaluate, checkpoint,
    total. A row is written before its step's evaluation and checkpoint, whose time is therefore in
    the next row. The only field that varies between runs of one config."""
    alarms: list[str] = field(default_factory=list)
    """Names of the early warnings that hold at this step (`microcoder.train.run.alarms`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationMetrics:
    """One evaluation on held-out problems; row of `evaluations.jsonl`."""

    step: int
    """Training steps done before it; 0 is the untrained model."""
    accuracy: float = metric(
        "Accuracy, held out", "share", chart="accuracy", line="accuracy {:.3f}"
    )
    """Share of scored samples that pass all tests (mean over problems of the mean over samples)."""
    num_problems: int = metric("Problems", "count", line="{} problems x {samples_per_problem}")
    samples_per_problem: int
    accuracy_by_tier: Mapping[str, float] = metric(
        "Accuracy, {}", "share", chart="accuracy", line="{:.2f}"
    )
    solved: Mapping[str, Sequence[bool | None]]
    """Problem id -> whether each sample solved it; None is unscored. Intervals are computed from
    this."""
    length_mean: float = metric(
        "Response length (tokens)", "count", chart="length", group="length", line="length {:.0f}"
    )
    truncated_share: float = metric(
        "Truncated share", "share", chart="truncated", group="length", line="truncated {:.0%}"
    )
    diversity: float | None = metric(
        "Diversity (unique 4-grams)",
        "share",
        chart="diversity",
        group="diversity",
        line="diversity {:.3f}",
    )
    temperature: float = metric(
        "Sampling temperature", "number", chart="temperature", group="diversity"
    )
    num_unscored: int = metric("Unscored samples", "count", line="UNSCORED {}", is_rare=True)
    outcomes: Mapping[str, int]
    seconds: Mapping[str, float] = field(default_factory=dict)


@cache
def shown_metrics(row: type) -> tuple[ShownMetric, ...]:
    """Return how page and terminal show the metrics of a row class, in the order of its fields."""
    metrics = []
    for row_field in fields(row):
        shown = row_field.metadata.get("shown")
        if shown:
            metrics.append(replace(shown, name=row_field.name))
    return tuple(metrics)


def describe_row(row: StepMetrics | EvaluationMetrics) -> list[str]:
    """Return the parts of a row's terminal line, a text per shown metric.

    `-` stands for an unknown value.
    """
    figures = {row_field.name: _Figure(getattr(row, row_field.name)) for row_field in fields(row)}
    texts = []
    for shown in shown_metrics(type(row)):
        # Such as faults of the sandbox: worth a word only if there are some.
        is_left_out = shown.is_rare and not getattr(row, shown.name)
        if shown.line and not is_left_out:
            texts.append(shown.line.format(figures[shown.name], **figures))
    return texts


def list_numbers(row: StepMetrics | EvaluationMetrics, *, prefix: str) -> dict[str, float]:
    """Return a row's numbers by name, `prefix` and the keys joined by `/`, for an engine's loggers.

    The step is among them: TRL's own axis counts updates.
    """
    numbers = {}
    for key, value in flatten(asdict(row)).items():
        # Texts, lists and unknown values have no curve.
        if isinstance(value, int | float):
            numbers[f"{prefix}{key.replace('.', '/')}"] = value
    return numbers


@dataclass(frozen=True, slots=True)
class _Figure:
    """Formats a row's value like a number.

    A mapping is written as keys with values; None and an empty mapping are `-`.
    """

    value: Any

    def __format__(self, form: str) -> str:
        if self.value is None:
            return "-"
        if isinstance(self.value, Mapping):
            parts = [f"{key} {value:{form}}" for key, value in self.value.items()]
            return " ".join(parts) or "-"
        return format(self.value, form)


Groups = Sequence[Sequence[ScoredRollout]]
"""Rollouts by problem: G to each of P."""


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
    """Return a step's metrics row, still without alarms.

    Args:
        scored_P_G: the rollouts that are trained on, of all processes.
        step: the training step, from 1.
        temperature: the sampling temperature.
        max_response_tokens: the limit of this step.
        optimizer: means over the step's updates.
        seconds: wall time by phase.
        filtered_P_G: groups that dynamic filtering dropped; in `filtered_groups` and
            `sampled_accuracy` only.
        num_filtered: number of groups that the engine has dropped itself.
    """
    samples = _flatten(scored_P_G)
    rewards = [sample.reward for sample in samples if sample.reward is not None]
    verdicts = [sample.verdict for sample in samples]
    masked = [sample.masked_why for sample in samples if sample.masked_why]
    _, accuracy_by_tier = summarise_accuracy(samples)
    sampled_accuracy, _ = summarise_accuracy([*samples, *_flatten(filtered_P_G)])
    return StepMetrics(
        **measure_responses(scored_P_G),
        step=step,
        reward_mean=fmean(rewards) if rewards else None,
        accuracy_by_tier=accuracy_by_tier,
        temperature=temperature,
        max_response_tokens=max_response_tokens,
        masked_share=len(masked) / len(samples),
        masked_effective_share=_share(
            loses_advantage(sample.masked_why, sample.lost) for sample in samples
        ),
        doses=share_removed_advantages(samples),
        no_code_share=_share(sample.verdict.outcome is Outcome.NO_CODE for sample in samples),
        unscored_share=_share(sample.reward is None for sample in samples),
        unscored_by=share_unscored(samples),
        looping_share=_share(ends_in_loop(sample.rollout.token_ids) for sample in samples),
        zero_variance_share=_share(not _differs(scored_G) for scored_G in scored_P_G),
        masked={reason: masked.count(reason) for reason in sorted(set(masked))},
        optimizer=dict(optimizer),
        seconds=dict(seconds),
        staleness_mean=fmean(sample.staleness for sample in samples),
        mismatch=summarise_mismatch(samples),
        filtered_groups=len(filtered_P_G) + num_filtered,
        sampled_accuracy=sampled_accuracy,
        rewards=average_rewards(samples),
        uncounted=share_uncounted(verdicts),
        unrepeated_share=share_unrepeated(verdicts),
    )


def _flatten(scored_P_G: Groups) -> list[ScoredRollout]:
    return list(chain.from_iterable(scored_P_G))


def _differs(scored_G: Sequence[ScoredRollout]) -> bool:
    """Return whether a group's rewards differ, so that it gives a gradient."""
    return has_signal([sample.reward for sample in scored_G])


def summarise_evaluation(
    scored_P_G: Groups, *, step: int, temperature: float, seconds: float
) -> EvaluationMetrics:
    """Return the row of an evaluation.

    Accuracy is the mean over problems of the mean over a problem's scored samples; a problem
    without a scored sample is left out. Raises EvaluatorFault if no sample was scored.
    """
    samples = _flatten(scored_P_G)
    by_tier: dict[str, list[float]] = {}
    solved: dict[str, list[bool | None]] = {}
    for scored_G in scored_P_G:
        first = scored_G[0]
        solved[first.rollout.problem_id] = [_is_solved(sample) for sample in scored_G]
        # The 0/1 reward of an evaluation is whether it was solved.
        rewards = [sample.reward for sample in scored_G if sample.reward is not None]
        if rewards:
            by_tier.setdefault(first.tier or "untiered", []).append(fmean(rewards))
    accuracies = list(chain.from_iterable(by_tier.values()))
    if not accuracies:
        raise EvaluatorFault(
            f"the sandbox could judge none of the {len(samples)} held-out samples (first: "
            f"{samples[0].verdict.detail})"
        )
    return EvaluationMetrics(
        **measure_responses(scored_P_G),
        step=step,
        accuracy=fmean(accuracies),
        accuracy_by_tier={tier: fmean(values) for tier, values in sorted(by_tier.items())},
        num_problems=len(scored_P_G),
        samples_per_problem=len(scored_P_G[0]),
        num_unscored=sum(sample.reward is None for sample in samples),
        solved=solved,
        temperature=temperature,
        seconds={"total": round(seconds, 4)},
    )


def _is_solved(sample: ScoredRollout) -> bool | None:
    """Return whether a sample passes all tests; None if it is unscored."""
    return None if sample.reward is None else sample.verdict.is_accepted


def measure_responses(scored_P_G: Groups) -> dict[str, Any]:
    """Return the fields that rows of steps and evaluations share.

    They are lengths, diversity, truncation and verdicts.
    """
    samples = _flatten(scored_P_G)
    counts = Counter(sample.verdict.outcome for sample in samples)
    token_ids_P_G = []
    for scored_G in scored_P_G:
        token_ids_P_G.append([sample.rollout.token_ids for sample in scored_G])
    return {
        "length_mean": fmean(len(sample.rollout.token_ids) for sample in samples),
        "diversity": measure_diversity(token_ids_P_G),
        "truncated_share": _share(sample.rollout.is_truncated for sample in samples),
        # Every verdict has a key, so that a zero is visible.
        "outcomes": {str(outcome): counts[outcome] for outcome in Outcome},
    }


def _share(claims: Iterable[bool]) -> float:
    """Return the share of claims that are true."""
    return fmean(map(float, claims))


def summarise_accuracy(samples: Sequence[ScoredRollout]) -> tuple[float | None, dict[str, float]]:
    """Return the share of scored rollouts that were solved, overall and by tier.

    Overall it is None if nothing was scored.
    """
    by_tier: dict[str, list[float]] = {}
    for sample in samples:
        if sample.reward is not None:
            is_solved = float(sample.verdict.is_accepted)
            by_tier.setdefault(sample.tier or "untiered", []).append(is_solved)
    accuracy_by_tier = {}
    for tier, values in sorted(by_tier.items()):
        accuracy_by_tier[tier] = sum(values) / len(values)
    everything = list(chain.from_iterable(by_tier.values()))
    if not everything:
        return None, accuracy_by_tier
    return sum(everything) / len(everything), accuracy_by_tier


def average_rewards(samples: Sequence[ScoredRollout]) -> dict[str, float | None]:
    """Return the mean of each of several rewards over the rollouts that have it.

    None if no rollout has.
    """
    values: dict[str, list[float]] = {}
    for sample in samples:
        for label, value in sample.rewards.items():
            # A reward that no rollout has is listed, too.
            rewards = values.setdefault(label, [])
            if value is not None:
                rewards.append(value)
    means: dict[str, float | None] = {}
    for label, rewards in values.items():
        means[label] = sum(rewards) / len(rewards) if rewards else None
    return means


def share_unscored(samples: Sequence[ScoredRollout]) -> dict[str, float]:
    """Return the share of rollouts that were left unscored, by cause.

    The cause is the sandbox, or a reward that returned None.
    """
    counted: Counter[str] = Counter()
    for sample in samples:
        if sample.reward is None:
            # Nobody is named where the sandbox failed.
            counted.update(sample.unscored_by or (SANDBOX,))
    return {name: number / len(samples) for name, number in sorted(counted.items())}


def share_uncounted(verdicts: Iterable[Verdict]) -> dict[str, float]:
    """Return the share of accepted programs of which a test was run again, by reason.

    The reasons are those of `types.Repeat`.
    """
    reasons = []
    for verdict in verdicts:
        if verdict.is_accepted:
            reasons.append({str(run.reason) for run in verdict.uncounted})
    return share_reasons(reasons)


def share_reasons(programs: Iterable[Collection[str]]) -> dict[str, float]:
    """Return the share of programs that have each reason.

    `programs` are the distinct reasons of every program.
    """
    reasons_by_program = list(programs)
    counts: Counter[str] = Counter()
    for reasons in reasons_by_program:
        counts.update(reasons)
    number = len(reasons_by_program)
    return {reason: count / number for reason, count in sorted(counts.items())}


def share_unrepeated(verdicts: Iterable[Verdict]) -> float | None:
    """Return the share of programs judged twice that were accepted one time only.

    None if none was judged twice.
    """
    differs = []
    for verdict in verdicts:
        reasons = {run.reason for run in verdict.uncounted}
        if Repeat.JUDGED_ANEW in reasons:
            differs.append(Repeat.DIFFERS in reasons)
    return sum(differs) / len(differs) if differs else None


def summarise_mismatch(samples: Sequence[ScoredRollout]) -> dict[str, float]:
    """Return `StepMetrics.mismatch` of a step's rollouts; empty if no mismatch was measured."""
    mismatches = [sample.mismatch for sample in samples if sample.mismatch]
    if not mismatches:
        return {}
    return {
        "logp_difference": fmean(mismatch.logp_difference for mismatch in mismatches),
        "weight": fmean(mismatch.weight for mismatch in mismatches),
        "dropped_share": fmean(mismatch.weight == 0 for mismatch in mismatches),
    }
