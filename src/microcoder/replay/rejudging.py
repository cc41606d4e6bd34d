"""The programs of a recording judged again: by better tests, or by another comparison.

Each distinct program of a problem is judged once, by any judge; what is kept of a verdict is its
outcome and those of its tests, so that a hundred thousand rollouts fit into memory.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.types import (
    Checker,
    Outcome,
    Problem,
    Program,
    TestResult,
    Verdict,
)
from microcoder.judge.fleet.judge import BatchJudge
from microcoder.replay.recordings import RecordedStep
from microcoder.replay.settings import Alternative, ReplayConfig
from microcoder.train.rollouts import ScoredRollout

COMPARISONS = ("default", "exact", "tokens", "float", "unordered")
"""Checkers by which outputs may be compared again."""

_TEST_OF = {outcome: TestResult(outcome, 0.0, 0.0, 0.0, "", "") for outcome in Outcome}
"""Outcome -> a test of it without times and texts, shared by all verdicts that are kept."""


@dataclass
class Rejudging:
    """Judges the programs of steps again, and remembers what it has judged."""

    judge: BatchJudge
    problems: Mapping[str, Problem]
    """Problems by id, with the tests that count now."""
    name: str = "re-judged"
    num_judged: int = 0
    """Distinct programs that were judged."""
    num_unknown: int = 0
    """Rollouts whose problem is not among `problems`; they keep their verdict."""
    _known: dict[bytes, Verdict] = field(default_factory=dict)

    def alternative(self, recorded: ReplayConfig) -> Alternative:
        """Return the recorded recipe; a reward of the user's own gives way to the verdict.

        A reward that is a function of the user's own is part of what is asked about.
        """
        if not recorded.has_own_rewards:
            return Alternative(self.name)
        return Alternative(self.name, {"rewards": '[{name = "all_tests"}]'})

    def judge_step(self, step: RecordedStep) -> RecordedStep:
        """Return a step with the new verdicts in the place of the recorded ones."""
        self._judge_new(list(chain.from_iterable(step.scored_P_G)))
        judged_P_G = []
        for scored_G in step.scored_P_G:
            judged_P_G.append([self._with_verdict(sample) for sample in scored_G])
        return replace(step, scored_P_G=judged_P_G)

    def _judge_new(self, samples: Sequence[ScoredRollout]) -> None:
        """Judge the programs that are not known yet, as one batch."""
        new: dict[bytes, tuple[Program, Problem]] = {}
        for sample in samples:
            problem = self.problems.get(sample.rollout.problem_id)
            if problem is None:
                self.num_unknown += 1
                continue
            key = _key(sample)
            if key not in self._known:
                # The recording does not say in which language its programs are.
                program = replace(sample.program, language=problem.language)
                new[key] = (program, problem)
        if not new:
            return
        programs, problems = zip(*new.values(), strict=True)
        verdicts = self.judge.judge(programs, problems)
        self.num_judged += len(verdicts)
        for key, verdict in zip(new, verdicts, strict=True):
            self._known[key] = _small(verdict)

    def _with_verdict(self, sample: ScoredRollout) -> ScoredRollout:
        verdict = self._known.get(_key(sample))
        # That of a problem which is not known was never asked for.
        return sample if verdict is None else replace(sample, verdict=verdict)


def _key(sample: ScoredRollout) -> bytes:
    """Return what programs that are judged alike share."""
    # Of a response without a program every reason is judged alike.
    code = sample.program.code
    text = f"{sample.rollout.problem_id}\0{'' if code is None else '=' + code}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _small(verdict: Verdict) -> Verdict:
    """Return a verdict without times, texts and outputs."""
    tests = tuple(_TEST_OF[test.verdict] for test in verdict.tests)
    return Verdict(verdict.outcome, tests, verdict.tests_total)


def compare_by(problems: Mapping[str, Problem], comparison: str) -> dict[str, Problem]:
    """Return problems whose outputs are compared in another way.

    A problem with a checker program keeps it, as nothing else knows its answers.

    Raises:
        ConfigError: there is no such comparison.
    """
    if comparison not in COMPARISONS:
        raise ConfigError(
            f"there is no comparison {comparison!r}; use one of {', '.join(COMPARISONS)}"
        )
    checker = Checker.model_validate({"type": comparison})
    compared = {}
    for name, problem in problems.items():
        decides = problem.checker.type == "program" or problem.interactor is not None
        if decides or problem.assertions is not None:
            compared[name] = problem
        else:
            compared[name] = problem.model_copy(update={"checker": checker})
    return compared
