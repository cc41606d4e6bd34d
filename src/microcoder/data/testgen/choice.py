"""Which made tests a problem gets: those that catch wrong programs, then a mix."""

from collections import Counter
from collections.abc import Collection, Sequence

from microcoder.data.formats.candidates import Candidate, Origin
from microcoder.data.testgen.answers import Answering
from microcoder.data.testgen.made import MadeTest
from microcoder.data.testgen.programs import knows_slow
from microcoder.data.testgen.settings import (
    MOST_LARGE,
    MOST_LARGE_FOR_SLOW,
    MOST_TESTS,
    GenerateSettings,
)
from microcoder.data.testgen.trials import Trial
from microcoder.judge.core.files import take_in_turn

STEP = "generate/2"
"""Name and version of the step in the lineage of a candidate."""
_GIVEN = Origin(kind="given")
_TIMES_COVERED = 2
"""How many chosen tests are to catch an attempt or mutant, as other mistakes are only like it."""
_NAMES = {
    "submission": "wrong submissions",
    "attempt": "attempts",
    "mutant": "mutants",
}
"""What the kinds of tried programs are called."""


def add_chosen(
    answering: Answering,
    settings: GenerateSettings,
    tests: Sequence[MadeTest],
    trials: Sequence[Trial],
    detail: str,
) -> Candidate:
    """Return a candidate with those made tests that catch most wrong programs.

    Args:
        answering: what found the tests' answers.
        settings: settings of the stage.
        tests: made tests.
        trials: what wrong programs fail of them.
        detail: how they were made.
    """
    candidate = answering.candidate
    given = candidate.tests
    # A problem with many given tests may still have too few hidden ones.
    most = max(MOST_TESTS - len(given), settings.min_hidden_tests)
    numbers = choose_tests(
        tests,
        trials,
        most=most,
        num_large=MOST_LARGE_FOR_SLOW if knows_slow(candidate) else MOST_LARGE,
    )
    chosen = [tests[number] for number in numbers]
    # Without origins, all tests are the source's own.
    origins = list(candidate.origins or [_GIVEN] * len(given))
    origins += [made.origin for made in chosen]
    # A row without groups stays without them.
    groups = list(candidate.groups)
    if groups:
        groups += [made.group for made in chosen]
    return candidate.change(
        "generate",
        STEP,
        f"{detail}; {len(chosen)} kept; {_describe(trials)}",
        tests=(*given, *(made.test for made in chosen)),
        origins=tuple(origins),
        groups=tuple(groups),
    )


def _describe(trials: Sequence[Trial]) -> str:
    """Return how many wrong programs pass all tests that were tried on them."""
    tried: Counter[str] = Counter()
    passing: Counter[str] = Counter()
    for trial in trials:
        tried[trial.wrong.kind] += 1
        passing[trial.wrong.kind] += not trial.failed
    counts = []
    for kind, name in _NAMES.items():
        # Few builds have attempts.
        if tried[kind] or kind != "attempt":
            counts.append(f"{passing[kind]} of {tried[kind]} {name}")
    return f"{', '.join(counts[:-1])} and {counts[-1]} pass all tried tests"


def choose_tests(
    tests: Sequence[MadeTest],
    trials: Sequence[Trial],
    *,
    most: int,
    num_large: int,
) -> list[int]:
    """Return the indices of the tests to keep.

    They are some large tests, the tests that wrong programs fail, and a mix of the rest.

    Args:
        tests: made tests.
        trials: what wrong programs fail of them.
        most: how many tests are kept.
        num_large: how many large tests are kept whatever they catch.
    """
    failed: dict[str, list[Collection[int]]] = {kind: [] for kind in _NAMES}
    for trial in trials:
        failed[trial.wrong.kind].append(trial.failed)
    # Each test once, by the first reason to keep it.
    ranked = dict.fromkeys(_mix_large(tests)[:num_large])
    ranked.update(dict.fromkeys(_cover(tests, failed["submission"], ranked, times=1)))
    # A model's mistakes are those that the tests will meet.
    for kind in ("attempt", "mutant"):
        ranked.update(dict.fromkeys(_cover(tests, failed[kind], ranked, times=_TIMES_COVERED)))
    chosen = list(ranked)[:most]
    # What no known mistake asked for may still catch the mistakes of a model.
    return sorted(chosen + _fill(tests, chosen, most=most - len(chosen)))


def _fill(tests: Sequence[MadeTest], chosen: Sequence[int], *, most: int) -> list[int]:
    """Return further tests: the first of the mix whose answer the fewest tests have so far.

    Where nearly all answers are "no", a program that always says so would pass a mix.
    """
    left = [number for number in _mix_all(tests) if number not in chosen]
    answers = [test.test.output.strip() for test in tests]
    num_with = Counter(answers[number] for number in chosen)
    added: list[int] = []
    while left and len(added) < most:
        number = min(left, key=lambda place: num_with[answers[place]])
        left.remove(number)
        added.append(number)
        num_with[answers[number]] += 1
    return added


def _cover(
    tests: Sequence[MadeTest],
    failed_by_program: Sequence[Collection[int]],
    chosen: Collection[int],
    *,
    times: int,
) -> list[int]:
    """Return further tests until every program fails so many, as far as it fails any.

    A greedy cover: the next test is always the one that catches most programs that are caught too
    seldom; of equal ones, the one that catches more in all, then the cheaper.
    """
    totals: Counter[int] = Counter()
    for failed in failed_by_program:
        totals.update(failed)
    added: list[int] = []
    while True:
        taken = {*chosen, *added}
        catches: Counter[int] = Counter()
        for failed in failed_by_program:
            if len(taken.intersection(failed)) < times:
                catches.update(set(failed) - taken)
        if not catches:
            return added
        ranks = []
        for number, num_caught in catches.items():
            cost = (tests[number].seconds, len(tests[number].test.input))
            ranks.append((-num_caught, -totals[number], cost, number))
        added.append(min(ranks)[-1])


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
