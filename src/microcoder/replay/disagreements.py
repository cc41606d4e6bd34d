"""Problems whose tests were too weak: two programs were accepted, and a better test tells them
apart.

The better tests are those by which a recording is judged again. Their inputs are certified by
whoever made them, such as `microcoder data build`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from microcoder.judge.core.types import Outcome, Problem, Verdict
from microcoder.replay.payments import is_paid
from microcoder.train.rollouts import ScoredRollout


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakProblem:
    """A problem of which the run accepted a program that a better test refuses."""

    problem_id: str
    num_rollouts: int
    """Rollouts that were paid for such programs."""
    first_step: int
    """Step of the first of them."""
    test: int
    """Number of the test that refuses it, from 1."""
    input: str
    output: str
    """The test's expected output."""
    accepted: str | None
    """A program that both tests accept; None if the run has none."""
    refused: str
    """The program that was paid and is refused."""


@dataclass(slots=True)
class _Seen:
    """What was seen of a problem so far."""

    num_rollouts: int = 0
    first_step: int = 0
    test: int = 0
    accepted: str | None = None
    refused: str | None = None


@dataclass
class Disagreements:
    """Collects, by problem, accepted programs that better tests tell apart."""

    problems: Mapping[str, Problem]
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def add(self, step: int, judged_P_G: Sequence[Sequence[ScoredRollout]]) -> None:
        """Add a step, whose rewards are the recorded ones and whose verdicts those of the better
        tests.
        """
        for judged_G in judged_P_G:
            for sample in judged_G:
                if sample.program.code is not None and is_paid(sample):
                    self._add(step, sample, sample.program.code)

    def _add(self, step: int, sample: ScoredRollout, code: str) -> None:
        problem_id = sample.rollout.problem_id
        if problem_id not in self.problems:
            return
        seen = self._seen.setdefault(problem_id, _Seen())
        if sample.verdict.is_accepted:
            seen.accepted = seen.accepted or code
            return
        test = find_failure(sample.verdict)
        # A program that did not compile was refused by no test.
        if test is None:
            return
        seen.num_rollouts += 1
        if seen.refused is None:
            seen.refused = code
            seen.first_step = step
            seen.test = test

    def finish(self) -> tuple[WeakProblem, ...]:
        """Return the problems whose tests were too weak, those that were paid most often first."""
        found = []
        for problem_id, seen in self._seen.items():
            if seen.refused is None:
                continue
            case = self.problems[problem_id].tests[seen.test - 1]
            weak = WeakProblem(
                problem_id=problem_id,
                num_rollouts=seen.num_rollouts,
                first_step=seen.first_step,
                test=seen.test,
                input=case.input,
                output=case.output,
                accepted=seen.accepted,
                refused=seen.refused,
            )
            found.append(weak)
        return tuple(sorted(found, key=lambda weak: (-weak.num_rollouts, weak.problem_id)))


def find_failure(verdict: Verdict) -> int | None:
    """Return the number of the first test that refuses a program, from 1; None if none does."""
    for number, test in enumerate(verdict.tests, 1):
        if test.verdict is not Outcome.ACCEPTED:
            return number
    return None
