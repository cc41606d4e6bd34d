"""The replay: every step of a recording decided again, under its own recipe and under others.

Read `replay` from top to bottom. It goes through the recording once, a step at a time. A step's
rollouts are decided by each alternative and held against the recorded decisions; only sums are
kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.types import Problem
from microcoder.replay.answers import (
    DifferingRollout,
    RunAnswer,
    StepAnswer,
    StepFacts,
    answer_step,
    describe_step,
    list_differing,
    sum_up,
)
from microcoder.replay.deciding import Decider, build_decider
from microcoder.replay.disagreements import Disagreements, WeakProblem
from microcoder.replay.payments import PaymentCurve, Payments
from microcoder.replay.recordings import CONSEQUENCES, Lack, RecordedStep, Recording
from microcoder.replay.rejudging import Rejudging
from microcoder.replay.settings import PLAIN, Alternative, Resolved, check_names, resolve
from microcoder.train.algorithm.sampling import DiversityTemperature
from microcoder.train.algorithm.selection import GroupFiltering
from microcoder.train.metrics import Groups
from microcoder.train.rollouts import ScoredRollout, share_removed_advantages
from microcoder.train.run.probe import Choice, choose_temperature

OWN = "own recipe"
"""Name of the recorded recipe, under which a replay is checked."""

OTHER_EPSILON = 1e-3
"""Relative difference that another epsilon in the deviation makes, at most: TRL's is 1e-4."""

_COMPARED = ("reward", "advantage", "masked_why", "counts", "length_penalty", "rewards", "lost")
"""Decisions about a rollout that must come out as they were recorded."""

OnDiffering = Callable[[Sequence[DifferingRollout]], None]
"""Called with the rollouts of a step that an alternative decides otherwise."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Whether the recorded recipe gives the recorded decisions again, to the last digit."""

    is_exact: bool
    first_step: int | None = None
    """The first step in which something differs."""
    what: str = ""
    """What differs there, with both values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedAlternative:
    """What an alternative would have taught by the same rollouts."""

    name: str
    changed: Mapping[str, tuple[Any, Any]]
    """Key -> recorded and alternative value."""
    unanswered: tuple[str, ...]
    """A sentence for each change whose effect is not in these numbers."""
    temperature: Choice | None
    """What the diversity rule would have chosen; None without a probe, or without the rule."""
    run: RunAnswer
    steps: tuple[StepAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A recording held against alternatives: typed, and plain by `asdict`."""

    name: str
    format: str
    notes: tuple[str, ...]
    """What the recording lacks, and what therefore is not answered."""
    reproduction: Reproduction | None
    """Of the recorded recipe; None where no recipe is recorded."""
    recorded: RunAnswer
    """The recorded decisions themselves, in the same numbers."""
    recorded_steps: tuple[StepAnswer, ...]
    facts: tuple[StepFacts, ...]
    """One a step, the same for all alternatives."""
    alternatives: tuple[ReplayedAlternative, ...]
    payments: PaymentCurve | None
    """What was paid and is wrong, by the verdicts of the re-judging if there is one, else by the
    recorded; None where no verdicts are recorded."""
    weak_problems: tuple[WeakProblem, ...]
    """Problems of which a program was paid that the re-judging refuses; empty without one."""


def replay(
    recording: Recording,
    alternatives: Sequence[Alternative] = (),
    *,
    problems: Mapping[str, Problem] | None = None,
    rejudging: Rejudging | None = None,
    on_differing: OnDiffering | None = None,
) -> Replay:
    """Return what alternatives would have made of the rollouts of a recording.

    It is not the other run: after its first other update, that would have sampled other rollouts.

    Args:
        recording: see `open_recording`.
        alternatives: changes to the recorded recipe.
        problems: by id, for rewards of the user's own that were not recorded.
        rejudging: judges every program again; one more alternative is the recorded recipe with
            these verdicts.
        on_differing: called for each step and alternative.

    Raises:
        ConfigError: an alternative is wrong, or looks at what is not recorded.
        DataError: the recording cannot be read, or has no steps.
    """
    check_names(alternatives)
    columns = []
    for alternative in alternatives:
        resolved = resolve(alternative, recording.config)
        decider = build_decider(recording, resolved, problems=problems)
        columns.append(_Column(resolved, decider))
    if rejudging is not None:
        columns.append(_rejudged_column(recording, rejudging))
    disagreements = Disagreements({} if rejudging is None else rejudging.problems)
    payments = None
    if rejudging is not None:
        payments = Payments(rejudging.name, rejudging.problems)
    elif Lack.VERDICTS not in recording.lacks:
        payments = Payments("recorded", problems or {})
    own = None
    if Lack.RECIPE not in recording.lacks:
        own = build_decider(recording, Resolved(OWN, recording.config, {}, ()))
    plain = build_decider(recording, Resolved("plain", PLAIN, {}, ()))
    recorded: list[StepAnswer] = []
    facts: list[StepFacts] = []
    fault = ""
    fault_step = None
    for step in recording.read():
        if Lack.ADVANTAGES in recording.lacks:
            step = replace(step, scored_P_G=plain.decide(step))
        fact = describe_step(step, recording.lacks)
        facts.append(fact)
        recorded.append(_answer(step, step.scored_P_G, "recorded", recording))
        if own is not None and not fault:
            fault = _find_fault(step, own.decide(step), fact)
            fault_step = step.step if fault else None
        judged = step if rejudging is None else rejudging.judge_step(step)
        if payments is not None:
            payments.add(judged)
        disagreements.add(step.step, judged.scored_P_G)
        for column in columns:
            column.add(step, judged, recording, on_differing)
    if not facts:
        raise DataError(f"{recording.name} holds no whole step yet; wait until it has done one")
    return Replay(
        name=recording.name,
        format=recording.format,
        notes=tuple(CONSEQUENCES[lack] for lack in Lack if lack in recording.lacks),
        reproduction=Reproduction(not fault, fault_step, fault) if own is not None else None,
        recorded=sum_up("recorded", facts, recorded),
        recorded_steps=tuple(recorded),
        facts=tuple(facts),
        alternatives=tuple(column.finish(recording, facts) for column in columns),
        payments=None if payments is None else payments.finish(),
        weak_problems=disagreements.finish(),
    )


class _Column:
    """An alternative with its answers so far."""

    def __init__(self, resolved: Resolved, decider: Decider, *, is_rejudged: bool = False) -> None:
        self.resolved = resolved
        self.decider = decider
        self.is_rejudged = is_rejudged
        self.answers: list[StepAnswer] = []

    def add(
        self,
        step: RecordedStep,
        judged: RecordedStep,
        recording: Recording,
        on_differing: OnDiffering | None,
    ) -> None:
        """Decide a step's rollouts, as recorded or as judged again, and keep the answer."""
        name = self.resolved.name
        decided_P_G = self.decider.decide(judged if self.is_rejudged else step)
        algorithm = self.resolved.config.algorithm
        answer = _answer(step, decided_P_G, name, recording, algorithm.group_filtering)
        self.answers.append(answer)
        if on_differing is not None:
            rows = list_differing(
                step.scored_P_G,
                decided_P_G,
                step=step.step,
                alternative=name,
                tolerance=find_tolerance(recording),
            )
            on_differing(rows)

    def finish(self, recording: Recording, facts: Sequence[StepFacts]) -> ReplayedAlternative:
        """Return the alternative with its sums."""
        return ReplayedAlternative(
            name=self.resolved.name,
            changed=self.resolved.changed,
            unanswered=self.resolved.unanswered,
            temperature=_choose_temperature(recording, self.resolved),
            run=sum_up(self.resolved.name, facts, self.answers),
            steps=tuple(self.answers),
        )


def _rejudged_column(recording: Recording, rejudging: Rejudging) -> _Column:
    """Return the column of the recorded recipe with other verdicts."""
    resolved = resolve(rejudging.alternative(recording.config), recording.config)
    decider = build_decider(recording, resolved, is_rejudged=True)
    return _Column(resolved, decider, is_rejudged=True)


def _answer(
    step: RecordedStep,
    decided_P_G: Groups,
    name: str,
    recording: Recording,
    group_filtering: GroupFiltering | None = None,
) -> StepAnswer:
    recorded_filtering = recording.config.algorithm.group_filtering
    return answer_step(
        step.scored_P_G,
        decided_P_G,
        step=step.step,
        alternative=name,
        group_filtering=group_filtering or recorded_filtering,
        recorded_filtering=recorded_filtering,
        tolerance=find_tolerance(recording),
    )


def find_tolerance(recording: Recording) -> float:
    """Return the relative difference up to which two advantages of a recording are the same."""
    return OTHER_EPSILON if Lack.RECIPE in recording.lacks else 0.0


def _find_fault(step: RecordedStep, decided_P_G: Groups, fact: StepFacts) -> str:
    """Return what the recorded recipe decides otherwise than is recorded; empty if nothing."""
    for recorded_G, decided_G in zip(step.scored_P_G, decided_P_G, strict=True):
        for before, after in zip(recorded_G, decided_G, strict=True):
            for name in _COMPARED:
                old = getattr(before, name)
                new = getattr(after, name)
                if old != new:
                    return f"{name} of {_name_sample(before)} is {new!r}, recorded {old!r}"
    row = step.metrics
    if row is None:
        return ""
    doses = share_removed_advantages(list(chain.from_iterable(decided_P_G)))
    if doses != row.doses:
        return f"doses are {doses}, recorded {dict(row.doses)}"
    if fact.diversity is not None and fact.diversity != row.diversity:
        return f"diversity is {fact.diversity}, recorded {row.diversity}"
    return ""


def _name_sample(sample: ScoredRollout) -> str:
    return f"{sample.rollout.problem_id} sample {sample.sample_index}"


def _choose_temperature(recording: Recording, resolved: Resolved) -> Choice | None:
    """Return what the diversity rule would have chosen under an alternative's settings."""
    settings = resolved.config.rollout.temperature
    if recording.probe is None or not isinstance(settings, DiversityTemperature):
        return None
    wanted = set(settings.grid)
    points = [point for point in recording.probe.points if point.temperature in wanted]
    missing = sorted(wanted - {point.temperature for point in points})
    sampled = ", ".join(f"{point.temperature:g}" for point in recording.probe.points)
    if missing:
        raise ConfigError(
            f"{resolved.name}: the probe took no samples at temperature {missing[0]:g}; "
            f"rollout.temperature.grid may have {sampled}"
        )
    return choose_temperature(points, settings)
