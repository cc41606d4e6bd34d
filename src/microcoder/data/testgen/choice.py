"""Which made tests a problem gets: those that catch known-wrong submissions, then a mix."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microcoder.data.formats.candidates import Candidate, Origin
from microcoder.data.testgen.answers import Answering
from microcoder.data.testgen.made import MadeTest
from microcoder.data.testgen.programs import find_programs
from microcoder.data.testgen.settings import MOST_LARGE, MOST_TESTS, GenerateSettings
from microcoder.judge.core.files import take_in_turn
from microcoder.judge.core.types import Outcome, Verdict

STEP = "generate/1"
"""Name and version of the step in the lineage of a candidate."""
_WRONG = ("wrong_answer", "runtime_error", "partial")
"""Verdicts of submissions that choose tests."""
_GIVEN = Origin(kind="given")
_MOST_KNOWN_WRONG = 12
"""Known-wrong, slow and partial submissions that choose tests too (our choice)."""
_WRONG_SECONDS = 1.0
"""CPU seconds that a wrong submission gets for a test (our choice)."""
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
class _Trials:
    """The results of trying tests on wrong submissions."""

    catches: Mapping[int, int]
    """By test, how many submissions that pass the given tests fail it first."""
    num_tried: int
    num_passing: int
    """How many submissions pass all tried tests."""


def add_chosen(
    answering: Answering,
    settings: GenerateSettings,
    tests: Sequence[MadeTest],
    detail: str,
    *,
    is_tried: bool,
) -> Candidate:
    """Return a candidate with those made tests that catch most wrong submissions.

    Args:
        answering: what found the tests' answers.
        settings: settings of the stage.
        tests: made tests.
        detail: how they were made.
        is_tried: whether wrong submissions are tried on them.
    """
    candidate = answering.candidate
    given = candidate.tests
    trials = _try_wrong(answering, tests, is_tried=is_tried)
    # A problem with many given tests may still have too few hidden ones.
    most = max(MOST_TESTS - len(given), settings.min_hidden_tests)
    numbers = choose_tests(
        tests,
        trials.catches,
        most=most,
        num_large=MOST_LARGE,
    )
    chosen = [tests[number] for number in numbers]
    # Without origins, all tests are the source's own.
    origins = list(candidate.origins or [_GIVEN] * len(given))
    origins += [made.origin for made in chosen]
    # A row without groups stays without them.
    groups = list(candidate.groups)
    if groups:
        groups += [made.group for made in chosen]
    passing = f"{trials.num_passing} of {trials.num_tried} wrong submissions pass all tried tests"
    return candidate.change(
        "generate",
        STEP,
        f"{detail}; {len(chosen)} kept; {passing}",
        tests=(*given, *(made.test for made in chosen)),
        origins=tuple(origins),
        groups=tuple(groups),
    )


def _try_wrong(
    answering: Answering,
    tests: Sequence[MadeTest],
    *,
    is_tried: bool,
) -> _Trials:
    """Run wrong submissions on the given tests, and on the made ones that are small."""
    wrong = []
    if is_tried:
        wrong = find_programs(answering.candidate, _WRONG)[:_MOST_KNOWN_WRONG]
    # A large test is there for the slow: on it a wrong program costs its limit, and is not counted
    # as caught.
    small = [number for number, made in enumerate(tests) if not made.is_large]
    if not small:
        small = list(range(len(tests)))
    slowest = max(tests[number].seconds for number in small)
    # Little: a wrong program that is slow as well would cost much time.
    seconds = max(_WRONG_SECONDS, _TIMES_SLOWEST * slowest)
    given = answering.candidate.tests
    pool = [*given, *(tests[number].test for number in small)]
    verdicts = answering.judge_briefly(wrong, pool, seconds=seconds)
    catches: Counter[int] = Counter()
    for verdict in verdicts:
        # The judge stops at the first failure, so the last result is the test that caught it.
        place = len(verdict.tests) - 1 - len(given)
        if place >= 0 and _is_caught(verdict, tests[small[place]]):
            catches[small[place]] += 1
    num_passing = sum(verdict.is_accepted for verdict in verdicts)
    return _Trials(catches, len(wrong), num_passing)


def _is_caught(verdict: Verdict, made: MadeTest) -> bool:
    """Whether a program surely fails the last test that it was run on."""
    if verdict.is_accepted or verdict.outcome in _CANNOT_RUN:
        return False
    # Where a program meets a limit differs from machine to machine, and what is chosen must not.
    return verdict.outcome not in _LIMITS or len(made.test.input) <= _SMALL_BYTES


def choose_tests(
    tests: Sequence[MadeTest],
    catches: Mapping[int, int],
    *,
    most: int,
    num_large: int,
) -> list[int]:
    """Return the indices of the tests to keep.

    They are some large tests, the tests that wrong programs fail, and a mix of the rest.

    Args:
        tests: made tests.
        catches: by test, how many wrong submissions that pass the given tests fail it first; sorted
            by this per second of judging.
        most: how many tests are kept.
        num_large: how many large tests are kept whatever they catch.
    """
    # Each test once, by the first reason to keep it.
    ranked = dict.fromkeys(_mix_large(tests)[:num_large])
    ranked.update(dict.fromkeys(_rank_catching(tests, catches)))
    # What no known mistake asked for may still catch the mistakes of a model.
    ranked.update(dict.fromkeys(_mix_all(tests)))
    return sorted(list(ranked)[:most])


def _mix_large(tests: Sequence[MadeTest]) -> list[int]:
    """Return the indices of the large tests, one of each kind in turn, longest first."""
    by_kind: dict[str, list[int]] = {}
    for number in _longest_first(tests):
        if tests[number].is_large:
            of_kind = by_kind.setdefault(tests[number].origin.kind, [])
            of_kind.append(number)
    return take_in_turn(by_kind.values())


def _mix_all(tests: Sequence[MadeTest]) -> list[int]:
    """Return all indices, of each maker and kind in turn, so that no generator fills all places."""
    by_maker: dict[str, dict[str, list[int]]] = {}
    for number in _longest_first(tests):
        kind = tests[number].origin.kind
        maker = kind.partition("/")[0]
        by_kind = by_maker.setdefault(maker, {})
        by_kind.setdefault(kind, []).append(number)
    by_turns = [take_in_turn(by_kind.values()) for by_kind in by_maker.values()]
    return take_in_turn(by_turns)


def _longest_first(tests: Sequence[MadeTest]) -> list[int]:
    return sorted(range(len(tests)), key=lambda number: -len(tests[number].test.input))


def _rank_catching(
    tests: Sequence[MadeTest],
    catches: Mapping[int, int],
) -> list[int]:
    """Return the tests that catch any program; those that catch most per second come first."""
    ranks = []
    for number, num_caught in catches.items():
        if num_caught > 0:
            per_second = num_caught / tests[number].seconds
            num_bytes = len(tests[number].test.input)
            ranks.append((-per_second, num_bytes, number))
    return [rank[-1] for rank in sorted(ranks)]
