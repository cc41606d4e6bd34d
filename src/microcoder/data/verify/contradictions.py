"""Runs accepted programs on the examples of their statement: who follows one must not get 0.

An example counts where it can be read in one way only (`clean.examples`), and contradicts its
problem where each of the programs that pass the tests gives another answer to it. A program that
crashes or is late there says nothing.
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from pydantic import ValidationError

from microcoder.data.clean.examples import describe_example, read_examples
from microcoder.data.verify.plans import VerificationPlan
from microcoder.data.verify.runs import Pair, Run
from microcoder.judge import check_problem
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, TestCase, Verdict

_MOST_PROGRAMS = 2
"""Accepted programs that are run on the examples (our choice)."""


class _Planned(NamedTuple):
    """Programs of a plan to run on the examples of its statement."""

    plan: VerificationPlan
    tests: tuple[TestCase, ...]
    pairs: list[Pair]


def run_examples(run: Run, plans: Sequence[VerificationPlan]) -> None:
    """Run accepted programs of each plan on its statement's examples, and note what contradicts.

    Args:
        run: runs the programs.
        plans: those with programs that passed all tests.
    """
    planned = [_plan(item) for item in plans]
    pairs: list[Pair] = []
    for item in planned:
        pairs += item.pairs
    verdicts = iter(run(pairs))
    for item in planned:
        refused = _find_refused(list(islice(verdicts, len(item.pairs))))
        if refused is not None:
            example = item.tests[refused]
            item.plan.contradicted = describe_example(item.plan.candidate, example)


def _plan(item: VerificationPlan) -> _Planned:
    """Return programs with the problem whose tests are the statement's examples."""
    tests, checker = read_examples(item.candidate)
    planned = _Planned(item, tests, [])
    if not tests:
        return planned
    compared = item.candidate.model_copy(update={"checker": checker})
    for program in item.passing()[:_MOST_PROGRAMS]:
        try:
            problem = compared.to_trial(
                program.language,
                seconds=item.limit_seconds,
                memory_mib=item.memory_mib,
                tests=tests,
            )
            check_problem(problem)
        # An example that no judge can take contradicts nothing.
        except (DataError, ValidationError):
            return _Planned(item, tests, [])
        planned.pairs.append((program.program, problem))
    return planned


def _find_refused(verdicts: Sequence[Verdict]) -> int | None:
    """Return the first example to which every program gives a wrong answer; None without one."""
    wrong_by_program = []
    for verdict in verdicts:
        wrong = set()
        for number, test in enumerate(verdict.tests):
            if test.verdict is Outcome.WRONG_ANSWER:
                wrong.add(number)
        wrong_by_program.append(wrong)
    if not wrong_by_program:
        return None
    return min(set.intersection(*wrong_by_program), default=None)
