"""What a run paid for and should not have: the curve by step, where it begins to rise, and how.

A rollout is *paid* if its recorded reward, without its length penalty, is above 0.5. It is *wrong*
if the verdict that counts refuses its program: the recorded one, or that of a judge who was asked
again.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from microcoder.judge.core.types import Problem
from microcoder.lab.studies.accuracy import wilson_interval
from microcoder.replay.onset import GroupCount, Onset, find_onset
from microcoder.replay.recordings import RIGHT_ABOVE, RecordedStep
from microcoder.replay.ways import Way, find_way
from microcoder.train.rollouts import ScoredRollout

_LONGEST_EXAMPLE = 2000
"""Characters of an example's program that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidStep:
    """The paid rollouts of a step."""

    step: int
    paid: int
    wrong: int
    """Those that the verdict refuses."""
    unpaid_right: int
    """Rollouts that were not paid, and that the verdict accepts."""
    share: float | None
    """Share of the paid that are wrong; None if none was paid."""
    low: float
    """Lower end of its 95 % interval. It counts groups, not rollouts: samples of one problem win
    alike."""
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WayCount:
    """A cluster of programs that were paid and are wrong, by how they won."""

    way: str
    """See `ways.Way`."""
    before: int
    """Rollouts before the onset; of a run without one, all."""
    since: int
    """Rollouts from the onset on."""
    step: int
    """Step of the example: the first from the onset on that has one."""
    problem_id: str
    sample_index: int
    program: str
    """The example's source, its first 2,000 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentCurve:
    """What a run paid for, by step."""

    judged_by: str
    """Whose verdicts count: `recorded`, or the name of the re-judging."""
    steps: tuple[PaidStep, ...]
    onset: Onset | None
    """Where the share of the wrong begins to rise; None if it never does."""
    ways: tuple[WayCount, ...]
    """Clusters, the most frequent since the onset first."""


@dataclass(frozen=True, slots=True)
class _Example:
    problem_id: str
    sample_index: int
    program: str


@dataclass
class Payments:
    """Counts the paid rollouts of steps."""

    judged_by: str
    problems: Mapping[str, Problem] = field(default_factory=dict)
    _steps: list[PaidStep] = field(default_factory=list)
    _groups: list[GroupCount] = field(default_factory=list)
    _ways: dict[Way, Counter[int]] = field(default_factory=dict)
    _examples: dict[tuple[Way, int], _Example] = field(default_factory=dict)

    def add(self, judged: RecordedStep) -> None:
        """Add a step, whose rewards are the recorded ones and whose verdicts count."""
        of_step = []
        unpaid_right = 0
        for scored_G in judged.scored_P_G:
            num_paid = 0
            num_wrong = 0
            for sample in scored_G:
                verdict = sample.verdict
                # What could not be judged is neither right nor wrong.
                if not verdict.is_scorable:
                    continue
                if not is_paid(sample):
                    unpaid_right += verdict.is_accepted
                    continue
                num_paid += 1
                if verdict.is_accepted:
                    continue
                num_wrong += 1
                problem_id = sample.rollout.problem_id
                code = sample.program.code
                way = find_way(code, verdict.outcome, self.problems.get(problem_id))
                self._ways.setdefault(way, Counter())[judged.step] += 1
                example = _Example(problem_id, sample.sample_index, (code or "")[:_LONGEST_EXAMPLE])
                self._examples.setdefault((way, judged.step), example)
            of_step.append(GroupCount(judged.step, num_paid, num_wrong))
        self._groups += of_step
        paid = sum(group.paid for group in of_step)
        wrong = sum(group.wrong for group in of_step)
        num_groups = sum(group.paid > 0 for group in of_step)
        share = wrong / paid if paid else None
        low, high = wilson_interval((share or 0.0) * num_groups, num_groups)
        self._steps.append(
            PaidStep(
                step=judged.step,
                paid=paid,
                wrong=wrong,
                unpaid_right=unpaid_right,
                share=share,
                # Rounding leaves the last bits of a lower end that is 0.
                low=low if wrong else 0.0,
                high=high,
            )
        )

    def finish(self) -> PaymentCurve:
        """Return the curve with its onset and clusters."""
        onset = find_onset(self._groups)
        ways = [self._count_way(way, onset) for way in self._ways]
        ways.sort(key=lambda count: (-count.since, -count.before, count.way))
        return PaymentCurve(
            judged_by=self.judged_by, steps=tuple(self._steps), onset=onset, ways=tuple(ways)
        )

    def _count_way(self, way: Way, onset: Onset | None) -> WayCount:
        by_step = self._ways[way]
        since = 0
        if onset is not None:
            since = sum(count for step, count in by_step.items() if step >= onset.step)
        later = [step for step in by_step if onset is not None and step >= onset.step]
        shown = min(later or by_step)
        example = self._examples[way, shown]
        return WayCount(
            way=str(way),
            before=by_step.total() - since,
            since=since,
            step=shown,
            problem_id=example.problem_id,
            sample_index=example.sample_index,
            program=example.program,
        )


def is_paid(sample: ScoredRollout) -> bool:
    """Return whether a rollout was rewarded, its length penalty left out."""
    return sample.reward is not None and sample.reward - sample.length_penalty > RIGHT_ABOVE
