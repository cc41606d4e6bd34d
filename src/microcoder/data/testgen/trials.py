"""Tries made tests on programs that may be wrong.

These are submissions known to be wrong, a model's attempts that the given tests do not catch, and
mutants of accepted programs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from microcoder.data.testgen.answers import Answering
from microcoder.data.testgen.made import MadeTest
from microcoder.data.testgen.mutants import make_mutants
from microcoder.data.testgen.mutation import digest_input
from microcoder.data.testgen.programs import find_programs
from microcoder.judge.core.files import cut_pieces
from microcoder.judge.core.types import Outcome, Program, TestCase, TestResult

_WRONG = ("wrong_answer", "runtime_error", "partial")
"""Verdicts of submissions that choose tests."""
_MOST_KNOWN_WRONG = 12
"""Known-wrong and partial submissions that choose tests (our choice)."""
_MOST_MUTANTS = 240
"""Mutants that are made where an accepted program is interpreted."""
_MUTANTS_AT_ONCE = 40
"""Mutants that are run on the given tests before it is asked whether there are enough."""
_MUTANT_SECONDS = 0.3
"""CPU seconds that a mutant gets for a given test: many never end."""
_MOST_COMPILED_MUTANTS = 8
"""The same where each takes seconds to compile."""
_ENOUGH_KNOWN_WRONG = 3
"""Known-wrong submissions beside which no mutant is compiled."""
_MOST_TRIED_ATTEMPTS = 16
"""A model's attempts that pass the given tests and are tried on the made ones."""
_MOST_TRIED_MUTANTS = 40
"""Mutants that the given tests do not catch and that are tried on the made ones."""
_TESTS_AT_ONCE = 100
"""Tests that a wrong program is run on at a time."""
_ENOUGH_FAILED = 6
"""Tests after which a wrong program needs no further ones."""
_WRONG_SECONDS = 1.0
"""CPU seconds that a wrong program gets for a test (our choice)."""
_TIMES_SLOWEST = 2.0
"""Or so many times those of the slowest reference."""
_SMALL_BYTES = 4096
"""On a longer input a program at a limit may just be slow.

On a shorter one it is counted as wrong.
"""
_LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT)
"""Outcomes that differ from machine to machine."""
_CANNOT_RUN = (Outcome.COMPILE_ERROR, Outcome.NO_CODE, Outcome.SANDBOX_FAULT)
"""Outcomes that say nothing about a test."""


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """A program that some test should catch."""

    program: Program
    kind: Literal["submission", "attempt", "mutant"] = "submission"
    """`submission`: known to be wrong; `attempt`: a model's, which passes the given tests;
    `mutant`: made of an accepted program. The latter two may be right."""


@dataclass(slots=True)
class Trial:
    """A wrong program that passes the given tests, and what became of it."""

    wrong: WrongProgram
    failed: frozenset[int] = frozenset()
    """Indices of the made tests that it surely fails."""
    is_late: bool = False
    """Whether it may be right and met a limit: a clock may have decided, so nothing follows."""


def find_wrong(
    answering: Answering,
    attempts: Sequence[Program] = (),
) -> list[WrongProgram]:
    """Return the wrong programs of a problem that its given tests do not catch.

    Known-wrong submissions come first, with those that the given tests catch: of these a hidden
    test is wanted too.

    Args:
        answering: the problem and its references.
        attempts: a model's; those that differ from the references on some made input show what
            a model gets wrong.
    """
    known = find_programs(answering.candidate, _WRONG)[:_MOST_KNOWN_WRONG]
    mutants = _make_mutants(answering, has_enough=len(known) >= _ENOUGH_KNOWN_WRONG)
    # Most mutants are so wrong that any test catches them, and say nothing about made ones.
    uncaught: list[Program] = []
    for piece in cut_pieces(mutants, _MUTANTS_AT_ONCE):
        if len(uncaught) < _MOST_TRIED_MUTANTS:
            uncaught += _find_uncaught(answering, piece, seconds=_MUTANT_SECONDS)
    uncaught = uncaught[:_MOST_TRIED_MUTANTS]
    found = [WrongProgram(program) for program in known]
    # A reference may be one of them.
    right = {(program.code or "").strip() for program in answering.references}
    others = [program for program in attempts if (program.code or "").strip() not in right]
    for program in _find_uncaught(answering, others[:_MOST_TRIED_ATTEMPTS]):
        found.append(WrongProgram(program, "attempt"))
    return found + [WrongProgram(program, "mutant") for program in uncaught]


def _find_uncaught(
    answering: Answering,
    programs: Sequence[Program],
    *,
    seconds: float = _WRONG_SECONDS,
) -> list[Program]:
    """Return the programs that pass the given tests; all where there are none."""
    tests = answering.candidate.tests
    if not tests:
        return list(programs)
    return answering.list_accepted(programs, tests, seconds=seconds)


def _make_mutants(answering: Answering, *, has_enough: bool) -> list[Program]:
    """Return mutants of the references: of interpreted ones, if there are any.

    Args:
        answering: the problem and its references.
        has_enough: there are known-wrong submissions enough, so that no mutant is compiled.
    """
    references = answering.references
    interpreted = [program for program in references if program.language == "python"]
    most = _MOST_MUTANTS
    if not interpreted:
        most = 0 if has_enough else _MOST_COMPILED_MUTANTS
    return make_mutants(
        interpreted or references,
        most=most,
        seed=answering.candidate.id,
    )


def try_tests(
    answering: Answering,
    wrong: Sequence[WrongProgram],
    tests: Sequence[MadeTest],
) -> list[Trial]:
    """Run wrong programs on the made tests that are small, and return what each fails.

    A program is run on some tests at a time, of all kinds, until it fails enough of them. So
    hundreds of tests cost little: those that few tests catch meet all.
    """
    # A large test is there for the slow: on it a wrong program costs its limit, and is not counted
    # as caught.
    small = [number for number, made in enumerate(tests) if not made.is_large]
    small.sort(key=lambda number: digest_input(tests[number].test.input))
    trials = [Trial(program) for program in wrong]
    if not small:
        return trials
    slowest = max(tests[number].seconds for number in small)
    # Little: a wrong program that is slow as well would cost much time.
    seconds = max(_WRONG_SECONDS, _TIMES_SLOWEST * slowest)
    for numbers in cut_pieces(small, _TESTS_AT_ONCE):
        left = []
        for trial in trials:
            if not trial.is_late and len(trial.failed) < _ENOUGH_FAILED:
                left.append(trial)
        _try_some(answering, left, tests, numbers, seconds)
    return trials


def _try_some(
    answering: Answering,
    trials: Sequence[Trial],
    tests: Sequence[MadeTest],
    numbers: Sequence[int],
    seconds: float,
) -> None:
    """Note in trials what their programs fail of the tests with these numbers."""
    if not trials:
        return
    pool = [tests[number].test for number in numbers]
    programs = [trial.wrong.program for trial in trials]
    problems = []
    for program in programs:
        problem = answering.problem(pool, seconds=seconds, language=program.language)
        problems.append(problem)
    verdicts = answering.judges.thorough.judge(programs, problems)
    for trial, verdict in zip(trials, verdicts, strict=True):
        failed = set(trial.failed)
        for number, result in zip(numbers, verdict.tests, strict=False):
            if _is_caught(result, tests[number].test):
                failed.add(number)
        trial.failed = frozenset(failed)
        met_limit = any(result.verdict in _LIMITS for result in verdict.tests)
        may_be_right = trial.wrong.kind != "submission"
        trial.is_late = trial.is_late or (may_be_right and met_limit)


def _is_caught(result: TestResult, test: TestCase) -> bool:
    """Whether a program surely fails a test."""
    if result.verdict is Outcome.ACCEPTED or result.verdict in _CANNOT_RUN:
        return False
    # Where a program meets a limit differs from machine to machine, and what is chosen must not.
    return result.verdict not in _LIMITS or len(test.input) <= _SMALL_BYTES
